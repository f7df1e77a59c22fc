"""What votes of regions remember of each bin: how far the shares of its two sums are apart.

Under real, Newton and shared votes the weights of all samples change in every round, but those of
samples with the same label nearly alike: by the factors of the regions that they lie in. So where
in a bin half of its positive weight lies hardly changes. When a bin is looked into, it is noted how
far the share of its positive weight left of a cut was ahead of that of its negative weight, and the
other way round. From one round to the next each share changes by at most

    (sqrt(r) - 1) / (sqrt(r) + 1) = tanh(ln(r) / 4)

where r is the largest factor of that label over the smallest: a share s becomes s a / (s a + t b)
with t = 1 - s and a / b between 1/r and r, which moves s most where s / t is sqrt(b/a). These
movements are added up for all bins at once.

The integers are weights rounded up, each by less than one unit; so the shares of the weights and of
the integers differ by twice the number of samples over the integers' sum, at most. That is part of
what is noted and of what is returned, with room for the rounding of the weights themselves.

No weight falls below a floor, far below one unit. There weights do not follow the factors, and once
they grow again their shares are others. It matters only where all weights of a label in a bin have
become small; such a bin is forgotten in the round in which its integers say so, and all bins are
where nobody has looked at the integers between two steps.
"""

from __future__ import annotations

import numpy as np

from gpustump.engines.contract import Search, Step
from gpustump.engines.cpu.bin_layout import BinLayout
from gpustump.engines.cpu.compiling import kernel
from gpustump.engines.cpu.slices import Slices

_ROUNDINGS = 2.0**-40
"""How far roundings of the weights move a share in a round, at most: each is 2**-52 of a weight."""

_UNITS = 1024
"""The largest weights are below 2**62 units and rounded by 2**-53 of that for each output."""


class Drift:
    """The memory of one run.

    Parameters
    ----------
    layout : BinLayout
    search : Search
    """

    def __init__(self, layout: BinLayout, search: Search) -> None:
        self._search = search
        self._stride = 3 if search.votes == "newton" else 2
        n_slots = len(layout.offset)
        n_inside = np.diff(layout.offset, append=0)
        self._n_units = 4.0 * np.maximum(n_inside, 0) + _UNITS * (search.n_outputs + 4)
        self._noted = np.full((2 * search.n_outputs, n_slots), np.inf)
        self._moved = np.zeros(search.n_outputs)
        self._is_seen = True

    def ahead(self, sums: np.ndarray) -> np.ndarray:
        """How far a share may be ahead, (2 * n_outputs, n_slots); see `slices.Slices`.

        Bins with hardly any weight are forgotten here.
        """
        self._is_seen = True
        found = np.empty_like(self._noted)
        _ahead_now(self._noted, self._moved, sums, self._stride, self._n_units, found)
        return found

    def learn(self, slots: np.ndarray, units: Slices) -> None:
        """Note the bins whose units are known."""
        _note_ahead(slots, units, self._moved, self._stride, self._n_units, self._noted)

    def follow(self, step: Step) -> None:
        """The weights have followed a step."""
        if not self._is_seen:
            self._noted[:] = np.inf
        self._is_seen = False
        factors = np.asarray(step.factors)  # (n_regions, n_outputs, 2)
        if self._search.votes == "newton":
            factors = self._of_probabilities(factors)
        least, most = factors.min(axis=0), factors.max(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = np.where(least > 0.0, np.log(most) - np.log(least), np.inf)
        self._moved += np.tanh(spread / 4).sum(axis=1) + _ROUNDINGS

    def _of_probabilities(self, factors: np.ndarray) -> np.ndarray:
        """By what the first integers change at least and at most, as two more regions each."""
        if self._search.n_outputs == 1:
            # u / (1 + u) changes by a factor between 1 and that of u.
            return np.concatenate([factors, np.ones_like(factors[:1])])
        # A probability is multiplied by its factor, and divided by a mean of all of them; the sum
        # of the others lies between the extremes.
        least, most = factors.min(axis=1, keepdims=True), factors.max(axis=1, keepdims=True)
        own = np.concatenate([factors / least, factors / most])
        others = np.concatenate(np.broadcast_arrays(most / least + 0 * factors, least / most))
        own[..., 1] = others[..., 1]  # of the sample's class: all other probabilities together
        return own


@kernel("void(float64[:, ::1], float64[::1], int64[:, ::1], int64, float64[::1], float64[:, ::1])")
def _ahead_now(noted, moved, sums, stride, n_units, found):  # type: ignore[no-untyped-def]
    """What was noted, what has moved since, and how far shares of integers are off."""
    for output in range(len(moved)):
        positive, negative = sums[stride * output], sums[stride * output + 1]
        for s in range(len(n_units)):
            off = n_units[s] / float(positive[s]) + n_units[s] / float(negative[s])
            for ahead in (2 * output, 2 * output + 1):
                if off >= 1.0:  # for good: see above
                    noted[ahead, s] = np.inf
                found[ahead, s] = min(1.0, noted[ahead, s] + moved[output] + off)


@kernel("void(int64[::1], Slices, float64[::1], int64, float64[::1], float64[:, ::1])")
def _note_ahead(slots, units, moved, stride, n_units, noted):  # type: ignore[no-untyped-def]
    """Note how far a share is ahead of the other at the cuts inside some bins."""
    for output in range(len(moved)):
        more_p, more_n = units.sums[stride * output], units.sums[stride * output + 1]
        for t in range(len(slots)):
            start, end = units.first[t], units.first[t] + units.n_units[t]
            positive, negative = float(more_p[start:end].sum()), float(more_n[start:end].sum())
            p, n, by_positive, by_negative = 0, 0, 0.0, 0.0
            for u in range(start, end):
                next_p, next_n = p + more_p[u], n + more_n[u]
                low_p, low_n = (p, n) if units.is_open[u] else (next_p, next_n)
                by_positive = max(by_positive, next_p / positive - low_n / negative)
                by_negative = max(by_negative, next_n / negative - low_p / positive)
                p, n = next_p, next_n
            s = slots[t]
            off = n_units[s] / positive + n_units[s] / negative - moved[output]
            noted[2 * output, s] = by_positive + off
            noted[2 * output + 1, s] = by_negative + off
