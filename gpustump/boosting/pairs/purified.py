"""Pure tables of pairs: what a single feature explains is moved into its main effect.

A table over two features may hold a part that depends on one of them only. Then the same model
could be written in many ways, and no shape function would mean anything by itself. So the weighted
mean of each row and each column is moved, in turns, until none is above the unit of votes
[Lengerich, Tan, Chang, Hooker and Caruana 2020]. Means are rounded to whole multiples of that unit,
so the sum of table and main effects stays the same, exactly. Weights are those of the samples
trained on.

Where few samples link two parts of a table, as those of two features that are almost the same, each
sweep moves a small share of what is left. Then the equations that say where the sweeps lead are
solved.
"""

from __future__ import annotations

import numpy as np

from gpustump.boosting.rounds.known_scores import in_vote_units
from gpustump.learners.step_table import VOTE_UNIT

_MOST_SWEEPS, _SWEEPS_AT_ONCE = 1000, 30
"""After each `_SWEEPS_AT_ONCE` the equations are solved."""

_WEAKEST_LINK = 2.0**-40
"""Parts that are linked by a smaller share of their weight count as apart: rounding would decide
what goes from one to the other."""


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
    for sweep in range(1, _MOST_SWEEPS + 1):
        of_rows = in_vote_units(_means(rest, weights))
        rest -= of_rows[:, np.newaxis]
        rows += of_rows
        means = _means(rest.swapaxes(0, 1), weights.T)
        if np.abs(means).max() <= VOTE_UNIT:  # rounded, they might go back and forth for ever
            break
        of_columns = in_vote_units(means if sweep % _SWEEPS_AT_ONCE else _limit(rest, weights))
        rest -= of_columns
        columns += of_columns
    return rest, rows, columns


def _means(table: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The weighted mean of each row, (k, n_outputs); 0 without weight.

    Running sums add up in order, so the last digit is the same on every machine.
    """
    total = np.cumsum(weights, axis=1)[:, -1:]
    weighted = np.cumsum(table * weights[..., np.newaxis], axis=1)[:, -1]
    found: np.ndarray = weighted / np.maximum(total, 1.0)
    return found


def _limit(table: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """What all further sweeps together move out of the columns: (m, n_outputs).

    Without the means of the rows, two columns are linked by the samples of the rows that they
    share. The columns are eliminated one after the other, by sums and quotients of links alone, so
    no link loses digits [Grassmann, Taksar and Heyman 1985]. Columns that are hardly linked to
    those that are left stay as they are, and so does what the others move relative to them.
    """
    by_row = weights / np.maximum(np.cumsum(weights, axis=1)[:, -1:], 1.0)
    links = np.cumsum(weights[:, :, np.newaxis] * by_row[:, np.newaxis], axis=0)[-1]
    left = (table - _means(table, weights)[:, np.newaxis]) * weights[..., np.newaxis]
    left = np.cumsum(left, axis=0)[-1]
    weight = np.cumsum(weights, axis=0)[-1]  # of a column, and of what it stands for
    to_fixed, pivots = np.zeros(len(left)), np.zeros(len(left))
    for k in range(len(left) - 1, -1, -1):
        pivot = np.cumsum(np.append(links[k, :k], to_fixed[k]))[-1]
        if pivot <= _WEAKEST_LINK * weight[k]:
            to_fixed[:k] += links[:k, k]
            continue
        share, pivots[k] = links[:k, k] / pivot, pivot
        links[:k, :k] += share[:, np.newaxis] * links[k, :k]
        to_fixed[:k] += share * to_fixed[k]
        left[:k] += share[:, np.newaxis] * left[k]
        weight[:k] += share * weight[k]
    found: np.ndarray = np.zeros_like(left)
    for k in np.flatnonzero(pivots).tolist():
        terms = np.append(left[k : k + 1], links[k, :k, np.newaxis] * found[:k], axis=0)
        found[k] = np.cumsum(terms, axis=0)[-1] / pivots[k]
    return found
