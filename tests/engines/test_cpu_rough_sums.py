"""Rough sums: off by no more than half a unit a sample, however large the integers are."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba")

from gpustump.engines.cpu.columns import Columns, Histograms
from gpustump.engines.cpu.rough_sums import HALF_UNITS, RoughHistograms
from gpustump.engines.cpu.terms import Terms
from gpustump.engines.threads import Team


def terms_of(random: np.random.Generator, n_samples: int, total: int) -> Terms:
    """Integers of two outputs; the first ones of an output sum to `total`, but for their signs."""
    first = np.empty((2, n_samples), dtype=np.int64)
    for own in first:
        shares = random.dirichlet(np.full(n_samples, random.choice([0.01, 1.0, 100.0])))
        own[:] = np.floor(shares * float(total)).astype(np.int64)
        own[0] += total - int(own.sum())
    second = first // random.integers(4, 50, size=first.shape)
    return Terms(first * random.choice([-1, 1], size=first.shape), second)


@pytest.mark.parametrize("team_size", [1, 3])  # by samples, and by columns
@pytest.mark.parametrize("total", [2**62 - 2**20, 2**40, 3])
def test_rough_sums_are_off_by_half_a_unit_for_each_sample_at_most(total, team_size):
    for seed in range(6):
        random = np.random.default_rng(seed)
        n_samples, n_bins = int(random.choice([10, 9000, 20_000])), int(random.choice([1, 7, 200]))
        terms = terms_of(random, n_samples, total)
        wide = random.integers(n_bins, size=(5, n_samples)).astype(np.uint16)
        columns = Columns(wide << 6, random.integers(n_bins, size=(3, n_samples)).astype(np.uint8))
        found = Histograms.empty(4, 2, columns)
        rough = RoughHistograms(columns, 2, Team(team_size))
        for _ in range(2):  # nothing is left of an earlier round
            rough.add_up(terms, lambda low, high: None, found)
        for codes, sums in ((wide, found.wide), (columns.narrow, found.narrow)):
            for plane, column in np.ndindex(4, len(codes)):
                sign = 1 if plane % 2 == 0 else -1
                is_own = np.sign(terms.first[plane // 2]) == sign
                for which, numbers in enumerate(terms):
                    size = np.where(is_own, np.abs(numbers[plane // 2]), 0)
                    exact = [int(size[codes[column] == b].sum()) for b in range(n_bins)]
                    counts = [int(is_own[codes[column] == b].sum()) for b in range(n_bins)]
                    own = sums[plane, column, which::2][:n_bins].tolist()
                    for a, b, count in zip(own, exact, counts, strict=True):
                        assert abs(a - b) <= count * HALF_UNITS[which]
