"""What early stopping watches: scores of held-out samples that are the same on every device.

Greater is better, as in scikit-learn, so losses are negative. Each score is a ratio of two
integers, or rounded from one once:

* accuracy and balanced accuracy are shares of the integer weights;
* the area under the ROC curve counts pairs of samples, with integer weights;
* the losses are added up as integers. A sample's score is a whole multiple of 2**-36. Its loss
  is looked up in a table of integers, and interpolated in integers. The table comes from the host,
  by decimal arithmetic wherever the last digits of a logarithm could decide an entry. So the
  exponentials and logarithms of an array library are not used.
"""

from __future__ import annotations

import decimal
import functools
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.data.parameters import Scoring
from gpustump.engines.integer_weights import IntegerWeights
from gpustump.learners.step_table import VOTE_UNIT

Scorer = Callable[[Array], float]
"""From the scores F of the held-out samples, float64, whole multiples of `VOTE_UNIT`, to a score of
the model, the greater the better."""

LOSS_BITS = 32
"""Losses of single samples are multiples of 2**-32."""

_NODE_BITS = 10
_LAST_NODE = 24 << _NODE_BITS
"""The table has a node at every 2**-10 up to 24, where the loss is below 2**-34. Between nodes the
loss is interpolated, which adds at most 2**-25."""

_UNIT_BITS = {"loss": 36, "neg_log_loss": 35}
"""The number of binary places of the log-odds. In the loss they are the score itself, a multiple of
2**-36; in the model's probabilities they are twice the score."""

_DOUBT = 2.0**-14
"""More than the error, in units of an entry, of an exponential and a logarithm of any C library."""

_PAIR_BITS = 30
"""The weights of one class sum to about 2**30 when pairs are counted, so that their products do not
overflow."""


@dataclass(frozen=True)
class HeldOut:
    """Labels and weights of the held-out samples.

    Attributes
    ----------
    y : array (n_held_out,) of float64
        -1.0 or 1.0.
    weights : IntegerWeights
    """

    y: Array
    weights: IntegerWeights

    def error(self, scores: Array) -> float:
        """The share of the weight that is classified wrongly."""
        with arrays.computing_on(self.y):
            return self.weights.share((scores > 0) != (self.y > 0))


def scorer(scoring: Scoring, held_out: HeldOut) -> Scorer:
    """The function that computes a score of the held-out samples.

    Both labels must occur for "balanced_accuracy" and "roc_auc".
    """
    if scoring in _UNIT_BITS:
        return _NegativeLoss.of(held_out, _UNIT_BITS[scoring])
    if scoring == "accuracy":
        return functools.partial(_accuracy, held_out)
    positives, negatives = _class_of(held_out, 1.0), _class_of(held_out, -1.0)
    if scoring == "balanced_accuracy":
        return functools.partial(_balanced_accuracy, positives, negatives)
    return _RocAuc.of(positives, negatives)


def _accuracy(held_out: HeldOut, scores: Array) -> float:
    with arrays.computing_on(held_out.y):
        return held_out.weights.share((scores > 0) == (held_out.y > 0))


@dataclass(frozen=True)
class _Class:
    """The held-out samples of one class: their positions among all, and their integer weights."""

    rows: Array
    weights: IntegerWeights

    def in_order(self, units: Array) -> tuple[Array, Array]:
        """The sorted scores of these samples, out of those of all, and the weights beside them."""
        xp = arrays.namespace_of(units)
        scores = xp.take(units, self.rows, axis=0)
        order = xp.argsort(scores, stable=False)
        return xp.take(scores, order, axis=0), xp.take(self.weights.values, order, axis=0)


def _class_of(held_out: HeldOut, label: float) -> _Class:
    with arrays.computing_on(held_out.y):
        xp = arrays.namespace_of(held_out.y)
        rows = xp.nonzero(held_out.y == label)[0]
        values = xp.take(held_out.weights.values, rows, axis=0)
        return _Class(rows, IntegerWeights(values, int(xp.sum(values))))


def _balanced_accuracy(positives: _Class, negatives: _Class, scores: Array) -> float:
    """The mean, over the two classes, of the share that is classified right."""
    with arrays.computing_on(scores):
        right = positives.weights.share(arrays.picked(scores, positives.rows) > 0)
        return (right + negatives.weights.share(arrays.picked(scores, negatives.rows) <= 0)) / 2


@dataclass(frozen=True)
class _RocAuc:
    """The share of pairs, one sample of each class, in which the positive one has the larger score.

    A pair with equal scores counts half. Whole weights are counted exactly if those of each class
    sum to less than 2**30; others are rounded so that they do.
    """

    positives: _Class
    negatives: _Class

    @classmethod
    def of(cls, positives: _Class, negatives: _Class) -> _RocAuc:
        return cls(_with_short_weights(positives), _with_short_weights(negatives))

    def __call__(self, scores: Array) -> float:
        with arrays.computing_on(scores):
            xp = arrays.namespace_of(scores)
            units = xp.astype(scores / VOTE_UNIT, xp.int64)
            lower, lower_weights = self.negatives.in_order(units)
            upper, upper_weights = self.positives.in_order(units)  # quicker to search for in order
            sums = xp.cumulative_sum(lower_weights, include_initial=True)
            below, not_above = (
                xp.take(sums, xp.searchsorted(lower, upper, side=side), axis=0)
                for side in ("left", "right")
            )
            won = int(xp.sum(upper_weights * (below + not_above)))
        return won / (2 * self.positives.weights.total * self.negatives.weights.total)


