"""The sums over all bins in a run of Newton votes with several outputs: exact, or estimates.

Estimates are exact sums of rounded integers. Both integers of a sample and output are rounded, and
become one *word*, the first one in its upper bits. Words are added up like single integers. The sum
over a bin is off by at most half a unit for each of its samples. That is little where the best
features are clearly better than most others; the search has those sums added up anew, exactly, that
may hold the best cut (see `estimates`).

The words of a sample are a row, which is added to the sums of a bin in vectors of four words. So a
code is read once for all outputs, and one store writes four sums. The sums of a column take 100 kB
with ten outputs, which fit into the second cache but not into the nearest one.

A search also asks for the sums of positive and of negative gradients, P and N, but only as an
upper bound of how far a sum may be from its value at an edge (see `cell_scores`). Adding them up
would take half as long again. Instead P is the weight of the samples of the output's class, which
no sum of their gradients exceeds, and N is P less the signed sum. So P - N is exact, or an
estimate like the others, while P and N alone are upper bounds.

The weights of a run sum to less than 2**62 units of the integers. A gradient is at most the
weight, a Hessian at most a quarter of it, both rounded up. So the sums fit into the bits that
they have, for fewer than 2**27 samples.
"""

from __future__ import annotations

import numpy as np

from gpustump.engines.cpu.histogram.bin_sums import HistogramSums
from gpustump.engines.cpu.histogram.histograms import (  # noqa: F401  # a signature names Lanes
    Lanes,
    TeamHistograms,
    add_numbers,
    clear_column,
    fill_slots,
    next_piece,
    share_of,
    slot_sums,
)
from gpustump.engines.cpu.loss.softmax_rows import (
    TILE,
    SoftmaxRows,
    add_row,
    new_tile,
    set_integers,
)
from gpustump.engines.cpu.runtime.compiling import inner
from gpustump.engines.cpu.runtime.crew import parallel
from gpustump.engines.cpu.table.codes import CodedTable
from gpustump.engines.cpu.table.columns import NARROW_BINS, PART_BITS, WIDE_BINS, Histograms
from gpustump.engines.objective import Objective

_FEW = 0.2
"""If a larger share of the features had to be added up anew, estimates have not saved time."""

_MOST_SAMPLES = 2**27 - 1

_GRADIENT_SHIFT, _HESSIAN_SHIFT = 28, 33
"""Integers are rounded to multiples of 2**28 and of 2**33."""

_HESSIAN_BITS = 28
"""How many lower bits of a word belong to the Hessian, which has no sign."""

HALF_UNITS = (2.0 ** (_GRADIENT_SHIFT - 1), 2.0 ** (_HESSIAN_SHIFT - 1))
"""How far a rounded gradient or Hessian may be off."""

_NUMBERS_AT_ONCE = 3 * 2**13
"""About how many numbers are made before they are added: with the sums of a column they stay in the
second cache."""


