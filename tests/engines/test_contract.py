"""The order of cuts that all engines share."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

pytest.importorskip("numba")

from hypothesis import given, settings
from hypothesis import strategies as st
from inner_functions import callable_from_python

from gpustump.engines.contract import NO_CUT, Cut, constant_cut
from gpustump.engines.cpu.split import found_split
from gpustump.engines.cpu.split.found_split import NOTHING, STUMP, Found, as_cut

comes_before = callable_from_python(found_split.comes_before)
better = callable_from_python(found_split.better)

SIGN = st.sampled_from([-1, 1])
FEW = st.integers(0, 3)


@st.composite
def splits(draw: st.DrawFn) -> Cut:
    """A stump or an interval; numbers are small, so that ties are common."""
    after = draw(FEW) if draw(st.booleans()) else None
    position = draw(FEW) + (0 if after is None else after + 1)
    return Cut(draw(FEW), position, draw(SIGN), draw(SIGN), draw(FEW), after)


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
@given(splits(), splits())
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
