"""The best split of all features: one search for every kind of votes.

A search needs three kinds of sums (see `slices`): over all bins, over the parts of some bins, and
over the samples of some parts. The first are given; it asks a *source*, something that holds
samples, for the others. To *evaluate* the cells of an answer is to compute the scores of the cuts
between them, and bounds for the cuts inside them (`cell_scores`). A cell whose bound is below the
best score found so far cannot hold the best cut. The search asks for more detail about the others,
those of the highest bounds first.

Ties are broken by the order of `contract.Cut`, so the order in which cells are searched does not
matter.

Where the sums over bins are estimates, the search first finds the features that may hold the best
cut. Their sums are added up anew, and the cut is found by these exact sums.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from gpustump.engines.contract import Cut
from gpustump.engines.cpu.runtime.compiling import address_of, kernel
from gpustump.engines.cpu.runtime.kernel_folder import module_of
from gpustump.engines.cpu.split import STAGE_OF
from gpustump.engines.cpu.split.cut_scores import KINDS, NO_KEY, key_of_score, score_of
from gpustump.engines.cpu.split.monotone_bounds import Rules
from gpustump.engines.cpu.split.refine import BestCut, around, evaluating, may_win, refining
from gpustump.engines.cpu.split.skew import Notes
from gpustump.engines.cpu.split.slices import (
    EXACT,
    NO_SPREAD,
    UNKNOWN,
    Answer,
    FloatPlanes,
    Outside,
    Slices,
)
from gpustump.engines.cpu.split.sums_source import InOrder
from gpustump.engines.cpu.table.bin_layout import BinLayout
from gpustump.engines.objective import Objective
from gpustump.engines.threads import Team
from gpustump.learners.hypothesis import N_REGIONS

_BEHIND_ALL = 2**62
"""The feature and the position of a constant: it comes after all splits of its score."""


class SumsSource(Protocol):
    """What a search asks about samples, wherever they are.

    Attributes
    ----------
    bins_at_once : int
        How many promising bins are asked about at once, or half of them if that is more. Then the
        bounds of the others are compared with the new best score.
    """

    @property
    def bins_at_once(self) -> int: ...

    @property
    def in_order(self) -> InOrder | None:
        """What compiled code needs to answer in place of this source; None if it cannot."""

    def prefetch(self, bounds: np.ndarray, least: float) -> None:
        """Of the bins with these bounds, those are likely to be asked about in this round whose
        bounds are at least `least`, the highest first; a source may get ready for that."""

    def parts(self, slots: np.ndarray, features: np.ndarray) -> Iterator[Answer]:
        """The sums over the parts of some bins, in order of their slots; each bin is a segment."""

    def samples(self, answer: Answer, segments: np.ndarray, cells: np.ndarray) -> Answer:
        """The sums over the distinct values in some open cells, each of which becomes a segment.

        A source may also answer with smaller parts of the cells, some of which are open again.
        """


@dataclass(frozen=True)
class Evaluator:
    """How the cells of a search are evaluated.

    Attributes
    ----------
    kernel : callable
        That of the votes; see `cell_scores`.
    address : int
        Where its machine code is.
    refine : callable, or None
        See `compiled_refine`; None if it is not loaded.
    kind : int
        Whose keys scores and bounds are; see `cut_scores`.
    rules : Rules
    """

    kernel: Callable[..., Any]
    address: int
    refine: Callable[..., Any] | None
    kind: int
    rules: Rules

    @classmethod
    def of(cls, objective: Objective, least: int = 1, *, are_amounts: bool = False) -> Evaluator:
        """For a search; `least` and `are_amounts` are those of `split_search.Counts`."""
        rules = Rules(float(objective.l2), 0.0, objective.directions, least, are_amounts)
        own = importlib.import_module(module_of(STAGE_OF[objective.gain]))
        refine = getattr(sys.modules.get(module_of("split.compiled_refine")), "refine", None)
        kind = KINDS[objective.gain]
        return cls(own.evaluate, address_of(own.evaluate), refine, kind, rules)

    def smoothed(self, smoothing: float) -> Evaluator:
        """The same with the smoothing of a round's levels; see `monotone.smoothing_of`."""
        return replace(self, rules=self.rules._replace(smoothing=smoothing))


class Edges(NamedTuple):
    """The sums over the bins of each feature, and what surrounds them.

    Attributes
    ----------
    slices : Slices
        The bins of each feature.
    outside : Outside
    layout : BinLayout
    """

    slices: Slices
    outside: Outside
    layout: BinLayout

    @classmethod
    def of(
        cls, sums: np.ndarray, layout: BinLayout, features: np.ndarray, error: FloatPlanes = EXACT,
        skew: FloatPlanes = UNKNOWN, spread: np.ndarray = NO_SPREAD,
    ) -> Edges:  # fmt: skip
        """From the sums over all slots, (n_planes, n_slots), for some features.

        `error`, of the same shape, are their largest errors; `EXACT` if they are exact. `skew` and
        `spread` are those of `Slices`.
        """
        slices = Slices(
            features, layout.first[features], layout.n_bins[features], sums, error, skew,
            layout.last, layout.has_inner_split, spread,
        )  # fmt: skip
        outside = Outside.empty(len(sums), len(features), is_exact=not len(error))
        _enclose(slices, outside)
        return cls(slices, outside, layout)


