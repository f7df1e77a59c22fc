"""The best split of all features: written once, for every kind of votes.

A search asks a place three questions (see `slices`): the sums over all bins, those over the parts
of some bins, and those over the samples of some parts. Each answer yields the scores at the edges
between units, and bounds for the cuts inside of them (`unit_scores`). A unit whose bound is below
the best score found cannot hold the answer; the others are asked about more closely, those of the
highest bounds first.

Ties are broken by the order of `contract.Cut`, so the answer is the same in whatever order units
are looked into.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpustump.engines.contract import Cut, Search
from gpustump.engines.cpu.bin_layout import BinLayout
from gpustump.engines.cpu.compiling import kernel
from gpustump.engines.cpu.found_split import sign_for_missing
from gpustump.engines.cpu.places import Answer, Place
from gpustump.engines.cpu.slices import UNKNOWN, Ground, Slices
from gpustump.engines.cpu.unit_scores import (
    NO_AGREEMENT,
    NO_SCORE,
    weigh_newton,
    weigh_real,
    weigh_shared,
    weigh_signs,
)
from gpustump.engines.threads import Team, ranges

_BINS_AT_ONCE = 32
"""So many promising bins are looked into before the others' bounds are compared again, or half."""

_UNITS_AT_ONCE = 2**15
"""Units to be weighed that are one piece of work."""


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
    l2 : float
    """

    kernel: Callable[..., Any]
    dtype: np.dtype
    l2: float

    @classmethod
    def of(cls, search: Search) -> Weigher:
        """For a search."""
        if search.has_signs:
            return cls(weigh_signs, np.dtype(np.int64), 0.0)
        by_votes = {"discrete": weigh_shared, "real": weigh_real, "newton": weigh_newton}
        dtype = np.dtype(np.int64 if search.votes == "discrete" else np.float64)
        return cls(by_votes[search.votes], dtype, search.l2)

    @property
    def nothing(self) -> float:
        """Less than every score."""
        return NO_AGREEMENT if self.dtype == np.int64 else NO_SCORE

    def weigh(
        self, slices: Slices, ground: Ground, team: Team, ready: Callable[[int, int], None] | None
    ) -> tuple[list[Any], np.ndarray]:
        """The best cut of each piece of the stretches, and a bound for each unit.

        `ready` is called first with each piece of the stretches.
        """
        bounds = np.full(slices.sums.shape[1], self.nothing, dtype=self.dtype)
        found: list[Any] = []

        def weigh(part: tuple[int, int]) -> None:
            if ready is not None:
                ready(*part)
            found.append(self.kernel(slices, ground, self.l2, *part, bounds))

        n_stretches = len(slices.first)
        units_each = max(1, slices.sums.shape[1] // max(1, n_stretches))
        size = max(-(-_UNITS_AT_ONCE // units_each), -(-n_stretches // team.size))
        team.each(weigh, ranges(n_stretches, size))
        return [own for own in found if own.unit >= 0], bounds


class Edges(NamedTuple):
    """The answer to the first question, and what surrounds the features.

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
    def of(cls, sums: np.ndarray, layout: BinLayout) -> Edges:
        """From the sums over all slots, (n_planes, n_slots)."""
        n_features = len(layout.first)
        missing = np.ascontiguousarray(sums[:, layout.first + layout.n_bins])
        first = slice(layout.first[0], layout.first[0] + layout.n_bins[0] + 1)
        total = sums[:, first].sum(axis=1)  # that of every feature
        last = np.empty_like(layout.offset)  # that of a feature's missing values is not used
        last[:-1] = layout.offset[1:] - 1
        slices = Slices(
            np.arange(n_features), layout.first, layout.n_bins, sums, sums[0], sums[1],
            ahead=UNKNOWN, last=last, is_open=layout.has_inner_split,
        )  # fmt: skip
        present = total[:, np.newaxis] - missing
        return cls(slices, Ground(np.zeros_like(missing), present, missing), layout)


class BestSplit:
    """A search under way.

    Parameters
    ----------
    place : Place
    weigher : Weigher
    constant : Cut
        What a split has to compete with.
    """

    def __init__(self, place: Place, weigher: Weigher, constant: Cut) -> None:
        self.best = Best(constant)
        self._place, self._weigher = place, weigher
        self._team = place.table.team

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
        """Look through all cuts.

        Parameters
        ----------
        edges : Edges
        ready : callable, optional
            Called with a range of features before their bins are weighed.
        learn : callable, optional
            Called with slots and their units.
        """
        bounds = self._weighed(edges.slices, edges.ground, ready)
        waiting = self._promising_slots(np.flatnonzero(self._may_win(bounds)), bounds, edges)
        looked_into = []
        while len(waiting):
            n_taken = max(_BINS_AT_ONCE, len(waiting) // 2)
            highest_first = waiting[np.argsort(-bounds[waiting], kind="stable")]
            for answer, ground in self._parts(edges, np.sort(highest_first[:n_taken])):
                own = self._weighed(answer.slices, ground)
                if learn is not None:
                    learn(answer.slots, answer.slices)
                looked_into.append((answer, ground, own))
            waiting = self._promising_slots(highest_first[n_taken:], bounds, edges)
        for seen in looked_into:  # by now the best score is nearly what it will be
            self._look_at_samples(*seen)

    def _weighed(
        self,
        slices: Slices,
        ground: Ground,
        ready: Callable[[int, int], None] | None = None,
    ) -> np.ndarray:
        """Weigh the cuts between units; returns bounds for the others."""
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
        """Which of some slots may hold a cut that comes before the best one."""
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
            own = answer.slices.feature
            left = _left_of(edges.slices, edges.ground, own, answer.slots)
            yield answer, edges.ground.of(own)._replace(left=left)

    def _look_at_samples(self, answer: Answer, ground: Ground, bounds: np.ndarray) -> None:
        """Ask for the samples of the open units that may hold a better cut."""
        units = np.flatnonzero((answer.slices.is_open > 0) & self._may_win(bounds))
        if len(units):
            stretches = np.searchsorted(answer.slices.first, units, side="right") - 1
            closer = self._place.samples(answer, stretches, units)
            left = _left_of(answer.slices, ground, stretches, units)
            self._weighed(closer.slices, ground.of(stretches)._replace(left=left))


@kernel("void(Slices, Ground, int64[::1], int64[::1], int64[:, ::1])")
def _add_left(slices, ground, stretches, units, left):  # type: ignore[no-untyped-def]
    for plane in range(len(left)):
        sums = slices.sums[plane]
        for k in range(len(units)):
            t = stretches[k]
            total = ground.left[plane, t]
            for u in range(slices.first[t], units[k]):
                total += sums[u]
            left[plane, k] = total


def _left_of(
    slices: Slices, ground: Ground, stretches: np.ndarray, units: np.ndarray
) -> np.ndarray:
    """The sums over all that is left of some units, (n_planes, n)."""
    left = np.empty((len(slices.sums), len(units)), dtype=np.int64)
    _add_left(slices, ground, stretches, units, left)
    return left


def _sign_for_missing(ground: Ground, stretch: int) -> int:
    """What discrete votes of one output give to missing values."""
    missing, present = (
        part[0, stretch] - part[1, stretch] for part in (ground.missing, ground.present)
    )
    return int(sign_for_missing(missing, present))
