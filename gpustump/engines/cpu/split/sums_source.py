"""Answers to a search's questions from codes: the sums over the parts of bins, and over samples.

The sums over all bins come from histograms, which are updated when the samples' weights change. For
the sums over parts and samples, the samples of the bins in question are read one by one: in the
order of their codes, or of their values (see `slices`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.engines.cpu.loss.terms import Terms
from gpustump.engines.cpu.runtime.compiling import Bytes, Integers, group, inner, kernel
from gpustump.engines.cpu.runtime.crew import parallel
from gpustump.engines.cpu.runtime.intrinsics import prefetch
from gpustump.engines.cpu.split.slices import Answer, Planes, Slices
from gpustump.engines.cpu.table.codes import CodedTable
from gpustump.engines.cpu.table.columns import PART_BITS
from gpustump.engines.cpu.table.rows_by_code import SAMPLE
from gpustump.engines.cpu.table.source_table import Values, key_at

_SAMPLES_AT_ONCE = 2**14
"""Fewer samples than this are not worth another thread."""

_AHEAD = np.uint64(16)
"""How many samples ahead integers are prefetched: those of a bin are far from each other."""


@group
class Segments(NamedTuple):
    """Where the samples of some segments are in an order of samples.

    Attributes
    ----------
    start, n_samples : ndarray (n_segments,) of int64
        The place of the first sample in the order, and how many there are.
    position : ndarray (n_segments,) of int64
        The sorted position of the first sample among all samples of the feature.
    first : ndarray (n_segments,) of int64
        The number of the segment's first cell, with room for as many cells as there may be.
    """

    start: Integers
    n_samples: Integers
    position: Integers
    first: Integers

    @classmethod
    def empty(cls, n_segments: int) -> Segments:
        """Numbers that are yet to be written."""
        return cls(*np.empty((4, n_segments), dtype=np.int64))


@group
class Located(NamedTuple):
    """Where the samples of cells are.

    Attributes
    ----------
    order : ndarray of int32
        An order of samples. The sign bit of a sample is set if the next one is of the same cell;
        for the bit below it see `rows_by_code`.
    begin : ndarray (n_cells,) of int64
        The place in it at which each cell begins.
    """

    order: Annotated[np.ndarray, "int32[::1]"]
    begin: Integers


@group
class CellSums(NamedTuple):
    """The fields of `Located` and `Slices` that kernels write for the cells of some segments.

    `are_parts` says whether there may be cuts inside cells of several samples.
    """

    begin: Integers
    last: Integers
    n_cells: Integers
    sums: Planes
    is_open: Bytes
    are_parts: bool


def answering(add_up: Any, pieces: Any) -> Any:
    """A function that answers a question; it is compiled, or called by Python.

    `add_up` adds up a piece of some segments of an order, from the integers that it is given, and
    `pieces` cuts segments into pieces. There is room for `n_cells`, which are parts or values.
    """

    def answer(  # type: ignore[no-untyped-def]
        crew, threads, given, n_planes, slots, feature, order, segments, n_cells, are_parts
    ):
        numbers = np.zeros((n_planes + 2, n_cells), dtype=np.int64)
        sums, begin, last = numbers[:n_planes], numbers[n_planes], numbers[n_planes + 1]
        count, is_open = np.empty(len(slots), np.int64), np.zeros(n_cells, np.uint8)
        cells = CellSums(begin, last, count, sums, is_open, are_parts)
        n_segments, n_samples = len(slots), segments.n_samples.sum()
        least = _SAMPLES_AT_ONCE * n_segments // max(1, n_samples) + 1
        n_pieces, size = pieces(threads, n_segments, least)
        add_up(crew, n_pieces, given, order, segments, size, cells)
        exact, no_spread = np.zeros((0, 0)), np.zeros(0)
        own = (feature, segments.first, count, sums, exact, exact, last, is_open, no_spread)
        return Answer(Slices(*own), slots, Located(order, begin))

    return answer


@group
class InOrder(NamedTuple):
    """A coded table as compiled code reads it to answer questions, and the integers of a round.

    Attributes
    ----------
    terms : Terms
    n_planes, n_samples : int
    values : Values
    order : ndarray (n_columns * n_samples,) of int32
        The samples of columns in the order of their codes; see `rows_by_code`.
    is_ready : ndarray (n_columns,) of uint8
        Which columns are in that order.
    column : ndarray (n_features,) of int64
    is_wide : ndarray (n_features,) of uint8
        See `Bundles`.
    feature, offset : ndarray (n_slots,) of int64
        See `BinLayout`.
    """

    terms: Annotated[Terms, "Terms"]
    n_planes: int
    n_samples: int
    values: Annotated[Values, "Values"]
    order: Annotated[np.ndarray, "int32[::1]"]
    is_ready: Bytes
    column: Integers
    is_wide: Bytes
    feature: Integers
    offset: Integers


@dataclass(frozen=True)
class CodedSums:
    """A coded table, with the integers of a round; see `search.SumsSource`.

    Attributes
    ----------
    table : CodedTable
    kernel : callable
        Adds up the integers of a piece of some segments of an order.
    given : object
        Its first argument.
    n_planes : int
    """

    table: CodedTable
    kernel: Callable[..., None]
    given: Any
    n_planes: int
    bins_at_once: ClassVar[int] = 32

    @classmethod
    def of_terms(cls, table: CodedTable, terms: Terms) -> CodedSums:
        """From the two integers of each sample and output."""
        n_planes = (4 if len(terms.hessian) else 2) * len(terms.gradient)
        return cls(table, add_up_terms, terms, n_planes)

    @property
    def in_order(self) -> InOrder | None:
        """What compiled code needs to answer questions; None if it cannot."""
        table, layout, bundles = self.table, self.table.layout, self.table.bundles
        values, parted = table.source.in_memory, table.parted
        if self.kernel is not add_up_terms or parted is None or values.address == 0:
            return None
        return InOrder(
            self.given, self.n_planes, table.n_samples, values, parted.order, parted.is_ready,
            bundles.column, bundles.is_wide, table.feature_of_slot, layout.offset,
        )  # fmt: skip

    def prefetch(self, bounds: np.ndarray, least: float) -> None:
        """Nothing takes less time if it is known before."""

    def parts(self, slots: np.ndarray, features: np.ndarray) -> Iterator[Answer]:
        """The sums over the parts of some bins.

        For features whose samples are not stored in the order of their codes, the sums over the
        distinct values.
        """
        table, layout = self.table, self.table.layout
        has_parts = table.are_in_order(features)
        if has_parts.any():
            assert table.parted is not None
            own, of = slots[has_parts], features[has_parts]
            starts = table.bundles.column[of] * table.n_samples + layout.offset[own]
            segments = Segments.empty(len(own))
            n_cells = lay_out_bins(own, starts, layout.offset, 1 << PART_BITS, segments)
            yield self._answer(own, of, table.parted.order, segments, n_cells, are_parts=True)
        if has_parts.all():
            return
        others = np.unique(features[~has_parts]).tolist()
        in_order: dict[int, tuple[np.ndarray, Segments]] = {}

        def sort(feature: int) -> None:
            own = slots[features == feature]
            count, segments = layout.n_inside(own), Segments.empty(len(own))
            begin, order = np.cumsum(count) - count, np.empty(count.sum(), dtype=np.int32)
            lay_out_bins(own, begin, layout.offset, table.n_samples, segments)
            table.list_bins(feature, own - layout.first[feature], begin, order)
            of = np.full(len(own), feature)
            in_order[feature] = self._by_value(order, of, segments, len(order)), segments

        table.team.each(sort, others)
        for feature in others:
            is_own = features == feature
            order, segments = in_order[feature]
            yield self._answer(slots[is_own], features[is_own], order, segments, len(order))

    def samples(self, answer: Answer, segments: np.ndarray, cells: np.ndarray) -> Answer:
        """The sums over the distinct values in some open cells; each cell becomes a segment."""
        slices, where = answer.slices, answer.where
        slots, feature = answer.slots[segments], slices.feature[segments]
        found = Segments.empty(len(cells))
        offset = self.table.layout.offset[slots]
        n_samples = lay_out_cells(slices, where.begin, offset, segments, cells, found)
        order = self._by_value(where.order, feature, found, n_samples)
        return self._answer(slots, feature, order, found._replace(start=found.first), n_samples)

    def _by_value(
        self, order: np.ndarray, feature: np.ndarray, segments: Segments, n_samples: int
    ) -> np.ndarray:
        """The samples of some parts by increasing value, part after part.

        The sign bit of a sample is set if the next one has the same value. In the order itself the
        parts are sorted, too (see `rows_by_code`), as a part that is asked for once is often asked
        for again.
        """
        source = self.table.source
        samples, keys = np.empty(n_samples, order.dtype), np.empty(n_samples, np.int64)
        if pick_keys(source.in_memory, feature, order, segments, samples, keys):
            if not source.is_plain:
                of = np.repeat(feature, segments.n_samples)
                keys[:] = arrays.order_keys(source.picked(samples & SAMPLE, of))
            sort_parts(keys, segments, order, samples)
        return samples

    def _answer(
        self,
        slots: np.ndarray,
        feature: np.ndarray,
        order: np.ndarray,
        segments: Segments,
        n_cells: int,
        are_parts: bool = False,
    ) -> Answer:
        """Add up the cells, which are parts or values; there is room for `n_cells`."""
        team = self.table.team
        answer = answering(
            lambda team, *own: team.run(self.kernel, *own),
            lambda threads, *about: team.pieces(*about),  # tests have teams of their own
        )
        found: Answer = answer(
            team, team.size, self.given, self.n_planes, slots, feature, order, segments, n_cells,
            are_parts,
        )  # fmt: skip
        return found


@kernel("int64(int64[::1], int64[::1], int64[::1], int64, Segments)")
def lay_out_bins(slots, starts, offset, most, found):  # type: ignore[no-untyped-def]
    """Write where the samples of bins are, each of at most so many cells; returns how many cells
    there may be."""
    n_cells = 0
    for k in range(len(slots)):
        begin = offset[slots[k]]
        count = offset[slots[k] + 1] - begin
        found.start[k], found.n_samples[k], found.position[k] = starts[k], count, begin
        found.first[k] = n_cells
        n_cells += min(count, most)
    return n_cells


@kernel("int64(Slices, int64[::1], int64[::1], int64[::1], int64[::1], Segments)")
def lay_out_cells(slices, begin, offset, segments, cells, found):  # type: ignore[no-untyped-def]
    """Write where the samples of cells are; returns how many they are.

    `offset` has the sorted position of the first sample of each cell's bin.
    """
    n_samples = 0
    for k in range(len(cells)):
        u = cells[k]
        is_later = u > slices.first[segments[k]]
        position = slices.last[u - 1] + 1 if is_later else offset[k]
        count = slices.last[u] - position + 1
        found.start[k], found.n_samples[k], found.position[k] = begin[u], count, position
        found.first[k] = n_samples
        n_samples += count
    return n_samples


@kernel("int64(Values, int64[::1], int32[::1], Segments, int32[::1], int64[::1])")
def pick_keys(values, features, order, segments, samples, keys):  # type: ignore[no-untyped-def]
    """Write the samples of some parts; returns how many parts are not sorted.

    In a sorted part the sign bit of a sample is set if the next one has the same value. For the
    other parts, the samples' keys are written, if kernels can read the values.
    """
    n_unsorted = 0
    for t in range(len(features)):
        feature, first, start = features[t], segments.first[t], segments.start[t]
        n = segments.n_samples[t]
        if order[start + n - 1] & (SAMPLE + 1):
            for k in range(n):
                marked = order[start + k]
                mark = 0 if marked & (SAMPLE + 1) else -2 * (SAMPLE + 1)
                samples[first + k] = (marked & SAMPLE) | mark
            continue
        n_unsorted += 1
        for k in range(n):
            sample = np.int64(order[start + k] & SAMPLE)
            samples[first + k] = sample
            if values.address != 0:
                keys[first + k] = key_at(values, sample, feature)
    return n_unsorted


@kernel("void(int64[::1], Segments, int32[::1], int32[::1])")
def sort_parts(keys, segments, order, samples):  # type: ignore[no-untyped-def]
    """Sort the samples of each part by their keys, unless they are sorted in the order already.

    Those whose next one has the same key are marked, and the order is sorted alike. Parts are
    small, so Shell's sort is fast enough.
    """
    for t in range(len(segments.first)):
        start, n = segments.first[t], segments.n_samples[t]
        end, ahead = start + n, segments.start[t] - start
        if order[ahead + end - 1] & (SAMPLE + 1):
            continue
        gap = 1
        while gap < n // 3:
            gap = 3 * gap + 1
        while gap > 0:
            for k in range(start + gap, end):
                key, sample, at = keys[k], samples[k], k
                while at >= start + gap and keys[at - gap] > key:
                    keys[at], samples[at] = keys[at - gap], samples[at - gap]
                    at -= gap
                keys[at], samples[at] = key, sample
            gap //= 3
        for k in range(start, end):
            is_end, sample = k + 1 == end, samples[k]
            is_last = is_end or keys[k] != keys[k + 1]
            of_part = 0 if is_end else -2 * (SAMPLE + 1)
            order[ahead + k] = sample | of_part | (SAMPLE + 1 if is_last else 0)
            samples[k] = sample | (0 if is_last else -2 * (SAMPLE + 1))


# The kernels below write a cell's numbers after its last sample. With unsigned indices Numba needs
# no check for negative ones.


@inner("void(int32[::1], Segments, int64, CellSums)")
def find_cells(order, segments, t, cells):  # type: ignore[no-untyped-def]
    """Find where the cells of a segment begin and end."""
    start, count, position = segments.start[t], segments.n_samples[t], segments.position[t]
    u, begin = np.uint64(segments.first[t]), 0
    for k in range(count):
        if order[np.uint64(start + k)] >= 0:
            cells.begin[u] = start + begin
            cells.last[u] = position + k
            cells.is_open[u] = np.uint8(cells.are_parts) & np.uint8(k > begin)
            u += np.uint64(1)
            begin = k + 1
    cells.n_cells[t] = np.int64(u) - segments.first[t]


@inner("void(int32[::1], int64[::1], int64[::1], int64[:, ::1], int64)")
def _add_up(order, gradient, hessian, sums, first):  # type: ignore[no-untyped-def]
    """Add up the integers of an output over the cells of an order, `first` and those after it.

    Both integers at once, if there are two: a sample's are far from those of the next one.
    """
    u, has_hessians = np.uint64(first), len(hessian) > 0
    total, positive, curves, of_positive = 0, 0, 0, 0
    last = np.uint64(len(order) - 1)
    for k in range(len(order)):
        soon = np.uint64(order[min(np.uint64(k) + _AHEAD, last)] & SAMPLE)
        prefetch(gradient, soon)
        if has_hessians:
            prefetch(hessian, soon)
        i = np.uint64(order[k] & SAMPLE)
        own = gradient[i]
        total += own
        positive += max(own, 0)
        if has_hessians:
            curve = hessian[i]
            curves += curve
            of_positive += curve & -np.int64(own > 0)
        if order[k] >= 0:
            sums[0, u], sums[1, u] = positive, positive - total
            if has_hessians:
                sums[2, u], sums[3, u] = of_positive, curves - of_positive
            total, positive, curves, of_positive = 0, 0, 0, 0
            u += np.uint64(1)


@parallel("void(int64, Terms, int32[::1], Segments, int64, CellSums)")
def add_up_terms(piece, terms, order, segments, size, cells):  # type: ignore[no-untyped-def]
    """Add up all terms over the cells of a piece of the segments."""
    low, high = piece * size, min((piece + 1) * size, len(segments.start))
    nothing, n_planes = np.empty(0, dtype=np.int64), 4 if len(terms.hessian) > 0 else 2
    for t in range(low, high):
        find_cells(order, segments, t, cells)
        own = order[segments.start[t] : segments.start[t] + segments.n_samples[t]]
        for k in range(len(terms.gradient)):
            hessian = terms.hessian[k] if len(terms.hessian) > 0 else nothing
            sums = cells.sums[n_planes * k :]
            _add_up(own, terms.gradient[k], hessian, sums, segments.first[t])
