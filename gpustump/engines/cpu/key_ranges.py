"""The samples of a coded table whose values lie in ranges of keys, and sums over units of them.

With these a shard of a larger table answers questions: units follow from keys, not from the samples
of this shard (see `cluster.questions`). As in `places`, the samples of a bin are read in the order
of their codes, or found among all codes. They are kept for a while, as bins that may hold the best
cut of a round often may hold that of another one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.engines.cpu.codes import CodedTable
from gpustump.engines.cpu.columns import PART_BITS
from gpustump.engines.cpu.compiling import Integers, group, kernel
from gpustump.engines.cpu.members import POSITIONS, positions_of, without_marks
from gpustump.engines.cpu.terms import Terms
from gpustump.engines.threads import Team, ranges
from gpustump.learners.hypothesis import MISSING, Partition
from gpustump.learners.thresholds import rounded_down

_VALUES_AT_ONCE = 2**18
"""Values whose regions one thread finds at a time."""


_KEPT = 8
"""How many samples of bins are kept, as a multiple of the table's samples. On noise, 500 000 x 50,
they last for about 100 rounds of discrete votes."""


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
        Keys with the same `(key - low) >> shift` form a unit; if it is negative, each sample does.
    """

    first: Integers
    low: Integers
    high: Integers
    shift: Integers


class Found(NamedTuple):
    """The samples of some bins, bin after bin; arrays of int64.

    Attributes
    ----------
    samples : ndarray (n,)
    ends : ndarray (n_bins,)
        Where those of each bin end.
    """

    samples: np.ndarray
    ends: np.ndarray


class Grouped(NamedTuple):
    """Units that hold samples; arrays (n_units,) of int64.

    Attributes
    ----------
    range : ndarray
    number : ndarray
        The unit's number in its range; `key - low` if each sample is a unit.
    size : ndarray
    low, high : ndarray
        The smallest and the largest key.
    """

    range: np.ndarray
    number: np.ndarray
    size: np.ndarray
    low: np.ndarray
    high: np.ndarray


def samples_of_bins(table: CodedTable, feature: np.ndarray, bins: np.ndarray) -> Found:
    """All samples of some bins, given by features and numbers (n_bins,), in order and once each."""
    layout, is_wide = table.layout, table.bundles.is_wide[feature] > 0
    slots = layout.first[feature] + bins
    count = layout.n_inside(slots)
    end = np.cumsum(count)
    found = np.empty(int(end[-1]) if len(end) else 0, dtype=np.int64)
    is_ready = table.are_in_order(feature)
    own = np.flatnonzero(is_ready)
    if len(own):
        assert table.parted is not None
        start = table.bundles.column[feature[own]] * table.n_samples + layout.offset[slots[own]]
        _pick(table.parted.order, start, count[own], (end - count)[own], found)

    def look_for(one: int) -> None:
        own = np.flatnonzero((feature == one) & ~is_ready)
        place = np.full(int(layout.n_bins[one]) + 1, -1)
        place[bins[own]] = own
        by_code = table.bundles.by_code(one, place)
        _find(table.codes_of(one), PART_BITS * int(is_wide[own[0]]), by_code, end - count, found)

    table.team.each(look_for, np.unique(feature[~is_ready]).tolist())
    return Found(found, end)


