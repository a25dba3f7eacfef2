"""Line search for the strong Wolfe conditions.

Source: Nocedal and Wright, "Numerical Optimization", 2006, algorithms 3.5 and 3.6, with the safeguards of Schmidt's
minFunc.
"""

from typing import NamedTuple


class _Point(NamedTuple):
    """A place on the line: how far, the value there, the gradient and its slope along the line."""

    t: object
    f: object
    grad: object
    slope: object


def _lowest(a, b, bounds=None):
    """Where the cubic through two points with slopes is lowest, inside ``bounds`` (else between them)."""
    low, high = bounds if bounds is not None else (a.t, b.t) if a.t <= b.t else (b.t, a.t)
    d1 = a.slope + b.slope - 3 * (a.f - b.f) / (a.t - b.t)
    square = d1**2 - a.slope * b.slope
    if square < 0:
        return (low + high) / 2.0
    root = square**0.5
    near, far = (a, b) if a.t <= b.t else (b, a)
    at = far.t - (far.t - near.t) * ((far.slope + root - d1) / (far.slope - near.slope + 2 * root))
    return min(max(at, low), high)


def strong_wolfe(evaluate, t, d, f, grad, slope, c1=1e-4, c2=0.9, tolerance_change=1e-9, max_ls=25):
    """``(value, gradient, t, evaluations)`` at a step ``t`` that satisfies the conditions, or the best one found.

    ``evaluate(t)`` gives value and gradient at ``t`` times the direction ``d``.
    """
    start = _Point(0, f, grad.clone(), slope)

    def point(t):
        value, there = evaluate(t)
        return _Point(t, value, there, there.dot(d))

    def too_high(p):
        return p.f > f + c1 * p.t * slope

    def flat(p):
        return abs(p.slope) <= -c2 * slope

    # Bracket: a place that is good, or two between which there is one.
    now, before, calls, rounds, ends = point(t), start, 1, 0, None
    while rounds < max_ls:
        if too_high(now) or (rounds > 1 and now.f >= before.f):
            ends = [before, now]
            break
        if flat(now):
            return now.f, now.grad, now.t, calls
        if now.slope >= 0:
            ends = [before, now]
            break
        bounds = (now.t + 0.01 * (now.t - before.t), now.t * 10)
        before, now = now, point(_lowest(before, now, bounds))
        calls += 1
        rounds += 1
    if ends is None:
        ends = [start, now]
    best, calls = _zoom(point, too_high, flat, ends, d.abs().max(), tolerance_change, max_ls - rounds, calls)
    return best.f, best.grad, best.t, calls


def _zoom(point, too_high, flat, ends, scale, tolerance, left, calls):
    """Narrows two places between which there is a good one."""
    low, high = (0, 1) if ends[0].f <= ends[1].f else (1, 0)
    stuck = False
    while left > 0 and abs(ends[1].t - ends[0].t) * scale >= tolerance:
        t = _lowest(ends[0], ends[1])
        least, most = min(ends[0].t, ends[1].t), max(ends[0].t, ends[1].t)
        margin = 0.1 * (most - least)
        if min(most - t, t - least) >= margin:
            stuck = False
        elif stuck or t >= most or t <= least:
            t = most - margin if abs(t - most) < abs(t - least) else least + margin
            stuck = False
        else:
            stuck = True
        now = point(t)
        calls += 1
        left -= 1
        if too_high(now) or now.f >= ends[low].f:
            ends[high] = now
            low, high = (0, 1) if ends[0].f <= ends[1].f else (1, 0)
            continue
        done = flat(now)
        if not done and now.slope * (ends[high].t - ends[low].t) >= 0:
            ends[high] = ends[low]
        ends[low] = now
        if done:
            break
    return ends[low], calls
