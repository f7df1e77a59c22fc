"""Intervals on a device: the best of all pairs of cuts, whatever the data, and bounds that hold.

The device is the stand-in of `cuda_on_cpu`. The conformance suite compares the engine with the
reference; here it is compared with every pair of cuts, in integers, on data made to be awkward for
a search by bins. A bound that is too low loses the best pair, but only on data where an end of it
lies in that bin. So the bounds of all bins are compared with the pairs that they bound, too.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any, NamedTuple

import cuda_on_cpu
import numpy as np
import pytest
from cuda_on_cpu import Interrupted, OnCpu
from fault_counts import ALL
from hypothesis import given, settings
from hypothesis import strategies as st
from rounds import signs
from trainers import start

from gpustump.engines.contract import Cut, Resources, Search, State, discrete_step, hypothesis_at
from gpustump.engines.cuda import sorting, stump_state
from gpustump.engines.cuda import table as columns
from gpustump.engines.cuda.interval_search import IntervalSearch
from gpustump.engines.cuda.table import CudaTable

pytestmark = pytest.mark.skipif(bool(cuda_on_cpu.unusable()), reason=str(cuda_on_cpu.unusable()))

INTERVALS = Search("interval")


class Pairs(NamedTuple):
    """All stumps and intervals of a feature, in the order in which ties are broken.

    Attributes
    ----------
    score : ndarray (n_pairs,) of int64
        Their agreements.
    after : ndarray (n_pairs,) of int64
        Sorted position of the last sample before an interval; -1 for a stump.
    position : ndarray (n_pairs,) of int64
    polarity : ndarray (n_pairs,) of int64
    missing : int
        The sum of signed weights over missing values.
    """

    score: np.ndarray
    after: np.ndarray
    position: np.ndarray
    polarity: np.ndarray
    missing: int

    @classmethod
    def of(cls, x: np.ndarray, units: np.ndarray) -> Pairs:
        """Of a feature's values (n_samples,) and the signed integer weights (n_samples,)."""
        order = np.argsort(x, kind="stable")[: int((~np.isnan(x)).sum())]
        score_left, values = np.cumsum(units[order]), x[order]
        present = int(score_left[-1]) if len(order) else 0
        missing = int(units.sum()) - present
        cuts = np.flatnonzero(values[1:] != values[:-1])
        after, position = np.meshgrid(np.append(-1, cuts), cuts, indexing="ij")
        is_pair = after < position
        after, position = after[is_pair], position[is_pair]
        if present * missing < 0:  # all that is present against what is missing
            after, position = np.append(after, -1), np.append(position, len(order) - 1)
        up_to = np.append(score_left, 0)  # the last stands for position -1
        inside = up_to[position] - up_to[after]
        score = np.abs(2 * inside - present) + abs(missing)
        polarity = np.where(2 * inside >= present, 1, -1)
        first = np.lexsort((position, after))
        return cls(score[first], after[first], position[first], polarity[first], missing)


def units_of(run: Any) -> np.ndarray:
    """A run's integer weights (n_samples,), with the signs of the labels."""
    signed = run._sweep.signed
    return (np.ceil(np.abs(signed)) * np.sign(signed)).astype(np.int64)


def best_of_all(X: np.ndarray, units: np.ndarray) -> Cut:
    """The best of all pairs of cuts, single cuts and constants."""
    total = int(units.sum())
    heavier = 1 if total >= 0 else -1
    best = Cut(0, None, heavier, heavier, abs(total))
    for feature, x in enumerate(X.T):
        pairs = Pairs.of(x, units)
        if not len(pairs.score):
            continue
        at = int(np.argmax(pairs.score))
        after = None if pairs.after[at] < 0 else int(pairs.after[at])
        vote = 1 if (pairs.missing or total) >= 0 else -1
        found = (int(pairs.position[at]), int(pairs.polarity[at]), vote, int(pairs.score[at]))
        best = max(best, Cut(feature, *found, after))
    return best


def followed(table: CudaTable, run: State, cut: Cut) -> None:
    """A step that makes the samples heavier that a cut gets wrong; sums stay below 2**62."""
    halvings = int(run.totals.weight > 2**61 or cut.score % 3 == 0)
    stump = hypothesis_at(table, cut, run.totals)
    run.advance(discrete_step(stump, 0.5, 1.75 / 2**halvings, halvings, cut))


