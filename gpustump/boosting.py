"""AdaBoost as a plain iterator: weights -> scan -> stump -> weights, one record a round.

The algorithm is Freund and Schapire's (1997; COS 511, lecture 11) with the exact stump, or the
exact interval, as its weak learner. All that a round decides is decided on the host, from two
Python integers: the weight that the stump gets right and the weight that it gets wrong (see
`votes`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.distribution import Distribution, Factors
from gpustump.engine import distribution, prepare
from gpustump.interval import Interval
from gpustump.scan import Cut
from gpustump.stump import Stump
from gpustump.validation import (
    brought_beside,
    check_both_signs,
    check_count,
    check_real,
    check_signs,
    check_table,
    check_weak_learner,
    check_weights,
)
from gpustump.votes import VOTES_LIMIT, odds_and_normaliser, vote_of
from gpustump.weights import factors

if TYPE_CHECKING:
    from gpustump.engine import AnyColumns
    from gpustump.ensemble import StumpEnsemble


@dataclass(frozen=True)
class Round:
    """What one round of boosting did.

    Attributes
    ----------
    number : int
        From 1.
    stump : Stump or Interval
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
    stump: Stump | Interval
    error: float
    edge: float
    vote: float
    normaliser: float
    training_error: float
    training_bound: float


Callback = Callable[[Round], bool | None]
"""Called with each round's record; a true answer stops the boosting after it."""


def fit_stump(
    X: Array,
    y: Array,
    sample_weight: Array | None = None,
    *,
    block_bytes: int | None = None,
    n_jobs: int | None = None,
    max_memory: int | str | None = None,
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
        How many bytes of temporaries the reference scan may take.
    n_jobs : int, optional
        Threads for the CPU kernels; by default all that this process may use. The stump does not
        depend on it.
    max_memory : int or str, optional
        How many bytes this may take beside X, of the host's memory or of a GPU's: 2_000_000_000,
        "500 MB", "2 GiB".

    Returns
    -------
    Stump
        Of equally good ones that with the lowest feature, then the lowest threshold; a constant one
        only where it is strictly better than every split.

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described; the message names it and what was found.
    DeviceError
        If a GPU's memory is too small; the message says how much is needed.

    Notes
    -----
    This is empirical risk minimisation over decision stumps [Shalev-Shwartz and Ben-David,
    Understanding Machine Learning, 10.1.1], in O(n_features * n_samples * log n_samples).
    """
    stump = _fitted(X, y, sample_weight, "stump", block_bytes, n_jobs, max_memory)
    assert isinstance(stump, Stump)
    return stump


def fit_interval(
    X: Array,
    y: Array,
    sample_weight: Array | None = None,
    *,
    block_bytes: int | None = None,
    n_jobs: int | None = None,
    max_memory: int | str | None = None,
) -> Stump | Interval:
    """The interval or stump of least weighted error: over every feature, pair of cuts and sign.

    Parameters and errors are those of `fit_stump`.

    Returns
    -------
    Interval or Stump
        A stump where no interval on its feature is strictly better. Of equally good ones that with
        the lowest feature, then the lowest first cut, then the lowest second one; a constant stump
        only where it is strictly better than all others.

    Notes
    -----
    The largest rise and the largest fall between two values of one cumulative sum a feature; see
    `interval_scan`.

    Examples
    --------
    >>> import numpy as np
    >>> from gpustump import fit_interval
    >>> X = np.asarray([[0.0], [1.0], [2.0], [3.0]])
    >>> found = fit_interval(X, [-1, 1, 1, -1])
    >>> found.low, found.high, found.polarity, found.error
    (0.5, 2.5, 1, 0.0)
    """
    return _fitted(X, y, sample_weight, "interval", block_bytes, n_jobs, max_memory)


def boost(
    X: Array,
    y: Array,
    sample_weight: Array | None = None,
    *,
    learning_rate: float = 1.0,
    n_rounds: int | None = None,
    weak_learner: str = "stump",
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
    weak_learner : str
        What a round may choose from: "stump", or "interval" for stumps and intervals.
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
    check_weak_learner(weak_learner)
    with arrays.computing_on(X):
        columns, y, weights = _prepared(
            X,
            y,
            sample_weight,
            n_rounds=limit,
            weak_learner=weak_learner,
            block_bytes=block_bytes,
            n_jobs=n_jobs,
            max_memory=max_memory,
        )
    return Boosting(
        columns,
        y,
        weights,
        learning_rate=rate,
        n_rounds=limit,
        weak_learner=weak_learner,
        callback=callback,
    )


class Boosting(Iterator[Round]):
    """The rounds of AdaBoost on prepared columns; `boost` makes one from plain arrays.

    Parameters
    ----------
    columns : Columns
        As `engine.prepare` makes them.
    y : array (n_samples,) of float64
        -1.0 or 1.0 for each of the columns' samples.
    sample_weight : array (n_samples,) of float64
        Positive weights for them.
    learning_rate, n_rounds, weak_learner, callback
        As for `boost`; the columns are those that `prepare` made for this weak learner.

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
        columns: AnyColumns,
        y: Array,
        sample_weight: Array,
        *,
        learning_rate: float = 1.0,
        n_rounds: int | None = None,
        weak_learner: str = "stump",
        callback: Callback | None = None,
    ) -> None:
        self.stop_reason: str | None = None
        self._columns = columns
        self._learning_rate = learning_rate
        self._n_rounds = n_rounds
        self._callback = callback
        self._stumps: list[Stump | Interval] = []
        self._votes: list[float] = []
        self._training_bound = 1.0
        self._sum_of_votes = 0.0
        self._is_whole = True
        self._y = y
        with arrays.computing_on(y):
            self._samples = distribution(columns, y, sample_weight, weak_learner)

    @property
    def n_done(self) -> int:
        """Rounds done so far, those of `resume` included."""
        return len(self._stumps)

    @property
    def weights(self) -> Array:
        """D_t for the next round, (n_samples,) of float64 beside y, up to a common factor."""
        return brought_beside(self._samples.weights, self._y)

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
        self._check_whole()
        with arrays.computing_on(self._y):
            record = self._round()
        if record is None:
            raise StopIteration
        if self._callback is not None and self._asked_to_stop(record):
            self.stop_reason = self.stop_reason or "callback"
        return record

    def _check_whole(self) -> None:
        if not self._is_whole:
            raise RuntimeError("this boosting was interrupted in the middle of a round; start anew")

    def _asked_to_stop(self, record: Round) -> bool:
        assert self._callback is not None
        try:
            return bool(self._callback(record))
        except StopIteration as error:  # would end the caller's loop without a word
            raise RuntimeError("the callback raised StopIteration") from error

    def resume(self, stumps: Iterable[Stump | Interval], votes: Iterable[float]) -> None:
        """Bring the weights to where these rounds, done earlier, left them.

        On the data that they were learnt from, the rounds that follow are the ones that an
        uninterrupted run would have made, to the last bit.
        """
        self._check_whole()
        with arrays.computing_on(self._y):
            for stump, vote in zip(stumps, votes, strict=True):
                agreement = self._samples.agreement_of(stump)
                wrong = (self._samples.mass - agreement) // 2
                self._advance(stump, None, vote, wrong)
                if wrong == 0:
                    self.stop_reason = "perfect"

    def _round(self) -> Round | None:
        samples = self._samples
        cut, mass = samples.best_cut(), samples.mass
        wrong = (mass - cut.agreement) // 2
        vote = self._vote(samples, wrong)
        if vote == 0.0:
            self.stop_reason = "small vote" if self._has_edge(wrong, mass) else "no edge"
            return None
        if self._sum_of_votes + vote > VOTES_LIMIT:
            self.stop_reason = "large votes"
            return None
        stump = hypothesis_of(self._columns, cut, mass)
        normaliser = self._advance(stump, cut, vote, wrong)
        if wrong == 0:
            self.stop_reason = "perfect"
        return Round(
            number=len(self._stumps),
            stump=stump,
            error=stump.error,
            edge=cut.agreement / (2 * mass),
            vote=vote,
            normaliser=normaliser,
            training_error=samples.training_error,
            training_bound=self._training_bound,
        )

    def _has_edge(self, wrong: int, mass: int) -> bool:
        """Whether the stump is better than chance by more than what is rounded away."""
        return wrong == 0 or vote_of(wrong, mass, 1.0) != 0.0

    def _vote(self, samples: Distribution, wrong: int) -> float:
        if wrong:
            return vote_of(wrong, samples.mass, self._learning_rate)
        return vote_of(samples.lightest(), 2 * samples.mass, self._learning_rate)

    def _advance(self, stump: Stump | Interval, cut: Cut | None, vote: float, wrong: int) -> float:
        """Take a stump into the ensemble and reweight the samples; returns the normaliser."""
        self._is_whole = False  # whatever interrupts this leaves it undone in part
        samples = self._samples
        correct = samples.mass - wrong
        odds, normaliser = odds_and_normaliser(wrong, samples.mass, vote)
        self._stumps.append(stump)
        self._votes.append(vote)
        self._training_bound *= normaliser
        self._sum_of_votes += abs(vote)
        by = factors(
            odds, correct_mass=correct, wrong_mass=wrong, n_samples=self._columns.n_samples
        )
        samples.advance(stump, cut, vote, Factors(*by))
        self._is_whole = True
        return normaliser


