"""What batches of rounds rest on: thresholds of whole tables, and ratios compared exactly.

Whole fits, with smoothing rounds, constraints and sets of categories, are in tests/boosting.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from awkward_tables import DATA, made
from hypothesis import given
from hypothesis import strategies as st
from rounds import start

pytest.importorskip("numba")

from inner_functions import callable_from_python

from gpustump.boosting.votes.newton import NewtonVotes
from gpustump.engines.cpu.split import category_sets
from gpustump.engines.cpu.table import sorted_table
from gpustump.engines.objective import Objective
from gpustump.engines.threads import Team

compared = callable_from_python(category_sets._compared)


@pytest.mark.parametrize("name", sorted(DATA))
def test_the_thresholds_of_a_whole_table_are_those_of_its_positions(name):
    X = made(name).X
    table = sorted_table.prepare(X, None, Team(1))
    if table.source.is_half:
        state = start(table, made(name).y * 1.0, np.ones(len(X)), Objective.of("newton"))
        assert state.batch_maker(NewtonVotes(0.3, 1, 0.5, 0).plain, None) is None
        return
    for feature, own in enumerate(table.thresholds):
        for position in np.flatnonzero(table.order[feature] >= 0):
            assert repr(float(own[position])) == repr(table.threshold(feature, int(position)))


LARGE, ABOVE_0 = st.integers(-(2**62), 2**62), st.integers(1, 2**62)


@given(a=LARGE, b=ABOVE_0, c=LARGE, d=ABOVE_0, k=st.integers(1, 5), more=st.integers(-1, 1))
def test_ratios_of_large_sums_are_compared_exactly(a, b, c, d, k, more):
    small, below = a // 5, b // 5 + 1
    near = (k * small, k * below, small + more, below)
    for one, of_one, other, of_other in [(a, b, c, d), near]:
        x, y = Fraction(one, of_one), Fraction(other, of_other)
        assert compared(one, of_one, other, of_other) == (x > y) - (x < y)
