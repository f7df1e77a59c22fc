"""The coded engine's bounds hold: no cut inside a bin is better than its bound says.

A bound that is too low loses the best cut, but only on data where that cut lies in this bin. So the
bounds themselves are compared with all cuts, by the scores that `engines.worth` defines: those of a
run's bins in every round, with all that is remembered of them, and those of single units whose
integers are small enough for rounding to matter. What is remembered of shares is compared with the
shares of the integers, and estimated sums with the sums.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from trainers import start

pytest.importorskip("numba")

from all_cuts import check_shares, cuts_of_feature, limit_of_round, scores_of_cuts
from hypothesis import given, settings
from hypothesis import strategies as st
from rounds import KINDS, Case, hypothesis_of, signs

from gpustump.engines.contract import Search, Step, Totals, discrete_step
from gpustump.engines.cpu import coded
from gpustump.engines.cpu.histogram import row_sums
from gpustump.engines.cpu.histogram.estimates import Move, move_slots
from gpustump.engines.cpu.split import search as search_of_bins
from gpustump.engines.cpu.split import split_search
from gpustump.engines.cpu.split.search import BestSplit, Edges, Evaluator
from gpustump.engines.cpu.split.skew import Expected, Skew
from gpustump.engines.cpu.split.slices import EXACT, UNKNOWN, Outside, Slices
from gpustump.engines.cpu.table import codes
from gpustump.engines.cpu.table.bin_layout import BinLayout
from gpustump.engines.monotone import smoothing_of
from gpustump.engines.movement import movement_of
from gpustump.engines.reference import table as reference_table
from gpustump.engines.threads import Team
from gpustump.learners.split import Split

SEEDS = st.integers(0, 10**9)


def planes_of(run: Any) -> np.ndarray:
    """The integers of each sample in a run's round, in the planes of `Slices`."""
    first, second = run._loss.terms
    found = [[np.maximum(own, 0), np.maximum(-own, 0)] for own in first]
    for own, more in zip(found, second, strict=False):
        own += [np.where(own[0] > 0, more, 0), np.where(own[0] > 0, 0, more)]
    return np.concatenate(found)


def as_in_bins(planes: np.ndarray, search: Search) -> np.ndarray:
    """Integers of samples in the planes that sums over bins have; see `amount_sums`."""
    if search.quantity not in ("poisson", "gamma"):
        return planes
    first, second = planes[0] - planes[1], planes[2] + planes[3]
    assert not ((first + second) & 1).any()
    return np.stack([(second + first) >> 1, (second - first) >> 1] * 2)


