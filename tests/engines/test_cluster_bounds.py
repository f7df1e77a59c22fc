"""What a search through shards remembers of bins holds: no cut inside one is better than its bound.

As in test_cpu_bounds, bounds are compared with all cuts, and what is remembered of shares with the
shares of the integers. Here the sums over bins are added up from shards. Where they are estimates,
these are compared with the sums.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from trainers import start

pytest.importorskip("numba")

from all_cuts import check_shares, cuts_of_feature
from rounds import KINDS, Case, signs
from spread_tables import Spread, SpreadTable

from gpustump.engines.cluster import state, sums_source
from gpustump.engines.cluster.questions import Changes, Ranges, narrowed
from gpustump.engines.contract import Cut, Step, split_at
from gpustump.engines.cpu.histogram.estimates import add_rounded, round_to_fit
from gpustump.engines.cpu.split import split_search
from gpustump.engines.cpu.split.search import BestSplit, Edges
from gpustump.engines.cpu.split.slices import Slices
from gpustump.learners.split import Split


class Watched:
    """A run on three shards; `best_cut` compares bounds with all cuts.

    It looks into all bins at first, and later into some that need no look.
    """

    def __init__(self, case: Case, seed: int, **how: Any) -> None:
        self.case, self.random = case, np.random.default_rng(seed)
        self.search = case.votes_of_run().search("stump")
        self.table = SpreadTable(case.X, case.rows, Spread(("kernels",) * 3, **how))
        self.run = start(self.table, case.y, case.weights, self.search)
        self.share_looked_into = 1.0
        self.n_compared = 0
        self._seen: list[tuple[Edges, np.ndarray]] = []

    def best_cut(self) -> Cut:
        """The run's best cut."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(split_search, "BestSplit", self._best_split)
            found = self.run.best_cut()
        planes = self._planes()
        for edges, bounds in self._seen:
            for feature in range(self.case.X.shape[1]):
                self._compare(feature, planes, edges, bounds)
        self._seen.clear()
        self.share_looked_into = 0.1
        return found

    def _best_split(self, *about: Any) -> BestSplit:
        """In place of `BestSplit`."""
        watched = self

        class Watching(BestSplit):
            def search(self, edges: Edges, learn: Any) -> None:
                self.edges = edges
                super().search(edges, learn)

            def _evaluated(self, slices: Slices, outside: Any) -> np.ndarray:
                bounds = super()._evaluated(slices, outside)
                if slices is self.edges.slices:
                    watched._seen.append((self.edges, bounds))
                return bounds

            def _promising_slots(
                self, slots: np.ndarray, bounds: np.ndarray, edges: Edges
            ) -> np.ndarray:
                if watched.share_looked_into == 1.0:
                    closed = np.flatnonzero(edges.layout.has_inner_split) if len(slots) else slots
                    watched.share_looked_into = 0.1
                    return closed
                needed = super()._promising_slots(slots, bounds, edges)
                others = slots[watched.random.random(len(slots)) < watched.share_looked_into]
                return np.union1d(needed, others)

        return Watching(*about)

    def _planes(self) -> np.ndarray:
        """The integers of all samples, in the planes of `all_cuts`."""
        found: list[np.ndarray] = []
        for shard in self.run.state._shards._shards:
            first, second = shard._rows.terms
            planes = [[np.maximum(own, 0), np.maximum(-own, 0)] for own in first]
            for own, more in zip(planes, second, strict=False):
                own += [np.where(own[0] > 0, more, 0), np.where(own[0] > 0, 0, more)]
            found.append(np.concatenate(planes))
        planes = np.concatenate(found, axis=1)
        in_order = np.empty_like(planes)
        in_order[:, self.run._order] = planes
        return in_order

    def _compare(self, feature: int, planes: np.ndarray, edges: Edges, bounds: np.ndarray) -> None:
        layout = edges.layout
        own, scores, is_cut, _ = cuts_of_feature(self.case.X[:, feature], planes, self.search)
        for slot in range(*layout.slots(feature).indices(len(bounds))):
            start, end = layout.offset[slot], layout.offset[slot + 1]
            cuts = np.flatnonzero(is_cut[start : end - 1])
            assert bool(layout.has_inner_split[slot]) == (len(cuts) > 0)
            if len(cuts):
                self.n_compared += 1
                assert scores[start:end][cuts].max() <= bounds[slot]
                if len(edges.slices.skew):
                    check_shares(own[:, start:end], cuts, edges.slices.skew[:, slot], self.search)


def drawn_case(seed: int) -> Case:
    """Few samples of one label or the other in some bins, weights that are far apart, any votes."""
    random = np.random.default_rng(seed)
    x = random.normal(size=300)
    X = np.stack([x, np.round(2 * x), random.normal(size=300), x > 1.5], axis=1)
    X[random.random(300) < 0.1, 2] = np.nan
    y = signs(np.sin(5 * x) + x * random.choice([0.0, 2.0]), random, noise=0.7)
    weights = 10.0 ** random.uniform(-2, 2, size=300)
    weights[y > 0] *= 10.0 ** random.uniform(-1, 1)
    rate = float(random.choice([0.05, 0.3, 1.0, 5.0]))
    return Case.of(X.astype(np.float32), y, weights, learning_rate=rate)


