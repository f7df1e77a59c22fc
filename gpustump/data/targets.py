"""Targets that are quantities, checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.data.input_arrays import as_array, check_vector
from gpustump.data.parameters import QuantityLossName

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
        y = _host_targets(y)
    y = check_vector(y, "y", X)
    with arrays.computing_on(y):
        xp = arrays.namespace_of(y)
        targets = xp.astype(y, xp.float64)
        for problem, where in (
            ("NaN", xp.isnan(targets)),
            ("infinity", xp.isinf(targets)),
            ("a number of 2**1000 or more", xp.abs(targets) >= MOST_TARGET),
        ):
            if bool(xp.any(where)):
                at = int(xp.argmax(xp.astype(where, xp.int8)))
                raise ValueError(f"y contains {problem}, the first at index {at}.")
        return targets


def check_signs(targets: Array, loss: QuantityLossName) -> None:
    """Refuse targets that a loss is not for.

    Raises
    ------
    ValueError
        If one is negative under Poisson or gamma loss, or 0 under gamma loss.
    """
    if loss == "squared_error":
        return
    xp = arrays.namespace_of(targets)
    is_wrong = targets < 0.0 if loss == "poisson" else targets <= 0.0
    if bool(xp.any(is_wrong)):
        at = int(xp.argmax(xp.astype(is_wrong, xp.int8)))
        wanted = "0 or more" if loss == "poisson" else "above 0"
        raise ValueError(
            f"y must be {wanted} for loss={loss!r}; got {float(targets[at])!r} at index {at}."
        )


def _host_targets(y: Any) -> Any:
    """Targets on the host as an array of numbers; a column is accepted with a warning."""
    from sklearn.utils import column_or_1d

    found = as_array(y, "y")
    if found.dtype.kind == "O":
        raise TypeError("Unknown label type: objects. y must hold real numbers for a regressor.")
    if found.ndim == 2 and found.shape[1] == 1:
        found = np.asarray(column_or_1d(found, warn=True))
    if found.ndim != 1:
        raise ValueError(
            f"y must have one dimension, (n_samples,), but its shape is {found.shape}; several "
            "targets for a sample are not supported."
        )
    return found
