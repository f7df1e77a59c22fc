"""All shards as one place: each question of the CPU engine's search goes to all of them.

A bin of a large table holds many samples, but the amount sent must not grow with their number. So a
range of keys is answered in about a hundred equally wide cells, or in fewer if many ranges are
asked about at once. A cell that may hold the best cut is asked about again, as a range of its own,
down to single values. A range of few samples is answered value by value.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gpustump.engines.cluster.bins import CommonBins
from gpustump.engines.cluster.key_ranges import merged
from gpustump.engines.cluster.questions import BY_VALUE, Cells, Ranges, unfolded
from gpustump.engines.cluster.shards import Shards
from gpustump.engines.cpu.split.slices import EXACT, UNKNOWN, Answer, Slices
from gpustump.engines.objective import Objective

_UNIT_BITS = 7
"""A range is cut into at most 2**7 cells, and at least half as many."""

_LISTED = 256
"""A range of at most this many samples is answered value by value."""

_UNITS = 2**13
"""About how many cells one question asks for at most. If there are many ranges, each is cut into
fewer cells, at least two, and `_LISTED` is smaller by the same factor."""


_MOST_LIKELY = 2**10
"""If more bins are to be prefetched than this, they are waited for."""

_NO_SLOTS = np.empty(0, dtype=np.int64)


class Keys(NamedTuple):
    """The keys of ranges to ask about, or of the cells of an answer, each of which may become one.

    Attributes
    ----------
    low, high : ndarray (n,) of int64
        The smallest and the largest key of each range or cell.
    size : ndarray (n,) of int64
        How many samples each holds.
    position : ndarray (n_segments,) of int64
        The sorted position of the first sample of each range; of an answer, of each segment.
    """

    low: np.ndarray
    high: np.ndarray
    size: np.ndarray
    position: np.ndarray


class ClusterSums:
    """All shards of a table, with the integers of the present round; see `cpu.search.SumsSource`.

    Parameters
    ----------
    shards : Shards
    bins : CommonBins
    objective : Objective
    """

    in_order = None  # the samples are elsewhere
    bins_at_once = 256  # each question takes a round trip, and refining bins takes longer

    def __init__(self, shards: Shards, bins: CommonBins, objective: Objective) -> None:
        self._shards, self._bins, self._objective = shards, bins, objective
        self._seen: list[Answer] = []
        self._likely = _NO_SLOTS
        self._foreseen: Answer | None = None

    def begin_round(self) -> None:
        """Forget the answers of the last round."""
        self._seen.clear()
        self._likely, self._foreseen = _NO_SLOTS, None

    def prefetch(self, bounds: np.ndarray, least: float) -> None:
        """These bins are asked about with the sums that are added up anew, in one message."""
        slots = (bounds >= least).nonzero()[0]
        if len(slots) <= _MOST_LIKELY:  # else too little is known
            highest_first = np.argsort(-bounds[slots], kind="stable")[: self.bins_at_once]
            self._likely = np.sort(slots[highest_first])

    def sums_of(self, features: np.ndarray) -> np.ndarray:
        """The sums over all slots of some features, in the order of these, (n_planes, n)."""
        slots, self._likely = self._likely, _NO_SLOTS
        owners = self._bins.layout.feature_of(slots)
        about = self._about(slots)
        ranges = self._ranges(slots, owners, about)
        bins, cells = zip(*self._shards.ask("look", features, ranges), strict=True)
        if len(slots):
            self._foreseen = self._answer(slots, owners, about, list(cells))
        sums = functools.reduce(np.add, bins)
        return unfolded(np.take(sums, self._bins.kept_of(features), axis=1), self._objective)

    def parts(self, slots: np.ndarray, features: np.ndarray) -> Iterator[Answer]:
        """The sums over the parts of some bins."""
        known = self._foreseen
        if known is not None:
            own = np.flatnonzero(np.isin(known.slots, slots, assume_unique=True))
            if len(own):
                yield _some(known, own)
            is_new = ~np.isin(slots, known.slots, assume_unique=True)
            slots, features = slots[is_new], features[is_new]
        if len(slots):
            yield self._asked(slots, features, self._about(slots))

    def samples(self, answer: Answer, segments: np.ndarray, cells: np.ndarray) -> Answer:
        """The same for some open cells of an answer; each cell becomes a segment."""
        slices, keys = answer.slices, answer.where
        first = slices.first[segments]
        before = np.where(cells > first, slices.last[cells - 1] + 1, keys.position[segments])
        about = Keys(keys.low[cells], keys.high[cells], keys.size[cells], before)
        return self._asked(answer.slots[segments], slices.feature[segments], about)

    def keys_around(self, slot: int, position: int) -> tuple[int, int]:
        """The keys on both sides of a cut inside a bin, which an answer of this round had.

        Parameters
        ----------
        slot : int
            The bin of the value on the left.
        position : int
            Its sorted position.

        Raises
        ------
        LookupError
            If no search of this round has looked there.
        """
        for answer in self._seen:
            slices = answer.slices
            for t in np.flatnonzero(answer.slots == slot):
                start, end = slices.first[t], slices.first[t] + slices.n_cells[t]
                found = np.flatnonzero(slices.last[start : end - 1] == position)
                if len(found):
                    cell = int(start + found[0])
                    return int(answer.where.high[cell]), int(answer.where.low[cell + 1])
        raise LookupError(f"no answer has shown the cut after position {position} in bin {slot}")

    def _about(self, slots: np.ndarray) -> Keys:
        bins, layout = self._bins, self._bins.layout
        size, offset = layout.n_inside(slots), layout.offset[slots]
        return Keys(bins.low[slots], bins.high[slots], size, offset)

    def _ranges(self, slots: np.ndarray, features: np.ndarray, about: Keys) -> Ranges:
        low, high, size, _ = about
        bins = slots - self._bins.layout.first[features]
        return Ranges(features, bins, low, high, _shifts(low, high, size), size)

    def _asked(self, slots: np.ndarray, features: np.ndarray, about: Keys) -> Answer:
        """Ask about ranges of keys, each a segment, in order of slots and keys."""
        answers = self._shards.ask("cells", self._ranges(slots, features, about))
        return self._answer(slots, features, about, answers)

    def _answer(
        self, slots: np.ndarray, features: np.ndarray, about: Keys, answers: list[Cells]
    ) -> Answer:
        """What all shards answer to that."""
        size, position = about.size, about.position
        rows = merged([np.vstack(own) for own in answers])
        of, number, n_inside, low, high = rows[:5]
        cells = Cells(of, number, n_inside, low, high, rows[5:])
        assert np.array_equal(np.bincount(cells.range, cells.size, len(size)), size)
        n_cells = np.bincount(cells.range, minlength=len(slots))
        first = np.cumsum(n_cells) - n_cells
        end = np.cumsum(cells.size)
        before = (end - cells.size)[first]  # of each segment
        last = end - 1 + np.repeat(position - before, n_cells)
        sums = unfolded(cells.sums, self._objective)
        slices = Slices(
            features, first, n_cells, sums, EXACT, UNKNOWN, last,
            (cells.low < cells.high).astype(np.uint8),
        )  # fmt: skip
        answer = Answer(slices, slots, Keys(cells.low, cells.high, cells.size, position))
        self._seen.append(answer)
        return answer


def _some(answer: Answer, segments: np.ndarray) -> Answer:
    """The answer about some of the segments."""
    slices, keys = answer.slices, answer.where
    own = slices._replace(
        feature=slices.feature[segments], first=slices.first[segments],
        n_cells=slices.n_cells[segments],
    )  # fmt: skip
    where = keys._replace(position=keys.position[segments])
    return Answer(own, answer.slots[segments], where)


def _shifts(low: np.ndarray, high: np.ndarray, size: np.ndarray) -> np.ndarray:
    """How to cut each range into cells: `Ranges.shift`."""
    fewer = _UNIT_BITS - max(1, min(_UNIT_BITS, (_UNITS // max(1, len(low))).bit_length() - 1))
    # In unsigned numbers, as keys of 64 bits may be 2**63 apart and more.
    width = high.astype(np.uint64) - low.astype(np.uint64)
    bits = np.zeros(len(low), dtype=np.int64)
    while (is_wider := (width >> bits.astype(np.uint64)) > 0).any():
        bits += is_wider
    shift = np.maximum(bits - (_UNIT_BITS - fewer), 0)
    return np.where((size <= _LISTED >> fewer) & (shift > 0), BY_VALUE, shift)
