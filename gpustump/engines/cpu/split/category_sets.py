"""Sets of categories in rounds that are made in batches: the best one, and what it does to samples.

The definitions are those of `engines.category_search`: the sums over each category, rare categories
together, the order of the ratios of their two sums, every prefix of each output's order, and what
is taken of equal ones. Ratios are compared in float64, and exactly where roundings might decide. So
the order is that of the ratios themselves, and it does not matter from which order the sorting
starts: it starts from that of the round before, which is mostly the same.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.engines.batched_rounds import ValidationSamples
from gpustump.engines.category_columns import as_numbers
from gpustump.engines.category_search import Categories
from gpustump.engines.cpu.runtime.compiling import Integers, group, inner
from gpustump.engines.cpu.split.part_bounds import NO_SCORE
from gpustump.engines.cpu.split.split_scores import gain
from gpustump.learners.hypothesis import FIRST, MISSING, SECOND

_ROUNDINGS = 2.0**-49
"""Quotients that differ by more than this share are in the right order; see `category_search`."""

_NUMBERS = Annotated[np.ndarray, "uint16[:, ::1]"]


@group
class Sets(NamedTuple):
    """The categorical features of a run, and the orders of their groups in the last round.

    Attributes
    ----------
    columns : ndarray (n_features,) of int64
        Each feature's place among them; -1 of all others. Empty if no feature is categorical.
    features : ndarray (n_columns,) of int64
    numbers : ndarray (n_columns, n_samples) of uint16
        Of the samples' categories; see `CategoryColumns`.
    groups : ndarray (n_columns, n_numbers) of uint16
        The group of each number that a sample has.
    used : ndarray (n_columns, n_numbers) of uint16
        First these numbers, increasing.
    n_used, n_groups : ndarray (n_columns,) of int64
    validation : ndarray (n_columns, n_held_out) of uint16
        The numbers of the held-out samples.
    orders : ndarray (n_columns, n_outputs, n_numbers) of int64
    """

    columns: Integers
    features: Integers
    numbers: _NUMBERS
    groups: _NUMBERS
    used: _NUMBERS
    n_used: Integers
    n_groups: Integers
    validation: _NUMBERS
    orders: Annotated[np.ndarray, "int64[:, :, ::1]"]


_NO_INTEGERS = np.empty(0, dtype=np.int64)
_NO_NUMBERS = np.empty((0, 0), dtype=np.uint16)
NO_SETS = Sets(
    _NO_INTEGERS, _NO_INTEGERS, _NO_NUMBERS, _NO_NUMBERS, _NO_NUMBERS, _NO_INTEGERS, _NO_INTEGERS,
    _NO_NUMBERS, np.empty((0, 0, 0), dtype=np.int64),
)  # fmt: skip
"""For tables without categorical features."""


def sets_of(
    categories: Categories, n_features: int, n_outputs: int, validation: ValidationSamples | None
) -> Sets:
    """The categorical features of a run as the kernels take them."""
    features = np.asarray(categories.columns.features, dtype=np.int64)
    n_columns, n_numbers = len(features), categories.columns.n_numbers
    columns = np.full(n_features, -1, dtype=np.int64)
    columns[features] = np.arange(n_columns)
    groups = [categories.groups[feature] for feature in features.tolist()]
    used = np.zeros((n_columns, n_numbers), dtype=np.uint16)
    n_used = np.zeros(n_columns, dtype=np.int64)
    for column, own in enumerate(groups):
        numbers = own.numbers
        used[column, : len(numbers)], n_used[column] = numbers, len(numbers)
    orders = np.empty((n_columns, n_outputs, n_numbers), dtype=np.int64)
    orders[:] = np.arange(n_numbers)
    return Sets(
        columns,
        features,
        categories.columns.numbers,
        np.stack([own.of_numbers(n_numbers) for own in groups]),
        used,
        n_used,
        np.asarray([len(own.members) for own in groups], dtype=np.int64),
        _validation_numbers(features, validation, n_numbers),
        orders,
    )


def _validation_numbers(
    features: np.ndarray, validation: ValidationSamples | None, n_numbers: int
) -> np.ndarray:
    """The numbers of held-out samples; any value may stand there."""
    if validation is None:
        return np.empty((len(features), 0), dtype=np.uint16)
    rows = slice(None) if validation.rows is None else validation.rows
    values = [arrays.as_working(validation.X[rows, feature]) for feature in features.tolist()]
    found: np.ndarray = np.stack([as_numbers(own) for own in values])
    return found.clip(max=n_numbers - 1)


@inner("int64(int64[::1], int64)")
def column_of(columns, feature):  # type: ignore[no-untyped-def]
    """A feature's place among the categorical ones, by `Sets.columns`; -1 if it is not."""
    return columns[feature] if len(columns) > 0 else -1


