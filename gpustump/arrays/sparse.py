"""A table most of whose values are 0: each column lists the rows of the others, and their values.

Engines, models and pictures read a table column by column, and a column of a sparse table is an
ordinary NumPy array, made when it is asked for. What works on all columns at once reads `starts`,
`rows` and `values` instead, so the table is never made dense.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpustump.arrays.order_keys import working_dtype


@dataclass(frozen=True, eq=False)
class SparseTable:
    """A table (n_samples, n_features) of float32 or float64.

    A missing value is listed, as NaN. No 0 is listed.

    Attributes
    ----------
    n_samples : int
    starts : ndarray (n_features + 1,) of int64
        Where the list of each column begins; last, where that of the last one ends.
    rows : ndarray (n_listed,) of int32 or int64
        In each column in increasing order, each at most once.
    values : ndarray (n_listed,) of float32 or float64
    """

    n_samples: int
    starts: np.ndarray
    rows: np.ndarray
    values: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        return self.n_samples, len(self.starts) - 1

    @property
    def ndim(self) -> int:
        return 2

    @property
    def dtype(self) -> np.dtype:
        return self.values.dtype

    @property
    def device(self) -> str:
        return "cpu"

    @property
    def n_listed(self) -> int:
        """How many values are not 0."""
        return len(self.rows)

    def __len__(self) -> int:
        return self.n_samples

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        """That of its columns."""
        return np

    def __getitem__(self, key: Any) -> Any:
        """A column `[:, j]` or rows of it `[rows, j]`, as an ndarray; else `[rows]`, a table.

        Rows are a slice, an array of different row numbers, or one of booleans.
        """
        rows, feature = key if isinstance(key, tuple) else (key, slice(None))
        if isinstance(feature, int | np.integer):
            column = self.dense([int(feature)])[:, 0]
            return column if isinstance(rows, slice) and rows == slice(None) else column[rows]
        n_features = self.shape[1]
        if isinstance(feature, slice) and feature.indices(n_features) == (0, n_features, 1):
            if isinstance(rows, slice) and rows == slice(None):
                return self
            return self.with_rows(np.arange(self.n_samples)[rows])
        raise TypeError("a sparse table gives one column at a time, or all of them.")

    def listed(self, feature: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows of a column whose value is not 0, and their values."""
        own = slice(self.starts[feature], self.starts[feature + 1])
        return self.rows[own], self.values[own]

    def value(self, row: int, feature: int) -> Any:
        """One value, as a NumPy scalar."""
        rows, values = self.listed(feature)
        at = int(np.searchsorted(rows, row))
        return values[at] if at < len(rows) and rows[at] == row else self.dtype.type(0)

    def with_rows(self, rows: np.ndarray) -> SparseTable:
        """The table of some rows, (n_rows,) of different numbers, in the order given."""
        place = np.full(self.n_samples, -1, dtype=self.rows.dtype)
        place[rows] = np.arange(len(rows))
        new = place[self.rows]
        kept = new >= 0
        before = np.concatenate([[0], np.cumsum(kept)])
        starts, new, values = before[self.starts], new[kept], self.values[kept]
        if len(rows) > 1 and not (rows[1:] > rows[:-1]).all():  # lists are in the order of rows
            order = np.lexsort((new, np.repeat(np.arange(len(starts) - 1), np.diff(starts))))
            new, values = new[order], values[order]
        return SparseTable(len(rows), starts, new, values)

    def dense(self, features: Sequence[int] | None = None) -> np.ndarray:
        """Some columns, or all, side by side, (n_samples, n)."""
        wanted = range(self.shape[1]) if features is None else features
        found = np.zeros((self.n_samples, len(wanted)), dtype=self.dtype)
        for place, feature in enumerate(wanted):
            rows, values = self.listed(feature)
            found[rows, place] = values
        return found


def is_sparse(x: Any) -> bool:
    """Whether a checked table is a sparse one."""
    return isinstance(x, SparseTable)


def from_scipy(X: Any) -> SparseTable:
    """The table of a sparse matrix or array of SciPy, (n_samples, n_features) of real numbers.

    Entries of one place are added up in the matrix's own type, as SciPy does. Zeros and negative
    zeros that are stored are left out. The matrix is not changed.
    """
    csc = X.tocsc()
    if not csc.has_canonical_format:
        csc = csc.copy() if csc is X or np.shares_memory(csc.data, X.data) else csc
        csc.sum_duplicates()
    dtype = working_dtype(str(csc.dtype))
    starts, rows = csc.indptr.astype(np.int64), csc.indices
    values = csc.data.astype(dtype, copy=False)
    kept = values != 0  # true for NaN
    if not kept.all():
        before = np.concatenate([[0], np.cumsum(kept)])
        starts, rows, values = before[starts], rows[kept], values[kept]
    is_short = X.shape[0] < 2**31
    rows = rows.astype(np.int32 if is_short else np.int64, copy=False)
    return SparseTable(int(X.shape[0]), starts, rows, values)
