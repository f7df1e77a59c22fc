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
from gpustump.arrays import Array
from gpustump.boosting.votes.newton import NewtonVotes
from gpustump.boosting.votes.votes import Taken
from gpustump.engines.contract import Totals
from gpustump.engines.integer_weights import (
    FLOOR,
    TOP,
    grown_factor,
    in_units,
    rescale_exponent_of,
    rescale_if_certain,
    reweighted,
    unit_exponent,
)
from gpustump.engines.reference.exponential_loss import ExponentialLoss
from gpustump.engines.reference.softmax_loss import SoftmaxLoss
from gpustump.learners.split import Split

NORMAL = st.builds(math.ldexp, st.floats(1.0, 1.99), st.integers(-1022, 1023))


def nearest_power_of_two(ratio: Fraction) -> int:
    about = ratio.numerator.bit_length() - ratio.denominator.bit_length()
    return min((about - 1, about, about + 1), key=lambda k: abs(ratio / Fraction(2) ** k - 1))


@settings(max_examples=500)
@given(st.lists(NORMAL, min_size=1, max_size=20), st.integers(1, 11))
def test_units_are_a_power_of_two_and_fill_62_bits_in_all_copies(drawn, n_copies):
    check_units(np.asarray(drawn), n_copies)


@pytest.mark.parametrize(("n_samples", "n_copies"), [(1, 1), (3, 1000), (1000, 1000), (9000, 7)])
def test_so_do_units_of_many_and_of_extreme_weights(n_samples, n_copies):
    for weights in extreme_weights(n_samples, n_copies):
        check_units(weights, n_copies)


def check_units(weights: np.ndarray, n_copies: int) -> None:
    """Weights are multiplied by one power of two, and rounded up to whole numbers from 1 on."""
    scaled, unit = in_units(weights, n_copies), Fraction(2) ** unit_exponent(weights, n_copies)
    whole = [max(math.ceil(Fraction(own) * unit), 1) for own in weights.tolist()]
    assert scaled.tolist() == whole
    assert TOP // 4 - 2 * len(weights) * n_copies < sum(whole) * n_copies < TOP


