"""The laws of what all engines share: the order of cuts, and steps of discrete votes."""

from __future__ import annotations

import functools
import random
from dataclasses import replace

import pytest

pytest.importorskip("numba")

from hypothesis import given, settings
from hypothesis import strategies as st
from inner_functions import callable_from_python

from gpustump.engines.contract import NO_CUT, Cut, agreement, constant_cut, discrete_step
from gpustump.engines.cpu.split import found_split
from gpustump.engines.cpu.split.found_split import NOTHING, STUMP, Found, as_cut
from gpustump.engines.cuda.update_pass import Discrete
from gpustump.learners.hypothesis import signs
from gpustump.learners.interval import Interval
from gpustump.learners.stump import Stump

comes_before = callable_from_python(found_split.comes_before)
better = callable_from_python(found_split.better)

SIGN = st.sampled_from([-1, 1])
FEW = st.integers(0, 3)


@st.composite
def cuts(draw: st.DrawFn, has_constants: bool = True) -> Cut:
    """A stump, an interval or a constant; numbers are small, so that ties are common."""
    kind = draw(st.sampled_from(["stump", "interval", "constant"][: 2 + has_constants]))
    if kind == "constant":
        return constant_cut(draw(st.integers(-3, 3)))
    after = draw(FEW) if kind == "interval" else None
    position = draw(FEW) + (0 if after is None else after + 1)
    return Cut(draw(FEW), position, draw(SIGN), draw(SIGN), draw(FEW), after)


@given(st.lists(cuts(), min_size=1, max_size=6), st.randoms())
def test_the_largest_cut_does_not_depend_on_the_order_in_which_cuts_are_compared(found, shuffled):
    best = max(found).rank
    shuffled.shuffle(found)
    assert max(found).rank == best
    assert functools.reduce(max, found, NO_CUT).rank == best
    assert not any(one < other and other < one for one in found for other in found)


def test_cuts_that_are_level_are_taken_in_the_order_of_the_contract():
    ordered = [
        Cut(9, 0, -1, 1, score=8),  # a larger agreement, whatever the rest
        Cut(0, 1, 1, 1, score=7),
        Cut(0, 1, -1, 1, score=7),  # the polarity +1 first
        Cut(0, 2, 1, 1, score=7),  # the lower position
        Cut(0, 1, 1, 1, score=7, after=0),  # a stump before an interval
        Cut(0, 3, 1, 1, score=7, after=0),
        Cut(0, 2, 1, 1, score=7, after=1),  # the lower first cut
        Cut(1, 0, 1, 1, score=7),  # the lower feature before all of these
        Cut(0, None, 1, 1, score=7),  # a constant last
        Cut(3, 0, 1, 1, score=6),
        Cut(0, 0, 1, 1, score=0),
        NO_CUT,
    ]
    shuffled = ordered[:]
    random.Random(0).shuffle(shuffled)
    assert sorted(shuffled, reverse=True) == ordered


@pytest.mark.parametrize("signed_weight", [-5, 0, 5])
def test_a_constant_votes_for_the_heavier_label_everywhere(signed_weight):
    cut = constant_cut(signed_weight)
    assert cut.polarity == cut.missing == (-1 if signed_weight < 0 else 1)
    assert (cut.agreement, cut.position, cut.after) == (abs(signed_weight), None, None)


@settings(max_examples=500)
@given(cuts(has_constants=False), cuts(has_constants=False))
def test_kernels_compare_splits_as_cuts_compare(one, other):
    def check(one: Cut, other: Cut) -> None:
        kernel_one, kernel_other = (
            Found(
                c.agreement,
                c.feature,
                STUMP if c.after is None else c.after,
                c.position,
                c.polarity,
                c.missing,
            )
            for c in (one, other)
        )
        assert comes_before(kernel_one, kernel_other) == (other < one)
        assert comes_before(kernel_other, kernel_one) == (one < other)
        assert as_cut(better(kernel_one, kernel_other)).rank == max(one, other).rank
        assert comes_before(kernel_one, NOTHING)
        assert not comes_before(NOTHING, kernel_one)
        assert as_cut(kernel_one) == one

    check(one, other)
    large = 2**40 if one.score else 2**31
    check(replace(one, position=one.position + large), replace(other, score=large))
    assert as_cut(NOTHING) == NO_CUT


HYPOTHESES = st.builds(Stump, FEW, st.floats(-2, 2), SIGN, SIGN, st.just(0.25)) | st.builds(
    Interval, FEW, st.floats(-2, 0), st.floats(1, 2), SIGN, SIGN, st.just(0.25)
)


@given(HYPOTHESES, st.floats(-30, 30), st.floats(1e-3, 1e3), st.integers(-60, 60))
def test_a_step_of_discrete_votes_says_the_same_in_general_factors_and_in_two(
    hypothesis, vote, grown, rescale_exponent
):
    step = discrete_step(hypothesis, vote, grown, rescale_exponent)
    kept = 2.0**-rescale_exponent
    assert Discrete.of(step) == (signs(hypothesis), vote, grown, kept)
    for sign, votes, factors in zip(signs(hypothesis), step.votes, step.factors, strict=True):
        assert votes == (sign * vote,)
        for label, factor in zip((-1, 1), factors[0], strict=True):
            assert factor == (kept if sign == label else grown)
    assert (step.hypothesis, step.rescale_exponent, step.cut) == (
        hypothesis,
        rescale_exponent,
        None,
    )


REGIONS = st.tuples(*[st.tuples(st.integers(0, 9), st.integers(0, 9))] * 3)


@given(REGIONS, st.tuples(SIGN, SIGN, SIGN))
def test_agreement_is_the_weight_got_right_less_the_weight_got_wrong(weights, region_signs):
    right = sum(weights[r][(sign + 1) // 2] for r, sign in enumerate(region_signs))
    wrong = sum(weights[r][(1 - sign) // 2] for r, sign in enumerate(region_signs))
    sums = [[(positive - negative, positive + negative)] for negative, positive in weights]
    assert agreement(sums, region_signs) == right - wrong
