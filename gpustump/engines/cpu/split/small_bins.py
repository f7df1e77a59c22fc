"""The best split of a sorted table that is divided into small bins, for every kind of votes.

The integers of all samples are first added up by the codes of a feature, in bins of few samples.
That yields the scores of the cuts at the edges of the bins. Inside a bin the sums lie in a
polygon between those at its edges, and the score is convex, so the corners of the polygon bound it
(see `cell_scores`). Only bins whose bound reaches the best score so far are scanned like a small
table (see `scan`). All of this is done for one feature after the other, while its sums are in the
nearest cache.

A bin's positive and negative gradients limit how far a sum of gradients inside it is from that at
its left edge. But they grow with the bin, and what a scan of the bin finds only with its root. So
that is remembered. When gradients change, the limits move by what the bin's gradients have grown by
and shrunk by, which is added up like the gradients. So a bin is scanned again only after a change
that matters, which takes many rounds once steps are small. [Several outputs have no room in their
rows for what has grown: nothing is remembered of them.]

Bounds are rounded outwards. The order of the features decides how many bins are scanned, not what
is found; the one that had the best split in the last round comes first.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from gpustump.engines.batched_rounds import DISCRETE, NEWTON, REAL
from gpustump.engines.contract import Cut
from gpustump.engines.cpu.loss.terms import Terms
from gpustump.engines.cpu.runtime.compiling import Integers, group, inner
from gpustump.engines.cpu.runtime.crew import parallel
from gpustump.engines.cpu.split.cut_scores import (
    KINDS,
    NO_KEY,
    add_scores,
    constant_key,
    first_with,
    forbid,
    key_of,
    largest_key,
)
from gpustump.engines.cpu.split.cut_sums import position_of
from gpustump.engines.cpu.split.sample_rows import (
    add_one,
    add_one_to_four,
    add_positive,
    add_several,
    pack_one,
    pack_several,
    positive_width,
    row_width,
)
from gpustump.engines.cpu.split.scan import Best, Round, best_of, is_better, sum_at_cuts
from gpustump.engines.cpu.split.split_scores import gain, minus_root
from gpustump.engines.cpu.table.columns import NARROW_BINS, aligned
from gpustump.engines.cpu.table.sorted_table import SortedTable
from gpustump.engines.objective import Objective

_ADDITIONS_AT_ONCE = 2**19
"""How many additions of integers to bins are worth another thread."""

_UNIT = np.float32(2.0**-62)
"""One unit, as a share of the largest sum."""

_WIDER, _WIDER_BY_OUTPUT, _LEAST = 2.0**-18, 2.0**-22, 2.0**-110
"""By what shares, and by how much, bounds in float32 are widened. Their computation has fewer than
20 roundings of 2**-24, and one more for each output; numbers below 2**-126 may become 0."""

_WIDER_ROOTS = 2.0**-36
"""By what share bounds of real votes are widened: of 2**-53 there are 4 roundings for each output,
and fewer than 2**14 outputs."""

_COLUMNS_OF_ONE = 4
"""How many columns are added up at once with one output."""

Numbers = Annotated[np.ndarray, "int64[:, ::1]"]
Singles = Annotated[np.ndarray, "float32[::1]"]


@group
class Rows(NamedTuple):
    """The integers of a round, sample by sample; see `sample_rows`. Empty if there are no bins.

    Each piece of the columns has rows of its own, so that no thread has to fetch from another core
    what that has just written.

    Attributes
    ----------
    rows : ndarray (n_pieces * n_samples * width,) of int64
    total : ndarray (width,) of int64
        The sum of all rows.
    positive : ndarray (n_pieces * n_samples,) of int64
        The positive gradient; empty with one output.
    all_positive : ndarray (positive_width,) of int64
        The sum of the positive gradients of each output; empty with one output.
    classes : ndarray (n_samples,) of uint16
        The output whose gradient is positive; empty with one output.
    """

    rows: Integers
    total: Integers
    positive: Integers
    all_positive: Integers
    classes: Annotated[np.ndarray, "uint16[::1]"]

    @classmethod
    def empty(cls, first: np.ndarray, n_pieces: int = 1) -> Rows:
        """Room for them, from the first round's gradients (n_outputs, n_samples)."""
        n_outputs, n_samples = first.shape
        if n_outputs == 1:
            first = first[:, :0]
        return cls(
            aligned(n_pieces * n_samples * row_width(n_outputs)), aligned(row_width(n_outputs)),
            np.empty(n_pieces * first.shape[1], dtype=np.int64), aligned(positive_width(n_outputs)),
            (first > 0).argmax(axis=0).astype(np.uint16),
        )  # fmt: skip


