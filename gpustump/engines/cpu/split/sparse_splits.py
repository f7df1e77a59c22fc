"""The best split of a sparse table, for every kind of votes.

Only listed samples are read: the sums over the zeros of a feature are what these leave of the sums
over all samples.

With Newton votes, most features need not be read in most rounds. The score of a cut is a sum of
G**2 / (H + lambda) over its regions. Under fixed Hessians h its root is a norm of the gradients. So
if gradients change by d, the root grows at most by the root of the sum of D**2 / H, where D is the
sum of d over a region; and if no Hessian falls below a share a of what it was, the root grows at
most by the factor 1 / sqrt(a) besides. By Cauchy's inequality D**2 / H over a region is at most the
sum of its d**2 / h. Let e**2 be that sum over the samples that a feature lists, t**2 that of
D**2 / H over all samples, and c the ratio of the listed samples' H to that of the others. Regions
of listed samples contribute at most e**2. The region that has the zeros has what they leave: its D
is at most that of all samples and theirs, so it contributes at most (t sqrt(1 + c) + e sqrt(c))**2.

A step changes the samples that its feature lists the most. Their rows of the table are read, so
that each feature learns its own e. All other samples count for every feature, each with the largest
ratio d / h among them. A feature is read again when this bound of its best score reaches the best
one found. Bounds are widened for rounding.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from gpustump.engines.batched_rounds import DISCRETE, NEWTON
from gpustump.engines.contract import Cut
from gpustump.engines.cpu.loss.terms import Terms
from gpustump.engines.cpu.runtime.compiling import Floats, Integers, group, inner
from gpustump.engines.cpu.runtime.crew import parallel
from gpustump.engines.cpu.runtime.intrinsics import prefetch
from gpustump.engines.cpu.split.cut_scores import (
    KINDS,
    NO_KEY,
    add_scores,
    constant_key,
    first_with,
    forbid,
    key_of,
    largest_key,
    score_of,
)
from gpustump.engines.cpu.split.cut_sums import position_of
from gpustump.engines.cpu.split.scan import Best, Round, is_better
from gpustump.engines.cpu.table.sparse_table import SparseSorted
from gpustump.engines.objective import Objective
from gpustump.engines.threads import ranges

_SAMPLES_AT_ONCE, _ENTRIES_AT_ONCE = 2**15, 2**16
"""How many samples and listed samples are worth another thread."""

_TRIES = 8
"""How many features that promise the best score are read before all others."""

_PARTS = 8
"""Parts of the features for each thread: those that are read lie unevenly among all."""

_FEW = 8
"""If a step's feature lists more than one sample in so many, no rows are read."""

_AHEAD = np.uint64(16)
"""How many entries ahead integers are prefetched: samples of a feature are far from each other."""

_FEATURE_ENTRIES = 16
"""A feature takes as long as this many listed samples, however few it lists."""

_WIDER = 1.0 + 2.0**-20
"""More than the relative error of a bound, which is computed in float64 from sums of fewer than
2**31 terms."""

_SAMPLE, _SIGN = np.uint32(2**31 - 1), np.uint32(31)