@inner("void(uint16[::1], int64[::1], int64[::1], int64[:, ::1])")
def _add_up(numbers, gradient, hessian, sums):  # type: ignore[no-untyped-def]
    """Sums of both integers over each number, (2, n_numbers).

    Two halves of the samples have sums of their own, as one sum cannot be added to twice at once.
    """
    others = np.zeros_like(sums)
    sums[:] = 0
    half = len(numbers) // 2
    for i in range(half):
        one, two = numbers[i], numbers[half + i]
        sums[0, one] += gradient[i]
        sums[1, one] += hessian[i]
        others[0, two] += gradient[half + i]
        others[1, two] += hessian[half + i]
    if len(numbers) > 2 * half:
        last = len(numbers) - 1
        sums[0, numbers[last]] += gradient[last]
        sums[1, numbers[last]] += hessian[last]
    for which in range(2):
        for number in range(sums.shape[1]):
            sums[which, number] += others[which, number]


@inner("int64(int64, int64, int64, int64)")
def _compared(a, b, c, d):  # type: ignore[no-untyped-def]
    """-1, 0 or 1: whether a / b is below c / d, equal, or above, exactly; b and d are above 0.

    Whole parts are compared, then one over the rests, as in Euclid's algorithm.
    """
    sign = 1
    while True:
        whole, other = a // b, c // d
        if whole != other:
            return -sign if whole < other else sign
        a, c = a - whole * b, c - other * d
        if a == 0 or c == 0:
            if a == c:
                return 0
            return -sign if a == 0 else sign
        a, b, c, d = b, a, d, c
        sign = -sign


@inner("boolean(int64, int64, float64[::1], int64[::1], int64[::1])")
def _comes_before(one, other, ratios, gradient, hessian):  # type: ignore[no-untyped-def]
    """Whether a group stands before another one: by their ratios, then by their numbers."""
    x, y = ratios[one], ratios[other]
    if abs(x - y) > max(abs(x), abs(y)) * _ROUNDINGS:
        return x < y
    found = _compared(gradient[one], max(hessian[one], 1), gradient[other], max(hessian[other], 1))
    return found < 0 or (found == 0 and one < other)


@inner("void(int64[::1], int64[::1], int64[::1], float64[::1])")
def _sort(order, gradient, hessian, ratios):  # type: ignore[no-untyped-def]
    """Put groups into the order of the ratios of their sums, from whatever order they are in."""
    for own in range(len(order)):
        ratios[own] = float(gradient[own]) / float(max(hessian[own], 1))
    for place in range(1, len(order)):
        own, at = order[place], place
        while at > 0 and _comes_before(own, order[at - 1], ratios, gradient, hessian):
            order[at] = order[at - 1]
            at -= 1
        order[at] = own


@inner("void(int64[::1], int64[:, :, ::1], int64[:, ::1], int64[:, ::1], float64, float64[::1])")
def _score_prefixes(order, sums, present, missing, l2, scores):  # type: ignore[no-untyped-def]
    """What each prefix of an order is worth, but for the whole."""
    scores[:] = 0.0  # gains are not negative, so adding to 0 changes none
    for output in range(len(sums)):
        gradient, hessian, a, b = sums[output, 0], sums[output, 1], 0, 0
        whole_a, whole_b = present[output, 0], present[output, 1]
        extra = gain(missing[output, 0], missing[output, 1], l2)
        for place in range(len(scores)):
            a += gradient[order[place]]
            b += hessian[order[place]]
            scores[place] += (gain(a, b, l2) + gain(whole_a - a, whole_b - b, l2)) + extra


@inner("float64(int64[:, ::1], int64[:, ::1], float64, float64)")
def _apart(present, missing, l2, constant):  # type: ignore[no-untyped-def]
    """What it is worth to part all categories from missing values; below all scores if there are
    none, or if a constant is as good."""
    score, n_missing = 0.0, 0
    for output in range(len(present)):
        alone = gain(missing[output, 0], missing[output, 1], l2)
        score += (gain(present[output, 0], present[output, 1], l2) + gain(0, 0, l2)) + alone
        n_missing += missing[output, 1] > 0
    return score if n_missing > 0 and score > constant else NO_SCORE


