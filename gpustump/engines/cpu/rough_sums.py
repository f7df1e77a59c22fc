"""Sums of both integers of Newton votes in one addition: exact sums of rounded integers.

Each integer is rounded to a multiple of a unit, and both become one word, the first one in its
upper bits. Words are added up like single integers, which takes two thirds of the time of two
additions. The sum over a bin is off by at most half a unit for each of its samples. That is little
where the best features are clearly better than most others; the search has those sums added up
anew, exactly, that may hold the best cut (see `estimates`).

The weights of a run sum to less than 2**62 units of the integers. A first integer is at most the
weight, a second one at most a quarter of it, both rounded up. So the sums fit into the bits that
they have, for fewer than 2**28 samples. Sums of words may wrap around 2**63; taken as unsigned
numbers they are right.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gpustump.engines.cpu.columns import Columns, Histograms
from gpustump.engines.cpu.compiling import kernel
from gpustump.engines.cpu.histograms import (
    CHUNK,
    Additions,
    Listed,
    TeamHistograms,
    add_chunk,
)
from gpustump.engines.cpu.terms import Terms
from gpustump.engines.threads import Team

MOST_SAMPLES = 2**28 - 1

_FIRST_SHIFT, _SECOND_SHIFT = 28, 32
"""Integers are rounded to multiples of 2**28 and of 2**32."""

_SECOND_BITS = 29
"""How many lower bits of a word belong to the second integer."""

HALF_UNITS = (2.0 ** (_FIRST_SHIFT - 1), 2.0 ** (_SECOND_SHIFT - 1))
"""How far a rounded first or second integer may be off."""


class RoughHistograms:
    """Histograms of words.

    Parameters
    ----------
    columns : Columns
    n_outputs : int
    team : Team
    """

    def __init__(self, columns: Columns, n_outputs: int, team: Team) -> None:
        self._words = TeamHistograms(2 * n_outputs, 1, columns, team)

    def add_up(
        self, terms: Terms, make: Callable[[int, int], None], histograms: Histograms
    ) -> None:
        """Compute all terms, and write the sums of the rounded ones.

        Parameters
        ----------
        terms : Terms
            With second integers.
        make : callable
            As for `TeamHistograms.add_up`.
        histograms : Histograms
            Of two integers; their sums are replaced.
        """
        self._words.add_up(terms, make, _ROUGHLY)
        for own, into in zip(self._words.total, histograms, strict=True):
            if own.size:
                _unpack_columns(own, into)


@kernel("void(int64[:, :, ::1], int64[:, :, ::1])")
def _unpack_columns(words, sums):  # type: ignore[no-untyped-def]
    mask = np.uint64((1 << _SECOND_BITS) - 1)
    for plane in range(words.shape[0]):
        for column in range(words.shape[1]):
            own, into = words[plane, column], sums[plane, column]
            for k in range(len(own)):
                word = np.uint64(own[k])
                into[2 * k] = np.int64(word >> np.uint64(_SECOND_BITS)) << _FIRST_SHIFT
                into[2 * k + 1] = np.int64(word & mask) << _SECOND_SHIFT


@kernel("void(int64[::1], int64[::1], Listed, int64)")
def _list_words(first, second, listed, chunk):  # type: ignore[no-untyped-def]
    """List the words of a chunk's samples, as `histograms.list_terms` lists integers."""
    here = chunk * CHUNK
    end = here + len(first)
    index, amount = listed.sample[here:end], listed.amount[here:end]
    half, half_of_second = 1 << (_FIRST_SHIFT - 1), 1 << (_SECOND_SHIFT - 1)
    front, back = np.uint64(0), np.uint64(len(first) - 1)
    for k in range(len(first)):
        own = first[k]
        is_positive = np.uint64(own > 0)
        word = ((abs(own) + half) >> _FIRST_SHIFT) << _SECOND_BITS
        word += (second[k] + half_of_second) >> _SECOND_SHIFT
        index[front] = k
        amount[front, 0] = word
        index[back] = k
        amount[back, 0] = word
        front += is_positive
        back -= np.uint64(1) - is_positive
    listed.n_front[chunk] = front
    listed.n_back[chunk] = len(first) - np.int64(front)


@kernel("void(Columns, Terms, Histograms, int64, int64)")
def _add_words(columns, terms, words, low, high):  # type: ignore[no-untyped-def]
    """Add up the words of the samples from `low` to `high`, whole chunks, for every output."""
    sample, amount = np.empty(CHUNK, np.uint16), np.empty((CHUNK, 1), np.int64)
    listed = Listed(sample, amount, np.zeros(1, np.int64), np.zeros(1, np.int64))
    n_columns = len(columns.wide) + len(columns.narrow)
    for start in range(low, high, CHUNK):
        end = min(start + CHUNK, high)
        for k in range(len(terms.first)):
            _list_words(terms.first[k, start:end], terms.second[k, start:end], listed, 0)
            add_chunk(columns, words, 2 * k, 0, n_columns, start, listed, 0)


@kernel("void(Terms, int64, Listed)")
def _list_output(terms, output, listed):  # type: ignore[no-untyped-def]
    """List the words of an output of all samples."""
    first, second = terms.first[output], terms.second[output]
    for start in range(0, len(first), CHUNK):
        end = min(start + CHUNK, len(first))
        _list_words(first[start:end], second[start:end], listed, start // CHUNK)


_ROUGHLY = Additions(_add_words, _list_output)