def extreme_weights(n_samples: int, seed: int) -> list[np.ndarray]:
    """Weights over 600 orders of magnitude, one that dominates, equal ones, the ends of floats."""
    random = np.random.default_rng(seed)
    one_heavy = np.where(np.arange(n_samples) == n_samples // 2, 1e300, 1e-300)
    ends = random.choice([2.0**-1022, 1.7e308], size=n_samples)
    spread = 10.0 ** random.uniform(-300, 300, size=n_samples)
    return [spread, one_heavy, ends, np.full(n_samples, 0.1), np.full(n_samples, 1.7e308)]


def signed_integers(weights: Array, y: Array) -> Array:
    """The gradients of a round with discrete votes."""
    ((gradient, _),) = ExponentialLoss(y, weights, 1).integers().outputs
    return gradient


def test_integers_are_the_same_in_every_library(backend: Backend):
    """Units, weights rounded up, and weights that a step has changed."""
    rng = np.random.default_rng(0)

    def here(function, *given) -> list[float]:
        own = [backend.asarray(x) for x in given]
        with arrays.computing_on(own[0]):
            return backend.to_numpy(function(*own)).tolist()

    # The last: whether a product that XLA flushes to zero counts as 0 or 1 decides on the unit.
    narrow = np.asarray([(2.0**53 - 1) * 2.0**16, 63 * 2.0**10, 2.0**-1022])
    wide = 10.0 ** rng.uniform(-300, 300, size=50)
    for w in (np.ones(50), rng.uniform(size=50), wide, narrow):
        assert here(in_units, w) == in_units(w).tolist()
    halves = [0.5, 1.5, 2.5, 0.49999999999999994, 4503599627370495.5, 2.0**61, 2.0**-900]
    y = np.asarray([1.0, 1.0, -1.0, 1.0, 1.0, -1.0, 1.0])
    expected = [1, 2, -3, 1, 4503599627370496, -(2**61), 1]
    assert here(signed_integers, np.asarray(halves), y) == expected
    weights, wrong = in_units(10.0 ** rng.uniform(-200, 200, size=50)), rng.random(50) < 0.3
    for odds in ("2.718281828459045", "1e-40", "1e4000", "1e-4000"):
        grown, rescale_exponent = grown_factor(Decimal(odds), 2**61, 2**60, n_samples=50)
        factors = np.where(wrong, grown, 2.0**-rescale_exponent)
        assert here(reweighted, weights, factors) == reweighted(weights, factors).tolist()


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
    grown, rescale_exponent = grown_factor(odds, right_weight, wrong_weight, len(pairs))
    new = reweighted(weights, np.where(wrong, grown, 2.0**-rescale_exponent)).tolist()
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


@settings(max_examples=300)
@given(
    st.fractions(min_value=Fraction(1, 10**30), max_value=2**62) | st.integers(1, 2**61),
    st.integers(1, 10**8),
    st.integers(-400, 400),
)
def test_rescale_exponents_are_the_fewest_that_keep_rounded_numbers_below_2_to_62(
    bound, n_integers, power
):
    bound = Fraction(bound) * Fraction(2) ** power
    rescale_exponent = rescale_exponent_of(bound, n_integers)

    def rounded_up(k: int) -> Fraction:
        """The most that the numbers can come to: one rounding above, up to whole ones, and 1."""
        return bound * (1 + Fraction(1, 2**52)) / Fraction(2) ** k + 2 * n_integers

    assert rounded_up(rescale_exponent) <= TOP
    assert rescale_exponent == -62 or rounded_up(rescale_exponent - 1) > TOP


@settings(max_examples=300)
@given(st.floats(1e-20, 1e30), st.integers(1, 10**8), st.integers(-2, 2))
def test_rescale_exponents_called_certain_are_those_of_every_bound_that_close(
    bound, n_integers, ulps
):
    """Also of bounds next to a power of two times the limit, where they change."""
    power = math.frexp(bound)[1]
    at = math.ldexp(float(TOP - 2 * n_integers), power - 62)
    for own in (bound, at * (1.0 + ulps * 2.0**-50), at * (1.0 + ulps * 2.0**-46)):
        found = rescale_if_certain(own, n_integers)
        near = {
            rescale_exponent_of(Fraction(own) * (1 + Fraction(sign, 2**50)), n_integers)
            for sign in (-1, 0, 1)
        }
        assert found is None or near == {found}
    assert rescale_if_certain(at * 1.5, n_integers) is not None


def test_integers_of_the_softmax_loss_stay_below_2_to_62_for_each_output():
    """Also where one class is certain, where it is certain and wrong, and in all between."""
    for n_samples, n_outputs in ((1, 3), (5, 300), (400, 11)):
        y = np.arange(n_samples) % n_outputs
        random = np.random.default_rng(n_samples)
        for weights in extreme_weights(n_samples, 1):
            loss = SoftmaxLoss(y, in_units(weights), n_outputs)
            for scale in (0.0, 0.5, 30.0, 2000.0, 3.0):
                votes = tuple((scale * random.normal(size=n_outputs)).tolist())
                taken = Taken(Split(0, math.inf), (votes,) * 3, Totals(0, 1, 0, 1, n_samples))
                step = NewtonVotes(1.0, n_outputs, 0.0, 0).change(taken).step
                region = np.zeros(n_samples, dtype=np.int64)
                loss.advance(region, step.votes, step.factors)
                for number, own in enumerate(loss.integers().outputs):
                    assert (own.gradient * np.where(y == number, 1, -1) >= 1).all()
                    assert own.hessian.min() >= 1
                    assert int(np.abs(own.gradient).astype(object).sum()) < TOP
                    assert int(own.hessian.astype(object).sum()) < TOP
