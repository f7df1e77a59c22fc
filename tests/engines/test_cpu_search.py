"""The search on its own: the kernels' order of ties, and what is known of bins."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba")

from hypothesis import given, settings
from hypothesis import strategies as st
from inner_functions import callable_from_python

from gpustump.engines.contract import NO_CUT, Cut
from gpustump.engines.cpu.split import found_split
from gpustump.engines.cpu.split.found_split import NOTHING, STUMP, Found, as_cut

comes_before = callable_from_python(found_split.comes_before)
better = callable_from_python(found_split.better)

CUTS = st.builds(
    Cut,
    feature=st.integers(0, 2),
    position=st.integers(0, 3),
    polarity=st.sampled_from([-1, 1]),
    missing=st.sampled_from([-1, 1]),
    score=st.integers(0, 2),
    after=st.none() | st.integers(0, 3),
)
"""Splits of few different values, so that they often tie."""


def as_found(cut: Cut) -> Found:
    """A split as the kernels take it."""
    after = STUMP if cut.after is None else cut.after
    return Found(cut.agreement, cut.feature, after, cut.position, cut.polarity, cut.missing)


@settings(max_examples=2000)
@given(CUTS, CUTS)
def test_kernels_compare_splits_as_cuts_compare(one, other):
    assert comes_before(as_found(one), as_found(other)) == (other < one)
    assert comes_before(as_found(other), as_found(one)) == (one < other)
    best = as_cut(better(as_found(one), as_found(other)))
    assert best.rank == max(one, other).rank


def test_kernels_compare_large_splits_as_cuts_compare():
    random = np.random.default_rng(0)
    drawn = random.choice([0, 1, 2**31, 2**40], size=(4000, 4)).tolist()
    cuts = [Cut(f, p, 1, 1, a, None if q == 1 else q) for f, p, a, q in drawn]
    for one, other in zip(cuts[::2], cuts[1::2], strict=True):
        assert comes_before(as_found(one), as_found(other)) == (other < one)


@given(CUTS)
def test_every_split_comes_before_none(cut):
    assert comes_before(as_found(cut), NOTHING)
    assert not comes_before(NOTHING, as_found(cut))
    assert as_cut(NOTHING) == NO_CUT
    assert as_cut(as_found(cut)) == cut
