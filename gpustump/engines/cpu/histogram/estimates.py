"""Estimates of the sums over bins after a step, without adding up every sample again.

A step multiplies the weights of all samples of a label in a region by the same factor. Most cuts
separate few samples from many; late in a run, the few are usually less than a tenth. So the sums
are multiplied by the factor of the largest region, the *majority*, and then corrected for the
samples of the other regions, the *minority*, one by one. That is all for the exponential loss. With
the logistic loss the odds u are multiplied by a factor f. With e = f - 1, a sample's integers,
which are w = u / (1 + u) and w (1 - w) times its weight, become

    w'          = w + e w (1 - w) - e**2 w**2 (1 - w) / (1 + e w)
    w' (1 - w') = (1 + e) w (1 - w) / (1 + e w)**2

So the gradient grows by e times the Hessian, with an error of at most e**2 / min(1, f)
times the Hessian. The Hessian grows by e w (1 - w) (1 - 2 w), with an error of at most 4
times as much. For the majority, e is small: late in a run, a thousandth. The sum of w w (1 - w) is
not known, but it lies between 0 and a bound (`spread`), so the middle is taken.

From then on the sums are estimates, and the largest error of each is kept with it. For the
exponential loss it comes from roundings: one unit in 2**62 for each sample. For the logistic loss
the errors of the formulas are added to it round by round. The search finds the features that may
hold the best cut. Only these are added up anew, sample by sample, and the cut is found by these
exact sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from gpustump.engines.contract import Cut, Step
from gpustump.engines.cpu.runtime.compiling import Floats, group, inner
from gpustump.engines.cpu.runtime.crew import parallel
from gpustump.engines.objective import Objective

_LARGEST_MINORITY = 0.45
"""If the minority is a larger share of the samples, adding up all samples takes less time."""

HESSIAN_BITS, ROUGHER = 29, 6
"""Both integers of a sample of the minority are added as one word. The gradient is a multiple of
2**shift. The Hessian takes the lower HESSIAN_BITS bits, and is a multiple of
2**(shift + ROUGHER)."""

SLOTS_AT_ONCE = 2**12
"""Updating the sums over fewer slots is not worth another thread."""

_LARGEST_FACTOR = 1.9
"""Sums of up to 2**62 times this fit into int64."""

_LARGEST_LOGARITHM = 0.2
"""The largest absolute logarithm of a factor of the odds. For larger ones estimates are too bad."""

_ROUNDING = 2.0**-40
"""More than the relative error of a sum by the roundings of its floating-point terms."""

_OF_SUM = 1.0
"""More than the rounding of a sum to a whole number, in units."""


class Expected(NamedTuple):
    """What the sums over the slots would be after a step if all samples were of the majority.

    Attributes
    ----------
    sums : ndarray (n_planes, n_slots) of int64
    error : ndarray (n_planes, n_slots) of float64
        The true sums after the step, less `sums`, measure what the minority gains. This is the
        largest error of that measure.
    """

    sums: np.ndarray
    error: np.ndarray


@group
class Move(NamedTuple):
    """What a step does to the majority's sums, for each plane of the histograms: output and label.

    The sum of gradients becomes `factor` times itself plus `slope` times the sum of Hessians,
    with an error of at most `bend` times the latter. For the sum of Hessians see
    above.

    Attributes
    ----------
    majority : int
        The largest region.
    shift : int
        The rounding of the integers of the minority; see `changes.packed`.
    factor, slope, bend : ndarray (2 * n_outputs,) of float64
    """

    majority: int
    shift: int
    factor: Floats
    slope: Floats
    bend: Floats

    @classmethod
    def of(
        cls, step: Step, counts: Sequence[int], sums: np.ndarray, objective: Objective
    ) -> Move | None:  # fmt: skip
        """What a step does to its largest region; None if that cannot be estimated well.

        Parameters
        ----------
        step : Step
        counts : sequence (n_regions,) of int
            How many samples lie in each region.
        sums : ndarray (n_regions, n_outputs, 2) of int64
            The sums over the regions before the step.
        objective : Objective
        """
        if objective.loss in ("softmax", "squared_error", "quantile"):
            return None
        majority = max(range(len(counts)), key=counts.__getitem__)
        factor = [
            own for negative, positive in step.factors[majority] for own in (positive, negative)
        ]
        if not all(0.0 < own < math.inf for own in factor):
            return None
        nothing = np.zeros(len(factor))
        if objective.loss in ("exponential", "poisson", "gamma"):
            if max(factor) > _LARGEST_FACTOR:
                return None
            return cls(majority, 0, np.asarray(factor), nothing, nothing)
        largest = max(abs(math.log(own)) for own in factor)
        if largest >= _LARGEST_LOGARITHM:
            return None
        shift = _shift(step, majority, counts, sums)
        if shift is None:
            return None
        by = np.asarray(factor)
        slope = by - 1.0
        return cls(majority, shift, nothing + 1.0, slope, slope * slope / np.minimum(1.0, by))


def _shift(step: Step, majority: int, counts: Sequence[int], sums: np.ndarray) -> int | None:
    """The least shift with which the sums of the minority's changes fit into a word.

    If a region's odds are multiplied by f, an integer changes by at most max(f, 1 / f) - 1 times
    the Hessian, and by a unit or two by rounding. The change that the majority's move would
    make is subtracted. None if there are too many samples.
    """
    growth = [max(max(f, 1.0 / f) for f in factors[0]) - 1.0 for factors in step.factors]
    n_minority = sum(counts) - counts[majority]
    most = 4.0 * n_minority + 1.0
    for region, own in enumerate(sums.tolist()):
        if region != majority:
            most += (growth[region] + growth[majority]) * float(own[0][1]) * (1.0 + _ROUNDING)
    free = (2.0 ** (62 - HESSIAN_BITS), 2.0 ** (HESSIAN_BITS - 2))
    if 4 * n_minority > min(free):
        return None
    first, second = (math.ceil(math.log2(most / (room - 2.0 * n_minority))) for room in free)
    return max(0, first, second - ROUGHER)


def counts_of_regions(n_samples: int, n_missing: np.ndarray, cut: Cut) -> tuple[int, int, int]:
    """How many samples lie left and right of a cut, and lack its feature's value, as `n_missing`
    (n_features,) of them do."""
    missing = int(n_missing[cut.feature])
    present = n_samples - missing
    first = present if cut.position is None else cut.position + 1
    return first, present - first, missing


def is_worth_following(counts: Sequence[int]) -> bool:
    """Whether estimates take less time than adding up all samples, `counts` of each region."""
    return sum(counts) - max(counts) <= _LARGEST_MINORITY * sum(counts)


@inner("float64(float64, float64)")
def spread(gradient, hessian):  # type: ignore[no-untyped-def]
    """The most that the sum of w w (1 - w) may be, given the sums A of w and B of w (1 - w).

    Let m = 1 - B / A, the mean of w weighted by w. The sum is at most A m (1 - m), since w (1 - w)
    is concave in w. For a single sample it equals that.
    """
    return max(0.0, hessian * (1.0 - hessian / gradient)) if gradient > 0.0 else 0.0


@parallel("void(int64, int64[:, ::1], float64[:, ::1], int64[::1], Move, float64[:, ::1], int64)")
def move_slots(piece, sums, error, n_inside, move, error_now, size):  # type: ignore[no-untyped-def]
    """Update the sums over `size` slots, in the planes of `slices`, and their largest errors.

    `error_now` is set to the error of this move alone, for the gradients.
    """
    low = piece * size
    inside = n_inside[low : low + size]
    n_planes = len(move.factor)
    has_hessians = len(sums) > n_planes
    unit = 2.0**move.shift
    rougher_unit = unit * 2.0**ROUGHER
    for plane in range(n_planes):
        by, more, bend = move.factor[plane], move.slope[plane], move.bend[plane]
        if not has_hessians:
            own, own_error = sums[plane, low : low + size], error[plane, low : low + size]
            now = error_now[plane, low : low + size]
            for s in range(len(inside)):
                before = abs(float(own[s])) + own_error[s]
                each = inside[s] * (by + 2.0) + before * by * _ROUNDING + _OF_SUM
                now[s] = each * (1.0 + _ROUNDING)
                own_error[s] = (own_error[s] * by + each) * (1.0 + _ROUNDING)
                own[s] = np.int64(np.rint(float(own[s]) * by))
            continue
        # With one output: positive and negative gradients, then the Hessians of both.
        gradient, hessian = sums[plane, low : low + size], sums[plane + 2, low : low + size]
        gradient_error = error[plane, low : low + size]
        hessian_error = error[plane + 2, low : low + size]
        slope, now = abs(more), error_now[plane, low : low + size]
        for s in range(len(inside)):
            curve = abs(float(hessian[s])) + hessian_error[s]
            before = abs(float(gradient[s])) + gradient_error[s] + curve
            each = inside[s] * (4.0 + unit) + before * _ROUNDING + _OF_SUM
            rough = inside[s] * rougher_unit
            unknown = spread(float(gradient[s]), float(hessian[s]))
            unknown += 2.0 * gradient_error[s] + 3.0 * hessian_error[s]
            now[s] = (bend * curve + each) * (1.0 + _ROUNDING)
            gradient_error[s] += (slope * hessian_error[s] + bend * curve + each) * (
                1.0 + _ROUNDING
            )
            hessian_error[s] += slope * unknown + (4.0 * bend * curve + each + rough)
            gradient_error[s] *= 1.0 + _ROUNDING
            hessian_error[s] *= 1.0 + _ROUNDING
            curve = float(hessian[s])
            bent = curve - spread(float(gradient[s]), curve)
            gradient[s] += np.int64(np.rint(curve * more))
            hessian[s] += np.int64(np.rint(bent * more))
