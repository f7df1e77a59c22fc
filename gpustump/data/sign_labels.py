"""Labels -1 and +1, checked: the labels of one run of boosting."""

from __future__ import annotations

from typing import Any, NamedTuple

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.data.input_arrays import check_vector
from gpustump.data.sample_weights import check_weights


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
    is_sign = (y == 1.0) | (y == -1.0)
    if not bool(xp.all(is_sign)):
        if bool(xp.any(xp.isnan(y))):
            raise ValueError("y contains NaN; every sample needs a label, -1 or +1.")
        found = float(y[int(xp.argmin(xp.astype(is_sign, xp.int8)))])
        raise ValueError(f"y must hold the labels -1 and +1 only, but it also holds {found:g}.")
    check_both_signs(y, "y")
    return y


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


def check_both_signs(y: Array, name: str) -> None:
    """Refuse labels that are all +1 or all -1; `name` is what a message calls them."""
    xp = arrays.namespace_of(y)
    if not bool(xp.any(y > 0)) or not bool(xp.any(y < 0)):
        raise ValueError(
            f"{name} holds the label {int(y[0]):+d} only, but the classifier needs samples of two "
            "classes, -1 and +1."
        )
