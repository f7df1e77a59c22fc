"""Boosting by pairs of features on arrays of any library; see `engines.quadrants`.

Samples are sorted by the cell of a pair when the pair is first asked for.
"""

from __future__ import annotations

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.engines.batched_rounds import VoteRule
from gpustump.engines.contract import RegionFactors, RegionVotes
from gpustump.engines.quadrants import Pair, Place, Turn, best_quadrants, quadrants_of
from gpustump.engines.reference.integers import Integers, Loss, picked_numbers, sums_in_order
from gpustump.engines.threads import Team


class ArrayPairRun:
    """The samples of one run; see `engines.quadrants.PairRun`.

    Parameters
    ----------
    bins : array (n_features, n_samples) of uint8
    n_bins : sequence of int
        How many bins each feature has.
    loss : Loss
        Of the samples, in the library and on the device of the bins.
    """

    def __init__(self, bins: Array, n_bins: tuple[int, ...], loss: Loss) -> None:
        self._bins, self._n_bins, self._loss = bins, n_bins, loss
        self._xp = arrays.namespace_of(bins)
        self._integers: Integers | None = None
        self._orders: dict[Pair, tuple[Array, Array]] = {}

    def cells(self, pair: Pair) -> np.ndarray:
        """The sums over a pair's cells."""
        if self._integers is None:
            self._integers = self._loss.integers()
        found = sums_in_order(self._integers, *self._order(pair))
        return found.reshape(*found.shape[:2], *(self._n_bins[feature] for feature in pair))

    def scores(self, pairs: np.ndarray, l2: float, team: Team) -> np.ndarray:
        """The score of each pair's best cut."""
        found = []
        for pair in pairs.tolist():
            found.append(best_quadrants(self.cells(tuple(pair)), l2).score)
            self._orders.clear()  # of many pairs
        return np.asarray(found)

    def advance(self, pair: Pair, place: Place, votes: RegionVotes, factors: RegionFactors) -> None:
        """Change the samples by what the regions of a cut vote."""
        first, second = self._of(pair)
        self._loss.advance(quadrants_of(first, second, place), votes, factors)
        self._integers = None

    def take_turns(
        self, steps: Turn, pairs: np.ndarray, candidates: np.ndarray, at: int, rule: VoteRule
    ) -> int:
        """None: the caller makes every step."""
        return at

    def added(self, scores: Array, bins: Array, pairs: np.ndarray, steps: Turn) -> Array:
        """The scores of other samples, after the steps of a turn."""
        xp = arrays.namespace_of(bins)
        for (j, k), place, votes in zip(pairs.tolist(), steps.places, steps.votes, strict=True):
            if place[0]:
                first, second = (xp.astype(bins[number, :], xp.int64) for number in (j, k))
                region = quadrants_of(first, second, (int(place[0]), int(place[1])))
                columns = [
                    picked_numbers(tuple(of_output), region) for of_output in votes.T.tolist()
                ]
                scores = scores + xp.stack(columns)
        return scores

    def _of(self, pair: Pair) -> tuple[Array, Array]:
        """The bins of both features, int64."""
        first, second = (self._xp.astype(self._bins[j, :], self._xp.int64) for j in pair)
        return first, second

    def _order(self, pair: Pair) -> tuple[Array, Array]:
        """The samples in order of their cells, and where each cell ends."""
        found = self._orders.get(pair)
        if found is None:
            xp, device = self._xp, arrays.device_of(self._bins)
            first, second = self._of(pair)
            cells = first * self._n_bins[pair[1]] + second
            order = xp.argsort(cells, stable=True)
            n_cells = self._n_bins[pair[0]] * self._n_bins[pair[1]]
            numbers = xp.asarray(np.arange(n_cells), device=device)
            ends = xp.searchsorted(xp.take(cells, order, axis=0), numbers, side="right")
            found = self._orders[pair] = order, ends
        return found
