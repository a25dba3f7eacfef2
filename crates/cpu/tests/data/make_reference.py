"""Writes exact values of the f64 functions, from mpmath at 200 bits, for tests/math.rs and examples/accuracy.rs.

A line is: function, bits of x, bits of the correctly rounded value, what that rounding dropped in units in the last
place. Run as `python make_reference.py POINTS > f64.txt`; the committed file has 96 points a function.
"""

import random
import struct
import sys

import mpmath as mp

mp.mp.prec = 200
ROOT = mp.sqrt(2 / mp.pi)


def cubic(x):
    return 2 * ROOT * (x + mp.mpf("0.044715") * x**3)


def gelu_tanh_derivative(x):
    z = mp.exp(-cubic(x))
    s = 1 / (1 + z)
    return s + x * s * s * z * 2 * ROOT * (1 + 3 * mp.mpf("0.044715") * x * x)


def silu_derivative(x):
    s = 1 / (1 + mp.exp(-x))
    return s * (1 + x * (1 - s))


FUNCTIONS = {
    "exp": (mp.exp, "wide"),
    "exp2": (lambda x: mp.mpf(2) ** x, "wide"),
    "expm1": (mp.expm1, "wide"),
    "log": (mp.log, "positive"),
    "log2": (lambda x: mp.log(x) / mp.log(2), "positive"),
    "log10": (mp.log10, "positive"),
    "log1p": (lambda x: mp.log1p(x), "above_minus_one"),
    "sigmoid": (lambda x: 1 / (1 + mp.exp(-x)), "wide"),
    "silu": (lambda x: x / (1 + mp.exp(-x)), "wide"),
    "silu_derivative": (silu_derivative, "wide"),
    "softplus": (lambda x: mp.log1p(mp.exp(x)), "wide"),
    "logsigmoid": (lambda x: -mp.log1p(mp.exp(-x)), "wide"),
    "sin": (mp.sin, "angle"),
    "cos": (mp.cos, "angle"),
    "tan": (mp.tan, "angle"),
    "asin": (mp.asin, "unit"),
    "acos": (mp.acos, "unit"),
    "atan": (mp.atan, "any"),
    "sinh": (mp.sinh, "wide"),
    "cosh": (mp.cosh, "wide"),
    "tanh": (mp.tanh, "wide"),
    "asinh": (mp.asinh, "any"),
    "acosh": (mp.acosh, "above_one"),
    "atanh": (mp.atanh, "unit"),
    "erf": (mp.erf, "normal"),
    "erfc": (mp.erfc, "normal"),
    "erfinv": (mp.erfinv, "unit"),
    "gelu": (lambda x: x * mp.erfc(-x / mp.sqrt(2)) / 2, "normal"),
    "gelu_derivative": (lambda x: mp.erfc(-x / mp.sqrt(2)) / 2 + x * mp.npdf(x), "normal"),
    "gelu_tanh": (lambda x: x / (1 + mp.exp(-cubic(x))), "small"),
    "gelu_tanh_derivative": (gelu_tanh_derivative, "small"),
    "rsqrt": (lambda x: 1 / mp.sqrt(x), "positive"),
}


def point(kind, i, rng):
    """The i-th argument: by turns of the kind's whole range, of ordinary size, and tiny."""
    sign = rng.choice((-1.0, 1.0))
    turn = i % 4
    tiny = sign * 2.0 ** rng.uniform(-60, -1)
    ordinary = rng.gauss(0.0, 1.0)
    if kind == "wide":
        return (rng.uniform(-40, 40), ordinary, tiny, rng.uniform(-744, 709))[turn]
    if kind == "small":
        return (rng.uniform(-20, 10), ordinary, tiny, rng.uniform(-3, 3))[turn]
    if kind == "normal":
        return (rng.uniform(-26, 26), ordinary, tiny, rng.uniform(-6, 6))[turn]
    if kind == "positive":
        return (abs(ordinary), 1 + tiny / 2, 2.0 ** rng.uniform(-1074, 1023), rng.uniform(0, 100))[turn]
    if kind == "above_minus_one":
        return (abs(ordinary), tiny, 2.0 ** rng.uniform(-1, 1023), -1 + abs(tiny))[turn]
    if kind == "above_one":
        return (1 + abs(ordinary), 1 + abs(tiny), 2.0 ** rng.uniform(0, 1023), rng.uniform(1, 2))[turn]
    if kind == "unit":
        return (rng.uniform(-1, 1), sign * (1 - abs(tiny) / 2), tiny, rng.uniform(-0.6, 0.6))[turn]
    if kind == "angle":
        return (rng.uniform(-10, 10), sign * 2.0 ** rng.uniform(0, 30), tiny, sign * 2.0 ** rng.uniform(30, 1023))[turn]
    return (ordinary, rng.uniform(-100, 100), tiny, sign * 2.0 ** rng.uniform(-1000, 1023))[turn]


def bits(x):
    return struct.pack(">d", x).hex()


def main():
    points = int(sys.argv[1]) if len(sys.argv) > 1 else 96
    for name, (function, kind) in FUNCTIONS.items():
        rng = random.Random(name)
        for i in range(points):
            x = point(kind, i, rng)
            # Subtractions inside the formulas lose as many bits as the argument has zeros; angles need their exponent.
            mp.mp.prec = 1300 if kind == "angle" else 3000 if kind in ("any", "above_one", "wide") else 400
            exact = function(mp.mpf(x))
            y = float(exact)
            if y in (float("inf"), float("-inf")):
                residue = 0.0
            else:
                exponent = max(mp.frexp(mp.mpf(abs(y)))[1] - 1, -1022) if y else -1022
                residue = float((exact - mp.mpf(y)) * mp.mpf(2) ** (52 - exponent))
            print(name, bits(x), bits(y), f"{residue:.3f}")


main()