@group
class Memory(NamedTuple):
    """What a search knows from earlier rounds.

    Attributes
    ----------
    last : ndarray (n_pieces,) of int64
        The column of each piece that had the best split in the last round.
    gradient : ndarray (n_features, most_bins) of int64
        Of one output: the sum over each bin in the last round; of shape (n_features, 0) with more
        outputs. At first 0, like the integers in `Rows`.
    above, below : ndarray (n_features, most_bins) of int64
        How far a sum of gradients inside a bin was above that at the bin's left edge, and below it,
        at most.
    """

    last: Integers
    gradient: Numbers
    above: Numbers
    below: Numbers


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
    left : ndarray (2 * n_outputs, most_bins + 1) of int64
        For each output the sums of both integers left of the edges of the bins.
    missing : ndarray (2 * n_outputs,) of int64
        The same for missing values.
    bounds : ndarray (most_bins,) of int64
        Bounds for the cuts inside bins, as keys.
    by_left, by_right : ndarray (most_bins + 1,) of float32
        For Newton votes: one over the second sums on both sides of an edge.
    inside : ndarray (most_bins,) of float32
        For Newton votes: the bounds as shares of 2**62.
    of_bins, grown : ndarray (most_bins + 1,) of int64
        An integer's sums over the bins, and over missing values.
    above, below : ndarray (most_bins,) of int64
        As in `Memory`, for one output of one feature, if nothing is remembered.
    at_cuts : ndarray (2, most_open) of int64
        An output's sums of both integers left of some cuts.
    scores : ndarray of int64
        The scores of these cuts, or of those at the edges.
    """

    width: int
    positive_width: int
    sums: Numbers
    positive: Integers
    left: Numbers
    missing: Integers
    bounds: Integers
    by_left: Singles
    by_right: Singles
    inside: Singles
    of_bins: Integers
    grown: Integers
    above: Integers
    below: Integers
    at_cuts: Numbers
    scores: Integers


@inner("int64[::1](int64)")
def _aligned(n_integers):  # type: ignore[no-untyped-def]
    """Room for integers that begins at a line of the cache."""
    room = np.empty(n_integers + 8, dtype=np.int64)
    beyond = np.uint64(room.ctypes.data) & np.uint64(63)
    skipped = np.int64((np.uint64(64) - beyond) >> np.uint64(3))
    return room[skipped : skipped + n_integers]


@inner("Room(SortedColumns, Rows, int64)")
def _new_room(columns, own, n_outputs):  # type: ignore[no-untyped-def]
    """Room for a search of some columns."""
    width, beside = len(own.total), len(own.all_positive)
    at_once = _COLUMNS_OF_ONE if n_outputs == 1 else 1
    most_bins, most_open, n_codes = columns.is_open.shape[1], columns.most_open, NARROW_BINS
    return Room(
        width, beside, _aligned(at_once * n_codes * width).reshape(at_once, n_codes * width),
        _aligned(n_codes * beside),
        np.empty((2 * n_outputs, most_bins + 1), np.int64), np.empty(2 * n_outputs, np.int64),
        np.empty(most_bins, np.int64), np.empty(most_bins + 1, np.float32),
        np.empty(most_bins + 1, np.float32), np.empty(most_bins, np.float32),
        np.empty(most_bins + 1, np.int64), np.empty(most_bins + 1, np.int64),
        np.empty(most_bins, np.int64), np.empty(most_bins, np.int64),
        np.empty((2, most_open), np.int64),
        np.empty(max(most_open, most_bins), np.int64),
    )  # fmt: skip


class BinSearch:
    """The search of a run on a sorted table with bins for its best splits.

    Parameters
    ----------
    table : SortedTable
    objective : Objective
    gradient : ndarray (n_outputs, n_samples) of int64
        Gradients of the run's samples; only their signs are used.

    Attributes
    ----------
    rows : Rows
    size : int
        How many columns a piece has.
    memory : Memory
    """

    def __init__(self, table: SortedTable, objective: Objective, gradient: np.ndarray) -> None:
        self._table, self._objective = table, objective
        n_columns, n_outputs = len(table.columns.begin) - 1, len(gradient)
        n_additions = n_columns * gradient.shape[1] * row_width(n_outputs)
        n_pieces = max(1, min(table.team.size, n_additions // _ADDITIONS_AT_ONCE))
        self.size = max(_COLUMNS_OF_ONE, -(-n_columns // n_pieces))
        last = np.arange(0, n_columns, self.size)
        shape = (table.n_features, table.columns.is_open.shape[1] if n_outputs == 1 else 0)
        self.memory = Memory(last, *(np.zeros(shape, dtype=np.int64) for _ in range(3)))
        self.rows = Rows.empty(gradient, len(last))

    def best_cut(self, terms: Terms, totals: np.ndarray) -> Cut:
        """The largest cut, from a round's terms and their sums (n_outputs, 2)."""
        objective, kind = self._objective, KINDS[self._objective.gain]
        l2, directions = float(objective.l2), objective.directions
        constant = constant_key(totals, kind, l2)
        round_ = Round(*terms, totals, constant, kind, l2, directions)
        found = np.empty((len(self.memory.last), 3), dtype=np.int64)
        own = (self._table.columns, self.rows, round_, self.size, self.memory, found)
        self._table.team.run(look_at_columns, len(found), *own)
        return best_of(found, constant, kind)


