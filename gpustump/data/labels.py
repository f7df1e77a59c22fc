"""Labels of any kind with the number of each one's class, labels -1 and +1, and targets.

Labels on the host may be numbers, booleans or text, in an array, a list or a frame's column. Python
objects count as what they are: all numbers, all booleans or all text. Labels on another device are
numbers, as devices have no text.
"""

from __future__ import annotations

import decimal
import numbers
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.arrays.moving import moved_to_device_of
from gpustump.data.input_arrays import (
    as_array,
    check_same_device,
    check_vector,
    first_where,
    is_missing,
    refuse_problems,
    refuse_values,
)
from gpustump.data.parameters import RATIO_LOSSES, QuantityLoss
from gpustump.data.readable import caller_level, listed


def check_labels(y: Any, X: Array) -> Array:
    """Labels (n_samples,) for the rows of X, as an array of y's own library.

    Raises
    ------
    TypeError
        If y holds neither numbers, booleans nor text, or text among others.
    ValueError
        If y has another length or device than X, holds NaN or None, or holds numbers that are not
        whole, as a regression target does.
    """
    if y is None:
        raise ValueError("This classifier requires y to be passed, but the target y is None.")
    if arrays.is_array(y) and arrays.library_name(y) != "numpy":
        y = check_vector(y, "y", X)
    else:
        y = _host_labels(y, X)
    _refuse_other_numbers(y)
    return y


def _host_labels(y: Any, X: Array) -> np.ndarray:
    given_as_array = arrays.is_array(y)
    labels: np.ndarray = as_array(y, "y", keeps_objects=True)
    if isinstance(y, list | tuple) and labels.dtype.kind == "U":  # NumPy makes text of all
        labels = np.asarray(y, dtype=object)
    if labels.dtype.kind not in "biufUO":
        raise TypeError(
            f"y has dtype {labels.dtype}; labels may be whole numbers, booleans or text."
        )
    labels = _as_vector(labels, "labels")
    if labels.shape[0] != X.shape[0]:
        raise ValueError(
            f"X and y have inconsistent numbers of samples: {X.shape[0]} and {labels.shape[0]}."
        )
    if labels.dtype == object:
        labels = _of_one_kind(labels)
    if given_as_array and labels.dtype.kind not in "UO":  # text is always on the host
        check_same_device(labels, "y", X)
    return labels


def _of_one_kind(labels: np.ndarray) -> np.ndarray:
    """Python objects as an array of numbers or booleans; as they are if they are text."""
    values = labels.tolist()
    lacking = next((index for index, value in enumerate(values) if is_missing(value)), None)
    if lacking is not None:
        raise ValueError(f"y contains NaN or None, the first at index {lacking}.")
    kinds = {type(value) for value in values}
    if all(issubclass(kind, str) for kind in kinds):
        return labels if kinds == {str} else np.asarray(list(map(str, values)), dtype=object)
    if all(issubclass(kind, (bool, np.bool_)) for kind in kinds):
        return np.asarray(values, dtype=bool)
    if not all(issubclass(kind, (numbers.Real, decimal.Decimal, np.bool_)) for kind in kinds):
        found = ", ".join(sorted(kind.__name__ for kind in kinds))
        raise TypeError(
            f"y holds objects of the types {found}; labels may be whole numbers, booleans or text, "
            "all of one kind: y.astype(str) makes text of them."
        )
    if not all(issubclass(kind, (numbers.Integral, np.bool_)) for kind in kinds):
        return np.asarray(list(map(float, values)))
    whole = list(map(int, values))
    dtype = np.uint64 if max(whole) >= 2**63 else np.int64
    try:
        return np.asarray(whole, dtype=dtype)
    except OverflowError as error:
        raise ValueError(
            "y holds integers of more than 64 bits; as labels, write them as text."
        ) from error


def _as_vector(y: Any, things: str) -> Any:
    """Labels or targets (n_samples,); a column is accepted with scikit-learn's warning."""
    from sklearn.utils import column_or_1d

    if y.ndim == 2 and y.shape[1] == 1:
        return np.asarray(column_or_1d(y, warn=True))
    if y.ndim != 1:
        raise ValueError(
            f"y must have one dimension, (n_samples,), but its shape is {y.shape}; several "
            f"{things} for a sample are not supported."
        )
    return y


def _refuse_other_numbers(y: Array) -> None:
    """Refuse numbers that are no labels."""
    if "float" not in arrays.dtype_name(y):
        return
    xp = arrays.namespace_of(y)
    refuse_problems({"NaN": xp.isnan(y), "infinity": xp.isinf(y)}, "y")
    at = first_where(y != xp.floor(y))
    if at is not None:
        raise ValueError(
            f"Unknown label type: continuous. y holds {float(y[at]):g}; a classifier needs "
            "classes, so whole numbers, booleans or text. Cut a quantity into classes first."
        )


def encode(y: Array, X: Array) -> tuple[np.ndarray, Array]:
    """The classes, and the number of each sample's class.

    Parameters
    ----------
    y : array (n_samples,)
        Labels as `check_labels` returns them.
    X : array
        Its library and device are those of the result.

    Returns
    -------
    classes : ndarray (n_classes,)
        Sorted, on the host.
    numbers : array (n_samples,) of int64
    """
    xp = arrays.namespace_of(y)
    with arrays.computing_on(y):
        if arrays.library_name(y) == "numpy":
            classes, index = np.unique(y, return_inverse=True)
        else:
            values, index = xp.unique_inverse(y)
            classes = arrays.to_host(values)
    with arrays.computing_on(X):
        index = moved_to_device_of(index, X)
        return classes, arrays.namespace_of(X).astype(index, arrays.namespace_of(X).int64)