class RowSums(HistogramSums):
    """The sums of one run.

    Parameters
    ----------
    table : CodedTable
    rows : SoftmaxRows
        The run's samples; the probabilities are overwritten in every round.
    objective : Objective
    """

    def __init__(self, table: CodedTable, rows: SoftmaxRows, objective: Objective) -> None:
        super().__init__(table, objective)
        self._rows = rows
        outputs = range(rows.n_outputs)
        columns, team = table.columns, table.team
        self._words = TeamHistograms(1, rows.width, columns, team)
        self._word_planes = np.asarray([(0, k) for k in outputs])
        self._exact = TeamHistograms(1, 2 * rows.width, columns, team)
        self._exact_planes = np.asarray([(0, k + s) for s in (0, rows.width) for k in outputs])
        self._both = np.empty((2 * rows.n_outputs, self.sums.shape[1]), dtype=np.int64)
        self._most = self._weights_of_classes()
        # An output's first plane says how far P - N may be off, its third one all Hessians.
        by_plane = (HALF_UNITS[0], 0.0, HALF_UNITS[1], 0.0)
        self._error_of_words = np.multiply.outer(by_plane, table.layout.counts(table.n_missing))
        self._renewed: set[int] = set()

    def _weights_of_classes(self) -> np.ndarray:
        """The units of the samples of each class in each slot, (n_outputs, n_slots) of int64."""
        table, n_outputs = self._table, self._rows.n_outputs
        sums = Histograms.empty(n_outputs, 1, table.columns)
        n_pieces, size = table.team.pieces(table.columns.n_columns, 1)
        table.team.run(_add_weights, n_pieces, table.columns, self._rows, sums, size)
        planes = np.asarray([(k, 0) for k in range(n_outputs)])
        return slot_sums(sums, planes, table.bundles, table.layout, table.team)

    def renew(self, features: np.ndarray) -> np.ndarray:
        """Add up some features anew; returns all features that share their columns, in order."""
        renewed = super().renew(features)
        self._renewed.update(renewed.tolist())
        return renewed

    def add_up(self) -> None:
        """Add up all samples anew: as estimates, unless the last ones were not good enough."""
        are_good = len(self._renewed) <= _FEW * self._table.n_features
        if are_good and self._table.n_samples <= _MOST_SAMPLES:
            columns = self._table.columns
            every = np.arange(columns.n_columns)
            self._words.add(every, _add, columns, self._rows, False)
            error = self.error.reshape(self._rows.n_outputs, 4, -1)
            if self.is_exact:
                error[:] = self._error_of_words
            for feature in self._renewed:  # the others are off by as much as before
                own = self._table.layout.all_slots(feature)
                error[:, :, own] = self._error_of_words[:, own]
            self.is_exact = False
        else:
            self._add_exactly(np.arange(self._table.columns.n_columns))
            self.error[:] = 0.0
            self.is_exact = True
        self._is_behind = True
        self._renewed.clear()

    def _add_exactly(self, chosen: np.ndarray) -> None:
        """Add up some columns without rounding."""
        self._exact.add(chosen, _add, self._table.columns, self._rows, True)

    def _take_sums(self) -> None:
        table, most, sums = self._table, self._most, self.sums
        if self.is_exact:
            self._take_exact_sums(np.arange(table.n_features))
            return
        words = slot_sums(
            self._words.total, self._word_planes, table.bundles, table.layout, table.team
        )
        table.team.run(_unpack, len(words), words, most, sums)

    def _renew(self, columns: np.ndarray, features: np.ndarray) -> None:
        self._add_exactly(columns)
        self._take_exact_sums(features)

    def _take_exact_sums(self, features: np.ndarray) -> None:
        table, both, sums = self._table, self._both, self.sums
        n_outputs = self._rows.n_outputs
        fill_slots(
            self._exact.total, self._exact_planes, table.bundles, table.layout, features, both,
            table.team,
        )  # fmt: skip
        for feature in features.tolist():
            own = table.layout.all_slots(feature)
            sums[::4, own] = self._most[:, own]
            np.subtract(self._most[:, own], both[:n_outputs, own], out=sums[1::4, own])
            sums[2::4, own] = both[n_outputs:, own]
            sums[3::4, own] = 0


@inner("void(int64[::1], int64[::1], int64[::1])")
def _set_words(gradient, hessian, words):  # type: ignore[no-untyped-def]
    half, half_of_hessian = 1 << (_GRADIENT_SHIFT - 1), 1 << (_HESSIAN_SHIFT - 1)
    for i in range(len(words)):
        upper = ((gradient[i] + half) >> _GRADIENT_SHIFT) << _HESSIAN_BITS
        words[i] = upper + ((hessian[i] + half_of_hessian) >> _HESSIAN_SHIFT)


@parallel("void(int64, int64[:, ::1], int64[:, ::1], int64[:, ::1])")
def _unpack(output, all_words, all_most, sums):  # type: ignore[no-untyped-def]
    """Write the four planes of an output."""
    words, most, mask = all_words[output], all_most[output], (1 << _HESSIAN_BITS) - 1
    positive, negative = sums[4 * output], sums[4 * output + 1]
    hessian, nothing = sums[4 * output + 2], sums[4 * output + 3]
    for s in range(len(words)):
        positive[s] = most[s]
        negative[s] = most[s] - ((words[s] >> _HESSIAN_BITS) << _GRADIENT_SHIFT)
        hessian[s] = (words[s] & mask) << _HESSIAN_SHIFT
        nothing[s] = 0


