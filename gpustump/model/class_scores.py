"""From scores to classes, labels and probabilities.

The scores F of a sample are one number for two classes, positive for the second one, or one number
for each of more. Results are in the library and on the device of the scores.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.arrays.moving import moved_to_device_of
from gpustump.data.parameters import Link
from gpustump.engines.prediction import quick_to_compute_in


def class_indices(scores: Array) -> Array:
    """The number of the class with the largest score, int64 (n_samples,); of equal ones the first.

    Parameters
    ----------
    scores : array (n_samples,) or (n_samples, n_classes) of float64
    """
    xp = arrays.namespace_of(scores)
    with arrays.computing_on(scores):
        if scores.ndim == 1:
            return xp.astype(scores > 0, xp.int64)
        return xp.astype(xp.argmax(scores, axis=1), xp.int64)


def labels_at(labels: np.ndarray, index: Array) -> Array:
    """labels[index]; numbers are in the library and on the device of the index, text in NumPy."""
    if labels.dtype.kind not in "biuf":
        return labels[arrays.to_host(index)]
    xp, device = arrays.namespace_of(index), arrays.device_of(index)
    with arrays.computing_on(index):
        if labels.dtype.kind == "u":  # PyTorch cannot index wide unsigned integers
            return xp.asarray(labels[arrays.to_host(index)], device=device)
        return xp.take(xp.asarray(labels, device=device), index, axis=0)


def probabilities(scores: Array, link: Link = "logistic") -> Array:
    """The class probabilities, (n_samples, n_classes), for scores as `class_indices` takes them.

    Parameters
    ----------
    scores : array (n_samples,) or (n_samples, n_classes) of float64
    link : "logistic" or "softmax"
        "logistic": for two classes, P(second class) = 1 / (1 + exp(-2 F)) [Friedman, Hastie and
        Tibshirani 2000, section 4.1]; with more, this is computed for each score and divided by the
        sum. "softmax", for more than two classes: P_l = exp(2 F_l) / sum_m exp(2 F_m), the
        symmetric multiple logistic transformation of 2 F [section 5 there].

    Returns
    -------
    array (n_samples, n_classes) of float64
    """
    return _computed(partial(_probabilities, link=link), scores)


def log_probabilities(scores: Array, link: Link = "logistic") -> Array:
    """Logarithms of `probabilities`, also finite where a probability underflows to 0."""
    return _computed(partial(_log_probabilities, link=link), scores)


def _computed(compute: Callable[[Array], Array], scores: Array) -> Array:
    """The result of a computation on scores, made where nothing must be compiled first."""
    quick = quick_to_compute_in(scores)
    found = compute(quick)
    return found if quick is scores else moved_to_device_of(found, scores)


def _probabilities(scores: Array, link: Link) -> Array:
    with arrays.computing_on(scores):
        return arrays.namespace_of(scores).exp(_log_probabilities(scores, link))


def _log_probabilities(scores: Array, link: Link) -> Array:
    xp = arrays.namespace_of(scores)
    with arrays.computing_on(scores):
        if scores.ndim == 1:
            rest = _rest_of_log_sigmoid(scores)
            return xp.stack([_below(-scores) - rest, _below(scores) - rest], axis=1)
        logs = 2.0 * scores if link == "softmax" else _below(scores) - _rest_of_log_sigmoid(scores)
        logs = logs - xp.max(logs, axis=1, keepdims=True)
        return logs - xp.log(xp.sum(xp.exp(logs), axis=1, keepdims=True))


def _below(scores: Array) -> Array:
    """The smaller of 2 F and 0. Less `_rest_of_log_sigmoid` it is ln(1 / (1 + exp(-2 F)))."""
    xp = arrays.namespace_of(scores)
    return 2.0 * xp.where(scores < 0, scores, xp.zeros_like(scores))


def _rest_of_log_sigmoid(scores: Array) -> Array:
    """ln(1 + exp(-2 |F|)), which cannot overflow, and is the same for F and -F."""
    xp = arrays.namespace_of(scores)
    return xp.log1p(xp.exp(-2.0 * xp.abs(scores)))
