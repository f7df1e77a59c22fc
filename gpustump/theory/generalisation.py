"""Bounds on the error on new samples.

Each function is a theorem, with the constants of its proof. A bound above 1 is returned as it is:
it is true, and holds no information. Sizes enter through their logarithms, so 10**8 samples are no
problem. See `growth` for features with missing values.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from gpustump.data.parameters import check_count
from gpustump.theory.arguments import within
from gpustump.theory.growth import growth_of, log_growth_of_votes, stump_growth


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
    n_hypotheses : int, optional
        The size of a finite class of weak hypotheses, at least 2.
    n_features : int, optional
        Instead of n_hypotheses: the weak hypotheses are all stumps, intervals, or products of two
        stumps, on this number of features.
    weak_learner : {"stump", "interval", "product"}
        The kind of weak hypotheses, with n_features. "product" is for models with pairs of
        features; see `product_growth`.
    delta : float
        In (0, 1): the bound holds with probability 1 - delta.

    Returns
    -------
    float
        May be above 1.

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described, or n_hypotheses and n_features are both given or both
        missing.

    Notes
    -----
    Schapire, Freund, Bartlett and Lee (1998), theorems 1 and 2, with the constants of the proof and
    not those of the statement. m is n_samples. For every whole N >= 1 at once, the error is at most

        share + 2 * exp(-N * theta**2 / 8) + eps_N.

    The proof replaces the weighted vote by g, the mean of N weak hypotheses drawn with
    probabilities proportional to their votes. g differs from the vote by theta / 2 or more with a
    probability of at most exp(-N * theta**2 / 8) [Hoeffding's inequality]; this is used once for
    the training samples and once for new ones. Over all theta, there are only N + 1 different
    events {y * g(x) > theta / 2}. Each N has a share delta / (N * (N + 1)) of delta, and the shares
    sum to delta, so the bound holds for all N at once; the smallest is returned. With a finite
    class H there are ``|H|**N`` means, and ::

        eps_N = sqrt(ln(N * (N + 1)**2 * |H|**N / delta) / (2 * m)).

    With growth function P, the events select at most (N + 1) * P(2 * m)**N subsets of 2 * m
    samples, and by P[sup > eps] <= 4 * growth(2 * m) * exp(-m * eps**2 / 8) [Vapnik and
    Chervonenkis 1971, theorem 2] ::

        eps_N = sqrt(8 / m * ln(4 * N * (N + 1)**2 * P(2 * m)**N / delta)).

    The theorem is about convex combinations of hypotheses that say -1 or +1. It holds for every
    kind of votes with the margins of `normalised_margins`, which says why, for two classes or one
    class against the rest. It does not hold for `class_margins` of more than two classes.

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
        size = check_count(n_hypotheses, "n_hypotheses", least=2)
        deviation = _Deviation(1 / (2 * m), -math.log(delta), math.log(size))
    else:
        growth = growth_of(weak_learner)(2 * m, n_features)
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

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described.

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

    Parameters
    ----------
    n_rounds, n_samples, n_features, weak_learner, delta
        As for `vc_bound`.

    Returns
    -------
    float
        May be above 1.

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described.

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
        training error has, with probability 1 - delta, an error of at most 1/2 - gamma on new
        samples.

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described.

    Notes
    -----
    An interval cuts its feature into three regions. The one of smallest weight has at most a third
    of it, and some stump misclassifies only this region [Shalev-Shwartz and Ben-David 2014,
    Understanding Machine Learning, example 10.1]. The error of the stump of least training error
    is larger by at most twice the largest deviation of any stump's training error from its error.
    With eps = 1/6 - gamma, that deviation must stay below eps / 2 with probability 1 - delta:
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


@dataclass(frozen=True)
class _Deviation:
    """eps_N = sqrt(scale * r(N)), r(N) = constant + N * log_size + ln N + 2 * ln(N + 1)."""

    scale: float
    constant: float
    log_size: float

    def at(self, N: int) -> float:
        """eps_N."""
        return math.sqrt(self.scale * self._r(N))

    def log_slope(self, N: int) -> float:
        """The logarithm of the derivative with respect to N."""
        return math.log(self._dr(N) / 2) + 0.5 * (math.log(self.scale) - math.log(self._r(N)))

    def slope_of_log_slope(self, N: int) -> float:
        """The derivative of `log_slope`."""
        ddr = -1 / N**2 - 2 / (N + 1) ** 2
        return ddr / self._dr(N) - self._dr(N) / (2 * self._r(N))

    def _r(self, N: int) -> float:
        return self.constant + N * self.log_size + math.log(N) + 2 * math.log(N + 1)

    def _dr(self, N: int) -> float:
        return self.log_size + 1 / N + 2 / (N + 1)


def _least_over_means(theta: float, deviation: _Deviation) -> float:
    """The minimum of f(N) = 2 * exp(-N * theta**2 / 8) + eps_N over all N, up to rounding.

    f rises where u(N) = ln(eps_N') + N * theta**2 / 8 - ln(theta**2 / 4) is positive. The slope of
    ln(eps_N') is r'' / r' - r' / (2 * r) and increases with N: r is concave and positive, so r' / r
    falls; r' is completely monotone, so it is log-convex. Hence u is convex: at most, f rises,
    falls and rises again. Its minimum is at 1 or beside the last zero of u. Where eps_N alone is
    f(1) or more, no minimum lies, so the search ends there.
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
    """The first integer from `least` on with a property that all later integers have as well."""
    below, above = least - 1, least
    while not is_reached(above):
        below, above = above, 2 * above
    while above - below > 1:
        middle = (below + above) // 2
        below, above = (below, middle) if is_reached(middle) else (middle, above)
    return above
