"""Scores of samples that are known before a run: what samples start from, the same on every device.

A known score is rounded to whole multiples of `VOTE_UNIT`. Its exponential comes from tables that
the host makes, so that no exponential of an array library is used.

Under the exponential loss exp(-y F) a known score f is a factor exp(-y f) of the sample's weight:
the rounds are those of a fit with these weights.
"""

from __future__ import annotations

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.boosting.held_out.tables import BAND_BITS, ExponentialTable
from gpustump.engines.contract import Beginning
from gpustump.engines.integer_weights import FLOOR
from gpustump.learners.step_table import VOTE_UNIT

LARGEST_OFFSET = 600.0
"""Bound of a score that is known beforehand, so that its exponential is a float64 number."""


def exponential_of(scores: Array) -> Array:
    """exp of scores between +-`LARGEST_OFFSET`, float64 in their shape (n,).

    Smaller ones give 0, or nearly.
    """
    with arrays.computing_on(scores):
        xp = arrays.namespace_of(scores)
        falling = -xp.astype(xp.round(scores / VOTE_UNIT), xp.int64)
        values, bands = ExponentialTable.beside(scores).exponentials(falling)
        for band in (-1, 1):  # exact: the results are float64 numbers
            values = xp.where(bands == band, values * 2.0 ** (band * BAND_BITS), values)
        return values


def in_vote_units(scores: Array) -> Array:
    """Scores rounded to whole multiples of `VOTE_UNIT`."""
    with arrays.computing_on(scores):
        return arrays.namespace_of(scores).round(scores / VOTE_UNIT) * VOTE_UNIT


def reweighted(weights: Array, signs: Array, offset: Array) -> Array:
    """Weights times exp(-y f): what samples of known scores weigh under the exponential loss."""
    with arrays.computing_on(offset):
        return weights * exponential_of(signs * offset * -1.0)


def beginning_of(labels: Array, offset: Array) -> Beginning:
    """Where a run of Newton votes for classes starts.

    Parameters
    ----------
    labels : array (n_samples,)
        As `Engine.start` takes them.
    offset : array (n_samples,) or (n_samples, n_outputs) of float64
        Known scores, for one output or for several.
    """
    with arrays.computing_on(offset):
        xp = arrays.namespace_of(offset)
        if offset.ndim == 1:
            odds = exponential_of(labels * offset * -2.0)
            floor, ceiling = (arrays.scalar(own, odds) for own in (FLOOR, 1.0 / FLOOR))
            odds = xp.minimum(xp.maximum(odds, floor), ceiling)  # as after each round
            return Beginning(xp.reshape(offset, (1, -1)), xp.reshape(odds, (1, -1)))
        outputs = [offset[:, output] for output in range(offset.shape[1])]
        largest = xp.max(offset, axis=1)
        floor = arrays.scalar(FLOOR, largest)
        shares = [xp.maximum(exponential_of((own - largest) * 2.0), floor) for own in outputs]
        total = shares[0]
        for own in shares[1:]:  # in the order of the classes, as in each round
            total = total + own
        probabilities = [xp.maximum(own / total, floor) for own in shares]
        return Beginning(xp.stack(outputs, axis=0), xp.stack(probabilities, axis=0))
