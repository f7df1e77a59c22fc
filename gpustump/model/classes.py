"""The classes of a model: their labels, and classes, labels and probabilities from scores.

Training takes its labels from one array, so they are all text, all booleans or all numbers, and no
two are equal. A file that claims anything else is refused: `predict` could not return its labels.

The scores F of a sample are one number for two classes, positive for the second one, or one number
for each of more. Results are in the library and on the device of the scores.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.arrays.moving import moved_to_device_of
from gpustump.data.parameters import Link
from gpustump.data.readable import is_text, shown
from gpustump.engines.prediction import quick_to_compute_in

Label = bool | int | float | str

_LARGEST_ARRAY = 2**28
"""The most characters in an array of labels, each as long as the longest one: 1 GiB."""


def label_array(classes: Sequence[Label]) -> np.ndarray:
    """The labels (n_classes,) in a dtype that holds them exactly."""
    whole = [label for label in classes if type(label) is int]
    if len(whole) == len(classes) and min(whole) >= 0 and max(whole) >= 2**63:
        return np.asarray(classes, dtype=np.uint64)
    return np.asarray(classes)


def check_classes(classes: object) -> None:
    """Check that classes is a list of labels, one at least, all of one kind and all different.

    Raises
    ------
    ValueError
        If it is not; the message names the first label that is wrong.
    """
    if type(classes) is not list or not classes:
        raise ValueError(f"classes must be a list of labels, one at least; got {shown(classes)}.")
    kinds = [_kind(label) for label in classes]
    places: dict[Label, int] = {}
    for place, label in enumerate(classes):
        if kinds[place] is None:
            raise ValueError(
                f"classes[{place}] must be text, true, false or a number of at most 64 bits that "
                f"is finite; got {shown(label)}."
            )
        if kinds[place] != kinds[0]:
            raise ValueError(
                f"classes must be of one kind; classes[0] is {kinds[0]}, classes[{place}] is "
                f"{kinds[place]}: {shown(label)}."
            )
        if label in places:
            raise ValueError(
                f"classes must all be different; classes[{places[label]}] and classes[{place}] are "
                f"{shown(label)}."
            )
        places[label] = place
    _check_array(classes)


def _kind(label: object) -> str | None:
    """What kind of label it is, in words; None if it is none."""
    if type(label) is bool:
        return "true or false"
    if type(label) is int and -(2**63) <= label < 2**64:
        return "a number"
    if type(label) is float and math.isfinite(label):  # JSON has no infinity
        return "a number"
    return "text" if is_text(label) else None


def _check_array(classes: list[Label]) -> None:
    """Refuse labels that the array of `label_array` would change, or that it cannot hold."""
    if isinstance(classes[0], str):
        longest = max(len(str(label)) for label in classes)
        if longest * len(classes) > _LARGEST_ARRAY:
            raise ValueError(
                f"classes must fit into an array of 1 GiB; {len(classes)} labels, the longest of "
                f"{longest} characters, do not."
            )
    for place, (label, held) in enumerate(zip(classes, label_array(classes).tolist(), strict=True)):
        if label != held:
            raise ValueError(
                f"classes must fit into one NumPy array; it changes classes[{place}], "
                f"{shown(label)}, into {shown(held)}."
            )


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
    quick = quick_to_compute_in(scores)
    with arrays.computing_on(quick):
        found = arrays.namespace_of(quick).exp(_log_probabilities(quick, link))
    return moved_to_device_of(found, scores)


def log_probabilities(scores: Array, link: Link = "logistic") -> Array:
    """Logarithms of `probabilities`, also finite where a probability underflows to 0."""
    return moved_to_device_of(_log_probabilities(quick_to_compute_in(scores), link), scores)


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
