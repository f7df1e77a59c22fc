"""Boosting as a plain iterator: weights -> best cut -> votes -> weights, one record a round.

The engine finds the best cut and keeps the samples' weights (`engines.contract`); the votes object
says what the cut is worth and how the weights change (`votes`). What is left is here: the order of
these steps, when to stop, and going on from rounds that were made earlier.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.arrays.moving import moved_to_device_of
from gpustump.boosting.rounds.batches import Batch, Ordinary, Rounds, Terms, member_of
from gpustump.boosting.rounds.batching import Batching, Standing
from gpustump.boosting.rounds.known_scores import beginning_of
from gpustump.boosting.rounds.smoothing import Candidates
from gpustump.boosting.rounds.stopping import EarlyStopping
from gpustump.boosting.votes.discrete import DiscreteVotes
from gpustump.boosting.votes.newton import NewtonVotes
from gpustump.boosting.votes.settings import Votes, VoteSettings
from gpustump.boosting.votes.votes import AnyRound, RoundNumbers, Taken, Vote, sizes_of
from gpustump.data.parameters import (
    Learner,
    Link,
    VoteKind,
    check_bytes,
    check_count,
    check_jobs,
    check_learner,
)
from gpustump.data.tables import check_table
from gpustump.data.weights import WeightedSigns, check_weighted_signs
from gpustump.engines.contract import Cut, Resources, Task, Trainer
from gpustump.engines.objective import Objective
from gpustump.engines.route import prepared
from gpustump.learners.hypothesis import N_REGIONS
from gpustump.learners.kinds import AnySplit, AnyStump
from gpustump.learners.split import Split
from gpustump.learners.step_table import VOTES_LIMIT

if TYPE_CHECKING:
    from gpustump.model.ensemble import StumpEnsemble


_EVERYTHING = Split(0, math.inf)
"""A split with all samples on the left, or missing."""

Callback = Callable[[Any], bool | None]
"""Called with each round's record, a `Round` or a `RegionRound`. If it returns something true,
boosting stops after that round."""


def boost(
    X: Array,
    y: Array,
    sample_weight: Array | None = None,
    *,
    learning_rate: float = 1.0,
    votes: VoteKind = "discrete",
    l2_regularization: float = 0.0,
    n_rounds: int | None = None,
    weak_learner: Learner = "stump",
    callback: Callback | None = None,
    block_bytes: int | None = None,
    n_jobs: int | None = None,
    max_memory: int | str | None = None,
) -> Boosting:
    """Boosting with exact decision stumps, or intervals, as an iterator over its rounds.

    Parameters
    ----------
    X, y, sample_weight, block_bytes, n_jobs, max_memory
        As for `fit_stump`.
    learning_rate : float
        Shrinks every vote; above 0.
    votes : "discrete", "real" or "newton"
        What a round's regions vote. "discrete": +alpha or -alpha, AdaBoost with a sign for each
        region [Freund and Schapire 1997]. "real": half the log-odds of each region,
        confidence-rated AdaBoost [Schapire and Singer 1999]. "newton": a Newton step of the
        logistic loss for each region, LogitBoost [Friedman, Hastie and Tibshirani 2000]; boosting
        starts from half the log-odds of the labels, `Boosting.constant`.
    l2_regularization : float
        For Newton votes only: shrinks the votes of regions with few samples; not negative. See
        `LogitBoostClassifier`, whose default is larger.
    n_rounds : int, optional
        Stop after so many rounds; by default only when there are no more useful ones.
    weak_learner : "stump" or "interval"
        What a round may choose from: "stump", or "interval" for stumps and intervals.
    callback : callable, optional
        Called with each `Round` (`RegionRound` if votes are not discrete). If it returns something
        true, boosting stops after that round.

    Returns
    -------
    Boosting
        Iterate over it for the rounds. Its `model` is the ensemble so far, `stop_reason` says why
        there are no more rounds, and `resume` goes on from known rounds.

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described; the message names it and what was found.
    DeviceError
        If a GPU's memory is too small; the message says how much is needed.

    Examples
    --------
    >>> import numpy as np
    >>> from gpustump import boost
    >>> X = np.asarray([[0.0], [1.0], [2.0], [3.0]])
    >>> for record in boost(X, [-1, 1, -1, -1], n_rounds=2):
    ...     print(record.stump.threshold, record.stump.polarity, round(record.error, 6))
    1.5 1 0.25
    inf -1 0.166667

    Other votes give a number to each region: left, right and missing.

    >>> run = boost(X, [-1, 1, -1, -1], votes="newton", n_rounds=1)
    >>> for record in run:
    ...     print(record.stump.threshold, [round(vote, 4) for (vote,) in record.votes])
    1.5 [0.6667, -0.6667, 0.0]
    >>> round(run.constant[0], 4)
    -0.5493
    """
    X = check_table(X)
    settings = VoteSettings.checked(
        votes, learning_rate=learning_rate, l2_regularization=l2_regularization
    )
    limit = None if n_rounds is None else check_count(n_rounds, "n_rounds")
    learner = check_learner(weak_learner)
    resources = checked_resources(n_jobs, max_memory, block_bytes)
    with arrays.computing_on(X):
        samples = check_weighted_signs(y, sample_weight, X)
        found = settings.votes(samples.weights)
        trainer = trainer_of(X, samples, found.objective(learner), limit, resources)
    return Boosting(
        trainer, samples.labels, samples.weights, votes=found, n_rounds=limit, learner=learner,
        callback=callback,
    )  # fmt: skip


class Boosting(Iterator[Any]):
    """The rounds of boosting on a prepared table; `boost` makes one from plain arrays.

    Parameters
    ----------
    trainer : Trainer
        As an engine prepares it; see `engines.route`.
    labels : array (n_samples,)
        For each of the table's samples -1.0 or 1.0, float64; with more outputs than one the number
        of its class, int64.
    sample_weight : array (n_samples,) of float64
        Positive weights for them.
    votes : Votes
        What a round's regions vote; AdaBoost's discrete votes by default.
    n_rounds, callback
        As for `boost`.
    learner : str
        "stump" or "interval".
    constant : tuple of float, optional
        The scores from which boosting starts, one for each output; by default those that the votes
        ask for: LogitBoost's follow from the classes' weights, others are 0.
    offset : array (n_samples,) or (n_samples, n_outputs) of float64, optional
        Known scores of the samples, for Newton votes of classes. The constant is then a Newton step
        from there.
    candidates : Candidates, optional
        The cuts that smoothing rounds choose from, if the run begins with such rounds; only for
        votes of splits.

    Attributes
    ----------
    constant : tuple of float
    stop_reason : str or None
        Why there are no more rounds: "no edge" (the best stump is no better than chance), "perfect"
        (a stump without error; it is the last round), "limit" (n_rounds are done), "callback",
        "small vote" (the votes round to zero: the learning rate is very low, or l2_regularization
        very high, or there is almost nothing left to learn), "large votes" (their sum would exceed
        `VOTES_LIMIT`); None while there may be more.

    Examples
    --------
    >>> from gpustump import boost
    >>> run = boost([[0], [1], [2], [3]], [-1, 1, -1, -1], n_rounds=3)
    >>> next(run).stump.threshold
    1.5
    >>> (run.weights / run.weights.sum()).round(4).tolist()
    [0.5, 0.1667, 0.1667, 0.1667]
    >>> run
    <Boosting: 1 of 3 rounds done, iterate over it for more>
    >>> for record in run:
    ...     print(record.number, round(record.training_bound, 4))
    2 0.6455
    3 0.5164
    >>> run.stop_reason, run.model.n_rounds
    ('limit', 3)
    """

    def __init__(
        self,
        trainer: Trainer,
        labels: Array,
        sample_weight: Array,
        *,
        votes: Votes | None = None,
        n_rounds: int | None = None,
        learner: Learner = "stump",
        callback: Callback | None = None,
        constant: tuple[float, ...] | None = None,
        offset: Array | None = None,
        candidates: Candidates | None = None,
    ) -> None:
        self.stop_reason: str | None = None
        self._table, self._labels = trainer.table, labels
        self._votes: Votes = (votes or DiscreteVotes()).on(labels, sample_weight)
        self._objective = self._votes.objective(learner)
        self._n_rounds = n_rounds
        self._callback = callback
        self._candidates = candidates
        self._rounds = Rounds()
        self._is_whole = True
        self._batching: Batching | None = None
        self._may_batch = False
        self._watch: EarlyStopping | None = None
        with arrays.computing_on(labels):
            beginning = None if offset is None else beginning_of(labels, offset)
            self._state = trainer.start(labels, sample_weight, self._objective, beginning)
            self.constant = constant or self._usual_constant(labels, sample_weight, offset)
            largest = 0.0
            if offset is not None:
                xp = arrays.namespace_of(offset)
                largest = float(xp.max(xp.abs(offset)))
            sums_of_votes = [abs(score) + largest for score in self.constant]
            self._standing = Standing(0, sums_of_votes, 1.0)
            if any(self.constant):
                self._start_from_constant()

    def __repr__(self) -> str:
        wanted = "" if self._n_rounds is None else f" of {self._n_rounds}"
        state = f"stopped: {self.stop_reason}" if self.stop_reason else "iterate over it for more"
        return f"<Boosting: {self.n_done}{wanted} rounds done, {state}>"

    @property
    def n_done(self) -> int:
        """Rounds done so far, those of `resume` included."""
        return self._standing.n_rounds

    @property
    def weights(self) -> Array:
        """The weights of the samples in the next round, float64, on the device of y.

        (n_samples,), or (n_samples, n_outputs) for more outputs than one. AdaBoost's distribution
        D_t up to a common factor. For Newton votes, weight * p * (1 - p) up to a common factor,
        where p is the probability that the model gives the output's class.
        """
        self._check_in_step()
        with arrays.computing_on(self._labels):
            return moved_to_device_of(self._state.weights, self._labels)

    @property
    def model(self) -> StumpEnsemble:
        """The model so far: predicts -1 or +1, can be saved and compared."""
        from gpustump.model.ensemble import StumpEnsemble

        n_outputs = len(self.constant)
        labels = (-1, 1) if n_outputs == 1 else tuple(range(n_outputs))
        return StumpEnsemble(
            (member_of(self._rounds.terms, self.constant, self._objective),),
            self._table.n_features,
            labels if not self._objective.is_of_quantity else (),
            link=self.link,
        )

    @property
    def link(self) -> Link:
        """How the model's scores become probabilities."""
        return self._objective.link

    def __next__(self) -> Any:
        made = self.take()
        if made is None:
            raise StopIteration
        self.call_back(made)
        return made.records[0]

    def take(self, at_once: int = 1) -> Batch | None:
        """Make the next rounds; None if there are no more.

        The callback is not called; see `call_back`.

        Parameters
        ----------
        at_once : int
            The most rounds to return. There may be fewer, even if the run goes on.
        """
        if self._n_rounds is not None and self.n_done >= self._n_rounds:
            self.stop_reason = self.stop_reason or "limit"
        if self.stop_reason is not None:
            return None
        self._check_whole()
        if self._may_batch and getattr(self._state, "batch_maker", None) is not None:
            self._may_batch = False
            with arrays.computing_on(self._labels):
                given = self._votes, self._table, self._state, self._watch, self._candidates
                self._batching = Batching.of(*given)
        made = None if self._batching is None else self._next_batch(self._batching, at_once)
        if made is None:
            with arrays.computing_on(self._labels):
                made = self._round()
        return made

    def keep(self, made: Batch, n_rounds: int) -> Batch:
        """Keep only the first `n_rounds` of the rounds that were just taken: the run ends there."""
        if n_rounds == len(made):
            return made
        assert self._batching is not None
        self._batching.take_back(len(made) - n_rounds)
        self._rounds = self._rounds.first(len(self._rounds) - len(made) + n_rounds)
        self._standing = self._batching.standing
        return made.first(n_rounds)

    def call_back(self, made: Batch) -> None:
        """Call the callback with each of the rounds that were just taken."""
        if self._callback is None:
            return
        for record in made.records:
            try:
                is_last = self._callback(record)
            except StopIteration as error:  # it would silently end the caller's loop
                raise RuntimeError("the callback raised StopIteration") from error
            if is_last:
                self.stop_reason = self.stop_reason or "callback"

    def resume(
        self, hypotheses: Iterable[AnyStump | AnySplit], votes: Iterable[Vote]
    ) -> tuple[Any, ...]:
        """Go on from known rounds: bring weights and scores to the state after them.

        On the data from which they were learnt, the records are those of the first time, and the
        following rounds are those that an uninterrupted run would have made, to the last bit.

        Parameters
        ----------
        hypotheses : iterable of stumps or splits of any kind
        votes : iterable of float, or of tuples as `RegionRound.votes`
            One for each.

        Returns
        -------
        tuple of Round, or of RegionRound
            The record of each known round.

        Raises
        ------
        RuntimeError
            If this boosting was interrupted in the middle of a round, or if the engine has made
            rounds in batches (see `make_batches`).

        Examples
        --------
        >>> from gpustump import boost
        >>> X, y = [[0], [1], [2], [3]], [-1, 1, -1, -1]
        >>> known = list(boost(X, y, n_rounds=2))
        >>> run = boost(X, y, n_rounds=3)
        >>> stumps = [record.stump for record in known]
        >>> done = run.resume(stumps, [record.vote for record in known])
        >>> next(run) == list(boost(X, y, n_rounds=3))[2]
        True
        """
        self._check_whole()
        self._check_in_step()
        records: list[AnyRound] = []
        with arrays.computing_on(self._labels):
            for hypothesis, vote in zip(hypotheses, votes, strict=True):
                known = self._votes.known(hypothesis, vote, self._state)
                records.extend(self._take(known, sizes_of(hypothesis, known.vote)).records)
        return tuple(records)

    def make_batches(self, watch: EarlyStopping | None = None) -> None:
        """Let the engine make many rounds at a time from now on, if it can.

        The rounds are the same. Between them, the samples' weights may belong to a later round;
        then `resume` and `weights` raise a RuntimeError. The sums that early stopping needs are in
        the batches' `parts`; its judge must not add these rounds itself.

        Parameters
        ----------
        watch : EarlyStopping, optional
            May end the run.

        Examples
        --------
        >>> from gpustump import boost
        >>> X, y = [[0], [1], [2], [3]], [-1, 1, -1, -1]
        >>> run = boost(X, y, votes="newton", n_rounds=3)
        >>> run.make_batches()
        >>> [record.stump.threshold for record in run]
        [1.5, 0.5, 1.5]
        """
        self._may_batch, self._watch = True, watch

    def _next_batch(self, batching: Batching, at_once: int) -> Batch | None:
        """The next rounds, if they are made in batches; the model takes them."""
        n_most = sys.maxsize if self._n_rounds is None else self._n_rounds - self.n_done
        self._is_whole = False  # an interruption may leave what follows half done
        made = batching.next(self._standing, n_most, at_once)
        if made is not None:
            self._rounds.add(made)
            self._standing = batching.standing
        self._is_whole = True
        return made

    def _check_whole(self) -> None:
        if not self._is_whole:
            raise RuntimeError("this boosting was interrupted in the middle of a round; start anew")

    def _check_in_step(self) -> None:
        if self._batching is not None and self._batching.has_more:
            raise RuntimeError(
                "the engine has made rounds ahead of this boosting; take these rounds first"
            )

    def _usual_constant(
        self, labels: Array, sample_weight: Array, offset: Array | None
    ) -> tuple[float, ...]:
        """The constant that the votes ask for."""
        if offset is None:
            return self._votes.constant(labels, sample_weight)
        assert isinstance(self._votes, NewtonVotes)
        return self._votes.constant_beside(self._state.region_sums(_EVERYTHING).tolist())

    def _start_from_constant(self) -> None:
        """Bring weights and scores to the state after the constant, which is a first step."""
        known = self._votes.known(_EVERYTHING, (self.constant,) * N_REGIONS, self._state)
        step = self._votes.change(known).step
        # All samples count as the first region, which engines find without looking at values.
        self._state.advance(replace(step, cut=Cut(0, None, 0, 0, 0.0)))

    def _round(self) -> Batch | None:
        candidates = () if self._candidates is None else self._candidates.at(self.n_done)
        found = self._votes.found(self._table, self._state, candidates)
        if isinstance(found, str):
            self.stop_reason = found
            return None
        sizes = sizes_of(found.hypothesis, found.vote)
        for so_far, size in zip(self._standing.sums_of_votes, sizes, strict=True):
            # The difference is exact; so_far + size might be rounded down to the limit.
            if so_far > VOTES_LIMIT - size:
                self.stop_reason = "large votes"
                return None
        return self._take(found, sizes)

    def _take(self, taken: Taken, sizes: tuple[float, ...]) -> Batch:
        """Add a hypothesis to the model, and reweight the samples."""
        self._is_whole = False  # an interruption may leave what follows half done
        change = self._votes.change(taken)
        terms = Terms((taken.hypothesis,), (taken.vote,))
        n_done, sums_of_votes, bound = self._standing
        bound *= change.normaliser
        bound = math.inf if math.isnan(bound) else bound  # infinity times 0
        sums_of_votes = [so_far + size for so_far, size in zip(sums_of_votes, sizes, strict=True)]
        step = change.step if taken.cut is not None else replace(change.step, is_known=True)
        self._state.advance(step)
        if self._votes.is_perfect(taken):
            self.stop_reason = "perfect"
        # What makes the record keeps the votes, and not the samples.
        votes, number, after = self._votes, n_done + 1, self._state.totals

        def record() -> tuple[AnyRound]:
            numbers = RoundNumbers(
                number, after.first_weight, votes.gain(taken), taken.totals.weight,
                change.normaliser, bound, after.error,
            )  # fmt: skip
            return (votes.record(taken.hypothesis, taken.vote, numbers),)

        made = Batch(Ordinary(terms, record), 0, 1)
        self._rounds.add(made)
        self._standing = Standing(n_done + 1, sums_of_votes, bound)
        self._is_whole = True
        return made


def checked_resources(
    n_jobs: int | None, max_memory: int | str | None, block_bytes: int | None
) -> Resources:
    """What training may use, from parameters as users give them.

    Raises
    ------
    ValueError, TypeError
        If one is not as described; the message names it.
    """
    return Resources(
        check_jobs(n_jobs),
        None if max_memory is None else check_bytes(max_memory, "max_memory"),
        None if block_bytes is None else check_count(block_bytes, "block_bytes"),
    )


def trainer_of(
    X: Array,
    samples: WeightedSigns,
    objective: Objective,
    n_rounds: int | None,
    resources: Resources,
) -> Trainer:
    """Some rows of a checked table, prepared by the engine that the route chooses."""
    task = Task(X, int(samples.labels.shape[0]), objective, n_rounds)
    return prepared(task, samples.rows, resources)[1]
