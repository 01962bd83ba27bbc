"""Statistics: quartiles, intervals of medians, ratios of pairs.  No distribution is assumed anywhere."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """A median with its quartiles and an interval that holds the true median with 95 % confidence."""

    median: float
    lower: float
    upper: float
    low: float
    high: float
    #: Confidence of low..high; below 0.95 with fewer than six values, where it is the whole range.
    confidence: float


def spread(values: Sequence[float]) -> Spread:
    ordered = sorted(values)
    low, high, confidence = _median_interval(len(ordered))
    if len(ordered) > 1:
        lower, median, upper = statistics.quantiles(ordered, n=4, method="inclusive")
    else:
        lower = median = upper = ordered[0]
    return Spread(median, lower, upper, ordered[low], ordered[high], confidence)


def _median_interval(count: int) -> tuple[int, int, float]:
    """The narrowest symmetric pair of order statistics with at least 95 % coverage (sign test)."""
    best = (0, count - 1, 1 - 2 * 0.5**count)
    # One term at a time: with thousands of values sums of their own would take minutes.
    below = term = 1
    for cut in range(1, count // 2):
        term = term * (count - cut + 1) // cut
        below += term
        outside = 2 * below / 2**count
        if 1 - outside < 0.95:
            break
        best = (cut, count - 1 - cut, 1 - outside)
    return best


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> Spread:
    """Ours divided by theirs, pair by pair: what changed between the rounds cancels out.

    Nothing can be said (every figure is NaN) when one of theirs is zero: it was measured for too short a time."""
    if not all(theirs):
        return Spread(*[math.nan] * 6)
    return spread([a / b for a, b in zip(ours, theirs, strict=True)])


def percentile(ordered: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of all sorted values do not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]
