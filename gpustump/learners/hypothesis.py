"""What all weak hypotheses have in common: a partition of one feature's values into regions.

The thresholds of a hypothesis cut its feature's values into slices. Each slice belongs to one of
three regions: the first (left of a stump, inside an interval), the second (right, outside) or that
of missing values. The regions' votes are kept beside the hypothesis, one row of numbers for each
region. In discrete boosting of one output the votes of the regions differ in sign only, and the
hypothesis, a stump or an interval, knows the signs.

Models, pictures and files use this interface and work for every kind of hypothesis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, Protocol

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.data.tables import check_table
from gpustump.learners.thresholds import rounded_down

N_REGIONS = 3
FIRST, SECOND, MISSING = range(N_REGIONS)
"""Regions: the first and the second part of a feature's values, and that of missing values."""

_FEW_ENDS = 4
"""Up to this many thresholds are compared one by one; for more, a binary search finds the slice."""


class Partition(Protocol):
    """What every hypothesis is: a `Split`, a `Stump`, an `Interval`, or a split of categories."""

    @property
    def feature(self) -> int:
        """The feature's column of X, from 0."""

    @property
    def thresholds(self) -> tuple[float, ...]:
        """Increasing thresholds: slice i ends with thresholds[i]."""

    @property
    def slices(self) -> tuple[int, ...]:
        """The region of each slice; there is one slice more than there are thresholds."""


class Hypothesis(Partition, Protocol):
    """A partition whose regions say -1 or +1: a `Stump`, an `Interval` or a `CategoryStump`."""

    @property
    def polarity(self) -> int:
        """+1 or -1: the sign of the first region; the second has the opposite one."""

    @property
    def missing(self) -> int:
        """+1 or -1: the sign of the region of missing values."""

    @property
    def error(self) -> float:
        """The weighted error on the training samples."""

    @property
    def is_constant(self) -> bool:
        """Whether it predicts the same for every sample."""


def signs(hypothesis: Hypothesis) -> tuple[int, int, int]:
    """The sign of each region: the first, the second, and that of missing values."""
    return hypothesis.polarity, -hypothesis.polarity, hypothesis.missing


def regions(hypothesis: Partition, values: Array) -> Array:
    """The region of each value.

    Parameters
    ----------
    hypothesis : Partition
    values : array (n_samples,)
        The feature's values, floats.

    Returns
    -------
    array (n_samples,) of int64
        In the library and on the device of the values.
    """
    xp = arrays.namespace_of(values)
    numbers = xp.arange(N_REGIONS, dtype=xp.int64, device=arrays.device_of(values))
    return _chosen(hypothesis, values, numbers)


def by_region(hypothesis: Partition, values: Array, numbers: Sequence[float]) -> Array:
    """For each value the number that belongs to its region.

    Parameters
    ----------
    hypothesis : Partition
    values : array (n_samples,)
        The feature's values, floats.
    numbers : sequence of float
        One number for each region.

    Returns
    -------
    array (n_samples,) of float64
        In the library and on the device of the values.
    """
    xp = arrays.namespace_of(values)
    given = xp.asarray(list(numbers), dtype=xp.float64, device=arrays.device_of(values))
    return _chosen(hypothesis, values, given)


def _chosen(hypothesis: Partition, values: Array, given: Array) -> Array:
    """For each value the entry of `given`, (n_regions,), that belongs to its region."""
    xp, dtype = arrays.namespace_of(values), arrays.dtype_name(values)
    ends = arrays.order_keys(rounded_down(np.asarray(hypothesis.thresholds), dtype))
    keys = arrays.order_keys(values)
    if len(ends) > _FEW_ENDS:
        device = arrays.device_of(values)
        slices = xp.asarray(hypothesis.slices, dtype=xp.int64, device=device)
        places = xp.searchsorted(xp.asarray(ends, device=device), keys)
        found = xp.take(given, xp.take(slices, places, axis=0), axis=0)
    else:
        found = given[hypothesis.slices[-1]]
        for region, end in reversed(list(zip(hypothesis.slices[:-1], ends.tolist(), strict=True))):
            found = xp.where(keys <= end, given[region], found)
    return xp.where(keys == arrays.missing_key(dtype), given[MISSING], found)


def predict(hypothesis: Hypothesis, X: Array) -> Array:
    """-1 or +1, int64, for each row of X; see `Stump.predict`."""
    X = check_table(X, min_features=hypothesis.feature + 1)
    xp = arrays.namespace_of(X)
    with arrays.computing_on(X):
        values = arrays.as_working(X[:, hypothesis.feature])
        return xp.astype(by_region(hypothesis, values, signs(hypothesis)), xp.int64)


def check_signs_of(hypothesis: Hypothesis) -> None:
    """Refuse signs other than -1 and +1.

    Raises
    ------
    ValueError
    """
    for name in ("polarity", "missing"):
        if getattr(hypothesis, name) not in (-1, 1):
            raise ValueError(f"{name} must be +1 or -1; got {getattr(hypothesis, name)!r}.")


def set_plain_numbers(hypothesis: Any) -> None:
    """Convert fields to Python's own numbers: files would hold NumPy's in another notation."""
    for own in fields(hypothesis):
        if own.type in ("int", "float"):
            kind = int if own.type == "int" else float
            object.__setattr__(hypothesis, own.name, kind(getattr(hypothesis, own.name)))
