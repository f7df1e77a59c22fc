"""Rounds that an engine makes ahead (see `engines.ahead`), handed out one at a time.

How many rounds a run has is decided round by round: by early stopping, a callback or an observer.
What was made beyond the last round is thrown away. So calls are short at first and double, and none
goes far beyond the rounds that early stopping is bound to wait for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from gpustump.boosting.newton_votes import NewtonVotes
from gpustump.boosting.split_votes import SplitVotes
from gpustump.boosting.votes import RegionRound, Votes
from gpustump.engines.ahead import Ahead, WatchedSamples
from gpustump.engines.contract import Cut, PreparedTable, RegionVotes, State, split_at
from gpustump.learners.kinds import AnySplit
from gpustump.learners.step_table import VOTES_LIMIT

_FIRST_ROUNDS, _MOST_ROUNDS = 8, 64
"""How many rounds the first call makes, and any call at most."""

_LEAST_ROUNDS = 4
"""Fewer are not worth a call, even if early stopping may end the run before them."""

_MOST_ELEMENTS = 2**23
"""So many elements may be searched in a call, about 10 ms: Ctrl-C waits for its end."""


class MadeRound(NamedTuple):
    """A round that an engine has made.

    Attributes
    ----------
    split : AnySplit
    votes : RegionVotes
    score : float
        What the cut was worth, in units of the integers.
    misclassified : int
        See `engines.contract.Totals`.
    parts : tuple of int, or None
        What `judging.LocalJudge.parts` would be; None if the engine watches no samples.
    """

    split: AnySplit
    votes: RegionVotes
    score: float
    misclassified: int
    parts: tuple[int, ...] | None


class Watcher(NamedTuple):
    """What early stopping lets the rounds ahead know.

    Attributes
    ----------
    samples : callable
        Returns the samples to watch; None if an engine cannot watch them.
    n_to_come : callable
        Returns how many rounds it is bound to wait for; None if it does not stop.
    """

    samples: Callable[[], WatchedSamples | None]
    n_to_come: Callable[[], int | None]


class LookingAhead:
    """The rounds of one run that are made ahead.

    Parameters
    ----------
    ahead : Ahead
    rule : NewtonVotes
    table : PreparedTable
    state : State
    n_to_come : callable
        See `Watcher`.
    """

    def __init__(
        self,
        ahead: Ahead,
        rule: NewtonVotes,
        table: PreparedTable,
        state: State,
        n_to_come: Callable[[], int | None],
    ) -> None:
        self._ahead, self._rule, self._n_to_come = ahead, rule, n_to_come
        self._table, self._state = table, state
        self._made = deque[MadeRound]()
        self._splits: dict[tuple[int, int], AnySplit] = {}  # many rounds make the same cuts
        self._n_rounds = _FIRST_ROUNDS
        n_elements = table.n_samples * table.n_features * rule.n_outputs
        self._most_rounds = max(1, min(_MOST_ROUNDS, _MOST_ELEMENTS // max(1, n_elements)))
        self._n_ordinary, self._pause = 0, 1

    @classmethod
    def of(
        cls, votes: Votes, table: PreparedTable, state: State, watcher: Watcher | None
    ) -> LookingAhead | None:
        """For a run as it stands; None where its rounds cannot be made ahead."""
        begin = getattr(state, "looking_ahead", None)
        if begin is None or not isinstance(votes, SplitVotes):
            return None
        if not isinstance(votes.rule, NewtonVotes):
            return None
        watched = None if watcher is None else watcher.samples()
        if watched is not None and len(watched.scores) > table.n_samples:
            watched = None  # their keys might take more memory than the table
        ahead = begin(votes.rule.plain, watched)
        if ahead is None:
            return None
        n_to_come = (lambda: None) if watcher is None else watcher.n_to_come
        return cls(ahead, votes.rule, table, state, n_to_come)

    @property
    def has_more(self) -> bool:
        """Whether the engine is ahead of the rounds that were handed out."""
        return bool(self._made)

    def next(self, n_most: int, sum_of_votes: float) -> MadeRound | None:
        """The next round; None if it is to be made in the ordinary way.

        Parameters
        ----------
        n_most : int
            How many rounds the run may have yet.
        sum_of_votes : float
            What its rounds count towards `VOTES_LIMIT` so far.
        """
        if not self._made:
            if self._n_ordinary > 0:
                self._n_ordinary -= 1
                return None
            self._make(min(n_most, self._n_wanted(), self._n_within_limit(sum_of_votes)))
        return self._made.popleft() if self._made else None

    def record(self, made: MadeRound, number: int) -> RegionRound:
        """What a round that was made ahead did; its number is counted from 1."""
        totals = self._state.totals
        return RegionRound(
            number=number,
            stump=made.split,
            votes=made.votes,
            score=self._rule.recorded(made.score, totals),
            normaliser=None,
            training_error=totals._replace(misclassified=made.misclassified).training_error,
            training_bound=None,
        )

    def _n_wanted(self) -> int:
        wanted, n_to_come = min(self._n_rounds, self._most_rounds), self._n_to_come()
        self._n_rounds = min(2 * self._n_rounds, _MOST_ROUNDS)
        return wanted if n_to_come is None else min(wanted, max(n_to_come, _LEAST_ROUNDS))

    def _n_within_limit(self, sum_of_votes: float) -> int:
        """So many rounds cannot reach the limit of the votes' sum."""
        return int(max(0.0, VOTES_LIMIT - sum_of_votes) / self._rule.largest_size)

    def _make(self, n_rounds: int) -> None:
        """Have rounds made; if there are fewer, an ordinary one follows.

        After a call that made none, there are ever more ordinary rounds before the next call.
        """
        made = self._ahead.make(n_rounds) if n_rounds > 0 else None
        if made is None or not len(made.features):
            self._n_ordinary = self._pause - 1
            self._pause = min(2 * self._pause, _MOST_ROUNDS)
            return
        self._pause = 1
        self._n_ordinary = int(len(made.features) < n_rounds)
        parts = (
            [None] * len(made.features)
            if not made.right.shape[1]
            else [
                (sum(right), *losses)
                for right, losses in zip(made.right.tolist(), made.losses.tolist(), strict=True)
            ]
        )
        rounds = zip(
            zip(made.features.tolist(), made.positions.tolist(), strict=True),
            made.votes.tolist(),
            made.scores.tolist(),
            made.misclassified.tolist(),
            parts,
            strict=True,
        )
        for cut, votes, score, misclassified, own in rounds:
            left, right, missing = map(tuple, votes)
            votes_of = left, right, missing
            self._made.append(MadeRound(self._split(*cut), votes_of, score, misclassified, own))

    def _split(self, feature: int, position: int) -> AnySplit:
        known = self._splits.get((feature, position))
        if known is None:
            known = split_at(self._table, Cut(feature, position, 0, 0, 0.0))
            self._splits[feature, position] = known
        return known
