"""Sums of a round's integers over categories: one pass over the samples for each feature."""

from __future__ import annotations

import functools
import operator

import numpy as np

from gpustump.engines.category_columns import CategoryColumns
from gpustump.engines.cpu.loss.terms import Terms
from gpustump.engines.cpu.runtime.compiling import kernel
from gpustump.engines.threads import Team, ranges

_SAMPLES_AT_ONCE = 2**17
"""Fewer samples than this are not worth another thread."""


def category_sums(columns: CategoryColumns, terms: Terms, team: Team) -> np.ndarray:
    """The sums, (n_columns, n_outputs, 2, n_numbers) of int64."""
    n_columns, n_samples = columns.numbers.shape
    shape = (len(terms.gradient), 2, columns.n_numbers)
    parts: list[list[np.ndarray]] = [[] for _ in range(n_columns)]

    def add(piece: tuple[int, tuple[int, int]]) -> None:
        column, (low, high) = piece
        sums = np.zeros(shape, dtype=np.int64)
        _add(columns.numbers[column], *terms, low, high, sums)
        parts[column].append(sums)

    pieces = ranges(n_samples, _SAMPLES_AT_ONCE)
    team.each(add, [(column, piece) for column in range(n_columns) for piece in pieces])
    return np.stack([functools.reduce(operator.add, own) for own in parts])


@kernel("void(uint16[::1], int64[:, ::1], int64[:, ::1], int64, int64, int64[:, :, ::1])")
def _add(numbers, gradient, hessian, low, high, sums):  # type: ignore[no-untyped-def]
    """Add up samples `low` to `high`; if `hessian` is empty, absolute values of the gradients."""
    for output in range(len(gradient)):
        own, gradients, hessians = gradient[output], sums[output, 0], sums[output, 1]
        if len(hessian) == 0:
            for i in range(low, high):
                gradients[numbers[i]] += own[i]
                hessians[numbers[i]] += abs(own[i])
        else:
            other = hessian[output]
            for i in range(low, high):
                gradients[numbers[i]] += own[i]
                hessians[numbers[i]] += other[i]
