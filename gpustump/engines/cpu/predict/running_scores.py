"""Scores after each of a model's terms: the votes of one partition are added for every sample.

Early stopping does so for the held-out samples after every round, staged predictions for all rows
of a table. For a tile of samples at a time, values are compared as keys (see `arrays.order_keys`)
with the partition's thresholds; then the votes of the slice that each value lies in are added.

In a table whose rows are contiguous, each value of a feature is in a cache line of its own, and
reading it takes longer than all the rest. So the values of the rows that are scored are kept, side
by side, for later terms of the feature.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from gpustump.engines.cpu.runtime.compiling import inner
from gpustump.engines.cpu.runtime.crew import parallel
from gpustump.engines.cpu.table.keys import KEYS, as_keys, count
from gpustump.engines.cpu.table.source_table import ALL_ROWS, codable
from gpustump.engines.threads import Team, threads_of
from gpustump.learners.hypothesis import MISSING, Partition

_TILE = 512
"""Samples whose keys stay in the nearest cache."""

_PIECE = 32 * _TILE
"""Fewer samples than this are not worth another thread."""

_BITS: dict[int, type[np.int32] | type[np.int64]] = {4: np.int32, 8: np.int64}
"""Integers as wide as floats, by their bytes."""

_CACHE_LINE = 64
_KEPT_BYTES = 2**26
"""The most bytes of values that are kept."""


class RunningScores:
    """The scores of a table's rows; see `engines.running_scores.RunningScores`."""

    def __init__(
        self,
        X: np.ndarray,
        rows: np.ndarray | None,
        start: Sequence[float] | np.ndarray,
        n_jobs: int | None = None,
        *,
        keeps_values: bool = True,
    ) -> None:
        self._X = X
        self._kept, self._bytes_left = dict[int, np.ndarray](), _KEPT_BYTES if keeps_values else 0
        self._rows = None if rows is None else np.ascontiguousarray(rows, dtype=np.int64)
        n_rows = len(X if rows is None else rows)
        own = np.asarray(start, dtype=np.float64)
        self._scores = np.empty((n_rows, own.shape[-1]))
        self._scores[:] = own
        self._team = Team(threads_of(n_jobs) if n_rows > _PIECE else 1)

    def add(self, partition: Partition, votes: np.ndarray, first_output: int = 0) -> None:
        """Add a term's votes."""
        column, rows = self._column(partition.feature)
        bits = column.view(_BITS[column.dtype.itemsize])
        thresholds = np.array(partition.thresholds, dtype=np.float64)
        by_slice = votes[_regions(tuple(partition.slices))]
        scores = self._scores[:, first_output : first_output + votes.shape[1]]
        n_pieces, size = self._team.pieces(len(scores), _PIECE)

        self._team.run(_add_votes, n_pieces, bits, rows, thresholds, by_slice, scores, size)

    def _column(self, feature: int) -> tuple[np.ndarray, np.ndarray]:
        """A feature's values as float32 or float64, and the rows to use (empty for all)."""
        known = self._kept.get(feature)
        if known is not None:
            return known, ALL_ROWS
        values, rows = self._X[:, feature], self._rows
        is_plain = values.dtype in (np.float32, np.float64) and values.flags.aligned
        is_room = len(self._scores) * values.itemsize <= self._bytes_left
        if is_plain and (abs(values.strides[0]) < _CACHE_LINE or not is_room):
            return values, ALL_ROWS if rows is None else rows
        values = codable(values if rows is None else values[rows])
        if values.nbytes <= self._bytes_left:
            values = self._kept[feature] = np.ascontiguousarray(values)
            self._bytes_left -= values.nbytes
        return values, ALL_ROWS

    def now(self) -> np.ndarray:
        """The scores so far; the next `add` changes this array."""
        return self._scores

    def on_host(self) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        """The table, the row numbers (None for all) and `now()`."""
        return self._X, self._rows, self._scores

    def copy(self) -> np.ndarray:
        """The scores so far, in an array of their own."""
        return self._scores.copy()


@functools.lru_cache(maxsize=64)
def _regions(slices: tuple[int, ...]) -> np.ndarray:
    """The region of each slice and, last, that of missing values."""
    return np.asarray([*slices, MISSING])


@inner("void(float64[::1], KEY[::1])", KEY=KEYS)
def set_ends(thresholds, ends):  # type: ignore[no-untyped-def]
    """Write the key of the largest value that is not above each threshold; last, that of infinity.

    Only NaN is above infinity. Neighbouring values have neighbouring keys: if the float nearest to
    a threshold is above it, the next smaller float has the key minus 1. See
    `learners.thresholds.rounded_down`.
    """
    single, double = np.empty(1, dtype=np.float32), np.empty(1, dtype=np.float64)
    for j in range(len(thresholds)):
        single[0] = double[0] = thresholds[j]
        if ends.itemsize == 4:
            bit, nearest, lowest = (
                np.int64(single.view(np.int32)[0]),
                np.float64(single[0]),
                -(2**31),
            )
        else:
            bit, nearest, lowest = double.view(np.int64)[0], double[0], -(2**63)
        key = bit if bit >= 0 else lowest - bit
        ends[j] = key - np.int64(nearest > thresholds[j])
    ends[-1] = 0x7F800000 if ends.itemsize == 4 else 0x7FF0000000000000


@parallel(
    "void(int64, Array(KEY, 1, 'A', readonly=True), int64[::1], float64[::1], float64[:, ::1], "
    "float64[:, :], int64)",
    KEY=KEYS,
)
def _add_votes(piece, bits, rows, thresholds, votes, scores, size):  # type: ignore[no-untyped-def]
    """Add votes (n_slices + 1, n_outputs), the last for NaN, to the scores of a piece."""
    low, high = piece * size, min((piece + 1) * size, len(scores))
    ends = np.empty(len(thresholds) + 1, dtype=bits.dtype)
    set_ends(thresholds, ends)
    all_keys = np.empty(_TILE, dtype=bits.dtype)
    all_places = np.empty(_TILE, dtype=np.uint32)
    for start in range(low, high, _TILE):
        end = min(start + _TILE, high)
        keys, places = all_keys[: end - start], all_places[: end - start]
        if len(rows):
            for i in range(len(keys)):
                keys[i] = bits[rows[start + i]]
            as_keys(keys, keys)
        else:
            as_keys(bits[start:end], keys)
        places[:] = 0
        count(keys, ends, 1, places)
        if scores.shape[1] == 1:
            for i in range(len(keys)):
                scores[start + i, 0] += votes[places[i], 0]
        else:
            for i in range(len(keys)):
                for output in range(scores.shape[1]):
                    scores[start + i, output] += votes[places[i], output]