@inner(
    "void(Sets, int64, int64[:, ::1], int64[:, ::1], int64[:, :, ::1], int64[:, ::1],"
    " int64[:, ::1])"
)
def _sum_groups(sets, column, gradient, hessian, sums, present, missing):  # type: ignore[no-untyped-def]
    """The sums over each group of a feature, over all of them, and over samples without one."""
    numbers, groups, used = sets.numbers[column], sets.groups[column], sets.used[column]
    by_number = np.empty((2, len(groups)), dtype=np.int64)
    sums[:] = 0
    present[:] = 0
    for output in range(len(gradient)):
        _add_up(numbers, gradient[output], hessian[output], by_number)
        for k in range(sets.n_used[column]):
            number = used[k]
            for which in range(2):
                own = by_number[which, number]
                sums[output, which, groups[number]] += own
                present[output, which] += own
        missing[output, 0] = by_number[0, len(groups) - 1]
        missing[output, 1] = by_number[1, len(groups) - 1]


@inner("void(Sets, int64, int64[::1], int64, uint8[::1])")
def _send(sets, column, order, n_left, sides):  # type: ignore[no-untyped-def]
    """Give each number of a category its region: the first groups go one way; the lowest left."""
    groups, used = sets.groups[column], sets.used[column]
    is_chosen = np.zeros(len(groups), dtype=np.uint8)
    for place in range(n_left):
        is_chosen[order[place]] = 1
    sides[:] = MISSING
    for k in range(sets.n_used[column]):
        number = used[k]
        sides[number] = FIRST if is_chosen[groups[number]] == is_chosen[0] else SECOND


@inner("Tuple((float64, int64))(Sets, int64[:, ::1], int64[:, ::1], float64, float64, uint8[::1])")
def best_set(sets, gradient, hessian, l2, constant, sides):  # type: ignore[no-untyped-def]
    """The score of the best set, and its feature, -1 if there is none.

    `sides` (n_numbers,) gets the region of each number of a category. `constant` is the score of
    all samples together.
    """
    n_outputs, best, found = len(gradient), NO_SCORE, -1
    at_column, at_output, n_left = 0, 0, 0
    n_numbers = sets.groups.shape[1]
    sums = np.empty((n_outputs, 2, n_numbers), dtype=np.int64)
    present = np.empty((n_outputs, 2), dtype=np.int64)
    missing = np.empty((n_outputs, 2), dtype=np.int64)
    ratios, all_scores = np.empty(n_numbers), np.empty(n_numbers)
    for column in range(len(sets.features)):
        n_groups = sets.n_groups[column]
        if n_groups == 0:
            continue
        _sum_groups(sets, column, gradient, hessian, sums, present, missing)
        for output in range(n_outputs):
            order, scores = sets.orders[column, output, :n_groups], all_scores[: n_groups - 1]
            _sort(order, sums[output, 0], sums[output, 1], ratios)
            _score_prefixes(order, sums, present, missing, l2, scores)
            for place in range(len(scores)):
                if scores[place] > best:
                    best, found = scores[place], sets.features[column]
                    at_column, at_output, n_left = column, output, place + 1
        apart = _apart(present, missing, l2, constant)
        if apart > best:
            best, found = apart, sets.features[column]
            at_column, at_output, n_left = column, 0, n_groups
    if found >= 0:
        _send(sets, at_column, sets.orders[at_column, at_output], n_left, sides)
    return best, found


@inner("float64(uint16[::1], uint8[::1], int64[:, ::1], int64[:, ::1], float64)")
def score_of_set(numbers, sides, gradient, hessian, l2):  # type: ignore[no-untyped-def]
    """What a set that a round is offered is worth, from each number's region."""
    score, sums = 0.0, np.empty((2, len(sides)), dtype=np.int64)
    for output in range(len(gradient)):
        _add_up(numbers, gradient[output], hessian[output], sums)
        regions = np.zeros((3, 2), dtype=np.int64)
        for number in range(len(sides)):
            regions[sides[number], 0] += sums[0, number]
            regions[sides[number], 1] += sums[1, number]
        left, right = gain(regions[0, 0], regions[0, 1], l2), gain(regions[1, 0], regions[1, 1], l2)
        score += (left + right) + gain(regions[2, 0], regions[2, 1], l2)
    return score


@inner("void(uint16[::1], uint8[::1], uint8[::1])")
def mark_set(numbers, sides, regions):  # type: ignore[no-untyped-def]
    """Give samples with these numbers of categories their regions."""
    for i in range(len(numbers)):
        regions[i] = sides[numbers[i]]
