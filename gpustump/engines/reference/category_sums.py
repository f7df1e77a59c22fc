"""Sums of a round's integers over categories, on arrays of any library.

Samples are sorted by category once for each run. A category's sum is the difference of two running
sums in that order, which is exact, as they are integers.
"""

from __future__ import annotations

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.engines.category_columns import CategoryColumns
from gpustump.engines.reference.integers import Integers, hessian_of


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
        ends, self._n_numbers = np.cumsum(columns.counts, axis=1), columns.n_numbers
        # The running sums start with 0, so the one at place n is the sum of n samples.
        self._ends = [xp.asarray(own, device=device) for own in ends]

    def __call__(self, integers: Integers) -> np.ndarray:
        """The sums, (n_columns, n_outputs, 2, n_numbers) of int64, on the host."""
        parts = [part for own in integers.outputs for part in (own.gradient, hessian_of(own))]
        xp = arrays.namespace_of(parts[0])
        running = [
            xp.take(
                xp.cumulative_sum(xp.take(part, order, axis=0), include_initial=True), ends, axis=0
            )
            for order, ends in zip(self._orders, self._ends, strict=True)
            for part in parts
        ]
        upto: np.ndarray = arrays.to_host(xp.stack(running))
        shape = (len(self._orders), len(integers.outputs), 2, self._n_numbers)
        return np.diff(upto, axis=1, prepend=0).reshape(shape)
