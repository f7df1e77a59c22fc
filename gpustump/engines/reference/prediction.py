"""F(x) in any array library: one look-up for each step table.

For a NumPy table, the order keys of all thresholds are kept with the model, and the keys of the
rows are computed for all features at once. A few rows then take a tenth of a millisecond, no more
than the checks of the arguments. Of a sparse table only the values that it lists are looked up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array, SparseTable
from gpustump.learners.step_table import StepTable, StepTables
from gpustump.learners.thresholds import rounded_down

_AT_ONCE = 2**18
"""How many elements' keys are computed at once, so that they stay in the cache."""


def scores(
    X: Array,
    constant: np.ndarray,
    tables: Sequence[StepTable],
    layouts: dict[str, Any] | None = None,
    lacking: np.ndarray | None = None,
) -> Array:
    """The scores of each row of X (n_samples, n_features): float64 (n_samples, n_outputs).

    `layouts` and `lacking` are those of `engines.prediction.scores`.
    """
    if arrays.is_sparse(X) and tables and StepTables.of(tables).add_up_exactly(constant):
        return _scores_of_listed(X, constant, tables, lacking)
    if isinstance(X, np.ndarray) and tables:
        layouts = {} if layouts is None else layouts
        dtype = arrays.working_dtype(arrays.dtype_name(X))
        name = f"{dtype} by NumPy"
        layout = layouts.get(name)
        if layout is None:
            layout = layouts.setdefault(name, _layout(StepTables.of(tables), str(dtype)))
        n_rows = max(1, _AT_ONCE // len(tables))
        pieces = [X[start : start + n_rows] for start in range(0, len(X), n_rows)]
        return np.concatenate([_scores(piece, constant, layout, lacking) for piece in pieces])
    note_missing(X, tables, lacking)
    xp = arrays.namespace_of(X)
    start = xp.asarray(constant, device=arrays.device_of(X))
    score = xp.broadcast_to(start, (X.shape[0], len(constant)))
    for table in tables:
        score = score + table.look_up(X[:, table.feature])
    return score


def _scores_of_listed(
    X: SparseTable, constant: np.ndarray, tables: Sequence[StepTable], lacking: np.ndarray | None
) -> np.ndarray:
    """The scores of the rows of a sparse table: those of a row of zeros, and what differs."""
    of_zeros = [table.look_up(np.zeros(1, X.dtype))[0] for table in tables]
    found = np.repeat((constant + sum(of_zeros))[np.newaxis], len(X), axis=0)
    for table, of_zero in zip(tables, of_zeros, strict=True):
        rows, values = X.listed(table.feature)
        found[rows] += table.look_up(values) - of_zero
    note_missing(X, tables, lacking)
    return found


class _Layout(NamedTuple):
    """A model in the form that NumPy searches.

    Attributes
    ----------
    features : ndarray (n_tables,) of int64
    tables : list of (ndarray (k,), ndarray (k + 1, n_outputs))
        For each table the keys of its thresholds in the dtype of the rows, and the values of its
        steps.
    missing : int
        The key of NaN.
    """

    features: np.ndarray
    tables: list[tuple[np.ndarray, np.ndarray]]
    missing: int


def _layout(tables: StepTables, dtype: str) -> _Layout:
    keys = arrays.order_keys(rounded_down(tables.thresholds, dtype))
    own = np.split(keys, tables.starts[1:-1])
    outcomes = map(tables.outcomes, range(len(tables)))
    return _Layout(
        tables.features, list(zip(own, outcomes, strict=True)), arrays.missing_key(dtype)
    )


def _scores(
    rows: np.ndarray, constant: np.ndarray, layout: _Layout, lacking: np.ndarray | None
) -> np.ndarray:
    keys = arrays.order_keys(arrays.as_working(rows.T[layout.features]))
    if lacking is not None:
        lacking |= (keys == layout.missing).any(axis=1)
    found = np.repeat(constant[np.newaxis], len(rows), axis=0)
    for column, (thresholds, outcomes) in zip(keys, layout.tables, strict=True):
        found += outcomes.take(thresholds.searchsorted(column), axis=0)
    return found


def note_missing(X: Array, tables: Sequence[StepTable], lacking: np.ndarray | None) -> None:
    """Set `lacking` (n_tables,) to true for the tables whose feature is missing in some row."""
    if lacking is None or not tables or "float" not in arrays.dtype_name(X):
        return
    if arrays.is_sparse(X):
        listed = (X.listed(table.feature)[1] for table in tables)
        lacking |= np.asarray([np.isnan(values).any() for values in listed])
        return
    xp = arrays.namespace_of(X)
    with arrays.computing_on(X):
        used = xp.asarray([table.feature for table in tables], device=arrays.device_of(X))
        has_missing = xp.any(xp.isnan(xp.take(X, used, axis=1)), axis=0)
    lacking |= arrays.to_host(has_missing)
