"""Numerical functions that the standard library lacks."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import exp, lgamma, log, log1p

_HALVINGS = 60
_FRACTION_TERMS = 60


def boundary(holds: Callable[[float], bool], start: float, end: float) -> float:
    """Return by bisection the point between ``start`` and ``end`` from which a condition is false.

    Args:
        holds: The condition, which is true at ``start`` and changes at most once.
        start: A point at which the condition is true.
        end: The other end of the search, which may be smaller.
    """
    for _ in range(_HALVINGS):
        middle = (start + end) / 2
        if holds(middle):
            start = middle
        else:
            end = middle
    return start


@cache  # most cells of a session have the same number of cases
def student_t_quantile(probability: float, df: float) -> float:
    """Return the quantile of Student's t distribution.

    It inverts ``P(T > t) = I_x(df/2, 1/2) / 2`` with ``x = df / (df + t²)`` (DLMF 8.17, Abramowitz
    & Stegun 26.7.1).

    Args:
        probability: At least 0.5, below 1.
        df: Degrees of freedom, at least 1, not necessarily an integer.
    """

    def within(t: float) -> bool:
        return _regularized_beta(df / (df + t * t), df / 2, 0.5) / 2 >= 1 - probability

    end = 1.0
    while within(end):
        end *= 2
    return boundary(within, 0.0, end)


def _regularized_beta(x: float, a: float, b: float) -> float:
    """Return I_x(a, b) by its continued fraction (DLMF 8.17.22), from the innermost term out."""
    if x in {0.0, 1.0}:
        return x
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast only below this
        return 1 - _regularized_beta(1 - x, b, a)
    fraction = 1.0
    for m in range(_FRACTION_TERMS, 0, -1):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m - 1) * (a + b + m - 1) * x / ((a + 2 * m - 2) * (a + 2 * m - 1))
        fraction = 1 + odd / (1 + even / fraction)
    log_front = lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x)
    return exp(log_front) / (a * fraction)
