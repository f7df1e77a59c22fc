"""The skew of each bin: how far the shares of its positive and its negative weight are apart.

A cut inside a bin has a share of the bin's positive weight on its left, and a share of its negative
weight. When the parts of a bin are added up, the largest difference of these two shares is noted,
in both directions. It makes the bounds of the bin narrower in later rounds (see `cell_scores`).

In every round the weights of all samples change, but those of samples with the same label change
nearly alike. So the shares hardly move, and `engines.movement` says by how much a step can move
them. That is added to the noted differences. The *majority* is the step's largest region, the
*minority* are all other samples; `estimates` says what the step does to the sums of the majority.

The integers are weights rounded up, each by less than one unit. So the shares of the weights and
those of the integers differ by at most twice the number of samples over the integers' sum. That is
added to what is noted and to what is returned, with room for the rounding of the weights
themselves.

No weight falls below a floor, far below one unit. Weights at the floor do not follow the factors,
so when they grow again the shares have changed. This matters only where all weights of a label in a
bin have become small. The notes of such a bin are dropped in the round in which its integers show
it. If no search has read the integers between two steps, the notes of all bins are dropped.

Under a softmax the sums of positive and negative integers may be upper bounds (`row_sums`), which
do not show that weights have become small. There, nothing is noted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gpustump.engines.contract import Step
from gpustump.engines.cpu.histogram.estimates import SLOTS_AT_ONCE, Expected
from gpustump.engines.cpu.runtime.compiling import Floats, group, inner, kernel
from gpustump.engines.cpu.runtime.crew import parallel
from gpustump.engines.cpu.split.slices import NO_SPREAD, UNKNOWN, FloatPlanes
from gpustump.engines.cpu.table.bin_layout import BinLayout
from gpustump.engines.movement import ROUNDINGS, movement_of
from gpustump.engines.objective import Objective
from gpustump.engines.threads import Team

_WIDER = 2.0**-40
"""By what share a spread is widened."""

_UNITS = 1024
"""Room for the rounding of the weights, in units, for each output: the largest weights are below
2**62 units, and rounded by 2**-53 of that."""


@group
class Notes(NamedTuple):
    """What is noted of a bin when its parts are known: its skew, or its spread.

    Attributes
    ----------
    skew : ndarray (2 * n_outputs, n_slots) of float64
        How far each share is ahead of the other, at most; of shape (0, 0) if none is noted.
    stride : int
        How many planes an output has.
    are_amounts : bool
        Whether the sums are those of amounts; see `histogram.amount_sums`.
    n_units : ndarray (n_slots,) of float64
        How far the integers' shares may be off, over their sum.
    spread : ndarray (n_slots,) of float64
        See `slices.Slices`; empty if none is noted.
    """

    skew: FloatPlanes
    stride: int
    are_amounts: bool
    n_units: Floats
    spread: Floats


NOTHING_NOTED = Notes(UNKNOWN, 0, False, NO_SPREAD, NO_SPREAD)


class Skew:
    """The notes of one run.

    Parameters
    ----------
    layout : BinLayout
    objective : Objective
    team : Team
    """

    def __init__(self, layout: BinLayout, objective: Objective, team: Team) -> None:
        self._objective, self._team = objective, team
        self._stride = 4 if objective.has_hessians else 2
        n_slots = len(layout.offset)
        n_inside = np.diff(layout.offset, append=0)
        self._n_units = 4.0 * np.maximum(n_inside, 0) + _UNITS * (objective.n_outputs + 4)
        self._noted = np.full((2 * objective.n_outputs, n_slots), np.inf)
        self._bounds = np.ones_like(self._noted)
        self._at_rest = self._movement = np.zeros((3, len(self._noted)))

    def bounds(self, sums: np.ndarray, error: np.ndarray, expected: Expected) -> np.ndarray:
        """How far a share may be ahead, (2 * n_outputs, n_slots); see `slices.Slices`.

        The notes of bins with hardly any weight are dropped here. The answer is overwritten by the
        next one.

        Parameters
        ----------
        sums, error : ndarray (n_planes, n_slots)
            After the last step; see `slices.Slices`.
        expected : Expected
            Of that step. If there is none, the sums themselves.
        """
        n_pieces, size = self._team.pieces(len(self._n_units), SLOTS_AT_ONCE)
        self._team.run(
            _follow, n_pieces, self._noted, self._movement, sums, error, *expected,
            self._stride, self._n_units, self._bounds, size,
        )  # fmt: skip
        self._movement = self._at_rest
        return self._bounds

    @property
    def notes(self) -> Notes:
        """What a search needs to note the shares in some bins."""
        are_amounts = self._objective.is_of_quantity
        return Notes(self._noted, self._stride, are_amounts, self._n_units, NO_SPREAD)

    def follow(self, step: Step, counts: Sequence[int] | None) -> None:
        """Prepare for a step, which is about to change the weights.

        Parameters
        ----------
        step : Step
        counts : sequence (n_regions,) of int, or None
            How many samples lie in each region; None if that is not known.
        """
        if self._movement is not self._at_rest:  # no search has read the integers since a step
            self._noted[:] = np.inf
        known = movement_of(step.factors, counts, self._objective)
        # They have columns for the labels -1 and +1; here +1 comes first, output by output.
        fields = [own[:, ::-1].ravel() for own in known[:3]]
        self._movement = np.asarray(fields, dtype=np.float64)


@inner(
    "void(float64[:, ::1], float64[:, ::1], int64, int64[:, ::1], float64[:, ::1],"
    " int64[:, ::1], float64[:, ::1], float64[::1], int64, int64)"
)
def _move(  # type: ignore[no-untyped-def]
    noted, movement, stride, sums, error, expected, expected_error, n_units, low, high
):
    """Add to the notes of slots `low` to `high` how far the shares may have moved in a step.

    `movement` (3, 2 * n_outputs) has the first fields of `engines.movement.Movement`, for each
    output and label: +1, then -1.
    """
    for output in range(len(noted) // 2):
        for label in range(2):
            of, plane = 2 * output + label, stride * output + label
            most, of_majority, is_one_way = movement[0, of], movement[1, of], movement[2, of] > 0.0
            own, own_error = sums[plane, low:high], error[plane, low:high]
            then, then_error = expected[plane, low:high], expected_error[plane, low:high]
            one, other = noted[2 * output, low:high], noted[2 * output + 1, low:high]
            units = n_units[low:high]
            for s in range(len(own)):
                by = most
                if is_one_way:
                    total = float(own[s]) - own_error[s] - units[s]
                    gain = abs(float(own[s] - then[s])) + (then_error[s] + units[s])
                    share = gain / total if total > gain else 1.0
                    by = min(by, of_majority + share + ROUNDINGS)
                one[s] += by
                other[s] += by


@parallel(
    "void(int64, float64[:, ::1], float64[:, ::1], int64[:, ::1], float64[:, ::1],"
    " int64[:, ::1], float64[:, ::1], int64, float64[::1], float64[:, ::1], int64)"
)
def _follow(  # type: ignore[no-untyped-def]
    piece, noted, movement, sums, error, expected, expected_error, stride, n_units, found,
    size,
):  # fmt: skip
    """Write the bounds that the notes give to `found`, with the error of the integers' shares.

    First add to the notes how far the shares may have moved in a step. A piece has `size` slots.
    """
    low, high = piece * size, min((piece + 1) * size, len(n_units))
    _move(noted, movement, stride, sums, error, expected, expected_error, n_units, low, high)
    for output in range(len(noted) // 2):
        plane = stride * output
        for s in range(low, high):
            if not noted[2 * output, s] < 1.0 and not noted[2 * output + 1, s] < 1.0:
                found[2 * output, s], found[2 * output + 1, s] = 1.0, 1.0
                continue
            positive = max(float(sums[plane, s]) - error[plane, s], 0.0)
            negative = max(float(sums[plane + 1, s]) - error[plane + 1, s], 0.0)
            by_units = n_units[s] / positive + n_units[s] / negative
            for which in (2 * output, 2 * output + 1):
                if not by_units < 1.0:  # drop the note: weights may be at their floor
                    noted[which, s] = np.inf
                found[which, s] = min(1.0, noted[which, s] + by_units)


@inner("void(int64[:, ::1])")
def _set_amounts(planes):  # type: ignore[no-untyped-def]
    """Replace the first two planes of sums by those of amounts; see `histogram.amount_sums`."""
    for u in range(planes.shape[1]):
        gradient, hessian = planes[0, u] - planes[1, u], planes[2, u] + planes[3, u]
        planes[0, u], planes[1, u] = (hessian + gradient) >> 1, (hessian - gradient) >> 1


@inner("void(int64[::1], Slices, int64, boolean, float64[::1], float64[:, ::1])")
def _note_skew(slots, cells, stride, are_amounts, n_units, noted):  # type: ignore[no-untyped-def]
    """Note how far each share is ahead of the other, at most, at the cuts inside some bins."""
    planes = cells.sums
    if are_amounts:
        planes = planes.copy()
        _set_amounts(planes)
    for output in range(len(noted) // 2):
        more_p, more_n = planes[stride * output], planes[stride * output + 1]
        for t in range(len(slots)):
            start, end = cells.first[t], cells.first[t] + cells.n_cells[t]
            positive, negative = float(more_p[start:end].sum()), float(more_n[start:end].sum())
            of_p, of_n = 1.0 / positive, 1.0 / negative  # far more exact than `by_units`
            p, n, by_positive, by_negative = 0, 0, 0.0, 0.0
            for u in range(start, end):
                next_p, next_n = p + more_p[u], n + more_n[u]
                low_p, low_n = (p, n) if cells.is_open[u] else (next_p, next_n)
                by_positive = max(by_positive, next_p * of_p - low_n * of_n)
                by_negative = max(by_negative, next_n * of_n - low_p * of_p)
                p, n = next_p, next_n
            s = slots[t]
            by_units = n_units[s] / positive + n_units[s] / negative
            noted[2 * output, s] = by_positive + by_units
            noted[2 * output + 1, s] = by_negative + by_units


@inner("void(int64[::1], Slices, float64[::1])")
def _note_spread(slots, cells, spread):  # type: ignore[no-untyped-def]
    """Lower the spreads of some bins to what the exact sums over their cells say; see
    `histogram.residual_sums`.

    At an edge between cells A - B G / H is known. Inside a cell A differs from that at its left
    edge by no more than its positive or negative gradients add up to, and B by no more than
    its weights.
    """
    up, down, curve, other = cells.sums[0], cells.sums[1], cells.sums[2], cells.sums[3]
    for t in range(len(slots)):
        start, end = cells.first[t], cells.first[t] + cells.n_cells[t]
        gradient, hessian = 0, 0
        for u in range(start, end):
            gradient += up[u] - down[u]
            hessian += curve[u] + other[u]
        slope = float(gradient) / float(max(hessian, 1))
        a, b, most = 0, 0, 0.0
        for u in range(start, end):
            apart, weight = abs(float(a) - slope * float(b)), curve[u] + other[u]
            if cells.is_open[u]:
                inside = float(max(up[u], down[u])) + abs(slope) * float(weight)
                most = max(most, apart + inside)
            a += up[u] - down[u]
            b += weight
            most = max(most, abs(float(a) - slope * float(b)))
        size = abs(float(gradient)) + 1.0  # for the roundings of the products
        found = most * (1.0 + _WIDER) + size * _WIDER
        spread[slots[t]] = min(spread[slots[t]], found)


@kernel("void(Notes, int64[::1], Slices)")
def learn(notes, slots, cells):  # type: ignore[no-untyped-def]
    """Note what the cells of some bins show of cuts inside the bins."""
    if len(notes.skew) > 0:
        _note_skew(slots, cells, notes.stride, notes.are_amounts, notes.n_units, notes.skew)
    elif len(notes.spread) > 0:
        _note_spread(slots, cells, notes.spread)
