"""Growth functions: in how many ways weak hypotheses can label samples.

They are those of stumps, intervals and products of two stumps, on tables without missing values. A
hypothesis has a sign for missing values as well, which at most doubles the number of its
labellings: count each feature with missing values twice. Sets of categories are not counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from gpustump.data.parameters import check_count, check_learner


def stump_growth(n_samples: int, n_features: int) -> int:
    """An upper bound on the growth function of decision stumps.

    The growth function is the largest number of ways in which they can label n_samples samples.

    Parameters
    ----------
    n_samples, n_features : int

    Returns
    -------
    int

    Raises
    ------
    ValueError, TypeError
        If one of them is not a whole number of at least 1.

    Notes
    -----
    Each feature can be cut at m - 1 places between m samples, with two polarities, and there are
    two constants: 2 * (n_features * (m - 1) + 1) labellings, and never more than 2**m. This number
    is reached if 2 * n_features <= m. With more features some labellings coincide: the growth
    function is 2 plus the sum of min(2 * n_features, C(m, k)) over 0 < k < m [Leboeuf, LeBlanc and
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

    Parameters
    ----------
    n_samples, n_features : int

    Returns
    -------
    int

    Raises
    ------
    ValueError, TypeError
        If one of them is not a whole number of at least 1.

    Notes
    -----
    Put the m samples on a circle, in the order of the feature. The samples labelled +1 then form an
    arc. There are m arcs of each length from 1 to m - 1, and two constants, so one feature has
    m * (m - 1) + 2 labellings. The arcs of length 1 and m - 1 are the same for every feature, the
    others may all differ: 2 * m + n_features * m * (m - 3) + 2 from m = 3 on, and never more than
    2**m.

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

    Parameters
    ----------
    n_samples, n_features : int

    Returns
    -------
    int

    Raises
    ------
    ValueError, TypeError
        If one of them is not a whole number of at least 1.

    Notes
    -----
    Between m samples a pair of features can be cut at (m - 1)**2 places, and the product has two
    signs. So d features have at most ::

        2 + 2 * d * (m - 1) + d * (d - 1) * (m - 1)**2

    labellings: constants, stumps, and products of two. They are never more than 2**m. Some of them
    coincide, so the growth function is smaller. The logarithm grows like 2 * ln(d * m), that of
    `stump_growth` like ln(d * m). Samples that are labelled in all 2**m ways are so few that 2**m
    is at most this number, so the VC dimension grows like 2 * log2(d) at most.

    Boosting by products is due to Kegl and Busa-Fekete (2009). A step of a model with pairs of
    features has a vote for each quadrant of a cut: a constant, a stump of each feature, and the
    product of both stumps have four votes, too, and their sums make every such step. A hypothesis
    with any signs in the four quadrants has 16 kinds of labels. Of these 10 depend on both
    features, and 2 of the 10 are products; so it has at most five times as many labellings.

    Examples
    --------
    >>> product_growth(2, 2), product_growth(10, 2), product_growth(100, 10)
    (4, 200, 884072)
    """
    m, d = check_count(n_samples, "n_samples"), check_count(n_features, "n_features")
    return _capped(2 + 2 * d * (m - 1) + d * (d - 1) * (m - 1) ** 2, m)


def growth_of(weak_learner: str) -> Callable[[int, int], int]:
    """The growth function of a weak learner: "stump", "interval" or "product"."""
    if weak_learner == "product":
        return product_growth
    known = {"stump": stump_growth, "interval": interval_growth}
    return known[check_learner(weak_learner)]


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
