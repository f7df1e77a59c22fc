"""One boosting run on arrays of any library: weights, scores, and the best cut.

Written for any hypothesis, any votes and any factors; the compiled engines are compared with it.
"""

from __future__ import annotations

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.data.parameters import Learner
from gpustump.engines.contract import Cut, RegionWeights, Step, Totals
from gpustump.engines.integer_weights import in_units, reweighted, signed
from gpustump.engines.reference.interval_scan import best_interval
from gpustump.engines.reference.stump_scan import best_stump
from gpustump.engines.reference.table import ArrayTable
from gpustump.learners.hypothesis import N_REGIONS, Hypothesis, regions

_SEARCHES = {"stump": best_stump, "interval": best_interval}


class ArrayState:
    """The state of one run; see `engines.contract.State`.

    Parameters
    ----------
    table : ArrayTable
    labels : array (n_samples,) of float64
        -1.0 or 1.0.
    sample_weight : array (n_samples,) of float64
        Positive.
    learner : str
        "stump" or "interval".
    """

    def __init__(
        self, table: ArrayTable, labels: Array, sample_weight: Array, learner: Learner
    ) -> None:
        self._table, self._labels = table, labels
        self._search = _SEARCHES[learner]
        self._xp = arrays.namespace_of(labels)
        self._weights = in_units(sample_weight)
        self._signed = signed(self._weights, labels)
        self._first_weights = self._xp.abs(self._signed.values)
        self._first_weight = self._signed.weight
        self._scores = self._xp.zeros_like(labels)
        # Factors stand in one row: those of label -1, region by region, then those of label +1.
        is_positive = self._xp.astype(labels > 0, self._xp.int64)
        self._label_offset = is_positive * N_REGIONS
        self._totals: Totals | None = None  # worked out when asked for

    @property
    def totals(self) -> Totals:
        """Sums over all samples."""
        if self._totals is None:
            is_wrong = (self._scores > 0) != (self._labels > 0)
            wrong = int(self._xp.sum(self._xp.where(is_wrong, self._first_weights, 0)))
            self._totals = Totals(
                signed=self._signed.total,
                weight=self._signed.weight,
                misclassified=wrong,
                first_weight=self._first_weight,
                n_samples=self._table.n_samples,
            )
        return self._totals

    @property
    def weights(self) -> Array:
        """Float64 weights (n_samples,); the integers are these, rounded up."""
        return self._weights

    def smallest_weight(self) -> int:
        """The smallest integer weight."""
        return int(self._xp.min(self._xp.abs(self._signed.values)))

    def best_cut(self) -> Cut:
        """The largest cut; see `best_stump` and `best_interval`."""
        return self._search(self._table, self._signed)

    def region_weights(self, hypothesis: Hypothesis) -> RegionWeights:
        """For each region the weight of its samples labelled -1, and of those labelled +1."""
        xp, units = self._xp, self._signed.values
        region = self._regions(hypothesis)
        zero = xp.zeros_like(units)
        sums = [
            xp.sum(xp.where((region == r) & ((self._labels > 0) == is_positive), units, zero))
            for r in range(N_REGIONS)
            for is_positive in (False, True)
        ]
        found = [abs(one) for one in arrays.integers(xp.stack(sums))]
        return list(zip(found[::2], found[1::2], strict=True))

    def advance(self, step: Step) -> None:
        """Add a step's votes to the scores, and multiply the weights by its factors."""
        region = self._regions(step.hypothesis)
        self._scores = self._scores + self._picked(step.votes, region)
        negative, positive = zip(*step.factors, strict=True)
        factor = self._picked(negative + positive, region + self._label_offset)
        self._weights = reweighted(self._weights, factor)
        self._signed = signed(self._weights, self._labels)
        self._totals = None

    def _regions(self, hypothesis: Hypothesis) -> Array:
        return regions(hypothesis, self._table.values(hypothesis.feature))

    def _picked(self, numbers: tuple[float, ...], places: Array) -> Array:
        """The number at each sample's place, float64 (n_samples,)."""
        xp, device = self._xp, arrays.device_of(places)
        return xp.take(xp.asarray(numbers, dtype=xp.float64, device=device), places, axis=0)
