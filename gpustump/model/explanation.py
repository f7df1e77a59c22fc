"""Explanations: each feature's contribution to a score, and its importance over a table.

F(x) is the sum of a constant and one step function of each feature. So a feature's contribution to
a sample's score is the value of its step function. Contributions are whole multiples of
`VOTE_UNIT`, as votes are, and add up to the score exactly, in any order. (Votes made by hand may be
other numbers; then sums are rounded as usual.)

A feature's importance over a table measures how much its contributions differ. It is computed from
the weight of the samples on each step, in integers and rational numbers, so it is the same number
in every library and on every device.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array, SparseTable
from gpustump.arrays.moving import moved_to_device_of
from gpustump.engines.integer_weights import IntegerWeights
from gpustump.engines.prediction import quick_to_compute_in
from gpustump.learners.pair_table import PairTable
from gpustump.learners.step_table import Categories, CategoryTable, StepTable
from gpustump.learners.thresholds import rounded_down

if TYPE_CHECKING:
    from gpustump.model.classes import Label
    from gpustump.model.ensemble import StumpEnsemble

_AT_ONCE = 64
"""How many columns are stacked at once: XLA takes minutes to compile a stack of thousands."""


def contributions(
    X: Array,
    intercepts: np.ndarray,
    tables: Sequence[StepTable],
    pairs: Sequence[PairTable],
    n_features: int,
) -> Array:
    """The contribution of each feature and pair to each output of F(x), and the intercepts.

    Parameters
    ----------
    X : array (n_samples, n_features)
    intercepts : ndarray (n_outputs,) of float64
    tables : sequence of StepTable
        With values (k, n_outputs); at most one for each feature.
    pairs : sequence of PairTable
        With values (k, m, n_outputs).
    n_features : int

    Returns
    -------
    array (n_samples, n_outputs, n_features + n_pairs + 1) of float64
        For a sparse table, a list of SciPy's sparse arrays: for each output one of shape
        (n_samples, n_features + n_pairs + 1), with what differs from a row of zeros.
    """
    if arrays.is_sparse(X):
        return _sparse_contributions(X, intercepts, tables, pairs, n_features)
    given, X = X, quick_to_compute_in(X)
    xp, device = arrays.namespace_of(X), arrays.device_of(X)
    nothing = xp.zeros((X.shape[0], len(intercepts)), dtype=xp.float64, device=device)
    columns = [nothing, nothing + xp.asarray(intercepts, device=device)]
    # All features without a stump share a column.
    places = np.zeros(n_features + len(pairs) + 1, dtype=np.int64)
    places[-1] = 1
    for table in tables:
        places[table.feature] = len(columns)
        columns.append(table.look_up(X[:, table.feature]))
    for number, pair in enumerate(pairs):
        places[n_features + number] = len(columns)
        columns.append(pair.look_up(X))
    starts = range(0, len(columns), _AT_ONCE)
    stacked = [xp.stack(columns[start : start + _AT_ONCE], axis=2) for start in starts]
    found = xp.take(xp.concat(stacked, axis=2), xp.asarray(places, device=device), axis=2)
    return moved_to_device_of(found, given)


def _sparse_contributions(
    X: SparseTable,
    intercepts: np.ndarray,
    tables: Sequence[StepTable],
    pairs: Sequence[PairTable],
    n_features: int,
) -> list[Any]:
    """`contributions` against those of a row of zeros, which the intercepts take over."""
    from scipy.sparse import csc_array  # the caller has imported it

    width, intercepts = n_features + len(pairs) + 1, intercepts.copy()
    columns: dict[int, tuple[np.ndarray, np.ndarray]] = {}
    for table in tables:
        of_zero = table.look_up(np.zeros(1, dtype=X.dtype))[0]
        rows, values = X.listed(table.feature)
        columns[table.feature] = rows, table.look_up(values) - of_zero
        intercepts += of_zero
    for place, pair in enumerate(pairs, n_features):
        of_zero = pair.look_up(np.zeros((1, n_features), dtype=X.dtype))[0]
        change = pair.look_up(X) - of_zero
        rows = np.flatnonzero(change.any(axis=1))
        columns[place] = rows, change[rows]
        intercepts += of_zero
    every = np.arange(len(X))
    columns[width - 1] = every, np.broadcast_to(intercepts, (len(X), len(intercepts)))
    counts = np.zeros(width + 1, dtype=np.int64)
    counts[[place + 1 for place in columns]] = [len(rows) for rows, _ in columns.values()]
    rows = np.concatenate([rows for rows, _ in columns.values()])
    return [
        csc_array(
            (
                np.concatenate([values[:, output] for _, values in columns.values()]),
                rows,
                np.cumsum(counts),
            ),
            shape=(len(X), width),
        )
        for output in range(len(intercepts))
    ]


def importances(
    X: Array,
    rows: Array | None,
    weights: Array | None,
    members: Sequence[Sequence[StepTable]],
    pairs: Sequence[PairTable],
    n_features: int,
) -> np.ndarray:
    """The share of each feature and pair in the spread of contributions; see `spread`.

    Parameters
    ----------
    X : array (n_samples_given, n_features)
    rows : array (n_samples,) of int, or None
        The rows that take part; None for all.
    weights : array (n_samples,) of float64, or None
        Their weights; None for equal ones.
    members : sequence of sequences of StepTable
        The step functions of each member; the spreads of all members are added up.
    pairs : sequence of PairTable
        With values (k, m, n_outputs); the spreads of all outputs are added up.
    n_features : int

    Returns
    -------
    ndarray (n_features + n_pairs,) of float64
    """
    X, rows, weights = map(quick_to_compute_in, (X, rows, weights))
    integers = None if weights is None else IntegerWeights.of(weights).values
    by_feature: dict[int, list[StepTable]] = {}
    for table in itertools.chain.from_iterable(members):
        by_feature.setdefault(table.feature, []).append(table)
    found = [Fraction(0)] * n_features
    for feature, tables in by_feature.items():
        on_steps = weights_on_steps(arrays.picked(X[:, feature], rows), integers, tables)
        spreads = (
            spread(t.outcomes.tolist(), own) for t, own in zip(tables, on_steps, strict=True)
        )
        found[feature] = sum(spreads, Fraction(0))
    if pairs:
        taken = arrays.picked(X, rows)
        taken = taken if arrays.is_sparse(X) else arrays.to_host(taken)
        host = None if integers is None else arrays.to_host(integers)
        found += [_spread_of_pair(pair, taken, host) for pair in pairs]
    total = sum(found)
    return np.asarray([float(one / total) if one else 0.0 for one in found])


def weights_on_steps(
    column: Array, weights: Array | None, tables: Sequence[StepTable]
) -> Iterator[list[int]]:
    """For each table of a feature the weight of the samples on each of its k steps, and of those
    without a value: k + 1 ints.

    Parameters
    ----------
    column : array (n_samples,)
        The feature's values.
    weights : array (n_samples,) of int64, or None
        None if each sample has weight 1.
    tables : sequence of StepTable
    """
    xp, device = arrays.namespace_of(column), arrays.device_of(column)
    column = arrays.as_working(column)
    keys, dtype, running = arrays.order_keys(column), arrays.dtype_name(column), None
    if weights is None:
        keys = xp.sort(keys)
    else:
        order = xp.argsort(keys)
        keys = xp.take(keys, order, axis=0)
        running = xp.cumulative_sum(xp.take(weights, order, axis=0), include_initial=True)
    for table in tables:
        thresholds = arrays.order_keys(rounded_down(table.thresholds, dtype))
        ends = np.append(thresholds, arrays.missing_key(dtype)).astype(thresholds.dtype)
        found = xp.searchsorted(keys, xp.asarray(ends, device=device), side="right")
        upto = arrays.integers(found if running is None else xp.take(running, found, axis=0))
        yield [upper - lower for lower, upper in zip([0, *upto], upto, strict=False)]


def _spread_of_pair(pair: PairTable, X: np.ndarray, weights: np.ndarray | None) -> Fraction:
    """The spread of a pair's contributions, added up over the outputs."""
    first, second = pair.bins_of(X)
    cells = first * pair.axes[1].n_bins + second
    on_cells = np.zeros(pair.n_cells, dtype=np.int64)
    np.add.at(on_cells, cells, 1 if weights is None else weights)
    values = pair.values.reshape(pair.n_cells, -1)
    spreads = (spread(own.tolist(), on_cells.tolist()) for own in values.T)
    return sum(spreads, Fraction(0))


