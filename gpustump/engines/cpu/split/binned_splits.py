"""Newton votes on a table that is sorted and coded: the best split, found in one kernel call.

In every round the integers of all samples are added up by the codes of a column, in bins of few
samples. That yields the sums at the edges of the bins of its features. Inside a bin the sums lie in
a rectangle between those at its edges, and the score is convex, so the corners of the rectangle
bound it (see `unit_scores`). Only bins whose bound reaches the best score so far are searched:
their samples are added up in the order of their values. All of this is done for one column after
the other, while its sums are in the nearest cache.

Bounds and the scores at edges are computed in float32, with one division for each side of an edge,
and rounded outwards. For the cuts that they do not rule out, the score is computed by the formula
of `split_scores`, so it has the bits of the reference's, and ties are broken as `contract.Cut`
says. The order of the columns decides how many bins are searched, not what is found; the column
that had the best split in the last round comes first.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from gpustump.engines.contract import Cut, Search
from gpustump.engines.cpu.loss.terms import Terms
from gpustump.engines.cpu.runtime.compiling import Bytes, Floats, Integers, group, kernel
from gpustump.engines.cpu.split.binned_rows import (
    add_one,
    add_one_to_four,
    add_positive,
    add_row,
    add_several,
    pack_one,
    pack_several,
    positive_width,
    row_width,
)
from gpustump.engines.cpu.split.part_bounds import NO_SCORE
from gpustump.engines.cpu.split.split_scores import gain
from gpustump.engines.cpu.table.codes import CodedTable
from gpustump.engines.cpu.table.columns import NARROW_BINS, aligned
from gpustump.engines.threads import Team, ranges

_ADDITIONS_AT_ONCE = 2**22
"""How many additions, about half a millisecond, are worth another thread. With fewer, one thread
alone is better, as its rounds can be made ahead, without Python (see `rounds_ahead`)."""

_UNIT = np.float32(2.0**-62)
"""One unit, as a share of the largest sum."""

_WIDER, _WIDER_BY_OUTPUT, _LEAST = 2.0**-18, 2.0**-22, 2.0**-110
"""By what shares, and by how much, bounds in float32 are widened. Their computation has fewer than
20 roundings of 2**-24, and one more for each output; numbers below 2**-126 may become 0."""

_COLUMNS_OF_ONE = 4
"""How many columns are added up at once with one output."""

Numbers = Annotated[np.ndarray, "int64[:, ::1]"]
Singles = Annotated[np.ndarray, "float32[::1]"]


@group
class BinnedColumns(NamedTuple):
    """The columns of a table, their features and bins; see `bundles.Bundles` and `BinLayout`.

    Attributes
    ----------
    codes : ndarray (n_columns, n_samples) of uint8
    order : ndarray (n_features, n_samples) of int32
        As `SortedTable.order`.
    features : ndarray (n_features,) of int64
        The features of the first column, then those of the next.
    begin : ndarray (n_columns + 1,) of int64
        Where in `features` each column begins.
    missing_code, default, entry, entry_codes, entry_slots
        Of `Bundles`.
    first, n_bins, offset, is_open
        Of `BinLayout`.
    has_open : ndarray (n_features,) of uint8
        Whether there may be cuts inside some bin.
    n_codes : ndarray (n_columns,) of int64
        All codes of a column are below this.
    column_has_open : ndarray (n_columns,) of uint8
        Whether `has_open` holds for one of a column's features.
    most_inside : int
        The largest number of samples in a bin.
    """

    codes: Annotated[np.ndarray, "uint8[:, ::1]"]
    order: Annotated[np.ndarray, "int32[:, ::1]"]
    features: Integers
    begin: Integers
    missing_code: Integers
    default: Integers
    entry: Integers
    entry_codes: Bytes
    entry_slots: Bytes
    first: Integers
    n_bins: Integers
    offset: Integers
    is_open: Bytes
    has_open: Bytes
    n_codes: Integers
    column_has_open: Bytes
    most_inside: int

    @classmethod
    def of(cls, coded: CodedTable, order: np.ndarray) -> BinnedColumns:
        """Of a table that is coded in bytes, and sorted."""
        bundles, layout, codes = coded.bundles, coded.layout, coded.columns.narrow
        n_inside = layout.last - layout.offset + 1
        n_inside[layout.first + layout.n_bins] = 0
        has_open = np.logical_or.reduceat(layout.has_inner_split, layout.first)
        n_columns = len(codes)
        column_has_open = np.zeros(n_columns, dtype=np.uint8)
        np.logical_or.at(column_has_open, bundles.column, has_open)
        return cls(
            codes, order,
            np.argsort(bundles.column, kind="stable"),
            np.searchsorted(np.sort(bundles.column), np.arange(n_columns + 1)),
            bundles.missing_code, bundles.default, bundles.entry, bundles.codes, bundles.slots,
            layout.first, layout.n_bins, layout.offset, layout.has_inner_split,
            has_open.astype(np.uint8), codes.max(axis=1).astype(np.int64) + 1, column_has_open,
            int(n_inside.max(initial=0)),
        )  # fmt: skip


@group
class Rows(NamedTuple):
    """The integers of a round, sample by sample; see `binned_rows`.

    Attributes
    ----------
    rows : ndarray (n_samples * width,) of int64
    total : ndarray (width,) of int64
        The sum of all rows.
    positive : ndarray (n_samples,) of int64
        The positive first integer; empty with one output.
    classes : ndarray (n_samples,) of uint16
        The output whose first integer is positive; empty with one output.
    """

    rows: Integers
    total: Integers
    positive: Integers
    classes: Annotated[np.ndarray, "uint16[::1]"]

    @classmethod
    def empty(cls, first: np.ndarray) -> Rows:
        """Room for rows, from the first round's first integers (n_outputs, n_samples)."""
        n_outputs, n_samples = first.shape
        width = row_width(n_outputs)
        if n_outputs == 1:
            first = first[:, :0]
        return cls(
            aligned(n_samples * width), aligned(width), np.empty(first.shape[1], dtype=np.int64),
            (first > 0).argmax(axis=0).astype(np.uint16),
        )  # fmt: skip


