"""The best set of categories: which of them a split sends left, for every kind of votes.

A round has exact integer sums for each category c and output: A_c of the first integers, B_c of the
second ones. A split sends a set of categories left and the others right. The search returns the set
whose split is worth most (`worth`).

With one output, the score is a convex function of the pair (A, B) summed over the set, for all
three kinds of votes: |A - A'| is, and so are -sqrt(P N) and A^2 / (B + lambda). A convex function
is largest at a corner of the polygon that the pairs of all sets span. The set of a corner holds the
categories whose ratio A_c / B_c is below some number, or those above it. So the best of all sets is
a prefix of the categories in order of A_c / B_c, which is the order of P_c / N_c [Fisher 1958;
Breiman, Friedman, Olshen and Stone 1984, section 4.2.2 and theorem 9.6]. If the best prefix holds
no category or all of them, it is best to leave them together; then other sets do not matter, as a
constant, or the split of all categories from missing values, is at least as good as all of them.
Ratios are compared exactly. The floating-point score of another set may exceed that of the best
prefix by rounding errors only.

With K outputs, sums lie in 2 K dimensions, and no order of the categories has that property. Each
output in turn orders the categories by its own ratios, and every prefix of these K orders is a
candidate, weighed with the score of all outputs. This is a rule, not the optimum: it finds the best
split among K (C - 1) sets.

A rare category has few samples to tell its side. Categories of fewer than 10 samples and less than
1% of the samples with a value are taken together and go the same way, in all rounds. The best set
is the best one of those that do not part them. So the sums need no smoothing, and the votes keep
the smoothing of their kind. (Of two categories one at least is not rare.)

Ties have an order. Among equally good sets of a feature, the first output's order wins, then the
shorter prefix; equal ratios stand in order of the categories' numbers. The side with the lowest
number is the left one. A split of all categories from missing values is taken only if it is better
than all sets, and better than a constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gpustump.engines.category_columns import NO_CATEGORY, regions_of_numbers
from gpustump.engines.contract import Cut, RegionSums, Search, Sides, sign_of
from gpustump.engines.worth import Sums, score_of_outputs, worth_of
from gpustump.engines.worth_of_split import exact_score_of
from gpustump.learners.hypothesis import N_REGIONS
from gpustump.learners.kinds import OfCategories

RARE_SAMPLES, RARE_PARTS = 10, 100
"""A category is rare if it has fewer samples than this, and less than this part of them."""

_RATIO_BITS = 125
"""Ratios of sums below 2**62 that differ do so by more than 2**-124."""


@dataclass(frozen=True)
class Groups:
    """A feature's categories in groups that go the same way: each by itself, rare ones together.

    Attributes
    ----------
    members : tuple of tuple of int
        The numbers of each group, increasing. The groups are in order of their lowest numbers.
    """

    members: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, counts: np.ndarray) -> Groups:
        """From the number of samples of each category, (N_NUMBERS,) of int64."""
        counts = counts[:NO_CATEGORY]
        is_rare = (counts < RARE_SAMPLES) & (counts * RARE_PARTS < counts.sum()) & (counts > 0)
        alone = [(number,) for number in np.flatnonzero((counts > 0) & ~is_rare).tolist()]
        rare = tuple(np.flatnonzero(is_rare).tolist())
        return cls(tuple(sorted([*alone, rare] if rare else alone)))

    def sums(self, by_number: np.ndarray) -> np.ndarray:
        """The sums of each group, (..., n_groups), from those of each category, (..., N_NUMBERS).

        There is one group at least.
        """
        found: np.ndarray = np.add.reduceat(by_number[..., self._place], self._starts, axis=-1)
        return found

    @cached_property
    def _place(self) -> np.ndarray:
        """The numbers of all categories, group by group."""
        return np.asarray([number for own in self.members for number in own])

    @cached_property
    def _starts(self) -> np.ndarray:
        """Where each group begins among them."""
        return np.cumsum([0] + [len(own) for own in self.members[:-1]])

    def sides(self, left: Sequence[int]) -> Sides:
        """The categories on both sides, given the groups on one; the lowest goes left."""
        chosen = {*left}
        parts: tuple[list[int], list[int]] = ([], [])
        for group, own in enumerate(self.members):  # the first group has the lowest number
            parts[(group in chosen) != (0 in chosen)].extend(own)
        return Sides(*(tuple(sorted(part)) for part in parts))


class CategorySums(NamedTuple):
    """A feature's sums in a round.

    Attributes
    ----------
    feature : int
    by_number : ndarray (n_outputs, 2, N_NUMBERS) of int64
        For each output and category the sums of the first and of the second integers.
    """

    feature: int
    by_number: np.ndarray

    def in_regions(self, hypothesis: OfCategories) -> RegionSums:
        """The same for each region of a split of this feature."""
        regions = regions_of_numbers(hypothesis)
        return [self.over(np.flatnonzero(regions == own).tolist()) for own in range(N_REGIONS)]

    def over(self, numbers: Sequence[int]) -> list[tuple[int, int]]:
        """For each output the sums of both integers over some categories."""
        chosen = self.by_number[:, :, list(numbers)].sum(axis=2)
        return [(first, second) for first, second in chosen.tolist()]


def best_set(sums: CategorySums, groups: Groups, search: Search) -> Cut | None:
    """The best cut of a categorical feature; None if it has none."""
    if not groups.members:
        return None
    of_groups = groups.sums(sums.by_number)
    present, missing = of_groups.sum(axis=2), sums.by_number[:, :, NO_CATEGORY]
    best = _best_prefix(of_groups, present, missing, search)
    apart = _apart(present, missing, search)
    if apart is not None and (best is None or apart > best.score):
        best = _Found(apart, range(len(groups.members)))
    if best is None:
        return None
    sides = groups.sides(best.left)
    polarity = missing_sign = 0
    if search.has_signs:
        (left, _), (right, _) = sums.over(sides.left)[0], sums.over(sides.right)[0]
        lacking = int(missing[0, 0])
        polarity, missing_sign = sign_of(left - right), sign_of(lacking or left + right)
    return Cut(sums.feature, 0, polarity, missing_sign, best.score, categories=sides)


class _Found(NamedTuple):
    """A score, and the groups on one side."""

    score: float
    left: Sequence[int]


def _best_prefix(
    of_groups: np.ndarray, present: np.ndarray, missing: np.ndarray, search: Search
) -> _Found | None:
    """The best prefix of all orders, from the sums (n_outputs, 2, n_groups); None for one group."""
    n_outputs, _, n_groups = of_groups.shape
    if n_groups == 1:
        return None
    orders = np.asarray([_order(first.tolist(), second.tolist()) for first, second in of_groups])
    regions = []
    for output in range(n_outputs):
        left = np.cumsum(of_groups[output][:, orders], axis=2)[:, :, :-1]  # (2, n_orders, n - 1)
        right = present[output][:, np.newaxis, np.newaxis] - left
        regions.append((Sums(*left), Sums(*right), Sums(*missing[output].reshape(2, 1, 1))))
    scores = score_of_outputs(worth_of(search), regions)
    order, last = divmod(int(np.argmax(scores)), n_groups - 1)
    return _Found(scores[order, last].item(), orders[order, : last + 1].tolist())


def _order(first: list[int], second: list[int]) -> list[int]:
    """The groups by the ratio of their sums, exactly; equal ones in their own order."""
    ratios = [(a << _RATIO_BITS) // max(b, 1) for a, b in zip(first, second, strict=True)]
    return sorted(range(len(ratios)), key=ratios.__getitem__)


def _apart(present: np.ndarray, missing: np.ndarray, search: Search) -> float | None:
    """What it is worth to part all categories from missing values; None if a constant is as good.

    Each sample counts one or more in its second integers, so their sums tell which are empty.
    """
    if not missing[:, 1].any():
        return None
    parts = [[(a, b) for a, b in part.tolist()] for part in (present, missing)]
    nothing = [(0, 0)] * len(present)
    together = [(a, b) for a, b in (present + missing).tolist()]
    apart = exact_score_of([parts[0], nothing, parts[1]], search)
    constant = exact_score_of([together, nothing, nothing], search)
    return apart if apart > constant else None
