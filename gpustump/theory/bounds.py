"""Bounds on the training error, and on the error on new samples.

Each function is a theorem, with the constants of its proof. A bound above 1 is returned as it is:
it is true, and holds no information. Sizes enter through their logarithms, so 10**8 samples are no
problem.

The bounds on new samples depend on growth functions: in how many ways weak hypotheses can label
samples. They are those of tables without missing values. A hypothesis has a sign for missing values
as well, which at most doubles the number of its labellings: count each feature with missing values
twice. Sets of categories are not counted. The last part says how precisely a share is known that
was counted on new samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from gpustump.arrays import Array
from gpustump.boosting.votes.discrete import odds_and_normaliser
from gpustump.data.parameters import check_count
from gpustump.data.readable import either
from gpustump.learners.step_table import VOTES_LIMIT
from gpustump.theory.arguments import host_vector, within


def training_bounds(
    errors: Sequence[float] | Array, votes: Sequence[float] | Array | None = None
) -> np.ndarray:
    """The bound on the training error after each round: the product of the normalisers so far.

    Parameters
    ----------
    errors : array (n_rounds,)
        e_t, the weighted error of each round's stump, in [0, 1).
    votes : array (n_rounds,), optional
        alpha_t. Needed if they are not AdaBoost's own ln((1 - e_t) / e_t) / 2, as with a learning
        rate other than 1, or after a stump without error.

    Returns
    -------
    array (n_rounds,) of float64

    Notes
    -----
    Without votes, Z_t = 2 * sqrt(e_t * (1 - e_t)) [Freund and Schapire 1997, theorem 6; COS 511,
    lecture 11]. With votes, Z_t = e_t * exp(alpha_t) + (1 - e_t) * exp(-alpha_t), and the product
    bounds the training error for any votes [Schapire and Singer 1999, theorem 1]. This holds in
    exact arithmetic; rounding changes each factor by a few parts in 10**16.

    Examples
    --------
    >>> training_bounds([0.2, 0.2]).tolist()
    [0.8, 0.6400000000000001]
    """
    errors = _checked_errors(errors)
    if votes is None:
        return np.cumprod(2.0 * np.sqrt(errors * (1.0 - errors)))
    votes = host_vector(votes, "votes")
    if votes.shape != errors.shape:
        raise ValueError(
            f"errors and votes must have the same length; got {len(errors)} and {len(votes)}."
        )
    _refuse(votes, "votes", ~(np.abs(votes) <= VOTES_LIMIT), f"within +-{VOTES_LIMIT:g}")
    ratios = [error.as_integer_ratio() for error in errors.tolist()]
    pairs = zip(ratios, votes.tolist(), strict=True)
    # As in boosting: in decimal arithmetic, the same on every machine.
    found = [odds_and_normaliser(wrong, whole, vote)[1] for (wrong, whole), vote in pairs]
    with np.errstate(all="ignore"):
        bounds = np.cumprod(found, dtype=np.float64)
    return np.where(np.isnan(bounds), np.inf, bounds)  # NaN is 0 * inf, for votes in the hundreds


def edge_bounds(errors: Sequence[float] | Array) -> np.ndarray:
    """The bound on the training error after each round that depends on the edges only.

    Parameters
    ----------
    errors : array (n_rounds,)
        As for `training_bounds`, whose bounds without votes are never above these.

    Returns
    -------
    array (n_rounds,) of float64

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


def _checked_errors(errors: Any) -> np.ndarray:
    found = host_vector(errors, "errors")
    _refuse(found, "errors", ~((found >= 0) & (found < 1)), "in [0, 1)")
    return found


def _refuse(values: np.ndarray, name: str, where: np.ndarray, wanted: str) -> None:
    if where.any():
        at = int(np.argmax(where))
        raise ValueError(f"{name} must be {wanted}; got {values[at]:g} at index {at}.")


def stump_growth(n_samples: int, n_features: int) -> int:
    """An upper bound on the growth function of decision stumps.

    It is the largest number of ways in which they can label samples, an int.

    Notes
    -----
    Each feature can be cut at m - 1 places between m samples, with two polarities, and there are
    two constants: 2 * (n_features * (m - 1) + 1) labellings, and never more than 2**m. This number
    is reached if 2 * n_features <= m; with more features some coincide [Leboeuf, LeBlanc and
    Marchand 2020].

    Examples
    --------
    >>> stump_growth(4, 1), stump_growth(4, 2), stump_growth(4, 100)
    (8, 14, 16)
    """
    m, n_features = check_count(n_samples, "n_samples"), check_count(n_features, "n_features")
    return _capped(2 * (n_features * (m - 1) + 1), m)


