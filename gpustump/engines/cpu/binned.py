"""Tables of medium size under Newton votes: every feature sorted, and coded in small bins.

Scanning every feature whole takes a look at each sample for each feature and output, out of order,
and two divisions. Where the samples are first added up by the codes of small bins, most of that is
left out (see `binned_splits`). A table that is coded alone needs less memory and is the faster one
from some millions of elements on, as its sums follow the rounds; but it does that in many calls of
kernels, which take a millisecond in each round, however small the table is.

With other votes, or constraints, the features are scanned whole.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.engines.ahead import NewtonRule, WatchedSamples
from gpustump.engines.category_search import Categories
from gpustump.engines.contract import Search
from gpustump.engines.cpu import codes, direct
from gpustump.engines.cpu.binned_splits import BinnedColumns, BinnedScan
from gpustump.engines.cpu.codes import NARROW_CUTS, CodedTable, Room
from gpustump.engines.cpu.direct import DirectState, DirectTable
from gpustump.engines.cpu.loss import Loss
from gpustump.engines.cpu.losses import loss_of
from gpustump.engines.cpu.rounds_ahead import RoundsAhead
from gpustump.engines.integer_weights import in_units
from gpustump.engines.threads import Team

PER_BIN = 16
"""Samples of a bin, where there are not too many: with fewer, edges take longer than looks."""

_MOST_ELEMENTS_AHEAD = 2**22
"""A round of more elements takes about a millisecond: making it ahead saves next to nothing."""


@dataclass(frozen=True)
class BinnedTable(DirectTable):
    """A feature table, sorted and coded.

    Attributes
    ----------
    coded : CodedTable
        The same samples in codes of one byte.
    """

    coded: CodedTable

    @functools.cached_property
    def binned_columns(self) -> BinnedColumns:
        """The columns of codes, as the search takes them."""
        return BinnedColumns.of(self)

    def start(self, labels: Array, sample_weight: Array, search: Search) -> DirectState:
        """Begin a run; see `engines.contract.PreparedTable`."""
        if not can_search(search):
            return super().start(labels, sample_weight, search)
        units = in_units(arrays.to_host(sample_weight), search.n_copies)
        loss = loss_of(arrays.to_host(labels), units, search)
        return BinnedState(self, loss, BinnedScan(self, search, loss.terms.first), search)


class BinnedState(DirectState):
    """The state of one run whose search is a `BinnedScan`."""

    def __init__(self, table: BinnedTable, loss: Loss, scan: BinnedScan, search: Search) -> None:
        super().__init__(table, loss, scan, search)
        self._in_bins = scan

    def looking_ahead(
        self,
        rule: NewtonRule,
        watched: WatchedSamples | None,
        categories: Categories | None = None,
    ) -> RoundsAhead | None:
        """See `DirectState.looking_ahead`."""
        alone, size = self._in_bins.alone, self.table.order.size * self.search.n_outputs
        if alone is None or size > _MOST_ELEMENTS_AHEAD or self.table.source.is_half:
            return None
        return RoundsAhead(self, rule, watched, categories, alone)


def can_search(search: Search) -> bool:
    """Whether bins are of use in a run: it has Newton votes and no constraints."""
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
    own = direct.prepare(X, rows, team, categorical)
    room = Room(finely=False, parted=False, sorted_bytes=0, per_bin=per_bin)
    coded = codes.prepare(X, rows, team, room=room, max_cuts=max_cuts, categorical=categorical)
    return BinnedTable(own.source, own.order, own.n_present, team, coded)
