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

import functools
import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from gpustump.engines.contract import Cut
from gpustump.engines.cpu.runtime.compiling import inner, kernel
from gpustump.engines.cpu.split import STAGE_OF
from gpustump.engines.cpu.split.cell_scores import NO_AGREEMENT, Scored
from gpustump.engines.cpu.split.monotone_bounds import Rules
from gpustump.engines.cpu.split.part_bounds import NO_SCORE
from gpustump.engines.cpu.split.slices import (
    EXACT,
    NO_SPREAD,
    UNKNOWN,
    Answer,
    FloatPlanes,
    Outside,
    Slices,
)
from gpustump.engines.cpu.table.bin_layout import BinLayout
from gpustump.engines.objective import Objective
from gpustump.engines.threads import Team

_MOST_CELLS = 512
"""If, by estimates, more parts of bins than this may hold the best cut, their samples are not asked
for; their features are added up anew instead."""

_CELLS_AT_ONCE = 2**12
"""About how many cells a thread evaluates at a time."""


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

    def prefetch(self, bounds: np.ndarray, least: float) -> None:
        """Of the bins with these bounds, those are likely to be asked about in this round whose
        bounds are at least `least`, the highest first; a source may get ready for that."""

    def parts(self, slots: np.ndarray, features: np.ndarray) -> Iterator[Answer]:
        """The sums over the parts of some bins, in order of their slots; each bin is a segment."""

    def samples(self, answer: Answer, segments: np.ndarray, cells: np.ndarray) -> Answer:
        """The sums over the distinct values in some open cells, each of which becomes a segment.

        A source may also answer with smaller parts of the cells, some of which are open again.
        """


class Best(NamedTuple):
    """The best cut so far, and the sums over its regions.

    Attributes
    ----------
    cut : Cut
    regions : callable, or None
        Returns them in the planes of `slices`, (n_planes, n_regions) of int64; None for a constant.
    """

    cut: Cut
    regions: Callable[[], np.ndarray] | None = None


