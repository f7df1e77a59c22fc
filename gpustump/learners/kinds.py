"""All kinds of hypotheses: those with a sign for each region, and those with regions only."""

from __future__ import annotations

import math

from gpustump.learners.category_split import CategorySplit, CategoryStump
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