def _prepared(
    X: Array, y: Array, sample_weight: Array | None, **how: Any
) -> tuple[AnyColumns, Array, Array]:
    """Checked columns, labels and weights of the samples that have a weight.

    See `engine.prepare` for how.
    """
    y = check_signs(y, X)
    weights, rows = check_weights(sample_weight, X)
    if rows is not None:
        y = arrays.namespace_of(y).take(y, rows, axis=0)
        check_both_signs(y, "y, where sample_weight is not zero,")
    return prepare(X, rows, **how), y, weights


def _fitted(
    X: Array,
    y: Array,
    sample_weight: Array | None,
    weak_learner: str,
    block_bytes: int | None,
    n_jobs: int | None,
    max_memory: int | str | None,
) -> Stump | Interval:
    """What a weak learner finds; see `fit_stump`."""
    X = check_table(X)
    with arrays.computing_on(X):
        columns, y, weights = _prepared(
            X,
            y,
            sample_weight,
            n_rounds=1,
            weak_learner=weak_learner,
            block_bytes=block_bytes,
            n_jobs=n_jobs,
            max_memory=max_memory,
        )
        first = distribution(columns, y, weights, weak_learner)
        return hypothesis_of(columns, first.best_cut(), first.mass)


def hypothesis_of(columns: AnyColumns, cut: Cut, mass: int) -> Stump | Interval:
    """The scan's integers as a stump, or as an interval."""
    position, after = cut.position, cut.after
    threshold = math.inf if position is None else columns.threshold(cut.feature, position)
    votes = (cut.polarity, cut.missing)
    error = (mass - cut.agreement) // 2 / mass
    if after is None:
        return Stump(cut.feature, threshold, *votes, error)
    return Interval(cut.feature, columns.threshold(cut.feature, after), threshold, *votes, error)