class KnownBins:
    """The samples of bins that were asked about, with their keys.

    Of the samples that 100 rounds ask about, half to three quarters are in bins that an earlier
    round has asked about. If there is no more room, all bins are forgotten.

    Parameters
    ----------
    table : CodedTable
    kept : int
        How many samples are kept, as a multiple of the table's samples.
    """

    def __init__(self, table: CodedTable, kept: int = _KEPT) -> None:
        self._table = table
        room = table.n_samples * min(kept, table.n_features)  # memory is taken as it is filled
        self._samples = np.empty(room, dtype=positions_of(table.n_samples))
        self._keys = np.empty(room, dtype=table.source.bits[0].dtype)
        self._begin = np.full(len(table.layout.offset), -1)  # of each slot; -1 if it is not kept
        self._end = 0

    def of(self, feature: np.ndarray, bins: np.ndarray) -> tuple[Found, np.ndarray]:
        """What `samples_of_bins` and `keys_of` return for some bins."""
        layout = self._table.layout
        slots = layout.first[feature] + bins
        count = layout.n_inside(slots)
        ends = np.cumsum(count)
        new = np.flatnonzero(self._begin[slots] < 0)
        if self._end + count[new].sum() > len(self._keys):
            self._begin[:], self._end = -1, 0
            new = np.arange(len(slots))
        if count[new].sum() > len(self._keys):
            return self._looked_up(feature, bins)
        if len(new):
            self._keep(slots[new], *self._looked_up(feature[new], bins[new]))
        samples, keys = (np.empty(int(count.sum()), dtype=np.int64) for _ in range(2))
        for kept, found in ((self._samples, samples), (self._keys, keys)):
            _copy(kept, self._begin[slots], count, found)
        return Found(samples, ends), keys

    def _looked_up(self, feature: np.ndarray, bins: np.ndarray) -> tuple[Found, np.ndarray]:
        found = samples_of_bins(self._table, feature, bins)
        return found, keys_of(self._table, found, feature)

    def _keep(self, slots: np.ndarray, found: Found, keys: np.ndarray) -> None:
        end = self._end + len(keys)
        self._samples[self._end : end], self._keys[self._end : end] = found.samples, keys
        self._begin[slots] = self._end + np.append(0, found.ends[:-1])
        self._end = end


def grouped(keys: np.ndarray, ends: np.ndarray, about: KeyRanges) -> tuple[Grouped, np.ndarray]:
    """Group samples into units.

    Parameters
    ----------
    keys : ndarray (n,) of int64
        The keys of the samples, bin after bin.
    ends : ndarray (n_bins,) of int64
        Where those of each bin end.
    about : KeyRanges

    Returns
    -------
    Grouped
    ndarray (n,) of int64
        The unit of each sample; -1 if it is in none of the ranges.
    """
    unit = np.empty(len(keys), dtype=np.int64)
    inside = np.zeros(len(about.low), dtype=np.int64)
    _assign_ranges(keys, ends, about, unit, inside)
    width = (about.high - about.low).view(np.uint64)  # perhaps beyond 2**63
    steps = width >> np.maximum(about.shift, 0).view(np.uint64)
    room = np.where(about.shift < 0, inside, steps.view(np.int64) + 1)
    base = np.cumsum(room) - room
    n_units = int(room.sum())
    number, count = np.empty(n_units, dtype=np.int64), np.zeros(n_units, dtype=np.int64)
    low, high = (np.empty(n_units, dtype=np.int64) for _ in range(2))
    _assign_units(keys, about, base, unit, number, count, low, high)
    kept = np.flatnonzero(count)
    new = np.empty(n_units, dtype=np.int64)
    new[kept] = np.arange(len(kept))
    _renumber(unit, new)
    of_range = np.repeat(np.arange(len(room)), room)
    parts = (part[kept] for part in (of_range, number, count, low, high))
    return Grouped(*parts), unit


def unit_sums(terms: Terms, samples: np.ndarray, unit: np.ndarray, n_units: int) -> np.ndarray:
    """The sums over units, (n_planes, n_units), in the planes of `cluster.questions.planes_of`."""
    has_second = len(terms.second) > 0
    width = 3 if has_second else 2
    sums = np.zeros((width * len(terms.first), n_units), dtype=np.int64)
    for output in range(len(terms.first)):
        plane = width * output
        _add_first(terms.first[output], samples, unit, plane, sums)
        if has_second:
            _add_second(terms.second[output], samples, unit, plane + 2, sums)
    return sums


def signed_unit_sums(
    signed: np.ndarray, samples: np.ndarray, unit: np.ndarray, n_units: int
) -> np.ndarray:
    """The same for weights in units of the integers, each with the sign of its label."""
    sums = np.zeros((2, n_units), dtype=np.int64)
    _add_signed(signed, samples, unit, sums)
    return sums


