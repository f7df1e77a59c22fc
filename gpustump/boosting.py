"""AdaBoost as a plain iterator: weights -> scan -> stump -> weights, one record a round.

The algorithm is Freund and Schapire's (1997; COS 511, lecture 11) with the exact stump as its weak
learner. All that a round decides is decided on the host, from two Python integers: the weight that
the stump gets right and the weight that it gets wrong. Logarithms and exponentials of them are
taken in decimal arithmetic, which gives the same digits everywhere; the C library's would not.

A vote is a whole multiple of `VOTE_UNIT`. So sums of votes are exact in float64, whatever their
order: the decision value summed round by round, or feature by feature from tables, on any device,
is the same number. What follows from a vote (the next weights, the normaliser, the bound on the
training error) follows from the rounded one, so AdaBoost's theorems hold for the model as it is.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.columns import Columns, prepare
from gpustump.scan import Cut, best_cut
from gpustump.stump import Stump
from gpustump.validation import (
    check_both_signs,
    check_count,
    check_real,
    check_signs,
    check_table,
    check_weights,
)
from gpustump.weights import SignedWeights, in_units, reweighted, signed

if TYPE_CHECKING:
    from gpustump.ensemble import StumpEnsemble

VOTE_UNIT = 2.0**-36
"""Votes are whole multiples of this, about 1.5e-11."""

VOTES_LIMIT = 2.0**17
"""Bound on the sum of absolute votes: below it, float64 holds every sum of votes exactly."""

_EXACT = decimal.Context(
    prec=50,
    rounding=decimal.ROUND_HALF_EVEN,
    Emax=10**9,
    Emin=-(10**9),
    traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow],
)
"""The arithmetic of votes, whatever the caller's own decimal context allows."""


@dataclass(frozen=True)
class Round:
    """What one round of boosting did.

    Attributes
    ----------
    number : int
        From 1.
    stump : Stump
    error : float
        e_t, the stump's weighted error under this round's weights.
    edge : float
        g_t = 1/2 - e_t.
    vote : float
        alpha_t = learning_rate / 2 * ln((1 - e_t) / e_t). A perfect stump, whose formula would be
        infinite, votes as if it got half of the lightest sample's weight wrong. That is more than
        any imperfect stump can have, and with equal weights e = 1/(2 * n_samples) [the smoothing
        of Schapire and Singer 1999, 4.2].
    normaliser : float
        Z_t = e_t * exp(alpha_t) + (1 - e_t) * exp(-alpha_t), which is 2 * sqrt(e_t * (1 - e_t)) at
        a learning rate of 1; exp(-alpha_t) for a perfect stump.
    training_error : float
        Share of the sample weight that the ensemble up to this round gets wrong.
    training_bound : float
        Product of the normalisers so far, which the training error cannot exceed (but for the
        rounding of weights, a factor of 1 + 2**-50 or less a round).
    """

    number: int
    stump: Stump
    error: float
    edge: float
    vote: float
    normaliser: float
    training_error: float
    training_bound: float


Callback = Callable[[Round], bool | None]
"""Called with each round's record; a true answer stops the boosting after it."""


def fit_stump(
    X: Array, y: Array, sample_weight: Array | None = None, *, block_bytes: int | None = None
) -> Stump:
    """The decision stump of least weighted error: over every feature, threshold and sign.

    Parameters
    ----------
    X : array (n_samples, n_features)
        Booleans, integers or floats of any array library; NaN means missing.
    y : array (n_samples,)
        Labels -1 and +1, both present.
    sample_weight : array (n_samples,), optional
        Finite and not negative, not all zero; only their ratios matter. Equal if not given.
    block_bytes : int, optional
        How many bytes of temporaries the scan may take.

    Returns
    -------
    Stump
        Of equally good ones that with the lowest feature, then the lowest threshold; a constant one
        only where it is strictly better than every split.

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described; the message names it and what was found.

    Notes
    -----
    This is empirical risk minimisation over decision stumps [Shalev-Shwartz and Ben-David,
    Understanding Machine Learning, 10.1.1], in O(n_features * n_samples * log n_samples).
    """
    X = check_table(X)
    with arrays.computing_on(X):
        columns, y, weights = _prepared(X, y, sample_weight, block_bytes)
        sums = signed(in_units(weights), y)
        return _stump(columns, best_cut(columns, sums), sums)


