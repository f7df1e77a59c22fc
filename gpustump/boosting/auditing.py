"""Auditing a run: the rounds that a model claims, made again from the data and compared.

The run is made by `rounds` and `training` as any other is. Only the votes object differs: in each
round it compares the best hypothesis under the present weights, and its votes, with those that the
model claims, before boosting takes them. So the first difference is found in its own round, under
weights that all earlier rounds have proved right.

If only some rounds are to be searched, the others take the claimed hypothesis, and what follows
from it is compared: its thresholds, which are midpoints of values, its signs, its error and its
votes. That needs no search, and still finds a changed round, unless all later rounds were made to
fit it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from gpustump.arrays import Array
from gpustump.boosting.claims import ClaimedRun
from gpustump.boosting.early_stopping import EarlyStopping
from gpustump.boosting.own_cuts import OwnCuts
from gpustump.boosting.rounds import Boosting
from gpustump.boosting.training import (
    Ground,
    HeldOutRows,
    Run,
    Samples,
    Settings,
    Target,
    Trained,
    train,
)
from gpustump.boosting.votes import AnyRound, Change, Round, SoFar, Taken, Vote, Votes
from gpustump.data.parameters import Learner
from gpustump.engines.contract import PreparedTable, Search, State
from gpustump.engines.route import Route
from gpustump.learners.interval import Interval
from gpustump.learners.kinds import AnySplit, AnyStump, OfCategories

DIFFERS = "differs"
"""The stop reason of a run that is not what the model claims."""

What = Literal["constant", "stump", "error", "votes", "end"]


@dataclass(frozen=True)
class Side:
    """A round as the model holds it, or as the data give it.

    Attributes
    ----------
    hypothesis : stump or split of any kind
    vote : float, or tuple as `RegionRound.votes`
        As the model holds it: with several bags, divided by their number.
    score : float or None
        What the hypothesis is worth under the weights of this round: the edge of a `Round`, the
        score of a `RegionRound`. None if the hypothesis is of a kind that the run does not make, or
        if the round was not reached.
    """

    hypothesis: AnyStump | AnySplit
    vote: Vote
    score: float | None


@dataclass(frozen=True)
class RoundDifference:
    """The first round that is not what the data give.

    Attributes
    ----------
    what : str
        "constant": the scores from which the run starts. "stump": the hypothesis, or its signs.
        "error": only the error that is stored with it. "votes": only the votes. "end": the run ends
        at another round; then the side that has no such round is None.
    bag, run : int
        From 0.
    number : int
        The round's number, from 1; 0 for the constant.
    file, data : Side, tuple of float, or None
        The round in the model and the round from the data; constants as tuples of float.
    searched : bool
        Whether the data's hypothesis is the best one of all. Otherwise it is the model's own, with
        what follows from it.
    reason : str
        If the model claims more rounds than the data give, why the run ends: a `stop_reason`.
    """

    what: What
    bag: int
    run: int
    number: int
    file: Side | tuple[float, ...] | None
    data: Side | tuple[float, ...] | None
    searched: bool = True
    reason: str = ""


class Depth(NamedTuple):
    """How much of a run is derived.

    Attributes
    ----------
    n_searched : int or None
        How many rounds of each run are searched; None for all.
    with_end : bool
        Whether the round in which the run ends is derived, too.
    """

    n_searched: int | None = None
    with_end: bool = True

    def searched(self, n_rounds: int) -> frozenset[int]:
        """The numbers, from 0, of the rounds to search: evenly spread, with the first and last."""
        if self.n_searched is None or self.n_searched >= n_rounds:
            return frozenset(range(n_rounds))
        if self.n_searched == 1:
            return frozenset([n_rounds - 1])  # the last one, which depends on all others
        gaps = self.n_searched - 1
        places = range(self.n_searched)
        return frozenset((2 * at * (n_rounds - 1) + gaps) // (2 * gaps) for at in places)


class AuditedRuns(NamedTuple):
    """The outcome of an audit of one training.

    Attributes
    ----------
    difference : RoundDifference or None
        The first one.
    n_searched : int
        The number of rounds, of all runs, whose best hypothesis was searched for and compared.
    trained : Trained
        What was derived.
    """

    difference: RoundDifference | None
    n_searched: int
    trained: Trained


class Training(NamedTuple):
    """What a training is given; see `train`."""

    X: Array
    samples: Samples
    n_classes: int
    settings: Settings
    device: str = "auto"
    held_out: HeldOutRows | None = None


def audit_runs(
    training: Training, claimed: Sequence[ClaimedRun], depth: Depth, bag: int = 0
) -> AuditedRuns:
    """Make a training again, and compare each round with what a model claims.

    Parameters
    ----------
    training : Training
    claimed : sequence of ClaimedRun
        As many runs as the training makes.
    depth : Depth
    bag : int
        The number of the training, for the difference.

    Returns
    -------
    AuditedRuns
    """
    settings = training.settings
    settings = settings.of_bag(bag)
    stopping = settings.stopping
    if stopping is not None and (stopping.patience is None or not depth.with_end):
        settings = replace(settings, stopping=None)  # it would decide nothing
    logs: list[_Log] = []

    def around(ground: Ground) -> Ground:  # called again if a GPU fails before the first round
        logs.append(_Log(bag))
        X = ground.table.X
        cuts = OwnCuts(X, training.samples.beside(X).rows)
        return _AuditedGround(ground, claimed, depth, logs[-1], cuts)

    trained = train(
        training.X, training.samples, training.n_classes, settings,
        device=training.device, held_out=training.held_out, around=around,
    )  # fmt: skip
    log = logs[-1]
    if log.difference is None:
        log.difference = _other_end(trained.runs, claimed, bag)
    return AuditedRuns(log.difference, log.n_searched, trained)


@dataclass
class _Log:
    """What an audit has found so far in one training.

    Attributes
    ----------
    bag : int
    difference : RoundDifference or None
    n_searched : int
    """

    bag: int
    difference: RoundDifference | None = None
    n_searched: int = 0


@dataclass
class _AuditedGround:
    """A `Ground` whose runs compare each round with what the model claims."""

    ground: Ground
    claimed: Sequence[ClaimedRun]
    depth: Depth
    log: _Log
    cuts: OwnCuts
    n_begun: int = 0

    @property
    def route(self) -> Route:
        return self.ground.route

    @property
    def table(self) -> PreparedTable:
        return self.ground.table

    def boosting(self, target: Target, settings: Settings, before: Run) -> Boosting:
        """A run, at its start."""
        number, claimed = self.n_begun, self.claimed[self.n_begun]
        self.n_begun += 1
        plan = _Plan(
            self.depth.searched(len(claimed)),
            settings.stopping is None,
            settings.learner,
            settings.categorical,
            self.cuts,
        )
        own = _AuditedVotes(target.votes, claimed, self.log, number, plan)
        if not self.depth.with_end and settings.n_rounds is not None:
            settings = replace(settings, n_rounds=min(settings.n_rounds, len(claimed)))
        boosting = self.ground.boosting(target._replace(votes=own), settings, before)
        if self.log.difference is None and boosting.constant != claimed.constant:
            self.log.difference = RoundDifference(
                "constant", self.log.bag, number, 0, claimed.constant, boosting.constant
            )
        return boosting

    def watch(self, boosting: Boosting, target: Target, settings: Settings) -> EarlyStopping | None:
        """The early stopping of a run; None if its end is not to be derived."""
        if settings.stopping is None or self.log.difference is not None:
            return None
        return self.ground.watch(boosting, target, settings)


class _Plan(NamedTuple):
    """How a run is audited.

    Attributes
    ----------
    searched : frozenset of int
        The numbers of the rounds that are searched.
    ends_itself : bool
        Whether the run has no early stopping. Then a round beyond those claimed is a difference.
    learner : str
        "stump" or "interval".
    categorical : tuple of int
        The features whose values are numbers of categories.
    cuts : OwnCuts
        See `own_cuts`.
    """

    searched: frozenset[int]
    ends_itself: bool
    learner: Learner
    categorical: tuple[int, ...]
    cuts: OwnCuts

    def fits(self, hypothesis: Any) -> bool:
        """Whether the run can make such a hypothesis. A constant one does not depend on its
        feature."""
        if isinstance(hypothesis, OfCategories):
            return hypothesis.feature in self.categorical
        if isinstance(hypothesis, Interval) and self.learner != "interval":
            return False
        return hypothesis.feature not in self.categorical or hypothesis.thresholds[0] == math.inf


@dataclass
class _AuditedVotes:
    """Votes that are compared with those of a claimed run; see `boosting.votes.Votes`.

    Attributes
    ----------
    votes : Votes
        What decides the votes of the run.
    claimed : ClaimedRun
    log : _Log
    run : int
        The run's number.
    plan : _Plan
    """

    votes: Votes
    claimed: ClaimedRun
    log: _Log
    run: int
    plan: _Plan
    _n_compared: int = field(default=0, init=False)

    def search(self, learner: Learner) -> Search:
        """What the engine is to look for."""
        return self.votes.search(learner)

    def on(self, labels: Array, sample_weight: Array) -> _AuditedVotes:
        """The votes of a run on these samples: an audit is of classes, so the same for all."""
        return self

    def constant(self, labels: Array, sample_weight: Array) -> tuple[float, ...]:
        """The scores from which boosting starts, one for each output."""
        return self.votes.constant(labels, sample_weight)

    def constant_of(self, class_weights: Sequence[int]) -> tuple[float, ...]:
        """The same from the integer weight of each class."""
        return self.votes.constant_of(class_weights)

    def known(self, hypothesis: Any, vote: Any, state: State) -> Taken:
        """A known hypothesis with its known votes, and its sums here."""
        return self.votes.known(hypothesis, vote, state)

    def derived(self, hypothesis: Any, vote: Any, state: State) -> Taken:
        """A known hypothesis with the signs, the error and the votes that the samples give."""
        return self.votes.derived(hypothesis, vote, state)

    def score(self, taken: Taken) -> float:
        """What a hypothesis is worth."""
        return self.votes.score(taken)

    def is_perfect(self, taken: Taken) -> bool:
        """Whether another round could only find the same again."""
        return self.votes.is_perfect(taken)

    def change(self, taken: Taken) -> Change:
        """What a hypothesis and its votes do to scores and weights."""
        return self.votes.change(taken)

    def record(self, taken: Taken, change: Change, so_far: SoFar) -> Any:
        """What the round did."""
        return self.votes.record(taken, change, so_far)

    def found(
        self, table: PreparedTable, state: State, offered: Sequence[AnySplit] = ()
    ) -> Taken | str:
        """The next round from the data if it is what the model claims, otherwise `DIFFERS`."""
        if self.log.difference is not None:
            return DIFFERS
        number = self._n_compared
        if number >= len(self.claimed):
            return self._beyond(table, state, offered)
        self._n_compared += 1
        hypothesis, vote = self.claimed.hypotheses[number], self.claimed.votes[number]
        is_searched = number in self.plan.searched or not self.plan.fits(hypothesis)
        is_searched |= len(offered) > 0  # a smoothing round: quick, and proves what was offered
        if is_searched:
            taken = self.votes.found(table, state, offered)
        else:
            own = self.plan.cuts.written(hypothesis)
            taken = _with_votes(self.votes.derived(own, vote, state))
        self.log.n_searched += is_searched
        what = self._difference(number, taken)
        if what is None:
            return taken
        file = Side(hypothesis, vote, self._score(number, state))
        self._differ(what, file, taken, is_searched)
        return DIFFERS

    def _beyond(
        self, table: PreparedTable, state: State, offered: Sequence[AnySplit]
    ) -> Taken | str:
        """A round that the model does not hold."""
        taken = self.votes.found(table, state, offered)
        if isinstance(taken, str) or not self.plan.ends_itself:
            return taken
        self._n_compared += 1
        self._differ("end", None, taken, is_searched=True)
        return DIFFERS

    def _difference(self, number: int, taken: Taken | str) -> What | None:
        """What differs between a claimed round and the one from the data; None if nothing does."""
        if isinstance(taken, str):
            return "end"
        claimed, found = self.claimed.hypotheses[number], taken.hypothesis
        if repr(claimed) != repr(found):  # which tells 0.0 from -0.0, as the digest does
            return "error" if _without_error(claimed) == _without_error(found) else "stump"
        is_same = np.array_equal(self.claimed.as_held(taken.vote), self.claimed.votes[number])
        return None if is_same else "votes"

    def _differ(self, what: What, file: Side | None, taken: Taken | str, is_searched: bool) -> None:
        """Note the difference of this round."""
        place = what, self.log.bag, self.run, self._n_compared
        if isinstance(taken, str):
            found = RoundDifference(*place, file, None, is_searched, reason=taken)
        else:
            vote = self.claimed.as_held(taken.vote)
            data = Side(taken.hypothesis, vote, self.votes.score(taken))
            found = RoundDifference(*place, file, data, is_searched)
        self.log.difference = found

    def _score(self, number: int, state: State) -> float | None:
        """What a claimed hypothesis is worth here."""
        hypothesis = self.claimed.hypotheses[number]
        if not self.plan.fits(hypothesis):
            return None
        known = self.votes.known(hypothesis, self.claimed.votes[number], state)
        return self.votes.score(known)


def _with_votes(taken: Taken) -> Taken | str:
    """A derived round, or why a run would have ended before it."""
    return taken if np.any(taken.vote) else "small vote"


def _without_error(hypothesis: AnyStump | AnySplit) -> AnyStump | AnySplit:
    return hypothesis if isinstance(hypothesis, AnySplit) else replace(hypothesis, error=0.0)


def _other_end(
    runs: Sequence[Run], claimed: Sequence[ClaimedRun], bag: int
) -> RoundDifference | None:
    """The difference of the first run that keeps more or fewer rounds than are claimed."""
    for number, (run, own) in enumerate(zip(runs, claimed, strict=True)):
        n_kept, n_claimed = len(run.rounds), len(own)
        if n_kept > n_claimed:
            data = _side_of(run.rounds[n_claimed], own)
            return RoundDifference("end", bag, number, n_claimed + 1, None, data)
        if n_kept < n_claimed:
            file = Side(own.hypotheses[n_kept], own.votes[n_kept], None)
            return RoundDifference(
                "end", bag, number, n_kept + 1, file, None, reason=run.stop_reason
            )
    return None


def _side_of(record: AnyRound, claimed: ClaimedRun) -> Side:
    score = record.edge if isinstance(record, Round) else record.score
    return Side(record.stump, claimed.as_held(record.vote), score)
