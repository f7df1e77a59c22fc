"""The samples of the bins that a shard is asked about, with their keys.

As in `sums_source`, samples of a bin are read in the order of codes, or found among all codes.
They are kept for a while: of the samples that 100 rounds ask about, half to three quarters are in
bins that an earlier round has asked about. Kernels read them where they are kept.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from gpustump.engines.cpu.runtime.compiling import Integers, group, kernel
from gpustump.engines.cpu.table.codes import CodedTable
from gpustump.engines.cpu.table.keys import KEYS
from gpustump.engines.cpu.table.rows_by_code import SAMPLE
from gpustump.engines.cpu.table.source_table import Values, key_at  # noqa: F401  # a signature

_KEPT = 8
"""How many samples of bins are kept, as a multiple of the table's samples. On noise, 500 000 x 50,
they last for about 100 rounds of discrete votes."""


@group
class Members(NamedTuple):
    """The samples of some bins: those of bin t are `begin[t]` to before `begin[t] + size[t]`.

    Attributes
    ----------
    samples : ndarray (n,) of int32
    keys : ndarray (n,) of int32 or int64
        Of their values; see `arrays.order_keys`.
    begin, size : ndarray (n_bins,) of int64
    """

    samples: Annotated[np.ndarray, "int32[::1]"]
    keys: Annotated[np.ndarray, "KEY[::1]"]
    begin: Integers
    size: Integers


class KnownBins:
    """The samples of bins that were asked about. If there is no more room, all are forgotten.

    Parameters
    ----------
    table : CodedTable
    """

    def __init__(self, table: CodedTable) -> None:
        self._table = table
        # Memory is taken as it is filled.
        self._room = self._empty(table.n_samples * min(_KEPT, table.n_features))
        self._begin = np.full(len(table.layout.offset), -1)  # of each slot; -1 if it is not kept
        self._end = 0

    def of(self, feature: np.ndarray, bins: np.ndarray) -> Members:
        """The samples of some bins, given by features and numbers, (n_bins,)."""
        slots = self._table.layout.first[feature] + bins
        count = self._table.layout.n_inside(slots)
        new = np.flatnonzero(self._begin[slots] < 0)
        if self._end + count[new].sum() > len(self._room[0]):
            self._begin[:], self._end = -1, 0
            new = np.arange(len(slots))
            if count.sum() > len(self._room[0]):
                self._room = self._empty(int(count.sum()))
        if len(new):
            ends = self._end + np.cumsum(count[new])
            begin = self._begin[slots[new]] = ends - count[new]
            self._look_up(feature[new], bins[new], Members(*self._room, begin, count[new]))
            self._end = int(ends[-1])
        return Members(*self._room, self._begin[slots], count)

    def _empty(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Room for samples, and for their keys."""
        keys = np.empty(n, dtype=f"int{8 * self._table.X.itemsize}")
        return np.empty(n, dtype=np.int32), keys

    def _look_up(self, feature: np.ndarray, bins: np.ndarray, members: Members) -> None:
        """Write the samples of some bins, once each, and their keys, into `members`."""
        table, layout = self._table, self._table.layout
        found, begin = members.samples, members.begin
        slots = layout.first[feature] + bins
        is_ready = table.are_in_order(feature)
        own = np.flatnonzero(is_ready)
        if len(own):
            assert table.parted is not None
            start = table.bundles.column[feature[own]] * table.n_samples + layout.offset[slots[own]]
            _pick(table.parted.order, start, layout.n_inside(slots[own]), begin[own], found)

        def look_for(one: int) -> None:
            own = np.flatnonzero((feature == one) & ~is_ready)
            table.list_bins(one, bins[own], begin[own], found)

        table.team.each(look_for, np.unique(feature[~is_ready]).tolist())
        _look_up(table.source.in_memory, feature, members)


@kernel("void(int32[::1], int64[::1], int64[::1], int64[::1], int32[::1])")
def _pick(order, start, count, to, found):  # type: ignore[no-untyped-def]
    """Copy stretches of an order of samples, without their marks."""
    for t in range(len(start)):
        for k in range(count[t]):
            found[to[t] + k] = order[start[t] + k] & SAMPLE


@kernel("void(Values, int64[::1], Members)", KEY=KEYS)
def _look_up(values, features, members):  # type: ignore[no-untyped-def]
    """The keys of samples; see `arrays.order_keys`."""
    samples, keys = members.samples, members.keys
    for t in range(len(features)):
        for i in range(members.begin[t], members.begin[t] + members.size[t]):
            keys[i] = key_at(values, np.int64(samples[i]), features[t])