def boost(
    X: Array,
    y: Array,
    sample_weight: Array | None = None,
    *,
    learning_rate: float = 1.0,
    n_rounds: int | None = None,
    callback: Callback | None = None,
    block_bytes: int | None = None,
) -> Boosting:
    """AdaBoost with exact decision stumps, as an iterator over its rounds.

    Parameters
    ----------
    X, y, sample_weight, block_bytes
        As for `fit_stump`.
    learning_rate : float
        Shrinks every vote; above 0.
    n_rounds : int, optional
        Stop after so many rounds; by default only where boosting itself ends.
    callback : callable, optional
        Gets each `Round`; a true answer stops the boosting after that round.

    Returns
    -------
    Boosting
        Iterate it for the rounds. Its `model` is the ensemble so far, `stop_reason` says why there
        are no more rounds, and `resume` goes on from rounds made earlier.

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
    rate = check_real(learning_rate, "learning_rate", above=0.0)
    limit = None if n_rounds is None else check_count(n_rounds, "n_rounds")
    with arrays.computing_on(X):
        columns, y, weights = _prepared(X, y, sample_weight, block_bytes)
    return Boosting(columns, y, weights, learning_rate=rate, n_rounds=limit, callback=callback)


class Boosting(Iterator[Round]):
    """The rounds of AdaBoost on prepared columns; `boost` makes one from plain arrays.

    Parameters
    ----------
    columns : Columns
    y : array (n_samples,) of float64
        -1.0 or 1.0 for each of the columns' samples.
    sample_weight : array (n_samples,) of float64
        Positive weights for them.
    learning_rate, n_rounds, callback
        As for `boost`.

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
        columns: Columns,
        y: Array,
        sample_weight: Array,
        *,
        learning_rate: float = 1.0,
        n_rounds: int | None = None,
        callback: Callback | None = None,
    ) -> None:
        self.stop_reason: str | None = None
        self._columns = columns
        self._y = y
        self._learning_rate = learning_rate
        self._n_rounds = n_rounds
        self._callback = callback
        self._xp = arrays.namespace_of(y)
        self._stumps: list[Stump] = []
        self._votes: list[float] = []
        self._training_bound = 1.0
        self._sum_of_votes = 0.0
        with arrays.computing_on(self._y):
            self._weights = in_units(sample_weight)
            first = signed(self._weights, y)
            self._masses, self._mass = self._xp.abs(first.values), first.mass
            self._decision = self._xp.zeros_like(y)

    @property
    def n_done(self) -> int:
        """Rounds done so far, those of `resume` included."""
        return len(self._stumps)

    @property
    def model(self) -> StumpEnsemble:
        """The model so far: predicts -1 or +1, can be saved and compared."""
        from gpustump.ensemble import Member, StumpEnsemble

        member = Member(tuple(self._stumps), tuple(self._votes))
        return StumpEnsemble((member,), self._columns.n_features)

    def __next__(self) -> Round:
        if self._n_rounds is not None and len(self._stumps) >= self._n_rounds:
            self.stop_reason = self.stop_reason or "limit"
        if self.stop_reason is not None:
            raise StopIteration
        with arrays.computing_on(self._y):
            record = self._round()
        if record is None:
            raise StopIteration
        if self._callback is not None and self._asked_to_stop(record):
            self.stop_reason = self.stop_reason or "callback"
        return record

    def _asked_to_stop(self, record: Round) -> bool:
        assert self._callback is not None
        try:
            return bool(self._callback(record))
        except StopIteration as error:  # would end the caller's loop without a word
            raise RuntimeError("the callback raised StopIteration") from error

    def resume(self, stumps: Iterable[Stump], votes: Iterable[float]) -> None:
        """Bring the weights to where these rounds, done earlier, left them.

        On the data that they were learnt from, the rounds that follow are the ones that an
        uninterrupted run would have made, to the last bit.
        """
        with arrays.computing_on(self._y):
            for stump, vote in zip(stumps, votes, strict=True):
                sums = signed(self._weights, self._y)
                predicted = stump.on_values(self._columns.values(stump.feature))
                agreed = self._xp.where(predicted > 0, sums.values, -sums.values)
                agreement = int(self._xp.sum(agreed))
                wrong = (sums.mass - agreement) // 2
                self._advance(stump, predicted, vote, wrong, sums.mass)
                if wrong == 0:
                    self.stop_reason = "perfect"

    def _round(self) -> Round | None:
        sums = signed(self._weights, self._y)
        cut = best_cut(self._columns, sums)
        wrong = (sums.mass - cut.agreement) // 2
        vote = self._vote(sums, wrong)
        if vote == 0.0:
            self.stop_reason = "small vote" if self._has_edge(wrong, sums.mass) else "no edge"
            return None
        if self._sum_of_votes + vote > VOTES_LIMIT:
            self.stop_reason = "large votes"
            return None
        stump = _stump(self._columns, cut, sums)
        predicted = stump.on_values(self._columns.values(stump.feature))
        normaliser = self._advance(stump, predicted, vote, wrong, sums.mass)
        if wrong == 0:
            self.stop_reason = "perfect"
        return Round(
            number=len(self._stumps),
            stump=stump,
            error=stump.error,
            edge=cut.agreement / (2 * sums.mass),
            vote=vote,
            normaliser=normaliser,
            training_error=self._training_error(),
            training_bound=self._training_bound,
        )

    def _has_edge(self, wrong: int, mass: int) -> bool:
        """Whether the stump is better than chance by more than what is rounded away."""
        return wrong == 0 or vote_of(wrong, mass, 1.0) != 0.0

    def _vote(self, sums: SignedWeights, wrong: int) -> float:
        if wrong:
            return vote_of(wrong, sums.mass, self._learning_rate)
        lightest = int(self._xp.min(self._xp.abs(sums.values)))
        return vote_of(lightest, 2 * sums.mass, self._learning_rate)

    def _advance(self, stump: Stump, predicted: Array, vote: float, wrong: int, mass: int) -> float:
        """Add a stump's votes to the decision and reweight the samples; returns the normaliser."""
        with decimal.localcontext(_EXACT):
            odds = (Decimal(vote) * 2).exp()
        normaliser = normaliser_of(wrong, mass, vote)
        self._stumps.append(stump)
        self._votes.append(vote)
        self._training_bound *= normaliser
        self._sum_of_votes += abs(vote)
        self._decision = self._decision + predicted * vote
        self._weights = reweighted(
            self._weights,
            predicted != self._y,
            odds,
            correct_mass=mass - wrong,
            wrong_mass=wrong,
        )
        return normaliser

    def _training_error(self) -> float:
        xp = self._xp
        mistaken = (self._decision > 0) != (self._y > 0)
        return int(xp.sum(xp.where(mistaken, self._masses, 0))) / self._mass


