"""The run on a sparse table: as on a sorted one, with features that list what is not 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gpustump import arrays
from gpustump.engines.cpu.scanned import ScannedState
from gpustump.engines.cpu.split.sparse_splits import SparseSearch
from gpustump.learners.hypothesis import FIRST, MISSING, N_REGIONS, SECOND, Partition
from gpustump.learners.thresholds import rounded_down


class SparseState(ScannedState):
    """The state of one run; see `ScannedState`. Its table is a `SparseSorted`."""

    def _new_finder(self) -> Any:
        return SparseSearch(self.table, self.objective)

    def sums_over_each(self, hypotheses: Sequence[Partition]) -> np.ndarray:
        """`region_sums` of each of several splits; only listed samples are read."""
        samples, n_outputs = self.table.samples, len(self.loss.terms.gradient)
        found = np.zeros((len(hypotheses), N_REGIONS, n_outputs, 2), dtype=np.int64)
        for sums, split in zip(found, hypotheses, strict=True):
            rows, values = samples.listed(split.feature)
            dtype = arrays.dtype_name(values)
            end = rounded_down(np.asarray(split.thresholds[:1]), dtype)[0]
            is_left = values <= end  # false for NaN
            has_zeros, other = (FIRST, SECOND) if end >= 0 else (SECOND, FIRST)
            is_present = ~np.isnan(values)
            sums[other] = self._sum_of(rows[is_present & (is_left != (end >= 0))])
            sums[MISSING] = self._sum_of(rows[~is_present])
            sums[has_zeros] = self.sums.by_output - sums[other] - sums[MISSING]
        return found

    def _sum_of(self, samples: np.ndarray) -> np.ndarray:
        """The sums of both integers of some samples, (n_outputs, 2)."""
        gradient, hessian = self.loss.terms
        own = gradient[:, samples]
        other = hessian[:, samples] if len(hessian) else np.abs(own)
        return np.stack([own.sum(axis=1), other.sum(axis=1)], axis=1)