@dataclass(frozen=True)
class Evaluator:
    """How the cells of a search are evaluated.

    Attributes
    ----------
    kernel : callable
        That of the votes; see `cell_scores`.
    dtype : dtype
        Of scores and bounds.
    rules : Rules
    """

    kernel: Callable[..., Any]
    dtype: np.dtype
    rules: Rules

    @classmethod
    def of(cls, objective: Objective, least: int = 1, *, are_amounts: bool = False) -> Evaluator:
        """For a search; `least` and `are_amounts` are those of `split_search.Counts`."""
        rules = Rules(float(objective.l2), 0.0, objective.directions, least, are_amounts)
        own = importlib.import_module(f"gpustump.engines.cpu.{STAGE_OF[objective.gain]}")
        dtype = np.dtype(np.int64 if objective.gain == "discrete" else np.float64)
        return cls(own.evaluate, dtype, rules)

    def smoothed(self, smoothing: float) -> Evaluator:
        """The same with the smoothing of a round's levels; see `monotone.smoothing_of`."""
        return replace(self, rules=self.rules._replace(smoothing=smoothing))

    @functools.cached_property
    def nothing(self) -> float:
        """Less than every score."""
        return NO_AGREEMENT if self.dtype == np.int64 else NO_SCORE

    def evaluate(
        self,
        slices: Slices,
        outside: Outside,
        team: Team,
        most: np.ndarray | None = None,
    ) -> tuple[list[Scored], np.ndarray]:
        """The best cut of each piece of the segments, and a bound for each cell.

        Parameters
        ----------
        slices : Slices
        outside : Outside
        team : Team
        most : ndarray (2, n_segments), optional
            Set, where sums are estimates, to the most that a score may be at the edges of each
            segment's cells, and to their largest bound.

        Returns
        -------
        found : list of Scored
        bounds : ndarray (n_cells,)
        """
        n_segments, n_cells = len(slices.first), slices.sums.shape[1]
        bounds = np.empty(n_cells, dtype=self.dtype)
        bounds.fill(self.nothing)
        most = np.empty((2, 0), dtype=self.dtype) if most is None else most
        n_pieces, size = 1, n_segments
        if n_cells > _CELLS_AT_ONCE:
            n_pieces, size = team.pieces(n_segments, _CELLS_AT_ONCE * n_segments // n_cells + 1)
        scores, places = np.empty(n_pieces, dtype=self.dtype), np.empty((n_pieces, 2), np.int64)
        own = (slices, outside, self.rules, size, bounds, most, scores, places)
        team.run(self.kernel, n_pieces, *own)
        of_pieces = zip(scores.tolist(), places.tolist(), strict=True)
        return [Scored(score, *place) for score, place in of_pieces if place[1] >= 0], bounds


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
    """A search in progress, with the best cut so far.

    Parameters
    ----------
    source : SumsSource
    evaluator : Evaluator
    constant : Cut
        The best constant, with which splits are compared.
    team : Team
    """

    def __init__(self, source: SumsSource, evaluator: Evaluator, constant: Cut, team: Team) -> None:
        self.best = Best(constant)
        self._source, self._evaluator, self._team = source, evaluator, team

    def offer(self, cut: Cut, regions: Callable[[], np.ndarray]) -> None:
        """Take a cut if it is better than the best one."""
        if cut > self.best.cut:
            self.best = Best(cut, regions)

    def search(self, edges: Edges, learn: Callable[[np.ndarray, Slices], None]) -> None:
        """Search all cuts.

        Parameters
        ----------
        edges : Edges
            Of exact sums.
        learn : callable
            Called with slots and their cells when the parts of bins are known.
        """
        bounds = self._evaluated(edges.slices, edges.outside)
        waiting = self._may_win(bounds).nonzero()[0]
        looked_into = []
        while len(waiting):
            n_taken = max(self._source.bins_at_once, len(waiting) // 2)
            if n_taken < len(waiting):
                waiting = waiting[np.argsort(-bounds[waiting], kind="stable")]
            slots = np.sort(waiting[:n_taken])
            for answer, outside in self._parts(edges, slots):
                own = self._evaluated(answer.slices, outside)
                learn(answer.slots, answer.slices)
                looked_into.append((answer, outside, own))
            waiting = waiting[n_taken:]
            waiting = waiting[self._may_win(bounds[waiting])]
        for seen in looked_into:  # by now the best score is nearly what it will be
            self._look_at_samples(*seen)

    def search_estimates(
        self,
        edges: Edges,
        renewed: Callable[[np.ndarray], Edges],
        learn: Callable[[np.ndarray, Slices], None],
    ) -> None:
        """Search all cuts, given sums over bins that are estimates.

        Parameters
        ----------
        edges : Edges
        renewed : callable
            Returns the edges with exact sums, for some features and those added up with them.
        learn : callable
            As in `search`.
        """
        slices = edges.slices
        limits = np.empty((2, len(slices.first)), dtype=self._evaluator.dtype)
        _, bounds = self._evaluator.evaluate(slices, edges.outside, self._team, limits)
        at_edges = limits[0]
        self._source.prefetch(bounds, max(at_edges.max(), self.best.cut.score))

        def renew(chosen: np.ndarray) -> np.ndarray:
            exact = renewed(chosen)
            self.search(exact, learn)
            found: np.ndarray = exact.slices.feature
            limits[:, found] = self._evaluator.nothing
            return found

        renew(np.asarray([at_edges.argmax()]))  # a good one first rules most others out
        most = self._contending(edges, bounds, limits, learn)
        chosen = np.asarray([most.argmax()])
        while self._may_win(most[chosen]).any():
            most[renew(chosen)] = self._evaluator.nothing
            chosen = self._may_win(most).nonzero()[0]

    def _contending(
        self,
        edges: Edges,
        bounds: np.ndarray,
        limits: np.ndarray,
        learn: Callable[[np.ndarray, Slices], None],
    ) -> np.ndarray:
        """For each feature the most that a cut may be worth, by estimates and parts of bins.

        `limits` (2, n_features) are those of `Evaluator.evaluate`, below all scores for features
        that were searched.
        """
        at_edges, anywhere = limits
        is_certain = self._may_win(at_edges)  # the parts of its bins cannot rule this feature out
        most: np.ndarray = np.where(is_certain, anywhere, at_edges)
        is_open = self._may_win(anywhere) & ~is_certain
        slots = self._may_win(bounds).nonzero()[0]
        slots = slots[is_open[edges.layout.feature_of(slots)]]
        for answer, outside in self._parts(edges, slots):
            own = self._bounds(answer.slices, outside)
            learn(answer.slots, answer.slices)
            closer = self._may_win(own) & (answer.slices.is_open[: len(own)] > 0)
            if 0 < np.count_nonzero(closer) <= _MOST_CELLS:
                found, around = self._samples(answer, outside, closer.nonzero()[0])
                _raise(found.slices, self._bounds(found.slices, around), most)
                own = np.where(closer, self._evaluator.nothing, own)
            _raise(answer.slices, own, most)
        return most

    def _bounds(self, slices: Slices, outside: Outside) -> np.ndarray:
        """Bounds for the cuts inside cells and at their right edges."""
        return self._evaluator.evaluate(slices, outside, self._team)[1]

    def _evaluated(self, slices: Slices, outside: Outside) -> np.ndarray:
        """Offer the best cut between cells; returns bounds for the cuts inside them."""
        found, bounds = self._evaluator.evaluate(slices, outside, self._team)
        for own in found:
            if own.score >= self.best.cut.score:
                feature, position = int(slices.feature[own.segment]), int(slices.last[own.cell])
                regions = functools.partial(_regions_of, slices, outside, own.segment, own.cell)
                self.offer(Cut(feature, position, 0, 0, own.score), regions)
        return bounds

    def _may_win(self, bounds: np.ndarray) -> np.ndarray:
        found: np.ndarray = bounds >= self.best.cut.score
        return found

    def _parts(self, edges: Edges, slots: np.ndarray) -> Iterator[tuple[Answer, Outside]]:
        """Ask for the parts of some bins."""
        if not len(slots):
            return
        for answer in self._source.parts(slots, edges.layout.feature_of(slots)):
            _, outside = _around(edges.slices, edges.outside, answer.slots)
            if not outside.is_exact:
                _correct(edges.slices, answer.slots, answer.slices, outside.present)
            yield answer, outside

    def _look_at_samples(self, answer: Answer, outside: Outside, bounds: np.ndarray) -> None:
        """Ask for the samples of the open cells that may hold a better cut."""
        while len(cells := self._may_win(bounds).nonzero()[0]):  # a closed one never may
            answer, outside = self._samples(answer, outside, cells)
            bounds = self._evaluated(answer.slices, outside)

    def _samples(
        self, answer: Answer, outside: Outside, cells: np.ndarray
    ) -> tuple[Answer, Outside]:
        """Ask for the samples of some open cells."""
        segments, around = _around(answer.slices, outside, cells)
        return self._source.samples(answer, segments, cells), around


def _around(slices: Slices, outside: Outside, cells: np.ndarray) -> tuple[np.ndarray, Outside]:
    """The segments in which some cells lie, and what surrounds each of the cells."""
    segments = np.empty_like(cells)
    found = Outside.empty(len(slices.sums), len(cells), is_exact=outside.is_exact)
    _surround(slices, outside, cells, segments, found)
    return segments, found


@inner("void(Slices, Outside, int64, int64[::1], int64[::1], Outside)")
def _set_errors(slices, outside, plane, cells, segments, found):  # type: ignore[no-untyped-def]
    """Write how far the sums of a plane over the cells before and after each one are off."""
    left, right = found.left_error[plane], found.right_error[plane]
    error = slices.error[plane] if len(slices.error) > 0 else np.zeros(slices.sums.shape[1])
    for k in range(len(cells)):
        t = segments[k]
        is_next = k > 0 and segments[k - 1] == t
        total = left[k - 1] if is_next else outside.left_error[plane, t]
        for u in range(cells[k - 1] if is_next else slices.first[t], cells[k]):
            total += error[u]
        left[k] = total
    for k in range(len(cells) - 1, -1, -1):
        t = segments[k]
        is_next = k + 1 < len(cells) and segments[k + 1] == t
        total = right[k + 1] if is_next else outside.right_error[plane, t]
        end = cells[k + 1] + 1 if is_next else slices.first[t] + slices.n_cells[t]
        for u in range(cells[k] + 1, end):
            total += error[u]
        right[k] = total


@kernel("void(Slices, Outside, int64[::1], int64[::1], Outside)")
def _surround(slices, outside, cells, segments, found):  # type: ignore[no-untyped-def]
    """Write what `_around` returns. Cells are in order, so no sum is added up twice."""
    t, n_cells = 0, len(cells)
    for k in range(n_cells):
        while t + 1 < len(slices.first) and slices.first[t + 1] <= cells[k]:
            t += 1
        segments[k] = t
    for plane in range(len(slices.sums)):
        sums, left = slices.sums[plane], found.left[plane]
        for k in range(n_cells):
            t = segments[k]
            is_next = k > 0 and segments[k - 1] == t
            start = cells[k - 1] if is_next else slices.first[t]
            total = left[k - 1] if is_next else outside.left[plane, t]
            for u in range(start, cells[k]):
                total += sums[u]
            left[k] = total
            found.present[plane, k] = outside.present[plane, t]
            found.missing[plane, k] = outside.missing[plane, t]
    for plane in range(len(found.left_error)):
        for k in range(n_cells):
            found.missing_error[plane, k] = outside.missing_error[plane, segments[k]]
        _set_errors(slices, outside, plane, cells, segments, found)


@kernel("void(Slices, int64[::1], Slices, int64[:, ::1])")
def _correct(slices, cells, inside, present):  # type: ignore[no-untyped-def]
    """Replace the estimates of some cells by the exact sums of what is inside them."""
    for plane in range(len(present)):
        sums = inside.sums[plane]
        for k in range(len(cells)):
            own = sums[inside.first[k] : inside.first[k] + inside.n_cells[k]].sum()
            present[plane, k] += own - slices.sums[plane, cells[k]]


@kernel("void(Slices, BOUND[::1], BOUND[::1])", BOUND=("int64", "float64"))
def _raise(slices, bounds, most):  # type: ignore[no-untyped-def]
    """Raise `most` of each feature to the bounds of its cells."""
    for t in range(len(slices.first)):
        feature, start = slices.feature[t], slices.first[t]
        for u in range(start, start + slices.n_cells[t]):
            most[feature] = max(most[feature], bounds[u])


def _regions_of(slices: Slices, outside: Outside, segment: int, cell: int) -> np.ndarray:
    """The sums over the regions of the cut at the right edge of a cell; see `Best`."""
    own = slices.sums[:, slices.first[segment] : cell + 1]
    left = outside.left[:, segment] + own.sum(axis=1)
    right = outside.present[:, segment] - left
    return np.stack((left, right, outside.missing[:, segment]), axis=1)