@inner("Rows(Rows, Round, int64, int64)")
def _packed(every, round_, piece, n_pieces):  # type: ignore[no-untyped-def]
    """Put a round's terms into the rows of a piece, and return these."""
    n_outputs, gradient, hessian = len(round_.gradient), round_.gradient, round_.hessian
    n_rows, n_positive = len(every.rows) // n_pieces, len(every.positive) // n_pieces
    own = Rows(
        every.rows[piece * n_rows : (piece + 1) * n_rows], np.empty_like(every.total),
        every.positive[piece * n_positive : (piece + 1) * n_positive],
        np.zeros_like(every.all_positive), every.classes,
    )  # fmt: skip
    for k in range(n_outputs):
        own.total[2 * k], own.total[2 * k + 1] = round_.totals[k]
    if n_outputs == 1:
        other = hessian[0] if len(hessian) > 0 else gradient[0]
        own.total[2], own.total[3] = pack_one(gradient[0], other, own.rows)
        return own
    pack_several(gradient, hessian, own.classes, len(own.total), own.rows, own.positive)
    for i in range(len(own.classes)):
        own.all_positive[own.classes[i]] += own.positive[i]
    return own


@inner("void(SortedColumns, Rows, Room, boolean, int64, int64)")
def _add_columns(columns, own, room, is_newton, low, high):  # type: ignore[no-untyped-def]
    """Add up the sums over the codes of columns `low` to `high`, at most as many as `room` has."""
    codes, begin, sums, width = columns.codes, columns.begin, room.sums, room.width
    for c in range(low, high):
        sums[c - low, : columns.n_codes[begin[c]] * width] = 0
    beside = room.positive_width
    if beside > 0:
        own_codes = codes[begin[low]]
        add_several(own_codes, own.rows, width, sums[0])
        if is_newton:
            room.positive[: columns.n_codes[begin[low]] * beside] = 0
            add_positive(own_codes, own.classes, own.positive, beside, room.positive)
    elif high - low == _COLUMNS_OF_ONE:
        c0, c1 = codes[begin[low]], codes[begin[low + 1]]
        c2, c3 = codes[begin[low + 2]], codes[begin[low + 3]]
        add_one_to_four(c0, c1, c2, c3, own.rows, sums.reshape(sums.size))
    else:
        for c in range(low, high):
            add_one(codes[begin[c]], own.rows, sums[c - low])


