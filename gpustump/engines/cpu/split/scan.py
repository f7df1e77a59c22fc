"""The best split of sorted features that are scanned whole, for every kind of votes.

The sorted samples of a feature are added up, and the scores of all cuts are computed. For one
output after the other the sums left of the cuts are written to an array; then the output's part of
the score is computed, several cuts at a time, and added to those of the outputs before.

Scores have the bits of the reference's, and ties are broken as `contract.Cut` says. The threshold
above all values, which separates all values from the missing ones, is one more cut; it counts only
if it is better than a constant.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from gpustump.engines.batched_rounds import DISCRETE
from gpustump.engines.contract import Cut
from gpustump.engines.cpu.loss.terms import Terms
from gpustump.engines.cpu.runtime.compiling import Integers, group, inner
from gpustump.engines.cpu.runtime.crew import parallel
from gpustump.engines.cpu.split.cut_scores import (
    KINDS,
    NO_KEY,
    add_scores,
    constant_key,
    first_with,
    forbid,
    key_of,
    largest_key,
    most_agreement,
    score_of,
)
from gpustump.engines.cpu.split.cut_sums import (
    both_left_of_cuts,
    left_of_cuts,
    missing_sums,
    position_of,
    with_sizes_left_of_cuts,
)
from gpustump.engines.cpu.table.sorted_table import SortedTable
from gpustump.engines.objective import Objective

_ELEMENTS_AT_ONCE = 2**19
"""How many elements, times outputs, are worth another thread. With fewer, one thread alone is
better, as its rounds can be made in batches, without Python (see `batched_rounds`)."""

_FEATURES_AT_ONCE = 4
"""The fewest features that a thread takes."""

Numbers = Annotated[np.ndarray, "int64[:, ::1]"]


@group
class Round(NamedTuple):
    """What the search of a round is given.

    Attributes
    ----------
    gradient, hessian : ndarray
        See `terms.Terms`.
    totals : ndarray (n_outputs, 2) of int64
        The sums over all samples.
    constant : int
        The key of the score of all samples together.
    kind : int
        `batched_rounds.DISCRETE`, `REAL` or `NEWTON`.
    l2 : float
        For Newton votes: lambda, in units of the integers.
    directions : ndarray (n_features,) of int64
        The features' constraints; empty if there are none.
    """

    gradient: Numbers
    hessian: Numbers
    totals: Numbers
    constant: int
    kind: int
    l2: float
    directions: Integers


@group
class Best(NamedTuple):
    """The best split so far: its key, `NO_KEY` if there is none, its feature and position."""

    key: int
    feature: int
    position: int


class ScanSearch:
    """The search of a run that scans every feature.

    Parameters
    ----------
    table : SortedTable
    objective : Objective

    Attributes
    ----------
    is_alone : bool
        Whether one thread does it all.
    """

    def __init__(self, table: SortedTable, objective: Objective) -> None:
        self._table, self._objective = table, objective
        least = _ELEMENTS_AT_ONCE // (table.n_samples * objective.n_outputs)
        least = max(_FEATURES_AT_ONCE, least, -(-table.n_features // table.team.size))
        self._rooms = np.zeros((-(-table.n_features // least), 3, table.n_samples), dtype=np.int64)
        self._size, self.is_alone = least, len(self._rooms) == 1

    def best_cut(self, terms: Terms, totals: np.ndarray) -> Cut:
        """The largest cut, from a round's terms and their sums (n_outputs, 2)."""
        objective, kind = self._objective, KINDS[self._objective.gain]
        l2, directions = float(objective.l2), objective.directions
        constant = constant_key(totals, kind, l2)
        found, table = np.empty((len(self._rooms), 3), dtype=np.int64), self._table
        table.team.run(
            scan, len(found), table.order, table.n_present, *terms, totals, constant, kind, l2,
            directions, self._rooms, self._size, found,
        )  # fmt: skip
        return best_of(found, constant, kind)


def best_of(found: np.ndarray, constant: int, kind: int) -> Cut:
    """The largest of some cuts (n, 3), whose rows have the fields of `Best`, and the constant."""
    best = max((Best(*own) for own in found.tolist()), key=lambda one: (one.key, -one.feature))
    if constant > best.key:
        return Cut(0, None, 0, 0, score_of(constant, kind))
    return Cut(best.feature, best.position, 0, 0, score_of(best.key, kind))


