"""The best set of categories: which of them a split sends left, for every kind of votes.

A round has exact integer sums for each category c and output: A_c of the gradients, B_c of the
Hessians. A split sends a set of categories left and the others right. The search returns the set
whose split is worth most (`gain`).

With one output, the score is a convex function of the pair (A, B) summed over the set, for all
three kinds of votes: |A - A'| is, and so are -sqrt(P N) and A^2 / (B + lambda). A convex function
is largest at a corner of the polygon that the pairs of all sets span. The set of a corner holds the
categories whose ratio A_c / B_c is below some number, or those above it. So the best of all sets is
a prefix of the categories in order of A_c / B_c, which is the order of P_c / N_c [Fisher 1958;
Breiman, Friedman, Olshen and Stone 1984, section 4.2.2 and theorem 9.6]. If the best prefix holds
no category or all of them, it is best to leave them together; then other sets do not matter, as a
constant, or the split of all categories from missing values, is at least as good as all of them.
Ratios are compared exactly. The floating-point score of another set can exceed that of the best
prefix, but only by rounding errors.

With K outputs, sums lie in 2 K dimensions, and no order of the categories has that property. Each
output in turn orders the categories by its own ratios, and every prefix of these K orders is a
candidate, compared by the score of all outputs. This is a rule, not the optimum: it finds the best
split among K (C - 1) sets of C categories.

A rare category has too few samples to decide its side. So all categories with fewer than 10 samples
and less than 1% of the samples with a value form one group, whose categories go the same way in all
rounds. The best set is the best one that does not divide this group. So the sums need no smoothing,
and the votes keep the smoothing of their kind. (Of two categories one at least is not rare.)

Ties have an order. Among equally good sets of a feature, the first output's order wins, then the
shorter prefix; equal ratios are in order of the categories' numbers. The side with the lowest
number is the left one. A split of all categories from missing values is taken only if it is better
than all sets, and better than a constant.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from gpustump.engines.category_columns import (
    CategoryColumns,
    regions_of_numbers,
)
from gpustump.engines.contract import Cut, Sides, with_signs
from gpustump.engines.gain import Sums, gain_of, score_of_outputs
from gpustump.engines.objective import Objective
from gpustump.engines.threads import ranges
from gpustump.learners.hypothesis import N_REGIONS
from gpustump.learners.kinds import OfCategories

RARE_SAMPLES, RARE_PARTS = 10, 100
"""A category is rare if it has fewer samples than the first number, and less than one part in the
second number of those with a value."""

_RATIO_BITS = 125
"""Ratios are compared as whole multiples of 2**-125: different ratios of sums below 2**62 differ by
more than 2**-124."""

_ROUNDINGS = 2.0**-49
"""Quotients of sums in float64 that differ by more than this share are in the right order: each is
off by 2**-51 of itself at most."""

_BEHIND = 1e300
"""Larger than every ratio, so that places without a group are sorted last."""

_MOST_AT_ONCE = 2**18
"""How many sums of prefixes are in memory at once: there are many with many outputs and groups."""


@dataclass(frozen=True)
class Groups:
    """A feature's categories in groups that go the same way: each by itself, rare ones together.

    Attributes
    ----------
    members : tuple of tuple of int
        The category numbers of each group, in increasing order. The groups are in order of their
        lowest numbers.
    """

    members: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, counts: np.ndarray) -> Groups:
        """From the number of samples of each category, as in `CategoryColumns.counts`."""
        counts = counts[:-1]
        is_rare = (counts < RARE_SAMPLES) & (counts * RARE_PARTS < counts.sum()) & (counts > 0)
        alone = [(number,) for number in np.flatnonzero((counts > 0) & ~is_rare).tolist()]
        rare = tuple(np.flatnonzero(is_rare).tolist())
        return cls(tuple(sorted([*alone, rare] if rare else alone)))

    @cached_property
    def numbers(self) -> list[int]:
        """The numbers of all groups, increasing."""
        return sorted(number for own in self.members for number in own)

    def of_numbers(self, n_numbers: int) -> np.ndarray:
        """The group of each number of a category, (n_numbers,) of uint16.

        `n_numbers - 1` if it has none.
        """
        found = np.full(n_numbers, n_numbers - 1, dtype=np.uint16)
        for group, own in enumerate(self.members):
            found[list(own)] = group
        return found

    def sides(self, left: Sequence[int]) -> Sides:
        """The categories on both sides, given the groups on one; the lowest number goes left."""
        chosen = {*left}
        parts: tuple[list[int], list[int]] = ([], [])
        for group, own in enumerate(self.members):  # the first group has the lowest number
            parts[(group in chosen) != (0 in chosen)].extend(own)
        return Sides(*(tuple(sorted(part)) for part in parts))


class Categories(NamedTuple):
    """The categorical features of a table.

    Attributes
    ----------
    columns : CategoryColumns
        Of the samples that take part.
    groups : mapping of int to Groups
        Of each of these features.
    """

    columns: CategoryColumns
    groups: Mapping[int, Groups]


class CategorySums(NamedTuple):
    """A feature's sums in a round.

    Attributes
    ----------
    feature : int
    by_number : ndarray (n_outputs, 2, n_numbers) of int64
        For each output and category the sums of the gradients and of the Hessians.
    """

    feature: int
    by_number: np.ndarray

    def in_regions(self, hypothesis: OfCategories) -> np.ndarray:
        """The sums over each region of a split of this feature; see `State.region_sums`."""
        regions = regions_of_numbers(hypothesis, self.by_number.shape[-1])
        return self.over([np.flatnonzero(regions == own).tolist() for own in range(N_REGIONS)])

    def over(self, regions: Sequence[Sequence[int]]) -> np.ndarray:
        """The sums over some categories each, (n, n_outputs, 2) of int64."""
        return np.stack([self.by_number[:, :, list(own)].sum(axis=2) for own in regions])


class SetSearch:
    """Finds the best set of categories among all categorical features of a run.

    Parameters
    ----------
    groups : mapping
        For each categorical feature, in increasing order, its groups of categories.
    objective : Objective
    """

    def __init__(self, groups: Mapping[int, Groups], objective: Objective) -> None:
        self._objective = objective
        columns = [column for column, own in enumerate(groups.values()) if own.members]
        self._features, self._groups = [*groups], [*groups.values()]
        most = max((len(self._groups[column].members) for column in columns), default=1)
        size = 2 * objective.n_outputs**2 * most
        self._parts = [
            _Part(columns[low:high], self._groups)
            for low, high in ranges(len(columns), max(1, _MOST_AT_ONCE // size))
        ]

    def best(self, by_number: np.ndarray) -> Cut | None:
        """The best cut, from the features' sums (n_features, n_outputs, 2, n_numbers) of int64.

        None if no feature has a split. Of equally good cuts it is that of the lowest feature.
        """
        of_parts = (part.best(by_number, self._objective) for part in self._parts)
        found = max(filter(None, of_parts), key=lambda own: own.score, default=None)
        if found is None:
            return None
        sums = CategorySums(self._features[found.column], by_number[found.column])
        sides = self._groups[found.column].sides(found.left)
        cut = Cut(sums.feature, 0, 0, 0, found.score, categories=sides)
        if not self._objective.has_signs:
            return cut
        by_region = sums.over([sides.left, sides.right, [-1]])
        return with_signs(cut, by_region, self._objective)


class _Found(NamedTuple):
    """The place of a feature among the categorical ones, a score, and the groups on one side."""

    column: int
    score: float
    left: Sequence[int]


class _Part:
    """Some features whose sets are compared at once.

    Parameters
    ----------
    columns : sequence of int
        Their places among the categorical features; each has at least one group.
    groups : sequence of Groups
        Of all categorical features.
    """

    def __init__(self, columns: Sequence[int], groups: Sequence[Groups]) -> None:
        members = [(at, own) for at, column in enumerate(columns) for own in groups[column].members]
        self._columns = np.asarray(columns)
        self._n_groups = np.asarray([len(groups[column].members) for column in columns])
        self._group_at = np.asarray([at for at, _ in members])
        begins = np.cumsum(self._n_groups) - self._n_groups
        self._group_number = np.arange(len(members)) - begins[self._group_at]
        n_of_each = np.asarray([len(own) for _, own in members], dtype=np.int64)
        self._starts = np.cumsum(n_of_each) - n_of_each
        self._column_of_number = np.repeat(self._columns[self._group_at], n_of_each)
        self._numbers = np.asarray([number for _, own in members for number in own])

    def best(self, by_number: np.ndarray, objective: Objective) -> _Found | None:
        """The best set, of the first feature that has it; None if there is none."""
        # (n_columns, n_outputs, 2, most groups); 0 after a feature's last group.
        shape = (len(self._columns), *by_number.shape[1:3], int(self._n_groups.max()))
        of_groups = np.zeros(shape, dtype=np.int64)
        taken = by_number[self._column_of_number, :, :, self._numbers]
        of_groups[self._group_at, :, :, self._group_number] = np.add.reduceat(taken, self._starts)
        missing = by_number[self._columns, :, :, -1]
        scores, orders, at = _best_prefixes(of_groups, self._n_groups, missing, objective)
        first = int(np.argmax(scores))
        score = scores[first].item()
        if score == _nothing(scores):
            return None
        order, last = divmod(int(at[first]), of_groups.shape[3])
        left = orders[first, order, : last + 1].tolist()
        return _Found(int(self._columns[first]), score, left)


def _nothing(scores: np.ndarray) -> float:
    """Below all scores of this type."""
    return np.iinfo(scores.dtype).min if scores.dtype == np.int64 else -math.inf


def _best_prefixes(
    of_groups: np.ndarray, n_groups: np.ndarray, missing: np.ndarray, objective: Objective
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each feature the best prefix of all orders: its score, the orders, and its place.

    All groups of the last order are a prefix, too, if that is better than a constant: the split of
    all categories from missing values.

    Parameters
    ----------
    of_groups : ndarray (n_features, n_outputs, 2, most groups) of int64
        The sums of each group.
    n_groups : ndarray (n_features,) of int64
    missing : ndarray (n_features, n_outputs, 2) of int64
        The sums over the samples without a value.
    objective : Objective

    Returns
    -------
    scores : ndarray (n_features,)
        Int64 for discrete votes, otherwise float64; below all scores if a feature has no prefix.
    orders : ndarray (n_features, n_outputs, most groups) of int64
        Each output's order of the groups.
    places : ndarray (n_features,) of int64
        Which prefix it is: output * most groups + length of the prefix - 1.
    """
    n_features, n_outputs, _, most = of_groups.shape
    has_group = np.arange(most) < n_groups[:, np.newaxis]
    each_output = has_group.repeat(n_outputs, axis=0)
    orders = _orders(of_groups.reshape(-1, 2, most), each_output).reshape(-1, n_outputs, most)
    every = np.arange(n_features)
    features = every[:, np.newaxis, np.newaxis, np.newaxis]
    integers = np.arange(2)[:, np.newaxis, np.newaxis]
    present = of_groups.sum(axis=3)
    regions = []
    for output in range(n_outputs):
        in_order = of_groups[features, output, integers, orders[:, np.newaxis]]
        left = np.cumsum(in_order, axis=3)  # (n_features, 2, n_orders, most)
        whole, lacking = (side[:, output, :, np.newaxis, np.newaxis] for side in (present, missing))
        regions.append((_sums(left), _sums(whole - left), _sums(lacking)))
    scores = score_of_outputs(gain_of(objective), regions)
    is_prefix = (np.arange(most) < n_groups[:, np.newaxis] - 1)[:, np.newaxis].repeat(n_outputs, 1)
    # Each sample's Hessian is at least 1, so the sums tell which regions are empty.
    has_missing = missing[:, :, 1].any(axis=1)
    if has_missing.any():
        together, nothing = present + missing, _sums(np.zeros_like(present[:, 0]))
        constants = [(_sums(together[:, output]), nothing, nothing) for output in range(n_outputs)]
        constant, apart = score_of_outputs(gain_of(objective), constants), (every, -1, n_groups - 1)
        is_prefix[apart] = has_missing & (scores[apart] > constant)
    scores = np.where(is_prefix, scores, _nothing(scores)).reshape(n_features, -1)
    places = np.argmax(scores, axis=1)
    return scores[every, places], orders, places