def keys_of(table: CodedTable, found: Found, features: np.ndarray) -> np.ndarray:
    """The keys of the samples of some bins as int64, each bin's of its own feature."""
    keys = np.empty(len(found.samples), dtype=np.int64)
    _look_up(*table.source.bits, features, found.ends, found.samples, keys)
    return keys


def regions_of(values: np.ndarray, hypothesis: Partition, team: Team) -> np.ndarray:
    """The region of each of a feature's values, (n_samples,) of uint8.

    The values are float32 or float64; see `learners.hypothesis.regions`.
    """
    dtype = str(values.dtype)
    bits = values.view(dtype.replace("float", "int"))
    ends = arrays.order_keys(rounded_down(np.asarray(hypothesis.thresholds), dtype))
    slices = np.asarray(hypothesis.slices, dtype=np.uint8)
    found = np.empty(len(values), dtype=np.uint8)
    missing = bits.dtype.type(arrays.missing_key(dtype))
    part_by = _part_in_two if len(ends) == 1 else _part_values
    team.each(
        lambda part: part_by(bits, ends, slices, missing, found, *part),
        ranges(len(values), _VALUES_AT_ONCE),
    )
    return found


@kernel(
    "void(Array(KEY, 1, 'C', readonly=True), KEY[::1], uint8[::1], KEY, uint8[::1], int64, int64)",
    KEY=("int32", "int64"),
)
def _part_values(bits, ends, slices, missing, found, low, high):  # type: ignore[no-untyped-def]
    """The regions of values `low` to `high` by their bit patterns; see `arrays.order_keys`."""
    lowest = -missing - 1
    infinity = 0x7F800000 if missing == 0x7FFFFFFF else 0x7FF0000000000000
    own, given = bits[low:high], found[low:high]
    last = slices[len(ends)]
    for i in range(len(own)):
        bit = own[i]
        key = bit if bit >= 0 else lowest - bit
        region = last
        for k in range(len(ends) - 1, -1, -1):
            region = slices[k] if key <= ends[k] else region
        is_missing = key > infinity or key < -infinity
        given[i] = np.uint8(MISSING) if is_missing else region


@kernel(
    "void(Array(KEY, 1, 'C', readonly=True), KEY[::1], uint8[::1], KEY, uint8[::1], int64, int64)",
    KEY=("int32", "int64"),
)
def _part_in_two(bits, ends, slices, missing, found, low, high):  # type: ignore[no-untyped-def]
    """The same for one threshold, without an inner loop: several values at a time."""
    lowest = -missing - 1
    infinity = 0x7F800000 if missing == 0x7FFFFFFF else 0x7FF0000000000000
    own, given = bits[low:high], found[low:high]
    end, first, second = ends[0], slices[0], slices[1]
    for i in range(len(own)):
        bit = own[i]
        key = bit if bit >= 0 else lowest - bit
        region = first if key <= end else second
        is_missing = (key > infinity) | (key < -infinity)
        given[i] = np.uint8(MISSING) if is_missing else region


@kernel("void(POSITION[::1], int64[::1], int64[::1], int64[::1], int64[::1])", POSITION=POSITIONS)
def _pick(order, start, count, to, found):  # type: ignore[no-untyped-def]
    """Copy stretches of an order of samples, without their marks."""
    low = without_marks(order)
    for t in range(len(start)):
        for k in range(count[t]):
            found[to[t] + k] = order[start[t] + k] & low


@kernel("void(NUMBER[::1], int64[::1], int64[::1], int64[::1])", NUMBER=("int32", "int64"))
def _copy(numbers, begin, count, found):  # type: ignore[no-untyped-def]
    """Copy stretches of numbers, one after the other."""
    end = 0
    for t in range(len(begin)):
        for k in range(begin[t], begin[t] + count[t]):
            found[end] = numbers[k]
            end += 1


@kernel("void(CODE[::1], int64, int64[::1], int64[::1], int64[::1])", CODE=("uint8", "uint16"))
def _find(codes, shift, by_code, start, found):  # type: ignore[no-untyped-def]
    """List the samples of the bins to which `by_code` gives an index, from `start[index]` on."""
    cursor = start.copy()
    for i in range(len(codes)):
        place = by_code[codes[i] >> shift]
        if place >= 0:
            found[cursor[place]] = i
            cursor[place] += 1