@inner("boolean(Best, int64, int64, int64)")
def is_better(best, key, feature, position):  # type: ignore[no-untyped-def]
    """Whether a split is better than the best one, in the order of `contract.Cut`."""
    if key != best.key:
        return key > best.key
    is_lower = position < best.position
    return feature < best.feature or (feature == best.feature and is_lower)


@inner(
    "int64(int32[::1], int64, int64[::1], int64[::1], int64, int64, int64, int64[::1], int64[::1])"
)
def sum_at_cuts(order, n, gradient, hessian, before, hessian_before, kind, left, left_hessian):  # type: ignore[no-untyped-def]
    """Write an output's sums left of the cuts after the first `n` samples; returns how many cuts.

    `hessian` may be empty, as in `Terms`.
    """
    if len(hessian) > 0:
        return both_left_of_cuts(
            order, n, gradient, hessian, before, hessian_before, left, left_hessian
        )
    if kind == DISCRETE:
        return left_of_cuts(order, n, gradient, before, left)
    return with_sizes_left_of_cuts(order, n, gradient, before, hessian_before, left, left_hessian)


@parallel(
    "void(int64, int32[:, ::1], int64[::1], int64[:, ::1], int64[:, ::1], int64[:, ::1], int64,"
    " int64, float64, int64[::1], int64[:, :, ::1], int64, int64[:, ::1])"
)
def scan(  # type: ignore[no-untyped-def]
    piece, order, n_present, gradient, hessian, totals, constant, kind, l2, directions, rooms, size,
    found,
):  # fmt: skip
    """Write the fields of the best split of a piece of the features; see `Round`.

    The key is `NO_KEY` if there is none. A piece has room for the sums and the scores of a feature,
    (3, n_samples). The arguments are plain arrays: a group is passed field by field, which takes
    about as long as the scan of a feature.
    """
    smoothing = float(totals[0, 1]) / float(2 * order.shape[1])
    best = Best(NO_KEY, -1, -1)
    left, left_hessian, all_scores = rooms[piece, 0], rooms[piece, 1], rooms[piece, 2]
    none = np.empty(0, dtype=np.int64)
    is_plain = kind == DISCRETE and len(gradient) == 1
    for j in range(piece * size, min((piece + 1) * size, len(order))):
        own, n = order[j], n_present[j]
        if n == 0:  # there is no cut, and the constant is worth as much as all values missing
            continue
        n_cuts, present = 0, (0, 0)
        for k in range(len(gradient)):
            of_gradient, of_hessian = gradient[k], hessian[k] if len(hessian) > 0 else none
            missing, missing_hessian = missing_sums(own, n, of_gradient)
            if len(of_hessian) > 0:
                missing_hessian, _ = missing_sums(own, n, of_hessian)
            present = (totals[k, 0] - missing, totals[k, 1] - missing_hessian)
            n_cuts = sum_at_cuts(
                own, n - 1, of_gradient, of_hessian, 0, 0, kind, left, left_hessian
            )
            # The last one is the threshold above all values.
            left[n_cuts], left_hessian[n_cuts] = present
            if is_plain and most_agreement(left[: n_cuts + 1], present[0], missing) <= best.key:
                n_cuts = -1  # no score need be computed
                break
            lacking, scores = (missing, missing_hessian), all_scores[: n_cuts + 1]
            add_scores(left, left_hessian, present, lacking, kind, l2, k == 0, scores)
        if n_cuts < 0:
            continue
        scores = all_scores[:n_cuts]
        if len(directions) > 0 and directions[j] != 0:
            forbid(left, left_hessian, present, directions[j], kind, l2, smoothing, scores)
        key = largest_key(scores, n_cuts, kind)
        apart = all_scores[n_cuts] if kind == DISCRETE else key_of(all_scores[n_cuts])
        if apart > constant and apart > key:
            if apart > best.key:
                best = Best(apart, j, n - 1)
        elif key > best.key:
            best = Best(key, j, position_of(own, first_with(scores, key, kind)))
    found[piece, 0], found[piece, 1], found[piece, 2] = best.key, best.feature, best.position
