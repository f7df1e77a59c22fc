"""What votes of regions remember of each bin: how far the shares of its two sums are apart.

Under real, Newton and shared votes the weights of all samples change in every round, but those of
samples with the same label nearly alike: by the factors of the regions that they lie in. So where
in a bin half of its positive weight lies hardly changes. When a bin is looked into, it is noted how
far the share of its positive weight left of a cut was ahead of that of its negative weight, and the
other way round. `engines.movement` says by how much a step moves each share at most; of
what the step makes of the bulk, see `estimates`.

The integers are weights rounded up, each by less than one unit; so the shares of the weights and of
the integers differ by twice the number of samples over the integers' sum, at most. That is part of
what is noted and of what is returned, with room for the rounding of the weights themselves.

No weight falls below a floor, far below one unit. There weights do not follow the factors, and once
they grow again their shares are others. It matters only where all weights of a label in a bin have
become small; such a bin is forgotten in the round in which its integers say so, and all bins are
where nobody has looked at the integers between two steps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpustump.engines.contract import Search, Step
from gpustump.engines.cpu.bin_layout import BinLayout
from gpustump.engines.cpu.compiling import Bytes, Floats, group, kernel
from gpustump.engines.cpu.slices import Slices
from gpustump.engines.movement import ROUNDINGS, movement_of

_UNITS = 1024
"""The largest weights are below 2**62 units and rounded by 2**-53 of that for each output."""


@group
class Movement(NamedTuple):
    """By how much a step may move shares, for each output and label: +1, then -1.

    Attributes
    ----------
    most : ndarray (2 * n_outputs,) of float64
        In any bin.
    of_bulk : ndarray (2 * n_outputs,) of float64
        If all samples were of the bulk.
    is_one_way : ndarray (2 * n_outputs,) of uint8
        Whether the samples of the rest all gain weight beside the bulk, or all lose it.
    """

    most: Floats
    of_bulk: Floats
    is_one_way: Bytes


class Expected(NamedTuple):
    """What a step would make of the sums over the slots if all samples were of the bulk.

    Attributes
    ----------
    sums : ndarray (n_planes, n_slots) of int64
    off : ndarray (n_planes, n_slots) of float64
        How far the sums after the step, less these, are off as a measure of what the rest gains.
    """

    sums: np.ndarray
    off: np.ndarray


class Drift:
    """The memory of one run.

    Parameters
    ----------
    layout : BinLayout
    search : Search
    """

    def __init__(self, layout: BinLayout, search: Search) -> None:
        self._search = search
        self._stride = 4 if search.votes == "newton" else 2
        n_slots = len(layout.offset)
        n_inside = np.diff(layout.offset, append=0)
        self._n_units = 4.0 * np.maximum(n_inside, 0) + _UNITS * (search.n_outputs + 4)
        self._noted = np.full((2 * search.n_outputs, n_slots), np.inf)
        self._movement: Movement | None = None

    def ahead(self, sums: np.ndarray, off: np.ndarray, expected: Expected) -> np.ndarray:
        """How far a share may be ahead, (2 * n_outputs, n_slots); see `slices.Slices`.

        Bins with hardly any weight are forgotten here.

        Parameters
        ----------
        sums, off : ndarray (n_planes, n_slots)
            After the last step; see `slices.Slices`.
        expected : Expected
            Of that step. If there is none, the sums themselves.
        """
        if self._movement is not None:
            _move(self._noted, self._movement, self._stride, sums, off, *expected, self._n_units)
            self._movement = None
        found = np.empty_like(self._noted)
        _ahead_now(self._noted, sums, off, self._stride, self._n_units, found)
        return found

    def learn(self, slots: np.ndarray, units: Slices) -> None:
        """Note the bins whose units are known."""
        _note_ahead(slots, units, self._stride, self._n_units, self._noted)

    def follow(self, step: Step, counts: np.ndarray | None) -> None:
        """The weights are about to follow a step.

        Parameters
        ----------
        step : Step
        counts : ndarray (n_regions,) or None
            How many samples lie in each region; None if sums are not followed.
        """
        if self._movement is not None:  # nobody has looked at the integers since the last step
            self._noted[:] = np.inf
        known_counts = None if counts is None else counts.tolist()
        known = movement_of(step.factors, known_counts, self._search)
        self._movement = Movement(
            _positive_first(known.most),
            _positive_first(known.of_bulk),
            _positive_first(known.is_one_way).astype(np.uint8),
        )


def _positive_first(by_label: np.ndarray) -> np.ndarray:
    """Numbers for the labels -1 and +1, (n_outputs, 2), the other way round and flat."""
    return by_label[:, ::-1].ravel()


@kernel(
    "void(float64[:, ::1], Movement, int64, int64[:, ::1], float64[:, ::1], int64[:, ::1],"
    " float64[:, ::1], float64[::1])"
)
def _move(  # type: ignore[no-untyped-def]
    noted, movement, stride, sums, off, expected, expected_off, n_units
):
    """Add to what was noted how far shares may have moved in a step."""
    for output in range(len(noted) // 2):
        for label in range(2):
            of, plane = 2 * output + label, stride * output + label
            most, of_bulk, by_rest = (
                movement.most[of], movement.of_bulk[of], movement.is_one_way[of],
            )  # fmt: skip
            for s in range(len(n_units)):
                by = most
                if by_rest:
                    total = float(sums[plane, s]) - off[plane, s] - n_units[s]
                    gain = abs(float(sums[plane, s] - expected[plane, s]))
                    gain += expected_off[plane, s] + n_units[s]
                    share = gain / total if total > gain else 1.0
                    by = min(by, of_bulk + share + ROUNDINGS)
                noted[2 * output, s] += by
                noted[2 * output + 1, s] += by


@kernel(
    "void(float64[:, ::1], int64[:, ::1], float64[:, ::1], int64, float64[::1], float64[:, ::1])"
)
def _ahead_now(noted, sums, off, stride, n_units, found):  # type: ignore[no-untyped-def]
    """What was noted, what has moved since, and how far shares of integers are off."""
    for output in range(len(noted) // 2):
        plane = stride * output
        for s in range(len(n_units)):
            positive = max(float(sums[plane, s]) - off[plane, s], 0.0)
            negative = max(float(sums[plane + 1, s]) - off[plane + 1, s], 0.0)
            by_units = n_units[s] / positive + n_units[s] / negative
            for ahead in (2 * output, 2 * output + 1):
                if not by_units < 1.0:  # for good: see above
                    noted[ahead, s] = np.inf
                found[ahead, s] = min(1.0, noted[ahead, s] + by_units)


@kernel("void(int64[::1], Slices, int64, float64[::1], float64[:, ::1])")
def _note_ahead(slots, units, stride, n_units, noted):  # type: ignore[no-untyped-def]
    """Note how far a share is ahead of the other at the cuts inside some bins."""
    for output in range(len(noted) // 2):
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
            by_units = n_units[s] / positive + n_units[s] / negative
            noted[2 * output, s] = by_positive + by_units
            noted[2 * output + 1, s] = by_negative + by_units