def spread(outcomes: Sequence[float], on_steps: Sequence[int]) -> Fraction:
    """The mean absolute deviation of a function from its mean.

    Parameters
    ----------
    outcomes : sequence of float
        Its values on each step, or in each cell.
    on_steps : sequence of int
        The weight of the samples there, as `weights_on_steps` gives it.
    """
    ratios = [value.as_integer_ratio() for value in outcomes]
    unit = max(divisor for _, divisor in ratios)  # all are powers of two
    heights = [number * (unit // divisor) for number, divisor in ratios]
    total = sum(on_steps)
    weighted_sum = sum(w * height for w, height in zip(on_steps, heights, strict=True))
    deviation = sum(
        w * abs(height * total - weighted_sum) for w, height in zip(on_steps, heights, strict=True)
    )
    return Fraction(deviation, unit * total * total)


def step_table_of(model: StumpEnsemble, feature: int, label: Label | None) -> StepTable:
    """The step function of a feature, also of a categorical one; errors as for `shape_function`."""
    number = model.output_index(label)
    nothing = StepTable(feature, np.asarray([np.inf]), np.zeros(1), 0.0)
    every = (one._step_tables[number][1] for one in (model, *model.bag_models))
    table, *bags = (
        next((own for own in tables if own.feature == feature), nothing) for tables in every
    )
    if not bags:
        return table
    # The thresholds of the average are those of all bags.
    steps = [np.searchsorted(own.thresholds, table.thresholds) for own in bags]
    rows = [np.append(own.values[at], own.missing) for own, at in zip(bags, steps, strict=True)]
    return replace(table, bags=np.stack(rows))


def by_category(table: StepTable, categories: Categories | None) -> StepTable | CategoryTable:
    """The values of a categorical feature's categories, from its step function; else the table."""
    if categories is None:
        return table
    steps = table.steps_of(np.asarray([*_by_number(categories)], dtype=np.float64))
    bags = None if table.bags is None else table.bags[:, np.append(steps, -1)]
    return CategoryTable(table.feature, categories, table.values[steps], table.missing, bags)


def _by_number(categories: Categories) -> dict[int, str]:
    """The names of categories by their numbers. Without names the numbers are the names."""
    return {own if isinstance(own, int) else k: str(own) for k, own in enumerate(categories)}


def categories_of(model: StumpEnsemble, feature: int) -> Mapping[int, str] | None:
    """The names of a categorical feature's categories by their numbers; None for other features."""
    categories = model._categories.get(feature)
    return None if categories is None else _by_number(categories)
