"""Boosting as a plain iterator: weights -> best cut -> votes -> weights, one record a round.

The engine finds the best cut and keeps the samples' weights (`engines.contract`); the votes object
says what the cut is worth and how the weights change (`votes`). What is left is here: the order of
these steps, when to stop, and going on from rounds that were made earlier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.arrays.moving import moved_to_device_of
from gpustump.boosting.discrete_votes import DiscreteVotes
from gpustump.boosting.votes import Round, SoFar, Taken, Votes
from gpustump.data.parameters import (
    Learner,
    check_bytes,
    check_count,
    check_jobs,
    check_learner,
    check_real,
)
from gpustump.data.sample_weights import check_weights
from gpustump.data.sign_labels import check_both_signs, check_signs
from gpustump.data.tables import check_table
from gpustump.engines.contract import (
    PreparedTable,
    Resources,
    Task,
    agreement,
    hypothesis_at,
)
from gpustump.engines.route import prepared
from gpustump.learners.hypothesis import signs
from gpustump.learners.interval import Interval
from gpustump.learners.step_table import VOTES_LIMIT
from gpustump.learners.stump import Stump

if TYPE_CHECKING:
    from gpustump.model.ensemble import StumpEnsemble


Callback = Callable[[Round], bool | None]
"""Called with each round's record; a true answer stops the boosting after it."""


def boost(
    X: Array,
    y: Array,
    sample_weight: Array | None = None,
    *,
    learning_rate: float = 1.0,
    n_rounds: int | None = None,
    weak_learner: Learner = "stump",
    callback: Callback | None = None,
    block_bytes: int | None = None,
    n_jobs: int | None = None,
    max_memory: int | str | None = None,
) -> Boosting:
    """AdaBoost with exact decision stumps, or intervals, as an iterator over its rounds.

    Parameters
    ----------
    X, y, sample_weight, block_bytes, n_jobs, max_memory
        As for `fit_stump`.
    learning_rate : float
        Shrinks every vote; above 0.
    n_rounds : int, optional
        Stop after so many rounds; by default only where boosting itself ends.
    weak_learner : "stump" or "interval"
        What a round may choose from: "stump", or "interval" for stumps and intervals.
    callback : callable, optional
        Gets each `Round`; a true answer stops the boosting after that round.

    Returns
    -------
    Boosting
        Iterate it for the rounds. Its `model` is the ensemble so far, `stop_reason` says why there
        are no more rounds, and `resume` goes on from known rounds.

    Examples
    --------
    >>> import numpy as np
    >>> from gpustump import boost
    >>> X = np.asarray([[0.0], [1.0], [2.0], [3.0]])
    >>> for record in boost(X, [-1, 1, -1, -1], n_rounds=2):
    ...     print(record.stump.threshold, record.stump.polarity, round(record.error, 6))
    1.5 1 0.25
    inf -1 0.166667
    """
    X = check_table(X)
    votes = DiscreteVotes(check_real(learning_rate, "learning_rate", above=0.0))
    limit = None if n_rounds is None else check_count(n_rounds, "n_rounds")
    learner = check_learner(weak_learner)
    resources = checked_resources(n_jobs, max_memory, block_bytes)
    with arrays.computing_on(X):
        table, signs, weights = prepared_samples(X, y, sample_weight, learner, limit, resources)
    return Boosting(
        table, signs, weights, votes=votes, n_rounds=limit, learner=learner, callback=callback
    )


