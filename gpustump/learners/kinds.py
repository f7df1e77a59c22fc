"""All kinds of hypotheses: with a sign for each region or regions only; and in words."""

from __future__ import annotations

import math
from collections.abc import Callable

from gpustump.learners.category_split import CategorySplit, CategoryStump
from gpustump.learners.hypothesis import FIRST, Partition
from gpustump.learners.interval import Interval
from gpustump.learners.split import Split
from gpustump.learners.stump import Stump

AnyStump = Stump | Interval | CategoryStump
"""Hypotheses with a sign for each region."""

AnySplit = Split | CategorySplit
"""Hypotheses whose regions have votes that are kept beside them."""

OfCategories = CategorySplit | CategoryStump
"""Hypotheses about a categorical feature."""


def has_one_side(hypothesis: AnyStump | AnySplit) -> bool:
    """Whether the second region is empty: only missing values are apart from the first region."""
    if isinstance(hypothesis, OfCategories):
        return not hypothesis.right
    return hypothesis.thresholds[-1] == math.inf


_NAMED = 12
"""The most categories that are named; if there is only one more, it is named, too."""


def condition(
    hypothesis: Partition,
    name: str,
    *,
    number: Callable[[float], str] = "{:.6g}".format,
    at_most: str = "<=",
    category: Callable[[int], str] = str,
) -> str:
    """The condition under which a value is in the first region of a hypothesis, as text.

    Parameters
    ----------
    hypothesis : Partition
        Not a constant one, which has no condition.
    name : str
        What its feature is called.
    number : callable
        Writes a threshold.
    at_most : str
        The sign between a value and its upper bound.
    category : callable
        Writes the category with a number.

    Returns
    -------
    str
        "x <= 3" for a stump, "1 < x <= 3" for an interval, "x in {red, blue}" for categories, and
        "x is present" if only missing values are on the other side. If there are many categories,
        only the first are named.

    Examples
    --------
    >>> from gpustump import Interval, Stump
    >>> condition(Stump(0, 3.0, 1, 1, 0.2), "x"), condition(Interval(0, 1.0, 3.0, 1, 1, 0.2), "x")
    ('x <= 3', '1 < x <= 3')
    """
    if isinstance(hypothesis, OfCategories):
        return _of_categories(hypothesis, name, category)
    at = hypothesis.slices.index(FIRST)
    upper = hypothesis.thresholds[at]
    if upper == math.inf:
        return f"{name} is present"
    lower = f"{number(hypothesis.thresholds[at - 1])} < " if at else ""
    return f"{lower}{name} {at_most} {number(upper)}"


def _of_categories(split: OfCategories, name: str, category: Callable[[int], str]) -> str:
    if not split.right:
        return f"{name} is present"
    n_more = len(split.left) - _NAMED
    named = list(map(category, split.left if n_more <= 1 else split.left[:_NAMED]))
    return f"{name} in {{{', '.join(named + [f'{n_more} more'] * (n_more > 1))}}}"
