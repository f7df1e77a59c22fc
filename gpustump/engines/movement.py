"""How far a step moves the shares of a bin's sums: what engines remember of bins depends on it.

Under real, Newton and shared votes the weights of all samples change in every round, but those of
samples with the same label nearly alike: by the factors of the regions that they lie in. So where
in a bin half of its positive weight lies hardly changes. From one round to the next a share changes
by at most

    (sqrt(r) - 1) / (sqrt(r) + 1) = tanh(ln(r) / 4)

where r is the largest factor of that label over the smallest: a share s becomes s a / (s a + t b)
with t = 1 - s and a / b between 1/r and r, which moves s most where s / t is sqrt(b/a).

Most cuts part few samples from many, the bulk, and most bins hold hardly any of the few. If those
of a label all gain weight beside the bulk, D of the bin's new sum P, a share s moves by (1 - s) D/P
at most; if they lose it, by s D/P; so by D/P in any case. D is how far the sum is from what the
step makes of the bulk. The smaller of both movements holds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpustump.engines.contract import Search

ROUNDINGS = 2.0**-40
"""How far roundings of the weights move a share in a round, at most: each is 2**-52 of a weight."""


class Movement(NamedTuple):
    """What a step does to shares; each is an array (n_outputs, 2), for the labels -1 and +1.

    Attributes
    ----------
    most : ndarray of float64
        How far a share moves in any bin, at most.
    of_bulk : ndarray of float64
        How far if all samples are of the bulk.
    is_one_way : ndarray of bool
        Whether the samples of other regions all gain weight beside the bulk, or all lose it. If
        not, or if that is not known, `most` is all there is.
    low, high : ndarray of float64
        By what a sum of first integers changes if all samples are of the bulk, at least and at
        most.
    """

    most: np.ndarray
    of_bulk: np.ndarray
    is_one_way: np.ndarray
    low: np.ndarray
    high: np.ndarray


def movement_of(factors: np.ndarray, counts: np.ndarray | None, search: Search) -> Movement:
    """What a step does.

    Parameters
    ----------
    factors : ndarray (n_regions, n_outputs, 2) of float64
        Of samples with the label -1, and with the label +1.
    counts : ndarray (n_regions,) or None
        How many samples lie in each region; None if that is not known.
    search : Search
    """
    of_newton = search.votes == "newton"
    taken = factors if counts is None else factors[counts > 0]
    most = spread(factors_of_first(taken, search))
    if counts is None or (of_newton and search.n_outputs > 1):
        nothing = np.zeros_like(most)
        return Movement(most, most, nothing > 0.0, nothing, nothing)
    bulk = int(np.argmax(counts))
    own = factors[[bulk]]
    rest = np.delete(factors, bulk, axis=0)[np.delete(counts, bulk) > 0]
    one_way = np.asarray((rest >= own).all(axis=0) | (rest <= own).all(axis=0))
    if not of_newton:
        return Movement(most, np.zeros_like(most), one_way, own[0], own[0])
    of_bulk = spread(factors_of_first(own, search))
    return Movement(most, of_bulk, one_way, np.minimum(own[0], 1.0), np.maximum(own[0], 1.0))


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
    """How far shares move under factors (n, n_outputs, 2), (n_outputs, 2) of float64."""
    least, most = factors.min(axis=0), factors.max(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(least > 0.0, np.log(most) - np.log(least), np.inf)
    return np.asarray(np.tanh(ratio / 4) + ROUNDINGS)
