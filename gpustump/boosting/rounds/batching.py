"""Rounds that an engine makes in batches (`engines.batched_rounds`), handed out on demand.

How many rounds a run has is decided round by round: by early stopping, a callback or an observer.
Rounds that were made beyond the last one are thrown away. So no call makes many more rounds than
early stopping must wait for. If a caller looks at each round, and may end the run there, the first
call makes few rounds, and each later one up to twice as many.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from gpustump.boosting.rounds.batches import Batch, Columns
from gpustump.boosting.rounds.smoothing import Candidates
from gpustump.boosting.rounds.stopping import EarlyStopping
from gpustump.boosting.votes.settings import Votes
from gpustump.engines.batched_rounds import NEWTON, NO_CANDIDATES, BatchMaker
from gpustump.engines.contract import PreparedTable, Totals
from gpustump.learners.step_table import VOTES_LIMIT

_FIRST_ROUNDS, _MOST_ROUNDS = 8, 256
"""How many rounds the first call makes if a caller looks at each, and the most of any call."""

_MOST_ORDINARY = 64
"""The most ordinary rounds that are made before another call is tried."""

_LEAST_ROUNDS = 4
"""Fewer rounds are not worth a call, even if early stopping may end the run before they are
over."""

_MOST_ELEMENTS = 2**25
"""The most elements that a call searches, in about 20 ms: Ctrl-C waits for the end of a call."""


class Standing(NamedTuple):
    """Where a run stands.

    Attributes
    ----------
    n_rounds : int
    sums_of_votes : list (n_outputs,) of float
        What its rounds count towards `VOTES_LIMIT`.
    bound : float
        The product of their normalisers.
    """

    n_rounds: int
    sums_of_votes: list[float]
    bound: float


class Batching:
    """The rounds of one run that are made in batches.

    Parameters
    ----------
    maker : BatchMaker
    votes : Votes
    table : PreparedTable
    totals : Totals
        At the start of the run.
    watch : EarlyStopping or None
        May end the run.
    candidates : Candidates or None
        What smoothing rounds choose from.
    """

    def __init__(
        self,
        maker: BatchMaker,
        votes: Votes,
        table: PreparedTable,
        totals: Totals,
        watch: EarlyStopping | None,
        candidates: Candidates | None,
    ) -> None:
        self._maker, self._votes, self._watch = maker, votes, watch
        self._first_weight = totals.first_weight
        self._largest_size, self._candidates = votes.largest_size, candidates
        self._made: Columns | None = None
        self._sums_before: list[float] = []  # what counts towards the limit before these rounds
        self._n_taken = 0  # of the rounds in _made
        self._n_rounds = _FIRST_ROUNDS
        n_outputs = votes.objective("stump").n_outputs
        n_elements = table.n_samples * table.n_features * n_outputs
        self._most_rounds = max(1, min(_MOST_ROUNDS, _MOST_ELEMENTS // max(1, n_elements)))
        self._n_ordinary, self._pause = 0, 1

    @classmethod
    def of(
        cls,
        votes: Votes,
        table: PreparedTable,
        state: Any,
        watch: EarlyStopping | None,
        candidates: Candidates | None,
    ) -> Batching | None:
        """For a run as it stands, of a state with a `batch_maker`; None if its rounds cannot be
        made in batches."""
        if candidates is not None and votes.plain.kind != NEWTON:
            return None
        validation = None if watch is None else watch.validation()
        if validation is not None and len(validation.scores) > table.n_samples:
            validation = None  # their keys might take more memory than the table
        maker = state.batch_maker(votes.plain, validation)
        return None if maker is None else cls(maker, votes, table, state.totals, watch, candidates)

    @property
    def has_more(self) -> bool:
        """Whether the engine is ahead of the rounds that were handed out."""
        return self._made is not None and self._n_taken < len(self._made.made.features)

    def next(self, so_far: Standing, n_most: int, at_once: int = 1) -> Batch | None:
        """The next rounds; None if the next one must be made in the ordinary way.

        Parameters
        ----------
        so_far : Standing
        n_most : int
            How many more rounds the run may have.
        at_once : int
            How many rounds to hand out, at most.
        """
        if not self.has_more:
            if self._n_ordinary > 0:
                self._n_ordinary -= 1
                return None
            # So many certainly do not reach the limit.
            room = VOTES_LIMIT - max(so_far.sums_of_votes)
            n_within_limit = int(max(0.0, room) / self._largest_size)
            n_rounds = min(n_most, self._n_wanted(at_once), n_within_limit)
            self._made, self._n_taken = self._rounds_made(n_rounds, so_far), 0
            self._sums_before = so_far.sums_of_votes
        if self._made is None:
            return None
        low, n_made = self._n_taken, len(self._made.made.features)
        self._n_taken = min(n_made, low + at_once)
        return Batch(self._made, low, self._n_taken)

    @property
    def standing(self) -> Standing:
        """Where the run stands after the rounds that were handed out."""
        made, last = self._made, self._n_taken - 1
        assert made is not None
        sums = (made.sizes[last] + self._sums_before).tolist()  # exact
        return Standing(made.n_before + self._n_taken, sums, float(made.products[last]))

    def take_back(self, n_rounds: int) -> None:
        """Take back the last `n_rounds` of the rounds that were handed out."""
        self._n_taken -= n_rounds

    def _n_wanted(self, at_once: int) -> int:
        wanted = min(max(self._n_rounds, at_once), self._most_rounds)
        n_to_come = None if self._watch is None else self._watch.n_to_come()
        self._n_rounds = min(2 * self._n_rounds, _MOST_ROUNDS)
        return wanted if n_to_come is None else min(wanted, max(n_to_come, _LEAST_ROUNDS))

    def _rounds_made(self, n_rounds: int, so_far: Standing) -> Columns | None:
        """Have the engine make rounds. If it makes fewer, an ordinary round follows.

        Each call in a row that makes none doubles the ordinary rounds before the next call.
        """
        made = None
        if n_rounds > 0:
            candidates, n_done = self._candidates, so_far.n_rounds
            splits = NO_CANDIDATES if candidates is None else candidates.cuts(n_done, n_rounds)
            made = self._maker.make(n_rounds, splits)
        if made is None or not len(made.features):
            self._n_ordinary = self._pause - 1
            self._pause = min(2 * self._pause, _MOST_ORDINARY)
            return None
        self._pause = 1
        self._n_ordinary = int(len(made.features) < n_rounds)
        return Columns(made, self._votes, self._first_weight, so_far.n_rounds, so_far.bound)
