"""What a round may add to a model: a weak hypothesis on one feature, whatever its kind.

Stumps and intervals are both step functions of a feature's value with the two values -1 and +1, and
a third side for missing values. What only that matters to (weights, tables, scores, files) takes
either, as a `Hypothesis`; what the kinds have in common is here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array


class Hypothesis(Protocol):
    """A `Stump` or an `Interval`."""

    @property
    def feature(self) -> int: ...

    @property
    def polarity(self) -> int:
        """+1 or -1; its negative holds above the last step."""

    @property
    def missing(self) -> int:
        """What it predicts for NaN, +1 or -1."""

    @property
    def error(self) -> float: ...

    @property
    def is_constant(self) -> bool:
        """Whether it predicts the same for every sample."""

    @property
    def falls(self) -> tuple[tuple[float, int], ...]:
        """Its steps: at which value it falls, and by how much; less than 0 where it rises."""

    def on_values(self, values: Array) -> Array:
        """Predict -1.0 or 1.0, float64 (n_samples,), from the feature's values, a float array."""


def predicted(hypothesis: Hypothesis, X: Array) -> Array:
    """-1 or +1, int64, for each row of X; see `Stump.predict`."""
    from gpustump.validation import check_table

    X = check_table(X, min_features=hypothesis.feature + 1)
    xp = arrays.namespace_of(X)
    with arrays.computing_on(X):
        return xp.astype(
            hypothesis.on_values(arrays.as_working(X[:, hypothesis.feature])), xp.int64
        )


def check_signs_of(hypothesis: Hypothesis) -> None:
    """Refuse votes other than -1 and +1."""
    for name in ("polarity", "missing"):
        if getattr(hypothesis, name) not in (-1, 1):
            raise ValueError(f"{name} must be +1 or -1; got {getattr(hypothesis, name)!r}.")


def set_plain_numbers(hypothesis: Hypothesis, fields: Mapping[str, Callable[[Any], Any]]) -> None:
    """Make its fields Python's own numbers: others would be written to a file in another way."""
    for name, kind in fields.items():
        object.__setattr__(hypothesis, name, kind(getattr(hypothesis, name)))


def rounded_down(thresholds: np.ndarray, dtype: str) -> np.ndarray:
    """Float64 thresholds as the largest values of a dtype that are not above them.

    A value of that dtype is at most the rounded threshold exactly if it is at most the original,
    so data need not be widened to be compared.
    """
    with np.errstate(all="ignore"):
        nearest = thresholds.astype(dtype)
        below = np.nextafter(nearest, np.asarray(-np.inf, dtype=dtype))
    return np.where(nearest.astype(np.float64) > thresholds, below, nearest)
