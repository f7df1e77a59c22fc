"""Sums over consecutive slices of features' sorted orders: the answer to each question of a search.

A search asks three questions, each about fewer samples than the one before: the sums over all bins
of all features; the sums over the parts of some bins; and the sums over the distinct values in some
parts. What is asked about is a *stretch* (a feature, a bin, a part), the answer its *units*, one
after the other in sorted order. All answers have the same form, so one function weighs the cuts
between units and bounds those inside of them (`unit_scores`), wherever the units come from.

Everything is an integer, so answers of several places, such as workers that hold some of the rows
each, can be added up.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from gpustump.engines.cpu.compiling import Bytes, Integers, group

Planes = Annotated[np.ndarray, "int64[:, ::1]"]
FloatPlanes = Annotated[np.ndarray, "float64[:, ::1]"]

UNKNOWN = np.zeros((0, 0))
"""For `Slices.ahead`."""

EXACT = np.zeros((0, 0))
"""For `Slices.off` and those of `Ground`: no sum is off."""


@group
class Slices(NamedTuple):
    """The units of some stretches.

    What is summed, in planes: for the exponential loss the weight of the positive samples and that
    of the negative ones, for each output; for Newton votes the positive first integers, the sizes
    of the negative ones, and the second integers, for each output.

    Attributes
    ----------
    feature, first, n_units : ndarray (n_stretches,) of int64
        A stretch's feature; its first unit, and how many it has.
    sums : ndarray (n_planes, n_units) of int64
    off : ndarray (n_planes, n_units) of float64
        How far each sum is off at most; `EXACT` if none is.
    up, down : ndarray (n_units,) of int64
        How far above its value at a unit's left edge the sum of signed weights may be at a cut
        inside the unit, and how far below; for discrete votes of one output only.
    ahead : ndarray (2 * n_outputs, n_units) of float64
        At a cut inside a unit, by how much the share of the unit's positive sum that lies on the
        left may exceed that of its negative sum, and the other way round. Empty, (0, 0), if nothing
        is known: they may by 1. For other votes only.
    last : ndarray (n_units,) of int64
        The sorted position of a unit's last sample.
    is_open : ndarray (n_units,) of uint8
        Whether there may be cuts inside the unit.
    """

    feature: Integers
    first: Integers
    n_units: Integers
    sums: Planes
    off: FloatPlanes
    up: Integers
    down: Integers
    ahead: FloatPlanes
    last: Integers
    is_open: Bytes


@group
class Ground(NamedTuple):
    """What surrounds some stretches: sums in the planes of `Slices`, (n_planes, n_stretches).

    Attributes
    ----------
    left : ndarray of int64
        Over everything before the stretch.
    present, missing : ndarray of int64
        Over the samples that have and that lack the feature.
    left_off, right_off, missing_off : ndarray of float64
        How far the sums before the stretch, those behind it and those of what is missing are off at
        most; all three are `EXACT` if no sum is off, those of the stretch included.
    """

    left: Planes
    present: Planes
    missing: Planes
    left_off: FloatPlanes = EXACT
    right_off: FloatPlanes = EXACT
    missing_off: FloatPlanes = EXACT

    @property
    def is_exact(self) -> bool:
        """Whether the sums are no estimates."""
        return not len(self.left_off)

    def of(self, stretches: np.ndarray) -> Ground:
        """The ground of some of the stretches."""
        parts = (part[:, stretches] if len(part) else part for part in self)
        return Ground(*map(np.ascontiguousarray, parts))


class Answer(NamedTuple):
    """What a place answers to a question about some bins or some of their parts.

    Attributes
    ----------
    slices : Slices
    slots : ndarray (n_stretches,) of int64
        The bin that a stretch is, or is a part of.
    where : object
        Where the place finds the units again, to be asked about them more closely.
    """

    slices: Slices
    slots: np.ndarray
    where: Any
