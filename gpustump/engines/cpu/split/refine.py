"""Refining: the search among the parts and the samples of the bins that may hold a better cut.

The function is written once and runs in two ways. Where the samples are at hand in the order of
their codes, it is compiled, with the kernel of the votes and with the answers of `sums_source`; so
a round asks all its questions in one call. Where the answers come from elsewhere, such as the
workers of a cluster, Python runs the same function, and asks the source.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpustump.engines.cpu.runtime.compiling import Integers, group, inner, kernel
from gpustump.engines.cpu.runtime.crew import pieces
from gpustump.engines.cpu.split.cut_scores import NO_KEY
from gpustump.engines.cpu.split.skew import learn
from gpustump.engines.cpu.split.slices import Outside, Planes

_MOST_CELLS = 512
"""If, by estimates, more parts of bins than this may hold the best cut, their samples are not asked
for; their features are added up anew instead."""

_CELLS_AT_ONCE = 2**12
"""About how many cells a thread evaluates at a time."""


@group
class BestCut(NamedTuple):
    """The best cut so far, which a search overwrites.

    Attributes
    ----------
    score : ndarray (1,) of int64
        The key of the cut's score; see `cut_scores`.
    place : ndarray (2,) of int64
        The cut's feature and position; for a constant both are larger than those of any split.
    regions : ndarray (n_planes, n_regions) of int64
        The sums over the regions of a split, in the planes of `slices`.
    """

    score: Integers
    place: Integers
    regions: Planes


def evaluating(call: Any) -> Any:
    """A function that evaluates cells; it is compiled, or called by Python.

    It returns a bound for each cell, and offers the best cut between cells if `offers`. `most` is
    that of `cell_scores.EVALUATED`. `call` calls `evaluate`, which is a kernel or its address.
    """

    def evaluated(  # type: ignore[no-untyped-def]
        crew, threads, evaluate, slices, outside, rules, best, offers, most
    ):
        n_segments, n_cells = len(slices.first), slices.sums.shape[1]
        bounds = np.full(n_cells, NO_KEY)
        n_pieces, size = 1, n_segments
        if n_cells > _CELLS_AT_ONCE:
            n_pieces, size = pieces(threads, n_segments, _CELLS_AT_ONCE * n_segments // n_cells + 1)
        scores, places = np.full(n_pieces, NO_KEY), np.full((n_pieces, 2), -1)
        about = (slices, outside, rules, size, bounds, most, scores, places)
        call(evaluate, crew, n_pieces, *about)
        if offers:
            for piece in range(n_pieces):
                if places[piece, 1] >= 0:
                    _offer(slices, outside, scores[piece], places[piece, 0], places[piece, 1], best)
        return bounds

    return evaluated


def may_win(bounds: Any, best: Any) -> Any:
    """The numbers of the bounds that are not below the best score."""
    return (bounds >= best.score[0]).nonzero()[0]


def around(slices: Any, outside: Any, cells: Any) -> Any:
    """The segments in which some cells lie, and what surrounds each of the cells."""
    n_planes, n_errors, n = len(slices.sums), len(outside.left_error), len(cells)
    segments, sums = np.empty(n, np.int64), np.empty((3, n_planes, n), np.int64)
    errors = np.empty((3, n_errors, n))
    found = Outside(sums[0], sums[1], sums[2], errors[0], errors[1], errors[2])
    _surround(slices, outside, cells, segments, found)
    return segments, found


def refining(
    evaluated: Any, may_win: Any, can_answer: Any, parts: Any, samples: Any, around: Any
) -> Any:
    """The function that refines bins; it is compiled, or called by Python.

    Parameters
    ----------
    evaluated, may_win, around : callable
        As above.
    can_answer : callable
        Whether the source can answer about some slots.
    parts : callable
        Returns answers that have the sums over the parts of bins.
    samples : callable
        Returns the answer about some cells of another one.
    """

    def refine(  # type: ignore[no-untyped-def]
        crew, threads, evaluate, source, at_once, slices, outside, rules, notes, best, chosen, most
    ):
        """Find the best cut inside some bins.

        If sums over bins are exact, all bins that may hold a better cut are refined. If they are
        estimates, those in the slots `chosen` are, and `most` of each feature is raised to the most
        that a cut in them may be worth.

        Returns whether the source could answer all questions.
        """
        how, nothing = (crew, threads, evaluate), np.empty((2, 0), dtype=np.int64)
        if len(most) > 0:
            if not can_answer(source, chosen):
                return False
            for answer in parts(crew, threads, source, chosen):
                near = around(slices, outside, answer.slots)[1]
                _correct(slices, answer.slots, answer.slices, near.present)
                own = evaluated(*how, answer.slices, near, rules, best, False, nothing)
                learn(notes, answer.slots, answer.slices)
                closer = may_win(own, best)
                closer = closer[answer.slices.is_open[closer] > 0]
                if 0 < len(closer) <= _MOST_CELLS:
                    segments, within = around(answer.slices, near, closer)
                    inside = samples(crew, threads, source, answer, segments, closer)
                    bounds = evaluated(*how, inside.slices, within, rules, best, False, nothing)
                    _raise(inside.slices, bounds, most)
                    own[closer] = NO_KEY
                _raise(answer.slices, own, most)
            return True
        bounds = evaluated(*how, slices, outside, rules, best, True, nothing)
        waiting = may_win(bounds, best)
        while len(waiting) > 0:
            least = _highest(bounds, waiting, max(at_once, len(waiting) // 2))
            is_chosen = bounds[waiting] >= least
            chosen, waiting = waiting[is_chosen], waiting[~is_chosen]
            if not can_answer(source, chosen):
                return False
            for answer in parts(crew, threads, source, chosen):
                near = around(slices, outside, answer.slots)[1]
                own = evaluated(*how, answer.slices, near, rules, best, True, nothing)
                learn(notes, answer.slots, answer.slices)
                inside, cells = answer, may_win(own, best)
                while len(cells) > 0:  # a closed one may never win
                    segments, near = around(inside.slices, near, cells)
                    inside = samples(crew, threads, source, inside, segments, cells)
                    own = evaluated(*how, inside.slices, near, rules, best, True, nothing)
                    cells = may_win(own, best)
            waiting = waiting[may_win(bounds[waiting], best)]
        return True

    return refine


@kernel("void(Slices, Outside, int64, int64, int64, BestCut)")
def _offer(slices, outside, score, segment, cell, best):  # type: ignore[no-untyped-def]
    """Take the cut at the right edge of a cell if it is better, in the order of `contract.Cut`."""
    feature, position = slices.feature[segment], slices.last[cell]
    is_earlier = feature < best.place[0] or (feature == best.place[0] and position < best.place[1])
    if score < best.score[0] or (score == best.score[0] and not is_earlier):
        return
    best.score[0], best.place[0], best.place[1] = score, feature, position
    for plane in range(len(slices.sums)):
        left, present = outside.left[plane, segment], outside.present[plane, segment]
        left += slices.sums[plane, slices.first[segment] : cell + 1].sum()
        best.regions[plane, 0], best.regions[plane, 1] = left, present - left
        best.regions[plane, 2] = outside.missing[plane, segment]


@kernel("int64(int64[::1], int64[::1], int64)")
def _highest(bounds, chosen, n):  # type: ignore[no-untyped-def]
    """The `n`-th highest of some bounds; the lowest if there are fewer [Hoare 1961, "Find"]."""
    own = bounds[chosen]
    low, high, wanted = 0, len(own) - 1, min(n, len(own)) - 1
    while low < high:
        middle, i, j = own[(low + high) >> 1], low, high
        while i <= j:
            while own[i] > middle:
                i += 1
            while own[j] < middle:
                j -= 1
            if i <= j:
                own[i], own[j] = own[j], own[i]
                i += 1
                j -= 1
        low, high = (low, j) if wanted <= j else (i, high) if wanted >= i else (wanted, wanted)
    return own[low]


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
    """Write what `around` returns. Cells are in order, so no sum is added up twice."""
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


@kernel("void(Slices, int64[::1], int64[::1])")
def _raise(slices, bounds, most):  # type: ignore[no-untyped-def]
    """Raise `most` of each feature to the bounds of its cells."""
    for t in range(len(slices.first)):
        feature, start = slices.feature[t], slices.first[t]
        for u in range(start, start + slices.n_cells[t]):
            most[feature] = max(most[feature], bounds[u])
