"""How precisely a share is known that was counted on some samples."""

from __future__ import annotations

import math

import numpy as np

_Z = 1.959963984540054
"""The 0.975 quantile of the normal distribution, for intervals of 95 %."""


def wilson_interval(share: float, n_samples: float) -> tuple[float, float]:
    """The 95 % interval for a probability, from a share of independent samples.

    Parameters
    ----------
    share : float
        In [0, 1].
    n_samples : float
        The number of samples. It need not be whole, so that an `effective_size` may be given.
        (`scipy.stats.binomtest` gives the same interval for whole counts only.)

    Returns
    -------
    tuple of float
        In [0, 1].

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

    Parameters
    ----------
    weights : ndarray (n_samples,)
        Not negative, and not all 0.

    Notes
    -----
    Kish (1965), Survey Sampling, section 11.7: the square of the sum over the sum of the squares.
    It is at most the number of samples, and equals it if all weights are equal.

    Examples
    --------
    >>> effective_size(np.asarray([1.0, 1.0, 0.0]))
    2.0
    """
    shares = np.asarray(weights, dtype=np.float64) / np.max(weights)  # squares stay finite
    return float(shares.sum() ** 2 / np.square(shares).sum())
