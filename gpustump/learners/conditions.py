"""A hypothesis in words, for people: "x <= 3", "1 < x <= 3"."""

from __future__ import annotations

import math
from collections.abc import Callable

from gpustump.learners.hypothesis import FIRST, Partition


def condition(
    hypothesis: Partition,
    name: str,
    *,
    number: Callable[[float], str] = "{:.6g}".format,
    at_most: str = "<=",
) -> str:
    """The condition under which a value is in the first region of a hypothesis, as text.

    Parameters
    ----------
    hypothesis : Stump, Interval or Split
        Not a constant one: that has no condition.
    name : str
        What its feature is called.
    number : callable
        Writes a threshold.
    at_most : str
        The sign between a value and its upper bound.

    Returns
    -------
    str
        "x <= 3" for a stump, "1 < x <= 3" for an interval, and "x is present" if only missing
        values are on the other side.

    Examples
    --------
    >>> from gpustump import Interval, Stump
    >>> condition(Stump(0, 3.0, 1, 1, 0.2), "x"), condition(Interval(0, 1.0, 3.0, 1, 1, 0.2), "x")
    ('x <= 3', '1 < x <= 3')
    """
    at = hypothesis.slices.index(FIRST)
    upper = hypothesis.thresholds[at]
    if upper == math.inf:
        return f"{name} is present"
    lower = f"{number(hypothesis.thresholds[at - 1])} < " if at else ""
    return f"{lower}{name} {at_most} {number(upper)}"
