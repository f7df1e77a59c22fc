"""Pure tables of pairs: what a single feature explains is moved into its main effect.

A table over two features may hold a part that depends on one of them only. Then the same model
could be written in many ways, and no shape function would mean anything by itself. So the weighted
mean of each row and each column is moved, in turns, until none is above the unit of votes
[Lengerich, Tan, Chang, Hooker and Caruana 2020]. Means are rounded to whole multiples of that unit,
so the sum of table and main effects stays the same, exactly. Weights are those of the samples
trained on.
"""

from __future__ import annotations

import numpy as np

from gpustump.learners.step_table import VOTE_UNIT

_MOST_SWEEPS = 10_000
"""Where few samples link two parts of a table, a sweep moves a small share of what is left."""


def purified(table: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Move the means out of a table.

    Parameters
    ----------
    table : ndarray (k, m, n_outputs) of float64
        Whole multiples of `VOTE_UNIT`.
    weights : ndarray (k, m) of float64
        Not negative. Rows and columns without weight stay as they are.

    Returns
    -------
    table : ndarray (k, m, n_outputs) of float64
    rows : ndarray (k, n_outputs) of float64
    columns : ndarray (m, n_outputs) of float64
        table + rows + columns is the table as it was.
    """
    rest = table.copy()
    rows, columns = np.zeros_like(table[:, 0]), np.zeros_like(table[0])
    for _ in range(_MOST_SWEEPS):
        of_rows = _means(rest, weights)
        rest -= of_rows[:, np.newaxis]
        of_columns = _means(rest.swapaxes(0, 1), weights.T)
        rest -= of_columns
        rows += of_rows
        columns += of_columns
        # Rounded means may go to and fro by a unit for ever.
        if max(np.abs(of_rows).max(), np.abs(of_columns).max()) <= VOTE_UNIT:
            break
    return rest, rows, columns


def _means(table: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The weighted mean of each row, rounded to the unit: (k, n_outputs).

    Running sums add up in order, so the last digit is the same on every machine.
    """
    total = np.cumsum(weights, axis=1)[:, -1:]
    weighted = np.cumsum(table * weights[..., np.newaxis], axis=1)[:, -1]
    found: np.ndarray = np.rint(weighted / np.maximum(total, 1.0) / VOTE_UNIT) * VOTE_UNIT
    return np.where(total > 0, found, 0.0)