def vote_of(wrong: int, mass: int, learning_rate: float) -> float:
    """The vote of a stump that gets `wrong` of `mass` wrong, and not 0: see `Round`.

    A multiple of `VOTE_UNIT`; infinite if it is beyond `VOTES_LIMIT`.
    """
    with decimal.localcontext(_EXACT):
        log_odds = (Decimal(mass - wrong) / Decimal(wrong)).ln()
        units = log_odds / 2 * Decimal(learning_rate) / Decimal(VOTE_UNIT)
        if abs(units) > VOTES_LIMIT / VOTE_UNIT:
            return math.inf
        return int(units.to_integral_value()) * VOTE_UNIT


def normaliser_of(wrong: int, mass: int, vote: float) -> float:
    """Z_t, the sum of the reweighted distribution before it is normalised; see `Round`."""
    with decimal.localcontext(_EXACT):
        growth = Decimal(vote).exp()
        return float((wrong * growth + (mass - wrong) / growth) / mass)


def _prepared(
    X: Array, y: Array, sample_weight: Array | None, block_bytes: int | None
) -> tuple[Columns, Array, Array]:
    """Checked columns, labels and weights of the samples that have a weight."""
    y = check_signs(y, X)
    weights, rows = check_weights(sample_weight, X)
    if rows is not None:
        y = arrays.namespace_of(y).take(y, rows, axis=0)
        check_both_signs(y, "y, where sample_weight is not zero,")
    return prepare(X, rows=rows, block_bytes=block_bytes), y, weights


def _stump(columns: Columns, cut: Cut, sums: SignedWeights) -> Stump:
    """The scan's integers as a stump."""
    position = cut.position
    return Stump(
        feature=cut.feature,
        threshold=math.inf if position is None else columns.threshold(cut.feature, position),
        polarity=cut.polarity,
        missing=cut.missing,
        error=(sums.mass - cut.agreement) // 2 / sums.mass,
    )
