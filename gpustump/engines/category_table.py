"""A prepared table with categorical features: an engine's own table, and the search for sets.

The engine keeps the samples, and searches the features that have thresholds. In its search all
values of a categorical feature count as missing, so it finds no cut of such a feature. It also adds
up its integers by category. From these sums the best set of categories is found here, on the host
(`category_search`), so it is the same with every engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Protocol, cast

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.engines.batched_rounds import BatchMaker, ValidationSamples, VoteRule
from gpustump.engines.category_columns import CategoryColumns
from gpustump.engines.category_search import Categories, CategorySums, Groups, SetSearch
from gpustump.engines.contract import (
    Beginning,
    Cut,
    PreparedTable,
    QuantileState,
    State,
    Step,
    Totals,
    Trainer,
    WrappedTable,
)
from gpustump.engines.objective import Objective
from gpustump.learners.hypothesis import Partition
from gpustump.learners.kinds import OfCategories


class SummingState(State, Protocol):
    """A state that adds up its integers by category."""

    def category_sums(self, columns: CategoryColumns) -> np.ndarray:
        """This round's sums over each category: (n_columns, n_outputs, 2, n_numbers) of int64.

        The third axis holds the sums of the gradients and of the Hessians. On the last axis,
        the last place has the sums over the samples without a category.
        """


def hidden(values: Array, first: int, categorical: Sequence[int]) -> Array:
    """Values (n_samples, n) of neighbouring features, with NaN for all categorical ones.

    The first column is that of feature `first`. Without categorical features it is `values` itself.
    """
    places = [feature - first for feature in categorical]
    inside = [place for place in places if 0 <= place < values.shape[1]]
    if not inside:
        return values
    values = arrays.as_working(values)
    xp, device = arrays.namespace_of(values), arrays.device_of(values)
    is_hidden = np.zeros((1, values.shape[1]), dtype=bool)
    is_hidden[0, inside] = True
    return xp.where(xp.asarray(is_hidden, device=device), xp.full_like(values, np.nan), values)


class CategoryTable(WrappedTable):
    """A table with categorical features.

    Parameters
    ----------
    inner : PreparedTable
        The engine's table; its states are `SummingState`.
    columns : CategoryColumns
        Of the samples that take part.
    """

    def __init__(self, inner: PreparedTable, columns: CategoryColumns) -> None:
        super().__init__(inner)
        self.columns = columns

    @cached_property
    def n_missing(self) -> np.ndarray:
        found = np.array(self.inner.n_missing)
        found[list(self.columns.features)] = self.columns.n_missing
        return found

    @cached_property
    def groups(self) -> dict[int, Groups]:
        """For each categorical feature its categories in groups; see `category_search.Groups`."""
        pairs = zip(self.columns.features, self.columns.counts, strict=True)
        return {feature: Groups.of(counts) for feature, counts in pairs}


def with_sets(trainer: Trainer, columns: CategoryColumns | None) -> Trainer:
    """A trainer whose runs also search sets of categories; the same one without such columns."""
    if columns is None:
        return trainer

    def start_on(
        table: CategoryTable,
        labels: Array,
        sample_weight: Array,
        objective: Objective,
        beginning: Beginning | None,
    ) -> CategoryState:
        state = trainer.start(labels, sample_weight, objective, beginning)
        return CategoryState(table, cast(SummingState, state), objective)

    return Trainer(CategoryTable(trainer.table, columns), start_on)


class CategoryState:
    """One run of boosting on a table with categorical features; see `contract.State`.

    Parameters
    ----------
    table : CategoryTable
    inner : SummingState
        The engine's state.
    objective : Objective
    """

    def __init__(self, table: CategoryTable, inner: SummingState, objective: Objective) -> None:
        self._table, self._inner = table, inner
        self._sets = SetSearch(table.groups, objective)
        self._sums: np.ndarray | None = None  # computed when first needed in a round

    @property
    def totals(self) -> Totals:
        """Sums over all samples."""
        return self._inner.totals

    @property
    def weights(self) -> Array:
        """See `engines.contract.State.weights`."""
        return self._inner.weights

    def smallest_weight(self) -> int:
        """The smallest Hessian."""
        return self._inner.smallest_weight()

    def best_cut(self) -> Cut:
        """The largest cut, of thresholds and of sets of categories."""
        best = self._sets.best(self._category_sums())
        return max([self._inner.best_cut(), *([] if best is None else [best])])

    def region_sums(self, hypothesis: Partition) -> np.ndarray:
        """See `engines.contract.State`."""
        sums, features = self._sums, self._table.columns.features
        # The sums are known if this round's search has asked for them.
        if sums is None or not isinstance(hypothesis, OfCategories):
            return self._inner.region_sums(hypothesis)
        if hypothesis.feature not in features:
            return self._inner.region_sums(hypothesis)
        own = sums[features.index(hypothesis.feature)]
        return CategorySums(hypothesis.feature, own).in_regions(hypothesis)

    def sums_over_each(self, hypotheses: Sequence[Partition]) -> np.ndarray:
        """`region_sums` of each of several hypotheses."""
        plain = [own for own in hypotheses if not isinstance(own, OfCategories)]
        if len(plain) < len(hypotheses):
            self._category_sums()
        of_plain = iter(self._inner.sums_over_each(plain))
        return np.asarray(
            [
                self.region_sums(own) if isinstance(own, OfCategories) else next(of_plain)
                for own in hypotheses
            ]
        )

    def region_quantiles(self, hypothesis: Partition | None, ranks: Sequence[int]) -> list[float]:
        """See `engines.contract.QuantileState`."""
        return cast(QuantileState, self._inner).region_quantiles(hypothesis, ranks)

    def advance(self, step: Step) -> None:
        """Add a step's votes to the scores, and multiply weights or odds by its factors."""
        if step.cut is not None and step.cut.categories is not None:
            step = replace(step, cut=None)  # the engine knows no cut of this feature
        self._inner.advance(step)
        self._sums = None

    @property
    def batch_maker(
        self,
    ) -> Callable[[VoteRule, ValidationSamples | None], BatchMaker | None] | None:
        """Begins batches (see `engines.batched_rounds`); None where nothing can.

        They are made between rounds, when no sums are kept.
        """
        begin = getattr(self._inner, "batch_maker", None)
        if begin is None:
            return None
        categories = Categories(self._table.columns, self._table.groups)
        return lambda rule, validation: begin(rule, validation, categories)

    def _category_sums(self) -> np.ndarray:
        if self._sums is None:
            self._sums = self._inner.category_sums(self._table.columns)
        return self._sums
