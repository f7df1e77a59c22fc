"""All kinds of hypotheses, by what they say: a sign for each region, or nothing but the regions."""

from __future__ import annotations

import math

from gpustump.learners.category_split import CategorySplit, CategoryStump
from gpustump.learners.interval import Interval
from gpustump.learners.split import Split
from gpustump.learners.stump import Stump

AnyStump = Stump | Interval | CategoryStump
"""Hypotheses with a sign for each region."""

AnySplit = Split | CategorySplit
"""Hypotheses whose regions vote numbers that stand beside them."""

OfCategories = CategorySplit | CategoryStump
"""Hypotheses about a categorical feature."""


def has_one_side(hypothesis: AnyStump | AnySplit) -> bool:
    """Whether no value lies right: a split of the values that are present from the missing ones."""
    if isinstance(hypothesis, OfCategories):
        return not hypothesis.right
    return hypothesis.thresholds[-1] == math.inf