def interval_growth(n_samples: int, n_features: int) -> int:
    """An upper bound on the growth function of intervals, stumps and constants.

    An interval predicts its polarity on (low, high] of one feature, and the other sign elsewhere.

    Notes
    -----
    Put the m samples on a circle, in the order of the feature. The samples labelled +1 then form an
    arc. There are m arcs of each length from 1 to m - 1, and two constants. The arcs of length 1
    and m - 1 are the same for every feature, the others may all differ: 2 * m + n_features * m *
    (m - 3) + 2 from m = 3 on, and never more than 2**m.

    Examples
    --------
    >>> interval_growth(3, 1), interval_growth(4, 1), interval_growth(5, 2), interval_growth(9, 2)
    (8, 14, 32, 128)
    """
    m, n_features = check_count(n_samples, "n_samples"), check_count(n_features, "n_features")
    return _capped(2 * m + n_features * m * max(m - 3, 0) + 2, m)


def product_growth(n_samples: int, n_features: int) -> int:
    """An upper bound on the growth function of products of two stumps of different features.

    A constant is a stump, too, so the stumps are among these products.

    Notes
    -----
    Between m samples a pair of features can be cut at (m - 1)**2 places, and the product has two
    signs. So d features have at most 2 + 2 * d * (m - 1) + d * (d - 1) * (m - 1)**2 labellings:
    constants, stumps, and products of two; never more than 2**m.

    Boosting by products is due to Kegl and Busa-Fekete (2009). A step of a model with pairs of
    features has a vote for each quadrant of a cut: it is a sum of a constant, a stump of each
    feature, and the product of both stumps.

    Examples
    --------
    >>> product_growth(2, 2), product_growth(10, 2), product_growth(100, 10)
    (4, 200, 884072)
    """
    m, d = check_count(n_samples, "n_samples"), check_count(n_features, "n_features")
    return _capped(2 + 2 * d * (m - 1) + d * (d - 1) * (m - 1) ** 2, m)


def growth_of(weak_learner: str) -> Callable[[int, int], int]:
    """The growth function of a weak learner: "stump", "interval" or "product"."""
    known = {"stump": stump_growth, "interval": interval_growth, "product": product_growth}
    if weak_learner in known:
        return known[weak_learner]
    raise ValueError(f"weak_learner must be {either(map(repr, known))}; got {weak_learner!r}.")


def log_growth_of_votes(n_rounds: int, n_samples: int, n_features: int, weak_learner: str) -> float:
    """The logarithm of G of `vc_bound`: the growth function of weighted votes of n_rounds."""
    T, growth = check_count(n_rounds, "n_rounds"), growth_of(weak_learner)(n_samples, n_features)
    every = n_samples * math.log(2)
    if n_samples < T:
        return every
    return min(every, T * (1 + math.log(n_samples / T) + math.log(growth)))