@group
class Bounds(NamedTuple):
    """What is known of the features' scores; see the head of this file.

    Attributes
    ----------
    roots : ndarray (n,) of float64
        For each feature that lists a sample the root of its best score, or more.
    seen : ndarray (n,) of float64
        That root when the feature was last read.
    ratios : ndarray (n,) of float64
        The roots of the ratios c.
    moves : ndarray (n_threads, n) of float64
        What samples near the last step add to the squares of e, as each thread has found.
    row_starts : ndarray (n_samples + 1,) of int64
        Where the list of each sample begins in `row_features`; empty if nothing is kept.
    row_features : ndarray (n_listed,) of int32
        The places of the features that list a sample.
    """

    roots: Floats
    seen: Floats
    ratios: Floats
    moves: Annotated[np.ndarray, "float64[:, ::1]"]
    row_starts: Integers
    row_features: Annotated[np.ndarray, "int32[::1]"]

    @property
    def has_rows(self) -> bool:
        return len(self.row_starts) > 0

    @classmethod
    def empty(cls, table: SparseSorted, features: np.ndarray, *, keeps: bool) -> Bounds:
        n = len(features)
        roots, seen, ratios = (np.full(n, np.inf) for _ in range(3))
        start = roots, seen, ratios, np.zeros((table.team.size, n))
        if not keeps or not n:
            return cls(*start, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32))
        from scipy.sparse import csc_array

        samples = table.samples
        is_short = samples.n_listed < 2**31  # SciPy copies both index arrays if one is wide
        starts = samples.starts.astype(np.int32 if is_short else np.int64)
        ones = np.ones(samples.n_listed, dtype=np.int8)
        own = csc_array((ones, samples.rows, starts), shape=samples.shape).tocsr()
        place = np.zeros(table.n_features, dtype=own.indices.dtype)
        place[features] = np.arange(n)
        for piece in ranges(len(own.indices), _ENTRIES_AT_ONCE):  # without a copy of all
            own.indices[slice(*piece)] = place[own.indices[slice(*piece)]]
        return cls(*start, own.indptr.astype(np.int64), own.indices.astype(np.int32, copy=False))


@group
class Change(NamedTuple):
    """How the samples' integers have changed since the last search.

    Attributes
    ----------
    of_all, of_others : float
        The sums of d**2 / h over all samples, and over those that are not near the last step.
    of_total : float
        t: the root of the sum of D**2 / H over the outputs, for all samples together.
    least, most : float
        Between which shares of what they were Hessians are.
    """

    of_all: float
    of_others: float
    of_total: float
    least: float
    most: float


