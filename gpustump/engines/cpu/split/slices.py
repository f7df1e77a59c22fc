"""Sums over consecutive slices of features' sorted orders: the answer to each question of a search.

A search asks three questions, each about fewer samples than the one before: the sums over all bins
of all features; the sums over the parts of some bins; and the sums over the distinct values in some
parts. Each question is about *segments*: features, bins or parts. The answer cuts each segment
into *cells*, its bins, parts or values in sorted order, and has the sums over each cell. All
answers have the same form, so one function computes the scores of the cuts between cells and bounds
those inside them (`cell_scores`), whatever the cells are.

All sums are integers, so the answers of several sources can be added up, such as workers that hold
some of the rows each.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from gpustump.engines.cpu.runtime.compiling import Bytes, Floats, Integers, group

Planes = Annotated[np.ndarray, "int64[:, ::1]"]
FloatPlanes = Annotated[np.ndarray, "float64[:, ::1]"]

UNKNOWN = np.zeros((0, 0))
"""For `Slices.skew`: nothing is known."""

NO_SPREAD = np.zeros(0)
"""For `Slices.spread`: nothing is known."""

EXACT = np.zeros((0, 0))
"""For `Slices.error` and those of `Outside`: no sum is off."""


@group
class Slices(NamedTuple):
    """The cells of some segments.

    The sums are in planes. For the exponential loss each output has two: the weight of its positive
    samples and that of its negative ones. For Newton votes each output has four: the positive
    gradients, the absolute values of the negative ones, and the Hessians of positive and of
    negative samples.

    Attributes
    ----------
    feature, first, n_cells : ndarray (n_segments,) of int64
        The feature of a segment, its first cell, and how many cells it has.
    sums : ndarray (n_planes, n_cells) of int64
    error : ndarray (n_planes, n_cells) of float64
        The largest error of each sum; `EXACT` if all sums are exact.
    skew : ndarray (2 * n_outputs, n_cells) of float64
        A cut inside a cell has a share of the cell's positive sum on its
        left, and a share of its negative sum. For each output: the most by which the first share
        may exceed the second, and the most by which the second may exceed the first. `UNKNOWN`, of
        shape (0, 0), means 1 everywhere.
    last : ndarray (n_cells,) of int64
        The sorted position of a cell's last sample.
    is_open : ndarray (n_cells,) of uint8
        Whether there may be cuts inside the cell.
    spread : ndarray (n_cells,) of float64
        Of a quantity, how far the sum of gradients at a cut inside a cell may be from the line
        between those at its edges; see `histogram.residual_sums`. `NO_SPREAD` if that is not known.
    """

    feature: Integers
    first: Integers
    n_cells: Integers
    sums: Planes
    error: FloatPlanes
    skew: FloatPlanes
    last: Integers
    is_open: Bytes
    spread: Floats = NO_SPREAD


@group
class Outside(NamedTuple):
    """What surrounds some segments: sums in the planes of `Slices`, (n_planes, n_segments).

    Attributes
    ----------
    left : ndarray of int64
        Over everything before the segment.
    present, missing : ndarray of int64
        Over the samples that have and that lack the feature.
    left_error, right_error, missing_error : ndarray of float64
        The largest errors of the sums before the segment, after it, and over missing values; all
        three are `EXACT` if all sums are exact, those of the segment included.
    """

    left: Planes
    present: Planes
    missing: Planes
    left_error: FloatPlanes = EXACT
    right_error: FloatPlanes = EXACT
    missing_error: FloatPlanes = EXACT

    @property
    def is_exact(self) -> bool:
        """Whether all sums are exact."""
        return not len(self.left_error)

    @classmethod
    def empty(cls, n_planes: int, n_segments: int, *, is_exact: bool) -> Outside:
        """With sums that are yet to be written."""
        shape = (3, n_planes, n_segments)
        sums = np.empty(shape, dtype=np.int64)
        return cls(*sums) if is_exact else cls(*sums, *np.empty(shape))


@group
class Answer(NamedTuple):
    """What a source answers to a question about some bins or some of their parts.

    Attributes
    ----------
    slices : Slices
    slots : ndarray (n_segments,) of int64
        The bin that a segment is, or in which it lies.
    where : object
        What the source needs to answer further questions about the cells; in compiled code
        `sums_source.Located`.
    """

    slices: Annotated[Slices, "Slices"]
    slots: Integers
    where: Annotated[Any, "Located"]
