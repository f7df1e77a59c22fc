"""The changes of the integers of the samples outside a step's largest region, listed and added up.

If few samples are listed, nearly every code that is read comes from memory. So codes are prefetched
some samples ahead, and lists are long: each holds the samples of a *piece* of a thread's
work, those labelled +1 from the front and the others from the back.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from gpustump.engines.cpu.histogram.estimates import HESSIAN_BITS, ROUGHER, spread
from gpustump.engines.cpu.histogram.histograms import (
    CHUNK,
    COLUMNS_AT_ONCE,
    add_single,
    clear_column,
)
from gpustump.engines.cpu.runtime.compiling import Integers, group, inner
from gpustump.engines.cpu.runtime.crew import parallel
from gpustump.engines.cpu.table.columns import PART_BITS, Columns, Histograms
from gpustump.engines.threads import Team

_AT_ONCE = 8192
"""How many samples' regions are read at once."""

_AHEAD = 16
"""How many samples ahead codes are prefetched."""

_DENSE = 0.25
"""If a larger share of the samples is listed, the processor's own prefetching is enough."""


@group
class Changes(NamedTuple):
    """The samples outside the largest region, and the amount to be added for each.

    Attributes
    ----------
    piece : int
        How many samples a piece has.
    sample : ndarray (n_samples,) of uint32
        Counted from the piece's first sample.
    amount : ndarray (n_samples,) of int64
    n_front, n_back : ndarray (n_pieces,) of int64
        How many samples are listed at the front and at the back of each piece.
    """

    piece: int
    sample: Annotated[np.ndarray, "uint32[::1]"]
    amount: Integers
    n_front: Integers
    n_back: Integers

    @classmethod
    def empty(cls, n_samples: int, team: Team) -> Changes:
        n_pieces, piece = team.pieces(n_samples, CHUNK)
        return cls(
            piece, np.empty(n_samples, dtype=np.uint32), np.empty(n_samples, dtype=np.int64),
            np.zeros(n_pieces, dtype=np.int64), np.zeros(n_pieces, dtype=np.int64),
        )  # fmt: skip


def add_changes(
    columns: Columns, histograms: Histograms, plane: int, changes: Changes, team: Team
) -> None:
    """Replace the sums by those of the listed amounts: of samples labelled +1 in plane `plane`, of
    others in the next one."""
    n_listed = sum(changes.n_front.tolist()) + sum(changes.n_back.tolist())
    ahead = _AHEAD if n_listed < _DENSE * len(changes.sample) else 0
    n_parts, size = team.pieces(columns.n_columns, COLUMNS_AT_ONCE)
    team.run(_add, n_parts, columns, histograms, plane, size, changes, ahead)


@inner("int64(int64, int64, int64)")
def packed(gradient, hessian, shift):  # type: ignore[no-untyped-def]
    """Two integers in one word, the Hessian rounded more, as scores depend less on it.

    Words can be added up; intermediate overflow does no harm. In the end the sum of Hessians
    must fit into the lower bits, with its sign, and that of gradients into the upper bits.
    """
    return ((gradient >> shift) << HESSIAN_BITS) + (hessian >> (shift + ROUGHER))


@parallel("void(int64, int64[:, ::1], int64, int64[:, ::1], int64[:, ::1], int64)")
def add_words(piece, words, shift, sums, found, size):  # type: ignore[no-untyped-def]
    """Add both parts of words (2, n) to `size` of some sums, in the planes of `slices`, (4, n)."""
    low = piece * size
    for plane in range(2):
        own, gradient = words[plane, low : low + size], sums[plane, low : low + size]
        next_gradient = found[plane, low : low + size]
        hessian = sums[plane + 2, low : low + size]
        next_hessian = found[plane + 2, low : low + size]
        for k in range(len(own)):
            lower = (own[k] << (64 - HESSIAN_BITS)) >> (64 - HESSIAN_BITS)
            next_gradient[k] = gradient[k] + (((own[k] - lower) >> HESSIAN_BITS) << shift)
            next_hessian[k] = hessian[k] + (lower << (shift + ROUGHER))


@inner("int64(uint8[::1], uint8, uint16[::1])")
def list_others(regions, majority, found):  # type: ignore[no-untyped-def]
    """List the samples of a chunk that are not of a region, eight at a time; returns how many."""
    count, n_words = np.uint64(0), len(regions) // 8
    words = regions[: 8 * n_words].view(np.uint64)
    alike = np.uint64(majority) * np.uint64(0x0101010101010101)
    for w in range(n_words):
        if words[w] == alike:
            continue
        for i in range(8 * w, 8 * w + 8):
            found[count] = i
            count += np.uint64(regions[i] != majority)
    for i in range(8 * n_words, len(regions)):
        found[count] = i
        count += np.uint64(regions[i] != majority)
    return np.int64(count)


