"""The best cut of a pair of features into four quadrants: two stumps that are asked together.

A pair's histogram has the sums of both integers of a round (`gain`) over its cells: one for each
combination of the features' bins. A cut (a, b) parts the samples into four regions, by whether the
first feature's bin is below a, and whether the second one's is below b. Running sums along both
axes give the sums over the regions of every cut at once, as they do along one axis for a stump.

A cut's score is that of Newton votes, gradient**2 / (hessian + l2), over four regions in place of
three. The parts of opposite regions are added, then both sums, then output after output; so a score
does not depend on which feature is called the first. It is a float64 number, defined operation by
operation, so every engine finds the same cut. Of equally good cuts the one with the lowest a is
taken, then the lowest b; of cuts that are offered, the first.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.engines.batched_rounds import VoteRule
from gpustump.engines.contract import Beginning, RegionFactors, RegionVotes
from gpustump.engines.integer_weights import FLOOR
from gpustump.engines.objective import LossName
from gpustump.engines.threads import Team

N_QUADRANTS = 4
"""The regions (below a, below b), (below a, not below b), (not below a, below b), and the rest."""

Pair = tuple[int, int]
"""The places of two features among those whose bins are known."""

Place = tuple[int, int]
"""A cut (a, b), from (1, 1) on."""


class Quadrants(NamedTuple):
    """The best cut of a pair.

    Attributes
    ----------
    score : float
    place : (int, int)
    sums : ndarray (n_quadrants, n_outputs, 2) of int64
        The sums of both integers over the regions.
    """

    score: float
    place: Place
    sums: np.ndarray


def best_quadrants(cells: np.ndarray, l2: float, candidates: np.ndarray | None = None) -> Quadrants:
    """The best cut of a pair.

    Parameters
    ----------
    cells : ndarray (n_outputs, 2, k, m) of int64
        The sums of the gradients and of the Hessians over the pair's cells; k and m are 2 or
        more.
    l2 : float
        Lambda, in units of the integers.
    candidates : ndarray (n, 2) of int64, optional
        The cuts to choose from; by default all.
    """
    below = cells.cumsum(axis=2).cumsum(axis=3)
    first, second = below[:, :, :-1, -1:], below[:, :, -1:, :-1]
    both, total = below[:, :, :-1, :-1], below[:, :, -1:, -1:]
    regions = np.stack([both, first - both, second - both, total - first - second + both])
    # An empty region's Hessian is 0, and so is its gradient. All others have 1 or more.
    divisors = np.maximum(regions[:, :, 1].astype(np.float64) + l2, 1.0)
    gains = regions[:, :, 0].astype(np.float64) ** 2 / divisors
    of_outputs = (gains[0] + gains[3]) + (gains[1] + gains[2])
    scores = of_outputs[0]
    for own in of_outputs[1:]:
        scores = scores + own
    if candidates is None or not len(candidates):
        a, b = divmod(int(np.argmax(scores)), scores.shape[1])
    else:
        a, b = (candidates[int(np.argmax(scores[tuple((candidates - 1).T)]))] - 1).tolist()
    return Quadrants(float(scores[a, b]), (a + 1, b + 1), regions[..., a, b])


def quadrants_of(first: Array, second: Array, place: Place) -> Array:
    """The region of each sample, int64, from its bins of both features, in their library."""
    xp, (a, b) = arrays.namespace_of(first), place
    return 2 * xp.astype(first >= a, xp.int64) + xp.astype(second >= b, xp.int64)


def first_numbers(
    labels: np.ndarray, units: np.ndarray, loss: LossName, beginning: Beginning
) -> np.ndarray:
    """What a loss keeps of each sample before the first step of pairs.

    Parameters
    ----------
    labels : ndarray (n_samples,)
        As `Engine.start` takes them.
    units : ndarray (n_samples,) of float64
        Sample weights in units of the integers: whole numbers above 0.
    loss : str
    beginning : Beginning

    Returns
    -------
    ndarray (n_numbers, n_samples) of float64
        The odds, a probability for each class, or residuals. Under Poisson and gamma loss the
        amounts that move, and in a second row those that stay.
    """
    numbers = beginning.numbers
    if loss == "squared_error":
        numbers = (labels - beginning.scores[0])[np.newaxis]
    elif loss == "poisson":
        numbers = np.stack([units * numbers[0], np.rint(units * labels)])
    elif loss == "gamma":
        numbers = np.stack([units * labels * numbers[0], units])
    if loss in ("poisson", "gamma"):
        np.maximum(numbers[0], FLOOR, out=numbers[0])
    return np.array(numbers, dtype=np.float64, order="C")


class Turn(NamedTuple):
    """What one turn of some pairs does: a step of each pair, one after the other.

    Attributes
    ----------
    places : ndarray (n_pairs, 2) of int64
        The cut of each; (0, 0) where nothing is added.
    votes : ndarray (n_pairs, n_quadrants, n_outputs) of float64
        What its regions vote; 0 where nothing is added.
    """

    places: np.ndarray
    votes: np.ndarray

    @classmethod
    def none(cls, n_pairs: int, n_outputs: int) -> Turn:
        """Before the first step."""
        places = np.zeros((n_pairs, 2), dtype=np.int64)
        return cls(places, np.zeros((n_pairs, N_QUADRANTS, n_outputs)))


class PairRun(Protocol):
    """The samples of one run of boosting by pairs: their bins, and what the loss keeps of them."""

    def cells(self, pair: Pair) -> np.ndarray:
        """The sums over a pair's cells; see `best_quadrants`."""

    def scores(self, pairs: np.ndarray, l2: float, team: Team) -> np.ndarray:
        """The score of each pair's best cut, (n_pairs,) of float64; `pairs` is (n_pairs, 2)."""

    def advance(self, pair: Pair, place: Place, votes: RegionVotes, factors: RegionFactors) -> None:
        """Change the samples by what the regions of a cut vote, as a `contract.Step` does."""

    def take_turns(
        self, steps: Turn, pairs: np.ndarray, candidates: np.ndarray, at: int, rule: VoteRule
    ) -> int:
        """Make the steps of the pairs from number `at` on, as far as votes are in no doubt.

        Parameters
        ----------
        steps : Turn
            The steps that are made are written here.
        pairs : ndarray (n_pairs, 2) of int64
        candidates : ndarray (n_pairs, n_candidates, 2) of int64
            The cuts that each pair chooses from; for n_candidates = 0 all.
        at : int
        rule : VoteRule

        Returns
        -------
        int
            The number of the first pair whose step is not made; the caller makes it.
        """

    def added(self, scores: Array, bins: Array, pairs: np.ndarray, steps: Turn) -> Array:
        """The scores (n_outputs, n) of other samples, after the steps of a turn.

        `bins` (n_features, n) of uint8 are these samples' bins. The scores may be changed.
        """