@inner("void(Tile, int64, int64, boolean, int64[::1])")
def _set_rows(tile, n, width, exactly, rows):  # type: ignore[no-untyped-def]
    """Write the rows of the first samples of a tile: words, or gradients and then Hessians."""
    if not exactly:
        _set_words(tile.gradient, tile.hessian, rows[: n * width])
        return
    for t in range(n):
        for k in range(width):
            rows[2 * t * width + k] = tile.gradient[t * width + k]
            rows[(2 * t + 1) * width + k] = tile.hessian[t * width + k]


@inner("void(CODE[::1], int64, int64[::1], int64, int64[::1])", CODE=("uint8", "uint16"))
def _add_rows(codes, shift, rows, width, sums):  # type: ignore[no-untyped-def]
    """Add samples' rows to a column's sums. Bins are codes without their `shift` lowest bits."""
    for i in range(len(codes)):
        add_row(sums, (np.int64(codes[i]) >> shift) * width, rows, i * width, width)


@parallel("void(int64, Columns, SoftmaxRows, boolean, int64[::1], int64, Lanes)")
def _add(piece, columns, rows, exactly, chosen, size, lanes):  # type: ignore[no-untyped-def]
    """Replace the sums of words, or of both integers, by those of all samples; see
    `TeamHistograms.add`."""
    n_wide, n_samples = len(columns.wide), len(rows.classes)
    width = 2 * rows.width if exactly else rows.width
    lane, mine = share_of(piece, chosen, size, lanes)
    here = next_piece(lanes, -1)
    if lane > 0 and here * lanes.size >= n_samples:
        return
    lanes.is_used[lane] = 1
    sums = Histograms(lanes.wide[lane], lanes.narrow[lane])
    for column in mine:
        clear_column(sums, column)
    tile, at_once = new_tile(rows), max(1, _NUMBERS_AT_ONCE // width // TILE) * TILE
    own_rows = np.empty(at_once * width, dtype=np.int64)
    while here * lanes.size < n_samples:
        end = min((here + 1) * lanes.size, n_samples)
        for start in range(here * lanes.size, end, at_once):
            stop = min(start + at_once, end)
            for s in range(start, stop, TILE):
                n = min(s + TILE, stop) - s
                set_integers(rows, s, s + n, tile)
                _set_rows(tile, n, rows.width, exactly, own_rows[(s - start) * width :])
            for c in mine:
                if c < n_wide:
                    codes = columns.wide[c, start:stop]
                    _add_rows(codes, PART_BITS, own_rows, width, sums.wide[0, c])
                else:
                    codes = columns.narrow[c - n_wide, start:stop]
                    _add_rows(codes, 0, own_rows, width, sums.narrow[0, c - n_wide])
        here = next_piece(lanes, here)


@inner(
    "void(CODE[::1], int64, SoftmaxRows, int64[:, ::1])",
    CODE=("uint8", "uint16"),
)
def _add_weights_of(codes, shift, rows, sums):  # type: ignore[no-untyped-def]
    unit, differ = np.int64(rows.units[0]), len(rows.units) > 1
    for i in range(len(codes)):
        own = np.int64(rows.units[np.uint64(i)]) if differ else unit
        sums[rows.classes[i], np.uint64(np.int64(codes[i]) >> shift)] += own


@parallel("void(int64, Columns, SoftmaxRows, Histograms, int64)")
def _add_weights(piece, columns, rows, sums, size):  # type: ignore[no-untyped-def]
    """Add the units of all samples to the sums of their classes and bins, for some columns."""
    n_wide = len(columns.wide)
    for column in range(piece * size, min((piece + 1) * size, n_wide + len(columns.narrow))):
        if column < n_wide:
            own = np.zeros((rows.n_outputs, WIDE_BINS), dtype=np.int64)
            _add_weights_of(columns.wide[column], PART_BITS, rows, own)
            for k in range(rows.n_outputs):
                add_numbers(sums.wide[k, column], own[k])
        else:
            own = np.zeros((rows.n_outputs, NARROW_BINS), dtype=np.int64)
            _add_weights_of(columns.narrow[column - n_wide], 0, rows, own)
            for k in range(rows.n_outputs):
                add_numbers(sums.narrow[k, column - n_wide], own[k])
