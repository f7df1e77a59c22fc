"""A split as the kernels find it, and the order in which splits compare.

The order is that of `contract.Cut`. Kernels cannot compare Python objects, so `comes_before`
defines it a second time, for all kernels; a test compares the two.
"""

from __future__ import annotations

from typing import NamedTuple

from gpustump.engines.contract import NO_CUT, Cut
from gpustump.engines.cpu.runtime.compiling import group, inner


@group
class Found(NamedTuple):
    """A split of a feature.

    Attributes
    ----------
    agreement : int
        Less than 0 if there is no split.
    feature : int
    after : int
        Sorted position of the last sample before an interval; `STUMP` for a stump.
    position : int
        Sorted position of the last sample on the left of a stump, or inside an interval.
    polarity : int
        +1 or -1: the sign of the first region.
    missing : int
        +1 or -1: the sign of the region of missing values; not compared.
    """

    agreement: int
    feature: int
    after: int
    position: int
    polarity: int
    missing: int


STUMP = -1
"""`Found.after` of a stump: less than any position, so stumps come before intervals."""

NOTHING = Found(-1, 0, STUMP, 0, 1, 1)


def as_cut(found: Found) -> Cut:
    """The same as a `contract.Cut`; `NO_CUT` if there is no split."""
    if found.agreement < 0:
        return NO_CUT
    after = None if found.after == STUMP else found.after
    return Cut(found.feature, found.position, found.polarity, found.missing, found.agreement, after)


@inner("boolean(Found, Found)")
def comes_before(one, other):  # type: ignore[no-untyped-def]
    """Whether one split is better than another one: whether its `Cut` is larger."""
    if one.agreement != other.agreement:
        return one.agreement > other.agreement
    if one.feature != other.feature:
        return one.feature < other.feature
    if one.after != other.after:
        return one.after < other.after
    if one.position != other.position:
        return one.position < other.position
    return one.polarity > other.polarity


@inner("Found(Found, Found)")
def better(one, other):  # type: ignore[no-untyped-def]
    """The better one of two splits."""
    return one if comes_before(one, other) else other


@inner("UniTuple(int64, 6)(Found)")
def fields_of(found):  # type: ignore[no-untyped-def]
    """The fields as a plain tuple, for kernels called from Python: they cannot return groups.

    See `compiling`.
    """
    agreement, feature, after, position, polarity, missing = found
    return agreement, feature, after, position, polarity, missing


@inner("int64(int64, int64)")
def sign_for_missing(missing, present):  # type: ignore[no-untyped-def]
    """The sign of missing values: their own heavier label, or that of all samples if equal."""
    return 1 if missing > 0 or (missing == 0 and present >= 0) else -1
