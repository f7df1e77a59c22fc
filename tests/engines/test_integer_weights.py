"""Weights become integers without loss of order or ratio: proved against exact fractions.

The unit in which they fill 62 bits is a power of two, rounding is upwards, so that none becomes 0,
the update is one multiplication by a factor that AdaBoost's formula gives, no sum reaches 2**62.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from backends import Backend
from hypothesis import given, settings
from hypothesis import strategies as st

from gpustump import arrays
from gpustump.engines.integer_weights import FLOOR, TOP, grown_factor, in_units, reweighted, signed

NORMAL = st.builds(math.ldexp, st.floats(1.0, 1.99), st.integers(-1022, 1023))


def power_of_two(ratio: Fraction) -> int | None:
    """k if the ratio is 2**k, otherwise None."""
    top, bottom = ratio.numerator, ratio.denominator
    if (top & (top - 1)) or (bottom & (bottom - 1)):
        return None
    return top.bit_length() - bottom.bit_length()


def nearest_power_of_two(ratio: Fraction) -> int:
    about = ratio.numerator.bit_length() - ratio.denominator.bit_length()
    return min((about - 1, about, about + 1), key=lambda k: abs(ratio / Fraction(2) ** k - 1))


@settings(max_examples=500)
@given(st.lists(NORMAL, min_size=1, max_size=20))
def test_units_are_a_power_of_two_and_fill_62_bits(weights):
    scaled = in_units(np.asarray(weights)).tolist()
    heaviest = weights.index(max(weights))
    power = power_of_two(Fraction(scaled[heaviest]) / Fraction(weights[heaviest]))
    assert power is not None
    for given_weight, weight in zip(weights, scaled, strict=True):
        exact = Fraction(given_weight) * Fraction(2) ** power
        assert weight == max(math.ceil(exact), 1)
    total_weight = sum(math.ceil(Fraction(weight)) for weight in scaled)
    assert TOP // 4 < total_weight < TOP


def test_units_are_the_same_in_every_library(backend: Backend):
    rng = np.random.default_rng(0)
    # The last: whether a product that XLA flushes to zero counts as 0 or 1 decides on the unit.
    narrow = np.asarray([(2.0**53 - 1) * 2.0**16, 63 * 2.0**10, 2.0**-1022])
    wide = 10.0 ** rng.uniform(-300, 300, size=50)
    for w in (np.ones(50), rng.uniform(size=50), wide, narrow):
        x = backend.asarray(w)
        with arrays.computing_on(x):
            scaled = in_units(x)
        assert backend.to_numpy(scaled).tolist() == in_units(w).tolist()


@settings(max_examples=300)
@given(
    st.lists(
        st.tuples(st.floats(0, 2.0**50, exclude_min=True), st.sampled_from([-1.0, 1.0])), min_size=1
    )
)
def test_signed_weights_are_rounded_up(pairs):
    weights, y = (np.asarray(part) for part in zip(*pairs, strict=True))
    sums = signed(weights, y)
    expected = [math.ceil(Fraction(w)) * int(sign) for w, sign in pairs]
    assert sums.values.tolist() == expected
    assert sums.values.dtype == np.int64
    assert (sums.total, sums.weight) == (sum(expected), sum(map(abs, expected)))


def test_weights_are_rounded_up_in_every_library(backend: Backend):
    given_weights = np.asarray(
        [0.5, 1.5, 2.5, 0.49999999999999994, 4503599627370495.5, 2.0**61, 2.0**-900]
    )
    y = np.asarray([1.0, 1.0, -1.0, 1.0, 1.0, -1.0, 1.0])
    w, signs = backend.asarray(given_weights), backend.asarray(y)
    with arrays.computing_on(w):
        sums = signed(w, signs)
    expected = [1, 2, -3, 1, 4503599627370496, -(2**61), 1]
    assert backend.to_numpy(sums.values).tolist() == expected
    assert sums.weight == sum(map(abs, expected))


@settings(max_examples=200)
@given(
    st.lists(st.tuples(NORMAL, st.booleans()), min_size=2, max_size=12),
    st.floats(-20, 20) | st.floats(-2000, 2000),
)
def test_reweighting_multiplies_the_wrong_ones_by_the_odds(pairs, vote):
    weights = in_units(np.asarray([weight for weight, _ in pairs]))
    wrong = np.asarray([is_wrong for _, is_wrong in pairs])
    integers = [math.ceil(Fraction(weight)) for weight in weights.tolist()]
    wrong_weight = sum(q for q, is_wrong in zip(integers, wrong, strict=True) if is_wrong)
    odds = (Decimal(vote) * 2).exp()
    right_weight = sum(integers) - wrong_weight
    grown, halvings = grown_factor(odds, right_weight, wrong_weight, len(pairs))
    new = reweighted(weights, np.where(wrong, grown, 2.0**-halvings)).tolist()
    assert sum(math.ceil(Fraction(weight)) for weight in new) < TOP
    assert min(new) >= FLOOR
    if wrong_weight == 0:
        assert new == weights.tolist()
        return
    # Up to one power of two, the correct ones stay and the wrong ones grow by the odds.
    scales = set()
    for before, after, is_wrong in zip(weights.tolist(), new, wrong, strict=True):
        if after == FLOOR or before == FLOOR:
            continue
        ratio = Fraction(after) / Fraction(before) / (Fraction(odds) if is_wrong else 1)
        scale = nearest_power_of_two(ratio)
        assert abs(ratio / Fraction(2) ** scale - 1) <= Fraction(1, 2**51)
        scales.add(scale)
    assert len(scales) <= 1


def test_reweighting_is_the_same_in_every_library(backend: Backend):
    rng = np.random.default_rng(1)
    weights = in_units(10.0 ** rng.uniform(-200, 200, size=40))
    wrong = rng.random(40) < 0.3
    for odds in ("2.718281828459045", "1e-40", "1e4000", "1e-4000"):
        grown, halvings = grown_factor(Decimal(odds), 2**61, 2**60, n_samples=40)
        factors = np.where(wrong, grown, 2.0**-halvings)
        w, by = backend.asarray(weights), backend.asarray(factors)
        with arrays.computing_on(w):
            new = reweighted(w, by)
        expected = reweighted(weights, factors)
        assert backend.to_numpy(new).tolist() == expected.tolist()


@pytest.mark.parametrize("n_samples", [1, 2, 3, 1000])
def test_equal_weights_fill_the_bits(n_samples):
    sums = signed(in_units(np.full(n_samples, 0.1)), np.ones(n_samples))
    assert len(set(sums.values.tolist())) == 1
    assert TOP // 4 < sums.weight < TOP