def _capped(count: int, n_samples: int) -> int:
    """The smaller of a count and 2**n_samples, without computing a power that is far larger."""
    return min(count, 2**n_samples) if n_samples < count.bit_length() else count


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
    """The margin bound on the error on new samples.

    Parameters
    ----------
    share : float
        `share_below(margins, theta)` of the training samples, unweighted.
    theta : float
        In (0, 1]; it may be chosen after looking at the margins.
    n_samples : int
        The number of training samples, drawn independently from one distribution.
    n_hypotheses, n_features : int, optional
        One of both: the size of a finite class of weak hypotheses, at least 2; or the number of
        features whose stumps, intervals or products are the weak hypotheses.
    weak_learner : {"stump", "interval", "product"}
        With n_features. "product" is for models with pairs of features; see `product_growth`.
    delta : float
        In (0, 1): the bound holds with probability 1 - delta.

    Returns
    -------
    float
        May be above 1.

    Notes
    -----
    Schapire, Freund, Bartlett and Lee (1998), theorems 1 and 2, with the constants of the proof and
    not those of the statement. m is n_samples. For every whole N >= 1 at once, the error is at most

        share + 2 * exp(-N * theta**2 / 8) + eps_N.

    The proof replaces the weighted vote by the mean of N weak hypotheses drawn with probabilities
    proportional to their votes, which differs from it by theta / 2 or more with a probability of at
    most exp(-N * theta**2 / 8) [Hoeffding's inequality], for training samples and for new ones.
    Each N has a share delta / (N * (N + 1)) of delta; the smallest bound is returned. With a finite
    class H, or with growth function P and by P[sup > eps] <= 4 * growth(2 * m) *
    exp(-m * eps**2 / 8) [Vapnik and Chervonenkis 1971, theorem 2] ::

        eps_N = sqrt(ln(N * (N + 1)**2 * |H|**N / delta) / (2 * m)),
        eps_N = sqrt(8 / m * ln(4 * N * (N + 1)**2 * P(2 * m)**N / delta)).

    The theorem is about convex combinations of hypotheses that say -1 or +1. It holds for every
    kind of votes with the margins of `normalised_margins`, which says why, but not for
    `class_margins` of more than two classes.

    Examples
    --------
    >>> round(margin_bound(0.0, 0.5, 10**6, n_hypotheses=100), 4)
    0.0247
    """
    share, delta = within(share, "share", "[0, 1]"), within(delta, "delta", "(0, 1)")
    theta, m = within(theta, "theta", "(0, 1]"), check_count(n_samples, "n_samples")
    if (n_hypotheses is None) == (n_features is None):
        raise ValueError(
            "exactly one of n_hypotheses and n_features must be given; got "
            f"n_hypotheses={n_hypotheses!r} and n_features={n_features!r}."
        )
    if n_features is None:
        log_size = math.log(check_count(n_hypotheses, "n_hypotheses", least=2))
        scale, constant = 1 / (2 * m), -math.log(delta)
    else:
        log_size = math.log(growth_of(weak_learner)(2 * m, n_features))
        scale, constant = 8 / m, math.log(4) - math.log(delta)

    def deviation(N: Any) -> Any:
        union = constant + N * log_size + np.log(N) + 2 * np.log(N + 1)
        return np.sqrt(scale * union)

    def total(N: Any) -> Any:
        return 2 * np.exp(-N * theta**2 / 8) + deviation(N)

    # At most, the sum rises, falls and rises again. It is large where the deviation alone is more
    # than the sum at 1. Up to there N is looked for on a coarse grid, then on finer ones.
    low, high = 1.0, float(_first(lambda N: bool(deviation(float(N)) >= total(1.0))))
    for _ in range(4):
        N = np.unique(np.floor(np.geomspace(low, high, 1000)))
        at = int(np.argmin(total(N)))
        low, high = N[max(at - 1, 0)], N[min(at + 1, len(N) - 1)]
    return share + float(total(N[at]))


def vc_bound(
    training_error: float,
    n_rounds: int,
    n_samples: int,
    n_features: int,
    *,
    weak_learner: str = "stump",
    delta: float = 0.05,
) -> float:
    """The Vapnik-Chervonenkis bound on the error on new samples.

    Parameters
    ----------
    training_error : float
        The share of the training samples that the model misclassifies, unweighted.
    n_rounds : int
        T, chosen before looking at the samples. If regions have votes of their own, each split is
        a stump plus a constant, and all constants together are one hypothesis: pass T + 1. With
        missing values each split is two stumps plus a constant: pass 2 * T + 1. A step of a pair of
        features is two stumps, their product and a constant: three hypotheses more.
    n_samples : int
        Training samples, independent draws from one distribution.
    n_features : int
    weak_learner : {"stump", "interval", "product"}
        As for `margin_bound`.
    delta : float
        In (0, 1): the bound holds with probability 1 - delta.

    Returns
    -------
    float

    Notes
    -----
    training_error + sqrt(8 / m * (ln G(2 * m) + ln(4 / delta))), from P[sup > eps] <=
    4 * G(2 * m) * exp(-m * eps**2 / 8) [Vapnik and Chervonenkis 1971, theorem 2]. G is the growth
    function of weighted votes of T weak hypotheses with growth function P: they label m samples in
    at most P(m)**T ways, and for each of these the weighted votes are half-spaces of T
    dimensions through the origin, whose VC dimension is T. So G(m) <= (e * m / T)**T * P(m)**T for
    m >= T [Sauer's lemma; Freund and Schapire 1997, theorem 8; COS 511, lecture 11; Schapire and
    Freund 2012, section 4.1], and never more than 2**m.

    Examples
    --------
    >>> round(vc_bound(0.1, 10, 10**6, 5), 4)
    0.1494
    """
    error = within(training_error, "training_error", "[0, 1]")
    delta, m = within(delta, "delta", "(0, 1)"), check_count(n_samples, "n_samples")
    log_growth = log_growth_of_votes(n_rounds, 2 * m, n_features, weak_learner)
    return error + math.sqrt(8 / m * (log_growth + math.log(4) - math.log(delta)))