@kernel(
    "void(Array(BITS, 2, 'A', readonly=True), int64[::1], int64, int64[::1], int64[::1],"
    " int64[::1], int64[::1])",
    BITS=("int32", "int64"),
)
def _look_up(bits, rows, lowest, features, ends, samples, keys):  # type: ignore[no-untyped-def]
    """The keys of samples by their bit patterns; see `arrays.order_keys`."""
    start = 0
    for t in range(len(ends)):
        column = bits[:, features[t]]
        for i in range(start, ends[t]):
            row = rows[samples[i]] if len(rows) > 0 else samples[i]
            bit = np.int64(column[row])
            keys[i] = bit if bit >= 0 else lowest - bit
        start = ends[t]


@kernel("void(int64[::1], int64[::1], KeyRanges, int64[::1], int64[::1])")
def _assign_ranges(keys, ends, ranges, found, inside):  # type: ignore[no-untyped-def]
    """The range of each sample, -1 if it is in none, and how many samples are in each."""
    start = 0
    for t in range(len(ends)):
        first, end = ranges.first[t], ranges.first[t + 1]
        for i in range(start, ends[t]):
            key, low, high = keys[i], first, end
            while high - low > 1:
                middle = (low + high) >> 1
                if ranges.low[middle] <= key:
                    low = middle
                else:
                    high = middle
            is_inside = high > low and ranges.low[low] <= key and key <= ranges.high[low]
            found[i] = low if is_inside else -1
            if is_inside:
                inside[low] += 1
        start = ends[t]


@kernel(
    "void(int64[::1], KeyRanges, int64[::1], int64[::1], int64[::1], int64[::1], int64[::1],"
    " int64[::1])"
)
def _assign_units(keys, ranges, base, unit, number, count, low, high):  # type: ignore[no-untyped-def]
    """Replace the range of each sample by its unit, and describe the units."""
    cursor = base.copy()
    for i in range(len(keys)):
        r = unit[i]
        if r < 0:
            continue
        key = keys[i]
        offset = np.uint64(key) - np.uint64(ranges.low[r])  # perhaps beyond 2**63
        if ranges.shift[r] < 0:
            own = cursor[r]
            cursor[r] += 1
        else:
            offset >>= np.uint64(ranges.shift[r])
            own = base[r] + np.int64(offset)
        unit[i] = own
        low[own] = key if count[own] == 0 else min(low[own], key)
        high[own] = key if count[own] == 0 else max(high[own], key)
        number[own] = np.int64(offset)
        count[own] += 1


@kernel("void(int64[::1], int64[::1])")
def _renumber(unit, new):  # type: ignore[no-untyped-def]
    for i in range(len(unit)):
        if unit[i] >= 0:
            unit[i] = new[unit[i]]


@kernel("void(int64[::1], int64[::1], int64[::1], int64, int64[:, ::1])")
def _add_first(first, samples, unit, plane, sums):  # type: ignore[no-untyped-def]
    """Add the sizes of positive integers to one plane, those of negative ones to the next.

    Signs are not asked for: a processor cannot guess them.
    """
    for i in range(len(samples)):
        if unit[i] >= 0:
            own = first[samples[i]]
            sums[plane + np.int64(own < 0), unit[i]] += abs(own)


@kernel("void(float64[::1], int64[::1], int64[::1], int64[:, ::1])")
def _add_signed(signed, samples, unit, sums):  # type: ignore[no-untyped-def]
    """The same for weights that are yet to be rounded up."""
    for i in range(len(samples)):
        if unit[i] >= 0:
            own = signed[samples[i]]
            sums[np.int64(own < 0.0), unit[i]] += np.int64(np.ceil(abs(own)))


@kernel("void(int64[::1], int64[::1], int64[::1], int64, int64[:, ::1])")
def _add_second(second, samples, unit, plane, sums):  # type: ignore[no-untyped-def]
    own = sums[plane]
    for i in range(len(samples)):
        if unit[i] >= 0:
            own[unit[i]] += second[samples[i]]