def _with_short_weights(samples: _Class) -> _Class:
    """The same samples with integer weights that sum to about 2**30 or less."""
    values = arrays.to_host(samples.weights.values)
    common = int(np.bitwise_or.reduce(values))  # whole weights are kept times a power of two
    common_zeros = (common & -common).bit_length() - 1
    shift = max(common_zeros, samples.weights.total.bit_length() - _PAIR_BITS)
    short = (values + ((1 << shift) >> 1)) >> shift
    xp, device = arrays.namespace_of(samples.rows), arrays.device_of(samples.rows)
    return _Class(samples.rows, IntegerWeights(xp.asarray(short, device=device), int(short.sum())))


@dataclass(frozen=True)
class _NegativeLoss:
    """Minus the mean of ln(1 + exp(-x)) for x = y * F, or x = 2 * y * F.

    The error is below 2**-24 (interpolation: 2**-25; rounding of the table: some 2**-32), and
    n_held_out * 2**-42 for the rounding of weighted losses.

    Attributes
    ----------
    y : array (n_held_out,) of float64
    weights : array (n_held_out,) of float64
        Such that products with losses, in units of 2**-32, sum to less than 2**62.
    total : int
        The sum of the integer weights.
    unit_bits : int
        x is a whole multiple of 2**-unit_bits.
    nodes, drops : array (n_nodes,) of int64
        The loss at each node, and how much smaller it is at the next one.
    """

    y: Array
    weights: Array
    total: int
    unit_bits: int
    nodes: Array
    drops: Array

    @classmethod
    def of(cls, held_out: HeldOut, unit_bits: int) -> _NegativeLoss:
        with arrays.computing_on(held_out.y):
            y, values = held_out.y, held_out.weights.values
            xp, device = arrays.namespace_of(y), arrays.device_of(y)
            weights = xp.astype(values, xp.float64) * 2.0 ** -(_SPARE_BITS + LOSS_BITS)
            nodes, drops = (xp.asarray(part, device=device) for part in _loss_table())
            return cls(y, weights, held_out.weights.total, unit_bits, nodes, drops)

    def __call__(self, scores: Array) -> float:
        with arrays.computing_on(scores):
            xp = arrays.namespace_of(scores)
            losses = xp.astype(self.losses(scores), xp.float64)  # below 2**52: exact
            weighted = xp.astype(xp.round(self.weights * losses), xp.int64)
            return -((int(xp.sum(weighted)) << _SPARE_BITS) / self.total)

    def losses(self, scores: Array) -> Array:
        """The loss of each sample as an integer, in units of 2**-32."""
        xp, step_bits = arrays.namespace_of(scores), self.unit_bits - _NODE_BITS
        margins = xp.astype(self.y * scores / VOTE_UNIT, xp.int64)
        sizes = xp.abs(margins)
        places = sizes >> step_bits
        places = xp.where(places < _LAST_NODE, places, _LAST_NODE)
        rest = sizes & ((1 << step_bits) - 1)
        fallen = (xp.take(self.drops, places, axis=0) * rest) >> step_bits
        losses = xp.take(self.nodes, places, axis=0) - fallen
        # ln(1 + exp(x)) = x + ln(1 + exp(-x)); the difference is 0 or twice the size.
        return losses + ((sizes - margins) >> (self.unit_bits - LOSS_BITS + 1))


_SPARE_BITS = 20
"""The sum of the weights is below 2**62, and losses are below 2**18 + 1."""


@functools.cache
def _loss_table() -> tuple[np.ndarray, np.ndarray]:
    """The loss ln(1 + exp(-x)) at each node x, rounded to 2**-32, and its drop to the next node."""
    x = np.arange(_LAST_NODE) / 2.0**_NODE_BITS
    units = np.log1p(np.exp(-x)) * 2.0**LOSS_BITS
    nodes = np.zeros(_LAST_NODE + 1, dtype=np.int64)
    nodes[:-1] = np.rint(units)
    for i in np.flatnonzero(np.abs(units - np.floor(units) - 0.5) < _DOUBT).tolist():
        nodes[i] = _loss_at(Decimal(float(x[i])))
    return nodes, np.append(nodes[:-1] - nodes[1:], 0)


def _loss_at(x: Decimal) -> int:
    with decimal.localcontext(decimal.Context(prec=50, rounding=decimal.ROUND_HALF_EVEN)):
        return int(((1 + (-x).exp()).ln() * 2**LOSS_BITS).to_integral_value())
