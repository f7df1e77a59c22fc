"""Adding integers to histograms: for every column, the sums over the samples of each bin.

Samples are processed in chunks, so small that what one step writes is still in the cache when the
next one reads it. Within a chunk the samples to be added are listed first, positive ones from the
front and negative ones from the back, and each kind is added to histograms of its own. So adding
need not read the label, and the histograms of four columns stay in the nearest cache. Four columns
are added up at a time, so that four additions overlap; two if each sample adds two integers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, NamedTuple

import numpy as np

from gpustump.engines.cpu.loss.terms import Terms  # noqa: F401  # signatures name it
from gpustump.engines.cpu.runtime.compiling import Bytes, Integers, group, inner
from gpustump.engines.cpu.runtime.crew import claim, parallel
from gpustump.engines.cpu.runtime.intrinsics import prefetch
from gpustump.engines.cpu.table.bin_layout import BinLayout
from gpustump.engines.cpu.table.bundles import Bundles
from gpustump.engines.cpu.table.columns import (
    NARROW_BINS,
    PART_BITS,
    WIDE_BINS,
    Columns,
    Histograms,
    aligned,
)
from gpustump.engines.threads import Team

CHUNK = 8192
"""How many samples go through all steps at once."""

COLUMNS_AT_ONCE = 4

LISTS = {
    "CODE": ("uint8", "uint16", "uint8", "uint16"),
    "INDEX": ("uint16", "uint16", "uint32", "uint32"),
}
"""Codes of both widths, and samples counted from the start of a chunk, or of something longer."""

_LANE_SAMPLES = 64 * NARROW_BINS
"""With fewer samples for each thread, threads take columns and not samples."""

_SLOTS_AT_ONCE = 2**12
"""Computing fewer slots is not worth another thread."""


@group
class Lanes(NamedTuple):
    """The histograms of each thread, as kernels take them; those of the first are the total.

    Attributes
    ----------
    wide, narrow : ndarray (n_lanes, ...) of int64
        See `Histograms`.
    is_used : ndarray (n_lanes,) of uint8
        Set for those to which something was added.
    turn : ndarray (1,) of int64
        The next piece of the samples; see `crew.claim`.
    size : int
        How many samples a piece has, whole chunks.
    """

    wide: Annotated[np.ndarray, "int64[:, :, :, ::1]"]
    narrow: Annotated[np.ndarray, "int64[:, :, :, ::1]"]
    is_used: Bytes
    turn: Integers
    size: int


class TeamHistograms:
    """Histograms to which several threads add, each to a lane of its own.

    Lanes must be cleared and added up, so they save time if columns are long. Otherwise there is
    only the total, and each thread adds up all samples for some of the columns.

    Parameters
    ----------
    n_planes : int
    width : int
        How many integers are added up for each sample.
    columns : Columns
    team : Team

    Attributes
    ----------
    total : Histograms
        The first lane, to which the others are added in the end.
    n_pieces : int
        In how many pieces samples are taken.
    """

    def __init__(self, n_planes: int, width: int, columns: Columns, team: Team) -> None:
        self._columns, self._team = columns, team
        by_samples = columns.n_samples >= _LANE_SAMPLES * team.size
        n_lanes = team.size if by_samples else 1
        self.n_pieces, size = team.pieces(columns.n_samples, CHUNK)
        parts = (len(columns.wide), WIDE_BINS * width), (len(columns.narrow), NARROW_BINS * width)
        wide, narrow = (
            aligned(n_lanes * n_planes * n * m).reshape(n_lanes, n_planes, n, m) for n, m in parts
        )
        is_used, turn = np.zeros(n_lanes, dtype=np.uint8), np.zeros(1, dtype=np.int64)
        self._lanes = Lanes(wide, narrow, is_used, turn, size)
        self.total = Histograms(wide[0], narrow[0])

    def add(self, chosen: np.ndarray, kernel: Callable[..., None], *arguments: object) -> None:
        """Replace the sums of some columns by a kernel, which clears them first.

        Its last arguments are these columns, in order, how many of them a piece takes, and the
        lanes; see `share_of` and `next_piece`.
        """
        if len(self._lanes.is_used) > 1:
            self._change(chosen, kernel, *arguments, chosen, len(chosen))
        else:
            n_parts, size = self._team.pieces(len(chosen), COLUMNS_AT_ONCE)
            self._team.run(kernel, n_parts, *arguments, chosen, size, self._lanes)

    def change(self, kernel: Callable[..., None], *arguments: object) -> None:
        """Add to all sums by a kernel; its last argument is the lanes."""
        self._change(np.arange(self._columns.n_columns), kernel, *arguments)

    def _change(self, chosen: np.ndarray, kernel: Callable[..., None], *arguments: object) -> None:
        """Let threads share the samples, and add up what they have found for some columns."""
        n_lanes = len(self._lanes.is_used)
        self._lanes.turn[0] = 0
        self._lanes.is_used[:] = 0
        self._team.run(kernel, n_lanes, *arguments, self._lanes)
        if n_lanes > 1:
            n_parts, size = self._team.pieces(len(chosen), COLUMNS_AT_ONCE)
            self._team.run(_merge, n_parts, self._lanes, chosen, size)


def slot_sums(
    histograms: Histograms, planes: np.ndarray, bundles: Bundles, layout: BinLayout, team: Team
) -> np.ndarray:
    """Sums over the slots of all features, (n_planes, n_slots); see `fill_slots`."""
    sums = np.empty((len(planes), len(layout.offset)), dtype=np.int64)
    fill_slots(histograms, planes, bundles, layout, np.arange(len(layout.first)), sums, team)
    return sums


def fill_slots(
    histograms: Histograms,
    planes: np.ndarray,
    bundles: Bundles,
    layout: BinLayout,
    features: np.ndarray,
    sums: np.ndarray,
    team: Team,
) -> None:
    """Replace the sums over the slots of some features.

    Parameters
    ----------
    histograms : Histograms
    planes : ndarray (n_planes, 2) of int64
        For each plane of the result, a plane of the histograms, and which of the integers that are
        added up there.
    bundles : Bundles
    layout : BinLayout
    features : ndarray of int64
        In order.
    sums : ndarray (n_planes, n_slots) of int64
    team : Team
    """
    of_feature = sums.size // max(1, len(layout.first))
    n_parts, size = team.pieces(len(features), _SLOTS_AT_ONCE // max(1, of_feature) + 1)
    team.run(_fill_slots, n_parts, histograms, planes, bundles, layout, features, size, sums)


@group
class Listed(NamedTuple):
    """The samples of a chunk that are to be added.

    Attributes
    ----------
    sample : ndarray (CHUNK,) of uint16
        The sample's index, counted from the chunk's start.
    amount, second : ndarray (CHUNK,) of int64
        What is added; `second` is empty if that is one integer.
    n_front, n_back : ndarray (1,) of int64
        How many samples are listed at the front and at the back.
    """

    sample: Annotated[np.ndarray, "uint16[::1]"]
    amount: Integers
    second: Integers
    n_front: Integers
    n_back: Integers


@inner("Listed(boolean)")
def nothing_listed(has_second):  # type: ignore[no-untyped-def]
    """Room for a chunk, of one integer a sample or two."""
    amount, second = np.empty(CHUNK, np.int64), np.empty(CHUNK if has_second else 0, np.int64)
    return Listed(
        np.empty(CHUNK, np.uint16), amount, second, np.zeros(1, np.int64), np.zeros(1, np.int64)
    )


@inner("int64(Lanes, int64)")
def next_piece(lanes, before):  # type: ignore[no-untyped-def]
    """The next piece of the samples that a thread is to take, after another one; -1 before all."""
    return before + 1 if len(lanes.is_used) == 1 else claim(lanes.turn)


@inner("Tuple((int64, int64[::1]))(int64, int64[::1], int64, Lanes)")
def share_of(piece, chosen, size, lanes):  # type: ignore[no-untyped-def]
    """The lane to which a thread adds, and the columns that it takes."""
    if len(lanes.is_used) > 1:
        return piece, chosen
    return 0, chosen[piece * size : (piece + 1) * size]


@inner("void(Histograms, int64)")
def clear_column(histograms, column):  # type: ignore[no-untyped-def]
    """Set the sums of a column to 0."""
    n_wide = histograms.wide.shape[1]
    for plane in range(len(histograms.wide)):
        if column < n_wide:
            histograms.wide[plane, column, :] = 0
        else:
            histograms.narrow[plane, column - n_wide, :] = 0


# Loops run over whole slices, of arrays of one dimension: then LLVM knows that no index is below 0,
# and has a register for all that it needs.


@inner(
    "void(CODE[:, ::1], int64, int64[:, ::1], int64, int64, INDEX[::1], int64[::1], int64)",
    **LISTS,
)
def _add_four(codes, shift, histograms, column, start, index, amount, ahead):  # type: ignore[no-untyped-def]
    """Add one integer of each sample to the histograms of four columns.

    Bins are codes without their `shift` lowest bits. Codes are prefetched so many samples ahead,
    unless that is 0.
    """
    shift = np.uint64(shift)
    c0, c1 = codes[column, start:], codes[column + 1, start:]
    c2, c3 = codes[column + 2, start:], codes[column + 3, start:]
    h0, h1 = histograms[column], histograms[column + 1]
    h2, h3 = histograms[column + 2], histograms[column + 3]
    later = index[ahead if ahead > 0 else len(index) :]
    for t in range(len(later)):
        soon = np.uint64(later[t])
        prefetch(c0, soon)
        prefetch(c1, soon)
        prefetch(c2, soon)
        prefetch(c3, soon)
        i, by = np.uint64(index[t]), amount[t]
        h0[np.uint64(c0[i]) >> shift] += by
        h1[np.uint64(c1[i]) >> shift] += by
        h2[np.uint64(c2[i]) >> shift] += by
        h3[np.uint64(c3[i]) >> shift] += by
    last, by_last = index[len(later) :], amount[len(later) :]
    for t in range(len(last)):
        i, by = np.uint64(last[t]), by_last[t]
        h0[np.uint64(c0[i]) >> shift] += by
        h1[np.uint64(c1[i]) >> shift] += by
        h2[np.uint64(c2[i]) >> shift] += by
        h3[np.uint64(c3[i]) >> shift] += by


@inner("void(CODE[::1], int64, int64[::1], INDEX[::1], int64[::1])", **LISTS)
def _add_one(codes, shift, histogram, index, amount):  # type: ignore[no-untyped-def]
    shift = np.uint64(shift)
    for t in range(len(index)):
        histogram[np.uint64(codes[np.uint64(index[t])]) >> shift] += amount[t]


@inner(
    "void(CODE[:, ::1], int64, int64[:, ::1], int64, int64, int64, INDEX[::1], int64[::1], int64)",
    **LISTS,
)
def add_single(codes, shift, histograms, low, high, start, index, amount, ahead):  # type: ignore[no-untyped-def]
    """Add one integer of each sample to the columns from `low` to `high` of an array of codes."""
    column = low
    while column + COLUMNS_AT_ONCE <= high:
        _add_four(codes, shift, histograms, column, start, index, amount, ahead)
        column += COLUMNS_AT_ONCE
    while column < high:
        _add_one(codes[column, start:], shift, histograms[column], index, amount)
        column += 1


@inner(
    "void(CODE[:, ::1], int64, int64[:, ::1], int64, int64, uint16[::1], int64[::1], int64[::1])",
    CODE=("uint8", "uint16"),
)
def _add_pairs_to_two(codes, shift, histograms, column, start, index, amount, second):  # type: ignore[no-untyped-def]
    """Add two integers of each sample to the histograms of two columns."""
    shift, one = np.uint64(shift), np.uint64(1)
    c0, c1 = codes[column, start:], codes[column + 1, start:]
    h0, h1 = histograms[column], histograms[column + 1]
    for t in range(len(index)):
        i, gradient, hessian = np.uint64(index[t]), amount[t], second[t]
        at = (np.uint64(c0[i]) >> shift) << one
        h0[at] += gradient
        h0[at + one] += hessian
        at = (np.uint64(c1[i]) >> shift) << one
        h1[at] += gradient
        h1[at + one] += hessian


@inner(
    "void(CODE[::1], int64, int64[::1], uint16[::1], int64[::1], int64[::1])",
    CODE=("uint8", "uint16"),
)
def _add_pairs_to_one(codes, shift, histogram, index, amount, second):  # type: ignore[no-untyped-def]
    shift, one = np.uint64(shift), np.uint64(1)
    for t in range(len(index)):
        at = (np.uint64(codes[np.uint64(index[t])]) >> shift) << one
        histogram[at] += amount[t]
        histogram[at + one] += second[t]


@inner(
    "void(CODE[:, ::1], int64, int64[:, ::1], int64, int64, int64, uint16[::1], int64[::1],"
    " int64[::1])",
    CODE=("uint8", "uint16"),
)
def _add_to(codes, shift, histograms, low, high, start, index, amount, second):  # type: ignore[no-untyped-def]
    """Add amounts to the histograms of the columns from `low` to `high` of one array of codes."""
    if len(second) == 0:
        add_single(codes, shift, histograms, low, high, start, index, amount, 0)
        return
    column = low
    while column + 2 <= high:
        _add_pairs_to_two(codes, shift, histograms, column, start, index, amount, second)
        column += 2
    if column < high:
        own = codes[column, start:]
        _add_pairs_to_one(own, shift, histograms[column], index, amount, second)


@inner("void(Columns, Histograms, int64, int64[::1], int64, Listed)")
def add_chunk(columns, histograms, plane, chosen, start, listed):  # type: ignore[no-untyped-def]
    """Add what is listed of a chunk to the histograms of some columns, in order.

    Positive samples go to plane `plane` and negative ones to the next. The chunk's samples begin at
    `start`. Wide columns come first.
    """
    n_samples, n_wide = min(CHUNK, columns.wide.shape[1] - start), len(columns.wide)
    t = 0
    while t < len(chosen):
        low = high = chosen[t]
        while t < len(chosen) and chosen[t] == high:  # neighbours are added up together
            high += 1
            t += 1
        for sign in range(2):
            first = 0 if sign == 0 else n_samples - listed.n_back[0]
            last = listed.n_front[0] if sign == 0 else n_samples
            index, amount = listed.sample[first:last], listed.amount[first:last]
            second = listed.second[first:last]
            wide, narrow = histograms.wide[plane + sign], histograms.narrow[plane + sign]
            end, begin = min(high, n_wide), max(low - n_wide, 0)
            _add_to(columns.wide, PART_BITS, wide, low, end, start, index, amount, second)
            end = high - n_wide
            _add_to(columns.narrow, 0, narrow, begin, end, start, index, amount, second)


@inner("void(int64[::1], int64[::1], Listed)")
def _list_terms(gradient, hessian, listed):  # type: ignore[no-untyped-def]
    """List the integers of a chunk's samples: gradients without their signs, and Hessians."""
    index, amount = listed.sample[: len(gradient)], listed.amount[: len(gradient)]
    second = listed.second[: len(gradient)]
    has_hessians = len(second) > 0
    front, back = np.uint64(0), np.uint64(len(gradient) - 1)
    for k in range(len(gradient)):
        own = gradient[k]
        is_positive = np.uint64(own > 0)
        size = abs(own)
        index[front] = k
        amount[front] = size
        index[back] = k
        amount[back] = size
        if has_hessians:
            second[front] = hessian[k]
            second[back] = hessian[k]
        front += is_positive
        back -= np.uint64(1) - is_positive
    listed.n_front[0] = front
    listed.n_back[0] = len(gradient) - np.int64(front)


