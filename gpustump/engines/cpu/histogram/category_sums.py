"""Sums of a round's integers over categories: one pass over the samples for each feature."""

from __future__ import annotations

import numpy as np

from gpustump.engines.category_columns import CategoryColumns
from gpustump.engines.cpu.loss.terms import Terms
from gpustump.engines.cpu.runtime.crew import parallel
from gpustump.engines.threads import Team

_SAMPLES_AT_ONCE = 2**15
"""Fewer samples than this are not worth another thread."""


def category_sums(columns: CategoryColumns, terms: Terms, team: Team) -> np.ndarray:
    """The sums, (n_columns, n_outputs, 2, n_numbers) of int64."""
    n_columns, n_samples = columns.numbers.shape
    n_parts, size = team.pieces(n_samples, _SAMPLES_AT_ONCE)
    shape = (n_columns, n_parts, len(terms.gradient), 2, columns.n_numbers)
    sums = np.zeros(shape, dtype=np.int64)
    n_pieces, at_once = team.pieces(n_columns * n_parts, 1)
    team.run(_add, n_pieces, columns.numbers, *terms, size, at_once, sums)
    found: np.ndarray = sums.sum(axis=1)
    return found


@parallel(
    "void(int64, uint16[:, ::1], int64[:, ::1], int64[:, ::1], int64, int64,"
    " int64[:, :, :, :, ::1])"
)
def _add(piece, all_numbers, gradient, hessian, size, at_once, all_sums):  # type: ignore[no-untyped-def]
    """Add up `size` samples for one column, `at_once` times; if `hessian` is empty, absolute values
    of the gradients."""
    n_columns, n_parts = all_sums.shape[:2]
    for one in range(piece * at_once, min((piece + 1) * at_once, n_columns * n_parts)):
        column, part = one // n_parts, one % n_parts
        low, high = part * size, (part + 1) * size
        numbers, sums = all_numbers[column, low:high], all_sums[column, part]
        for output in range(len(gradient)):
            own, gradients, hessians = gradient[output, low:high], sums[output, 0], sums[output, 1]
            other = hessian[output, low:high] if len(hessian) > 0 else own
            for i in range(len(numbers)):
                gradients[numbers[i]] += own[i]
                hessians[numbers[i]] += abs(other[i])
