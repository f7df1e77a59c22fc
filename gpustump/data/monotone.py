"""Monotone constraints on features, checked: the forms that scikit-learn's estimators take."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpustump import arrays
from gpustump.data.readable import listed, shown, suggestion

ARGUMENT = "monotonic_cst"

Constraints = tuple[int, ...]
"""For each feature 1 (the score must not fall as the feature rises), -1 (not rise), or 0 (free)."""


def check_monotone(
    value: Any, n_features: int, feature_names: Sequence[str] | None
) -> Constraints | None:
    """Constraints as users give them.

    Parameters
    ----------
    value : array-like (n_features,), dict from feature names, or None
        Of -1, 0 and 1.
    n_features : int
    feature_names : sequence of str, or None
        None if the features have no names.

    Returns
    -------
    tuple (n_features,) of int, or None
        None if nothing is constrained.

    Raises
    ------
    ValueError
        If a value is not -1, 0 or 1, if there are too few or too many values, if a name is not that
        of a feature, or if the features have no names.
    TypeError
        If it is neither a sequence of numbers nor a dict.
    """
    if value is None:
        return None
    if isinstance(value, Mapping):
        found = _by_name(value, feature_names)
    else:
        found = _by_place(value, n_features)
    return found if any(found) else None


def _by_name(value: Mapping[Any, Any], feature_names: Sequence[str] | None) -> Constraints:
    if feature_names is None:
        raise ValueError(
            f"{ARGUMENT} is a dict, whose keys are names, but the features of X have no names. "
            "Pass one number for each feature, or a frame whose column names are text."
        )
    names = list(map(str, feature_names))
    unknown = [name for name in value if name not in names]
    if unknown:
        hint = suggestion(unknown[0], names) if isinstance(unknown[0], str) else ""
        raise ValueError(f"{ARGUMENT} names {listed(unknown)}, which X does not have.{hint}")
    return tuple(_checked(value.get(name, 0), f"{ARGUMENT}[{name!r}]") for name in names)


def _by_place(value: Any, n_features: int) -> Constraints:
    if arrays.is_array(value):
        value = arrays.to_host(value)
    try:
        each = np.asarray(value)
    except ValueError:
        each = np.asarray(None)
    if each.ndim != 1 or each.dtype.kind not in "biufO":
        raise TypeError(
            f"{ARGUMENT} must be a sequence of -1, 0 or 1, one for each feature, or a dict from "
            f"feature names to them; got {shown(value)}."
        )
    if len(each) != n_features:
        raise ValueError(
            f"{ARGUMENT} has {len(each)} values, but X has {n_features} features. Pass one for "
            "each feature, 0 for those without a constraint."
        )
    return tuple(_checked(own, f"{ARGUMENT}[{k}]") for k, own in enumerate(each.tolist()))


def _checked(value: Any, name: str) -> int:
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number or value not in (-1, 0, 1):
        raise ValueError(f"{name} must be -1, 0 or 1; got {shown(value)}.")
    return int(value)