@inner(
    "void(CODE[::1], int64, int64[::1], int64[::1], int64[:, :, ::1], int64, int64)",
    CODE=("uint8", "uint16"),
)
def _add_column(codes, shift, gradient, hessian, histograms, plane, column):  # type: ignore[no-untyped-def]
    """Add a chunk's terms to one column, without listing them first."""
    n_columns, size = np.uint64(histograms.shape[1]), np.uint64(histograms.shape[2])
    first = (np.uint64(plane) * n_columns + np.uint64(column)) * size
    behind = n_columns * size  # where the sums of negative samples are
    sums, shift, one = histograms.reshape(histograms.size), np.uint64(shift), np.uint64(1)
    if len(hessian) > 0:
        for i in range(len(codes)):
            own = gradient[i]
            at = first + ((np.uint64(codes[i]) >> shift) << one)
            at += behind if own < 0 else np.uint64(0)
            sums[at] += abs(own)
            sums[at + one] += hessian[i]
    else:
        for i in range(len(codes)):
            own = gradient[i]
            at = first + (np.uint64(codes[i]) >> shift)
            at += behind if own < 0 else np.uint64(0)
            sums[at] += abs(own)


@inner("void(Columns, Histograms, int64, int64[::1], int64, int64[::1], int64[::1])")
def _add_few(columns, histograms, plane, chosen, start, gradient, hessian):  # type: ignore[no-untyped-def]
    """Add a chunk's terms to a few columns; see `add_chunk`."""
    n_wide, end = len(columns.wide), start + len(gradient)
    for c in chosen:
        if c < n_wide:
            codes, wide = columns.wide[c, start:end], histograms.wide
            _add_column(codes, PART_BITS, gradient, hessian, wide, plane, c)
        else:
            codes, narrow = columns.narrow[c - n_wide, start:end], histograms.narrow
            _add_column(codes, 0, gradient, hessian, narrow, plane, c - n_wide)


