"""The stump or interval of least error by brute force: every candidate, in rational arithmetic.

O(n_features * n_samples**2), for intervals one power more, in plain Python, with no code and no
array library in common with the package. Weights are taken as the exact fractions that floats are,
so nothing here is rounded but the thresholds, and those by the rule of the exactness contract: the
midpoint in the data's own dtype, or the lower value where the midpoint is not between the two.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

_SMALLEST_NORMAL = Fraction(2) ** -1022
_FORMATS = {"float16": "<e", "float32": "<f", "float64": "<d"}


@dataclass(frozen=True)
class Best:
    """What was found, with its error as an exact fraction; `low` is None for a stump."""

    feature: int
    low: float | None
    threshold: float
    polarity: int
    missing: int
    error: Fraction

    def predict(self, row: Sequence[float]) -> int:
        value = row[self.feature]
        if math.isnan(value):
            return self.missing
        is_above = self.low is None or value > self.low
        return self.polarity if is_above and value <= self.threshold else -self.polarity


def best_stump(
    rows: Sequence[Sequence[float]],
    y: Sequence[int],
    weights: Sequence[float | int | Fraction] | None = None,
    *,
    dtype: str = "float64",
    intervals: bool = False,
) -> Best:
    """The first candidate, in the order of `candidates`, that no later one beats strictly.

    `rows` hold Python floats that are exact in `dtype`, the float dtype of the thresholds.
    """
    exact = [Fraction(w) for w in ([1] * len(rows) if weights is None else weights)]
    kept = [i for i, w in enumerate(exact) if w >= _SMALLEST_NORMAL]
    rows, y, exact = [rows[i] for i in kept], [y[i] for i in kept], [exact[i] for i in kept]
    total = sum(exact)
    best = None
    for candidate in candidates(rows, y, exact, dtype, intervals=intervals):
        predict = Best(*candidate, Fraction(0)).predict
        samples = zip(rows, y, exact, strict=True)
        error = sum(w for row, label, w in samples if predict(row) != label) / total
        if best is None or error < best.error:
            best = Best(*candidate, error)
    assert best is not None
    return best


def candidates(
    rows: Sequence[Sequence[float]],
    y: Sequence[int],
    weights: Sequence[Fraction],
    dtype: str,
    *,
    intervals: bool,
) -> Iterator[tuple[int, float | None, float, int, int]]:
    """Every (feature, low, threshold, polarity, missing), in the order in which ties are broken.

    Lower features come first, then stumps (without `low`) before intervals, then lower thresholds;
    constant stumps come last. Where two votes for missing values are equally good, that of the
    label heavier overall comes first.
    """
    heavier = 1 if _sum(y, weights) >= 0 else -1
    for feature in range(len(rows[0])):
        column = [row[feature] for row in rows]
        values = sorted({value for value in column if not math.isnan(value)})
        thresholds = [threshold_between(*two, dtype) for two in itertools.pairwise(values)]
        for threshold in thresholds:
            for polarity, missing in itertools.product((1, -1), (heavier, -heavier)):
                yield feature, None, threshold, polarity, missing
        # Present against missing: a split only where the two pull in opposite directions.
        lacking = [math.isnan(value) for value in column]
        absent = _sum(y, [w if lacks else 0 for w, lacks in zip(weights, lacking, strict=True)])
        present = _sum(y, weights) - absent
        if present * absent < 0:
            for polarity in (1, -1):
                yield feature, None, math.inf, polarity, -polarity
        for low, high in itertools.combinations(thresholds, 2) if intervals else ():
            for polarity, missing in itertools.product((1, -1), (heavier, -heavier)):
                yield feature, low, high, polarity, missing
    for constant in (1, -1):
        yield 0, None, math.inf, constant, constant


def threshold_between(low: float, high: float, dtype: str) -> float:
    """The midpoint, each step rounded to the dtype, or `low` if that is not in [low, high)."""
    middle = _rounded(_rounded(low + high, dtype) / 2, dtype)
    return (middle if low <= middle < high else low) + 0.0


def _sum(y: Sequence[int], weights: Sequence[Fraction | int]) -> Fraction:
    return sum((label * w for label, w in zip(y, weights, strict=True)), Fraction(0))


def _rounded(value: float, dtype: str) -> float:
    """A float64 rounded to a dtype; for sums of two of its values that is one rounding in all."""
    try:
        return struct.unpack(_FORMATS[dtype], struct.pack(_FORMATS[dtype], value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
