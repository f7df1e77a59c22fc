"""Held-out samples in rounds that are made in batches: their votes, and the sums over them.

Every value is converted to its order key once (see `arrays.order_keys`), and the thresholds after
all sorted positions are computed once. Then a round takes one comparison for each sample.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from gpustump.engines.batched_rounds import ValidationSamples
from gpustump.engines.cpu.predict.held_out_sums import (
    LossTable,
    add_errors,
    add_logistic,
    add_ratio,
    add_right,
    add_shares,
)
from gpustump.engines.cpu.predict.running_scores import set_ends
from gpustump.engines.cpu.runtime.compiling import Floats, Integers, group, inner, kernel
from gpustump.engines.cpu.runtime.crew import ALONE
from gpustump.engines.cpu.runtime.intrinsics import apart
from gpustump.engines.cpu.table.keys import KEYS, as_keys
from gpustump.engines.cpu.table.source_table import plain

_NOTHING, _LOGISTIC, _SOFTMAX, _SQUARED, _POISSON, _GAMMA = range(6)
_KINDS = {
    "logistic": _LOGISTIC, "softmax": _SOFTMAX, "squared_error": _SQUARED, "poisson": _POISSON,
    "gamma": _GAMMA, "quantile": _SQUARED,
}  # fmt: skip
"""Losses, as the kernels take them."""


_add_right, _add_logistic, _add_shares = map(apart, (add_right, add_logistic, add_shares))


@group
class HeldOut(NamedTuple):
    """Held-out samples, as `engines.batched_rounds.ValidationSamples`.

    Attributes
    ----------
    keys : ndarray (n_features, n_held_out) of int64
    is_wide : bool
        Whether the keys are those of float64.
    scores : ndarray (n_held_out, n_outputs) of float64
    classes, units : ndarray (n_held_out,) of int64
    weights, targets, exponentials : ndarray of float64
    most : float
    kind, bits : int
        Of the loss; the quantile loss counts as the squared one. If there are no held-out samples,
        the kind is `_NOTHING`, and arrays are empty.
    level : float
        For the quantile loss which one, otherwise 0.
    """

    keys: Annotated[np.ndarray, "int64[:, ::1]"]
    is_wide: bool
    scores: Annotated[np.ndarray, "float64[:, ::1]"]
    classes: Integers
    units: Integers
    weights: Floats
    targets: Floats
    exponentials: Floats
    most: float
    kind: int
    bits: int
    level: float


def nothing_held_out() -> tuple[HeldOut, LossTable]:
    """The arguments of kernels if there are no held-out samples."""
    floats, columns = np.zeros(0), np.zeros((0, 0))
    integers, keys = floats.astype(np.int64), columns.astype(np.int64)
    none = HeldOut(
        keys, True, columns, integers, integers, floats, floats, floats, 0.0, _NOTHING, 0, 0.0
    )  # fmt: skip
    return none, LossTable(integers, integers, 0)


def held_out_of(validation: ValidationSamples) -> tuple[HeldOut, LossTable]:
    """Held-out samples in the form that the kernels take."""
    values, rows = plain(validation.X, validation.rows)
    is_wide = values.dtype.itemsize == 8
    keys = np.empty((values.shape[1], len(validation.scores)), dtype=np.int64)
    _set_keys(values.view(np.int64 if is_wide else np.int32), rows, keys)
    loss = validation.loss
    classes, units = map(np.ascontiguousarray, (validation.classes, validation.units))
    found = HeldOut(
        keys, is_wide, validation.scores, classes, units, loss.weights, loss.targets,
        loss.exponentials, loss.most, _KINDS[loss.kind], loss.bits,
        loss.level,
    )  # fmt: skip
    return found, LossTable(*loss.table)


def n_sums_of(validation: ValidationSamples) -> int:
    """How many sums of losses there are after a round."""
    if validation.loss.kind not in ("logistic", "softmax"):
        return 2
    return int(validation.scores.shape[1]) if validation.loss.kind == "logistic" else 1


@kernel("void(Array(KEY, 2, 'A', readonly=True), int64[::1], int64[:, ::1])", KEY=KEYS)
def _set_keys(bits, rows, keys):  # type: ignore[no-untyped-def]
    """The keys of the rows, feature by feature."""
    own = np.empty(keys.shape[1], dtype=bits.dtype)
    for j in range(len(keys)):
        for i in range(len(own)):
            own[i] = bits[rows[i] if len(rows) > 0 else i, j]
        as_keys(own, own)
        for i in range(len(own)):
            keys[j, i] = own[i]


@inner("int64(float64, boolean)")
def _end(threshold, is_wide):  # type: ignore[no-untyped-def]
    """The key of the largest value that is not above a threshold."""
    given = np.empty(1)
    given[0] = threshold
    if is_wide:
        wide = np.empty(2, dtype=np.int64)
        set_ends(given, wide)
        return wide[0]
    narrow = np.empty(2, dtype=np.int32)
    set_ends(given, narrow)
    return np.int64(narrow[0])


@inner("void(int64[::1], int64, int64, float64[:, ::1], float64[:, ::1])")
def _add_votes(keys, end, missing, votes, scores):  # type: ignore[no-untyped-def]
    """Add votes (n_regions, n_outputs) to the scores of samples with these keys."""
    for output in range(scores.shape[1]):
        left, right, apart = votes[0, output], votes[1, output], votes[2, output]
        for i in range(len(keys)):
            key = keys[i]
            vote = left if key <= end else right
            scores[i, output] += apart if key == missing else vote


@inner("void(uint16[::1], uint8[::1], float64[:, ::1], float64[:, ::1])")
def _add_votes_of_set(numbers, sides, votes, scores):  # type: ignore[no-untyped-def]
    """Add votes (n_regions, n_outputs) to the scores of samples with these categories."""
    for output in range(scores.shape[1]):
        for i in range(len(numbers)):
            scores[i, output] += votes[sides[numbers[i]], output]


@inner("void(int64[::1], HeldOut, LossTable, int64[::1], int64[::1])")
def _add_up(crew, held_out, table, right, losses):  # type: ignore[no-untyped-def]
    """Add up right weights and losses."""
    scores, classes = held_out.scores, held_out.classes
    if held_out.kind == _SQUARED:
        add_errors(scores, held_out.targets, held_out.weights, held_out.level, losses)
        return
    if held_out.kind >= _POISSON:
        sign = 1 if held_out.kind == _POISSON else -1
        amounts = held_out.weights, held_out.targets
        add_ratio(scores, *amounts, held_out.exponentials, held_out.most, sign, losses)
        return
    n, of_classes, sums = len(scores), right.reshape((1, -1)), losses.reshape((1, -1))
    _add_right(crew, ALONE, scores, classes, held_out.units, n, of_classes)
    own = (scores, classes, held_out.weights, table, held_out.bits)
    if held_out.kind == _LOGISTIC:
        _add_logistic(crew, ALONE, *own, n, sums)
    else:
        _add_shares(crew, ALONE, *own, False, n, sums)


@inner(
    "void(int64[::1], HeldOut, LossTable, int64, float64, float64[:, ::1], int64[::1], int64[::1])"
)
def judge(crew, held_out, table, feature, threshold, votes, right, losses):  # type: ignore[no-untyped-def]
    """Add a round's votes to the scores, and then add up right weights and losses."""
    if held_out.kind == _NOTHING:
        return
    end = _end(threshold, held_out.is_wide)
    missing = 2**63 - 1 if held_out.is_wide else 2**31 - 1
    _add_votes(held_out.keys[feature], end, missing, votes, held_out.scores)
    _add_up(crew, held_out, table, right, losses)


@inner(
    "void(int64[::1], HeldOut, LossTable, uint16[::1], uint8[::1], float64[:, ::1], int64[::1],"
    " int64[::1])"
)
def judge_set(crew, held_out, table, numbers, sides, votes, right, losses):  # type: ignore[no-untyped-def]
    """The same for a set of categories, from the samples' numbers and each number's region."""
    if held_out.kind == _NOTHING:
        return
    _add_votes_of_set(numbers, sides, votes, held_out.scores)
    _add_up(crew, held_out, table, right, losses)
