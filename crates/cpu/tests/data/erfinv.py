"""Prints the coefficients of erfinv: Chebyshev interpolation of erfinv(x) / x at 60 digits, by mpmath.

Near 0 in w = -log(1 - x²), in the tail in sqrt(w), each less the middle of its interval; the f32 polynomial near 0 is
expanded around 0 instead, which rounds better.
"""

import mpmath as mp

mp.mp.dps = 60


def quotient(w):
    """erfinv(x) / x for x = sqrt(1 - e^-w)."""
    x = mp.sqrt(-mp.expm1(-w))
    rest = mp.exp(-w) / (1 + x)
    y = mp.sqrt(w) * mp.mpf("0.9")
    for _ in range(80):
        complement = mp.erfc(y)
        step = mp.log(complement / rest) * complement * mp.sqrt(mp.pi) / (2 * mp.exp(-y * y))
        y += step
        if abs(step) < mp.mpf(10) ** -50:
            break
    return y / x


def interpolate(function, low, high, count, nodes=44):
    """The first `count` Chebyshev terms, as coefficients of powers of x less the middle."""
    middle, half = (mp.mpf(low) + mp.mpf(high)) / 2, (mp.mpf(high) - mp.mpf(low)) / 2
    angles = [mp.pi * (2 * i + 1) / (2 * nodes) for i in range(nodes)]
    values = [function(middle + half * mp.cos(a)) for a in angles]
    terms = [2 * sum(v * mp.cos(j * a) for v, a in zip(values, angles)) / nodes for j in range(count)]
    terms[0] /= 2
    before, now = [mp.mpf(1)], [mp.mpf(0), 1 / half]
    result = [mp.mpf(0)] * count
    for j, term in enumerate(terms):
        chebyshev = before if j == 0 else now
        for i, c in enumerate(chebyshev):
            result[i] += term * c
        if j:
            following = [mp.mpf(0)] + [2 * c / half for c in now]
            for i, c in enumerate(before):
                following[i] -= c
            before, now = now, following
    return result


def around_zero(coefficients, middle):
    count = len(coefficients)
    return [
        sum(coefficients[k] * mp.binomial(k, j) * (-mp.mpf(middle)) ** (k - j) for k in range(j, count)) for j in range(count)
    ]


def tail(root):
    return quotient(root * root)


def show(name, coefficients, digits):
    print(name)
    print("   ", ", ".join(mp.nstr(c, digits) for c in coefficients))


show("f32 near", around_zero(interpolate(quotient, 0, 5, 11), 2.5), 10)
show("f32 tail", interpolate(tail, "2.2", 4, 10), 10)
show("f64 near", interpolate(quotient, 0, 8, 27), 18)
show("f64 tail", interpolate(tail, "2.8", "6.05", 26), 18)
