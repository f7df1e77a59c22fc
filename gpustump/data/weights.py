"""Weights of samples, checked: finite, not negative, and not all zero; and weights of classes.

A sample of weight zero takes no part in training, as if it were not in the data. Weights of classes
multiply those of the classes' samples, as in scikit-learn. "balanced" follows from the labels
alone, as `sklearn.utils.compute_sample_weight` has it: it counts every row of y, whatever its
sample weight is. The products are float64 numbers, so a fit with class weights is the fit with the
multiplied sample weights, to the last bit.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.data.input_arrays import check_vector, refuse_problems
from gpustump.data.labels import check_both_signs, check_signs, encode, plain_labels
from gpustump.data.parameters import check_real
from gpustump.data.readable import listed

SMALLEST = {"float64": 2.0**-1022, "float32": 2.0**-126}
"""The smallest normal number of a dtype. Smaller weights count as zero on every device, because
XLA, and CuPy's float32 kernels, flush them to zero."""


class Weights(NamedTuple):
    """The positive weights of samples, and the rows that have one.

    Attributes
    ----------
    values : array (n_rows,) of float64
    rows : array (n_rows,) of int64, or None
        None if every sample has a positive weight.
    """

    values: Array
    rows: Array | None


def check_weights(sample_weight: Any, X: Array, name: str = "sample_weight") -> Weights:
    """The positive weights, and the rows that have one.

    Parameters
    ----------
    sample_weight : array (n_samples,), float, or None
        None and a single number give every sample the same weight.
    X : array (n_samples, ...)
        Its library and device are those of the results.
    name : str
        What the weights are called in messages.

    Raises
    ------
    TypeError
        If sample_weight does not hold real numbers.
    ValueError
        If it is not one-dimensional, has another length or device than X, holds NaN, infinite or
        negative weights, or holds only zeros.
    """
    xp, device = arrays.namespace_of(X), arrays.device_of(X)
    if sample_weight is None:
        return Weights(xp.ones(X.shape[0], dtype=xp.float64, device=device), None)
    if isinstance(sample_weight, numbers.Real):
        sample_weight = xp.full(X.shape[0], float(sample_weight), dtype=xp.float64, device=device)
    weights = check_vector(sample_weight, name, X)
    smallest = SMALLEST.get(arrays.dtype_name(weights), SMALLEST["float64"])
    weights = xp.astype(weights, xp.float64)
    problems = {
        "NaN": xp.isnan(weights),
        "infinite weights": xp.isinf(weights),
        "negative weights": weights <= -smallest,
    }
    refuse_problems(problems, name, "; weights must be finite and not negative")
    counts = weights >= smallest
    if bool(xp.all(counts)):
        return Weights(weights, None)
    if not bool(xp.any(counts)):
        raise ValueError(f"{name} is zero for every sample; at least one must be positive.")
    rows = xp.nonzero(counts)[0]
    return Weights(xp.take(weights, rows, axis=0), rows)


ClassWeight = Mapping[Any, float] | str | None
"""None, "balanced", or a weight for each label."""

PRODUCT = "sample_weight times class_weight"
"""The name of the multiplied weights in messages."""


def check_class_weight(class_weight: Any) -> ClassWeight:
    """Weights of classes as users give them.

    Raises
    ------
    TypeError
        If they are neither None, text nor a dict, or if a weight is not a number.
    ValueError
        If they are text other than "balanced", or if a weight is negative or not finite.
    """
    wanted = "class_weight must be None, 'balanced' or a dict from labels to weights"
    if isinstance(class_weight, str) and class_weight != "balanced":
        raise ValueError(f"{wanted}; got {class_weight!r}.")
    if class_weight is None or isinstance(class_weight, str):
        return class_weight
    if not isinstance(class_weight, Mapping):
        raise TypeError(f"{wanted}; got {class_weight!r}.")
    return {
        label: check_real(weight, f"class_weight[{label!r}]", least=0.0)
        for label, weight in class_weight.items()
    }


def class_factors(
    class_weight: ClassWeight, classes: np.ndarray, counts: Sequence[int]
) -> np.ndarray:
    """What the weights of each class's samples are multiplied by.

    Parameters
    ----------
    class_weight : "balanced" or mapping
        As `check_class_weight` returns it.
    classes : ndarray (n_classes,)
        All labels of y.
    counts : sequence (n_classes,) of int
        How many rows each of them has.

    Returns
    -------
    ndarray (n_classes,) of float64
        For "balanced", n_samples / (n_classes * count) [King and Zeng 2001]. For a label that the
        dict does not name, 1.

    Raises
    ------
    ValueError
        If the dict names a label that y does not hold, while y holds one that the dict does not
        name. Then a label is probably misspelt.
    """
    if not isinstance(class_weight, Mapping):
        found = np.asarray(counts, dtype=np.float64)
        factors: np.ndarray = found.sum() / (len(found) * found)
        return factors
    labels = plain_labels(classes)
    unnamed = [label for label in labels if label not in class_weight]
    unknown = [label for label in class_weight if label not in labels]
    if unnamed and unknown:
        raise ValueError(
            f"class_weight names {listed(unknown)}, which y does not hold, but not "
            f"{listed(unnamed)}, which y holds. Name the labels as they are in y."
        )
    return np.asarray([class_weight.get(label, 1.0) for label in labels], dtype=np.float64)


def weighted_by_class(weights: Weights, y: Array, class_weight: ClassWeight) -> Weights:
    """Sample weights multiplied by those of the samples' classes.

    Parameters
    ----------
    weights : Weights
        As `check_weights` returns them.
    y : array (n_samples_given,)
        Labels as `check_labels` returns them, of all rows.
    class_weight : None, "balanced" or mapping
        As `check_class_weight` returns it.

    Raises
    ------
    ValueError
        If `class_factors` refuses the dict, if a product is too large for float64, or if no product
        is positive.
    """
    if class_weight is None:
        return weights
    like = weights.values
    xp, device = arrays.namespace_of(like), arrays.device_of(like)
    classes, numbers = encode(y, like)
    counts = np.bincount(arrays.to_host(numbers)).tolist()
    found = class_factors(class_weight, classes, counts)
    factors = xp.asarray(found, dtype=xp.float64, device=device)
    factors = xp.take(factors, arrays.picked(numbers, weights.rows), axis=0)
    product = check_weights(like * factors, like, PRODUCT)
    if weights.rows is None:
        return product
    return product._replace(rows=arrays.picked(weights.rows, product.rows))


class WeightedSigns(NamedTuple):
    """Labels -1.0 and 1.0 and weights of the samples that have a weight, all checked.

    Attributes
    ----------
    labels, weights : array (n_samples,) of float64
    rows : array (n_samples,) of int, or None
        The indices of these samples among those given; None for all.
    """

    labels: Array
    weights: Array
    rows: Array | None


def check_weighted_signs(y: Any, sample_weight: Any, X: Array) -> WeightedSigns:
    """Labels and weights, checked as by `check_signs` and `check_weights`.

    Raises
    ------
    ValueError, TypeError
        If either refuses them, or if only one of the two labels has samples of positive weight.
    """
    y = check_signs(y, X)
    weights, rows = check_weights(sample_weight, X)
    if rows is not None:
        y = arrays.picked(y, rows)
        check_both_signs(y, "y, where sample_weight is not zero,")
    return WeightedSigns(y, weights, rows)