@parallel("void(int64, Columns, Terms, int64[::1], int64, Lanes)")
def add_terms(piece, columns, terms, chosen, size, lanes):  # type: ignore[no-untyped-def]
    """Replace the sums by those of all terms: two planes for each output, for positive and for
    negative samples; see `TeamHistograms.add`."""
    has_hessians, n_samples = len(terms.hessian) > 0, terms.gradient.shape[1]
    lane, mine = share_of(piece, chosen, size, lanes)
    here = next_piece(lanes, -1)
    if lane > 0 and here * lanes.size >= n_samples:
        return
    lanes.is_used[lane] = 1
    own = Histograms(lanes.wide[lane], lanes.narrow[lane])
    for column in mine:
        clear_column(own, column)
    listed, nothing = nothing_listed(has_hessians), np.empty(0, dtype=np.int64)
    while here * lanes.size < n_samples:
        for start in range(here * lanes.size, min((here + 1) * lanes.size, n_samples), CHUNK):
            end = min(start + CHUNK, n_samples)
            for k in range(len(terms.gradient)):
                gradient = terms.gradient[k, start:end]
                hessian = terms.hessian[k, start:end] if has_hessians else nothing
                if len(mine) < COLUMNS_AT_ONCE:
                    _add_few(columns, own, 2 * k, mine, start, gradient, hessian)
                else:
                    _list_terms(gradient, hessian, listed)
                    add_chunk(columns, own, 2 * k, mine, start, listed)
        here = next_piece(lanes, here)


