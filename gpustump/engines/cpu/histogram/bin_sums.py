"""The sums over all bins in a run whose integers all change in every round: exact, or estimates.

If a step separates few samples from many, the sums are estimated (see `estimates`), and their
largest errors are kept with them. The sums of single features can be made exact at any time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from gpustump.engines.contract import Step
from gpustump.engines.cpu.histogram.changes import (
    Changes,
    add_changes,
    add_words,
    list_changes,
    list_minority,
)
from gpustump.engines.cpu.histogram.estimates import SLOTS_AT_ONCE, Expected, Move, move_slots
from gpustump.engines.cpu.histogram.histograms import (
    TeamHistograms,
    add_terms,
    fill_slots,
    slot_sums,
)
from gpustump.engines.cpu.loss.loss import Loss
from gpustump.engines.cpu.loss.terms import SampleSums, Terms
from gpustump.engines.cpu.table.codes import CodedTable
from gpustump.engines.cpu.table.columns import Histograms
from gpustump.engines.objective import Objective


class HistogramSums(ABC):
    """Sums over all bins, kept in histograms; see `split_search.Bins`.

    Parameters
    ----------
    table : CodedTable
    objective : Objective

    Attributes
    ----------
    sums : ndarray (n_planes, n_slots) of int64
        In the planes of `slices`, as of the last call of `look`.
    error : ndarray (n_planes, n_slots) of float64
        The largest error of each sum.
    is_exact : bool
        Whether all sums are exact.
    spread : ndarray (n_slots,) of float64
        See `slices`; empty if that is not known.
    """

    spread = np.zeros(0)

    def __init__(self, table: CodedTable, objective: Objective) -> None:
        self._table, self._objective = table, objective
        n_planes = (4 if objective.has_hessians else 2) * objective.n_outputs
        bundles = table.bundles
        self._column = np.where(bundles.is_wide > 0, 0, len(table.columns.wide)) + bundles.column
        self.sums = np.zeros((n_planes, len(table.layout.offset)), dtype=np.int64)
        self.error = np.zeros(self.sums.shape)
        self.is_exact = True
        self._is_behind = True  # whether the histograms are newer than the sums
        self._expected = Expected(self.sums, self.error)

    def look(self) -> Expected:
        """Update the sums; returns what they would be if all samples had followed the majority."""
        if self._is_behind:
            self._is_behind = False
            self._take_sums()
        return self._expected

    def renew(self, features: np.ndarray) -> np.ndarray:
        """Add up some features anew; returns all features that share their columns, in order."""
        is_chosen = np.zeros(self._table.columns.n_columns, dtype=bool)
        is_chosen[self._column[features]] = True
        renewed: np.ndarray = is_chosen[self._column].nonzero()[0]
        self._renew(is_chosen.nonzero()[0], renewed)
        for feature in renewed.tolist():
            self.error[:, self._table.layout.all_slots(feature)] = 0.0
        return renewed

    def take_step(self, loss: Loss, step: Step, regions: np.ndarray) -> SampleSums | None:
        """Update the samples and the sums by a step; returns the sums over all samples.

        None if that cannot be done at once; then nothing is changed.
        """
        return None

    def sums_of(self, features: np.ndarray) -> np.ndarray:
        """The sums over the slots of some features, added up anew, (n_planes, n)."""
        self.renew(features)
        slots = [self._table.layout.all_slots(feature) for feature in features.tolist()]
        return np.concatenate([self.sums[:, own] for own in slots], axis=1)

    @abstractmethod
    def add_up(self) -> None:
        """Add up all samples anew."""

    @abstractmethod
    def _take_sums(self) -> None:
        """Replace the sums over all slots by those of the histograms."""

    @abstractmethod
    def _renew(self, columns: np.ndarray, features: np.ndarray) -> None:
        """Add up some columns anew, and replace the sums over the slots of their features."""


class BinSums(HistogramSums):
    """The sums of one run, from integers that are stored output by output.

    Parameters
    ----------
    table : CodedTable
    terms : Terms
        The run's integers; the arrays are overwritten in every round.
    objective : Objective
    """

    def __init__(self, table: CodedTable, terms: Terms, objective: Objective) -> None:
        super().__init__(table, objective)
        self._terms, self._n_inside = terms, table.layout.counts(table.n_missing)
        outputs = range(0, 2 * objective.n_outputs, 2)
        width = 2 if objective.has_hessians else 1
        # For each plane of `slices`, the histograms' plane, and which of the integers added there.
        planes = [(k + s, which) for k in outputs for which in range(width) for s in (0, 1)]
        self._planes = np.asarray(planes)
        self._word_planes = np.asarray([(plane, 0) for plane in range(2 * objective.n_outputs)])
        self._histograms = TeamHistograms(2 * objective.n_outputs, width, table.columns, table.team)
        self._changes: list[Changes] = []
        self._into: Histograms | None = None
        self._unpacked, self._error_now = np.empty_like(self.sums), np.zeros(self.sums.shape)

    def _take_sums(self) -> None:
        table = self._table
        self.sums = slot_sums(
            self._histograms.total, self._planes, table.bundles, table.layout, table.team
        )

    def _renew(self, columns: np.ndarray, features: np.ndarray) -> None:
        table, histograms = self._table, self._histograms
        histograms.add(columns, add_terms, table.columns, self._terms)
        fill_slots(
            histograms.total, self._planes, table.bundles, table.layout, features, self.sums,
            table.team,
        )  # fmt: skip

    def expect(self, move: Move, *, follows: bool) -> None:
        """Note what the sums would be if all samples followed a step as the majority does.

        `follows` says whether the sums will be estimates.
        """
        n_pieces, size = self._table.team.pieces(len(self._n_inside), SLOTS_AT_ONCE)
        own = (self.sums, self.error, self._n_inside, move, self._error_now, size)
        self._table.team.run(move_slots, n_pieces, *own)
        self._expected = Expected(self.sums, self._error_now if follows else self.error)
        self.is_exact = False

    def add_up(self) -> None:
        """Add up all samples anew."""
        columns = self._table.columns
        self._histograms.add(np.arange(columns.n_columns), add_terms, columns, self._terms)
        if not self.is_exact:
            self.error = np.zeros_like(self.error)
        self.is_exact = self._is_behind = True

    def take_step(self, loss: Loss, step: Step, regions: np.ndarray) -> SampleSums | None:
        """Update the samples and exact sums by a step of discrete votes; see `update_pass`."""
        if not self._objective.has_signs or step.rescale_exponent != 0:
            return None
        from gpustump.engines.cpu.histogram.update_pass import update

        self._is_behind = True
        return update(loss, step, regions, self._table.columns, self._histograms)

    def follow(self, advance: Callable[[], None], regions: np.ndarray, move: Move) -> None:
        """Update the sums by a step that is expected, as estimates.

        Parameters
        ----------
        advance : callable
            Updates all samples by the step.
        regions : ndarray (n_samples,) of uint8
        move : Move
        """
        found = self.changes(advance, regions, move, self._expected.sums)
        self.sums, self._unpacked = found, self._expected.sums

    def changes(
        self, advance: Callable[[], None], regions: np.ndarray, move: Move, sums: np.ndarray
    ) -> np.ndarray:
        """`sums` (n_planes, n_slots), with what a step's move leaves out.

        The other arguments are those of `follow`. The answer may be overwritten by the next one.
        """
        self._list(advance, regions, move)
        words, team = self._added(), self._table.team
        if len(self._terms.hessian) == 0:
            words += sums
            return words
        n_pieces, size = team.pieces(words.shape[1], SLOTS_AT_ONCE)
        team.run(add_words, n_pieces, words, move.shift, sums, self._unpacked, size)
        return self._unpacked

    def _added(self) -> np.ndarray:
        """The sums over slots of what is listed, positive and negative for each output."""
        table, planes = self._table, self._word_planes
        into = self._into = self._into or Histograms.empty(len(planes), 1, table.columns)
        for output, changes in enumerate(self._changes):
            add_changes(table.columns, into, 2 * output, changes, table.team)
        return slot_sums(into, planes, table.bundles, table.layout, table.team)

    def _list(self, advance: Callable[[], None], regions: np.ndarray, move: Move) -> None:
        """Update the samples, and list what is to be added for those of the minority."""
        terms, team, n_samples = self._terms, self._table.team, self._table.n_samples
        if not self._changes:
            self._changes = [Changes.empty(n_samples, team) for _ in terms.gradient]
        n_pieces = len(self._changes[0].n_front)
        for output, changes in enumerate(self._changes):
            team.run(list_minority, n_pieces, terms, regions, move, output, changes)
        advance()
        for output, changes in enumerate(self._changes):
            team.run(list_changes, n_pieces, terms, move, output, changes)
