"""The loss as a function of the threshold: against rational arithmetic, and against training."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from backends import Backend
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from gpustump import fit_stump
from gpustump.theory.losses import weighted_losses

VALUES = st.one_of(
    st.integers(-3, 3).map(float),
    st.sampled_from([math.nan, math.inf, -math.inf, 5e-324, 1.7e308, -1.7e308]),
)
SAMPLES = st.lists(
    st.tuples(VALUES, st.sampled_from([-1, 1]), st.integers(0, 4)), min_size=2, max_size=12
).filter(lambda rows: {sign for _, sign, weight in rows if weight} == {-1, 1})


def brute_force(x, y, weights, threshold: float, polarity: int) -> Fraction:
    """The loss, sample by sample; the vote for missing values is the better of the two."""
    total = sum(map(Fraction, weights))
    wrong = Fraction(0)
    astray = {-1: Fraction(0), 1: Fraction(0)}
    for value, sign, weight in zip(x, y, weights, strict=True):
        if math.isnan(value):
            astray[sign] += Fraction(weight)
        elif sign != (polarity if value <= threshold else -polarity):
            wrong += Fraction(weight)
    return (wrong + min(astray.values())) / total


@given(SAMPLES)
def test_losses_are_those_of_every_stump_counted_sample_by_sample(rows):
    x, y, weights = (list(column) for column in zip(*rows, strict=True))
    found = weighted_losses(x, y, weights)
    rows = [row for row in zip(x, y, weights, strict=True) if row[2]]
    kept = [list(column) for column in zip(*rows, strict=True)]
    distinct = sorted({value for value in kept[0] if not math.isnan(value)})
    assert found.values.tolist() == distinct
    assert len(found.errors) == len(found.opposite_errors) == len(found.thresholds)
    for i, threshold in enumerate(found.thresholds):
        if i == 0 and distinct and distinct[0] == -math.inf:
            continue  # no number is below this value
        for polarity, errors in ((1, found.errors), (-1, found.opposite_errors)):
            exact = brute_force(*kept, threshold, polarity)
            # The weights are whole, but their unit is 2**-60 or so: the total may be rounded up.
            assert errors[i] == pytest.approx(float(exact), abs=1e-15)


@pytest.mark.parametrize("kind", ["whole", "nearly equal", "of all orders"])
def test_the_least_is_the_stump_that_training_chooses_in_every_tie(kind: str):
    random = np.random.default_rng(0)
    for number in range(200):
        n_samples = random.integers(2, 9)
        dtype = (np.float64, np.float32)[number % 2]
        x = random.integers(0, 4, size=n_samples).astype(dtype)
        x[random.random(n_samples) < 0.3] = np.nan
        y = random.choice([-1, 1], size=n_samples)
        y[:2] = [1, -1]
        weights = {
            "whole": random.integers(1, 4, size=n_samples),
            "nearly equal": 3 + random.integers(0, 4, size=n_samples) * 2.0**-51,
            "of all orders": 10.0 ** random.uniform(-18, 0, size=n_samples),
        }[kind]
        stump = fit_stump(x[:, np.newaxis], y, weights)
        least = weighted_losses(x, y, weights).least()
        assert least == (stump.threshold, stump.polarity, stump.error)


def test_thresholds_are_those_of_the_columns_dtype():
    x = np.asarray([1.0, np.nextafter(np.float32(1), np.float32(2))], dtype=np.float32)
    found = weighted_losses(x, [1, -1])
    assert found.thresholds.tolist() == [-math.inf, 1.0, math.inf]
    assert weighted_losses(np.asarray([False, True]), [1, -1]).thresholds[1] == 0.5


def test_losses_are_the_same_in_every_library(backend: Backend):
    x, y = np.asarray([0.5, math.nan, 2.0, -1.0, 2.0]), np.asarray([1.0, -1.0, 1.0, -1.0, -1.0])
    here, there = weighted_losses(x, y), weighted_losses(backend.asarray(x), backend.asarray(y))
    for name in ("values", "thresholds", "errors", "opposite_errors"):
        assert_array_equal(getattr(there, name), getattr(here, name))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[1.0], [2.0]], [1, -1]), r"x must have one dimension.*X\[:, j\]"),
        (([], []), "x has 0 sample"),
        ((["a", "b"], [1, -1]), "x has dtype"),
        (([1.0, 2.0], [1, 0]), "y must hold the labels -1 and \\+1"),
        (([1.0, 2.0], [1, -1, 1]), "X and y have inconsistent"),
        (([1.0, 2.0], [1, -1], [1.0, -1.0]), "negative weights"),
        (([1.0, 2.0], [1, -1], [1.0, 0.0]), "where sample_weight is not zero"),
    ],
)
def test_nonsense_is_refused(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        weighted_losses(*arguments)
