"""All shards as one place: each question of the CPU engine's search goes to all of them.

A bin of a large table holds many samples, but the amount sent must not grow with their number. So a
range of keys is answered in about a hundred equally wide units, or in fewer if many ranges are
asked about at once. A unit that may hold the best cut is asked about again, as a range of its own,
down to single values. A range of few samples is answered value by value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gpustump.engines.cluster.bins import CommonBins
from gpustump.engines.cluster.questions import BY_VALUE, Ranges, Units, unfolded
from gpustump.engines.cluster.shards import Shards
from gpustump.engines.contract import Search
from gpustump.engines.cpu.slices import EXACT, UNKNOWN, Answer, Slices

_UNIT_BITS = 7
"""A range is cut into at most 2**7 units, and at least half as many."""

_LISTED = 256
"""A range of at most this many samples is answered value by value."""

_UNITS = 2**13
"""About how many units one question asks for at most. If there are many ranges, each is cut into
fewer units, at least two, and `_LISTED` is smaller by the same factor."""


class Keys(NamedTuple):
    """The keys of the units of an answer, from which more can be asked about them.

    Attributes
    ----------
    low, high : ndarray (n_units,) of int64
        The smallest and the largest key of each unit.
    size : ndarray (n_units,) of int64
        How many samples each unit holds.
    position : ndarray (n_stretches,) of int64
        The sorted position of each stretch's first sample.
    """

    low: np.ndarray
    high: np.ndarray
    size: np.ndarray
    position: np.ndarray


class ClusterPlace:
    """All shards of a table, with the integers of the present round; see `cpu.search.Place`.

    Parameters
    ----------
    shards : Shards
    bins : CommonBins
    search : Search
    """

    bins_at_once = 2048  # each question takes a round trip

    def __init__(self, shards: Shards, bins: CommonBins, search: Search) -> None:
        self._shards, self._bins, self._search = shards, bins, search
        self._seen: list[Answer] = []

    def begin_round(self) -> None:
        """Forget the answers of the last round."""
        self._seen.clear()

    def parts(self, slots: np.ndarray, features: np.ndarray) -> Iterator[Answer]:
        """The sums over the parts of some bins."""
        bins, layout = self._bins, self._bins.layout
        if len(slots):
            size = layout.n_inside(slots)
            low, high = bins.low[slots], bins.high[slots]
            yield self._asked(slots, features, (low, high, size, layout.offset[slots]))

    def samples(self, answer: Answer, stretches: np.ndarray, units: np.ndarray) -> Answer:
        """The same for some open units of an answer; each unit becomes a stretch."""
        slices, keys = answer.slices, answer.where
        first = slices.first[stretches]
        before = np.where(units > first, slices.last[units - 1] + 1, keys.position[stretches])
        about = keys.low[units], keys.high[units], keys.size[units], before
        return self._asked(answer.slots[stretches], slices.feature[stretches], about)

    def keys_around(self, slot: int, position: int) -> tuple[int, int] | None:
        """The keys on both sides of a cut, if an answer of this round had them; otherwise None.

        Parameters
        ----------
        slot : int
            The bin of the value on the left.
        position : int
            Its sorted position.
        """
        for answer in self._seen:
            slices = answer.slices
            for t in np.flatnonzero(answer.slots == slot):
                start, end = slices.first[t], slices.first[t] + slices.n_units[t]
                found = np.flatnonzero(slices.last[start : end - 1] == position)
                if len(found):
                    unit = int(start + found[0])
                    return int(answer.where.high[unit]), int(answer.where.low[unit + 1])
        return None

    def _asked(
        self,
        slots: np.ndarray,
        features: np.ndarray,
        about: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    ) -> Answer:
        """Ask about ranges of keys, each a stretch, in order of slots and keys.

        `about` is (low, high, size, position): the smallest and the largest key of each range, how
        many samples it holds, and the sorted position of its first sample.
        """
        low, high, size, position = about
        ranges = Ranges(features, self._bins.number[slots], low, high, _shifts(low, high, size))
        units = _together(self._shards.ask("units", ranges), size)
        n_units = np.bincount(units.range, minlength=len(slots))
        first = np.cumsum(n_units) - n_units
        end = np.cumsum(units.size)
        before = (end - units.size)[first]  # of each stretch
        last = end - 1 + np.repeat(position - before, n_units)
        sums = unfolded(units.sums, self._search)
        slices = Slices(
            features, first, n_units, sums, EXACT, sums[0], sums[1], UNKNOWN, last,
            (units.low < units.high).astype(np.uint8),
        )  # fmt: skip
        answer = Answer(slices, slots, Keys(units.low, units.high, units.size, position))
        self._seen.append(answer)
        return answer


def _shifts(low: np.ndarray, high: np.ndarray, size: np.ndarray) -> np.ndarray:
    """How to cut each range into units: `Ranges.shift`."""
    fewer = _UNIT_BITS - max(1, min(_UNIT_BITS, (_UNITS // len(low)).bit_length() - 1))
    # In unsigned numbers, as keys of 64 bits may be 2**63 apart and more.
    width = high.astype(np.uint64) - low.astype(np.uint64)
    bits = np.zeros(len(low), dtype=np.int64)
    while (is_wider := (width >> bits.astype(np.uint64)) > 0).any():
        bits += is_wider
    shift = np.maximum(bits - (_UNIT_BITS - fewer), 0)
    return np.where((size <= _LISTED >> fewer) & (shift > 0), BY_VALUE, shift)


def _together(answers: list[Units], size: np.ndarray) -> Units:
    """The units of all shards, in order: those with the same range and number are added up.

    `size` (n_ranges,) is how many samples all shards hold in each range, for a check.
    """
    parts = [np.concatenate(part, axis=-1) for part in zip(*answers, strict=True)]
    found = Units(*parts)
    order = np.lexsort((found.number.astype(np.uint64), found.range))
    of, number = found.range[order], found.number[order]
    starts = np.flatnonzero(np.append(True, (np.diff(of) != 0) | (np.diff(number) != 0)))
    units = Units(
        of[starts],
        number[starts],
        np.add.reduceat(found.size[order], starts),
        np.minimum.reduceat(found.low[order], starts),
        np.maximum.reduceat(found.high[order], starts),
        np.add.reduceat(found.sums[:, order], starts, axis=1),
    )
    assert np.array_equal(np.bincount(units.range, units.size, len(size)), size)
    return units
