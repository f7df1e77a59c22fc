"""D_t, the distribution over the samples that boosting changes from round to round.

A `Distribution` holds what one run knows of its samples: weights, their integers, the score so far.
It finds the best cut under the weights and takes the chosen stump's vote in. What the round is
worth is decided elsewhere (`boosting`), from the integers alone. The one in this file works on
arrays of any library; those of `gpustump.cpu` return the same integers.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.columns import Columns
from gpustump.hypothesis import Hypothesis
from gpustump.interval_scan import best_interval
from gpustump.scan import Cut, best_cut
from gpustump.weights import in_units, reweighted, signed


class Factors(NamedTuple):
    """What a round multiplies the weights by; see `weights.factors`.

    `grown` is for the misclassified samples, `kept`, 2**-halvings, for the others.
    """

    grown: float
    kept: float
    halvings: int


class Distribution(Protocol):
    """What boosting asks of the samples' weights.

    Attributes
    ----------
    total : int
        The integers' sum, each with the sign of its label.
    mass : int
        The sum of their absolute values.
    training_error : float
        Share of the first round's mass that the sum of votes gets wrong.
    """

    @property
    def total(self) -> int: ...

    @property
    def mass(self) -> int: ...

    @property
    def training_error(self) -> float: ...

    @property
    def weights(self) -> Array:
        """Float64 weights (n_samples,), in the unit of the integers, which are these rounded up."""

    def lightest(self) -> int:
        """The smallest integer weight."""

    def best_cut(self) -> Cut:
        """The cut of largest agreement under the integers; see `scan.best_cut`, or, where the weak
        learner is the interval, `interval_scan.best_interval`."""

    def agreement_of(self, stump: Hypothesis) -> int:
        """The weight that any stump gets right less what it gets wrong."""

    def advance(self, stump: Hypothesis, cut: Cut | None, vote: float, factors: Factors) -> None:
        """Add a stump's votes to the scores and give the samples their next weights.

        Parameters
        ----------
        stump : Stump or Interval
        cut : Cut or None
            What it was made from, if `best_cut` has just found it.
        vote : float
        factors : Factors
        """


class ArrayDistribution:
    """D_t on arrays of any library.

    Parameters
    ----------
    columns : Columns
    y : array (n_samples,) of float64
        -1.0 or 1.0.
    sample_weight : array (n_samples,) of float64
        Positive.
    weak_learner : str
        "stump" or "interval".
    """

    def __init__(
        self, columns: Columns, y: Array, sample_weight: Array, weak_learner: str = "stump"
    ) -> None:
        self._columns = columns
        self._search = {"stump": best_cut, "interval": best_interval}[weak_learner]
        self._y = y
        self._xp = arrays.namespace_of(y)
        self._weights = in_units(sample_weight)
        self._signed = signed(self._weights, y)
        self._masses, self._first_mass = self._xp.abs(self._signed.values), self._signed.mass
        self._scores = self._xp.zeros_like(y)

    @property
    def total(self) -> int:
        return self._signed.total

    @property
    def mass(self) -> int:
        return self._signed.mass

    @property
    def training_error(self) -> float:
        xp = self._xp
        mistaken = (self._scores > 0) != (self._y > 0)
        return int(xp.sum(xp.where(mistaken, self._masses, 0))) / self._first_mass

    @property
    def weights(self) -> Array:
        return self._weights

    def lightest(self) -> int:
        return int(self._xp.min(self._xp.abs(self._signed.values)))

    def best_cut(self) -> Cut:
        return self._search(self._columns, self._signed)

    def agreement_of(self, stump: Hypothesis) -> int:
        values = self._signed.values
        agreed = self._xp.where(self._predicted(stump) > 0, values, -values)
        return int(self._xp.sum(agreed))

    def advance(self, stump: Hypothesis, cut: Cut | None, vote: float, factors: Factors) -> None:
        predicted = self._predicted(stump)
        self._scores = self._scores + predicted * vote
        wrong = predicted != self._y
        self._weights = reweighted(self._weights, wrong, factors.grown, factors.kept)
        self._signed = signed(self._weights, self._y)

    def _predicted(self, stump: Hypothesis) -> Array:
        return stump.on_values(self._columns.values(stump.feature))
