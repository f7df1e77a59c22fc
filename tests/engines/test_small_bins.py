"""Small bins of a sorted table find what a scan finds, however gradients change between rounds.

Runs change their gradients as a loss does, in steps that become small. What a search remembers of
bins must hold for any change, so here gradients change by chance: not at all, a few or all, by a
little, or beyond recognition. The tables have few samples, so that the best cut often lies where a
limit that is too narrow by one unit would hide it.
"""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba")

from hypothesis import given, settings
from hypothesis import strategies as st

from gpustump.engines.cpu.loss.terms import Terms
from gpustump.engines.cpu.split.scan import ScanSearch
from gpustump.engines.cpu.split.small_bins import BinSearch
from gpustump.engines.cpu.table import small_bins, sorted_table
from gpustump.engines.objective import Objective
from gpustump.engines.threads import Team

N_ROUNDS = 60


def table_of(random: np.random.Generator) -> np.ndarray:
    """Few samples; values that tie or do not, or are missing, or mostly equal."""
    n_samples, n_features = random.integers(20, 150), random.integers(1, 5)
    X = random.normal(size=(n_samples, n_features)).round(int(random.integers(0, 4)))
    X[random.random(X.shape) < random.choice([0.0, 0.2])] = np.nan
    flags = random.random(n_features) < 0.3
    X[:, flags] *= random.random((n_samples, flags.sum())) < 0.3
    return X


def changed(gradient: np.ndarray, largest: int, random: np.random.Generator) -> np.ndarray:
    """The next gradients, which are not 0."""
    share = random.choice([0.0, 0.02, 0.3, 1.0])
    size = random.choice([1, max(1, largest // 1000), max(1, largest // 20), largest])
    moved = random.integers(-size, size, endpoint=True, size=len(gradient))
    found = gradient + np.where(random.random(len(gradient)) < share, moved, 0)
    found = np.clip(found, -largest, largest)
    return np.where(found == 0, 1, found)


def sums_at_cuts(
    table: sorted_table.SortedTable, j: int, gradient: np.ndarray, bin_: int
) -> np.ndarray:
    """How far the sums at all cuts inside a bin are above that at its left edge."""
    columns = table.columns
    order = columns.order[j, columns.offset[j, bin_] : columns.offset[j, bin_ + 1]]
    sums = np.cumsum(gradient[order & sorted_table.SAMPLE])
    return sums[:-1][order[:-1] >= 0]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9), st.sampled_from(["discrete", "real", "newton", "constrained"]))
def test_however_gradients_change_bins_find_what_a_scan_finds(seed, votes):
    random = np.random.default_rng(seed)
    table = sorted_table.prepare(table_of(random), None, Team(1))
    most_bins, per_bin = int(random.integers(2, 12)), int(random.integers(1, 30))
    divided = small_bins.divided(table, most_bins, per_bin)
    n_samples, n_features = table.n_samples, table.n_features
    monotone = None
    if votes == "constrained":
        votes, monotone = "newton", tuple(random.choice([-1, 1], size=n_features).tolist())
    l2 = float(random.choice([0, 1, 10**6])) if votes == "newton" else 0.0
    objective = Objective.of(votes, l2=l2, monotone=monotone)
    largest = int(random.choice([3, 10**4, 2**61 // n_samples]))
    gradient = random.choice([-largest, largest], size=n_samples)
    scan = ScanSearch(table, objective)
    bins = BinSearch(divided, objective, gradient.reshape(1, -1))
    columns, memory = divided.columns, bins.memory
    for _ in range(N_ROUNDS):
        gradient = changed(gradient, largest, random)
        hessian = np.empty((0, 0), dtype=np.int64)
        if votes == "newton":
            hessian = random.integers(1, largest, endpoint=True, size=(1, n_samples))
        size = np.abs(gradient) if votes != "newton" else hessian[0]
        terms = Terms(gradient.reshape(1, -1), hessian)
        totals = np.array([[gradient.sum(), size.sum()]])
        assert bins.best_cut(terms, totals) == scan.best_cut(terms, totals)
        for j, bin_ in np.argwhere(columns.is_open):
            above = sums_at_cuts(divided, j, gradient, bin_)
            assert above.max() <= memory.above[j, bin_]
            assert -above.min() <= memory.below[j, bin_]
