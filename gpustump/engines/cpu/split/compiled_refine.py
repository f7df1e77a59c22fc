"""`refine`, compiled: all questions about some bins in one call, where their samples are in order.

It calls the kernel of the votes by its address, so it is one for all votes. No fit waits until it
is compiled: until then Python asks the questions.
"""

from __future__ import annotations

import numpy as np

from gpustump.engines.cpu.runtime.compiling import inner, kernel
from gpustump.engines.cpu.runtime.crew import pieces
from gpustump.engines.cpu.runtime.intrinsics import call_at
from gpustump.engines.cpu.split.cell_scores import EVALUATED
from gpustump.engines.cpu.split.monotone_bounds import Rules  # noqa: F401  # signatures name it
from gpustump.engines.cpu.split.refine import around, evaluating, may_win, refining
from gpustump.engines.cpu.split.sums_source import (
    Segments,
    add_up_terms,
    answering,
    lay_out_bins,
    lay_out_cells,
    pick_keys,
    sort_parts,
)
from gpustump.engines.cpu.table.columns import PART_BITS


@inner("boolean(InOrder, int64[::1])")
def _are_in_order(source, slots):  # type: ignore[no-untyped-def]
    """Whether compiled code finds the samples of all of some bins."""
    for k in range(len(slots)):
        feature = source.feature[slots[k]]
        if source.is_wide[feature] == 0 or source.is_ready[source.column[feature]] == 0:
            return False
    return True


_answer = inner(
    "Answer(int64[::1], int64, Terms, int64, int64[::1], int64[::1], int32[::1], Segments, int64,"
    " boolean)"
)(answering(add_up_terms, pieces))


@inner("UniTuple(Answer, 1)(int64[::1], int64, InOrder, int64[::1])")
def _parts(crew, threads, source, slots):  # type: ignore[no-untyped-def]
    """The same as `CodedSums.parts` for bins whose samples are in order."""
    n, numbers = len(slots), np.empty((6, len(slots)), dtype=np.int64)
    feature, starts = numbers[0], numbers[1]
    for k in range(n):
        feature[k] = source.feature[slots[k]]
        starts[k] = source.column[feature[k]] * source.n_samples + source.offset[slots[k]]
    segments = Segments(numbers[2], numbers[3], numbers[4], numbers[5])
    n_cells = lay_out_bins(slots, starts, source.offset, 1 << PART_BITS, segments)
    answer = _answer(
        crew, threads, source.terms, source.n_planes, slots, feature, source.order, segments,
        n_cells, True,
    )  # fmt: skip
    return (answer,)


@inner("Answer(int64[::1], int64, InOrder, Answer, int64[::1], int64[::1])")
def _samples(crew, threads, source, answer, segments, cells):  # type: ignore[no-untyped-def]
    """The same as `CodedSums.samples`."""
    slices, where, numbers = answer.slices, answer.where, np.empty((7, len(cells)), dtype=np.int64)
    slots, feature, offset = numbers[0], numbers[1], numbers[2]
    for k in range(len(cells)):
        slots[k], feature[k] = answer.slots[segments[k]], slices.feature[segments[k]]
        offset[k] = source.offset[slots[k]]
    found = Segments(numbers[3], numbers[4], numbers[5], numbers[6])
    n_samples = lay_out_cells(slices, where.begin, offset, segments, cells, found)
    order, keys = np.empty(n_samples, dtype=np.int32), np.empty(n_samples, dtype=np.int64)
    if pick_keys(source.values, feature, where.order, found, order, keys) > 0:
        sort_parts(keys, found, where.order, order)
    found = Segments(found.first, found.n_samples, found.position, found.first)
    return _answer(
        crew, threads, source.terms, source.n_planes, slots, feature, order, found, n_samples,
        False,
    )  # fmt: skip


@inner(EVALUATED.replace("void(int64", "void(int64, int64[::1], int64"))
def _call(  # type: ignore[no-untyped-def]
    evaluate, crew, n_pieces, slices, outside, rules, size, bound, most, scores, places
):
    own = (crew, n_pieces, slices, outside, rules, size, bound, most, scores, places)
    call_at(evaluate, own)


_evaluated = inner(
    "int64[::1](int64[::1], int64, int64, Slices, Outside, Rules, BestCut, boolean, int64[:, ::1])"
)(evaluating(_call))
_may_win = inner("int64[::1](int64[::1], BestCut)")(may_win)
_around = inner("Tuple((int64[::1], Outside))(Slices, Outside, int64[::1])")(around)

refine = kernel(
    "boolean(int64[::1], int64, int64, InOrder, int64, Slices, Outside, Rules, Notes, BestCut,"
    " int64[::1], int64[::1])"
)(refining(_evaluated, _may_win, _are_in_order, _parts, _samples, _around))