@inner("void(int64[::1], int64, int64, int64, int64, int64[::1])")
def _by_bin(sums, at, width, majority, total, into):  # type: ignore[no-untyped-def]
    """Write an integer's sums over a feature's bins, and over missing values.

    Those over the codes are `width` apart, from `at` on.
    """
    rest = total
    for b in range(len(into)):
        if b != majority:
            into[b] = sums[np.uint64(at)]
            rest -= into[b]
            at += width
    if majority >= 0:
        into[majority] = rest


@inner("void(int64[::1], int64, int64, int64, int64[::1], int64[:, ::1], int64[::1], int64[::1])")
def _sum_up(sums, at, width, majority, total, left, missing, of_bins):  # type: ignore[no-untyped-def]
    """The sums left of the edges of a feature's bins, and over missing values."""
    n_bins = len(of_bins) - 1
    for k in range(len(left)):
        _by_bin(sums, at + k, width, majority, total[k], of_bins)
        reached, own = 0, left[k]
        for b in range(n_bins):
            own[b] = reached
            reached += of_bins[b]
        own[n_bins] = reached
        missing[k] = of_bins[n_bins]


@inner("void(int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[::1])")
def _follow(a, positive, grown, gradient, above, below):  # type: ignore[no-untyped-def]
    """Let what is remembered of a feature's bins follow the gradients.

    `positive` are the sums of the positive gradients, which limit what is remembered; `grown` those
    of what gradients have grown by. The other arguments are as in `Memory`. The sizes of all
    gradients of a round add up to less than 2**62, so no gradients grow by 2**63 together, and
    nothing here overflows.
    """
    for i in range(len(gradient)):
        own = a[i + 1] - a[i]
        shrunk = grown[i] - (own - gradient[i])
        above[i] = min(above[i], positive[i] - grown[i]) + grown[i]
        below[i] = min(below[i], (positive[i] - own) - shrunk) + shrunk
        gradient[i] = own


@inner("void(int64[::1], int64, int64[::1], int64[::1], int64[::1])")
def _bound_agreements(a, missing, above, below, bounds):  # type: ignore[no-untyped-def]
    """Add an output's part to the bounds for discrete votes."""
    n_bins = len(bounds)
    present, extra = a[n_bins], abs(missing)
    for i in range(n_bins):
        high, low = 2 * (a[i] + above[i]) - present, 2 * (a[i] - below[i]) - present
        bounds[i] += max(abs(high), abs(low)) + extra


@inner("void(int64[::1], int64[::1], float64, int64[::1], int64[::1], float64[::1])")
def _bound_roots(a, b, extra, above, below, bounds):  # type: ignore[no-untyped-def]
    """Add an output's part to the bounds for real votes.

    A bin's positive and negative sums make a rectangle, of which the gradients allow a band.
    """
    n_bins = len(bounds)
    all_a, all_b = a[n_bins], b[n_bins]
    for i in range(n_bins):
        more, both = a[i + 1] - a[i], b[i + 1] - b[i]
        up, down = max(above[i], max(0, more)), max(below[i], max(0, -more))
        most = minus_root(a[i], b[i]) + minus_root(all_a - a[i], all_b - b[i])
        x, y = a[i] + up, b[i] + up
        most = max(most, minus_root(x, y) + minus_root(all_a - x, all_b - y))
        y = b[i] + (both + more - up)  # all positive samples are left of the cut
        most = max(most, minus_root(x, y) + minus_root(all_a - x, all_b - y))
        x, y = a[i] - down, b[i] + down
        most = max(most, minus_root(x, y) + minus_root(all_a - x, all_b - y))
        y = b[i] + (both - more - down)
        most = max(most, minus_root(x, y) + minus_root(all_a - x, all_b - y))
        x, y = a[i + 1], b[i + 1]
        most = max(most, minus_root(x, y) + minus_root(all_a - x, all_b - y))
        bounds[i] += most + extra


