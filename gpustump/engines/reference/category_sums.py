"""Sums of a round's integers over categories, on arrays of any library.

Samples are sorted by category once for each run.
"""

from __future__ import annotations

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.engines.category_columns import CategoryColumns
from gpustump.engines.reference.integers import Integers, sums_in_order


class SumsByCategory:
    """Adds up integers by category.

    Parameters
    ----------
    columns : CategoryColumns
    beside : array
        The sums are computed in its library and on its device.
    """

    def __init__(self, columns: CategoryColumns, beside: Array) -> None:
        xp, device = arrays.namespace_of(beside), arrays.device_of(beside)
        orders = np.argsort(columns.numbers, axis=1, kind="stable")
        self._orders = [xp.asarray(order, device=device) for order in orders]
        ends = np.cumsum(columns.counts, axis=1)
        self._ends = [xp.asarray(own, device=device) for own in ends]

    def __call__(self, integers: Integers) -> np.ndarray:
        """The sums, (n_columns, n_outputs, 2, n_numbers) of int64, on the host."""
        by_column = zip(self._orders, self._ends, strict=True)
        return np.stack([sums_in_order(integers, order, ends) for order, ends in by_column])
