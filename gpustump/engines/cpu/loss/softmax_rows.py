"""The softmax loss of several classes on tables of many samples: all numbers of a sample together.

It computes what `softmax_loss` does, bit for bit. A sample's probabilities are a row, with numbers
that mean nothing up to a multiple of four, so that a row is a few whole vectors. The integers of a
round are not stored, as that would take three times as many bytes as the probabilities, which
determine them. They are computed where they are needed, for a tile of samples at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import numpy as np

from gpustump.engines.cpu.loss.loss import Loss
from gpustump.engines.cpu.loss.margins import CHUNK, add_votes_of_classes, repeated, units_of_chunk
from gpustump.engines.cpu.loss.terms import Terms
from gpustump.engines.cpu.runtime.compiling import Floats, group, inner, kernel
from gpustump.engines.cpu.runtime.crew import parallel
from gpustump.engines.cpu.runtime.intrinsics import adding, dividing, multiplying
from gpustump.engines.cpu.table.columns import aligned
from gpustump.engines.integer_weights import FLOOR, LEAST_PRODUCT

VECTOR = 4
"""Numbers of a vector."""

TILE = 64
"""How many samples are processed at once: their numbers stay in the nearest cache."""

_add = adding(VECTOR)
_multiply, _divide = multiplying(VECTOR, LEAST_PRODUCT), dividing(VECTOR, FLOOR)


@group
class SoftmaxRows(NamedTuple):
    """The samples of a run, as kernels take them.

    Attributes
    ----------
    n_outputs : int
    width : int
        How many numbers a row has.
    probabilities : ndarray (n_samples * width,) of float64
    units : ndarray (n_samples,) or (1,) of float64
        Sample weights in units of the integers; one number if all samples have the same.
    classes : ndarray (n_samples,) of uint32
    """

    n_outputs: int
    width: int
    probabilities: Floats
    units: Floats
    classes: Annotated[np.ndarray, "uint32[::1]"]

    @property
    def n_samples(self) -> int:
        return len(self.classes)


@group
class Tile(NamedTuple):
    """The integers of up to `TILE` samples, in rows.

    Attributes
    ----------
    units : ndarray (TILE * width,) of float64
        Each sample's unit, as often as it has outputs.
    gradient, hessian : ndarray (TILE * width,) of int64
    """

    units: Floats
    gradient: Annotated[np.ndarray, "int64[::1]"]
    hessian: Annotated[np.ndarray, "int64[::1]"]


class SoftmaxRowsLoss(Loss):
    """The probabilities of a run, which are its `numbers`.

    Parameters
    ----------
    labels : ndarray (n_samples,) of int64
        The number of each sample's class.
    units : ndarray (n_samples,) of float64
        Sample weights in units of the integers: whole numbers above 0.
    n_outputs : int

    Attributes
    ----------
    rows : SoftmaxRows
    """

    def __init__(self, labels: np.ndarray, units: np.ndarray, n_outputs: int) -> None:
        super().__init__(units, n_outputs)
        width = -(-n_outputs // VECTOR) * VECTOR
        probabilities = aligned(len(labels) * width).view(np.float64)
        probabilities[:] = 1.0 / n_outputs
        classes = labels.astype(np.uint32)
        self.rows = SoftmaxRows(n_outputs, width, probabilities, self.units, classes)
        self.numbers = probabilities.reshape(-1, width)[:, :n_outputs].T

    @property
    def terms(self) -> Terms:  # type: ignore[override]
        """The integers of this round, computed when they are asked for."""
        shape = (self.rows.n_outputs, self.rows.n_samples)
        terms = Terms(np.empty(shape, dtype=np.int64), np.empty(shape, dtype=np.int64))
        _write_terms(self.rows, *terms)
        return terms

    @property
    def weights(self) -> np.ndarray:
        """weight * p * (1 - p), (n_samples, n_outputs)."""
        own = self.numbers.T
        found: np.ndarray = self.units[:, np.newaxis] * own * (1.0 - own)
        return found

    def _updating(self, *, moves: bool) -> tuple[Callable[..., None], tuple[Any, ...]]:
        return _advance, (moves, self.rows, self.scores)


@inner("Tile(SoftmaxRows)")
def new_tile(rows):  # type: ignore[no-untyped-def]
    """A tile for `set_integers`."""
    size = TILE * rows.width
    units = np.empty(size)
    units[:] = rows.units[0]
    return Tile(units, np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64))


@inner("void(float64[::1], float64[::1], int64[::1], int64[::1])")
def round_up(probabilities, units, gradient, hessian):  # type: ignore[no-untyped-def]
    """Compute both integers of samples that are not of the output's class."""
    for i in range(len(probabilities)):
        own, unit = probabilities[i], units[i]
        slope = np.ceil(unit * own)
        curve = np.ceil((unit * own) * (1.0 - own))
        gradient[i] = -np.int64(slope if slope > 1.0 else 1.0)
        hessian[i] = np.int64(curve if curve > 1.0 else 1.0)


