"""Answers to a search's questions from codes: the sums over the parts of bins, and over samples.

The sums over all bins come from histograms, which are updated when the samples' weights change. For
the sums over parts and samples, the samples of the bins in question are read one by one: in the
order of their codes, or of their values (see `slices`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.engines.cpu.codes import CodedTable
from gpustump.engines.cpu.columns import PART_BITS
from gpustump.engines.cpu.compiling import Integers, group, kernel
from gpustump.engines.cpu.members import POSITIONS
from gpustump.engines.cpu.slices import EXACT, UNKNOWN, Answer, Planes, Slices
from gpustump.engines.cpu.sorted_bins import SortedSamples
from gpustump.engines.cpu.terms import Terms
from gpustump.engines.threads import ranges

_SAMPLES_AT_ONCE = 2**14
"""Fewer samples than this are not worth another thread."""


@group
class Stretches(NamedTuple):
    """Where the samples of some stretches are in an order of samples.

    Attributes
    ----------
    start, n_samples : ndarray (n_stretches,) of int64
        The place of the first sample in the order, and how many there are.
    position : ndarray (n_stretches,) of int64
        The sorted position of the first sample among all samples of the feature.
    """

    start: Integers
    n_samples: Integers
    position: Integers


class Located(NamedTuple):
    """Where the samples of units are.

    Attributes
    ----------
    order : ndarray of int32 or int64
        An order of samples. The sign bit of a sample is set if the next one is of the same unit.
    begin : ndarray (n_units,) of int64
        The place in it at which each unit begins.
    """

    order: np.ndarray
    begin: np.ndarray


@dataclass(frozen=True)
class CodedPlace:
    """A coded table, with the integers of a round; see `search.Place`.

    Attributes
    ----------
    table : CodedTable
    weigh : callable
        Adds up the integers of stretches of an order: `(order, stretches, low, high, units)`.
    n_planes : int
    """

    table: CodedTable
    weigh: Callable[..., None]
    n_planes: int
    bins_at_once: ClassVar[int] = 32

    @classmethod
    def of_signed(cls, table: CodedTable, signed: np.ndarray) -> CodedPlace:
        """From weights (n_samples,) in units of the integers, each with the sign of its label."""

        def weigh(order: np.ndarray, *rest: object) -> None:
            _weigh_signed(order, signed, *rest)

        return cls(table, weigh, 2)

    @classmethod
    def of_terms(cls, table: CodedTable, terms: Terms) -> CodedPlace:
        """From the two integers of each sample and output."""

        def weigh(order: np.ndarray, *rest: object) -> None:
            _weigh_terms(order, terms, *rest)

        return cls(table, weigh, (4 if len(terms.second) else 2) * len(terms.first))

    def parts(self, slots: np.ndarray, features: np.ndarray) -> Iterator[Answer]:
        """The sums over the parts of some bins.

        For features whose samples are not stored in the order of their codes, the sums over the
        distinct values.
        """
        table, layout = self.table, self.table.layout
        has_parts = table.bundles.is_wide[features] > 0
        if table.parted is None:
            has_parts[:] = False
        else:
            has_parts[has_parts] = table.parted.prepare(features[has_parts], table.team)
        if has_parts.any():
            assert table.parted is not None
            own, of = slots[has_parts], features[has_parts]
            starts = table.bundles.column[of] * table.n_samples + layout.offset[own]
            stretches = Stretches(starts, layout.n_inside(own), layout.offset[own])
            yield self._answer(own, of, table.parted.order, stretches, most=1 << PART_BITS)
        others = np.unique(features[~has_parts]).tolist()
        slots_of = {feature: slots[features == feature] for feature in others}
        in_order: dict[int, SortedSamples] = {}

        def sort(feature: int) -> None:
            bins = slots_of[feature] - layout.first[feature]
            in_order[feature] = table.bins.sorted_bins(feature, bins)

        table.team.each(sort, others)
        for feature, own in slots_of.items():
            order, starts, _ = in_order[feature]
            stretches = Stretches(starts, layout.n_inside(own), layout.offset[own])
            yield self._answer(own, np.full(len(own), feature), order, stretches)

    def samples(self, answer: Answer, stretches: np.ndarray, units: np.ndarray) -> Answer:
        """The sums over the distinct values in some open units; each unit becomes a stretch."""
        slices = answer.slices
        feature = slices.feature[stretches]
        first = slices.first[stretches]
        begin = answer.where.begin[units]
        before = np.where(units > first, slices.last[units - 1], 0)
        offset = self.table.layout.offset[answer.slots[stretches]]
        position = np.where(units > first, before + 1, offset)
        count = slices.last[units] - position + 1
        order = self._by_value(answer.where.order, feature, begin, count)
        starts = np.cumsum(count) - count
        return self._answer(
            answer.slots[stretches], feature, order, Stretches(starts, count, position)
        )

    def _by_value(
        self, order: np.ndarray, feature: np.ndarray, begin: np.ndarray, count: np.ndarray
    ) -> np.ndarray:
        """The samples of some units by increasing value, unit after unit.

        The sign bit of a sample is set if the next one has the same value.
        """
        unit = np.repeat(np.arange(len(count)), count)
        within = np.arange(len(unit)) - np.repeat(np.cumsum(count) - count, count)
        samples: np.ndarray = order[begin[unit] + within] & np.iinfo(order.dtype).max
        keys = arrays.order_keys(self.table.source.picked(samples, feature[unit]))
        _sort_units(keys.astype(np.int64), np.cumsum(count), samples)
        return samples

    def _pieces(self, stretches: Stretches) -> list[tuple[int, int]]:
        """The stretches in pieces for the threads to take."""
        n_stretches = len(stretches.start)
        n_pieces = min(2 * self.table.team.size, int(stretches.n_samples.sum()) // _SAMPLES_AT_ONCE)
        return ranges(n_stretches, -(-n_stretches // max(1, n_pieces)))

    def _answer(
        self,
        slots: np.ndarray,
        feature: np.ndarray,
        order: np.ndarray,
        stretches: Stretches,
        most: int | None = None,
    ) -> Answer:
        """Add up the units; `most` is how many parts a bin has, None if units are values."""
        room = stretches.n_samples if most is None else np.minimum(stretches.n_samples, most)
        first = np.cumsum(room) - room
        n_units = int(room.sum())
        sums = np.zeros((self.n_planes, n_units), dtype=np.int64)
        units = _Units(
            np.empty(n_units, np.int64), np.empty(n_units, np.int64), first,
            np.empty(len(first), np.int64), sums,
        )  # fmt: skip
        self.table.team.each(
            lambda part: self.weigh(order, stretches, *part, units),
            self._pieces(stretches),
        )
        is_open = np.zeros(n_units, dtype=np.uint8)
        if most is not None:
            _open_units(units, stretches, is_open)
        slices = Slices(
            feature, first, units.n_units, sums, EXACT, sums[0], sums[1], UNKNOWN, units.last,
            is_open,
        )  # fmt: skip
        return Answer(slices, slots, Located(order, units.begin))


@group
class _Units(NamedTuple):
    """The fields of `Located` and `Slices` that kernels write for the units of some stretches."""

    begin: Integers
    last: Integers
    first: Integers
    n_units: Integers
    sums: Planes


@kernel("void(_Units, Stretches, uint8[::1])")
def _open_units(units, stretches, is_open):  # type: ignore[no-untyped-def]
    """Mark the units of several samples."""
    for t in range(len(units.first)):
        before = stretches.position[t] - 1
        for u in range(units.first[t], units.first[t] + units.n_units[t]):
            is_open[u] = units.last[u] - before > 1
            before = units.last[u]


@kernel("void(int64[::1], int64[::1], POSITION[::1])", POSITION=POSITIONS)
def _sort_units(keys, ends, samples):  # type: ignore[no-untyped-def]
    """Sort the samples of each unit by their keys; mark those whose next one has the same key.

    Units are small, so Shell's sort is fast enough.
    """
    start = 0
    for end in ends:
        gap = 1
        while gap < (end - start) // 3:
            gap = 3 * gap + 1
        while gap > 0:
            for k in range(start + gap, end):
                key, sample, at = keys[k], samples[k], k
                while at >= start + gap and keys[at - gap] > key:
                    keys[at], samples[at] = keys[at - gap], samples[at - gap]
                    at -= gap
                keys[at], samples[at] = key, sample
            gap //= 3
        for k in range(start, end - 1):
            if keys[k] == keys[k + 1]:
                samples[k] |= -(1 << 31) if samples.itemsize == 4 else -(1 << 63)
        start = end


@kernel("void(POSITION[::1], Stretches, int64, _Units)", POSITION=POSITIONS)
def _find_units(order, stretches, t, units):  # type: ignore[no-untyped-def]
    """Find where the units of a stretch begin and end."""
    start, u = stretches.start[t], units.first[t]
    begin = start
    for k in range(start, start + stretches.n_samples[t]):
        if order[np.uint64(k)] >= 0:
            units.begin[u] = begin
            units.last[u] = stretches.position[t] + k - start
            u += 1
            begin = k + 1
    units.n_units[t] = u - units.first[t]


@kernel("int64(POSITION[::1], float64[::1], int64, int64, int64[::1])", POSITION=POSITIONS)
def _pick_signed(order, signed, start, count, picked):  # type: ignore[no-untyped-def]
    """Write the integers of some samples to `picked`, each with the sign of its label.

    No step of the loop depends on another, so the processor loads many samples at the same time.
    """
    low = 0x7FFFFFFF if order.itemsize == 4 else 0x7FFFFFFFFFFFFFFF
    for k in range(count):
        weight = signed[np.uint64(order[start + k] & low)]
        whole = np.int64(np.ceil(abs(weight)))
        picked[k] = whole if weight > 0.0 else -whole
    return count


@kernel("int64(POSITION[::1], int64[::1], int64, int64, int64[::1])", POSITION=POSITIONS)
def _pick(order, numbers, start, count, picked):  # type: ignore[no-untyped-def]
    """Write the numbers of some samples to `picked`."""
    low = 0x7FFFFFFF if order.itemsize == 4 else 0x7FFFFFFFFFFFFFFF
    for k in range(count):
        picked[k] = numbers[np.uint64(order[start + k] & low)]
    return count


@kernel("void(_Units, Stretches, int64, int64, int64[::1], int64[::1])")
def _add_up_units(units, stretches, t, plane, signs, numbers):  # type: ignore[no-untyped-def]
    """Add up the sizes of the numbers over the units of a stretch, by the samples' signs.

    The sums of positive samples go into `plane`, those of negative ones into the next plane.
    """
    start = stretches.start[t]
    positives, negatives = units.sums[plane], units.sums[plane + 1]
    end = units.first[t] + units.n_units[t]
    for u in range(units.first[t], end):
        last = units.begin[u + 1] if u + 1 < end else start + stretches.n_samples[t]
        positive, negative = 0, 0
        for k in range(units.begin[u] - start, last - start):
            number = abs(numbers[k])
            positive += number if signs[k] > 0 else 0
            negative += number if signs[k] < 0 else 0
        positives[u], negatives[u] = positive, negative


@kernel("int64(Stretches, int64, int64)")
def _longest(stretches, low, high):  # type: ignore[no-untyped-def]
    longest = 0
    for t in range(low, high):
        longest = max(longest, stretches.n_samples[t])
    return longest


@kernel("void(POSITION[::1], float64[::1], Stretches, int64, int64, _Units)", POSITION=POSITIONS)
def _weigh_signed(order, signed, stretches, low, high, units):  # type: ignore[no-untyped-def]
    """Add up the positive and the negative weight of the units of stretches `low` to `high`."""
    picked = np.empty(_longest(stretches, low, high), dtype=np.int64)
    for t in range(low, high):
        _find_units(order, stretches, t, units)
        _pick_signed(order, signed, stretches.start[t], stretches.n_samples[t], picked)
        _add_up_units(units, stretches, t, 0, picked, picked)


@kernel("void(POSITION[::1], Terms, Stretches, int64, int64, _Units)", POSITION=POSITIONS)
def _weigh_terms(order, terms, stretches, low, high, units):  # type: ignore[no-untyped-def]
    """Add up all terms over the units of stretches `low` to `high`."""
    has_second = len(terms.second) > 0
    longest = _longest(stretches, low, high)
    first, second = np.empty(longest, dtype=np.int64), np.empty(longest, dtype=np.int64)
    for t in range(low, high):
        _find_units(order, stretches, t, units)
        start, count = stretches.start[t], stretches.n_samples[t]
        for output in range(len(terms.first)):
            plane = 4 * output if has_second else 2 * output
            _pick(order, terms.first[output], start, count, first)
            _add_up_units(units, stretches, t, plane, first, first)
            if has_second:
                _pick(order, terms.second[output], start, count, second)
                _add_up_units(units, stretches, t, plane + 2, first, second)