@inner("float32(int64)")
def _scaled(sum_):  # type: ignore[no-untyped-def]
    """A sum as a share of 2**62, rounded to float32."""
    return np.float32(sum_) * _UNIT


@inner(
    "void(int64[::1], int64[::1], float32, float32, int64[::1], int64[::1], float32[::1],"
    " float32[::1], float32[::1])"
)
def _bound_gains(a, b, extra, l2, above, below, by_left, by_right, inside):  # type: ignore[no-untyped-def]
    """Add an output's part to the bounds for Newton votes.

    Quotients are computed as products with a reciprocal, which the bins on both sides of an edge
    share.
    """
    n_bins = len(inside)
    all_a, all_b, one = a[n_bins], b[n_bins], np.float32(1.0)
    for i in range(n_bins + 1):
        by_left[i] = one / max(_scaled(b[i]) + l2, _UNIT)
        by_right[i] = one / max(_scaled(all_b - b[i]) + l2, _UNIT)
    for i in range(n_bins):
        high, low = a[i] + above[i], a[i] - below[i]
        x, y, z, w = _scaled(high), _scaled(all_a - high), _scaled(low), _scaled(all_a - low)
        few, few_right = by_left[i], by_right[i]
        many, many_right = by_left[i + 1], by_right[i + 1]
        xx, yy, zz, ww = x * x, y * y, z * z, w * w
        on_top = max(xx * few + yy * few_right, xx * many + yy * many_right)
        at_bottom = max(zz * few + ww * few_right, zz * many + ww * many_right)
        inside[i] += max(on_top, at_bottom) + extra


@inner("void(Room, Rows, int64[::1], Round, Memory, int64, int64, int64, int64)")
def _bound_bins(room, own, sums, round_, memory, j, first_code, majority, n_bins):  # type: ignore[no-untyped-def]
    """Write the keys of the most that a cut inside each bin of a feature may be worth."""
    n_outputs, kind, bounds = len(round_.gradient), round_.kind, room.bounds[:n_bins]
    bounds[:] = 0
    inside, positive = room.inside[:n_bins], room.of_bins[: n_bins + 1]
    inside[:] = 0.0
    above, below = room.above[:n_bins], room.below[:n_bins]
    for k in range(n_outputs):
        a, b = room.left[2 * k, : n_bins + 1], room.left[2 * k + 1, : n_bins + 1]
        missing, other = room.missing[2 * k], room.missing[2 * k + 1]
        if n_outputs == 1:
            at, grown = first_code * room.width, room.grown[: n_bins + 1]
            above, below = memory.above[j, :n_bins], memory.below[j, :n_bins]
            _by_bin(sums, at + 2, room.width, majority, own.total[2], positive)
            _by_bin(sums, at + 3, room.width, majority, own.total[3], grown)
            _follow(a, positive, grown, memory.gradient[j, :n_bins], above, below)
        elif kind == NEWTON:
            beside = room.positive_width
            at, all_positive = first_code * beside + k, own.all_positive[k]
            _by_bin(room.positive, at, beside, majority, all_positive, positive)
            for i in range(n_bins):
                above[i], below[i] = positive[i], positive[i] - (a[i + 1] - a[i])
        else:
            for i in range(n_bins):
                above[i] = ((b[i + 1] - b[i]) + (a[i + 1] - a[i])) >> 1
                below[i] = ((b[i + 1] - b[i]) - (a[i + 1] - a[i])) >> 1
        if kind == DISCRETE:
            _bound_agreements(a, missing, above, below, bounds)
        elif kind == REAL:
            extra = minus_root(missing, other)
            _bound_roots(a, b, extra, above, below, bounds.view(np.float64))
        else:
            extra = np.float32(gain(missing, other, round_.l2)) * _UNIT
            l2 = np.float32(round_.l2) * _UNIT
            _bound_gains(a, b, extra, l2, above, below, room.by_left, room.by_right, inside)
    as_floats = bounds.view(np.float64)
    if kind == REAL:
        for i in range(n_bins):
            as_floats[i] += abs(as_floats[i]) * _WIDER_ROOTS
    elif kind == NEWTON:
        wider = 1.0 + (_WIDER + _WIDER_BY_OUTPUT * n_outputs)
        for i in range(n_bins):
            as_floats[i] = (inside[i] * wider + _LEAST) / _UNIT
    if kind != DISCRETE:
        for i in range(n_bins):
            bounds[i] = key_of(bounds[i])