class Watched:
    """A run whose bounds are compared with all cuts inside of each bin.

    It looks into some bins that need no look, so that what it remembers of them grows old.
    """

    def __init__(self, case: Case, max_cuts: int, seed: int) -> None:
        self.case, self.search = case, case.votes_of_run().search("stump")
        self.table = codes.prepare(
            case.X, None, Team(1), room=codes.Room(patience=0), max_cuts=max_cuts
        )
        self.run = start(self.table, case.y, case.weights, self.search)
        self.random = np.random.default_rng(seed)
        self.n_compared, self.n_estimated = 0, 0
        self._bounds: list[tuple[Edges, np.ndarray, np.ndarray]] = []
        self._units: list[tuple[Slices, np.ndarray]] = []

    def best_split(self, *about: Any) -> BestSplit:
        """In place of `BestSplit`."""
        watched = self

        class Watching(BestSplit):
            estimates = False

            def search(self, edges: Edges, learn: Any) -> None:
                self.edges, were_estimates = edges, self.estimates
                self.estimates = False
                super().search(edges, learn)
                self.estimates = were_estimates

            def search_estimates(self, edges: Edges, renewed: Any, learn: Any) -> None:
                edge = np.full(edges.slices.sums.shape[1], self._evaluator.nothing)
                edge = edge.astype(self._evaluator.dtype)
                about = (edges.slices, edges.outside, self._team)
                _, bounds = self._evaluator.evaluate(*about, edge=edge)
                sums, off = edges.slices.sums.copy(), edges.slices.off.copy()
                slices = edges.slices._replace(sums=sums, off=off)  # as they are now
                watched._bounds.append((edges._replace(slices=slices), bounds, edge))
                self.estimates = True
                super().search_estimates(edges, renewed, learn)

            def _evaluated(self, slices: Slices, ground: Outside) -> np.ndarray:
                bounds = super()._evaluated(slices, ground)
                if slices is self.edges.slices:
                    watched._bounds.append((self.edges, bounds, bounds[:0]))
                return bounds

            def _bounds(self, slices: Slices, ground: Outside) -> np.ndarray:
                bounds = super()._bounds(slices, ground)
                watched._units.append((slices, bounds))
                return bounds

            def _may_win(self, bounds: np.ndarray) -> np.ndarray:
                needed = super()._may_win(bounds)
                others = watched.random.random(len(bounds)) < (0.05 if self.estimates else 1.0)
                return needed | (others & (bounds > self._evaluator.nothing))

            def _promising_slots(
                self, slots: np.ndarray, bounds: np.ndarray, edges: Edges
            ) -> np.ndarray:
                needed = super()._promising_slots(slots, bounds, edges)
                others = slots[watched.random.random(len(slots)) < 0.1]
                return np.union1d(needed, others)

        return Watching(*about)

    def best_cut(self) -> Any:
        """The run's best cut; checks the bounds that it was found with."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(split_search, "BestSplit", self.best_split)
            found = self.run.best_cut()
        planes = planes_of(self.run)
        for about in self._bounds:
            for feature in about[0].slices.feature.tolist():
                self._compare(feature, planes, *about)
        for slices, bounds in self._units:
            self._compare_units(planes, slices, bounds)
        self._bounds.clear()
        self._units.clear()
        return found

    def _in_order(self, feature: int, planes: np.ndarray) -> tuple[np.ndarray, ...]:
        limit = limit_of_round(self.search, self.run.totals)
        own = None if limit is None else limit.of_features(slice(feature, feature + 1))
        return cuts_of_feature(self.case.X[:, feature], planes, self.search, own)

    def _compare(
        self,
        feature: int,
        planes: np.ndarray,
        edges: Edges,
        bounds: np.ndarray,
        edge: np.ndarray,
    ) -> None:
        layout = self.table.layout
        own, scores, is_cut, missing = self._in_order(feature, planes)
        slots = layout.slots(feature)
        if len(edges.slices.off):
            self.n_estimated += 1
            check_sums(as_in_bins(missing, self.search), edges, slots.stop, self.search)
        for slot in range(*slots.indices(len(bounds))):
            start, end = layout.offset[slot], layout.offset[slot + 1]
            cuts = np.flatnonzero(is_cut[start : end - 1])
            assert bool(layout.has_inner_split[slot]) == (len(cuts) > 0)
            if len(edges.slices.off):
                in_bin = as_in_bins(own[:, start:end], self.search)
                check_sums(in_bin.sum(axis=1), edges, slot, self.search)
                if end < own.shape[1]:
                    assert scores[end - 1] <= edge[slot] <= bounds[slot]
            if len(cuts):
                self.n_compared += 1
                assert scores[start:end][cuts].max() <= bounds[slot]
                if len(edges.slices.spread):
                    check_spread(own[:, start:end], cuts, edges.slices.spread[slot])
                if len(edges.slices.skew):
                    in_bin = as_in_bins(own[:, start:end], self.search)
                    check_shares(in_bin, cuts, edges.slices.skew[:, slot], self.search)

    def _compare_units(self, planes: np.ndarray, slices: Slices, bounds: np.ndarray) -> None:
        """Of parts and samples in a search by estimates: no cut inside or behind one is better."""
        for feature, first, n_units in zip(*slices[:3], strict=True):
            own, scores, is_cut, _ = self._in_order(feature, planes)
            for u in range(first, first + n_units):
                start = slices.last[u - 1] + 1 if u > first else slices.last[u]
                cuts = np.arange(start, min(slices.last[u] + 1, own.shape[1] - 1))
                cuts = cuts[is_cut[cuts]]
                if len(cuts):
                    self.n_compared += 1
                    assert scores[cuts].max() <= bounds[u]


def check_spread(inside: np.ndarray, cuts: np.ndarray, spread: float) -> None:
    """At no cut the sum of residuals is further from the line between the edges than is known."""
    first = np.cumsum((inside[0] - inside[1]).astype(object))
    second = np.cumsum((inside[2] + inside[3]).astype(object))
    for cut in cuts.tolist():
        apart = Fraction(first[cut]) - Fraction(int(first[-1]) * int(second[cut]), int(second[-1]))
        assert abs(apart) <= spread


def check_sums(sums: np.ndarray, edges: Edges, slot: int, search: Search) -> None:
    """No estimate is off by more than is said."""
    estimates, off = edges.slices.sums[:, slot], edges.slices.off[:, slot]
    gaps = [int(a) - int(b) for a, b in zip(sums, estimates, strict=True)]
    if search.quantity == "squared":  # see `residual_sums`
        p, n, second, other = gaps
        assert abs(p - n) <= off[0]
        assert second + other == 0
    elif search.votes == "newton" and search.n_outputs > 1:  # see `row_sums`
        for k in range(0, len(sums), 4):
            (p, n, *seconds), by = gaps[k : k + 4], off[k : k + 4].tolist()
            assert p <= 0
            assert n <= by[0]
            assert abs(p - n) <= by[0]
            assert abs(sum(seconds)) <= by[2]
    else:
        assert all(abs(gap) <= by for gap, by in zip(gaps, off.tolist(), strict=True))


def hard_case(seed: int, how: str) -> tuple[Case, int]:
    """Features that copy and mirror each other in few bins, and weights of some kind."""
    random = np.random.default_rng(seed)
    n_samples, max_cuts = int(random.integers(60, 500)), int(random.integers(2, 9))
    x = random.normal(size=n_samples)
    shaken = x + random.normal(size=n_samples) * random.choice([0.0, 0.1, 1.0])
    X = np.stack([x, -shaken, np.round(2 * shaken), random.normal(size=n_samples)], axis=1)
    X[random.random(n_samples) < 0.1, 3] = np.nan
    y = signs(np.sin(7 * x) + x * random.choice([0.0, 0.5]), random, noise=0.7)
    weights = {
        "equal weights": np.ones(n_samples),
        "any weights": 10.0 ** random.uniform(-300, 300, size=n_samples),
        "a heavy sample": np.where(np.arange(n_samples) == n_samples // 2, 1e18, 1.0),
    }[how]
    rate = float(random.choice([0.05, 0.3, 1.0, 5.0, 100.0]))
    return Case.of(X.astype(np.float32), y, weights, learning_rate=rate), max_cuts


follows_more = pytest.mark.usefixtures("following_more")


@pytest.fixture
def following_more(monkeypatch):
    """Sums are estimates more often than where that saves time."""
    monkeypatch.setattr(
        coded, "is_worth_following", lambda counts, _: counts.max() > counts.sum() / 2
    )
    monkeypatch.setattr(row_sums, "_FEW", 1e9)


@follows_more
@pytest.mark.parametrize("how", ["equal weights", "any weights", "a heavy sample"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_cut_inside_a_bin_is_better_than_its_bound(kind, how):
    n_compared, n_estimated = 0, 0
    for seed in range(3):
        case, max_cuts = hard_case(seed, how)
        watched = Watched(case.voting(kind, l2=float(seed)), max_cuts, seed)
        boosted(watched, n_rounds=16)
        n_compared += watched.n_compared
        n_estimated += watched.n_estimated
    assert n_compared > 500
    stays_exact = kind == "discrete" or (kind == "squared" and how == "equal weights")
    if not stays_exact and how != "a heavy sample":
        assert n_estimated > 5


@follows_more
@pytest.mark.parametrize("how", ["equal weights", "any weights", "a heavy sample"])
@pytest.mark.parametrize("kind", ["discrete", "real", "newton", "squared", "poisson"])
def test_no_allowed_cut_inside_a_bin_is_better_than_its_bound(kind, how):
    """The first two features mirror each other: what one may do, the other may not."""
    n_compared, n_estimated = 0, 0
    for seed, directions in enumerate([(1, 1, 0), (-1, 1, -1, 1), (0, -1, 1)]):
        case, max_cuts = hard_case(seed, how)
        case = case.voting(kind, l2=float(seed)).constrained(*directions)
        watched = Watched(case, max_cuts, seed)
        boosted(watched, n_rounds=16)
        n_compared += watched.n_compared
        n_estimated += watched.n_estimated
    assert n_compared > 500
    if kind not in ("discrete", "squared") and how == "equal weights":
        assert n_estimated > 5


def boosted(watched: Watched, n_rounds: int) -> None:
    """Boost."""
    run, votes = watched.run, watched.case.votes_of_run()
    for _ in range(n_rounds):
        watched.best_cut()
        watched.best_cut()  # under the very integers that it has just looked at
        taken = votes.found(watched.table, run)
        if isinstance(taken, str) or votes.is_perfect(taken):
            break
        run.advance(votes.change(taken).step)


@pytest.mark.parametrize("kind", ["real", "newton", "poisson", "shared discrete", "shared real"])
def test_estimates_hold_round_after_round_without_being_added_up_anew(kind):
    for seed in range(2):
        case, max_cuts = hard_case(seed, "equal weights")
        weights = 10.0 ** np.random.default_rng(seed).uniform(-3, 3, size=len(case.y))
        case = Case.of(case.X, case.y, weights, learning_rate=0.1)
        watched = Watched(case.voting(kind, l2=1.0), max_cuts, seed)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(coded, "is_worth_following", lambda *about: True)
            boosted(watched, n_rounds=40)
        assert watched.n_estimated > 50


def test_discrete_bounds_hold_where_wrong_samples_become_lighter():
    for seed in range(3):
        watched = Watched(*hard_case(seed, "equal weights"), seed)
        for _ in range(8):
            cut = watched.best_cut()
            found = hypothesis_of(watched.search, watched.table, cut, watched.run.totals)
            watched.run.advance(discrete_step(found, 0.0, 2.0**-6, 0, cut))
        assert watched.n_compared > 50


SEARCHES = {
    "signs": Search(),
    "rising signs": Search(monotone=(1,)),
    "falling signs": Search(monotone=(-1,)),
    "discrete": Search("stump", "discrete", 3),
    "real": Search("stump", "real", 2),
    "newton": Search("stump", "newton", 2, l2=0.5),
    "newton without l2": Search("stump", "newton", 1),
    "rising real": Search("stump", "real", monotone=(1,)),
    "falling newton": Search("stump", "newton", l2=0.5, monotone=(-1,)),
    "rising newton without l2": Search("stump", "newton", monotone=(1,)),
}


@pytest.mark.parametrize("name", SEARCHES)
@settings(max_examples=400)
@given(seed=SEEDS)
def test_no_cut_inside_a_unit_of_small_integers_is_better_than_its_bound(name, seed):
    search, random = SEARCHES[name], np.random.default_rng(seed)
    planes = drawn_planes(random, search)
    stride = 4 if search.votes == "newton" else 2
    outside = random.integers(0, 40, size=(len(planes), 3))
    outside[2::stride] += outside[::stride] if stride == 4 else 0
    left = np.cumsum(planes, axis=1)[:, :-1]
    ahead = []
    for k in range(search.n_outputs):
        lead = left[stride * k] / planes[stride * k].sum()
        lead = lead - left[stride * k + 1] / planes[stride * k + 1].sum()
        ahead += [max(0.0, lead.max()), max(0.0, (-lead).max())]
    total = planes.sum(axis=1, keepdims=True)
    one = np.asarray([0])
    slices = Slices(
        one, one, one + 1, total, EXACT, np.asarray(ahead)[:, np.newaxis],
        np.asarray([planes.shape[1] - 1]), np.ones(1, np.uint8),
    )  # fmt: skip
    before, behind, missing = (np.ascontiguousarray(outside[:, k : k + 1]) for k in range(3))
    ground = Outside(before, before + total + behind, missing)
    weight, n_samples = int(planes.sum() + outside.sum()), int(random.integers(1, 20))
    evaluator = Evaluator.of(search).smoothed(smoothing_of(weight, n_samples))
    _, bounds = evaluator.evaluate(slices, ground, Team(1))
    limit = limit_of_round(search, Totals(0, weight, 0, weight, n_samples))
    assert scores_of_cuts(planes, outside, search, limit).max() <= bounds[0]


@pytest.mark.parametrize("name", [name for name in SEARCHES if "signs" not in name])
@settings(max_examples=400)
@given(seed=SEEDS)
def test_no_cut_in_a_unit_is_better_than_its_bound_if_sums_are_estimates(name, seed):
    """Nothing is known of the shares, and each sum is off by as much as it may be, or less."""
    search, random = SEARCHES[name], np.random.default_rng(seed)
    planes = drawn_planes(random, search)
    outside = random.integers(0, 40, size=(len(planes), 3))
    off = random.integers(0, 12, size=(len(planes), 4))
    # A part of a bin is exact; a bin is off at least by what rounding makes of each sample.
    off[:, 3] = 0 if random.random() < 0.5 else off[:, 3] + 4 * planes.shape[1]
    shape = off.shape if random.random() < 0.5 else ()  # or all in the same direction
    errors = np.rint(off * random.choice([-1.0, 0.0, 0.5, 1.0], size=shape)).astype(np.int64)
    total = planes.sum(axis=1, keepdims=True)
    before, behind, missing, inside = np.split(
        np.concatenate([outside, total], axis=1) + errors, 4, axis=1
    )
    before_off, behind_off, missing_off, inside_off = np.split(off.astype(float), 4, axis=1)
    one = np.asarray([0])
    slices = Slices(
        one, one, one + 1, inside.copy(), inside_off.copy(), UNKNOWN,
        np.asarray([planes.shape[1] - 1]), np.ones(1, np.uint8),
    )  # fmt: skip
    sums = (before, before + inside + behind, missing, before_off, behind_off, missing_off)
    ground = Outside(*map(np.ascontiguousarray, sums))
    weight, n_samples = int(planes.sum() + outside.sum()), int(random.integers(1, 20))
    evaluator = Evaluator.of(search).smoothed(smoothing_of(weight, n_samples))
    limit = limit_of_round(search, Totals(0, weight, 0, weight, n_samples))
    edge = np.zeros(1, dtype=evaluator.dtype)
    _, bounds = evaluator.evaluate(slices, ground, Team(1), edge=edge)
    assert scores_of_cuts(planes, outside, search, limit).max() <= bounds[0]
    whole = np.concatenate([total, np.zeros_like(total)], axis=1)
    assert scores_of_cuts(whole, outside, search, limit)[0] <= edge[0] <= bounds[0]


@pytest.mark.parametrize("name", ["discrete", "real", "newton", "newton without l2"])
@settings(max_examples=400)
@given(seed=SEEDS)
def test_no_cut_between_units_is_better_than_its_bound_if_sums_are_estimates(name, seed):
    """Units of a sample each. All sums of a plane are off in one direction, by as much as they may
    be, so their errors add up on both sides of a cut. Often both labels' first sums are off in
    opposite directions, and second sums are too large: then the true score is higher."""
    search, random = SEARCHES[name], np.random.default_rng(seed)
    planes = 50 * drawn_planes(random, search)
    n_planes, n_units = planes.shape
    outside = random.integers(0, 40, size=(n_planes, 3))
    off = random.integers(0, 40, size=(n_planes, n_units + 3))
    way = random.choice([-1, 1], size=n_planes)
    if random.random() < 0.5 and search.votes == "newton":
        way = np.tile([*random.permutation([-1, 1]), 1, 1], search.n_outputs)
    errors = off * way[:, np.newaxis]
    before, behind, missing = np.split(outside + errors[:, :3], 3, axis=1)
    before_off, behind_off, missing_off = np.split(off[:, :3].astype(float), 3, axis=1)
    inside = np.ascontiguousarray(planes + errors[:, 3:])
    one, is_open = np.asarray([0]), np.zeros(n_units, np.uint8)
    slices = Slices(
        one, one, np.asarray([n_units]), inside, np.ascontiguousarray(off[:, 3:].astype(float)),
        UNKNOWN, np.arange(n_units), is_open,
    )  # fmt: skip
    present = before + inside.sum(axis=1, keepdims=True) + behind
    sums = (before, present, missing, before_off, behind_off, missing_off)
    ground = Outside(*map(np.ascontiguousarray, sums))
    evaluator = Evaluator.of(search)
    edge = np.zeros(n_units, dtype=evaluator.dtype)
    _, bounds = evaluator.evaluate(slices, ground, Team(1), edge=edge)
    assert (scores_of_cuts(planes, outside, search, None) <= edge[:-1]).all()
    assert (edge <= bounds).all()


@given(seed=SEEDS)
def test_sums_around_units_and_their_errors_are_those_of_all_units_beside_them(seed):
    random = np.random.default_rng(seed)
    n_units = random.integers(1, 12, size=random.integers(1, 4))
    first, n = np.cumsum(n_units) - n_units, int(n_units.sum())
    sums, off = random.integers(0, 9, size=(2, n)), random.integers(0, 9, size=(2, n)) / 4
    numbers, nothing = np.arange(len(first)), np.zeros(n, np.int64)
    slices = Slices(
        numbers, first, n_units, sums, off, UNKNOWN, nothing,
        nothing.astype(np.uint8),
    )  # fmt: skip
    around = random.integers(0, 9, size=(6, 2, len(first)))
    ground = Outside(*around[:3], *around[3:].astype(float))
    units = np.flatnonzero(random.random(n) < random.choice([0.1, 0.5, 1.0]))
    stretches, found = search_of_bins._around(slices, ground, units)
    for k, unit in enumerate(units.tolist()):
        t = int(np.searchsorted(first, unit, side="right")) - 1
        low, high = first[t], first[t] + n_units[t]
        assert stretches[k] == t
        assert (found.left[:, k] == ground.left[:, t] + sums[:, low:unit].sum(axis=1)).all()
        left_off = ground.left_off[:, t] + off[:, low:unit].sum(axis=1)
        right_off = ground.right_off[:, t] + off[:, unit + 1 : high].sum(axis=1)
        assert (found.left_off[:, k] == left_off).all()  # exact: quarters
        assert (found.right_off[:, k] == right_off).all()


def drawn_planes(random: np.random.Generator, search: Search) -> np.ndarray:
    """The small integers of a few samples, both labels in every output."""
    n_samples = int(random.integers(2, 9))
    sizes = random.integers(1, 4, size=(search.n_outputs, n_samples))
    is_positive = random.random(sizes.shape) < 0.5
    at = random.integers(n_samples)
    is_positive[:, at], is_positive[:, at - 1] = True, False
    planes = [np.where(is_positive, sizes, 0), np.where(is_positive, 0, sizes)]
    if search.votes == "newton":
        second = random.integers(1, sizes + 1)
        planes += [np.where(is_positive, second, 0), np.where(is_positive, 0, second)]
    return np.stack(planes, axis=1).reshape(-1, n_samples)


def one_bin(n_samples: int) -> BinLayout:
    """A feature with one bin, and nothing missing."""
    offset, last = np.asarray([0, n_samples]), np.asarray([n_samples - 1, -1])
    return BinLayout(np.asarray([0]), np.asarray([1]), offset, last, np.asarray([1, 0], np.uint8))


def as_units(planes: np.ndarray, n_units: int) -> Slices:
    """One bin of samples as units of several samples each."""
    ends = np.linspace(0, planes.shape[1], n_units + 1).astype(int)
    sums = np.add.reduceat(planes, ends[:-1], axis=1)
    one = np.asarray([0])
    return Slices(
        one, one, np.asarray([n_units]), sums, EXACT, UNKNOWN, ends[1:] - 1,
        (np.diff(ends) > 1).astype(np.uint8),
    )  # fmt: skip


class Shares:
    """The memory of one bin, under weights that are given."""

    def __init__(self, weights: np.ndarray, labels: np.ndarray) -> None:
        self.weights, self.labels, self.search = weights, labels, Search("stump", "real")
        self.skew = Skew(one_bin(len(labels)), self.search)
        self._expected = Expected(self._sums(), np.zeros((2, 2)))

    @property
    def planes(self) -> np.ndarray:
        whole = np.ceil(self.weights).astype(np.int64)
        return np.stack([np.where(self.labels > 0, whole, 0), np.where(self.labels > 0, 0, whole)])

    def learn(self, n_units: int) -> None:
        self.skew.learn(np.asarray([0]), as_units(self.planes, n_units))

    def follow(self, in_first: np.ndarray, factors: np.ndarray, *, tells: bool = False) -> None:
        """Multiply by factors (2, 2), of two regions and of the labels -1 and +1.

        `tells` if it is known how many samples lie in each region.
        """
        pairs = [((float(a), float(b)),) for a, b in factors]
        votes = ((0.0,), (0.0,), (0.0,))
        step = Step(Split(0, 0.0), votes, (pairs[0], pairs[1], pairs[1]))
        counts = np.asarray([np.count_nonzero(in_first), np.count_nonzero(~in_first), 0])
        sums, off = self._sums(), np.zeros((2, 2))
        move = Move.of(step, counts, [[(0, 1)]] * 3, self.search) if tells else None
        if move is not None:
            move_slots(sums, off, np.asarray([len(self.labels), 0]), move, np.zeros((2, 2)))
        self._expected = Expected(sums, off)
        self.skew.follow(step, None if move is None else counts)
        own = factors[np.where(in_first, 0, 1), (self.labels > 0).astype(int)]
        self.weights = np.maximum(self.weights * own, 2.0**-900)

    def check(self) -> float:
        sums = self._sums()
        ahead = self.skew.bounds(sums, np.zeros((2, 2)), self._expected)[:, 0]
        planes = self.planes
        check_shares(planes, np.arange(planes.shape[1] - 1), ahead, self.search)
        return float(ahead.min())

    def _sums(self) -> np.ndarray:
        return np.stack([self.planes.sum(axis=1), [0, 0]], axis=1)


@pytest.mark.parametrize("tells", [False, True])
@settings(max_examples=60)
@given(seed=SEEDS)
def test_shares_move_no_further_than_the_factors_let_them(tells, seed):
    random = np.random.default_rng(seed)
    n_samples = int(random.integers(2, 60))
    labels = np.where(np.arange(n_samples) % 2 > 0, 1, -1)
    shares = Shares(random.uniform(2.0**40, 2.0**44, size=n_samples), labels)
    shares.learn(n_samples)
    for _ in range(4):
        in_first = np.arange(n_samples) <= random.integers(n_samples)  # parted inside the bin
        factors = np.exp(random.uniform(-0.5, 0.5, size=(2, 2)))
        shares.follow(in_first, factors, tells=tells)
        if shares.check() < 1.0 and random.random() < 0.3:
            shares.learn(int(random.integers(1, n_samples + 1)))
            shares.check()


def test_shares_hardly_move_where_few_samples_gain_weight_beside_the_others():
    random = np.random.default_rng(0)
    labels = np.where(np.arange(10_000) % 2 > 0, 1, -1)
    ahead = []
    for tells in (False, True):
        shares = Shares(random.uniform(2.0**40, 2.0**44, size=len(labels)), labels)
        shares.learn(100)
        before = shares.check()
        shares.follow(
            np.arange(len(labels)) < 50, np.asarray([[1.5, 0.5], [0.9, 1.1]]), tells=tells
        )
        ahead.append(shares.check() - before)
    assert ahead[0] > 0.2  # by tanh(ln(5 / 3) / 4) + tanh(ln(2.2) / 4)
    assert ahead[1] < 0.02


def test_shares_of_two_samples_move_as_far_as_the_formula_says():
    shares = Shares(np.full(4, 2.0**40), np.asarray([1, -1, 1, -1]))
    shares.learn(4)
    shares.follow(np.arange(4) < 2, np.asarray([[0.5, 2.0], [2.0, 0.5]]))
    assert shares.check() == pytest.approx(0.5 + 0.6, abs=0.5)


@pytest.mark.parametrize("label", [1, -1])
@pytest.mark.parametrize("grows", [True, False])
def test_shares_of_small_integers_are_off_by_their_rounding(label, grows):
    """Many samples count one unit each, before and after the weights of all samples change."""
    heavy = [-label, label, -label] if grows else [-label, label]
    labels = np.append(np.full(1000, label), heavy)
    weights = np.append(np.full(1000, 1e-9), np.full(len(heavy), 40_000.0))
    shares = Shares(weights if grows else weights * 2.0**20, labels)
    shares.learn(len(labels))
    everywhere = np.ones(len(labels), dtype=bool)
    shares.follow(everywhere, np.full((2, 2), 2.0**20 if grows else 2.0**-20))
    shares.check()


EVERYWHERE = Split(0, np.inf)


def scaled_positive(factor: float) -> Step:
    """Multiplies the weights of all samples labelled +1."""
    return Step(EVERYWHERE, ((0.0,),) * 3, (((1.0, factor),),) * 3)


@pytest.mark.parametrize("looks", [True, False])
def test_what_is_known_of_shares_is_forgotten_where_weights_have_reached_the_floor(looks):
    """The smallest weight there is holds what falls below it: then shares move by any amount."""
    labels = np.tile([1, -1], 2000)
    weights = np.repeat(2.0 ** -(np.arange(2000) / 100) * 2.0**50, 2)
    shares = Shares(weights, labels)
    shares.learn(len(labels))
    everywhere = np.ones(len(labels), dtype=bool)
    for factor in (2.0**-960, 2.0**940):
        shares.follow(everywhere, np.asarray([[1.0, factor], [1.0, factor]]))
        if looks:
            shares.check()
    shares.check()


def test_under_a_softmax_roundings_count_more_as_weights_fall_whatever_sums_say():
    """Integers are off by less than a unit each: of half the weight, that is twice the share."""
    search, n_samples, fall = Search("stump", "newton", 3), 100_000, 2.0
    weight = 4000.0 * n_samples  # of each class's samples, and of the others
    planes = np.full((12, n_samples), int(2 * weight) // n_samples)
    planes[::4, ::2], planes[1::4, 1::2] = 0, 0
    skew = Skew(one_bin(n_samples), search)
    skew.learn(np.asarray([0]), as_units(planes, 100))
    sums, off = np.full((12, 2), 2**60), np.zeros((12, 2))
    before = skew.bounds(sums, off, Expected(sums, off))[:, 0].copy()
    step = Step(EVERYWHERE, ((0.0,) * 3,) * 3, (((1 / fall,) * 2, (1.0,) * 2, (1.0,) * 2),) * 3)
    skew.follow(step, None)
    grown = skew.bounds(sums, off, Expected(sums, off))[:, 0] - before
    moved = movement_of(step.factors, None, search).most.sum(axis=1)
    of_class_0 = 2 * n_samples * (fall - 1.0) * (1 / weight + 1 / weight)
    assert (grown[:2] < 1.0 - before[:2]).all()  # the note is still there
    assert (grown[:2] - moved[0] >= of_class_0).all()


def test_a_cut_is_found_where_the_floor_has_changed_the_weights():
    """Weights fall alike in all bins, so every bin is known well; then those labelled +1 are equal.

    A second feature holds cuts that are better than those at the edges of bins.
    """
    k = np.arange(16_000)
    X = np.stack([k, (k < 2000) & (k // 2 % 1000 < 100)], axis=1).astype(np.float32)
    y, weights = np.where(k % 2 > 0, 1.0, -1.0), 2.0 ** -(k // 2 % 1000 / 100)
    search = Search("stump", "real")
    cuts = []
    for table in (
        reference_table.prepare(X),
        codes.prepare(X, None, Team(1), room=codes.Room(patience=0), max_cuts=8),
    ):
        run = start(table, y, weights, search)
        run.best_cut()
        for factor in (2.0**-995, 2.0**945):
            run.advance(scaled_positive(factor))
        cuts.append(run.best_cut())
    assert cuts[0] == cuts[1]