def tables(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, y and weights that are awkward in one way for each column."""
    random = np.random.default_rng(seed)
    n = int(random.integers(2, 70))
    of_ranks = random.permutation(n).astype(np.float32)
    few, gaps = random.integers(0, 4, size=n), random.random(n) < 0.3
    columns = [
        of_ranks,
        few,
        np.where(gaps, np.nan, of_ranks // 3),
        np.where(gaps, np.nan, 5.0),  # one value, or none
        np.full(n, 2.0),
        np.full(n, np.nan),
        -of_ranks,
        np.where(few == 0, np.inf, np.where(few == 1, -np.inf, -0.0 * few)),
    ]
    chosen = random.choice(len(columns), size=4)  # some of them twice
    X = np.stack([columns[k] for k in chosen], axis=1).astype(np.float32)
    y = random.choice([-1.0, 1.0], size=n)
    if random.random() < 0.5:  # long rises and falls, wherever bins end
        y = np.where(of_ranks // random.integers(1, 20) % 2 > 0, 1.0, -1.0)
    kinds = [np.ones(n), random.integers(1, 4, size=n), 10.0 ** random.uniform(-6, 6, size=n)]
    return X, y, kinds[random.integers(3)].astype(np.float64)


@settings(max_examples=150)
@given(st.integers(0, 10**9), st.sampled_from([1, 2, 3, 7, 255]), st.sampled_from([1, 2, 3]))
def test_the_best_of_all_pairs_is_found_whatever_the_data(seed, n_bins, n_threads):
    X, y, weights = tables(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorting, "MOST_BINS", n_bins)
        table = columns.prepare(X, None, OnCpu(n_threads), Resources(), INTERVALS)
    run = start(table, y, weights, INTERVALS)
    for _ in range(3):
        cut = run.best_cut()
        assert cut == best_of_all(X, units_of(run))
        if cut.position is None:
            break
        followed(table, run, cut)


def in_two_bins() -> CudaTable:
    """A table of 12 samples in bins of six."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorting, "MOST_BINS", 2)
        table = columns.prepare(np.arange(12.0)[:, np.newaxis], None, OnCpu())
    assert table.bins.n_bins.tolist() == [2]
    return table


class Seen(IntervalSearch):
    """A search that keeps its bounds, and looks into some bins that need no look.

    Attributes
    ----------
    of_bins : ndarray (n_slots,) of int64
        The bounds of the bins.
    of_edges : ndarray (n_features,) of int64
        The scores of the best pairs of edges.
    share_looked_into : float
        Of the bins in each round, beside those that need it.
    """

    share_looked_into = 0.1

    def __init__(self, *about: Any) -> None:
        super().__init__(*about)
        self._random = np.random.default_rng(len(self._bounds))
        self._device.before = self._keep

    def _keep(self, kernel: str) -> None:
        if kernel == "list_bins":
            self.of_bins, self.of_edges = self._bounds.copy(), self._edges[:, 0].copy()
            others = self._random.random(len(self._bounds)) < self.share_looked_into
            self._bounds[others & (self._table.bins.records["has_cuts"] > 0)] = 2**63 - 1


def seen_run(X: np.ndarray, y: np.ndarray, weights: np.ndarray, n_bins: int) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorting, "MOST_BINS", n_bins)
        patch.setattr(stump_state, "IntervalSearch", Seen)
        return start(columns.prepare(X, None, Interrupted(threads=1)), y, weights, INTERVALS)


@pytest.mark.parametrize(("begin", "end"), [(1, 4), (1, 5), (5, 8), (2, 9), (5, 11), (0, 10)])
def test_ends_inside_bins_and_at_their_edges_are_found(begin, end):
    """Two bins of six samples; the last of these intervals ends above all values."""
    table = in_two_bins()
    y = np.where((np.arange(12) > begin) & (np.arange(12) <= end), 1.0, -1.0)
    run = start(table, y, np.ones(12), INTERVALS)
    cut = run.best_cut()
    assert (cut.after, cut.position) == ((None, begin) if end == 11 else (begin, end))
    assert cut.agreement == run.totals.weight


def test_ends_are_found_in_bins_whose_edges_all_look_the_same():
    """Every bin holds as much of either label, but in one of them the labels do not alternate."""
    y = np.tile([-1.0, 1.0], 8 * 16)
    y[3 * 32 : 4 * 32] = np.repeat([1.0, -1.0], 16)
    X = np.arange(float(len(y)))[:, np.newaxis]
    run = seen_run(X, y, np.ones(len(y)), 8)
    cut = run.best_cut()
    assert cut == best_of_all(X, units_of(run))
    assert (cut.after, cut.position) == (0, 3 * 32 + 15)
    assert cut.agreement == run.totals.weight * 34 // len(y)
    assert run._search.of_edges[0] == 0


@pytest.mark.parametrize("after", [None, *range(10)])
def test_a_step_reaches_the_samples_of_every_interval_and_no_other(after):
    """Ends inside bins and at their edges, in one bin and in two; a mark of an old step is none."""
    table, y = in_two_bins(), np.tile([1.0, -1.0, -1.0], 4)
    run = start(table, y, np.ones(12), INTERVALS)
    for position in range(0 if after is None else after + 1, 11):
        cut = Cut(0, position, 1, 1, 0, after)
        before, stump = run.weights, hypothesis_at(table, cut, run.totals)
        run.advance(discrete_step(stump, 0.5, 2.0, 0, cut))
        first = -1 if after is None else after
        is_inside = (np.arange(12) > first) & (np.arange(12) <= position)
        is_wrong = np.where(is_inside, 1.0, -1.0) != y
        assert np.array_equal(run.weights, np.where(is_wrong, 2 * before, before)), position


