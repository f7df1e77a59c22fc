"""Adding integers to histograms: for every column, the sums over the samples of each bin.

Samples are processed in chunks, so small that what one step writes is still in the cache when the
next one reads it. Within a chunk the samples to be added are listed first, positive ones from the
front and negative ones from the back, and each kind is added to histograms of its own. So adding
need not read the label, and the histograms of four columns stay in the nearest cache. Four columns
are added up at a time, so that four additions overlap; two if each sample adds two integers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Annotated, NamedTuple

import numpy as np

from gpustump.engines.cpu.loss.terms import Terms
from gpustump.engines.cpu.runtime.compiling import Integers, group, inner, kernel
from gpustump.engines.cpu.table.bin_layout import BinLayout
from gpustump.engines.cpu.table.bundles import Bundles
from gpustump.engines.cpu.table.columns import (
    NARROW_BINS,
    PART_BITS,
    WIDE_BINS,
    Columns,
    Histograms,
)
from gpustump.engines.threads import Shared, Team, ranges

CHUNK = 8192
"""How many samples go through all steps at once."""

COLUMNS_AT_ONCE = 4

_PIECE, _PIECE_ALONE = 2 * CHUNK, 8 * CHUNK
"""The fewest samples that a thread takes at a time: one of several threads, and a single one."""

_PIECES = 4
"""About how many pieces of the samples each thread takes in a round: few, but enough for nearly
equal shares."""

FEW_ADDITIONS = 2**18
"""Fewer additions than this are not worth another thread."""

_SLOTS_AT_ONCE = 2**17
"""About how many slots a thread computes at a time."""


def pieces_of(n_samples: int, team: Team) -> list[tuple[int, int]]:
    """The samples in pieces for the threads to take, whole chunks each."""
    chunks = n_samples // (_PIECES * team.size * CHUNK)
    return ranges(n_samples, max(_PIECE_ALONE if team.size == 1 else _PIECE, chunks * CHUNK))


def parts_of_columns(columns: Columns, team: Team) -> list[tuple[int, int]]:
    """The columns in parts for the threads to take."""
    fair = -(-columns.n_columns // (2 * team.size))
    size = max(COLUMNS_AT_ONCE, fair // COLUMNS_AT_ONCE * COLUMNS_AT_ONCE)
    return ranges(columns.n_columns, size)


def is_taken_by_samples(columns: Columns, team: Team) -> bool:
    """Whether each thread adds up some of the samples, in histograms of its own.

    Such histograms must be cleared and added up, so they save time if columns are long. Otherwise
    each thread adds up all samples for some of the columns.
    """
    return team.size == 1 or columns.n_samples >= 64 * 256 * team.size


class TeamHistograms:
    """Histograms that several threads add to, each to its own.

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
        The first thread's histograms, to which those of the others are added in the end.
    by_samples : bool
        Whether each thread takes some of the samples. Otherwise there is only the total, and each
        thread takes some of the columns.
    """

    def __init__(self, n_planes: int, width: int, columns: Columns, team: Team) -> None:
        self.total, self._columns = Histograms.empty(n_planes, width, columns), columns
        self.by_samples = is_taken_by_samples(columns, team)
        n_others = team.size - 1 if self.by_samples else 0
        self._others = [Histograms.empty(n_planes, width, columns) for _ in range(n_others)]
        self._team = team

    def add(self, work: Callable[[Histograms], None]) -> None:
        """Let every thread add to its histograms by `work`, and add these up."""

        def work_alone(own: Histograms) -> None:
            if own is not self.total:
                own.clear()
            work(own)

        self._team.each(work_alone, [self.total, *self._others])
        if not self._others:
            return
        parts = [(0, self._columns.n_columns)]
        if sum(part.size for part in self.total) * len(self._others) >= FEW_ADDITIONS:
            parts = parts_of_columns(self._columns, self._team)
        self._team.each(self._merge, parts)

    def _merge(self, part: tuple[int, int]) -> None:
        """Add the others' sums over the columns of a part to the total."""
        for own in self._others:
            _add_columns(self.total, own, np.arange(*part))

    def add_up(self, terms: Terms, make: Callable[[int, int], None]) -> None:
        """Compute all terms, and replace the sums by theirs: two planes for each output, for
        positive and negative samples.

        Parameters
        ----------
        terms : Terms
        make : callable
            Computes the terms of the samples from `low` to `high`, which are added while they are
            in the cache.
        """
        self.total.clear()
        pieces = Shared(pieces_of(self._columns.n_samples, self._team))

        def take(own: Histograms) -> None:
            for part in pieces:
                make(*part)
                add_terms(self._columns, terms, own, *part)

        if self.by_samples:
            self.add(take)
            return
        self._team.each(lambda part: make(*part), list(pieces))
        listed = Listed.empty(self._columns.n_samples, self.total.wide.shape[2] // WIDE_BINS)
        parts = parts_of_columns(self._columns, self._team)
        for output in range(len(terms.gradient)):
            _list_output(terms, output, listed)
            self._team.each(functools.partial(self._add_part, 2 * output, listed), parts)

    def _add_part(self, plane: int, listed: Listed, part: tuple[int, int]) -> None:
        add(self._columns, self.total, plane, *part, listed)

    def renew(self, chosen: np.ndarray, work: Callable[[Histograms], None], n_shares: int) -> None:
        """The same for some columns only, which are cleared first, by up to `n_shares` threads."""
        everyone = [self.total, *self._others[: n_shares - 1]]
        for own in everyone:
            _clear_columns(own, chosen)
        self._team.each(work, everyone)
        for own in everyone[1:]:
            _add_columns(self.total, own, chosen)


def add_some_columns(
    columns: Columns, terms: Terms, histograms: TeamHistograms, team: Team, chosen: np.ndarray
) -> None:
    """Add up all terms anew for some of the columns.

    Parameters
    ----------
    columns : Columns
    terms : Terms
    histograms : TeamHistograms
    team : Team
    chosen : ndarray (n_chosen,) of int64
        The numbers of columns; see `Columns`.
    """
    parts = [(0, columns.n_samples)]
    if histograms.by_samples and terms.gradient.size * len(chosen) >= FEW_ADDITIONS:
        parts = pieces_of(columns.n_samples, team)
    pieces = Shared(parts)

    def take(own: Histograms) -> None:
        for part in pieces:
            add_terms_to(columns, terms, own, chosen, *part)

    histograms.renew(chosen, take, len(parts))


def slot_sums(
    histograms: Histograms, planes: np.ndarray, bundles: Bundles, layout: BinLayout, team: Team
) -> np.ndarray:
    """Sums over the slots of all features, (n_planes, n_slots).

    Parameters
    ----------
    histograms : Histograms
    planes : ndarray (n_planes, 2) of int64
        For each plane of the result, a plane of the histograms, and which of the integers that are
        added up there.
    bundles : Bundles
    layout : BinLayout
    team : Team
    """
    sums = np.empty((len(planes), len(layout.offset)), dtype=np.int64)
    of_feature = max(1, sums.size // max(1, len(layout.first)))
    team.each(
        lambda part: fill_slots(histograms, planes, bundles, layout, np.arange(*part), sums),
        ranges(len(layout.first), max(1, _SLOTS_AT_ONCE // of_feature)),
    )
    return sums


@group
class Listed(NamedTuple):
    """Samples to be added, listed chunk by chunk; each chunk has places for all its samples.

    Attributes
    ----------
    sample : ndarray (n_places,) of uint16
        The sample's index, counted from the chunk's start.
    amount : ndarray (n_places, width) of int64
        What is added: one integer or two.
    n_front, n_back : ndarray (n_chunks,) of int64
        How many samples are listed at the front and at the back of each chunk.
    """

    sample: Annotated[np.ndarray, "uint16[::1]"]
    amount: Annotated[np.ndarray, "int64[:, ::1]"]
    n_front: Integers
    n_back: Integers

    @classmethod
    def empty(cls, n_samples: int, width: int = 1) -> Listed:
        n_chunks = -(-n_samples // CHUNK)
        return cls(
            np.empty(n_samples, dtype=np.uint16),
            np.empty((n_samples, width), dtype=np.int64),
            np.zeros(n_chunks, dtype=np.int64),
            np.zeros(n_chunks, dtype=np.int64),
        )


@inner(
    "void(CODE[:, ::1], int64, int64[:, ::1], int64, int64, uint16[::1], int64[:, ::1])",
    CODE=("uint8", "uint16"),
)
def _add_four(codes, shift, histograms, column, start, index, amount):  # type: ignore[no-untyped-def]
    """Add one integer of each sample to the histograms of four columns.

    Bins are codes without their `shift` lowest bits.
    """
    shift = np.uint64(shift)
    c0, c1 = codes[column, start:], codes[column + 1, start:]
    c2, c3 = codes[column + 2, start:], codes[column + 3, start:]
    h0, h1 = histograms[column], histograms[column + 1]
    h2, h3 = histograms[column + 2], histograms[column + 3]
    for t in range(len(index)):
        i, by = index[t], amount[t, 0]
        h0[np.uint64(c0[i]) >> shift] += by
        h1[np.uint64(c1[i]) >> shift] += by
        h2[np.uint64(c2[i]) >> shift] += by
        h3[np.uint64(c3[i]) >> shift] += by


@inner("void(CODE[::1], int64, int64[::1], uint16[::1], int64[:, ::1])", CODE=("uint8", "uint16"))
def _add_one(codes, shift, histogram, index, amount):  # type: ignore[no-untyped-def]
    shift = np.uint64(shift)
    for t in range(len(index)):
        histogram[np.uint64(codes[index[t]]) >> shift] += amount[t, 0]


@inner(
    "void(CODE[:, ::1], int64, int64[:, ::1], int64, int64, uint16[::1], int64[:, ::1])",
    CODE=("uint8", "uint16"),
)
def _add_pairs_to_two(codes, shift, histograms, column, start, index, amount):  # type: ignore[no-untyped-def]
    """Add two integers of each sample to the histograms of two columns."""
    shift, one = np.uint64(shift), np.uint64(1)
    c0, c1 = codes[column, start:], codes[column + 1, start:]
    h0, h1 = histograms[column], histograms[column + 1]
    for t in range(len(index)):
        i, gradient, hessian = index[t], amount[t, 0], amount[t, 1]
        at = (np.uint64(c0[i]) >> shift) << one
        h0[at] += gradient
        h0[at + one] += hessian
        at = (np.uint64(c1[i]) >> shift) << one
        h1[at] += gradient
        h1[at + one] += hessian


@inner("void(CODE[::1], int64, int64[::1], uint16[::1], int64[:, ::1])", CODE=("uint8", "uint16"))
def _add_pairs_to_one(codes, shift, histogram, index, amount):  # type: ignore[no-untyped-def]
    shift, one = np.uint64(shift), np.uint64(1)
    for t in range(len(index)):
        at = (np.uint64(codes[index[t]]) >> shift) << one
        histogram[at] += amount[t, 0]
        histogram[at + one] += amount[t, 1]


@inner(
    "void(CODE[:, ::1], int64, int64[:, ::1], int64, int64, int64, uint16[::1], int64[:, ::1])",
    CODE=("uint8", "uint16"),
)
def _add_to(codes, shift, histograms, low, high, start, index, amount):  # type: ignore[no-untyped-def]
    """Add amounts to the histograms of the columns from `low` to `high` of one array of codes."""
    column = low
    if amount.shape[1] == 1:
        while column + 4 <= high:
            _add_four(codes, shift, histograms, column, start, index, amount)
            column += 4
        while column < high:
            _add_one(codes[column, start:], shift, histograms[column], index, amount)
            column += 1
    else:
        while column + 2 <= high:
            _add_pairs_to_two(codes, shift, histograms, column, start, index, amount)
            column += 2
        if column < high:
            _add_pairs_to_one(codes[column, start:], shift, histograms[column], index, amount)


@inner("void(Columns, Histograms, int64, int64, int64, int64, Listed, int64)")
def add_chunk(columns, histograms, plane, low, high, start, listed, chunk):  # type: ignore[no-untyped-def]
    """Add what is listed of a chunk to the histograms of the columns from `low` to `high`.

    Positive samples go to plane `plane` and negative ones to the next. The chunk's samples begin at
    `start`. Wide columns come first.
    """
    n_samples, n_wide = min(CHUNK, columns.wide.shape[1] - start), len(columns.wide)
    at, n_front, n_back = chunk * CHUNK, listed.n_front[chunk], listed.n_back[chunk]
    for sign in range(2):
        first = at if sign == 0 else at + n_samples - n_back
        last = at + n_front if sign == 0 else at + n_samples
        index, amount = listed.sample[first:last], listed.amount[first:last]
        wide, narrow = histograms.wide[plane + sign], histograms.narrow[plane + sign]
        _add_to(columns.wide, PART_BITS, wide, low, min(high, n_wide), start, index, amount)
        low_narrow = max(low - n_wide, 0)
        _add_to(columns.narrow, 0, narrow, low_narrow, high - n_wide, start, index, amount)


@kernel("void(Columns, Histograms, int64, int64, int64, Listed)")
def add(columns, histograms, plane, low, high, listed):  # type: ignore[no-untyped-def]
    """Add all that is listed to the histograms of the columns from `low` to `high`."""
    for chunk in range(len(listed.n_front)):
        add_chunk(columns, histograms, plane, low, high, chunk * CHUNK, listed, chunk)


@inner("void(int64[::1], int64[::1], Listed, int64)")
def list_terms(gradient, hessian, listed, chunk):  # type: ignore[no-untyped-def]
    """List the integers of a chunk's samples: gradients without their signs, and Hessians."""
    here = chunk * CHUNK
    end = here + len(gradient)
    index, amount = listed.sample[here:end], listed.amount[here:end]
    has_hessians = amount.shape[1] > 1
    front, back = np.uint64(0), np.uint64(len(gradient) - 1)
    for k in range(len(gradient)):
        own = gradient[k]
        is_positive = np.uint64(own > 0)
        size = abs(own)
        index[front] = k
        amount[front, 0] = size
        index[back] = k
        amount[back, 0] = size
        if has_hessians:
            amount[front, 1] = hessian[k]
            amount[back, 1] = hessian[k]
        front += is_positive
        back -= np.uint64(1) - is_positive
    listed.n_front[chunk] = front
    listed.n_back[chunk] = len(gradient) - np.int64(front)


@kernel("void(Columns, Terms, Histograms, int64, int64)")
def add_terms(columns, terms, histograms, low, high):  # type: ignore[no-untyped-def]
    """Add up the terms of the samples from `low` to `high`, whole chunks, for every output."""
    has_hessians = len(terms.hessian) > 0
    sample = np.empty(CHUNK, np.uint16)
    amount = np.empty((CHUNK, 2 if has_hessians else 1), np.int64)
    listed = Listed(sample, amount, np.zeros(1, np.int64), np.zeros(1, np.int64))
    n_columns = len(columns.wide) + len(columns.narrow)
    for start in range(low, high, CHUNK):
        end = min(start + CHUNK, high)
        for k in range(len(terms.gradient)):
            gradient = terms.gradient[k, start:end]
            hessian = terms.hessian[k, start:end] if has_hessians else gradient
            list_terms(gradient, hessian, listed, 0)
            add_chunk(columns, histograms, 2 * k, 0, n_columns, start, listed, 0)


@inner(
    "void(CODE[::1], int64, int64[::1], int64[::1], int64[::1], int64, int64)",
    CODE=("uint8", "uint16"),
)
def _add_column(codes, shift, gradient, hessian, table, low, high):  # type: ignore[no-untyped-def]
    """Add up the terms of an output for one column; `table` holds one plane after the other."""
    shift, one = np.uint64(shift), np.uint64(1)
    own, sizes, curves = codes[low:high], gradient[low:high], hessian[low:high]
    if len(hessian) > 0:
        of_negative = np.uint64(len(table) // 2)
        for i in range(len(own)):
            at = (np.uint64(own[i]) >> shift) << one
            at += of_negative if sizes[i] < 0 else np.uint64(0)
            table[at] += abs(sizes[i])
            table[at + one] += curves[i]
    else:
        of_negative = np.uint64(len(table) // 2)
        for i in range(len(own)):
            at = np.uint64(own[i]) >> shift
            at += of_negative if sizes[i] < 0 else np.uint64(0)
            table[at] += abs(sizes[i])


@inner("void(int64[::1], int64[::1])")
def add_numbers(numbers, others):  # type: ignore[no-untyped-def]
    """Add numbers to others. (Numba takes long to compile `numbers += others`.)"""
    for i in range(len(others)):
        numbers[i] += others[i]


@kernel("void(Columns, Terms, Histograms, int64[::1], int64, int64)")
def add_terms_to(columns, terms, histograms, chosen, low, high):  # type: ignore[no-untyped-def]
    """The same for some columns only."""
    n_wide = len(columns.wide)
    sizes = (histograms.wide.shape[2], histograms.narrow.shape[2])
    tables = np.zeros((len(chosen), 2 * max(sizes)), dtype=np.int64)
    nothing = np.empty(0, dtype=np.int64)
    for k in range(len(terms.gradient)):
        gradient, hessian = terms.gradient[k], terms.hessian[k] if len(terms.hessian) else nothing
        for start in range(low, high, CHUNK):
            end = min(start + CHUNK, high)
            for t, c in enumerate(chosen):
                if c < n_wide:
                    own = tables[t, : 2 * sizes[0]]
                    _add_column(columns.wide[c], PART_BITS, gradient, hessian, own, start, end)
                else:
                    own = tables[t, : 2 * sizes[1]]
                    _add_column(columns.narrow[c - n_wide], 0, gradient, hessian, own, start, end)
        for t, c in enumerate(chosen):
            size = sizes[0] if c < n_wide else sizes[1]
            for sign in range(2):
                own = tables[t, sign * size : (sign + 1) * size]
                if c < n_wide:
                    add_numbers(histograms.wide[2 * k + sign, c], own)
                else:
                    add_numbers(histograms.narrow[2 * k + sign, c - n_wide], own)
        tables[:] = 0


@kernel("void(Histograms, int64[::1])")
def _clear_columns(histograms, chosen):  # type: ignore[no-untyped-def]
    """Set the sums of some columns to 0."""
    n_wide = histograms.wide.shape[1]
    for c in chosen:
        if c < n_wide:
            histograms.wide[:, c] = 0
        else:
            histograms.narrow[:, c - n_wide] = 0


@kernel("void(Histograms, Histograms, int64[::1])")
def _add_columns(histograms, others, chosen):  # type: ignore[no-untyped-def]
    """Add the sums of some columns to others."""
    n_wide = histograms.wide.shape[1]
    for plane in range(len(histograms.wide)):
        for c in chosen:
            if c < n_wide:
                add_numbers(histograms.wide[plane, c], others.wide[plane, c])
            else:
                add_numbers(histograms.narrow[plane, c - n_wide], others.narrow[plane, c - n_wide])


@kernel("void(Terms, int64, Listed)")
def _list_output(terms, output, listed):  # type: ignore[no-untyped-def]
    """List the terms of an output of all samples."""
    hessian = terms.hessian[output] if len(terms.hessian) > 0 else terms.gradient[output]
    for start in range(0, len(hessian), CHUNK):
        end = min(start + CHUNK, len(hessian))
        list_terms(terms.gradient[output, start:end], hessian[start:end], listed, start // CHUNK)


@kernel("void(Histograms, int64[:, ::1], Bundles, BinLayout, int64[::1], int64[:, ::1])")
def fill_slots(histograms, planes, bundles, layout, features, sums):  # type: ignore[no-untyped-def]
    """Replace the sums over the slots of some features, in order; see `slot_sums`."""
    width = histograms.wide.shape[2] // WIDE_BINS
    for p in range(len(planes)):
        plane, which = planes[p]
        total, totalled = 0, -1
        for j in features:
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
