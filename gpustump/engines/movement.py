"""How far a step moves the shares of a bin's sums: what engines remember of bins depends on it.

Under real, Newton and shared votes the weights of all samples change in every round, but those of
samples with the same label nearly alike: by the factors of the regions that they lie in. So where
in a bin half of its positive weight lies hardly changes. From one round to the next a share changes
by at most

    (sqrt(r) - 1) / (sqrt(r) + 1) = tanh(ln(r) / 4)

where r is the largest factor of that label over the smallest: a share s becomes s a / (s a + t b)
with t = 1 - s and a / b between 1/r and r, which moves s most where s / t is sqrt(b/a).
"""

from __future__ import annotations

import numpy as np

from gpustump.engines.contract import Search

ROUNDINGS = 2.0**-40
"""How far roundings of the weights move a share in a round, at most: each is 2**-52 of a weight."""


def movement_of(factors: np.ndarray, search: Search) -> np.ndarray:
    """How far a step may move one share of any bin beside the other, (n_outputs,) of float64.

    Parameters
    ----------
    factors : ndarray (n_regions, n_outputs, 2) of float64
        Of samples with the label -1, and with the label +1.
    search : Search
    """
    of_labels = spread(factors_of_first(factors, search)).reshape(-1, 2)
    return np.asarray(of_labels.sum(axis=1))


def factors_of_first(factors: np.ndarray, search: Search) -> np.ndarray:
    """By what the first integers change at least and at most, (n, n_outputs, 2) of float64.

    With the exponential loss they change by the factors. Newton votes have factors of odds or of
    probabilities: what follows from them stands as further rows in the result.
    """
    if search.votes != "newton":
        return factors
    if search.n_outputs == 1:
        # u / (1 + u) changes by a factor between 1 and that of u.
        return np.concatenate([factors, np.ones_like(factors[:1])])
    # A probability is multiplied by its factor, and divided by a mean of all of them; the sum of
    # the others lies between the extremes.
    least, most = factors.min(axis=1, keepdims=True), factors.max(axis=1, keepdims=True)
    own = np.concatenate([factors / least, factors / most])
    others = np.concatenate(np.broadcast_arrays(most / least + 0 * factors, least / most))
    own[..., 1] = others[..., 1]  # of the sample's class: all other probabilities together
    return own


def spread(factors: np.ndarray) -> np.ndarray:
    """How far shares move under factors (n, n_outputs, 2), for each output and label, flat."""
    least, most = factors.min(axis=0), factors.max(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(least > 0.0, np.log(most) - np.log(least), np.inf)
    return np.asarray(np.tanh(ratio / 4).ravel() + ROUNDINGS)