def warn_of_odd_classes(classes: np.ndarray, n_samples: int) -> None:
    """Warn of a single class, which leaves nothing to learn, and of so many that y is probably a
    quantity: as in scikit-learn, more than half as many as there are samples, if these are over 20.
    """
    if len(classes) == 1:
        warnings.warn(
            f"y holds one class only, {classes.tolist()[0]!r}, so every prediction will be that.",
            stacklevel=caller_level(),
        )
    if n_samples > 20 and len(classes) > round(n_samples / 2):
        warnings.warn(
            f"y holds {len(classes)} different values in {n_samples} samples, and each is a class "
            "of its own. If y is a quantity, it needs a regressor; or cut it into a few classes, "
            "for example with numpy.digitize.",
            stacklevel=caller_level(),
        )


def class_numbers(
    classes: Sequence[Any], y: Any, X: Array, rows: Array | None = None
) -> np.ndarray:
    """The number of each label among a model's classes, int64 (n_rows,), on the host.

    Parameters
    ----------
    classes : sequence
    y : array (n_samples,)
        Labels as users give them.
    X : array (n_samples, ...)
    rows : array (n_rows,) of int, optional
        The samples whose labels are wanted; by default all.

    Raises
    ------
    ValueError, TypeError
        If `check_labels` refuses y for the rows of X, or a wanted label is not a class.
    """
    with arrays.computing_on(X):
        labels = arrays.to_host(check_labels(y, X))
        places = np.arange(len(labels)) if rows is None else arrays.to_host(rows)
    known = {label: number for number, label in enumerate(classes)}
    values, index = np.unique(labels[places], return_inverse=True)
    found = np.asarray([known.get(value, -1) for value in values.tolist()], dtype=np.int64)
    numbers: np.ndarray = found[index]
    if (numbers < 0).any():
        at = int(places[np.argmax(numbers < 0)])
        raise ValueError(
            f"y holds {labels.tolist()[at]!r} at index {at}, which is none of the model's classes: "
            f"{listed(classes)}."
        )
    return numbers


def plain_labels(classes: np.ndarray) -> tuple[bool | int | float | str, ...]:
    """Labels as a model holds them: whole numbers are ints, also if they were floats."""
    if classes.dtype.kind == "f" and (np.abs(classes) < 2**53).all():
        classes = classes.astype(np.int64)
    return tuple(classes.tolist())


def check_signs(y: Any, X: Array) -> Array:
    """Labels -1 and +1, both present, as float64 (n_samples,) in X's library and on its device.

    Raises
    ------
    TypeError
        If y does not hold real numbers.
    ValueError
        If y has another length or device than X, holds other labels than -1 and +1, or holds only
        one of the two.
    """
    y = check_vector(y, "y", X)
    xp = arrays.namespace_of(y)
    y = xp.astype(y, xp.float64)
    at = first_where((y != 1.0) & (y != -1.0))
    if at is not None:
        if bool(xp.any(xp.isnan(y))):
            raise ValueError("y contains NaN; every sample needs a label, -1 or +1.")
        found = float(y[at])
        raise ValueError(f"y must hold the labels -1 and +1 only, but it also holds {found:g}.")
    check_both_signs(y, "y")
    return y


def check_both_signs(y: Array, name: str) -> None:
    """Refuse labels that are all +1 or all -1; `name` is what a message calls them."""
    xp = arrays.namespace_of(y)
    if not bool(xp.any(y > 0)) or not bool(xp.any(y < 0)):
        raise ValueError(
            f"{name} holds the label {int(y[0]):+d} only, but the classifier needs samples of two "
            "classes, -1 and +1."
        )


MOST_TARGET = 2.0**1000
"""Targets are below this in absolute value, so that no sum of votes overflows."""


def check_targets(y: Any, X: Array) -> Array:
    """Targets for the rows of X, in float64 and X's own library.

    Parameters
    ----------
    y : array (n_samples,)
        Real numbers of any array library or frame.
    X : array (n_samples, ...)

    Returns
    -------
    array (n_samples,) of float64

    Raises
    ------
    TypeError
        If y does not hold real numbers.
    ValueError
        If y has another length or device than X, or holds NaN, infinity or numbers that are too
        large.
    """
    if y is None:
        raise ValueError("This regressor requires y to be passed, but the target y is None.")
    if not arrays.is_array(y) or arrays.library_name(y) == "numpy":
        y = as_array(y, "y")
        if y.dtype.kind == "O":
            raise TypeError(
                "Unknown label type: objects. y must hold real numbers for a regressor."
            )
        y = _as_vector(y, "targets")
    y = check_vector(y, "y", X)
    with arrays.computing_on(y):
        xp = arrays.namespace_of(y)
        targets = xp.astype(y, xp.float64)
        problems = {
            "NaN": xp.isnan(targets),
            "infinity": xp.isinf(targets),
            "a number of 2**1000 or more": xp.abs(targets) >= MOST_TARGET,
        }
        refuse_problems(problems, "y")
        return targets


def check_domain(targets: Array, loss: QuantityLoss) -> None:
    """Refuse targets that a loss is not for.

    Raises
    ------
    ValueError
        If one is negative under Poisson or gamma loss, or 0 under gamma loss.
    """
    if loss not in RATIO_LOSSES:
        return
    may_be_0 = loss == "poisson"
    wanted = f"y must be {'0 or more' if may_be_0 else 'above 0'} for loss={loss!r}"
    refuse_values(targets < 0.0 if may_be_0 else targets <= 0.0, targets, wanted)
