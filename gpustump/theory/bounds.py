"""What is known of boosted stumps before any test data: bounds, margins, growth functions.

Plain functions of errors, votes, margins and sizes, each with the theorem that it is. Bounds are
returned as they come: one above 1 is true and says nothing, and hiding that would not help. Sizes
enter through their logarithms, so that 10**8 samples overflow nothing. Margins and shares, which
are measured and not bounded, are the same numbers in every array library: elementwise arithmetic
and sums of integers only.

Growth functions are those of stumps on tables without missing values. A stump votes on missing ones
as well, which at most doubles its labellings of each kind: count a feature that has any twice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.arrays.moving import moved_to_device_of
from gpustump.boosting.discrete_votes import odds_and_normaliser
from gpustump.data.input_arrays import as_array
from gpustump.data.labels import class_numbers
from gpustump.data.parameters import check_count, check_learner, check_real
from gpustump.data.sample_weights import check_weights
from gpustump.data.tables import check_table
from gpustump.engines.integer_weights import IntegerWeights
from gpustump.learners.step_table import VOTES_LIMIT
from gpustump.model.ensemble import StumpEnsemble, model_of


def training_bounds(
    errors: Sequence[float] | Array, votes: Sequence[float] | Array | None = None
) -> np.ndarray:
    """The bound on the training error after each round: the product of the normalisers so far.

    Parameters
    ----------
    errors : array (n_rounds,)
        e_t, the weighted error of each round's stump, in [0, 1).
    votes : array (n_rounds,), optional
        alpha_t, if they are others than AdaBoost's own ln((1 - e_t) / e_t) / 2: with a learning
        rate, or of a perfect stump.

    Returns
    -------
    array (n_rounds,) of float64

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described, or the two are not equally long.

    Notes
    -----
    Without votes, Z_t = 2 * sqrt(e_t * (1 - e_t)) [Freund and Schapire 1997, theorem 6; COS 511,
    lecture 11]. With votes, Z_t = e_t * exp(alpha_t) + (1 - e_t) * exp(-alpha_t), and the product
    bounds the training error whatever the votes are [Schapire and Singer 1999, theorem 1]. In exact
    arithmetic, that is: rounding may move each factor by a few parts in 10**16.

    Examples
    --------
    >>> training_bounds([0.2, 0.2]).tolist()
    [0.8, 0.6400000000000001]
    """
    errors = _checked_errors(errors)
    if votes is None:
        return np.cumprod(2.0 * np.sqrt(errors * (1.0 - errors)))
    votes = _host_vector(votes, "votes")
    if votes.shape != errors.shape:
        raise ValueError(
            f"errors and votes must be equally many; got {len(errors)} and {len(votes)}."
        )
    _refuse(votes, "votes", ~(np.abs(votes) <= VOTES_LIMIT), f"within +-{VOTES_LIMIT:g}")
    pairs = zip(errors.tolist(), votes.tolist(), strict=True)
    with np.errstate(all="ignore"):
        bounds = np.cumprod([_normaliser(error, vote) for error, vote in pairs], dtype=np.float64)
    return np.where(np.isnan(bounds), np.inf, bounds)  # 0 * inf, for votes in the hundreds


def edge_bounds(errors: Sequence[float] | Array) -> np.ndarray:
    """The bound on the training error after each round that the edges alone give.

    Parameters
    ----------
    errors : array (n_rounds,)
        As for `training_bounds`, which without votes are never above these (but for rounding).

    Returns
    -------
    array (n_rounds,) of float64

    Raises
    ------
    ValueError, TypeError
        If errors are not numbers in [0, 1), in one dimension.

    Notes
    -----
    exp(-2 * (g_1**2 + ... + g_t**2)) with the edges g_t = 1/2 - e_t, since sqrt(1 - 4 * g**2) <=
    exp(-2 * g**2) [Freund and Schapire 1997, after theorem 6; COS 511, lecture 11].

    Examples
    --------
    >>> edge_bounds([0.5, 0.5]).tolist()
    [1.0, 1.0]
    """
    return np.exp(-2.0 * np.cumsum((0.5 - _checked_errors(errors)) ** 2))


def normalised_margins(model: Any, X: Array, y: Array) -> Array:
    """How decidedly each sample is classified rightly: from -1, all votes wrong, to 1, all right.

    Parameters
    ----------
    model : StumpEnsemble or fitted classifier
    X : array (n_samples, n_features)
        Of any array library.
    y : array (n_samples,)
        Labels of the model's classes: beside X, or on the host if X is. Lists and text may stand
        beside any X.

    Returns
    -------
    array of float64, in the library and on the device of X
        (n_samples,) for two classes. For more (n_samples, n_classes): each member's margin in its
        own problem, its class against the rest. 0 where a member has no votes.

    Raises
    ------
    ValueError
        If y holds a label that the model does not know, or X or y has another length, width or
        device than is wanted; or if the classifier is not fitted.
    TypeError
        If the model is neither, X does not hold real numbers, or y holds neither numbers, booleans
        nor text.

    Notes
    -----
    y * F(x) / (|alpha_1| + ... + |alpha_T|), y = +1 for the second class [Schapire, Freund,
    Bartlett and Lee 1998, section 2]. The quotient of two exact sums, rounded once, so the same
    number everywhere.

    Examples
    --------
    >>> from gpustump import Member, Stump, StumpEnsemble
    >>> stumps = Stump(0, 0.5, -1, 1, 0.1), Stump(0, 1.5, -1, 1, 0.2)
    >>> model = StumpEnsemble((Member(stumps, (3.0, 1.0)),), 1)
    >>> normalised_margins(model, [[0.0], [1.0], [2.0]], [-1, 1, -1]).tolist()
    [1.0, 0.5, -1.0]
    """
    model, X = model_of(model), check_table(X)
    numbers = class_numbers(model.classes, y, X)
    scores = model.decision_function(X)
    xp, device = arrays.namespace_of(scores), arrays.device_of(scores)
    with arrays.computing_on(scores):
        numbers = moved_to_device_of(numbers, scores)
        if model.is_binary:
            own = numbers == 1
        else:
            own = numbers[:, None] == xp.arange(len(model.classes), dtype=xp.int64, device=device)
        # A total for each score: instead of dividing by one for all, XLA multiplies by its
        # reciprocal, which rounds twice.
        totals = xp.asarray(_totals(model), dtype=xp.float64, device=device)
        return xp.where(own, scores, -scores) / xp.broadcast_to(totals, scores.shape)


def share_below(margins: Array, theta: float = 0.0, sample_weight: Array | None = None) -> float:
    """The share of the samples, or of their weight, with a margin of theta or less.

    Parameters
    ----------
    margins : array (n_samples,)
        Of any array library; a column of `normalised_margins` where there are several.
    theta : float
    sample_weight : array (n_samples,), optional
        As for `fit_stump`, and counted as there: in integers.

    Returns
    -------
    float
        In [0, 1]; a ratio of two integers, rounded once.

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described, or a margin is NaN.

    Notes
    -----
    P_S[y * f(x) <= theta] of Schapire, Freund, Bartlett and Lee (1998). At theta = 0 it is the
    training error, to the last bit, unless the model leaves samples undecided: a margin of 0 counts
    here, but the model predicts its first class for it, and where that is right it is no error.

    Examples
    --------
    >>> share_below([-0.5, 0.0, 0.25, 1.0])
    0.5
    """
    margins, theta = _checked_margins(margins), check_real(theta, "theta")
    with arrays.computing_on(margins):
        below = margins <= theta
        weights, rows = check_weights(sample_weight, margins)
        return IntegerWeights.of(weights).share(arrays.picked(below, rows))


def stump_growth(n_samples: int, n_features: int) -> int:
    """An upper bound on how many ways decision stumps can label samples: their growth function.

    Parameters
    ----------
    n_samples, n_features : int

    Raises
    ------
    ValueError, TypeError
        If one of them is not a whole number of at least 1.

    Notes
    -----
    Each feature cuts m samples at m - 1 places, with two polarities, and there are two constants:
    2 * (n_features * (m - 1) + 1), and never more than 2**m. Some samples are labelled in so many
    ways if 2 * n_features <= m; with more features a few labellings come twice, as only m samples
    can stand apart from the rest [the sum of min(2 * n_features, C(m, k)) over 0 < k < m, and two:
    Leboeuf, LeBlanc and Marchand 2020].

    Examples
    --------
    >>> stump_growth(4, 1), stump_growth(4, 2), stump_growth(4, 100)
    (8, 14, 16)
    """
    m, n_features = check_count(n_samples, "n_samples"), check_count(n_features, "n_features")
    return _capped(2 * (n_features * (m - 1) + 1), m)


def interval_growth(n_samples: int, n_features: int) -> int:
    """An upper bound on how many ways intervals of one feature can label samples.

    An interval answers its polarity on (low, high] and the other sign elsewhere; stumps and
    constants are among them.

    Parameters
    ----------
    n_samples, n_features : int

    Raises
    ------
    ValueError, TypeError
        If one of them is not a whole number of at least 1.

    Notes
    -----
    With the m samples in a circle, in the order of the feature, a labelling is an arc of +1: of
    each length from 1 to m - 1 there are m, and there are two constants. One feature thus has
    m * (m - 1) + 2. The arcs of length 1 and m - 1 are the same for every feature, the others may
    all differ: 2 * m + n_features * m * (m - 3) + 2 from m = 3 on, and never more than 2**m.

    Examples
    --------
    >>> interval_growth(3, 1), interval_growth(4, 1), interval_growth(5, 2), interval_growth(9, 2)
    (8, 14, 32, 128)
    """
    m, n_features = check_count(n_samples, "n_samples"), check_count(n_features, "n_features")
    return _capped(2 * m + n_features * m * max(m - 3, 0) + 2, m)


def margin_bound(
    share: float,
    theta: float,
    n_samples: int,
    *,
    n_hypotheses: int | None = None,
    n_features: int | None = None,
    weak_learner: str = "stump",
    delta: float = 0.05,
) -> float:
    """The margin bound on the error on new samples; above 1 it says nothing.

    Parameters
    ----------
    share : float
        `share_below(margins, theta)` of the training samples, unweighted.
    theta : float
        In (0, 1]; it may be chosen after looking at the margins.
    n_samples : int
        Training samples, independent draws from one distribution.
    n_hypotheses : int, optional
        Size of a finite class of weak hypotheses, at least 2.
    n_features : int, optional
        In its place: the weak hypotheses are all stumps on so many features.
    weak_learner : {"stump", "interval"}
        What they are, with n_features.
    delta : float
        In (0, 1): the bound holds with probability 1 - delta.

    Returns
    -------
    float

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described, or not exactly one of n_hypotheses and n_features given.

    Notes
    -----
    Schapire, Freund, Bartlett and Lee (1998), theorems 1 and 2, with the constants of the proof and
    not those of the statement. For every N at once, the error is at most

        share + 2 * exp(-N * theta**2 / 8) + eps_N,

    where g, the mean of N weak hypotheses drawn by their votes, stands in for the whole vote:
    Hoeffding's inequality gives exp(-N * theta**2 / 8) twice, as g is off by theta / 2 once on the
    training samples and once on new ones. For the events {y * g(x) > theta / 2} only N + 1 values
    of theta differ. Of delta, N gets delta / (N * (N + 1)), which sums to delta: so the union over
    N is paid for, and the least of all N may be taken, as it is here. With a finite class H there
    are |H|**N means, and

        eps_N = sqrt(ln(N * (N + 1)**2 * |H|**N / delta) / (2 * m)).

    With growth function P, the events pick at most (N + 1) * P(2 * m)**N subsets of 2 * m samples,
    and by P[sup > eps] <= 4 * growth(2 * m) * exp(-m * eps**2 / 8) [Vapnik and Chervonenkis 1971,
    theorem 2]

        eps_N = sqrt(8 / m * ln(4 * N * (N + 1)**2 * P(2 * m)**N / delta)).

    Examples
    --------
    >>> round(margin_bound(0.0, 0.5, 10**6, n_hypotheses=100), 4)
    0.0247
    """
    share, delta = _within(share, "share", "[0, 1]"), _within(delta, "delta", "(0, 1)")
    theta, m = _within(theta, "theta", "(0, 1]"), check_count(n_samples, "n_samples")
    if (n_hypotheses is None) == (n_features is None):
        raise ValueError(
            "exactly one of n_hypotheses and n_features must be given; got "
            f"n_hypotheses={n_hypotheses!r} and n_features={n_features!r}."
        )
    if n_features is None:
        size = check_count(n_hypotheses, "n_hypotheses", least=2)
        deviation = _Deviation(1 / (2 * m), -math.log(delta), math.log(size))
    else:
        growth = _growth_of(weak_learner)(2 * m, n_features)
        deviation = _Deviation(8 / m, math.log(4) - math.log(delta), math.log(growth))
    return share + _least_over_means(theta, deviation)


def vc_bound(
    training_error: float,
    n_rounds: int,
    n_samples: int,
    n_features: int,
    *,
    weak_learner: str = "stump",
    delta: float = 0.05,
) -> float:
    """The Vapnik-Chervonenkis bound on the error on new samples; above 1 it says nothing.

    Parameters
    ----------
    training_error : float
        Unweighted.
    n_rounds : int
        T, chosen before looking at the samples.
    n_samples : int
        Training samples, independent draws from one distribution.
    n_features : int
    weak_learner : {"stump", "interval"}
    delta : float
        In (0, 1): the bound holds with probability 1 - delta.

    Returns
    -------
    float

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described.

    Notes
    -----
    training_error + sqrt(8 / m * (ln G(2 * m) + ln(4 / delta))), from P[sup > eps] <=
    4 * G(2 * m) * exp(-m * eps**2 / 8) [Vapnik and Chervonenkis 1971, theorem 2]. G is the growth
    function of weighted votes of T weak hypotheses with growth function P: they label m samples in
    at most P(m)**T ways, and for each of these the votes are a half-space of T dimensions through
    the origin, of VC dimension T. So G(m) <= (e * m / T)**T * P(m)**T for m >= T [Sauer's lemma;
    Freund and Schapire 1997, theorem 8; COS 511, lecture 11; Schapire and Freund 2012, section
    4.1], and never more than 2**m.

    Examples
    --------
    >>> round(vc_bound(0.1, 10, 10**6, 5), 4)
    0.1494
    """
    error = _within(training_error, "training_error", "[0, 1]")
    delta, m = _within(delta, "delta", "(0, 1)"), check_count(n_samples, "n_samples")
    log_growth = _log_growth_of_votes(n_rounds, 2 * m, n_features, weak_learner)
    return error + math.sqrt(8 / m * (log_growth + math.log(4) - math.log(delta)))


def vc_bound_if_consistent(
    n_rounds: int,
    n_samples: int,
    n_features: int,
    *,
    weak_learner: str = "stump",
    delta: float = 0.05,
) -> float:
    """`vc_bound` where no training sample is misclassified: of order 1/m and not sqrt(1/m).

    Parameters
    ----------
    n_rounds, n_samples, n_features, weak_learner, delta
        As for `vc_bound`.

    Returns
    -------
    float
        Above 1 it says nothing.

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described.

    Notes
    -----
    2 / m * (log2 G(2 * m) + log2(2 / delta)): that a vote of error eps or more agrees with all m
    samples has a probability of at most 2 * G(2 * m) * 2**(-eps * m / 2) [Blumer, Ehrenfeucht,
    Haussler and Warmuth 1989, appendix; COS 511]. G as for `vc_bound`.

    Examples
    --------
    >>> round(vc_bound_if_consistent(10, 10**6, 5), 5)
    0.00088
    """
    delta, m = _within(delta, "delta", "(0, 1)"), check_count(n_samples, "n_samples")
    log_growth = _log_growth_of_votes(n_rounds, 2 * m, n_features, weak_learner)
    return 2 / m * (log_growth + math.log(2) - math.log(delta)) / math.log(2)


def weak_learning_samples(gamma: float, *, n_features: int = 1, delta: float = 0.05) -> int:
    """How many samples make the best stump on them a weak learner of interval functions.

    Parameters
    ----------
    gamma : float
        In (0, 1/6): the edge that is wanted on new samples.
    n_features : int
        The interval is on one of so many.
    delta : float
        In (0, 1).

    Returns
    -------
    int
        The least m, by this bound, from which on the stump of least training error has, with
        probability 1 - delta, an error of at most 1/2 - gamma on new samples.

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described.

    Notes
    -----
    An interval cuts its feature in three regions, the lightest has a third of the weight at most,
    and some stump errs on that one only [Shalev-Shwartz and Ben-David 2014, Understanding Machine
    Learning, example 10.1]. The stump of least training error is worse by twice the largest
    deviation of any stump's training error at most. So eps / 2 with eps = 1/6 - gamma must be out
    of reach: 4 * stump_growth(2 * m, n_features) * exp(-m * (eps / 2)**2 / 8) <= delta [Vapnik and
    Chervonenkis 1971, theorem 2].

    Examples
    --------
    >>> weak_learning_samples(1 / 12)
    78518
    """
    gamma = _within(gamma, "gamma", "(0, 1)")
    if not gamma < 1 / 6:
        raise ValueError(
            f"gamma must be below 1/6, the edge that some stump always has; got {gamma!r}."
        )
    delta, n_features = _within(delta, "delta", "(0, 1)"), check_count(n_features, "n_features")
    eps = Fraction(1, 6) - Fraction(gamma)  # near 1/6 a difference of floats would lose digits
    rate, wanted = float(eps**2 / 32), math.log(delta)

    # The lesser of two concave functions, less a linear one, is concave; at m = 1 this is false,
    # so once it is true it remains so.
    def is_enough(m: int) -> bool:
        return math.log(4) + math.log(stump_growth(2 * m, n_features)) - m * rate <= wanted

    return _first(is_enough)


@dataclass(frozen=True)
class _Deviation:
    """eps_N = sqrt(scale * r(N)), r(N) = constant + N * log_size + ln N + 2 * ln(N + 1)."""

    scale: float
    constant: float
    log_size: float

    def at(self, N: int) -> float:
        return math.sqrt(self.scale * self._r(N))

    def log_slope(self, N: int) -> float:
        """ln of the derivative by N."""
        return math.log(self._dr(N) / 2) + 0.5 * (math.log(self.scale) - math.log(self._r(N)))

    def slope_of_log_slope(self, N: int) -> float:
        ddr = -1 / N**2 - 2 / (N + 1) ** 2
        return ddr / self._dr(N) - self._dr(N) / (2 * self._r(N))

    def _r(self, N: int) -> float:
        return self.constant + N * self.log_size + math.log(N) + 2 * math.log(N + 1)

    def _dr(self, N: int) -> float:
        return self.log_size + 1 / N + 2 / (N + 1)


def _least_over_means(theta: float, deviation: _Deviation) -> float:
    """The least f(N) = 2 * exp(-N * theta**2 / 8) + eps_N over all N, to rounding.

    f rises where u(N) = ln(eps_N') + N * theta**2 / 8 - ln(theta**2 / 4) is positive. The slope of
    ln(eps_N') = r'' / r' - r' / (2 * r) increases with N: r is concave and positive, so r' / r
    falls; r' is completely monotone, so it is log-convex. Hence u falls, then rises, and f
    rises, falls and rises again, at most. Its least value is at 1 or on either side of the last
    zero of u. Nor is it where eps_N alone is as much as f(1).
    """
    rate, log_start = theta * theta / 8, 2 * math.log(theta) - math.log(4)

    def total(N: int) -> float:
        return 2 * math.exp(-N * rate) + deviation.at(N)

    def is_too_far(N: int) -> bool:
        return deviation.at(N) >= total(1)

    def has_turned(N: int) -> bool:
        return rate + deviation.slope_of_log_slope(N) >= 0 or is_too_far(N)

    def rises(N: int) -> bool:
        return deviation.log_slope(N) + N * rate >= log_start or is_too_far(N)

    last = _first(rises, least=_first(has_turned))
    return min(map(total, {1, max(last - 1, 1), last}))


def _first(is_reached: Callable[[int], bool], least: int = 1) -> int:
    """The first integer, from `least` on, with a property that all later ones share."""
    below, above = least - 1, least
    while not is_reached(above):
        below, above = above, 2 * above
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (below, middle) if is_reached(middle) else (middle, above)
    return above


def _capped(count: int, n_samples: int) -> int:
    """The count, or 2**n_samples if that is less; without working out what is far more."""
    return min(count, 2**n_samples) if n_samples < count.bit_length() else count


def _growth_of(weak_learner: str) -> Callable[[int, int], int]:
    known = {"stump": stump_growth, "interval": interval_growth}
    return known[check_learner(weak_learner)]


def _log_growth_of_votes(
    n_rounds: int, n_samples: int, n_features: int, weak_learner: str
) -> float:
    """ln G of `vc_bound`."""
    T, growth = check_count(n_rounds, "n_rounds"), _growth_of(weak_learner)(n_samples, n_features)
    every = n_samples * math.log(2)
    if n_samples < T:
        return every
    return min(every, T * (1 + math.log(n_samples / T) + math.log(growth)))


def _normaliser(error: float, vote: float) -> float:
    """Z_t in the arithmetic of boosting itself, which is the same everywhere."""
    return odds_and_normaliser(*error.as_integer_ratio(), vote)[1]


def _totals(model: StumpEnsemble) -> float | list[float]:
    """What each member's scores are divided by; 1 where there are no votes, so that 0 remains."""
    totals = [math.fsum(map(abs, member.votes)) or 1.0 for member in model.members]
    return totals[0] if model.is_binary else totals


def _checked_margins(margins: Any) -> Array:
    margins = as_array(margins, "margins")
    _check_numbers(margins, "margins", "pass one column, margins[:, k], at a time")
    if margins.shape[0] == 0:
        raise ValueError("margins is empty; at least one sample is needed.")
    xp = arrays.namespace_of(margins)
    with arrays.computing_on(margins):
        margins = xp.astype(margins, xp.float64)
        if bool(xp.any(xp.isnan(margins))):
            at = int(xp.argmax(xp.astype(xp.isnan(margins), xp.int8)))
            raise ValueError(f"margins contains NaN, the first at index {at}.")
    return margins


def _checked_errors(errors: Any) -> np.ndarray:
    found = _host_vector(errors, "errors")
    _refuse(found, "errors", ~((found >= 0) & (found < 1)), "in [0, 1)")
    return found


def _refuse(values: np.ndarray, name: str, where: np.ndarray, wanted: str) -> None:
    if where.any():
        at = int(np.argmax(where))
        raise ValueError(f"{name} must be {wanted}; got {values[at]:g} at index {at}.")


def _host_vector(values: Any, name: str) -> np.ndarray:
    """Real numbers in one dimension, as float64 on the host."""
    values = as_array(values, name)
    _check_numbers(values, name, "pass one number a round")
    found: np.ndarray = arrays.to_host(values).astype(np.float64)
    return found


def _check_numbers(values: Array, name: str, advice: str) -> None:
    if arrays.working_dtype(arrays.dtype_name(values)) is None:
        raise TypeError(f"{name} has dtype {arrays.dtype_name(values)}; real numbers are wanted.")
    if values.ndim != 1:
        raise ValueError(
            f"{name} must have one dimension, but its shape is {tuple(values.shape)}; {advice}."
        )


def _within(value: Any, name: str, interval: str) -> float:
    """A number in an interval from 0 to 1, written as in mathematics."""
    number = check_real(value, name)
    at_ends = (number == 0 and interval[0] == "[") or (number == 1 and interval[-1] == "]")
    if not (0 < number < 1 or at_ends):
        raise ValueError(f"{name} must be in {interval}; got {value!r}.")
    return number
