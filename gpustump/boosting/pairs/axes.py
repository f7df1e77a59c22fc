"""The bins of the features of pairs: slices of about equal numbers of samples.

The bins follow from the values of evenly spaced rows, all of them in small tables. A feature with
few distinct values has a bin for each. A categorical feature has its categories in order of its
main effect, so that a cut parts those that rise from those that fall; rare neighbours share a bin.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.boosting.rounds.smoothing import keys_of, values_of
from gpustump.data.parameters import MOST_CATEGORIES
from gpustump.engines.category_columns import numbers_of
from gpustump.engines.threads import Team, threads_of
from gpustump.learners.pair_table import MOST_BINS, PairAxis
from gpustump.learners.step_table import StepTable
from gpustump.learners.thresholds import midpoint

_MOST_ROWS, _MOST_VALUES, _LEAST_ROWS = 2**14, 2**24, 2**10
"""The most rows from whose values bins follow, and the most values of all features; but at least
the third number of rows."""

_MOST_GROUPS = MOST_BINS - 1

_ELEMENTS_AT_ONCE = 2**24
"""The most values of rows that are sent to a device at a time."""

_MANY = 2**16
"""Of 18 000 values two threads were measured to take 1.4 of one's time, of 120 000 values 0.6."""


class Axes(NamedTuple):
    """The features that pairs may have.

    Attributes
    ----------
    axes : list of PairAxis
        Their bins, in order of the features.
    keys : ndarray (n_axes,) of uint64
        A number for each feature, which follows from its values.
    """

    axes: list[PairAxis]
    keys: np.ndarray


def axes_of(
    X: Array,
    rows: np.ndarray,
    features: Sequence[int],
    categorical: Sequence[int],
    effects: Mapping[int, StepTable],
) -> Axes:
    """The bins of some features, without those that have nothing to cut.

    Parameters
    ----------
    X : array (n_samples_given, n_features)
    rows : ndarray (n_samples,) of int
        The rows that take part, increasing.
    features : sequence of int
        The features in question.
    categorical : sequence of int
        Features whose values are numbers of categories.
    effects : mapping of int to StepTable
        The main effects, with values (k, n_outputs), for the order of the categories.
    """
    n_rows = min(len(rows), _MOST_ROWS, max(_LEAST_ROWS, _MOST_VALUES // max(1, len(features))))
    index = rows[np.arange(n_rows, dtype=np.int64) * len(rows) // n_rows]
    values = values_of(X, index, features)
    found, places = [], []
    for place, feature in enumerate(features):
        if feature in categorical:
            axis, has_missing = _of_categories(X, rows, feature, effects.get(feature))
        else:
            own = np.sort(values[:, place])  # missing values last
            n_present = len(own) - int(np.isnan(own).sum())
            axis = PairAxis(feature, _thresholds(own[:n_present]))
            has_missing = n_present < len(own)
        if axis.n_bins > (1 if has_missing else 2):
            found.append(axis)
            places.append(place)
    return Axes(found, keys_of(values[:, places]))


def _thresholds(ordered: np.ndarray) -> np.ndarray:
    """The thresholds of the slices of sorted values, the last one infinite."""
    if not len(ordered):
        return np.zeros(0)
    starts = np.flatnonzero(ordered[1:] > ordered[:-1]) + 1  # where a larger value begins
    if len(starts) >= _MOST_GROUPS:
        wanted = np.arange(1, _MOST_GROUPS) * len(ordered) // _MOST_GROUPS
        places = np.searchsorted(starts, wanted)
        starts = starts[np.unique(places[places < len(starts)])]
    cuts = [midpoint(ordered[at - 1], ordered[at]) for at in starts.tolist()]
    return np.asarray([*cuts, np.inf])


def _of_categories(
    X: Array, rows: np.ndarray, feature: int, effect: StepTable | None
) -> tuple[PairAxis, bool]:
    """The bins of a categorical feature, and whether values are missing."""
    index = arrays.namespace_of(X).asarray(rows, device=arrays.device_of(X))
    counts = np.bincount(numbers_of(X, index, feature), minlength=MOST_CATEGORIES + 1)
    present = np.flatnonzero(counts[:MOST_CATEGORIES])
    if effect is not None:
        heights = effect.look_up(present.astype(np.float64))
        widest = int(np.argmax(np.ptp(heights, axis=0))) if len(present) else 0
        present = present[np.argsort(heights[:, widest], kind="stable")]
    before = np.cumsum(counts[present]) - counts[present]
    bins = np.arange(len(present))
    if len(present) > _MOST_GROUPS:
        bins = before * _MOST_GROUPS // max(1, int(counts[present].sum()))
    groups = (present[bins == number].tolist() for number in np.unique(bins))
    axis = PairAxis(feature, groups=tuple(tuple(sorted(own)) for own in groups))
    return axis, counts[MOST_CATEGORIES:].sum() > 0


def bins_of(
    X: Array,
    axes: Sequence[PairAxis],
    moved: Callable[[Array], Array],
    n_jobs: int | None = None,
) -> Array:
    """The bins of all rows, (n_axes, n_samples_given) of uint8, where `moved` takes arrays.

    From the host to a device it takes some rows at a time, and their bins are computed there. In
    NumPy each thread takes an axis at a time.
    """
    n_rows, n_features = X.shape
    is_sent = moved is not arrays.to_host and arrays.on_host(X)
    if isinstance(X, np.ndarray) and not is_sent:
        of_axes = np.empty((len(axes), n_rows), dtype=np.uint8)

        def fill(number: int) -> None:
            of_axes[number] = axes[number].bins_of(X[:, axes[number].feature])

        n_threads = threads_of(n_jobs) if of_axes.size > _MANY else 1
        Team(n_threads).each(fill, range(len(axes)))
        return of_axes
    features = [axis.feature for axis in axes]
    size = max(1, _ELEMENTS_AT_ONCE // n_features) if is_sent else n_rows
    found = []
    for start in range(0, n_rows, size):
        block, places = X, features
        if is_sent:
            rows = arrays.to_host(X[start : min(start + size, n_rows), :])
            block, places = moved(np.ascontiguousarray(rows[:, features])), [*range(len(axes))]
        with arrays.computing_on(block):
            xp = arrays.namespace_of(block)
            bins = (axis.bins_of(block[:, at]) for axis, at in zip(axes, places, strict=True))
            found.append(moved(xp.stack([xp.astype(own, xp.uint8) for own in bins])))
    with arrays.computing_on(found[0]):
        return found[0] if len(found) == 1 else arrays.namespace_of(found[0]).concat(found, axis=1)