def _sums(integers: np.ndarray) -> Sums:
    """From sums of gradients and of Hessians along the second axis."""
    return Sums(integers[:, 0], integers[:, 1])


def _orders(sums: np.ndarray, has_group: np.ndarray) -> np.ndarray:
    """For each row the order of the groups by the ratio of their sums (n_rows, 2, most groups).

    Places without a group come last; groups of equal ratios keep their order. Quotients in float64
    are in the order of the ratios if they are further apart than their roundings. In rows where
    some are not, the ratios are compared exactly.
    """
    gradient, hessian = sums[:, 0], np.maximum(sums[:, 1], 1)
    ratios = np.where(has_group, gradient / hessian, _BEHIND)
    orders = np.argsort(ratios, axis=1, kind="stable")
    ranked = ratios[np.arange(len(ratios))[:, np.newaxis], orders]
    size = np.maximum(np.abs(ranked[:, 1:]), np.abs(ranked[:, :-1]))
    is_near = (np.diff(ranked, axis=1) <= size * _ROUNDINGS) & (size > 0) & has_group[:, 1:]
    for row in np.flatnonzero(is_near.any(axis=1)).tolist():
        n_groups = int(has_group[row].sum())
        own = zip(gradient[row, :n_groups].tolist(), hessian[row, :n_groups].tolist(), strict=True)
        exact = [(a << _RATIO_BITS) // b for a, b in own]
        orders[row, :n_groups] = sorted(range(n_groups), key=exact.__getitem__)
    return orders