class Boosting(Iterator[Round]):
    """The rounds of boosting on a prepared table; `boost` makes one from plain arrays.

    Parameters
    ----------
    table : PreparedTable
        As an engine prepares it; see `engines.route`.
    labels : array (n_samples,) of float64
        -1.0 or 1.0 for each of the table's samples.
    sample_weight : array (n_samples,) of float64
        Positive weights for them.
    votes : Votes
        What a round's regions vote; AdaBoost's discrete votes by default.
    n_rounds, callback
        As for `boost`.
    learner : str
        "stump" or "interval".

    Attributes
    ----------
    stop_reason : str or None
        Why there are no more rounds: "no edge" (the best stump is no better than chance),
        "perfect" (a stump without error; it is the last round), "limit" (n_rounds are done),
        "callback", "small vote" (the learning rate is so low that the vote rounds to zero),
        "large votes" (their sum would exceed `VOTES_LIMIT`); None while there may be more.
    """

    def __init__(
        self,
        table: PreparedTable,
        labels: Array,
        sample_weight: Array,
        *,
        votes: Votes | None = None,
        n_rounds: int | None = None,
        learner: Learner = "stump",
        callback: Callback | None = None,
    ) -> None:
        self.stop_reason: str | None = None
        self._table, self._labels = table, labels
        self._votes: Votes = DiscreteVotes() if votes is None else votes
        self._n_rounds = n_rounds
        self._callback = callback
        self._model: list[tuple[Stump | Interval, float]] = []
        self._bound = 1.0
        self._sum_of_votes = 0.0
        self._is_whole = True
        with arrays.computing_on(labels):
            self._state = table.start(labels, sample_weight, learner)

    def __repr__(self) -> str:
        wanted = "" if self._n_rounds is None else f" of {self._n_rounds}"
        state = f"stopped: {self.stop_reason}" if self.stop_reason else "iterate over it for more"
        return f"<Boosting: {self.n_done}{wanted} rounds done, {state}>"

    @property
    def n_done(self) -> int:
        """Rounds done so far, those of `resume` included."""
        return len(self._model)

    @property
    def weights(self) -> Array:
        """D_t for the next round, (n_samples,) of float64 beside y, up to a common factor."""
        return moved_to_device_of(self._state.weights, self._labels)

    @property
    def model(self) -> StumpEnsemble:
        """The model so far: predicts -1 or +1, can be saved and compared."""
        from gpustump.model.ensemble import Member, StumpEnsemble

        member = Member(tuple(h for h, _ in self._model), tuple(vote for _, vote in self._model))
        return StumpEnsemble((member,), self._table.n_features)

    def __next__(self) -> Round:
        if self._n_rounds is not None and self.n_done >= self._n_rounds:
            self.stop_reason = self.stop_reason or "limit"
        if self.stop_reason is not None:
            raise StopIteration
        self._check_whole()
        with arrays.computing_on(self._labels):
            record = self._round()
        if record is None:
            raise StopIteration
        if self._callback is not None and self._asked_to_stop(record):
            self.stop_reason = self.stop_reason or "callback"
        return record

    def resume(
        self, hypotheses: Iterable[Stump | Interval], votes: Iterable[float]
    ) -> tuple[Round, ...]:
        """Go on from known rounds: bring weights and scores to where they left them.

        On the data that they were learnt from, the records are the ones that the rounds had, and
        the rounds that follow are those that an uninterrupted run would have made, to the last bit.

        Parameters
        ----------
        hypotheses : iterable of Stump or Interval
        votes : iterable of float
            One for each.

        Returns
        -------
        tuple of Round
            What each known round does here.

        Raises
        ------
        RuntimeError
            If this boosting was interrupted in the middle of a round.
        """
        self._check_whole()
        records = []
        with arrays.computing_on(self._labels):
            for hypothesis, vote in zip(hypotheses, votes, strict=True):
                weights = self._state.region_weights(hypothesis)
                agreed = agreement(weights, signs(hypothesis))
                taken = Taken(hypothesis, vote, agreed, self._state.totals, None)
                records.append(self._take(taken))
        return tuple(records)

    def _check_whole(self) -> None:
        if not self._is_whole:
            raise RuntimeError("this boosting was interrupted in the middle of a round; start anew")

    def _asked_to_stop(self, record: Round) -> bool:
        assert self._callback is not None
        try:
            return bool(self._callback(record))
        except StopIteration as error:  # it would silently end the caller's loop
            raise RuntimeError("the callback raised StopIteration") from error

    def _round(self) -> Round | None:
        cut = self._state.best_cut()
        vote = self._votes.vote(cut.agreement, self._state)
        if vote == 0.0:
            self.stop_reason = self._votes.why_no_vote(cut.agreement, self._state)
            return None
        if self._sum_of_votes + vote > VOTES_LIMIT:
            self.stop_reason = "large votes"
            return None
        totals = self._state.totals
        hypothesis = hypothesis_at(self._table, cut, totals)
        return self._take(Taken(hypothesis, vote, cut.agreement, totals, cut))

    def _take(self, taken: Taken) -> Round:
        """Take a hypothesis into the model, reweight the samples, and record the round."""
        self._is_whole = False  # an interruption leaves what follows undone in part
        change = self._votes.change(taken)
        self._model.append((taken.hypothesis, taken.vote))
        self._bound *= change.normaliser
        self._sum_of_votes += abs(taken.vote)
        self._state.advance(change.step)
        if taken.totals.wrong(taken.agreement) == 0:
            self.stop_reason = "perfect"
        self._is_whole = True
        so_far = SoFar(self.n_done, self._bound, self._state.totals)
        return self._votes.record(taken, change, so_far)


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


def prepared_samples(
    X: Array,
    y: Array,
    sample_weight: Array | None,
    learner: Learner,
    n_rounds: int | None,
    resources: Resources,
) -> tuple[PreparedTable, Array, Array]:
    """A prepared table, labels and weights of the samples that have a weight, all checked."""
    y = check_signs(y, X)
    weights, rows = check_weights(sample_weight, X)
    if rows is not None:
        y = arrays.picked(y, rows)
        check_both_signs(y, "y, where sample_weight is not zero,")
    task = Task(X, int(y.shape[0]), learner, n_rounds)
    return prepared(task, rows, resources)[1], y, weights