class SparseSearch:
    """The search of a run on a sparse table for its best splits.

    Parameters
    ----------
    table : SparseSorted
    objective : Objective
    """

    def __init__(self, table: SparseSorted, objective: Objective) -> None:
        self._table, self._objective, self._kind = table, objective, KINDS[objective.gain]
        n_listed, n_threads = table.n_listed, table.team.size
        self._rows = np.zeros((objective.n_outputs, table.n_samples, 2), dtype=np.int64)
        self._totals = np.zeros((objective.n_outputs, 2), dtype=np.int64)
        self._features = np.flatnonzero(n_listed)  # others have no cut
        self._bounds = Bounds.empty(table, self._features, keeps=self._kind == NEWTON)
        self._found: int | None = None  # the feature of the last split
        self._is_searching = False  # for ever, if a search is interrupted
        cost = np.cumsum(n_listed[self._features] + _FEATURE_ENTRIES)
        least = max(_ENTRIES_AT_ONCE, -(-int(cost[-1]) // (_PARTS * n_threads))) if len(cost) else 1
        self._parts = np.asarray(_parts(cost, least), dtype=np.int64).reshape(-1, 2)

    def best_cut(self, terms: Terms, totals: np.ndarray) -> Cut:
        """The largest cut, from a round's terms and their sums (n_outputs, 2)."""
        objective, kind, team = self._objective, self._kind, self._table.team
        l2 = float(objective.l2)
        constant = constant_key(totals, kind, l2)
        round_ = Round(*terms, totals, constant, kind, l2, objective.directions)
        if self._is_searching:
            self._bounds.roots[:] = np.inf  # some may not have followed the samples
        self._is_searching = True
        change = self._follow(terms, totals)
        best = Best(NO_KEY, -1, -1)

        def look(parts: np.ndarray) -> Best:
            found = np.empty((len(parts), 3), dtype=np.int64)
            team.run(
                _best_split, len(parts), self._table.columns, self._features, self._rows, round_,
                self._bounds, change, best.key, parts, found,
            )  # fmt: skip
            return max([best, *(Best(*own) for own in found.tolist())], key=_order)

        if len(self._parts) and kind == NEWTON:  # a good one first leaves few others to read
            at, last = int(np.argmax(self._bounds.seen)), -1
            for _ in range(_TRIES):
                best = look(np.asarray([(at, at + 1)]))
                at, last = int(np.argmax(self._bounds.seen)), at
                if at == last:
                    break
        best = look(self._parts)
        self._is_searching = False
        if constant > best.key:
            self._found = None
            return Cut(0, None, 0, 0, score_of(constant, kind))
        self._found = best.feature
        return Cut(best.feature, best.position, 0, 0, score_of(best.key, kind))

    def _follow(self, terms: Terms, totals: np.ndarray) -> Change:
        """Put a round's terms side by side; returns how they changed."""
        table, bounds, before = self._table, self._bounds, self._totals.astype(float)
        told, near = False, np.asarray([(0.0, 1.0, 1.0)])
        if self._found is not None:
            samples, _ = table.samples.listed(self._found)
            told = bounds.has_rows and len(samples) * _FEW < table.n_samples
            near = np.empty((len(bounds.moves), 3))
            table.team.run(_pack_near, len(near), *terms, self._rows, samples, bounds, told, near)
        n_pieces, size = table.team.pieces(table.n_samples, _SAMPLES_AT_ONCE)
        steps, shares = np.zeros((n_pieces, len(before))), np.empty((n_pieces, 2))
        table.team.run(_pack, n_pieces, *terms, self._rows, size, steps, shares)
        moved, near_moves = (totals - self._totals)[:, 0].astype(float), float(near[:, 0].sum())
        self._totals = totals.copy()
        with np.errstate(all="ignore"):
            others = float((steps.max(axis=0) ** 2 * before[:, 1]).sum()) * _WIDER
            of_total = math.sqrt((moved * moved / before[:, 1]).sum()) if before[0, 1] else math.inf
        return Change(
            near_moves + others,
            others + (0.0 if told else near_moves),
            of_total,
            float(min(shares[:, 0].min(), near[:, 1].min())),
            float(max(shares[:, 1].max(), near[:, 2].max())),
        )


def _order(best: Best) -> tuple[int, int]:
    """Larger for what is better of several features."""
    return best.key, -best.feature


def _parts(cost: np.ndarray, least: int) -> list[tuple[int, int]]:
    """Consecutive features, so that those of each part cost `least` or little more together.

    `cost` is what each feature and those before it cost.
    """
    if not len(cost):
        return []
    wanted = np.searchsorted(cost, np.arange(least, cost[-1] + least, least)) + 1
    ends = np.unique(np.minimum(wanted, len(cost))).tolist()
    return list(zip([0, *ends], ends, strict=False))


@parallel(
    "void(int64, int64[:, ::1], int64[:, ::1], int64[:, :, ::1],"
    " Array(int32, 1, 'C', readonly=True), Bounds, boolean, float64[:, ::1])"
)
def _pack_near(piece, gradient, hessian, rows, samples, bounds, told, found):  # type: ignore[no-untyped-def]
    """Put the terms of a piece of some samples side by side.

    Writes the sum of d**2 / h since they were packed last, and the least and the largest share of
    their former values that Hessians have. If `told`, each feature that lists a sample learns its
    part. The samples may be the caller's own, which may be read-only.
    """
    total, least, most = 0.0, 1.0, 1.0
    size = -(-len(samples) // len(found))
    for i in samples[piece * size : (piece + 1) * size]:
        move = 0.0
        for k in range(len(gradient)):
            a = gradient[k, i]
            b = hessian[k, i] if len(hessian) > 0 else abs(a)
            change, before = float(a - rows[k, i, 0]), float(rows[k, i, 1])
            if before > 0.0:
                share = float(b) / before
                move += (change * change) / before
                least, most = min(least, share), max(most, share)
            elif change != 0.0:
                move = np.inf
            rows[k, i, 0], rows[k, i, 1] = a, b
        total += move
        if told:
            for place in range(bounds.row_starts[i], bounds.row_starts[i + 1]):
                bounds.moves[piece, bounds.row_features[place]] += move
    found[piece, 0], found[piece, 1], found[piece, 2] = total, least, most


@parallel(
    "void(int64, int64[:, ::1], int64[:, ::1], int64[:, :, ::1], int64, float64[:, ::1],"
    " float64[:, ::1])"
)
def _pack(piece, gradient, hessian, rows, size, steps, shares):  # type: ignore[no-untyped-def]
    """Put the terms of a piece of the samples side by side.

    Writes the largest abs(d) / h of each output since they were packed last, and the shares as
    `_pack_near`. Divisions are rare: they take longer than all else.
    """
    low, high = piece * size, min((piece + 1) * size, rows.shape[1])
    least, most = 1.0, 1.0
    for k in range(len(gradient)):
        own, of_gradient = rows[k], gradient[k]
        of_hessian, step = hessian[k] if len(hessian) > 0 else of_gradient, 0.0
        for i in range(low, high):
            a, b = of_gradient[i], abs(of_hessian[i])
            change, before, now = abs(float(a - own[i, 0])), float(own[i, 1]), float(b)
            if change > step * before:
                step = change / before
            if now < least * before:
                least = now / before
            elif now > most * before and before > 0.0:
                most = now / before
            own[i, 0], own[i, 1] = a, b
        steps[piece, k] = step
    shares[piece, 0], shares[piece, 1] = least, most


@inner("int64(int32[::1], int64[:, ::1], int64[:, ::1], int64)")
def _sum_at_cuts(order, rows, left, at):  # type: ignore[no-untyped-def]
    """Write the sums of both integers left of the cuts of sorted samples, and of all of them.

    They are written from `at` on; returns where they end.
    """
    a, b, place, flat = 0, 0, np.uint64(at), rows.reshape(rows.size)
    last = np.uint64(len(order) - 1)
    for k in range(len(order)):
        soon = np.uint32(order[min(np.uint64(k) + _AHEAD, last)]) & _SAMPLE
        prefetch(flat, np.uint64(soon) << np.uint64(1))
        marked = np.uint32(order[k])
        sample = marked & _SAMPLE
        a += rows[sample, 0]
        b += rows[sample, 1]
        left[0, place], left[1, place] = a, b
        place += np.uint64(~marked >> _SIGN)
    return np.int64(place)


@parallel(
    "void(int64, SparseColumns, int64[::1], int64[:, :, ::1], Round, Bounds, Change, int64,"
    " int64[:, ::1], int64[:, ::1])"
)
def _best_split(piece, columns, features, rows, round_, bounds, change, least, parts, found):  # type: ignore[no-untyped-def]
    """Write the key, the feature and the position of the best split of a part of the features.

    The key is below `least` if there is none that reaches it. `features` are those of `bounds`.
    """
    low, high = parts[piece]
    most_cuts = 0
    for number in range(low, high):
        most_cuts = max(most_cuts, columns.n_present[features[number]] + 2)
    room = np.empty((3, most_cuts), dtype=np.int64)  # sums left of cuts, and their scores
    totals, kind, l2, directions = round_.totals, round_.kind, round_.l2, round_.directions
    smoothing = float(totals[0, 1]) / float(2 * rows.shape[1])
    roots, ratios, moves = bounds.roots, bounds.ratios, bounds.moves
    by, wider_ratio = _WIDER / np.sqrt(change.least), np.sqrt(change.most / change.least) * _WIDER
    best = Best(least, len(columns.n_zeros), 0)
    is_newton, as_float = kind == NEWTON, np.empty(1, dtype=np.int64)
    least_root = -1.0
    if is_newton and least > 0:
        as_float[0] = least
        least_root = np.sqrt(as_float.view(np.float64)[0])
    left, all_scores = room[:2], room[2]
    for number in range(low, high):
        if is_newton:
            own_moves, ratio = change.of_others, ratios[number]
            for thread in range(len(moves)):
                own_moves += moves[thread, number]
                moves[thread, number] = 0.0
            own_move = np.sqrt(own_moves)
            of_zeros = change.of_total * (1.0 + ratio) + own_move * ratio
            growth = np.sqrt(min(own_move * own_move + of_zeros * of_zeros, change.of_all))
            roots[number] = (roots[number] + growth) * by
            ratios[number] = ratio * wider_ratio
            if roots[number] < least_root:
                continue
        j = features[number]
        own = columns.order[columns.starts[j] : columns.starts[j + 1]]
        n_below, n_present, n_zeros = columns.n_below[j], columns.n_present[j], columns.n_zeros[j]
        if n_present + n_zeros == 0:  # no value, no cut
            roots[number] = bounds.seen[number] = 0.0
            continue
        middle, after, n_cuts, present, ratio = 0, 0, 0, (0, 0), 0.0
        for k in range(len(rows)):
            of_output = rows[k]
            missing_a, missing_b = 0, 0
            for place in range(n_present, len(own)):
                sample = np.uint32(own[place]) & _SAMPLE
                missing_a += of_output[sample, 0]
                missing_b += of_output[sample, 1]
            present = (totals[k, 0] - missing_a, totals[k, 1] - missing_b)
            middle = _sum_at_cuts(own[:n_below], of_output, left, 0)
            after = middle + (1 if n_zeros > 0 else 0)
            n_cuts = _sum_at_cuts(own[n_below:n_present], of_output, left, after)
            # What is not above 0: the sums left of the cut after the zeros.
            rest_a, rest_b = present
            if n_cuts > after:
                rest_a -= left[0, n_cuts - 1]
                rest_b -= left[1, n_cuts - 1]
            for cut in range(after, n_cuts):
                left[0, cut] += rest_a
                left[1, cut] += rest_b
            if n_zeros > 0:
                left[0, middle], left[1, middle] = rest_a, rest_b
            if is_newton:  # the Hessian of listed samples, against that of the others
                below = left[1, middle - 1] if middle > 0 else 0
                of_others = rest_b - below
                own_ratio = float(totals[k, 1] - of_others) / float(max(of_others, 1))
                ratio = own_ratio if k == 0 else max(ratio, own_ratio)
            scores, lacking = all_scores[:n_cuts], (missing_a, missing_b)
            add_scores(left[0], left[1], present, lacking, kind, l2, k == 0, scores)
        scores = all_scores[: n_cuts - 1]  # the last one is the threshold above all values
        apart = all_scores[n_cuts - 1] if kind == DISCRETE else key_of(all_scores[n_cuts - 1])
        if is_newton:
            as_float[0] = max(apart, largest_key(scores, n_cuts - 1, kind))
            roots[number] = np.sqrt(max(0.0, as_float.view(np.float64)[0])) * _WIDER
            bounds.seen[number], ratios[number] = roots[number], np.sqrt(ratio) * _WIDER
        if len(directions) > 0 and directions[j] != 0:
            forbid(left[0], left[1], present, directions[j], kind, l2, smoothing, scores)
        key = largest_key(scores, n_cuts - 1, kind)
        position = -1
        if apart > round_.constant and apart > key:
            key, position = apart, n_present + n_zeros - 1
        if key == NO_KEY or key < best.key:
            continue
        if position < 0:
            cut = first_with(scores, key, kind)
            if cut < middle:
                position = position_of(own, cut)
            elif cut < after:
                position = n_below + n_zeros - 1
            else:
                position = n_below + n_zeros + position_of(own[n_below:], cut - after)
        if is_better(best, key, j, position):
            best = Best(key, j, position)
            if is_newton:
                as_float[0] = key
                least_root = np.sqrt(as_float.view(np.float64)[0])
    if best.feature == len(columns.n_zeros):
        best = Best(NO_KEY, -1, -1)
    found[piece, 0], found[piece, 1], found[piece, 2] = best.key, best.feature, best.position
