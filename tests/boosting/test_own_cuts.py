"""Claimed cuts are written as a search of the table would write them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gpustump import Split
from gpustump.boosting.own_cuts import OwnCuts
from gpustump.learners.category_split import CategorySplit
from gpustump.learners.interval import Interval
from gpustump.learners.stump import Stump

X = np.asarray([[0.0, 5], [1, 2], [np.nan, 2], [4, 9], [7, 1]])


@pytest.mark.parametrize(
    ("claimed", "own"),
    [(0.2, 0.5), (0.0, 0.5), (1.0, 2.5), (3.9, 2.5), (4.0, 5.5), (7.0, math.inf), (8.0, math.inf)],
)
def test_a_threshold_is_the_midpoint_of_the_values_around_it(claimed, own):
    cuts = OwnCuts(X, None)
    assert cuts.written(Split(0, claimed)) == Split(0, own)
    assert cuts.written(Stump(0, claimed, 1, -1, 0.25)) == Stump(0, own, 1, -1, 0.25)


@pytest.mark.parametrize("claimed", [-1.0, -math.inf])
def test_a_threshold_below_all_values_is_the_one_above_them(claimed):
    assert OwnCuts(X, None).written(Split(0, claimed)) == Split(0, math.inf)


def test_only_the_rows_that_take_part_count():
    assert OwnCuts(X, np.asarray([0, 3])).written(Split(0, 1.0)) == Split(0, 2.0)


def test_values_are_compared_in_their_own_dtype():
    """The nearest float32 of this threshold is the value above it."""
    below, above = np.float32(1), np.nextafter(np.float32(1), np.float32(2))
    column = np.asarray([[below], [above], [3]], dtype=np.float32)
    claimed = math.nextafter(float(above), 0.0)
    assert OwnCuts(column, None).written(Split(0, claimed)) == Split(0, 1.0)


@pytest.mark.parametrize(
    ("low", "high", "own"),
    [
        (0.1, 4.5, Interval(0, 0.5, 5.5, 1, -1, 0.25)),
        (-3.0, 4.5, Stump(0, 5.5, 1, -1, 0.25)),
        (0.1, 9.0, Stump(0, 0.5, -1, -1, 0.25)),
        (1.5, 3.5, Stump(0, math.inf, -1, -1, 0.25)),
        (-3.0, -2.0, Stump(0, math.inf, -1, -1, 0.25)),
    ],
)
def test_an_interval_that_does_what_a_stump_does_is_a_stump(low, high, own):
    found = OwnCuts(X, None).written(Interval(0, low, high, 1, -1, 0.25))
    assert found == own
    assert type(found) is type(own)


@pytest.mark.parametrize(
    ("left", "right", "own"),
    [
        ((1, 2), (5, 9), ((1, 2), (5, 9))),
        ((5, 9), (1, 2), ((1, 2), (5, 9))),
        ((1, 7), (2, 3, 5, 9), ((1,), (2, 5, 9))),
        ((7,), (1, 2, 5, 9), ((1, 2, 5, 9), ())),
    ],
)
def test_a_set_holds_the_categories_of_the_samples_and_the_lowest_is_left(left, right, own):
    assert OwnCuts(X, None).written(CategorySplit(1, left, right)) == CategorySplit(1, *own)