@inner("void(int64[::1], int64[::1])")
def add_numbers(numbers, others):  # type: ignore[no-untyped-def]
    """Add numbers to others. (Numba takes long to compile `numbers += others`.)"""
    for i in range(len(others)):
        numbers[i] += others[i]


@parallel("void(int64, Lanes, int64[::1], int64)")
def _merge(piece, lanes, chosen, size):  # type: ignore[no-untyped-def]
    """Add the sums of other lanes to the total, for a part of some columns."""
    n_wide = lanes.wide.shape[2]
    for lane in range(1, len(lanes.is_used)):
        if lanes.is_used[lane] == 0:
            continue
        for c in chosen[piece * size : (piece + 1) * size]:
            for plane in range(lanes.wide.shape[1]):
                if c < n_wide:
                    add_numbers(lanes.wide[0, plane, c], lanes.wide[lane, plane, c])
                else:
                    own = lanes.narrow[lane, plane, c - n_wide]
                    add_numbers(lanes.narrow[0, plane, c - n_wide], own)


@parallel(
    "void(int64, Histograms, int64[:, ::1], Bundles, BinLayout, int64[::1], int64, int64[:, ::1])"
)
def _fill_slots(piece, histograms, planes, bundles, layout, features, size, sums):  # type: ignore[no-untyped-def]
    """Replace the sums over the slots of a part of some features; see `fill_slots`."""
    width = histograms.wide.shape[2] // WIDE_BINS
    for p in range(len(planes)):
        plane, which = planes[p]
        total, totalled = 0, -1
        for j in features[piece * size : (piece + 1) * size]:
            at, n_bins, default = layout.first[j], layout.n_bins[j], bundles.default[j]
            found = sums[p, at : at + n_bins + 1]
            found[:] = 0
            column = bundles.column[j]
            if bundles.is_wide[j]:
                own = histograms.wide[plane, column, which:]
            else:
                own = histograms.narrow[plane, column, which:]
            if default >= 0:
                if totalled != column:
                    total, totalled = 0, column
                    for code in range(NARROW_BINS):
                        total += own[width * code]
                rest = total
                for e in range(bundles.entry[j], bundles.entry[j + 1]):
                    weight = own[width * bundles.codes[e]]
                    found[bundles.slots[e]] += weight
                    rest -= weight
                found[default] += rest
                continue
            for b in range(n_bins):
                found[b] += own[width * b]
            found[n_bins] += own[width * bundles.missing_code[j]]
