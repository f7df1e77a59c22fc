"""Sums over cells: equally wide parts of ranges of keys, or single values in them.

With these a shard of a larger table answers questions: cells follow from keys, not from the samples
of this shard (see `cluster.questions`). So the cells of several shards can be merged.

The samples of a bin are read once: each is put into its cell, and its integers are added there. So
nothing is kept for each sample. The tables of cells are small enough for the nearest caches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from gpustump.engines.cluster.known_bins import Members
from gpustump.engines.cluster.questions import NO_KEYS, Cells, Ranges
from gpustump.engines.cpu.loss.terms import Terms
from gpustump.engines.cpu.runtime.compiling import Integers, group, inner, kernel
from gpustump.engines.cpu.table.keys import KEYS

_AT_ONCE = 1024
"""How many samples are put into cells before their integers are added up."""


@group
class KeyRanges(NamedTuple):
    """Ranges of keys inside bins, bin by bin and in order of keys.

    Attributes
    ----------
    first : ndarray (n_bins + 1,) of int64
        Where the ranges of each bin begin.
    low, high : ndarray (n_ranges,) of int64
        The smallest and the largest key.
    shift : ndarray (n_ranges,) of int64
        Keys with the same `(key - low) >> shift` form a cell; if it is negative, each key does.
    """

    first: Integers
    low: Integers
    high: Integers
    shift: Integers


@group
class Places(NamedTuple):
    """Places for all cells that ranges may have; arrays of int64.

    Attributes
    ----------
    next : ndarray (n_ranges,)
        Each range's first place; where each sample is a cell, the next one that is free.
    size, low, high : ndarray (n_places,)
        How many samples a cell holds; their smallest and their largest key.
    """

    next: Integers
    size: Integers
    low: Integers
    high: Integers


class Asked(NamedTuple):
    """The bins that ranges lie in, and the ranges of each.

    Attributes
    ----------
    feature, bin : ndarray (n_bins,) of int64
    ranges : KeyRanges
    """

    feature: np.ndarray
    bin: np.ndarray
    ranges: KeyRanges

    @classmethod
    def of(cls, ranges: Ranges) -> Asked:
        """From a question's ranges."""
        is_new = (np.diff(ranges.feature, prepend=-1) != 0) | (np.diff(ranges.bin, prepend=-1) != 0)
        first = np.flatnonzero(is_new)
        about = KeyRanges(np.append(first, len(ranges.bin)), *ranges[2:5])
        return cls(ranges.feature[first], ranges.bin[first], about)


def cells_of(
    about: KeyRanges,
    most: np.ndarray,
    n_planes: int,
    add: Callable[[Places, np.ndarray], None],
) -> Cells:
    """The cells of ranges, with the sums of integers.

    Parameters
    ----------
    about : KeyRanges
    most : ndarray (n_ranges,) of int64
        How many samples each range may hold.
    n_planes : int
    add : callable
        Puts samples into places, and adds their integers to sums, (n_planes, n_places) of int64.
    """
    width = (about.high - about.low).view(np.uint64)  # perhaps beyond 2**63
    n_cells = (width >> np.maximum(about.shift, 0).view(np.uint64)).view(np.int64) + 1
    is_listed = about.shift < 0
    room = np.where(is_listed, most, n_cells)
    ends = np.cumsum(room)
    n_places, base = int(ends[-1]) if len(ends) else 0, ends - room
    size, (low, high) = np.zeros(n_places, dtype=np.int64), (np.full(n_places, k) for k in NO_KEYS)
    sums = np.zeros((n_planes, n_places), dtype=np.int64)
    add(Places(base.copy(), size, low, high), sums)
    kept = np.flatnonzero(size)
    owner, low = np.searchsorted(ends, kept, side="right"), low[kept]
    number = np.where(is_listed[owner], low - about.low[owner], kept - base[owner])
    found = Cells(owner, number, size[kept], low, high[kept], np.take(sums, kept, axis=1))
    return _by_number(found) if is_listed.any() else found


def cells_of_terms(ranges: Ranges, asked: Asked, members: Members, terms: Terms) -> Cells:
    """The cells of ranges, from the samples of the bins that they lie in."""
    n_planes = len(terms.gradient) * (3 if len(terms.hessian) > 0 else 2)

    def add(places: Places, sums: np.ndarray) -> None:
        _add_terms(terms, members, asked.ranges, places, sums)

    return cells_of(asked.ranges, ranges.size, n_planes, add)


def _by_number(cells: Cells) -> Cells:
    """Cells in order, given those of single samples; the ones of the same number are added up."""
    order = np.lexsort((cells.number.view(np.uint64), cells.range))
    of, number = cells.range[order], cells.number[order]
    first = np.flatnonzero((np.diff(of, prepend=-1) != 0) | (np.diff(number, prepend=0) != 0))
    if not len(first):
        return cells
    return Cells(
        of[first],
        number[first],
        np.add.reduceat(cells.size[order], first),
        np.minimum.reduceat(cells.low[order], first),
        np.maximum.reduceat(cells.high[order], first),
        np.add.reduceat(cells.sums[:, order], first, axis=1),
    )


