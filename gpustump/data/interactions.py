"""Which pairs of features a fit may learn, checked: a number, a share, or the pairs themselves."""

from __future__ import annotations

import itertools
import math
import numbers
from collections.abc import Sequence
from typing import Any, NamedTuple

from gpustump.data.readable import shown, suggestion

ARGUMENT = "interactions"

USUAL_SHARE, MOST_USUAL = 3.0, 100
"""What "auto" stands for: so many pairs a feature, but at most the second number."""

_WANTED = (
    f'{ARGUMENT} must be a whole number of pairs, 0 or more; a number a feature such as "3x"; '
    '"auto"; or a list of pairs of features, by index or name'
)


class Interactions(NamedTuple):
    """Which pairs a fit is to learn.

    Attributes
    ----------
    number : int
        The most pairs.
    chosen : tuple of (int, int), or None
        Pairs of features, the lower one first; None if the fit chooses them.
    """

    number: int
    chosen: tuple[tuple[int, int], ...] | None = None


def check_form(value: Any) -> None:
    """Check what can be checked before the features are known.

    Raises
    ------
    ValueError, TypeError
        If the value is none of the forms that `check_interactions` takes.
    """
    if isinstance(value, str):
        _share_of(value)
    elif isinstance(value, bool) or not isinstance(value, numbers.Integral | Sequence):
        raise TypeError(f"{_WANTED}; got {shown(value)}.")
    elif isinstance(value, numbers.Integral) and value < 0:
        raise ValueError(f"{_WANTED}; got {shown(value)}.")


def check_interactions(
    value: Any, n_features: int, feature_names: Sequence[str] | None
) -> Interactions:
    """Interactions as users give them.

    Parameters
    ----------
    value : int, str, or sequence of pairs
        A number of pairs; a number a feature, such as "3x" or "0.5x"; "auto" for what
        `USUAL_SHARE` and `MOST_USUAL` say; or pairs of indices or names.
    n_features : int
    feature_names : sequence of str, or None

    Raises
    ------
    ValueError, TypeError
        If the value is none of these, or names no feature, or one twice.
    """
    check_form(value)
    most = n_features * (n_features - 1) // 2
    if isinstance(value, str):
        share = _share_of(value)
        number = math.ceil(n_features * (USUAL_SHARE if share is None else share))
        return Interactions(min(number, most, MOST_USUAL if share is None else most))
    if isinstance(value, numbers.Integral):
        return Interactions(min(int(value), most))
    names = None if feature_names is None else list(map(str, feature_names))
    found = []
    for pair in value:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise ValueError(f"{_WANTED}; one of them is {shown(pair)}.")
        first, second = sorted(_feature(own, n_features, names) for own in pair)
        if first == second:
            raise ValueError(f"{ARGUMENT} must pair two features; got {shown(pair)}.")
        found.append((first, second))
    found = [own for own, _ in itertools.groupby(sorted(found))]
    return Interactions(len(found), tuple(found))


def _share_of(value: str) -> float | None:
    """The number of pairs a feature that a text asks for; None for "auto"."""
    if value == "auto":
        return None
    try:
        share = float(value.removesuffix("x"))
    except ValueError:
        share = math.nan
    if not value.endswith("x") or not 0.0 <= share < math.inf:
        raise ValueError(f"{_WANTED}; got {value!r}.")
    return share


def _feature(given: Any, n_features: int, names: Sequence[str] | None) -> int:
    """The index of a feature that a pair names."""
    if isinstance(given, str):
        if names is None:
            raise ValueError(
                f"{ARGUMENT} names {given!r}, but the features of X have no names. Pass indices, "
                "or a frame whose column names are text."
            )
        if given not in names:
            raise ValueError(
                f"{ARGUMENT} names {given!r}, which X does not have.{suggestion(given, names)}"
            )
        return names.index(given)
    if isinstance(given, bool) or not isinstance(given, numbers.Integral):
        raise TypeError(f"{ARGUMENT}: a feature must be an index or a name; got {shown(given)}.")
    if not -n_features <= int(given) < n_features:
        raise ValueError(
            f"{ARGUMENT}: X has {n_features} features, 0 to {n_features - 1}; got {given}."
        )
    return int(given) % n_features