@group
class Room(NamedTuple):
    """Arrays for the sums over the codes of a few columns, and for those of one feature.

    Attributes
    ----------
    width, positive_width : int
        How many integers a row has, and how many sums of positive ones each code has besides.
    sums : ndarray (n_columns_at_once, 256 * width) of int64
        For each code the sum of the rows.
    positive : ndarray (256 * positive_width,) of int64
        The sums of positive integers of one column; for several outputs only.
    of_bundled : ndarray (256 * width,) of int64
        The sums of the rows for the bins of a feature of a bundle.
    left : ndarray (2 * n_outputs, 257) of int64
        For each output the sums of both integers left of the edges of the bins.
    of_bins : ndarray (256,) of int64
        An output's sums of positive integers over the bins.
    at_edge, inside : ndarray (257,), (256,) of float32
        Approximate scores at the edges of bins, and bounds for those inside.
    bounds : ndarray (256,) of float64
    by_left, by_right : ndarray (257,) of float32
        One over the second sums on both sides of an edge.
    at_cuts : ndarray (2, most_inside + 256) of int64
        An output's sums of both integers left of some cuts.
    scores : ndarray (most_inside + 256,) of float64
        The scores of these cuts.
    extra : ndarray (n_outputs,) of float64
        Each output's part of the score for missing values.
    last : ndarray (1,) of int64
        The column that had the best split in the last round.
    """

    width: int
    positive_width: int
    sums: Numbers
    positive: Integers
    of_bundled: Integers
    left: Numbers
    of_bins: Integers
    at_edge: Singles
    inside: Singles
    bounds: Floats
    by_left: Singles
    by_right: Singles
    at_cuts: Numbers
    scores: Floats
    extra: Floats
    last: Integers

    @classmethod
    def empty(cls, n_outputs: int, most_inside: int, low: int) -> Room:
        """For the columns from `low` on."""
        width, beside = row_width(n_outputs), positive_width(n_outputs)
        at_once = _COLUMNS_OF_ONE if n_outputs == 1 else 1
        size = NARROW_BINS * width
        return cls(
            width, beside, aligned(at_once * size).reshape(at_once, size),
            aligned(NARROW_BINS * beside), aligned(size),
            np.zeros((2 * n_outputs, NARROW_BINS + 1), dtype=np.int64),
            np.zeros(NARROW_BINS, dtype=np.int64),
            np.zeros(NARROW_BINS + 1, dtype=np.float32),
            np.zeros(NARROW_BINS, dtype=np.float32),
            np.zeros(NARROW_BINS),
            np.zeros(NARROW_BINS + 1, dtype=np.float32),
            np.zeros(NARROW_BINS + 1, dtype=np.float32),
            np.zeros((2, most_inside + NARROW_BINS), dtype=np.int64),
            np.zeros(most_inside + NARROW_BINS), np.zeros(n_outputs), np.array([low]),
        )  # fmt: skip


