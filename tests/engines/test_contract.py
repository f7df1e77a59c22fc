"""The laws of what all engines share: the order of cuts, and steps of discrete votes."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpustump.engines.contract import (
    NO_CUT,
    Cut,
    agreement,
    constant_cut,
    discrete_step,
)
from gpustump.engines.cuda.sweep import Discrete
from gpustump.learners.hypothesis import signs
from gpustump.learners.interval import Interval
from gpustump.learners.stump import Stump

SIGN = st.sampled_from([-1, 1])
FEW = st.integers(0, 3)


@st.composite
def cuts(draw: st.DrawFn) -> Cut:
    """A stump, an interval or a constant; numbers are small, so that ties are common."""
    kind = draw(st.sampled_from(["stump", "interval", "constant"]))
    if kind == "constant":
        return constant_cut(draw(st.integers(-3, 3)))
    after = draw(FEW) if kind == "interval" else None
    position = draw(FEW) + (0 if after is None else after + 1)
    return Cut(draw(FEW), position, draw(SIGN), draw(SIGN), draw(FEW), after)


def is_better(one: Cut, other: Cut) -> bool | None:
    """The order as it is told; None where it does not tell the two apart."""
    if one.agreement != other.agreement:
        return one.agreement > other.agreement
    if (one.position is None) != (other.position is None):
        return other.position is None  # a constant has to be strictly better
    if one.feature != other.feature:
        return one.feature < other.feature
    if (one.after is None) != (other.after is None):
        return one.after is None  # a stump before an interval
    if one.position is not None:
        places = [(cut.after or 0, cut.position) for cut in (one, other)]
        if places[0] != places[1]:
            return places[0] < places[1]
    return one.polarity > other.polarity if one.polarity != other.polarity else None


@given(cuts(), cuts())
def test_of_two_cuts_the_larger_is_the_one_that_the_contract_prefers(one, other):
    better = is_better(one, other)
    if better is not None:
        assert (one > other, one < other) == (better, not better)
    else:
        assert not one < other
        assert not other < one


@given(cuts(), cuts(), cuts())
def test_the_order_is_transitive_and_antisymmetric(a, b, c):
    for one, two, three in itertools.permutations((a, b, c)):
        if one < two and two < three:
            assert one < three
        assert not (one < two and two < one)
    assert not a < a


@given(st.lists(cuts(), min_size=1, max_size=6), st.randoms())
def test_the_largest_cut_does_not_depend_on_the_order_in_which_cuts_are_compared(found, shuffled):
    best = max(found).rank
    shuffled.shuffle(found)
    assert max(found).rank == best
    assert functools.reduce(max, found, NO_CUT).rank == best


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


@given(cuts())
def test_a_constant_is_taken_only_if_it_is_strictly_better(cut):
    if cut.position is not None:
        level, better = (constant_cut(cut.agreement + more) for more in (0, 1))
        assert max(cut, level) == max(level, cut) == cut
        assert max(cut, better) == max(better, cut) == better


@given(cuts())
def test_every_cut_is_better_than_none(cut):
    assert cut > NO_CUT
    assert max(NO_CUT, cut) == cut


@pytest.mark.parametrize("signed_weight", [-5, 0, 5])
def test_a_constant_votes_for_the_heavier_label_everywhere(signed_weight):
    cut = constant_cut(signed_weight)
    assert cut.polarity == cut.missing == (-1 if signed_weight < 0 else 1)
    assert (cut.agreement, cut.position, cut.after) == (abs(signed_weight), None, None)


def test_cuts_are_immutable():
    with pytest.raises(dataclasses.FrozenInstanceError):
        NO_CUT.score = 0  # type: ignore[misc]


HYPOTHESES = st.builds(Stump, FEW, st.floats(-2, 2), SIGN, SIGN, st.just(0.25)) | st.builds(
    Interval, FEW, st.floats(-2, 0), st.floats(1, 2), SIGN, SIGN, st.just(0.25)
)


@given(HYPOTHESES, st.floats(-30, 30), st.floats(1e-3, 1e3), st.integers(-60, 60))
def test_a_step_of_discrete_votes_says_the_same_in_general_factors_and_in_two(
    hypothesis, vote, grown, halvings
):
    step = discrete_step(hypothesis, vote, grown, halvings)
    kept = 2.0**-halvings
    assert Discrete.of(step) == (signs(hypothesis), vote, grown, kept)
    for sign, votes, factors in zip(signs(hypothesis), step.votes, step.factors, strict=True):
        assert votes == (sign * vote,)
        for label, factor in zip((-1, 1), factors[0], strict=True):
            assert factor == (kept if sign == label else grown)
    assert (step.hypothesis, step.halvings, step.cut) == (hypothesis, halvings, None)


REGIONS = st.tuples(*[st.tuples(st.integers(0, 9), st.integers(0, 9))] * 3)


@given(REGIONS, st.tuples(SIGN, SIGN, SIGN))
def test_agreement_is_the_weight_got_right_less_the_weight_got_wrong(weights, region_signs):
    right = sum(weights[r][(sign + 1) // 2] for r, sign in enumerate(region_signs))
    wrong = sum(weights[r][(1 - sign) // 2] for r, sign in enumerate(region_signs))
    sums = [[(positive - negative, positive + negative)] for negative, positive in weights]
    assert agreement(sums, region_signs) == right - wrong