@kernel("void(Slices, Outside)")
def _enclose(slices, outside):  # type: ignore[no-untyped-def]
    """What surrounds the bins of features; the slot behind them holds the missing values."""
    is_exact = len(slices.error) == 0
    for plane in range(len(slices.sums)):
        sums, total = slices.sums[plane], 0
        for t in range(len(slices.first)):
            start, end = slices.first[t], slices.first[t] + slices.n_cells[t]
            if t == 0 or not is_exact:  # exact sums over all samples are the same for all features
                total = sums[start : end + 1].sum()
            outside.left[plane, t] = 0
            outside.present[plane, t] = total - sums[end]
            outside.missing[plane, t] = sums[end]
            if not is_exact:
                outside.left_error[plane, t], outside.right_error[plane, t] = 0.0, 0.0
                outside.missing_error[plane, t] = slices.error[plane, end]


class BestSplit:
    """A search in progress.

    Parameters
    ----------
    source : SumsSource
    evaluator : Evaluator
    constant : Cut
        The best constant, with which splits are compared.
    notes : Notes
    n_planes : int
    team : Team

    Attributes
    ----------
    best : BestCut
        The best cut so far.
    """

    def __init__(
        self,
        source: SumsSource,
        evaluator: Evaluator,
        constant: Cut,
        notes: Notes,
        n_planes: int,
        team: Team,
    ) -> None:
        score = np.asarray([key_of_score(constant.score, evaluator.kind)])
        regions = np.empty((n_planes, N_REGIONS), dtype=np.int64)
        self.best = BestCut(score, np.full(2, _BEHIND_ALL), regions)
        self._source, self._evaluator, self._notes, self._team = source, evaluator, notes, team

    @property
    def cut(self) -> Cut | None:
        """The best split; None if no split is better than the constant."""
        feature, position = self.best.place.tolist()
        if feature == _BEHIND_ALL:
            return None
        score = score_of(int(self.best.score[0]), self._evaluator.kind)
        return Cut(feature, position, 0, 0, score)

    def offer(self, cut: Cut, regions: np.ndarray) -> None:
        """Take a split if it is better than the best cut; `regions` are those of `BestCut`."""
        assert cut.position is not None
        key, best = key_of_score(cut.score, self._evaluator.kind), self.best
        feature, position = best.place.tolist()
        if (key, -cut.feature, -cut.position) > (best.score[0], -feature, -position):
            best.score[0], best.place[:] = key, (cut.feature, cut.position)
            best.regions[:] = regions

    def search(self, edges: Edges) -> None:
        """Search all cuts, given exact sums over bins."""
        self._refine(edges, np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))

    def search_estimates(self, edges: Edges, renewed: Callable[[np.ndarray], Edges]) -> None:
        """Search all cuts, given sums over bins that are estimates.

        Parameters
        ----------
        edges : Edges
        renewed : callable
            Returns the edges with exact sums, for some features and those added up with them.
        """
        slices = edges.slices
        limits = np.empty((2, len(slices.first)), dtype=np.int64)
        team, own = self._team, self._evaluator
        about = (slices, edges.outside, own.rules, self.best, False, limits)
        bounds = self._evaluated(team, team.size, own.kernel, *about)
        at_edges = limits[0]
        self._source.prefetch(bounds, max(at_edges.max(), self.best.score[0]))

        def renew(chosen: np.ndarray) -> np.ndarray:
            exact = renewed(chosen)
            self.search(exact)
            found: np.ndarray = exact.slices.feature
            limits[:, found] = NO_KEY
            return found

        renew(np.asarray([at_edges.argmax()]))  # a good one first rules most others out
        most = self._contending(edges, bounds, limits)
        chosen = np.asarray([most.argmax()])
        while len(self._may_win(most[chosen], self.best)):
            most[renew(chosen)] = NO_KEY
            chosen = self._may_win(most, self.best)

    def _contending(self, edges: Edges, bounds: np.ndarray, limits: np.ndarray) -> np.ndarray:
        """For each feature the most that a cut may be worth, by estimates and parts of bins.

        `limits` (2, n_features) are those of `cell_scores.EVALUATED`, below all scores for features
        that were searched.
        """
        (at_edges, anywhere), score = limits, self.best.score[0]
        is_certain = at_edges >= score  # the parts of its bins cannot rule this feature out
        most: np.ndarray = np.where(is_certain, anywhere, at_edges)
        is_open = (anywhere >= score) & ~is_certain
        slots = self._may_win(bounds, self.best)
        slots = slots[is_open[edges.layout.feature_of(slots)]]
        if len(slots):
            self._refine(edges, slots, most)
        return most

    def _refine(self, edges: Edges, chosen: np.ndarray, most: np.ndarray) -> None:
        """Refine bins, in compiled code if that can answer all questions; see `refine`."""
        source, team, own, known = self._source, self._team, self._evaluator, self._source.in_order
        given = (edges.slices, edges.outside, own.rules, self._notes, self.best, chosen, most)
        about = (source.bins_at_once, *given)
        if known and own.refine and team.run(own.refine, team.size, own.address, known, *about):
            return
        self._in_python(edges.layout)(team, team.size, own.kernel, source, *about)

    def _in_python(self, layout: BinLayout) -> Any:
        """The function that refines bins, for any source."""
        return refining(
            self._evaluated,
            self._may_win,
            lambda source, slots: True,
            lambda team, size, source, slots: source.parts(slots, layout.feature_of(slots)),
            lambda team, size, source, *about: source.samples(*about),
            around,
        )

    def _evaluated(self, *about: Any) -> np.ndarray:
        """See `refine.evaluating`."""
        found: np.ndarray = evaluating(lambda kernel, team, *own: team.run(kernel, *own))(*about)
        return found

    def _may_win(self, bounds: np.ndarray, best: BestCut) -> np.ndarray:
        """See `refine.may_win`."""
        found: np.ndarray = may_win(bounds, best)
        return found
