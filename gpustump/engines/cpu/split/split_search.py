"""The best split of a round, and what is kept of the bins.

The sums over all bins are given, perhaps as estimates, and a source answers the questions about
fewer samples. So the rows may be spread over many machines as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from gpustump.engines.contract import Cut, Step, with_signs
from gpustump.engines.cpu.histogram.estimates import Expected, Move, counts_of_regions
from gpustump.engines.cpu.split.search import BestSplit, Edges, Evaluator, SumsSource
from gpustump.engines.cpu.split.skew import NOTHING_NOTED, Skew
from gpustump.engines.cpu.split.slices import UNKNOWN
from gpustump.engines.cpu.table.bin_layout import BinLayout
from gpustump.engines.gain import Sums, best_constant, gain_of, score_of_outputs
from gpustump.engines.monotone import smoothing_of
from gpustump.engines.objective import Objective
from gpustump.engines.threads import Team


class Bins(Protocol):
    """The sums over the bins of all features in a round; see `bin_sums.BinSums`."""

    sums: np.ndarray
    error: np.ndarray
    is_exact: bool
    spread: np.ndarray

    def look(self) -> Expected:
        """Update the sums; returns what they would be if all samples had followed the majority."""

    def renew(self, features: np.ndarray) -> np.ndarray:
        """Make the sums of some features exact; returns all features whose sums became exact."""


class Counts(NamedTuple):
    """How many samples there are, and how many of them lack a value of each feature.

    Attributes
    ----------
    n_samples : int
    n_missing : ndarray (n_features,) of int64
    least : int
        The smallest Hessian that a sample may have.
    are_amounts : bool
        Whether sums over bins are those of amounts; see `histogram.amount_sums`.
    """

    n_samples: int
    n_missing: np.ndarray
    least: int = 1
    are_amounts: bool = False


class SplitSearch:
    """The search of one run.

    Parameters
    ----------
    layout : BinLayout
    counts : Counts
    objective : Objective
    team : Team
    """

    def __init__(self, layout: BinLayout, counts: Counts, objective: Objective, team: Team) -> None:
        self._layout, self._counts, self._objective = layout, counts, objective
        self._features = np.arange(len(layout.first))
        self._is_apart = (counts.n_missing > 0) & (layout.n_bins > 0)
        self._may_be_apart = bool(self._is_apart.any())
        has_shares = objective.loss in ("exponential", "logistic") or counts.are_amounts
        self._skew = Skew(layout, objective, team) if has_shares else None
        self._notes = NOTHING_NOTED if self._skew is None else self._skew.notes
        self._evaluator = Evaluator.of(objective, counts.least, are_amounts=counts.are_amounts)
        self._team = team
        self._found: tuple[Cut, np.ndarray] | None = None

    def best(self, source: SumsSource, bins: Bins, totals: np.ndarray) -> Cut:
        """The largest cut.

        Parameters
        ----------
        source : SumsSource
        bins : Bins
        totals : ndarray (n_outputs, 2) of int64
            The sums of the gradients and of the Hessians of all samples.
        """
        layout = self._layout
        expected, skew, spread = bins.look(), UNKNOWN, bins.spread
        if self._skew is not None:
            skew = self._skew.bounds(bins.sums, bins.error, expected)
        constant = best_constant(totals.tolist(), self._objective)
        evaluator = self._evaluator
        if self._objective.monotone is not None:
            evaluator = evaluator.smoothed(smoothing_of(int(totals[0, 1]), self._counts.n_samples))
        notes = self._notes._replace(spread=spread)
        found = BestSplit(source, evaluator, constant, notes, len(bins.sums), self._team)

        def exact_edges(features: np.ndarray) -> Edges:
            edges = Edges.of(bins.sums, layout, features, skew=skew, spread=spread)
            if self._may_be_apart:
                self._offer_apart(found, edges, constant.score)
            return edges

        if bins.is_exact:
            found.search(exact_edges(self._features))
        else:
            edges = Edges.of(bins.sums, layout, self._features, bins.error, skew, spread)
            found.search_estimates(edges, lambda features: exact_edges(bins.renew(features)))
        cut, self._found = found.cut, None  # of a constant nothing is kept
        if cut is None:
            return constant
        sums: np.ndarray = np.asarray(self._outputs(found.best.regions)).transpose(2, 0, 1)
        if self._objective.has_signs:
            cut = with_signs(cut, sums, self._objective)
        self._found = cut, sums
        return cut

    def sums_of(self, cut: Cut | None) -> np.ndarray | None:
        """The sums over the regions of the cut that was found last; None for any other."""
        found = self._found
        return found[1] if found is not None and cut is not None and found[0] == cut else None

    def follow(self, step: Step) -> tuple[tuple[int, int, int], Move] | None:
        """Prepare for a step, which is about to change the weights.

        Returns
        -------
        (tuple (n_regions,) of int, Move) or None
            How many samples lie in each region, and what the step does to the largest one. None if
            the step's cut is not the one that was found last, if `Move.of` gives no estimate, or
            for discrete votes of one output, whose sums are updated otherwise.
        """
        sums, known = self.sums_of(step.cut), None
        if step.cut is not None and sums is not None and not self._objective.has_signs:
            counts = counts_of_regions(self._counts.n_samples, self._counts.n_missing, step.cut)
            move = Move.of(step, counts, sums, self._objective)
            known = None if move is None else (counts, move)
        self._found = None
        if self._skew is not None:
            self._skew.follow(step, None if known is None else known[0])
        return known

    def _offer_apart(self, found: BestSplit, edges: Edges, constant: float) -> None:
        """Offer the thresholds above all values, which separate all values from the missing ones.

        Such a threshold counts as a split only if its score is larger than the constant's.
        """
        layout, features = edges.layout, edges.slices.feature
        both = self._is_apart[features].nonzero()[0]
        if not len(both):
            return
        present, missing = (
            self._outputs(part[:, both]) for part in (edges.outside.present, edges.outside.missing)
        )
        nothing = np.zeros(len(both), dtype=np.int64)
        empty = Sums(nothing, nothing)
        outputs = zip(present, [empty] * len(present), missing, strict=True)
        scores = score_of_outputs(gain_of(self._objective), outputs)
        best = int(np.argmax(scores))
        if scores[best] > constant:
            feature = int(features[both[best]])
            position = int(layout.offset[layout.first[feature] + layout.n_bins[feature]]) - 1
            cut = Cut(feature, position, 0, 0, scores[best].item())
            own = edges.outside.present[:, both[best]], edges.outside.missing[:, both[best]]
            found.offer(cut, np.stack((own[0], np.zeros_like(own[0]), own[1]), axis=1))

    def _outputs(self, planes: Sequence[Any] | np.ndarray) -> list[Sums]:
        """For each output the sums of the gradients and of the Hessians, from planes."""
        if self._objective.has_hessians:
            return [
                Sums(planes[k] - planes[k + 1], planes[k + 2] + planes[k + 3])
                for k in range(0, len(planes), 4)
            ]
        return [
            Sums(planes[k] - planes[k + 1], planes[k] + planes[k + 1])
            for k in range(0, len(planes), 2)
        ]