@inner(
    "UniTuple(int64, 2)(int32[::1], Memory, int64, int64[:, ::1], int64[:, ::1], int64[:, ::1],"
    " int64, int64, int64[::1], int64, float64, int64, float64, int64[:, ::1], int64[::1], int64)"
)
def _look(  # type: ignore[no-untyped-def]
    order,
    memory,
    j,
    gradient,
    hessian,
    left,
    bin_,
    n_bins,
    missing,
    kind,
    l2,
    direction,
    smoothing,
    at_cuts,
    all_scores,
    least,
):
    """The key of the best split inside a bin of feature `j`, and its place among the bin's samples.

    Of one output it is remembered how far the sums of gradients are from that at the left edge.

    `order` has them without the last one. If the key is below `least`, the place means nothing.
    `left` are the sums left of the edges of the feature's bins, and `missing` those over missing
    values, as in `Room`.
    """
    n_cuts = 0
    a, b, none = at_cuts[0], at_cuts[1], np.empty(0, dtype=np.int64)
    for k in range(len(gradient)):
        of_hessian = hessian[k] if len(hessian) > 0 else none
        x, y = left[2 * k, bin_], left[2 * k + 1, bin_]
        n_cuts = sum_at_cuts(order, len(order), gradient[k], of_hessian, x, y, kind, a, b)
        if len(gradient) == 1:
            highest, lowest = a[0], a[0]
            for i in range(n_cuts):
                highest, lowest = max(highest, a[i]), min(lowest, a[i])
            memory.above[j, bin_], memory.below[j, bin_] = highest - x, x - lowest
        present = (left[2 * k, n_bins], left[2 * k + 1, n_bins])
        lacking = (missing[2 * k], missing[2 * k + 1])
        add_scores(a, b, present, lacking, kind, l2, k == 0, all_scores[:n_cuts])
    scores = all_scores[:n_cuts]
    if direction != 0:
        present = (left[0, n_bins], left[1, n_bins])
        forbid(a, b, present, direction, kind, l2, smoothing, scores)
    key = largest_key(scores, n_cuts, kind)
    return key, position_of(order, first_with(scores, key, kind)) if key >= least else 0


