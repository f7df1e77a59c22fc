"""The region of each sample under a hypothesis that no search has just found.

For a cut that a search has found, the regions follow from its bins (`regions`). For other splits
they follow from the codes of their feature, for intervals and sets of categories from its values.
"""

from __future__ import annotations

import numpy as np

from gpustump import arrays
from gpustump.engines.cpu.loss.coded_splits import is_coded, mark_by_codes
from gpustump.engines.cpu.runtime.compiling import kernel
from gpustump.engines.cpu.table.codes import CodedTable
from gpustump.engines.threads import Team, ranges
from gpustump.learners.hypothesis import MISSING, Partition, regions
from gpustump.learners.thresholds import rounded_down

_SAMPLES_AT_ONCE = 2**16
_MOST_ENDS = 2
"""The most thresholds that are compared one by one; sets of categories have more."""


class KnownRegions:
    """The region of each sample under the hypothesis that was marked last.

    Parameters
    ----------
    table : CodedTable
    found : ndarray (n_samples,) of uint8
        The regions are written here.
    """

    def __init__(self, table: CodedTable, found: np.ndarray) -> None:
        self._table, self._found = table, found
        self._hypothesis: Partition | None = None

    def mark(self, hypothesis: Partition) -> None:
        """Find the regions, unless they are known."""
        if self._hypothesis is not hypothesis:
            self.forget()
            if is_coded(self._table, hypothesis):
                mark_by_codes(self._table, hypothesis, self._found)
            else:
                values = self._table.values(hypothesis.feature)
                mark_regions(hypothesis, values, self._table.team, self._found)
            self._hypothesis = hypothesis

    def forget(self) -> None:
        """Call this before something else is written to the array."""
        self._hypothesis = None


def mark_regions(hypothesis: Partition, values: np.ndarray, team: Team, found: np.ndarray) -> None:
    """Write the number of each sample's region to `found`.

    Parameters
    ----------
    hypothesis : Partition
    values : ndarray (n_samples,)
        The feature's values in the dtype in which they are compared.
    team : Team
    found : ndarray (n_samples,) of uint8
    """
    dtype = arrays.dtype_name(values)
    ends = arrays.order_keys(rounded_down(np.asarray(hypothesis.thresholds), dtype)).tolist()
    if len(ends) > _MOST_ENDS or dtype not in ("float32", "float64"):
        found[:] = regions(hypothesis, values)
        return
    bits = values.view("int" + dtype.removeprefix("float"))
    lowest, missing = -arrays.missing_key(dtype) - 1, MISSING
    infinity = int(np.asarray(np.inf, dtype).view(bits.dtype))
    first, *more, last = hypothesis.slices
    between = more[0] if more else last
    upper = ends[-1]
    team.each(
        lambda part: _mark(
            bits, lowest, infinity, ends[0], upper, first, between, last, missing, found, *part
        ),
        ranges(len(values), _SAMPLES_AT_ONCE),
    )


@kernel(
    "void(Array(BITS, 1, 'A', readonly=True), int64, int64, int64, int64, int64, int64, int64,"
    " int64, uint8[::1], int64, int64)",
    BITS=("int32", "int64"),
)
def _mark(bits, lowest, infinity, lower, upper, first, between, last, missing, found, low, high):  # type: ignore[no-untyped-def]
    """Mark the samples from `low` to `high`, whose keys are those of `arrays.order_keys`."""
    for i in range(low, high):
        own = np.int64(bits[i])
        key = lowest - own if own < 0 else own
        region = last
        region = between if key <= upper else region
        region = first if key <= lower else region
        found[i] = missing if abs(key) > infinity else region