def vc_bound_if_consistent(
    n_rounds: int,
    n_samples: int,
    n_features: int,
    *,
    weak_learner: str = "stump",
    delta: float = 0.05,
) -> float:
    """`vc_bound` for a model without training errors: of order 1/m instead of sqrt(1/m).

    Parameters are those of `vc_bound`.

    Notes
    -----
    2 / m * (log2 G(2 * m) + log2(2 / delta)): the probability that a vote of error eps or more has
    no error on m samples is at most 2 * G(2 * m) * 2**(-eps * m / 2) [Blumer, Ehrenfeucht, Haussler
    and Warmuth 1989, appendix; COS 511]. G as for `vc_bound`.

    Examples
    --------
    >>> round(vc_bound_if_consistent(10, 10**6, 5), 5)
    0.00088
    """
    delta, m = within(delta, "delta", "(0, 1)"), check_count(n_samples, "n_samples")
    log_growth = log_growth_of_votes(n_rounds, 2 * m, n_features, weak_learner)
    return 2 / m * (log_growth + math.log(2) - math.log(delta)) / math.log(2)


def weak_learning_samples(gamma: float, *, n_features: int = 1, delta: float = 0.05) -> int:
    """The number of samples with which the best stump is a weak learner of interval functions.

    Parameters
    ----------
    gamma : float
        In (0, 1/6): the required edge on new samples.
    n_features : int
        The number of features; the interval is on one of them.
    delta : float
        In (0, 1): the probability that the edge is not reached.

    Returns
    -------
    int
        The smallest m for which the theorem applies: with m samples or more, the stump of least
        training error has, with probability 1 - delta, an error of at most 1/2 - gamma on new ones.

    Notes
    -----
    Some stump misclassifies only the smallest of the three regions of an interval, which has a
    third of the weight or less [Shalev-Shwartz and Ben-David 2014, example 10.1]. The stump of
    least training error is worse by at most twice the largest deviation of any stump's training
    error from its error. With eps = 1/6 - gamma, that deviation must stay below eps / 2:
    4 * stump_growth(2 * m, n_features) * exp(-m * (eps / 2)**2 / 8) <= delta [Vapnik and
    Chervonenkis 1971, theorem 2].

    Examples
    --------
    >>> weak_learning_samples(1 / 12)
    78518
    """
    gamma = within(gamma, "gamma", "(0, 1)")
    if not gamma < 1 / 6:
        raise ValueError(
            f"gamma must be below 1/6, the largest edge that is always reached; got {gamma!r}."
        )
    delta, n_features = within(delta, "delta", "(0, 1)"), check_count(n_features, "n_features")
    eps = Fraction(1, 6) - Fraction(gamma)  # near 1/6 a difference of floats would lose digits
    rate, wanted = float(eps**2 / 32), math.log(delta)

    # The minimum of two concave functions minus a linear one is concave in m. The condition is
    # false at m = 1, so it is true for all m from some number on.
    def is_enough(m: int) -> bool:
        return math.log(4) + math.log(stump_growth(2 * m, n_features)) - m * rate <= wanted

    return _first(is_enough)


def _first(is_reached: Callable[[int], bool]) -> int:
    """The first integer from 1 on with a property that all later integers have as well."""
    below, above = 0, 1
    while not is_reached(above):
        below, above = above, 2 * above
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (below, middle) if is_reached(middle) else (middle, above)
    return above


_Z = 1.959963984540054
"""The 0.975 quantile of the normal distribution, for intervals of 95 %."""


def wilson_interval(share: float, n_samples: float) -> tuple[float, float]:
    """The 95 % interval for a probability, from a share of independent samples.

    The number of samples need not be whole, so that an `effective_size` may be given.

    Notes
    -----
    Wilson (1927), Probable inference, the law of succession, and statistical inference: all
    probabilities from which the share is at most 1.96 standard errors away. Unlike the share plus
    or minus 1.96 standard errors, it is right for few samples and for shares near 0 or 1, too.

    Examples
    --------
    >>> low, high = wilson_interval(1.0, 10)
    >>> print(f"{low:.4f} {high:.4f}")
    0.7225 1.0000
    """
    square = _Z**2 / n_samples
    middle = (share + square / 2) / (1 + square)
    half = math.sqrt(square * (share * (1 - share) + square / 4)) / (1 + square)
    low = 0.0 if share == 0.0 else max(0.0, middle - half)
    high = 1.0 if share == 1.0 else min(1.0, middle + half)
    return low, high


def effective_size(weights: np.ndarray) -> float:
    """The number of samples of equal weight that determine a mean as precisely as these do.

    Kish (1965), Survey Sampling, section 11.7: the square of the sum of the weights, which are not
    negative, over the sum of their squares.

    Examples
    --------
    >>> effective_size(np.asarray([1.0, 1.0, 0.0]))
    2.0
    """
    shares = np.asarray(weights, dtype=np.float64) / np.max(weights)  # squares stay finite
    return float(shares.sum() ** 2 / np.square(shares).sum())