@inner("Best(SortedColumns, Rows, Room, Memory, Round, float64, int64, int64, Best)")
def _search_column(columns, own, room, memory, round_, smoothing, column, number, best):  # type: ignore[no-untyped-def]
    """The better of the best split and those of a column's features.

    The column's sums are those of this number in `room`.
    """
    sums, missing, left, all_scores = room.sums[number], room.missing, room.left, room.scores
    kind, l2, directions, n_outputs = (
        round_.kind,
        round_.l2,
        round_.directions,
        len(round_.gradient),
    )
    all_offset, all_n_bins, has_open = columns.offset, columns.n_bins, columns.has_open
    width, of_bins, total = room.width, room.of_bins, own.total
    for j in range(columns.begin[column], columns.begin[column + 1]):
        n_bins = all_n_bins[j]
        if n_bins == 0:  # as in `_scan`
            continue
        offset = all_offset[j]
        direction = directions[j] if len(directions) > 0 else 0
        first_code, majority = columns.first_code[j], columns.majority[j]
        at, here = first_code * width, of_bins[: n_bins + 1]
        _sum_up(sums, at, width, majority, total, left, missing, here)
        # The cuts at the right edges of bins; the last one is the threshold above all values.
        scores = all_scores[:n_bins]
        for k in range(n_outputs):
            a, b = left[2 * k], left[2 * k + 1]
            present, lacking = (a[n_bins], b[n_bins]), (missing[2 * k], missing[2 * k + 1])
            add_scores(a[1:], b[1:], present, lacking, kind, l2, k == 0, scores)
        apart = scores[n_bins - 1] if kind == DISCRETE else key_of(scores[n_bins - 1])
        if direction != 0:
            present = (left[0, n_bins], left[1, n_bins])
            forbid(left[0, 1:], left[1, 1:], present, direction, kind, l2, smoothing, scores)
        key = largest_key(scores, n_bins - 1, kind)
        if key != NO_KEY and key >= best.key:
            position = offset[first_with(scores, key, kind) + 1] - 1
            if is_better(best, key, j, position):
                best = Best(key, j, position)
        if apart > round_.constant and is_better(best, apart, j, offset[n_bins] - 1):
            best = Best(apart, j, offset[n_bins] - 1)
        if not has_open[j]:
            continue
        order, is_open, bounds = columns.order[j], columns.is_open[j], room.bounds[:n_bins]
        _bound_bins(room, own, sums, round_, memory, j, first_code, majority, n_bins)
        for b in range(n_bins):
            bounds[b] = bounds[b] if is_open[b] else NO_KEY - 1
        largest = np.argmax(bounds)  # comes first
        for turn in range(-1, n_bins if bounds[largest] >= best.key else -1):
            b = largest if turn < 0 else turn
            if turn == largest or bounds[b] < best.key:
                continue
            least = max(best.key, NO_KEY + 1)
            key, place = _look(
                order[offset[b] : offset[b + 1] - 1], memory, j, round_.gradient, round_.hessian,
                left, b, n_bins, missing, kind, l2, direction, smoothing, room.at_cuts, room.scores,
                least,
            )  # fmt: skip
            if key >= least and is_better(best, key, j, offset[b] + place):
                best = Best(key, j, offset[b] + place)
    return best


@parallel("void(int64, SortedColumns, Rows, Round, int64, Memory, int64[:, ::1])")
def look_at_columns(piece, columns, own, round_, size, memory, found):  # type: ignore[no-untyped-def]
    """Write the fields of the best split of a piece of the columns; the key is `NO_KEY` if there is
    none."""
    rows = _packed(own, round_, piece, len(memory.last))
    room = _new_room(columns, rows, len(round_.gradient))
    low, high = piece * size, min((piece + 1) * size, len(columns.begin) - 1)
    at_once = len(room.sums)
    smoothing = float(round_.totals[0, 1]) / float(2 * columns.order.shape[1])
    best = Best(NO_KEY, -1, -1)
    head = (memory.last[piece] - low) // at_once
    for turn in range(-(-(high - low) // at_once)):
        block = head if turn == 0 else (0 if turn == head else turn)
        start = low + block * at_once
        end = min(start + at_once, high)
        _add_columns(columns, rows, room, round_.kind == NEWTON, start, end)
        for column in range(start, end):
            before = best.feature
            number = column - start
            best = _search_column(
                columns, rows, room, memory, round_, smoothing, column, number, best
            )
            if best.feature != before:
                memory.last[piece] = column
    found[piece, 0], found[piece, 1], found[piece, 2] = best.key, best.feature, best.position