_NO_INTEGERS = np.empty(0, dtype=np.int64)
_NO_BYTES = np.empty(0, dtype=np.uint8)
BinsAhead = tuple[BinnedColumns, Rows, Room]
"""What rounds ahead search: columns in bins, the samples of each, and room for the search."""

NO_BINS: BinsAhead = (
    BinnedColumns(
        np.empty((0, 0), dtype=np.uint8), np.empty((0, 0), dtype=np.int32), _NO_INTEGERS,
        _NO_INTEGERS, _NO_INTEGERS, _NO_INTEGERS, _NO_INTEGERS, _NO_BYTES, _NO_BYTES, _NO_INTEGERS,
        _NO_INTEGERS, _NO_INTEGERS, _NO_BYTES, _NO_BYTES, _NO_INTEGERS, _NO_BYTES, 0,
    ),
    Rows.empty(np.empty((1, 0), dtype=np.int64)),
    Room.empty(1, 0, 0),
)  # fmt: skip
"""For calls of kernels that search without bins."""


@group
class _Found(NamedTuple):
    """The best split so far; the feature is -1 if there is none."""

    score: float
    feature: int
    position: int


class BinnedScan:
    """The search of a run of Newton votes.

    Parameters
    ----------
    columns : BinnedColumns
    team : Team
    search : Search
        Without constraints.
    first : ndarray (n_outputs, n_samples) of int64
        First integers of the run's samples; only their signs are used.
    """

    def __init__(
        self, columns: BinnedColumns, team: Team, search: Search, first: np.ndarray
    ) -> None:
        self._team, self._l2 = team, float(search.l2)
        self._columns, self._rows = columns, Rows.empty(first)
        n_columns, least = len(self._columns.codes), _ADDITIONS_AT_ONCE // len(self._rows.rows)
        size = max(_COLUMNS_OF_ONE, least, -(-n_columns // team.size))
        self._rooms = {
            part: Room.empty(search.n_outputs, self._columns.most_inside, part[0])
            for part in ranges(n_columns, size)
        }

    @property
    def alone(self) -> BinsAhead | None:
        """The arguments of a search by one thread; None if it is worth several threads."""
        if len(self._rooms) != 1:
            return None
        (room,) = self._rooms.values()
        return self._columns, self._rows, room

    def best_cut(self, terms: Terms, totals: np.ndarray) -> Cut:
        """The largest cut, from a round's terms and their sums (n_outputs, 2)."""
        pack(*terms, totals, self._rows)
        constant = constant_score(totals, self._l2)
        found: list[_Found] = []

        def search(part: tuple[int, int]) -> None:
            own = best_split(
                self._columns, self._rows, self._rooms[part], self._l2, constant, *part
            )
            found.append(_Found(*own))

        self._team.each(search, list(self._rooms))
        best = max(found, key=lambda one: (one.score, -one.feature))
        if best.feature < 0 or constant > best.score:
            return Cut(0, None, 0, 0, constant)
        return Cut(best.feature, best.position, 0, 0, best.score)


@kernel("void(int64[:, ::1], int64[:, ::1], int64[:, ::1], Rows)")
def pack(first, second, totals, rows):  # type: ignore[no-untyped-def]
    """Put a round's terms into rows; `totals` (n_outputs, 2) are their sums."""
    n_outputs = len(first)
    for k in range(n_outputs):
        rows.total[2 * k], rows.total[2 * k + 1] = totals[k]
    if n_outputs == 1:
        pack_one(first[0], second[0], rows.rows)
    else:
        pack_several(first, second, rows.classes, len(rows.total), rows.rows, rows.positive)


@kernel("float64(int64[:, ::1], float64)")
def constant_score(totals, l2):  # type: ignore[no-untyped-def]
    """The score of all samples together."""
    score = 0.0
    for k in range(len(totals)):
        score += (gain(totals[k, 0], totals[k, 1], l2) + gain(0, 0, l2)) + gain(0, 0, l2)
    return score


@kernel("void(BinnedColumns, Rows, Room, int64, int64)")
def _add_columns(columns, own, room, low, high):  # type: ignore[no-untyped-def]
    """Add up the sums over the codes of columns `low` to `high`, at most as many as `room` has."""
    for column in range(low, high):
        room.sums[column - low, : columns.n_codes[column] * room.width] = 0
    if room.positive_width > 0:
        codes = columns.codes[low]
        add_several(codes, own.rows, room.width, room.sums[0])
        if columns.column_has_open[low]:
            beside = room.positive_width
            room.positive[: columns.n_codes[low] * beside] = 0
            add_positive(codes, own.classes, own.positive, beside, room.positive)
    elif high - low == _COLUMNS_OF_ONE:
        add_one_to_four(columns.codes[low:high], own.rows, room.sums.reshape(room.sums.size))
    else:
        for column in range(low, high):
            add_one(columns.codes[column], own.rows, room.sums[column - low])


@kernel("void(int64[::1], int64[::1], int64[::1], uint8[::1], uint8[::1], int64, int64)")
def _unbundle(sums, into, all_rows, codes, slots, default, n_slots):  # type: ignore[no-untyped-def]
    """Compute the sums over a bundled feature's bins from those over the bundle's codes.

    The sums of missing values come after the bins. All codes that are not listed belong to one bin.
    Bins of a bundle hold one value each, so sums of positive integers are not needed.
    """
    width = len(all_rows)
    into[: n_slots * width] = 0
    for e in range(len(codes)):
        add_row(into, np.int64(slots[e]) * width, sums, np.int64(codes[e]) * width, width)
    for q in range(width):
        rest = all_rows[q]
        for slot in range(n_slots):
            rest -= into[slot * width + q]
        into[default * width + q] = rest


@kernel("float32(int64)")
def _scaled(sum_):  # type: ignore[no-untyped-def]
    """A sum as a share of 2**62, rounded to float32."""
    return np.float32(sum_) * _UNIT


@kernel("void(int64[::1], int64[::1], float32, float32, float32[::1], float32[::1], float32[::1])")
def _score_edges(a, b, extra, l2, by_left, by_right, at_edge):  # type: ignore[no-untyped-def]
    """Add an output's part to the approximate scores at the edges of bins.

    Quotients are computed as products with a reciprocal, which the bounds of the bins on both sides
    of an edge use as well.
    """
    n_edges = len(a)
    all_a, all_b, one = a[n_edges - 1], b[n_edges - 1], np.float32(1.0)
    for i in range(n_edges):
        by_left[i] = one / max(_scaled(b[i]) + l2, _UNIT)
        by_right[i] = one / max(_scaled(all_b - b[i]) + l2, _UNIT)
    for i in range(n_edges):
        x, y = _scaled(a[i]), _scaled(all_a - a[i])
        at_edge[i] += (x * x * by_left[i] + y * y * by_right[i]) + extra


@kernel("void(int64[::1], int64[::1], float32, float32[::1], float32[::1], float32[::1])")
def _bound_output(a, positive, extra, by_left, by_right, inside):  # type: ignore[no-untyped-def]
    """Add an output's part to the bounds for cuts inside bins."""
    n_bins = len(inside)
    all_a = a[n_bins]
    for i in range(n_bins):
        high = a[i] + positive[i]  # all positive samples of the bin on the left, or all others
        low = a[i + 1] - positive[i]
        x, y, z, w = _scaled(high), _scaled(all_a - high), _scaled(low), _scaled(all_a - low)
        few, few_right = by_left[i], by_right[i]
        many, many_right = by_left[i + 1], by_right[i + 1]
        xx, yy, zz, ww = x * x, y * y, z * z, w * w
        above = max(xx * few + yy * few_right, xx * many + yy * many_right)
        below = max(zz * few + ww * few_right, zz * many + ww * many_right)
        inside[i] += max(above, below) + extra


@kernel("void(int64[::1], int64[::1], int64, int64, float64, float64, float64[::1])")
def _add_gains(a, b, all_a, all_b, extra, l2, scores):  # type: ignore[no-untyped-def]
    """Add an output's part to the scores of some cuts."""
    for c in range(len(scores)):
        own, other = a[c], b[c]
        scores[c] += (gain(own, other, l2) + gain(all_a - own, all_b - other, l2)) + extra


@kernel("UniTuple(int64, 2)(float64[::1])")
def _highest(scores):  # type: ignore[no-untyped-def]
    """The index of the first of the highest scores, and 1; the second is 0 without scores."""
    top, number = NO_SCORE, 0
    for c in range(len(scores)):
        if scores[c] > top:
            top, number = scores[c], c
    return number, 1 if len(scores) > 0 else 0


@kernel("boolean(_Found, float64, int64, int64)")
def _is_better(best, score, feature, position):  # type: ignore[no-untyped-def]
    """Whether a split is better than the best one, in the order of `contract.Cut`."""
    if score != best.score:
        return score > best.score
    is_lower = position < best.position
    return feature < best.feature or (feature == best.feature and is_lower)


@kernel("int64(int32[::1], int64, int64, int64[::1], int64, int64, int64, int64[:, ::1])")
def _sums_at_cuts(order, start, end, rows, width, a, b, at_cuts):  # type: ignore[no-untyped-def]
    """Write an output's sums left of the cuts after some sorted samples; returns how many.

    `rows` begin with this output. If there is no cut after a sample, the next sums are written to
    the same place.
    """
    n_cuts, one, step = np.uint64(0), np.uint64(1), np.uint64(width)
    for i in range(start, end):
        marked = np.uint32(order[i])
        at = np.uint64(marked & np.uint32(0x7FFFFFFF)) * step
        a += rows[at]
        b += rows[at + one]
        at_cuts[0, n_cuts], at_cuts[1, n_cuts] = a, b
        n_cuts += np.uint64(~marked >> np.uint32(31))
    return np.int64(n_cuts)


@kernel(
    "_Found(int64[::1], int64, int32[::1], int64, int64, int64, int64,"
    " int64[:, ::1], float64[::1], float64, int64[:, ::1], float64[::1], int64, float64)"
)
def _look(  # type: ignore[no-untyped-def]
    rows,
    width,
    order,
    start,
    end,
    n_bins,
    bin_,
    left,
    extra,
    l2,
    at_cuts,
    all_scores,
    feature,
    least,
):
    """The best split inside a bin and at its right edge, if its score is at least `least`.

    The arguments are plain arrays: a group is passed field by field, which takes as long as the
    search of a bin.
    """
    n_cuts = 0
    all_scores[: end - start + 1] = 0.0
    for k in range(len(extra)):
        a, b = left[2 * k], left[2 * k + 1]
        n_cuts = _sums_at_cuts(order, start, end, rows[2 * k :], width, a[bin_], b[bin_], at_cuts)
        if bin_ + 1 < n_bins:
            at_cuts[0, n_cuts], at_cuts[1, n_cuts] = a[bin_ + 1], b[bin_ + 1]
            n_cuts += 1
        scores = all_scores[:n_cuts]
        _add_gains(at_cuts[0], at_cuts[1], a[n_bins], b[n_bins], extra[k], l2, scores)
    number, is_there = _highest(all_scores[:n_cuts])
    if is_there and all_scores[number] >= least:
        position = start - 1
        for _ in range(number + 1):
            position += 1
            while order[position] < 0:
                position += 1
        return _Found(all_scores[number], feature, position)
    return _Found(NO_SCORE, -1, -1)


@kernel("_Found(int64[:, ::1], int64, int64, float64[::1], float64, float64, int64, _Found)")
def _apart(left, n_bins, position, extra, l2, constant, feature, best):  # type: ignore[no-untyped-def]
    """The better of the best split and the threshold above all values of a feature.

    This threshold separates all values from the missing ones; it counts only if it is better than a
    constant.
    """
    score = 0.0
    for k in range(len(extra)):
        present = gain(left[2 * k, n_bins], left[2 * k + 1, n_bins], l2)
        score += (present + gain(0, 0, l2)) + extra[k]
    if score > constant and _is_better(best, score, feature, position):
        best = _Found(score, feature, position)
    return best


@kernel("void(int64[::1], int64, int64, int64[:, ::1])")
def _sum_up(sums, width, n_bins, left):  # type: ignore[no-untyped-def]
    """The sums left of the edges of a feature's bins, for all outputs."""
    for k in range(len(left)):
        total, own = 0, left[k]
        for b in range(n_bins):
            own[b] = total
            total += sums[np.uint64(width * b + k)]
        own[n_bins] = total


@kernel("void(Room, int64[::1], uint8[::1], float64, float64[::1], float64[::1])")
def _bound_feature(room, sums, is_open, l2, extra, bounds):  # type: ignore[no-untyped-def]
    """Write the most that a cut inside each bin, or at its right edge, may be worth."""
    n_outputs, n_bins, width = len(extra), len(bounds), room.width
    at_edge, inside = room.at_edge[: n_bins + 1], room.inside[:n_bins]
    by_left, by_right, positive = room.by_left, room.by_right, room.of_bins
    at_edge[:] = 0.0
    inside[:] = 0.0
    for k in range(n_outputs):
        a, b = room.left[2 * k, : n_bins + 1], room.left[2 * k + 1, : n_bins + 1]
        more = np.float32(extra[k]) * _UNIT
        _score_edges(a, b, more, np.float32(l2) * _UNIT, by_left, by_right, at_edge)
        for i in range(n_bins):
            if n_outputs == 1:
                positive[i] = sums[np.uint64(width * i + 2)]
            else:
                positive[i] = room.positive[np.uint64(room.positive_width * i + k)]
        _bound_output(a, positive, more, by_left, by_right, inside)
    at_edge[n_bins] = 0.0  # no cut
    wider = 1.0 + (_WIDER + _WIDER_BY_OUTPUT * n_outputs)
    for b in range(n_bins):
        most = max(at_edge[b + 1], inside[b]) if is_open[b] else at_edge[b + 1]
        bounds[b] = (most * wider + _LEAST) / _UNIT


@kernel(
    "_Found(int64[::1], int64, int64[:, ::1], int64, float64[::1], float64, float64[::1], _Found)"
)
def _search_values(offset, n_bins, left, feature, extra, l2, all_scores, best):  # type: ignore[no-untyped-def]
    """The better of the best split and those of a feature each of whose bins has one value.

    `offset` begins with that of its first bin.
    """
    scores = all_scores[: n_bins - 1]
    scores[:] = 0.0
    for k in range(len(extra)):
        a, b = left[2 * k], left[2 * k + 1]
        _add_gains(a[1:], b[1:], a[n_bins], b[n_bins], extra[k], l2, scores)
    number, is_there = _highest(scores)
    if is_there:
        position = offset[number + 1] - 1
        if _is_better(best, scores[number], feature, position):
            best = _Found(scores[number], feature, position)
    return best


@kernel("_Found(BinnedColumns, Rows, Room, float64, float64, int64, int64, _Found)")
def _search_column(columns, own, room, l2, constant, column, number, best):  # type: ignore[no-untyped-def]
    """The better of the best split and those of the features of a column that has been added up."""
    left, extra = room.left, room.extra
    for which in range(columns.begin[column], columns.begin[column + 1]):
        feature = columns.features[which]
        n_bins = columns.n_bins[feature]
        if n_bins == 0:
            continue
        sums, missing = room.sums[number], columns.missing_code[feature]
        if columns.default[feature] >= 0:
            listed = slice(columns.entry[feature], columns.entry[feature + 1])
            _unbundle(
                sums, room.of_bundled, own.total, columns.entry_codes[listed],
                columns.entry_slots[listed], columns.default[feature], n_bins + 1,
            )  # fmt: skip
            sums, missing = room.of_bundled, n_bins
        offset = columns.offset[columns.first[feature] :]
        has_missing = offset[n_bins] < columns.order.shape[1]
        _sum_up(sums, room.width, n_bins, left)
        for k in range(len(extra)):
            at = missing * room.width + 2 * k
            extra[k] = gain(sums[at], sums[at + 1], l2) if has_missing else 0.0
        if not columns.has_open[feature]:
            best = _search_values(offset, n_bins, left, feature, extra, l2, room.scores, best)
        else:
            is_open, bounds = columns.is_open[columns.first[feature] :], room.bounds[:n_bins]
            _bound_feature(room, sums, is_open, l2, extra, bounds)
            highest = np.argmax(bounds)  # comes first
            for turn in range(-1, n_bins if bounds[highest] >= best.score else -1):
                b = highest if turn < 0 else turn
                if bounds[b] < best.score or turn == highest:
                    continue
                end = offset[b + 1] - 1
                found = _look(
                    own.rows, room.width, columns.order[feature],
                    offset[b] if is_open[b] else end, end, n_bins, b,
                    left, extra, l2, room.at_cuts, room.scores, feature, best.score,
                )  # fmt: skip
                if _is_better(best, found.score, feature, found.position):
                    best = found
        if has_missing:
            best = _apart(left, n_bins, offset[n_bins] - 1, extra, l2, constant, feature, best)
    return best


@kernel("Tuple((float64, int64, int64))(BinnedColumns, Rows, Room, float64, float64, int64, int64)")
def best_split(columns, own, room, l2, constant, low, high):  # type: ignore[no-untyped-def]
    """The score, the feature and the position of the best split in columns `low` to `high`.

    The feature is -1 if there is none.
    """
    best = _Found(NO_SCORE, -1, -1)
    at_once = len(room.sums)
    head = (room.last[0] - low) // at_once
    for turn in range(-(-(high - low) // at_once)):
        block = head if turn == 0 else (0 if turn == head else turn)
        start = low + block * at_once
        end = min(start + at_once, high)
        _add_columns(columns, own, room, start, end)
        for column in range(start, end):
            before = best.feature
            best = _search_column(columns, own, room, l2, constant, column, column - start, best)
            if best.feature != before:
                room.last[0] = column
    return best.score, best.feature, best.position
