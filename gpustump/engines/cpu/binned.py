"""Tables of medium size with Newton votes: every feature sorted, and coded in small bins.

A scan of whole features (`direct`) reads each sample for each feature and output, in random order,
and makes two divisions. If the samples are first added up by the codes of small bins, most of that
is not needed (see `binned_splits`). A table that is only coded (`codes`) takes less memory, and is
faster from some millions of elements on, as its sums are updated instead of added up anew. But each
of its rounds makes many calls of kernels, which take a millisecond however small the table is.

With other votes, or constraints, the features are scanned whole.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.engines.contract import Search
from gpustump.engines.cpu import direct
from gpustump.engines.cpu.direct import DirectState
from gpustump.engines.cpu.loss.loss import LossByOutput
from gpustump.engines.cpu.loss.losses import loss_of
from gpustump.engines.cpu.split.binned_splits import BinnedColumns, BinnedScan, BinsAhead
from gpustump.engines.cpu.table import codes, sorted_table
from gpustump.engines.cpu.table.codes import NARROW_CUTS, CodedTable, Room
from gpustump.engines.cpu.table.sorted_table import SortedTable
from gpustump.engines.integer_weights import in_units
from gpustump.engines.threads import Team

PER_BIN = 16
"""Samples of a bin, unless that makes too many bins. With smaller bins, the scores at edges take
longer than the searches inside bins that they save."""

_MOST_ELEMENTS_AHEAD = 2**22
"""A round of more elements takes about a millisecond, so making it ahead saves almost nothing."""


@dataclass(frozen=True)
class BinnedTable(SortedTable):
    """A feature table, sorted and coded.

    Attributes
    ----------
    coded : CodedTable
        The same samples in codes of one byte.
    """

    coded: CodedTable

    @functools.cached_property
    def binned_columns(self) -> BinnedColumns:
        """The columns of codes, in the form that the search takes."""
        return BinnedColumns.of(self.coded, self.order)


class BinnedState(DirectState):
    """The state of one run whose search is a `BinnedScan`."""

    def __init__(
        self, table: BinnedTable, loss: LossByOutput, scan: BinnedScan, search: Search
    ) -> None:
        super().__init__(table, loss, scan, search)
        self._in_bins = scan

    def _bins_ahead(self) -> BinsAhead | None:
        """See `DirectState._bins_ahead`."""
        is_small = self.table.order.size * self.search.n_outputs <= _MOST_ELEMENTS_AHEAD
        return self._in_bins.alone if is_small else None


def start(table: BinnedTable, labels: Array, sample_weight: Array, search: Search) -> DirectState:
    """Begin a run; see `engines.contract.Engine`."""
    if not can_search(search):
        return direct.start(table, labels, sample_weight, search)
    units = in_units(arrays.to_host(sample_weight), search.n_copies)
    loss = loss_of(arrays.to_host(labels), units, search)
    return BinnedState(
        table, loss, BinnedScan(table.binned_columns, table.team, search, loss.terms.first), search
    )


def can_search(search: Search) -> bool:
    """Whether a run can use bins: it has Newton votes and no constraints."""
    return search.votes == "newton" and search.monotone is None


def prepare(
    X: np.ndarray,
    rows: np.ndarray | None,
    team: Team,
    categorical: tuple[int, ...] = (),
    *,
    per_bin: int = PER_BIN,
    max_cuts: int = NARROW_CUTS,
) -> BinnedTable:
    """Sort and code a table (n_samples, n_features); for `categorical` see `contract.Task`."""
    own = sorted_table.prepare(X, rows, team, categorical)
    room = Room(finely=False, parted=False, sorted_bytes=0, per_bin=per_bin)
    coded = codes.prepare(X, rows, team, room=room, max_cuts=max_cuts, categorical=categorical)
    return BinnedTable(own.source, own.order, own.n_present, team, coded)