def merged(lists: Sequence[np.ndarray]) -> np.ndarray:
    """The cells of several shards, in order; those of the same range and number are added up.

    Parameters
    ----------
    lists : sequence of ndarray (5 + n_planes, n_cells) of int64
        The fields of `Cells`, one below the other.
    """
    while len(lists) > 1:
        pairs = zip(lists[::2], lists[1::2], strict=False)
        lists = [_merged(*pair) for pair in pairs] + list(lists[len(lists) // 2 * 2 :])
    return lists[0]


def _merged(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    found = np.empty((len(one), one.shape[1] + other.shape[1]), dtype=np.int64)
    n_cells = _merge(one, other, found)
    return np.ascontiguousarray(found[:, :n_cells])


@kernel("int64(int64[:, ::1], int64[:, ::1], int64[:, ::1])")
def _merge(one, other, found):  # type: ignore[no-untyped-def]
    """Write the merged cells; returns how many there are. Rows are those of `merged`."""
    i, j, n = 0, 0, 0
    while i < one.shape[1] or j < other.shape[1]:
        if j == other.shape[1] or i == one.shape[1]:
            is_one, is_other = i < one.shape[1], j < other.shape[1]
        else:
            a, b = np.uint64(one[1, i]), np.uint64(other[1, j])
            is_one = one[0, i] < other[0, j] or (one[0, i] == other[0, j] and a <= b)
            is_other = not is_one or (one[0, i] == other[0, j] and a == b)
        for row in range(len(found)):
            if not (is_one and is_other):
                found[row, n] = one[row, i] if is_one else other[row, j]
            elif row < 2:
                found[row, n] = one[row, i]
            elif row == 3:
                found[row, n] = min(one[row, i], other[row, j])
            elif row == 4:
                found[row, n] = max(one[row, i], other[row, j])
            else:
                found[row, n] = one[row, i] + other[row, j]
        i += np.int64(is_one)
        j += np.int64(is_other)
        n += 1
    return n


@inner("void(Array(KEY, 1, 'C'), KeyRanges, int64, Places, int64[::1])", KEY=KEYS)
def _place(keys, about, bin_, places, found):  # type: ignore[no-untyped-def]
    """Put samples of a bin into cells, and note each sample's place; -1 if it is in no range."""
    lows, highs, shifts, nexts = about.low, about.high, about.shift, places.next
    sizes, lowest, highest = places.size, places.low, places.high
    begin, stop = about.first[bin_], about.first[bin_ + 1]
    for i in range(len(keys)):
        key, first, end = np.int64(keys[i]), begin, stop
        while end - first > 1:
            middle = (first + end) >> 1
            if lows[middle] <= key:
                first = middle
            else:
                end = middle
        if first == end or key < lows[first] or key > highs[first]:
            found[i] = -1
            continue
        place = nexts[first]
        if shifts[first] < 0:
            nexts[first] += 1
        else:
            offset = np.uint64(key) - np.uint64(lows[first])  # perhaps beyond 2**63
            place += np.int64(offset >> np.uint64(shifts[first]))
        found[i] = place
        sizes[place] += 1
        lowest[place] = min(lowest[place], key)
        highest[place] = max(highest[place], key)


@inner("void(int64[:, ::1], int64[:, ::1], int32[::1], int64[::1], int64[:, ::1])")
def _add_here(gradient, hessian, samples, place, sums):  # type: ignore[no-untyped-def]
    """Add the sizes of positive integers to one plane, those of negative ones to the next.

    Signs are not asked for: a processor cannot guess them.
    """
    has_hessians = len(hessian) > 0
    width = 3 if has_hessians else 2
    for output in range(len(gradient)):
        own, plane = gradient[output], width * output
        for i in range(len(samples)):
            if place[i] >= 0:
                amount = own[samples[i]]
                sums[plane + np.int64(amount < 0), place[i]] += abs(amount)
        if has_hessians:
            own, into = hessian[output], sums[plane + 2]
            for i in range(len(samples)):
                if place[i] >= 0:
                    into[place[i]] += own[samples[i]]


@kernel("void(Terms, Members, KeyRanges, Places, int64[:, ::1])", KEY=KEYS)
def _add_terms(terms, members, about, places, sums):  # type: ignore[no-untyped-def]
    """Put samples into cells, and add up their integers."""
    found = np.empty(_AT_ONCE, dtype=np.int64)
    for t in range(len(members.begin)):
        stop = members.begin[t] + members.size[t]
        for low in range(members.begin[t], stop, _AT_ONCE):
            high = min(low + _AT_ONCE, stop)
            place = found[: high - low]
            _place(members.keys[low:high], about, t, places, place)
            _add_here(terms.gradient, terms.hessian, members.samples[low:high], place, sums)
