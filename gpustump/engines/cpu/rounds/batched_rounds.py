"""Many rounds on a small table, in one call that needs no Python.

Each round has the steps of a single round, mostly by the same kernels: the search, the sums over
the regions of the cut, the votes and their factors, the update of the samples, the sums over
held-out samples. All results are integers, or certain to the last digit, so the rounds are the
same. The call ends before a round that is not ordinary: if a constant is the best, if all votes are
0, if nothing is left to learn, or if the last digit of a vote or a factor is in doubt.

Sets of categories, and cuts that a round is offered, are for Newton votes only.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple, Protocol

import numpy as np

from gpustump.engines.batched_rounds import (
    CLASSES,
    DISCRETE,
    NEWTON,
    NO_CANDIDATES,
    POISSON,
    QUANTILE,
    SQUARED,
    CandidateSplits,
    MadeRounds,
    ValidationSamples,
    VoteRule,
)
from gpustump.engines.category_search import Categories
from gpustump.engines.cpu.loss.loss import Loss
from gpustump.engines.cpu.loss.regions import mark_by_position
from gpustump.engines.cpu.loss.residual_slices import advance as advance_slopes
from gpustump.engines.cpu.loss.residual_slices import find_quantiles
from gpustump.engines.cpu.loss.terms import SampleSums, sum_regions
from gpustump.engines.cpu.rounds.certain_factors import set_factors
from gpustump.engines.cpu.rounds.certain_votes import (
    Whole,
    rank_of,
    says_nothing_of_missing,
    set_votes,
    set_votes_of_quantiles,
)
from gpustump.engines.cpu.rounds.held_out_votes import (
    held_out_of,
    judge,
    judge_set,
    n_sums_of,
    nothing_held_out,
)
from gpustump.engines.cpu.runtime.compiling import (
    Bytes,
    Floats,
    Integers,
    address_of,
    group,
    inner,
    kernel,
)
from gpustump.engines.cpu.runtime.crew import ALONE, pieces
from gpustump.engines.cpu.runtime.intrinsics import apart, call_at
from gpustump.engines.cpu.split.candidate_splits import best_candidate, cuts_of
from gpustump.engines.cpu.split.category_sets import NO_SETS, best_set, column_of, mark_set, sets_of
from gpustump.engines.cpu.split.cut_scores import constant_key, key_of
from gpustump.engines.cpu.split.scan import Round, ScanSearch, scan
from gpustump.engines.cpu.split.small_bins import BinSearch, Memory, Rows, look_at_columns
from gpustump.engines.cpu.table.sorted_table import SortedTable
from gpustump.engines.objective import Objective
from gpustump.engines.powers import powers
from gpustump.learners.hypothesis import N_REGIONS

_scan, _look_at_columns, _sum_each_region = map(apart, (scan, look_at_columns, sum_regions))

_SAMPLES_AT_ONCE = 2**14
"""Fewer samples than this are not worth another thread."""

Table = Annotated[np.ndarray, "int64[:, ::1]"]


@group
class Features(NamedTuple):
    """What the rounds know of the features besides their sorted columns.

    Attributes
    ----------
    directions : ndarray (n_features,) of int64
        Their constraints; empty if there are none.
    thresholds : ndarray (n_features, n_samples) of float64
        The threshold after each sorted position.
    """

    directions: Integers
    thresholds: Annotated[np.ndarray, "float64[:, ::1]"]


@group
class Numbers(NamedTuple):
    """What a loss keeps of each sample, and room for its region.

    Attributes
    ----------
    own : ndarray (n_outputs, n_samples) of float64
        Weights, odds, probabilities, or residuals; of Poisson and gamma loss the amounts that move,
        and in a second row those that stay.
    scores : ndarray (n_outputs, n_samples) of float64
    gradient, hessian : ndarray (n_outputs, n_samples) of int64
        The integers of the present round; see `terms.Terms`.
    units : ndarray (n_samples,) or (1,) of float64
        As in `loss.Loss`.
    regions : ndarray (n_samples,) of uint8
    """

    own: Annotated[np.ndarray, "float64[:, ::1]"]
    scores: Annotated[np.ndarray, "float64[:, ::1]"]
    gradient: Table
    hessian: Table
    units: Floats
    regions: Bytes


@group
class Choice(NamedTuple):
    """What the first rounds choose from; see `engines.batched_rounds.CandidateSplits`.

    Attributes
    ----------
    cuts : ndarray (n_rounds_with_candidates, k, 2) of int64
        Feature and sorted position.
    thresholds : ndarray (n_rounds_with_candidates, k) of float64
    sides : ndarray (n_rounds_with_candidates, k, n_numbers) of uint8
        Empty if no feature is categorical.
    """

    cuts: Annotated[np.ndarray, "int64[:, :, ::1]"]
    thresholds: Annotated[np.ndarray, "float64[:, ::1]"]
    sides: Annotated[np.ndarray, "uint8[:, :, ::1]"]


@group
class Made(NamedTuple):
    """Where rounds are written to.

    Attributes
    ----------
    cuts : ndarray (n_rounds, 3) of int64
        Feature, position, and the score: an agreement, or the bits of a float.
    thresholds : ndarray (n_rounds,) of float64
        NaN for a set of categories.
    sides : ndarray (n_rounds, n_numbers) of uint8
        Empty, (n_rounds, 0), if no feature is categorical.
    votes : ndarray (n_rounds, n_regions, n_outputs) of float64
    normalisers : ndarray (n_rounds,) of float64
    sums : ndarray (n_rounds + 1, 2 * n_outputs + 1) of int64
        The numbers of `terms.SampleSums` before the first round, and after each; zeros at first.
    right : ndarray (n_rounds, n_classes) of int64
    losses : ndarray (n_rounds, n_sums) of int64
        The sums over held-out samples after each round, as in `MadeRounds`; zeros at first.
    """

    cuts: Table
    thresholds: Floats
    sides: Annotated[np.ndarray, "uint8[:, ::1]"]
    votes: Annotated[np.ndarray, "float64[:, :, ::1]"]
    normalisers: Floats
    sums: Table
    right: Table
    losses: Table


@group
class Shares(NamedTuple):
    """How the samples are shared by threads, and room for the sums over each piece of them.

    Attributes
    ----------
    n_pieces : int
        `crew.ALONE` if there is one piece.
    size : int
        How many samples a piece has.
    of_regions : ndarray (n_pieces, n_regions, n_outputs, 2) of int64
        The sums over each region; of the first piece at last those over all pieces.
    of_samples : ndarray (n_pieces, 2 * n_outputs + 1) of int64
        The numbers of `terms.SampleSums`.
    """

    n_pieces: int
    size: int
    of_regions: Annotated[np.ndarray, "int64[:, :, :, ::1]"]
    of_samples: Table


class SortedRun(Protocol):
    """A run on a sorted table whose rounds are made in batches; see `sorted.SortedState`."""

    table: SortedTable
    objective: Objective
    loss: Loss
    sums: SampleSums
    regions: np.ndarray

    def take_made(self, sums: np.ndarray) -> None:
        """Set the sums over all samples after rounds that were made in batches."""


class BatchedRounds:
    """Makes rounds of a run on a small table in batches; see `engines.batched_rounds.BatchMaker`.

    Parameters
    ----------
    run : SortedRun
    rule : VoteRule
    validation : ValidationSamples or None
    categories : Categories or None
        To the run's table all values of these features are missing.
    finder : ScanSearch or BinSearch
        The run's search.
    """

    def __init__(
        self,
        run: SortedRun,
        rule: VoteRule,
        validation: ValidationSamples | None,
        categories: Categories | None,
        finder: ScanSearch | BinSearch,
    ) -> None:
        self._run, self._rule, self._powers = run, rule, powers()
        self._update = address_of(run.loss.kernel)
        self._rows, self._size, self._memory = (
            Rows.empty(np.empty((1, 0), np.int64)),
            0,
            Memory(np.zeros(1, np.int64), *np.zeros((3, 0, 0), np.int64)),
        )
        if isinstance(finder, BinSearch):
            self._rows, self._size, self._memory = finder.rows, finder.size, finder.memory
        table, self._shape = run.table, (0, 0)
        self._features = Features(run.objective.directions, table.thresholds)
        self._sets = NO_SETS
        if categories is not None:
            n_outputs = run.objective.n_outputs
            self._sets = sets_of(categories, table.n_features, n_outputs, validation)
        self._held_out = nothing_held_out()
        if validation is not None:
            self._shape = validation.n_classes, n_sums_of(validation)
            self._held_out = held_out_of(validation)

    def make(self, n_rounds: int, candidates: CandidateSplits = NO_CANDIDATES) -> MadeRounds:
        """Make `n_rounds` rounds, or fewer; see `engines.batched_rounds.BatchMaker.make`."""
        run = self._run
        loss, sums = run.loss, run.sums.numbers
        n_outputs = len(loss.terms.gradient)
        n_classes, n_sums = self._shape
        made = Made(
            np.empty((n_rounds, 3), dtype=np.int64),
            np.empty(n_rounds),
            np.empty((n_rounds, self._sets.groups.shape[1]), dtype=np.uint8),
            np.empty((n_rounds, N_REGIONS, n_outputs)),
            np.empty(n_rounds),
            np.zeros((n_rounds + 1, len(sums)), dtype=np.int64),
            np.zeros((n_rounds, n_classes), dtype=np.int64),
            np.zeros((n_rounds, n_sums), dtype=np.int64),
        )
        made.sums[0] = sums
        numbers = Numbers(loss.numbers, loss.scores, *loss.terms, loss.units, run.regions)
        no_sides = np.empty((*candidates.features.shape, 0), dtype=np.uint8)
        sides = candidates.sides if len(self._sets.features) else no_sides
        choice = Choice(cuts_of(candidates, run.table), candidates.thresholds, sides)
        n_made = run.table.team.run(
            _make,
            len(self._memory.last),
            self._update,
            self._size,
            self._memory,
            run.table.columns,
            self._features,
            self._sets,
            self._rows,
            numbers,
            self._rule,
            self._powers,
            *self._held_out,
            choice,
            made,
        )
        run.take_made(made.sums[n_made])
        features, _, scores = made.cuts[:n_made].T
        is_agreement = self._rule.kind == DISCRETE
        return MadeRounds(
            features,
            made.thresholds[:n_made],
            made.votes[:n_made],
            scores if is_agreement else scores.copy().view(np.float64),
            made.sums[1 : n_made + 1, -1],
            made.right[:n_made],
            made.losses[:n_made],
            made.sides[:n_made],
            made.sums[:n_made, 1:-1:2].sum(axis=1),
            made.normalisers[:n_made],
        )


@inner("Shares(int64, int64, int64)")
def _shares(n_threads, n_samples, n_outputs):  # type: ignore[no-untyped-def]
    """The pieces that samples are taken in."""
    n_pieces, size = pieces(n_threads, n_samples, _SAMPLES_AT_ONCE)
    of_regions = np.empty((n_pieces, N_REGIONS, n_outputs, 2), dtype=np.int64)
    of_samples = np.empty((n_pieces, 2 * n_outputs + 1), dtype=np.int64)
    return Shares(n_pieces if n_pieces > 1 else ALONE, size, of_regions, of_samples)


@inner(
    "boolean(SortedColumns, Features, Sets, Numbers, VoteRule, int64[:, ::1], Choice, int64, Made)"
)
def _choose_candidate(columns, features, sets, numbers, rule, totals, candidates, number, made):  # type: ignore[no-untyped-def]
    """Find the best cut that a round is offered; returns whether it is ordinary."""
    cuts, sides = candidates.cuts[number], candidates.sides[number]
    found, score = best_candidate(
        columns.order, columns.n_present, numbers.gradient, numbers.hessian, totals, rule.l2,
        features.directions, sets.columns, sets.numbers, cuts, sides,
    )  # fmt: skip
    cut = made.cuts[number]
    cut[0], cut[1] = cuts[found, 0], cuts[found, 1]
    cut[2:].view(np.float64)[0] = score
    made.thresholds[number] = candidates.thresholds[number, found]
    if column_of(sets.columns, cut[0]) >= 0:
        for which in range(sides.shape[1]):
            made.sides[number, which] = sides[found, which]
    return score >= 0.0


@inner(
    "boolean(int64[::1], int64, Memory, SortedColumns, Features, Sets, Rows, int64[:, ::1],"
    " Numbers, VoteRule, int64[:, ::1], int64, Made)"
)
def _choose(  # type: ignore[no-untyped-def]
    crew, size, memory, columns, features, sets, rows, room, numbers, rule, totals, number, made
):
    """Find the best cut of all, or the best set; returns whether it is ordinary.

    `room` is for the best splits of pieces of columns, (n_pieces, 3); or, if there are no bins, for
    the sums and scores of a scan, (3, n_samples).
    """
    gradient, hessian, cut = numbers.gradient, numbers.hessian, made.cuts[number]
    constant = constant_key(totals, rule.kind, rule.l2)
    kind, l2, directions = rule.kind, rule.l2, features.directions
    if len(columns.codes) == 0:
        found = np.empty((1, 3), dtype=np.int64)
        _scan(
            crew, ALONE, columns.order, columns.n_present, gradient, hessian, totals, constant,
            kind, l2, directions, room.reshape((1, *room.shape)), len(columns.order), found,
        )  # fmt: skip
        key, feature, position = found[0]
    else:
        round_ = Round(gradient, hessian, totals, constant, kind, l2, directions)
        _look_at_columns(crew, len(memory.last), columns, rows, round_, size, memory, room)
        key, feature, position = room[0]
        for piece in range(1, len(memory.last)):  # of equal keys the lower feature counts
            if room[piece, 0] > key:
                key, feature, position = room[piece]
    is_set = False
    if len(sets.features) > 0:
        # The cut's last number serves to take a key for its float, and a float for its bits.
        cut[2] = key_of(constant)
        least = cut[2:].view(np.float64)[0]
        of_set, other = best_set(sets, gradient, hessian, l2, least, made.sides[number])
        cut[2:].view(np.float64)[0] = of_set
        of_set_key = key_of(cut[2])
        is_set = of_set_key > key or (of_set_key == key and 0 <= other < feature)
        if is_set:
            key, feature, position = of_set_key, other, 0
    if feature < 0 or key < constant:
        return False
    cut[0], cut[1], cut[2] = feature, position, key_of(key)
    made.thresholds[number] = math.nan if is_set else features.thresholds[feature, position]
    return True


@inner("void(int64[::1], Numbers, Shares)")
def _sum_regions(crew, numbers, shares):  # type: ignore[no-untyped-def]
    """Set the sums over the regions that are marked."""
    own, found = (numbers.gradient, numbers.hessian, numbers.regions), shares.of_regions
    found[:] = 0
    _sum_each_region(crew, shares.n_pieces, *own, shares.size, found)
    by_piece = found.reshape((len(found), found[0].size))
    for piece in range(1, len(by_piece)):
        for k in range(by_piece.shape[1]):
            by_piece[0, k] += by_piece[piece, k]


@inner(
    "boolean(SortedColumns, Features, Numbers, VoteRule, Whole, int64[::1], boolean,"
    " int64[:, :, ::1], float64[:, ::1])"
)
def _vote(columns, features, numbers, rule, whole, cut, is_set, sums, votes):  # type: ignore[no-untyped-def]
    """Set the votes that the sums over the regions decide; returns whether these are ordinary."""
    feature, position = cut[0], cut[1]
    direction = features.directions[feature] if len(features.directions) > 0 else 0
    if rule.target == QUANTILE:
        ranks = np.array([rank_of(rule.level, sums[region, 0, 1]) for region in range(N_REGIONS)])
        quantiles = np.empty(N_REGIONS, dtype=np.int64)
        find_quantiles(numbers.own[0], numbers.units, numbers.regions, ranks, quantiles)
        is_ordinary = set_votes_of_quantiles(sums, quantiles, rule, votes)
    else:
        is_ordinary = set_votes(sums, rule, whole, direction, votes)
    if not is_ordinary:
        return False
    # The record of a constant counts missing values among the others.
    is_last = not is_set and position + 1 >= columns.n_present[feature]
    return not (is_last and says_nothing_of_missing(votes))


@inner(
    "void(int64[::1], int64, Numbers, VoteRule, Shares, float64[:, ::1], float64[:, :, ::1],"
    " int64[::1])"
)
def _advance(crew, update, numbers, rule, shares, votes, factors, sums):  # type: ignore[no-untyped-def]
    """Update all samples by a step, and add up the sums over them.

    The loss's kernel is called by its address `update`, so that those of other losses need not be
    compiled.
    """
    own, scores, gradient, hessian, units, regions = numbers
    of_pieces, n = shares.of_samples, shares.n_pieces
    of_pieces[:] = 0
    step = (regions, votes, factors, shares.size, of_pieces)
    if rule.target == SQUARED:
        call_at(update, (crew, n, own[0], gradient, hessian, units, *step))
    elif rule.target == QUANTILE:
        level, high = rule.level, len(regions)
        advance_slopes(own[0], gradient, units, level, regions, votes, 0, high, of_pieces[0])
    elif rule.target != CLASSES:
        sign = np.int64(1 if rule.target == POISSON else -1)
        call_at(update, (crew, n, own, scores, gradient, hessian, sign, *step))
    elif rule.kind != NEWTON:
        call_at(update, (crew, n, own, scores, gradient, units, *step))
    elif len(own) == 1:
        call_at(update, (crew, n, own[0], scores, gradient, hessian, units, *step))
    else:
        moves = rule.kind == NEWTON
        call_at(update, (crew, n, moves, own, scores, gradient, hessian, units, *step))
    for piece in range(len(of_pieces)):
        for k in range(len(sums)):
            sums[k] += of_pieces[piece, k]


@kernel(
    "int64(int64[::1], int64, int64, int64, Memory, SortedColumns, Features, Sets, Rows, Numbers,"
    " VoteRule, Powers, HeldOut, LossTable, Choice, Made)"
)
def _make(  # type: ignore[no-untyped-def]
    crew, n_pieces, update, size, memory, columns, features, sets, rows, numbers, rule, tables,
    held_out, losses, candidates, made,
):  # fmt: skip
    """Make rounds until all are made, or one is not ordinary; returns how many were made.

    `update` is where the loss's kernel is. Columns of bins are searched in pieces of `size`;
    `memory` is that of `BinSearch`.
    """
    n_outputs, has_bins = len(numbers.gradient), len(columns.codes) > 0
    room = np.empty(
        (n_pieces if has_bins else 3, 3 if has_bins else columns.order.shape[1]), np.int64
    )
    shares = _shares(n_pieces, len(numbers.regions), n_outputs)
    factors, of_regions = np.empty((N_REGIONS, n_outputs, 2)), shares.of_regions[0]
    n_with_candidates = len(candidates.cuts) if candidates.cuts.shape[1] > 0 else 0
    for number in range(len(made.cuts)):
        totals = made.sums[number][: 2 * n_outputs].reshape((n_outputs, 2))
        cut, sides, votes = made.cuts[number], made.sides[number], made.votes[number]
        if number < n_with_candidates:
            is_ordinary = _choose_candidate(
                columns, features, sets, numbers, rule, totals, candidates, number, made
            )
        else:
            is_ordinary = _choose(
                crew,
                size,
                memory,
                columns,
                features,
                sets,
                rows,
                room,
                numbers,
                rule,
                totals,
                number,
                made,
            )
        if not is_ordinary:
            return number
        feature, column = cut[0], column_of(sets.columns, cut[0])
        if column >= 0:
            mark_set(sets.numbers[column], sides, numbers.regions)
        else:
            own, n_present = columns.order[feature], columns.n_present[feature]
            mark_by_position(own, n_present, cut[1], numbers.regions)
        whole = Whole(totals[:, 1].sum(), numbers.gradient.size)
        of_set = column >= 0
        _sum_regions(crew, numbers, shares)
        if not _vote(columns, features, numbers, rule, whole, cut, of_set, of_regions, votes):
            return number
        made.normalisers[number] = set_factors(of_regions, votes, rule, whole, tables, factors)
        if math.isnan(made.normalisers[number]):
            return number
        right, sums = made.right[number], made.losses[number]
        if column >= 0:
            judge_set(crew, held_out, losses, sets.validation[column], sides, votes, right, sums)
        else:
            judge(crew, held_out, losses, feature, made.thresholds[number], votes, right, sums)
        _advance(crew, update, numbers, rule, shares, votes, factors, made.sums[number + 1])
    return len(made.cuts)
