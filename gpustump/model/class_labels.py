"""The labels of a model's classes: what they may be, and the array that holds them exactly.

Training takes its labels from one array, so they are all text, all booleans or all numbers, and no
two are equal. A file that claims anything else is refused: `predict` could not return its labels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gpustump.data.readable import is_text, shown

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
    for place, label in enumerate(classes):
        if not _is_label(label):
            raise ValueError(
                f"classes[{place}] must be text, true, false or a number of at most 64 bits that "
                f"is finite; got {shown(label)}."
            )
    _check_kinds(classes)
    _check_different(classes)
    _check_array(classes)


def _is_label(value: object) -> bool:
    if type(value) is int:
        return -(2**63) <= value < 2**64
    if type(value) is float:
        return math.isfinite(value)  # JSON has no infinity
    return type(value) is bool or is_text(value)


def _kind(label: Label) -> str:
    return {str: "text", bool: "true or false"}.get(type(label), "a number")


def _check_kinds(classes: list[Label]) -> None:
    for place, label in enumerate(classes):
        if _kind(label) != _kind(classes[0]):
            raise ValueError(
                f"classes must be of one kind; classes[0] is {_kind(classes[0])}, classes[{place}] "
                f"is {_kind(label)}: {shown(label)}."
            )


def _check_different(classes: list[Label]) -> None:
    places: dict[Label, int] = {}
    for place, label in enumerate(classes):
        if label in places:
            raise ValueError(
                f"classes must all be different; classes[{places[label]}] and classes[{place}] are "
                f"{shown(label)}."
            )
        places[label] = place


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
