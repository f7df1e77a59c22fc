"""Many rounds of Newton votes on a small table, in one call that needs no Python.

Each round has the steps of a single round, mostly by the same kernels: the search, the sums over
the regions of the cut, the votes and their factors, the update of the samples, the sums over
held-out samples. All results are integers, or certain to the last digit, so the rounds are the
same. The call ends before a round that is not ordinary: if a constant is the best, if all votes are
0, or if the last digit of a vote or a factor is in doubt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np

from gpustump.engines.ahead import NO_CUTS, MadeRounds, NewtonRule, OfferedCuts, WatchedSamples
from gpustump.engines.cpu.binned_splits import (
    NO_BINS,
    BinnedColumns,
    Room,
    Rows,
    constant_score,
    pack,
)
from gpustump.engines.cpu.binned_splits import best_split as best_binned_split
from gpustump.engines.cpu.certain_votes import says_nothing_of_missing, set_factors, set_votes
from gpustump.engines.cpu.compiling import Bytes, Floats, Integers, group, kernel
from gpustump.engines.cpu.direct_regions import mark
from gpustump.engines.cpu.direct_splits import NEWTON, best_split, key_of
from gpustump.engines.cpu.exact_powers import powers
from gpustump.engines.cpu.found_split import STUMP
from gpustump.engines.cpu.held_out_votes import (
    held_out_of,
    judge,
    n_sums_of,
    nothing_held_out,
)
from gpustump.engines.cpu.logistic_loss import advance as advance_odds
from gpustump.engines.cpu.offered_cuts import best_offered, cuts_of
from gpustump.engines.cpu.softmax_loss import advance as advance_probabilities
from gpustump.engines.cpu.terms import sum_regions
from gpustump.learners.hypothesis import N_REGIONS

if TYPE_CHECKING:
    from gpustump.engines.cpu.direct import DirectState

Table = Annotated[np.ndarray, "int64[:, ::1]"]


@group
class Sorted(NamedTuple):
    """A sorted table, and the constraints of its features.

    Attributes
    ----------
    order : ndarray (n_features, n_samples) of int32
        See `direct`.
    n_present : ndarray (n_features,) of int64
    directions : ndarray (n_features,) of int64
        Empty if there are no constraints.
    thresholds : ndarray (n_features, n_samples) of float64
        The threshold after each sorted position.
    """

    order: Annotated[np.ndarray, "int32[:, ::1]"]
    n_present: Integers
    directions: Integers
    thresholds: Annotated[np.ndarray, "float64[:, ::1]"]


@group
class Numbers(NamedTuple):
    """What a loss keeps of each sample, and room for its region.

    Attributes
    ----------
    own : ndarray (n_outputs, n_samples) of float64
        Odds, or probabilities.
    scores : ndarray (n_outputs, n_samples) of float64
    first, second : ndarray (n_outputs, n_samples) of int64
        The integers of the present round.
    units : ndarray (n_samples,) or (1,) of float64
        As in `loss.Loss`.
    regions : ndarray (n_samples,) of uint8
    """

    own: Annotated[np.ndarray, "float64[:, ::1]"]
    scores: Annotated[np.ndarray, "float64[:, ::1]"]
    first: Table
    second: Table
    units: Floats
    regions: Bytes


@group
class Choice(NamedTuple):
    """What the first rounds choose from; see `engines.ahead.OfferedCuts`.

    Attributes
    ----------
    cuts : ndarray (n_offering_rounds, k, 2) of int64
        Feature and sorted position.
    thresholds : ndarray (n_offering_rounds, k) of float64
    """

    cuts: Annotated[np.ndarray, "int64[:, :, ::1]"]
    thresholds: Annotated[np.ndarray, "float64[:, ::1]"]


@group
class Made(NamedTuple):
    """Where rounds are written to.

    Attributes
    ----------
    cuts : ndarray (n_rounds, 3) of int64
        Feature, position, and the bits of the score.
    thresholds : ndarray (n_rounds,) of float64
    votes : ndarray (n_rounds, n_regions, n_outputs) of float64
    sums : ndarray (n_rounds + 1, 2 * n_outputs + 1) of int64
        The numbers of `terms.PieceSums` before the first round, and after each; zeros at first.
    right : ndarray (n_rounds, n_classes) of int64
    losses : ndarray (n_rounds, n_sums) of int64
        The sums over held-out samples after each round, as in `MadeRounds`; zeros at first.
    """

    cuts: Table
    thresholds: Floats
    votes: Annotated[np.ndarray, "float64[:, :, ::1]"]
    sums: Table
    right: Table
    losses: Table


class RoundsAhead:
    """Makes rounds of a run on a small table ahead; see `engines.ahead.Ahead`.

    Parameters
    ----------
    state : DirectState
        Of Newton votes.
    rule : NewtonRule
    watched : WatchedSamples or None
    bins : (BinnedColumns, Rows, Room)
        The bins to search; by default all sorted positions are searched.
    """

    def __init__(
        self,
        state: DirectState,
        rule: NewtonRule,
        watched: WatchedSamples | None,
        bins: tuple[BinnedColumns, Rows, Room] = NO_BINS,
    ) -> None:
        self._bins = bins
        self._state, self._rule, self._powers = state, rule, powers()
        table, self._shape = state.table, (0, 0)
        directions = state.search.directions
        self._sorted = Sorted(table.order, table.n_present, directions, table.thresholds)
        self._held_out = nothing_held_out()
        if watched is not None:
            self._shape = watched.n_classes, n_sums_of(watched)
            self._held_out = held_out_of(watched)

    def make(self, n_rounds: int, offered: OfferedCuts = NO_CUTS) -> MadeRounds:
        """Make `n_rounds` rounds, or fewer; see `engines.ahead.Ahead.make`."""
        state = self._state
        loss, sums = state.loss, state.sums.numbers
        n_outputs = len(loss.terms.first)
        n_classes, n_sums = self._shape
        made = Made(
            np.empty((n_rounds, 3), dtype=np.int64),
            np.empty(n_rounds),
            np.empty((n_rounds, N_REGIONS, n_outputs)),
            np.zeros((n_rounds + 1, len(sums)), dtype=np.int64),
            np.zeros((n_rounds, n_classes), dtype=np.int64),
            np.zeros((n_rounds, n_sums), dtype=np.int64),
        )
        made.sums[0] = sums
        numbers = Numbers(loss.numbers, loss.scores, *loss.terms, loss.units, state.regions)
        choice = Choice(cuts_of(offered, state.table), offered.thresholds)
        n_made = _make(
            self._sorted,
            *self._bins,
            numbers,
            self._rule,
            self._powers,
            *self._held_out,
            choice,
            made,
        )
        state.take_made(made.sums[n_made])
        features, _, bits = made.cuts[:n_made].T
        return MadeRounds(
            features,
            made.thresholds[:n_made],
            made.votes[:n_made],
            bits.copy().view(np.float64),
            made.sums[1 : n_made + 1, -1],
            made.right[:n_made],
            made.losses[:n_made],
        )


@kernel(
    "boolean(Sorted, BinnedColumns, Rows, Room, Numbers, NewtonRule, int64[:, ::1], Choice, int64,"
    " Made)"
)
def _choose(table, columns, rows, room, numbers, rule, totals, offered, number, made):  # type: ignore[no-untyped-def]
    """Find the best cut of a round, or the best one offered; returns whether it is ordinary."""
    order, n_present, directions = table.order, table.n_present, table.directions
    first, second, cut = numbers.first, numbers.second, made.cuts[number]
    if number < len(offered.cuts) and offered.cuts.shape[1] > 0:
        cuts = offered.cuts[number]
        found, score = best_offered(
            order, n_present, first, second, totals, rule.l2, directions, cuts
        )
        cut[0], cut[1] = cuts[found, 0], cuts[found, 1]
        cut[2:].view(np.float64)[0] = score
        made.thresholds[number] = offered.thresholds[number, found]
        return score >= 0.0
    if len(columns.codes) > 0:
        pack(first, second, totals, rows)
        least = constant_score(totals, rule.l2)
        score, feature, position = best_binned_split(
            columns, rows, room, rule.l2, least, 0, len(columns.codes)
        )
        if feature < 0 or score < least:
            return False
        cut[0], cut[1] = feature, position
        cut[2:].view(np.float64)[0] = score
        made.thresholds[number] = table.thresholds[feature, position]
        return True
    key, feature, position, constant = best_split(
        order, n_present, first, second, totals, NEWTON, rule.l2, directions, 0, len(order)
    )
    cut[0], cut[1], cut[2] = feature, position, key_of(key)
    made.thresholds[number] = table.thresholds[feature, position]
    return key >= constant


@kernel("boolean(Sorted, Numbers, NewtonRule, int64[::1], float64[:, ::1])")
def _vote(table, numbers, rule, cut, votes):  # type: ignore[no-untyped-def]
    """Mark the regions of a cut, and set their votes; returns whether these are ordinary."""
    feature, position = cut[0], cut[1]
    mark(table.order[feature], table.n_present[feature], STUMP, position, numbers.regions)
    sums = np.zeros((N_REGIONS, len(numbers.first), 2), dtype=np.int64)
    regions = numbers.regions
    sum_regions(numbers.first, numbers.second, regions, 0, len(regions), sums)
    direction = table.directions[feature] if len(table.directions) > 0 else 0
    if not set_votes(sums, rule, direction, votes):
        return False
    # The record of a constant counts missing values among the others.
    is_last = position + 1 >= table.n_present[feature]
    return not (is_last and says_nothing_of_missing(votes))


@kernel("void(Numbers, float64[:, ::1], float64[:, :, ::1], int64[::1])")
def _advance(numbers, votes, factors, sums):  # type: ignore[no-untyped-def]
    """Update all samples by a step, and add up the sums over them."""
    own, scores, first, second, units, regions = numbers
    if len(own) == 1:
        advance_odds(own[0], scores, first, second, units, regions, votes, factors, 0, sums)
    else:
        advance_probabilities(
            own, scores, first, second, units, regions, votes, factors, 0, sums, True
        )


@kernel(
    "int64(Sorted, BinnedColumns, Rows, Room, Numbers, NewtonRule, Powers, HeldOut, LossTable,"
    " Choice, Made)"
)
def _make(  # type: ignore[no-untyped-def]
    table, columns, rows, room, numbers, rule, tables, held_out, losses, offered, made
):
    """Make rounds until all are made, or one is not ordinary; returns how many were made."""
    n_outputs = len(numbers.first)
    factors = np.empty((N_REGIONS, n_outputs, 2))
    for number in range(len(made.cuts)):
        totals = made.sums[number][: 2 * n_outputs].reshape((n_outputs, 2))
        cut, votes = made.cuts[number], made.votes[number]
        if not _choose(table, columns, rows, room, numbers, rule, totals, offered, number, made):
            return number
        if not _vote(table, numbers, rule, cut, votes):
            return number
        if not set_factors(votes, tables, factors):
            return number
        judge(
            held_out,
            losses,
            cut[0],
            made.thresholds[number],
            votes,
            made.right[number],
            made.losses[number],
        )
        _advance(numbers, votes, factors, made.sums[number + 1])
    return len(made.cuts)
