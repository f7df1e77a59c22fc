"""Answers to a search's questions under a softmax: all outputs of a sample are added up at once.

The integers of a sample follow from its row of probabilities; see `loss.softmax_rows`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpustump.engines.cpu.loss.softmax_rows import (
    TILE,
    SoftmaxRows,
    add_row,
    new_tile,
    round_up,
    set_integer,
)
from gpustump.engines.cpu.runtime.compiling import Integers, group, inner
from gpustump.engines.cpu.runtime.crew import parallel
from gpustump.engines.cpu.split.sums_source import CodedSums, find_cells
from gpustump.engines.cpu.table.codes import CodedTable
from gpustump.engines.cpu.table.rows_by_code import SAMPLE


def source_of_rows(table: CodedTable, rows: SoftmaxRows) -> CodedSums:
    """The source of a run's sums, from its samples' probabilities."""
    return CodedSums(table, _add_up_softmax, rows, 4 * rows.n_outputs)


@inner("void(int32[::1], SoftmaxRows, float64[::1], Tile)")
def _gather(order, rows, probabilities, tile):  # type: ignore[no-untyped-def]
    """Compute the integers of at most `TILE` samples of an order."""
    width, differ = rows.width, len(rows.units) > 1
    for t in range(len(order)):
        i = np.int64(order[t] & SAMPLE)
        for k in range(width):
            probabilities[np.uint64(t * width + k)] = rows.probabilities[np.uint64(i * width + k)]
        if differ:
            tile.units[t * width : (t + 1) * width] = rows.units[i]
    size = len(order) * width
    round_up(probabilities[:size], tile.units[:size], tile.gradient[:size], tile.hessian[:size])
    for t in range(len(order)):
        set_integer(probabilities, rows, np.int64(order[t] & SAMPLE), t, tile)


@group
class _CellRows(NamedTuple):
    """The sums over up to `TILE` cells, with a row for each.

    Attributes
    ----------
    gradient, hessian : ndarray ((TILE + 1) * width,) of int64
    positive : ndarray ((TILE + 1) * 2 * n_outputs,) of int64
        Both integers of positive samples.
    """

    gradient: Integers
    hessian: Integers
    positive: Integers


@inner("void(_CellRows, SoftmaxRows, int64[:, ::1], int64, int64)")
def _write_cells(own, rows, sums, u, count):  # type: ignore[no-untyped-def]
    """Write the sums over the `count` cells from `u` on, one plane after the other."""
    width, beside = np.uint64(rows.width), np.uint64(2 * rows.n_outputs)
    for k in range(rows.n_outputs):
        gradient, hessian, positive = own.gradient[k:], own.hessian[k:], own.positive[2 * k :]
        p, n = sums[4 * k, u : u + count], sums[4 * k + 1, u : u + count]
        for i in range(count):
            p[i] = positive[beside * np.uint64(i)]
            n[i] = p[i] - gradient[width * np.uint64(i)]  # the gradients are signed
        p, n = sums[4 * k + 2, u : u + count], sums[4 * k + 3, u : u + count]
        for i in range(count):
            p[i] = positive[beside * np.uint64(i) + np.uint64(1)]
            n[i] = hessian[width * np.uint64(i)] - p[i]


@inner("void(int32[::1], SoftmaxRows, Tile, _CellRows, int64[:, ::1], int64)")
def _add_up_rows(order, rows, tile, own, sums, first_cell):  # type: ignore[no-untyped-def]
    """Add up the integers of the samples of a segment over its cells."""
    width, beside = rows.width, 2 * rows.n_outputs
    probabilities = np.empty(TILE * width)
    u, written = 0, first_cell
    own.gradient[:], own.hessian[:], own.positive[:] = 0, 0, 0
    for start in range(0, len(order), TILE):
        here = order[start : start + TILE]
        _gather(here, rows, probabilities, tile)
        for t in range(len(here)):
            add_row(own.gradient, u * width, tile.gradient, t * width, width)
            add_row(own.hessian, u * width, tile.hessian, t * width, width)
            of_class = np.int64(rows.classes[np.uint64(here[t] & SAMPLE)])
            at, place = np.uint64(u * beside + 2 * of_class), np.uint64(t * width + of_class)
            own.positive[at] += tile.gradient[place]
            own.positive[at + np.uint64(1)] += tile.hessian[place]
            u += np.int64(here[t] >= 0)
            if u == TILE:
                _write_cells(own, rows, sums, written, u)
                own.gradient[:], own.hessian[:], own.positive[:] = 0, 0, 0
                written += u
                u = 0
    _write_cells(own, rows, sums, written, u)


@parallel("void(int64, SoftmaxRows, int32[::1], Segments, int64, CellSums)")
def _add_up_softmax(piece, rows, order, segments, size, cells):  # type: ignore[no-untyped-def]
    """The same as `_add_up_terms`, with all outputs of a sample at once."""
    tile, n_rows = new_tile(rows), TILE + 1
    own = _CellRows(
        np.empty(n_rows * rows.width, np.int64), np.empty(n_rows * rows.width, np.int64),
        np.empty(n_rows * 2 * rows.n_outputs, np.int64),
    )  # fmt: skip
    for t in range(piece * size, min((piece + 1) * size, len(segments.start))):
        find_cells(order, segments, t, cells)
        start = segments.start[t]
        here = order[start : start + segments.n_samples[t]]
        _add_up_rows(here, rows, tile, own, cells.sums, segments.first[t])