@pytest.mark.parametrize("kind", KINDS)
def test_no_cut_inside_a_bin_is_better_than_its_bound(kind):
    for seed in range(4):
        watched = Watched(drawn_case(seed).voting(kind, l2=float(seed)), seed, max_cuts=5)
        votes = watched.case.votes_of_run()
        for _ in range(12):
            watched.best_cut()
            taken = votes.found(watched.table, watched.run)
            if isinstance(taken, str) or votes.is_perfect(taken):
                break
            watched.run.advance(votes.change(taken).step)
        assert watched.n_compared > 50


def test_shares_hold_where_few_of_the_lighter_label_gain_what_the_others_lose(monkeypatch):
    """Positive samples weigh 20 times as much in the bin, and are of the majority."""
    monkeypatch.setattr(sums_source, "_LISTED", 10_000)  # then shares are known to the last sample
    n, is_minority = 2000, np.zeros(4000, dtype=bool)
    is_minority[[*range(1801, n, 2), *range(n, 4000, 20)]] = True
    k = np.arange(4000)
    X = np.stack([k, is_minority], axis=1).astype(np.float32)
    y = np.where(k < n, np.where(k % 2 > 0, -1.0, 1.0), np.where(is_minority, 1.0, -1.0))
    weights = np.where(k < n, 1.0, 100.0)
    case = Case.of(X, y, weights, votes="newton")
    watched = Watched(case, 0, max_cuts=3)
    steep = ((0.05, 9.0),)  # light and heavy: factors of the labels -1 and +1
    watched.run.advance(Step(Split(0, n - 0.5), ((0.0,),) * 3, (steep, ((1.0, 1.0),), steep)))
    cut = watched.best_cut()
    assert cut.feature == 1
    majority, rest = ((np.exp(-0.15), np.exp(0.15)),), ((2.35, 1 / 2.35),)
    split = split_at(watched.table, cut)
    watched.run.advance(
        Step(split, ((-0.075,), (0.4,), (0.0,)), (majority, rest, majority), cut=cut)
    )
    watched.best_cut()
    assert watched.n_compared > 1


@pytest.mark.parametrize("kind", ["real", "newton", "shared discrete", "shared real"])
@pytest.mark.parametrize("kinds", [("kernels",) * 2, ("arrays", "kernels")], ids=str)
def test_sums_that_follow_steps_are_off_by_no_more_than_they_say(kind, kinds, monkeypatch):
    monkeypatch.setattr(state, "_LEAST_CODES", 0)
    monkeypatch.setattr(state, "_LARGEST_MINORITY", 1.0)
    n_estimated = 0
    for seed in range(3):
        case = drawn_case(seed).voting(kind, l2=float(seed))
        votes = case.votes_of_run()
        table = SpreadTable(case.X, case.rows, Spread(kinds, max_cuts=5))
        run = start(table, case.y, case.weights, votes.search("stump"))
        for _ in range(12):
            taken = votes.found(table, run)
            if isinstance(taken, str) or votes.is_perfect(taken):
                break
            run.advance(votes.change(taken).step)
            estimated, exact = run.state._bins, exact_sums(run.state)
            assert (np.abs(estimated.sums - exact) <= estimated.off).all()
            if not estimated.is_exact:
                n_estimated += 1
                assert np.median(estimated.off) < 0.1 * np.median(exact[exact > 0])
            else:
                assert not estimated.off.any()
    assert n_estimated > 10


def exact_sums(run: state.ClusterState) -> np.ndarray:
    """The sums over all bins, added up anew by all shards."""
    features = np.arange(run._table.n_features)
    nothing = Ranges(*[np.empty(0, dtype=np.int64)] * 5)
    sums = sum(own for own, _ in run._shards.ask("look", features, nothing))
    return np.take(sums, run._table.bins.kept, axis=1)


@pytest.mark.parametrize("seed", range(20))
def test_changes_in_four_bytes_are_off_by_half_a_unit_at_most(seed):
    random = np.random.default_rng(seed)
    n_slots = int(random.integers(1, 40))
    first = np.unique(np.append(0, random.integers(0, n_slots, size=3)))
    changes = random.normal(size=(4, n_slots)) * 2.0 ** random.integers(0, 60, size=(4, 1))
    changes = changes.astype(np.int64)
    changes[0, 0] = 2 ** int(random.integers(29, 62)) - 1
    feature = np.searchsorted(first, np.arange(n_slots), side="right") - 1
    in_kernels = Changes(
        np.empty(changes.shape, dtype=np.int32), np.empty((4, len(first)), dtype=np.uint8)
    )
    round_to_fit(changes, first, *in_kernels)
    for found in (narrowed(changes, first), in_kernels):
        sums, off = np.zeros_like(changes), np.zeros(changes.shape)
        add_rounded(*found, np.arange(n_slots), feature, sums, off)
        assert (np.abs(sums - changes) <= off).all()
        most = np.maximum.reduceat(np.abs(changes), first, axis=1)[:, feature]
        assert (off <= most * 2.0**-29).all()