@parallel("void(int64, Terms, uint8[::1], Move, int64, Changes)")
def list_minority(piece, terms, regions, move, output, changes):  # type: ignore[no-untyped-def]
    """List the samples of the minority, with minus what the majority's move makes of their
    integers.

    Parameters
    ----------
    terms : Terms
        Before the step.
    regions : ndarray (n_samples,) of uint8
    move : Move
    output : int
    changes : Changes
        The samples are listed here; their amounts are minus the integers after the majority's move.
    """
    has_hessians = len(terms.hessian) > 0
    factors, slopes = move.factor[2 * output :], move.slope[2 * output :]
    majority, gradient = np.uint8(move.majority), terms.gradient[output]
    begin = piece * changes.piece
    stop = min(begin + changes.piece, len(gradient))
    found = np.empty(_AT_ONCE + 1, dtype=np.uint16)
    front, back = np.uint64(begin), np.uint64(stop - 1)
    for start in range(begin, stop, _AT_ONCE):
        n_others = list_others(regions[start : min(start + _AT_ONCE, stop)], majority, found)
        for k in range(n_others):
            i = np.uint64(start) + np.uint64(found[k])
            own = gradient[i]
            is_negative = np.uint64(own <= 0)  # no branch: signs are hard to predict
            place = front + (back - front) * is_negative
            expected = np.int64(np.rint(float(abs(own)) * factors[is_negative]))
            if has_hessians:
                hessian = terms.hessian[output, i]
                more, curve = slopes[is_negative], float(hessian)
                expected += np.int64(np.rint(curve * more))
                curve -= 2.0 * spread(float(abs(own)), curve)
                hessian += np.int64(np.rint(curve * more))
                expected = packed(expected, hessian, move.shift)
            changes.sample[place] = i - np.uint64(begin)
            changes.amount[place] = -expected
            front += np.uint64(1) - is_negative
            back -= is_negative
    changes.n_front[piece] = front - np.uint64(begin)
    changes.n_back[piece] = np.uint64(stop - 1) - back


@parallel("void(int64, Terms, Move, int64, Changes)")
def list_changes(piece, terms, move, output, changes):  # type: ignore[no-untyped-def]
    """Add the integers after the step to the amounts, which then correct the moved sums."""
    has_hessians = len(terms.hessian) > 0
    gradient = terms.gradient[output]
    begin = piece * changes.piece
    stop = min(begin + changes.piece, len(gradient))
    for part in range(2):
        low = begin if part == 0 else stop - changes.n_back[piece]
        high = begin + changes.n_front[piece] if part == 0 else stop
        index, amount = changes.sample[low:high], changes.amount[low:high]
        for t in range(len(index)):
            i = np.uint64(begin) + np.uint64(index[t])
            now = abs(gradient[i])
            if has_hessians:
                now = packed(now, terms.hessian[output, i], move.shift)
            amount[t] += now


@parallel("void(int64, Columns, Histograms, int64, int64, Changes, int64)")
def _add(part, columns, histograms, plane, size, changes, ahead):  # type: ignore[no-untyped-def]
    """Add all that is listed to the histograms of a part of the columns, which are cleared."""
    n_samples, n_wide = columns.wide.shape[1], len(columns.wide)
    low, high = part * size, min((part + 1) * size, n_wide + len(columns.narrow))
    own = Histograms(histograms.wide[plane : plane + 2], histograms.narrow[plane : plane + 2])
    for column in range(low, high):
        clear_column(own, column)
    for piece in range(len(changes.n_front)):
        begin = piece * changes.piece
        stop = min(begin + changes.piece, n_samples)
        for sign in range(2):
            first = begin if sign == 0 else stop - changes.n_back[piece]
            last = begin + changes.n_front[piece] if sign == 0 else stop
            index, amount = changes.sample[first:last], changes.amount[first:last]
            wide, narrow = own.wide[sign], own.narrow[sign]
            own_wide, own_narrow = min(high, n_wide), max(low - n_wide, 0)
            add_single(columns.wide, PART_BITS, wide, low, own_wide, begin, index, amount, ahead)
            add_single(
                columns.narrow, 0, narrow, own_narrow, high - n_wide, begin, index, amount, ahead
            )
