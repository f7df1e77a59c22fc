"""The order of cuts that all engines share."""

from __future__ import annotations

import random

import pytest

from gpustump.engines.contract import NO_CUT, Cut, constant_cut


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
