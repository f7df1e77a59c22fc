"""The best split of all features: one search for every kind of votes.

A search needs three kinds of sums (see `slices`): over all bins, over the parts of some bins, and
over the samples of some parts. The first are given; it asks a *place*, something that holds
samples, for the others. To *weigh* the units of an answer is to compute the scores of the cuts
between them, and bounds for the cuts inside them (`unit_scores`). A unit whose bound is below the
best score found so far cannot hold the best cut. The search asks for more detail about the others,
those of the highest bounds first.

Ties are broken by the order of `contract.Cut`, so the order in which units are searched does not
matter.

Where the sums over bins are estimates, the search first finds the features that may hold the best
cut. Their sums are added up anew, and the cut is found by these exact sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np

from gpustump.engines.contract import Cut, Search
from gpustump.engines.cpu.allowed import Rules
from gpustump.engines.cpu.bin_layout import BinLayout
from gpustump.engines.cpu.compiling import kernel
from gpustump.engines.cpu.found_split import sign_for_missing
from gpustump.engines.cpu.part_bounds import NO_SCORE
from gpustump.engines.cpu.slices import EXACT, UNKNOWN, Answer, FloatPlanes, Ground, Slices
from gpustump.engines.cpu.unit_scores import (
    NO_AGREEMENT,
    Agreed,
    Scored,
    weigh_newton,
    weigh_real,
    weigh_shared,
    weigh_signs,
)
from gpustump.engines.threads import Team, ranges

_MOST_UNITS = 512
"""If, by estimates, more parts of bins than this may hold the best cut, their samples are not asked
for; their features are added up anew instead."""

_UNITS_AT_ONCE = 2**15
"""About how many units a thread weighs at a time."""


class Place(Protocol):
    """What a search asks about samples, wherever they are.

    Attributes
    ----------
    bins_at_once : int
        How many promising bins are asked about at once, or half of them if that is more. Then the
        bounds of the others are compared with the new best score.
    """

    @property
    def bins_at_once(self) -> int: ...

    def parts(self, slots: np.ndarray, features: np.ndarray) -> Iterator[Answer]:
        """The sums over the parts of some bins, in order of their slots; each bin is a stretch."""

    def samples(self, answer: Answer, stretches: np.ndarray, units: np.ndarray) -> Answer:
        """The sums over the distinct values in some open units, each of which becomes a stretch.

        A place may also answer with smaller parts of the units, some of which are open again.
        """


class Best(NamedTuple):
    """The best cut so far, and the sums left of it.

    Attributes
    ----------
    cut : Cut
    left : ndarray (n_planes,) of int64, or None
        In the planes of `slices`; None for a constant.
    """

    cut: Cut
    left: np.ndarray | None = None


@dataclass(frozen=True)
class Weigher:
    """How the units of a search are weighed.

    Attributes
    ----------
    kernel : callable
        One of `unit_scores`.
    dtype : dtype
        Of scores and bounds.
    rules : Rules
    """

    kernel: Callable[..., Any]
    dtype: np.dtype
    rules: Rules

    @classmethod
    def of(cls, search: Search) -> Weigher:
        """For a search."""
        rules = Rules(float(search.l2), 0.0, search.directions)
        if search.has_signs:
            return cls(weigh_signs, np.dtype(np.int64), rules)
        by_votes = {"discrete": weigh_shared, "real": weigh_real, "newton": weigh_newton}
        dtype = np.dtype(np.int64 if search.votes == "discrete" else np.float64)
        return cls(by_votes[search.votes], dtype, rules)

    def smoothed(self, smoothing: float) -> Weigher:
        """The same with the smoothing of a round's levels; see `monotone.smoothing_of`."""
        return replace(self, rules=self.rules._replace(smoothing=smoothing))

    @property
    def nothing(self) -> float:
        """Less than every score."""
        return NO_AGREEMENT if self.dtype == np.int64 else NO_SCORE

    @property
    def of_edges(self) -> type[Agreed] | type[Scored]:
        """What the kernel's answer holds."""
        return Agreed if self.dtype == np.int64 else Scored

    def weigh(
        self,
        slices: Slices,
        ground: Ground,
        team: Team,
        ready: Callable[[int, int], None] | None = None,
        edge: np.ndarray | None = None,
    ) -> tuple[list[Any], np.ndarray]:
        """The best cut of each piece of the stretches, and a bound for each unit.

        Parameters
        ----------
        slices : Slices
        ground : Ground
        team : Team
        ready : callable, optional
            Called with the first and the end of each piece of the stretches before it is weighed.
        edge : ndarray (n_units,), optional
            Set to the most that the score may be at each unit's right edge, where sums are
            estimates.

        Returns
        -------
        found : list of Agreed or Scored
        bounds : ndarray (n_units,)
        """
        bounds = np.full(slices.sums.shape[1], self.nothing, dtype=self.dtype)
        edge = bounds[:0] if edge is None else edge
        found: list[Any] = []

        def weigh(part: tuple[int, int]) -> None:
            if ready is not None:
                ready(*part)
            own = self.kernel(slices, ground, self.rules, *part, bounds, edge)
            found.append(self.of_edges(*own))

        n_stretches = len(slices.first)
        units_each = max(1, slices.sums.shape[1] // max(1, n_stretches))
        size = max(-(-_UNITS_AT_ONCE // units_each), -(-n_stretches // team.size))
        team.each(weigh, ranges(n_stretches, size))
        return [own for own in found if own.unit >= 0], bounds


class Edges(NamedTuple):
    """The sums over the bins of each feature, and what surrounds them.

    Attributes
    ----------
    slices : Slices
        The bins of each feature.
    ground : Ground
    layout : BinLayout
    """

    slices: Slices
    ground: Ground
    layout: BinLayout

    @classmethod
    def of(
        cls, sums: np.ndarray, layout: BinLayout, off: FloatPlanes = EXACT,
        features: np.ndarray | None = None,
    ) -> Edges:  # fmt: skip
        """From the sums over all slots, (n_planes, n_slots), for some features or all of them.

        `off`, of the same shape, are their largest errors; `EXACT` if they are exact.
        """
        if features is None:
            features = np.arange(len(layout.first))
        missing = layout.first[features] + layout.n_bins[features]
        slices = Slices(
            features, layout.first[features], layout.n_bins[features], sums, off, sums[0], sums[1],
            ahead=UNKNOWN, last=layout.last, is_open=layout.has_inner_split,
        )  # fmt: skip
        lacking = np.ascontiguousarray(sums[:, missing])
        left, present = np.zeros_like(lacking), np.empty_like(lacking)
        if not len(off):
            one = slice(layout.first[features[0]], missing[0] + 1)
            present[:] = sums[:, one].sum(axis=1, keepdims=True) - lacking  # all samples have bins
            return cls(slices, Ground(left, present, lacking), layout)
        _add_up(sums, slices.first, slices.n_units, present)
        lacking_off = np.ascontiguousarray(off[:, missing])
        nothing = np.zeros_like(lacking_off)
        return cls(slices, Ground(left, present, lacking, nothing, nothing, lacking_off), layout)

    def knowing(self, ahead: np.ndarray) -> Edges:
        """The same with `Slices.ahead`, (2 * n_outputs, n_slots)."""
        return self._replace(slices=self.slices._replace(ahead=ahead))

    def stretch_of(self, features: np.ndarray) -> np.ndarray:
        """The stretches of some of the features."""
        found: np.ndarray = np.searchsorted(self.slices.feature, features)
        return found


@kernel("void(int64[:, ::1], int64[::1], int64[::1], int64[:, ::1])")
def _add_up(sums, first, n_units, total):  # type: ignore[no-untyped-def]
    """The sums over all units of some stretches."""
    for plane in range(len(sums)):
        own = sums[plane]
        for t in range(len(first)):
            total[plane, t] = own[first[t] : first[t] + n_units[t]].sum()


class BestSplit:
    """A search in progress, with the best cut so far.

    Parameters
    ----------
    place : Place
    weigher : Weigher
    constant : Cut
        The best constant, with which splits are compared.
    team : Team
    """

    def __init__(self, place: Place, weigher: Weigher, constant: Cut, team: Team) -> None:
        self.best = Best(constant)
        self._place, self._weigher, self._team = place, weigher, team

    def offer(self, cut: Cut, left: np.ndarray) -> None:
        """Take a cut if it is better than the best one."""
        if cut > self.best.cut:
            self.best = Best(cut, left)

    def search(
        self,
        edges: Edges,
        ready: Callable[[int, int], None] | None = None,
        learn: Callable[[np.ndarray, Slices], None] | None = None,
    ) -> None:
        """Search all cuts.

        Parameters
        ----------
        edges : Edges
            Of exact sums.
        ready : callable, optional
            Called with a range of features before their bins are weighed.
        learn : callable, optional
            Called with slots and their units when the parts of bins are known.
        """
        bounds = self._weighed(edges.slices, edges.ground, ready)
        waiting = self._promising_slots(np.flatnonzero(self._may_win(bounds)), bounds, edges)
        looked_into = []
        while len(waiting):
            n_taken = max(self._place.bins_at_once, len(waiting) // 2)
            highest_first = waiting[np.argsort(-bounds[waiting], kind="stable")]
            for answer, ground in self._parts(edges, np.sort(highest_first[:n_taken])):
                own = self._weighed(answer.slices, ground)
                if learn is not None:
                    learn(answer.slots, answer.slices)
                looked_into.append((answer, ground, own))
            waiting = self._promising_slots(highest_first[n_taken:], bounds, edges)
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
        n_slots = edges.slices.sums.shape[1]
        edge = np.full(n_slots, self._weigher.nothing, dtype=self._weigher.dtype)
        seen, bounds = self._weigher.weigh(edges.slices, edges.ground, self._team, edge=edge)
        most = np.maximum.reduceat(edge, edges.layout.first)
        # Where constraints forbid most cuts, there may be none at all that beats the constant.
        about = max(self._about(edges, seen), self.best.cut.score)
        if len(first := np.flatnonzero(most >= about)):
            exact = renewed(first)
            self.search(exact, learn=learn)
            for feature in exact.slices.feature.tolist():
                own = edges.layout.slots(feature)
                bounds[own], edge[own] = self._weigher.nothing, self._weigher.nothing
        most, is_first = self._contending(edges, bounds, edge, learn), True
        while len(contending := np.flatnonzero(self._may_win(most))):
            highest = contending[[np.argmax(most[contending])]] if is_first else contending
            exact = renewed(highest)
            self.search(exact, learn=learn)
            most[exact.slices.feature] = self._weigher.nothing
            is_first = False

    def _about(self, edges: Edges, seen: list[Any]) -> float:
        """About the best score at an edge, from the estimates of the feature that looks best.

        Estimates are usually off by much less than their bounds say.
        """
        top = np.asarray([max(seen, key=lambda own: own.score).stretch if seen else 0])
        ground = Ground(*edges.ground.of(top)[:3])
        slices = edges.slices._replace(
            feature=edges.slices.feature[top], first=edges.slices.first[top],
            n_units=edges.slices.n_units[top], off=EXACT,
        )  # fmt: skip
        found, _ = self._weigher.weigh(slices, ground, self._team)
        return found[0].score if found else self._weigher.nothing

    def _contending(
        self,
        edges: Edges,
        bounds: np.ndarray,
        edge: np.ndarray,
        learn: Callable[[np.ndarray, Slices], None],
    ) -> np.ndarray:
        """For each feature the most that a cut may be worth, by estimates and parts of bins."""
        feature_of, first = edges.layout.feature_of, edges.layout.first
        most = np.maximum.reduceat(edge, first)
        is_certain = self._may_win(most)  # the parts of its bins cannot rule such a feature out
        waiting = np.flatnonzero(self._may_win(bounds))
        waiting = waiting[~is_certain[feature_of(waiting)]]
        most = np.where(is_certain, np.maximum.reduceat(bounds, first), most)
        for answer, ground in self._parts(edges, waiting):
            own = self._bounds(answer.slices, ground)
            learn(answer.slots, answer.slices)
            self._raise(most, answer, ground, own)
        return most

    def _raise(self, most: np.ndarray, answer: Answer, ground: Ground, bounds: np.ndarray) -> None:
        """Raise `most` of some features to the bounds of their bins' parts, or samples."""
        units = np.flatnonzero(self._may_win(bounds))
        is_open = answer.slices.is_open[units] > 0
        closer = units[is_open]
        if 0 < len(closer) <= _MOST_UNITS:
            units = units[~is_open]
            found, around = self._samples(answer, ground, closer)
            own = self._bounds(found.slices, around)
            samples = np.flatnonzero(self._may_win(own))
            feature = found.slices.feature[_stretches_of(found, samples)]
            np.maximum.at(most, feature, own[samples])
        np.maximum.at(most, answer.slices.feature[_stretches_of(answer, units)], bounds[units])

    def _bounds(self, slices: Slices, ground: Ground) -> np.ndarray:
        """Bounds for the cuts inside units and at their right edges."""
        return self._weigher.weigh(slices, ground, self._team)[1]

    def _weighed(
        self,
        slices: Slices,
        ground: Ground,
        ready: Callable[[int, int], None] | None = None,
    ) -> np.ndarray:
        """Offer the best cut between units; returns bounds for the cuts inside them."""
        found, bounds = self._weigher.weigh(slices, ground, self._team, ready)
        for own in found:
            if own.score >= self.best.cut.score:
                feature, position = int(slices.feature[own.stretch]), int(slices.last[own.unit])
                stretch = np.asarray([own.stretch])
                left = _left_of(slices, ground, stretch, np.asarray([own.unit + 1]))[:, 0]
                missing = _sign_for_missing(ground, own.stretch) if own.sign else 0
                self.offer(Cut(feature, position, own.sign, missing, own.score), left)
        return bounds

    def _may_win(self, bounds: np.ndarray) -> np.ndarray:
        found: np.ndarray = bounds >= self.best.cut.score
        return found

    def _promising_slots(self, slots: np.ndarray, bounds: np.ndarray, edges: Edges) -> np.ndarray:
        """Those of some slots that may hold a cut larger than the best one so far."""
        best, bound = self.best.cut, bounds[slots]
        is_first = np.asarray(True)
        if best.position is not None:
            feature = edges.layout.feature_of(slots)
            is_left = (feature == best.feature) & (edges.layout.offset[slots] < best.position)
            is_first = (feature < best.feature) | is_left
        found: np.ndarray = slots[(bound > best.score) | ((bound == best.score) & is_first)]
        return found

    def _parts(self, edges: Edges, slots: np.ndarray) -> Iterator[tuple[Answer, Ground]]:
        """Ask for the parts of some bins."""
        features = edges.layout.feature_of(slots)
        for answer in self._place.parts(slots, features):
            stretches = edges.stretch_of(answer.slices.feature)
            ground = edges.ground.of(stretches)
            left = _left_of(edges.slices, edges.ground, stretches, answer.slots)
            ground = ground._replace(left=left)
            yield answer, ground if ground.is_exact else _around(edges, answer, stretches, ground)

    def _look_at_samples(self, answer: Answer, ground: Ground, bounds: np.ndarray) -> None:
        """Ask for the samples of the open units that may hold a better cut."""
        while len(units := np.flatnonzero((answer.slices.is_open > 0) & self._may_win(bounds))):
            answer, ground = self._samples(answer, ground, units)
            bounds = self._weighed(answer.slices, ground)

    def _samples(self, answer: Answer, ground: Ground, units: np.ndarray) -> tuple[Answer, Ground]:
        """Ask for the samples of some open units."""
        stretches = _stretches_of(answer, units)
        left = _left_of(answer.slices, ground, stretches, units)
        return (
            self._place.samples(answer, stretches, units),
            ground.of(stretches)._replace(left=left),
        )


def _stretches_of(answer: Answer, units: np.ndarray) -> np.ndarray:
    """The stretches of some units."""
    found: np.ndarray = np.searchsorted(answer.slices.first, units, side="right") - 1
    return found


@kernel("void(Slices, Ground, int64[::1], int64[::1], int64[:, ::1])")
def _add_left(slices, ground, stretches, units, left):  # type: ignore[no-untyped-def]
    """Add up all that is left of some units.

    The units of a stretch usually come in order; then no sum is added up twice.
    """
    for plane in range(len(left)):
        sums = slices.sums[plane]
        for k in range(len(units)):
            t = stretches[k]
            total, start = ground.left[plane, t], slices.first[t]
            if k > 0 and stretches[k - 1] == t and units[k - 1] <= units[k]:
                total, start = left[plane, k - 1], units[k - 1]
            for u in range(start, units[k]):
                total += sums[u]
            left[plane, k] = total


def _left_of(
    slices: Slices, ground: Ground, stretches: np.ndarray, units: np.ndarray
) -> np.ndarray:
    """The sums over all that is left of some units of a feature, (n_planes, n) of int64."""
    left = np.empty((len(slices.sums), len(units)), dtype=np.int64)
    _add_left(slices, ground, stretches, units, left)
    return left


def _around(edges: Edges, answer: Answer, stretches: np.ndarray, ground: Ground) -> Ground:
    """The ground of bins whose own sums are exact, as their parts have been added up."""
    off, own = edges.slices.off, answer.slots
    left_off = np.empty((len(off), len(own)))
    right_off = np.empty_like(left_off)
    of_bins = np.empty_like(ground.left)
    _add_off(edges.slices, stretches, own, left_off, right_off)
    _add_up(answer.slices.sums, answer.slices.first, answer.slices.n_units, of_bins)
    present = ground.present + (of_bins - edges.slices.sums[:, own])
    return ground._replace(present=present, left_off=left_off, right_off=right_off)


@kernel("void(Slices, int64[::1], int64[::1], float64[:, ::1], float64[:, ::1])")
def _add_off(slices, stretches, slots, left_off, right_off):  # type: ignore[no-untyped-def]
    """Add up how far the sums before and after some slots are off; slots are in order."""
    n = len(slots)
    for plane in range(len(left_off)):
        off = slices.off[plane]
        for k in range(n):
            t = stretches[k]
            total, start = 0.0, slices.first[t]
            if k > 0 and stretches[k - 1] == t:
                total, start = left_off[plane, k - 1], slots[k - 1]
            for u in range(start, slots[k]):
                total += off[u]
            left_off[plane, k] = total
        for k in range(n - 1, -1, -1):
            t = stretches[k]
            total, end = 0.0, slices.first[t] + slices.n_units[t]
            if k + 1 < n and stretches[k + 1] == t:
                total, end = right_off[plane, k + 1], slots[k + 1] + 1
            for u in range(slots[k] + 1, end):
                total += off[u]
            right_off[plane, k] = total


def _sign_for_missing(ground: Ground, stretch: int) -> int:
    """The sign of missing values with discrete votes of one output."""
    missing, present = (
        part[0, stretch] - part[1, stretch] for part in (ground.missing, ground.present)
    )
    return int(sign_for_missing(missing, present))