def best_with_an_end_inside(pairs: Pairs, begin: int, n_inside: int) -> int:
    """The largest score of a pair, or single cut, with an end at a cut inside a bin."""
    is_inside = np.zeros(len(pairs.score), dtype=bool)
    for ends in (pairs.after, pairs.position):
        is_inside |= (ends >= begin) & (ends < begin + n_inside - 1)
    return int(pairs.score[is_inside].max())


def bins_with_bounds(X: np.ndarray, run: Any) -> Iterator[tuple[int, int]]:
    """The bound of each bin that holds cuts, and the best that it bounds."""
    units = units_of(run)
    of_features = [Pairs.of(x, units) for x in X.T]
    for bound, (begin, n_inside, feature, has_cuts) in zip(
        run._search.of_bins.tolist(), run._table.bins.records.tolist(), strict=True
    ):
        if has_cuts:
            yield bound, best_with_an_end_inside(of_features[feature], begin, n_inside)


def check_bounds() -> tuple[int, int]:
    """No pair is better than a bound of it. Returns the number of bounds, and how many are met.

    A sample of nearly all the weight has no values: the other integers are a few units each.
    """
    found = []
    for seed, n_bins, n_samples in ((0, 12, 300), (1, 3, 150), (2, 1, 60), (3, 60, 300)):
        random = np.random.default_rng(seed)
        X = random.normal(size=(n_samples, 3)).astype(np.float32)
        X[random.random(X.shape) < 0.1] = np.nan
        X[0], X[:, 1] = np.nan, np.round(X[:, 1] * 20)
        y = signs(np.abs(np.nan_to_num(X[:, 0])), random)
        weights = np.append(
            10.0 ** random.choice([17, 18, 18.3]), random.integers(1, 4, n_samples - 1)
        )
        run = seen_run(X, y, weights, n_bins)
        for _ in range(10):
            cut = run.best_cut()
            found += bins_with_bounds(X, run)
            followed(run._table, run, cut)
    for bound, best in found:
        assert bound >= best
    return len(found), sum(best == bound for bound, best in found)


def looked_into(y: list[int], n_bins: int) -> Any:
    """A run whose bins have all been looked into, since when weights have not changed.

    A sample of nearly all the weight has no value, as in `check_bounds`.
    """
    X = np.append(np.arange(float(len(y))), np.nan)[:, np.newaxis]
    run = seen_run(X, np.append(y, 1.0), np.append(np.ones(len(y)), 1e18), n_bins)
    run._search.share_looked_into = 1.0
    for _ in range(2):
        cut = run.best_cut()
        run.advance(discrete_step(hypothesis_at(run._table, cut, run.totals), 0.5, 1.0, 0, cut))
        run._search.share_looked_into = 0.0
    run.best_cut()
    return run


IN_A_BIN = (
    (3, [1, -1] * 4 + [-1, -1, 1, 1, 1, 1, 1, -1] + [-1, -1, -1, 1, -1, 1, -1, 1]),
    (1, [1, 1, 1, -1, -1, -1]),
)
"""Bins and labels: the best rise is within the second of three bins; it is from the first sample
to a cut in the only bin."""


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("n_bins", "y"), IN_A_BIN)
def test_bounds_of_bins_that_were_looked_into_are_met(n_bins, y, sign):
    run = looked_into([sign * label for label in y], n_bins)
    bounds = list(bins_with_bounds(run._table.X, run))
    assert len(bounds) == n_bins
    for bound, best in bounds:
        assert bound == best
    assert max(bounds) == bounds[n_bins // 2]


TIED = (
    (2, [1, 1, -1, 1, -1, 1, -1, -1, -1, -1, -1, -1], None, 1, 5),
    (3, [-1, -1, 1, -1, 1, 1, 1, 1, -1, -1, 1, -1], 1, 7, 3),
)
"""Bins, labels, both ends of the best, and an edge that would do as well for one of them."""


@pytest.mark.parametrize(("n_bins", "y", "after", "position", "edge"), TIED)
def test_an_end_inside_a_bin_comes_before_a_later_edge_that_is_as_good(
    n_bins, y, after, position, edge
):
    run = looked_into(y, n_bins)
    cut = run.best_cut()
    assert (cut.after, cut.position) == (after, position)
    assert run._search.of_edges[0] == cut.score
    assert max(run._search.of_bins[:n_bins]) == cut.score
    assert edge in run._table.bins.records["offset"] - 1


def test_no_pair_with_an_end_inside_a_bin_is_better_than_the_bins_bound():
    n_bounds, n_met = check_bounds()
    assert n_bounds > 1000
    assert n_met > 50


@pytest.mark.skipif(not ALL, reason="it builds other kernels, to test the test; see --all-faults")
def test_a_bound_that_is_too_low_by_one_would_be_noticed(monkeypatch):
    right = "return larger(2 * rise - present, 2 * fall + present);"

    def lowered(source: str) -> str:
        return source.replace(right, right.replace(";", " - 1;"))

    library = ctypes.CDLL(str(cuda_on_cpu.build(change=lowered)))
    monkeypatch.setattr(cuda_on_cpu, "loaded", lambda: library)
    with pytest.raises(AssertionError, match=">="):
        check_bounds()
