"""Rounds that an engine makes ahead (see `engines.ahead`), handed out one at a time.

How many rounds a run has is decided round by round: by early stopping, a callback or an observer.
What was made beyond the last round is thrown away. So calls are short at first and double, and none
goes far beyond the rounds that early stopping is bound to wait for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from gpustump.boosting.newton_votes import NewtonVotes
from gpustump.boosting.smoothing import Offers
from gpustump.boosting.split_votes import SplitVotes
from gpustump.boosting.votes import RegionRound, Votes
from gpustump.engines.ahead import NO_CUTS, Ahead, MadeRounds, WatchedSamples
from gpustump.engines.contract import PreparedTable, RegionVotes, State
from gpustump.learners.hypothesis import FIRST, SECOND
from gpustump.learners.split import Split
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
    record : RegionRound
    sums_of_votes : list of float
        What the rounds up to it count towards `VOTES_LIMIT`, for each output.
    parts : tuple of int, or None
        What `judging.LocalJudge.parts` would be; None if the engine watches no samples.
    """

    record: RegionRound
    sums_of_votes: list[float]
    parts: tuple[int, ...] | None


class Standing(NamedTuple):
    """Where a run stands: its rounds, and what they count towards `VOTES_LIMIT` by output."""

    n_rounds: int
    sums_of_votes: list[float]


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
    offers : Offers or None
        What smoothing rounds choose from.
    """

    def __init__(
        self,
        ahead: Ahead,
        rule: NewtonVotes,
        table: PreparedTable,
        state: State,
        n_to_come: Callable[[], int | None],
        offers: Offers | None,
    ) -> None:
        self._ahead, self._rule, self._n_to_come = ahead, rule, n_to_come
        self._state, self._offers = state, offers
        self._made = deque[MadeRound]()
        self._splits: dict[tuple[int, float], Split] = {}  # many rounds make the same cuts
        self._n_rounds = _FIRST_ROUNDS
        n_elements = table.n_samples * table.n_features * rule.n_outputs
        self._most_rounds = max(1, min(_MOST_ROUNDS, _MOST_ELEMENTS // max(1, n_elements)))
        self._n_ordinary, self._pause = 0, 1

    @classmethod
    def of(
        cls,
        votes: Votes,
        table: PreparedTable,
        state: State,
        watcher: Watcher | None,
        offers: Offers | None = None,
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
        return cls(ahead, votes.rule, table, state, n_to_come, offers)

    @property
    def has_more(self) -> bool:
        """Whether the engine is ahead of the rounds that were handed out."""
        return bool(self._made)

    def next(self, so_far: Standing, n_most: int) -> MadeRound | None:
        """The next round; None if it is to be made in the ordinary way.

        Parameters
        ----------
        so_far : Standing
        n_most : int
            How many rounds the run may have yet.
        """
        if self._made:
            return self._made.popleft()
        if self._n_ordinary > 0:
            self._n_ordinary -= 1
            return None
        n_rounds = min(n_most, self._n_wanted(), self._n_within_limit(so_far))
        self._made.extend(self._rounds_made(n_rounds, so_far))
        return self._made.popleft() if self._made else None

    def _n_wanted(self) -> int:
        wanted, n_to_come = min(self._n_rounds, self._most_rounds), self._n_to_come()
        self._n_rounds = min(2 * self._n_rounds, _MOST_ROUNDS)
        return wanted if n_to_come is None else min(wanted, max(n_to_come, _LEAST_ROUNDS))

    def _n_within_limit(self, so_far: Standing) -> int:
        """So many rounds cannot reach the limit of the votes' sum."""
        room = VOTES_LIMIT - max(so_far.sums_of_votes)
        return int(max(0.0, room) / self._rule.largest_size)

    def _rounds_made(self, n_rounds: int, so_far: Standing) -> list[MadeRound]:
        """Have rounds made; if there are fewer, an ordinary one follows.

        After a call that made none, there are ever more ordinary rounds before the next call.
        """
        made = None
        if n_rounds > 0:
            offers, n_done = self._offers, so_far.n_rounds
            offered = NO_CUTS if offers is None else offers.cuts(n_done, n_rounds)
            made = self._ahead.make(n_rounds, offered)
        if made is None or not len(made.features):
            self._n_ordinary = self._pause - 1
            self._pause = min(2 * self._pause, _MOST_ROUNDS)
            return []
        self._pause = 1
        self._n_ordinary = int(len(made.features) < n_rounds)
        records, sums = self._records(made, so_far.n_rounds), _sums(made.votes, so_far)
        return list(map(MadeRound, records, sums, _parts(made)))

    def _records(self, made: MadeRounds, n_rounds: int) -> list[RegionRound]:
        """What each round did, as `split_votes.SplitVotes.record` tells it."""
        totals = self._state.totals
        splits = map(self._split, made.features.tolist(), made.thresholds.tolist())
        votes = [_of_regions(own) for own in made.votes.tolist()]
        scores = [self._rule.recorded(score, totals) for score in made.scores.tolist()]
        errors = [wrong / totals.first_weight for wrong in made.misclassified.tolist()]
        rounds = enumerate(zip(splits, votes, scores, errors, strict=True), start=n_rounds + 1)
        return [
            RegionRound(number, split, own, score, None, error, None)
            for number, (split, own, score, error) in rounds
        ]

    def _split(self, feature: int, threshold: float) -> Split:
        known = self._splits.get((feature, threshold))
        if known is None:
            known = self._splits[feature, threshold] = Split(feature, threshold)
        return known


def _of_regions(votes: list[list[float]]) -> RegionVotes:
    left, right, missing = votes
    return tuple(left), tuple(right), tuple(missing)


def _sums(votes: np.ndarray, so_far: Standing) -> list[list[float]]:
    """What the rounds up to each one count towards `VOTES_LIMIT`; see `votes.sizes_of`."""
    sizes = np.maximum(np.abs(votes).max(axis=1), np.abs(votes[:, FIRST] - votes[:, SECOND]))
    sums: list[list[float]] = (np.cumsum(sizes, axis=0) + so_far.sums_of_votes).tolist()  # exact
    return sums


def _parts(made: MadeRounds) -> list[tuple[int, ...] | None]:
    """What a judge's parts would be behind each round."""
    if not made.right.shape[1]:
        return [None] * len(made.features)
    pairs = zip(made.right.tolist(), made.losses.tolist(), strict=True)
    return [(sum(right), *losses) for right, losses in pairs]
