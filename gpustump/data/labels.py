"""Labels of any kind, and the number of each one's class.

Labels on the host may be numbers, booleans or text, in an array, a list or a frame's column. Labels
on another device are numbers, as devices have no text.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.arrays.moving import moved_to_device_of
from gpustump.data.callers import caller_level
from gpustump.data.input_arrays import as_array, check_same_device, check_vector, is_missing

_SHOWN = 10
"""The most classes that a message names."""


def check_labels(y: Any, X: Array) -> Array:
    """Labels (n_samples,) for the rows of X, as an array of y's own library.

    Raises
    ------
    TypeError
        If y holds neither numbers, booleans nor text.
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
    _refuse_missing(y)
    _refuse_continuous(y)
    return y


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


def warn_of_one_class(classes: np.ndarray) -> None:
    """Warn if there is nothing to tell apart, as in a fold of a learning curve, or by mistake."""
    if len(classes) == 1:
        warnings.warn(
            f"y holds one class only, {classes.tolist()[0]!r}, so every prediction will be that.",
            stacklevel=caller_level(),
        )


def class_numbers(classes: Sequence[Any], y: Any, X: Array) -> np.ndarray:
    """The number of each label among a model's classes, int64 (n_samples,), on the host.

    Raises
    ------
    ValueError, TypeError
        If `check_labels` refuses y for the rows of X, or y holds a label that is not a class.
    """
    with arrays.computing_on(X):
        labels = arrays.to_host(check_labels(y, X))
    return numbers_among(classes, labels)


def numbers_among(
    classes: Sequence[Any], labels: np.ndarray, rows: np.ndarray | None = None
) -> np.ndarray:
    """The number of each label among some classes.

    Parameters
    ----------
    classes : sequence
    labels : ndarray (n_samples,)
        As `check_labels` returns them, on the host.
    rows : ndarray (n_rows,) of int, optional
        Those whose labels are wanted; by default all.

    Returns
    -------
    ndarray (n_rows,) of int64

    Raises
    ------
    ValueError
        If a wanted label is not a class.
    """
    wanted = labels if rows is None else labels[rows]
    places = {label: number for number, label in enumerate(classes)}
    values, index = np.unique(wanted, return_inverse=True)
    numbers = np.asarray([places.get(value, -1) for value in values.tolist()], dtype=np.int64)[
        index
    ]
    if (numbers < 0).any():
        first = int(np.argmax(numbers < 0))
        at = first if rows is None else int(rows[first])
        raise ValueError(
            f"y holds {labels.tolist()[at]!r} at index {at}, which is none of the model's classes: "
            f"{listed(classes)}."
        )
    return numbers


def listed(classes: Sequence[Any]) -> str:
    """The first classes, for a message."""
    more = ", ..." if len(classes) > _SHOWN else ""
    return ", ".join(map(repr, classes[:_SHOWN])) + more


def plain_labels(classes: np.ndarray) -> tuple[bool | int | float | str, ...]:
    """Labels as a model holds them: whole numbers are ints, also if they were floats."""
    if classes.dtype.kind == "f" and (np.abs(classes) < 2**53).all():
        classes = classes.astype(np.int64)
    return tuple(classes.tolist())


def _host_labels(y: Any, X: Array) -> np.ndarray:
    from sklearn.utils import column_or_1d

    given_as_array = arrays.is_array(y)
    labels: np.ndarray = as_array(y, "y")
    if labels.dtype.kind not in "biufUO":
        raise TypeError(
            f"y has dtype {labels.dtype}; labels may be whole numbers, booleans or text."
        )
    if labels.ndim != 1:  # a column is accepted with scikit-learn's warning, others are refused
        try:
            labels = np.asarray(column_or_1d(labels, warn=True))
        except ValueError as error:
            raise ValueError(
                f"y must have one dimension, (n_samples,), but its shape is {labels.shape}; "
                "several labels for a sample are not supported."
            ) from error
    if labels.shape[0] != X.shape[0]:
        raise ValueError(
            f"X and y have inconsistent numbers of samples: {X.shape[0]} and {labels.shape[0]}."
        )
    if given_as_array and labels.dtype.kind not in "UO":  # text is always on the host
        check_same_device(labels, "y", X)
    return labels


def _refuse_missing(y: Array) -> None:
    kind = arrays.dtype_name(y)
    if kind == "object":
        lacking = [index for index, label in enumerate(y) if is_missing(label)]
        kinds = {type(label).__name__ for label in y}
        if lacking:
            raise ValueError(f"y contains NaN or None, the first at index {lacking[0]}.")
        if not kinds <= {"str", "str_"} and any("str" in kind for kind in kinds):
            raise TypeError(f"y mixes labels of the kinds {', '.join(sorted(kinds))}; choose one.")
    elif "float" in kind:
        xp = arrays.namespace_of(y)
        for problem, where in (("NaN", xp.isnan(y)), ("infinity", xp.isinf(y))):
            if bool(xp.any(where)):
                at = int(xp.argmax(xp.astype(where, xp.int8)))
                raise ValueError(f"y contains {problem}, the first at index {at}.")


def _refuse_continuous(y: Array) -> None:
    if "float" not in arrays.dtype_name(y):
        if arrays.dtype_name(y) == "object":
            from sklearn.utils.multiclass import check_classification_targets

            check_classification_targets(y)
        return
    xp = arrays.namespace_of(y)
    fractional = y != xp.floor(y)
    if bool(xp.any(fractional)):
        found = float(y[int(xp.argmax(xp.astype(fractional, xp.int8)))])
        raise ValueError(
            f"Unknown label type: continuous. y holds {found:g}; a classifier needs classes, so "
            "whole numbers, booleans or text. Cut a quantity into classes first."
        )