@inner("void(float64[::1], SoftmaxRows, int64, int64, Tile)")
def set_integer(probabilities, rows, sample, t, tile):  # type: ignore[no-untyped-def]
    """Correct the gradient of a sample's class; the sample is the `t`-th of the tile."""
    place = np.uint64(t * rows.width) + np.uint64(rows.classes[np.uint64(sample)])
    slope = np.ceil(tile.units[place] * (1.0 - probabilities[place]))
    tile.gradient[place] = np.int64(slope if slope > 1.0 else 1.0)


@inner("void(SoftmaxRows, int64, int64, Tile)")
def set_integers(rows, start, end, tile):  # type: ignore[no-untyped-def]
    """Compute the integers of samples `start` to `end`, at most `TILE`."""
    width, n = rows.width, end - start
    if len(rows.units) > 1:
        for t in range(n):
            tile.units[t * width : (t + 1) * width] = rows.units[start + t]
    own = rows.probabilities[start * width : end * width]
    size = n * width
    round_up(own, tile.units[:size], tile.gradient[:size], tile.hessian[:size])
    for t in range(n):
        set_integer(own, rows, start + t, t, tile)


@kernel("void(SoftmaxRows, int64[:, ::1], int64[:, ::1])")
def _write_terms(rows, gradient, hessian):  # type: ignore[no-untyped-def]
    """Write the integers of all samples output by output."""
    tile, n_samples = new_tile(rows), len(rows.classes)
    for start in range(0, n_samples, TILE):
        end = min(start + TILE, n_samples)
        set_integers(rows, start, end, tile)
        for k in range(rows.n_outputs):
            for t in range(end - start):
                place = np.uint64(t * rows.width + k)
                gradient[k, start + t] = tile.gradient[place]
                hessian[k, start + t] = tile.hessian[place]


@inner("void(int64[::1], int64, int64[::1], int64, int64)")
def add_row(sums, at, rows, place, width):  # type: ignore[no-untyped-def]
    """Add the row that begins at `place` to the sums that begin at `at`."""
    for k in range(width // VECTOR):
        _add(sums, np.uint64(at + VECTOR * k), rows, np.uint64(place + VECTOR * k))


@inner("void(SoftmaxRows, uint8[::1], float64[::1], int64, float64[::1])")
def _multiply_rows(rows, regions, factors, start, totals):  # type: ignore[no-untyped-def]
    """Compute the next probabilities: products, divided by their sum in class order.

    `totals` has room for a vector for each sample.
    """
    width, own = rows.width, rows.probabilities[start * rows.width :]
    for t in range(len(regions)):
        for k in range(0, width, VECTOR):
            at, place = t * width + k, np.int64(regions[t]) * width + k
            _multiply(own, np.uint64(at), factors, np.uint64(place))
    for t in range(len(regions)):
        total = 0.0  # adding to 0 changes no product
        for k in range(rows.n_outputs):
            total += own[np.uint64(t * width + k)]
        for k in range(VECTOR):  # an assignment to a slice takes longer
            totals[np.uint64(VECTOR * t + k)] = total
    for t in range(len(regions)):
        for k in range(0, width, VECTOR):
            _divide(own, np.uint64(t * width + k), totals, np.uint64(VECTOR * t))


@parallel(
    "void(int64, boolean, SoftmaxRows, float64[:, ::1], uint8[::1], float64[:, ::1],"
    " float64[:, :, ::1], int64, int64[:, ::1])"
)
def _advance(piece, moves, rows, scores, all_regions, votes, factors, size, sums):  # type: ignore[no-untyped-def]
    """Update a piece of the samples; see `Loss._updating`."""
    n_outputs, width, low = rows.n_outputs, rows.width, piece * size
    regions, found = all_regions[low : low + size], sums[piece]
    by_region = np.zeros(len(factors) * width)
    for region in range(len(factors)):
        for k in range(n_outputs):
            by_region[region * width + k] = factors[region, k, 1]
    tile, totals = new_tile(rows), np.empty(VECTOR * TILE)
    gradient, hessian = np.zeros(width, dtype=np.int64), np.zeros(width, dtype=np.int64)
    for at in range(0, len(regions), TILE):
        here = regions[at : at + TILE]
        start, end = low + at, low + at + len(here)
        if moves:
            _multiply_rows(rows, here, by_region, start, totals)
        set_integers(rows, start, end, tile)
        for t in range(len(here)):
            add_row(gradient, 0, tile.gradient, t * width, width)
            add_row(hessian, 0, tile.hessian, t * width, width)
    for k in range(n_outputs):
        found[2 * k] += gradient[k]
        found[2 * k + 1] += hessian[k]
    room = repeated(rows.units)
    for at in range(0, len(regions), CHUNK):
        here = regions[at : at + CHUNK]
        start, end = low + at, low + at + len(here)
        classes, units = rows.classes[start:end], units_of_chunk(rows.units, room, start, end)
        found[-1] += add_votes_of_classes(scores, classes, here, votes, units, start, end)
