"""Bounds of bins hold on one machine and on a cluster: no cut inside is better than they say.

A bound that is too low loses the best cut, but only on data where that cut lies in this bin. So the
bounds themselves are compared with all cuts, by the scores that `engines.gain` defines: those of a
run's bins in every round, with all that is remembered of them, and those of single cells whose
integers are small enough for rounding to matter. What is remembered of shares is compared with the
shares of the integers, and estimated sums with the sums.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("numba")

from all_cuts import check_shares, cuts_of_feature, limit_of_round, mirrored, scores_of_cuts
from hypothesis import given, settings
from hypothesis import strategies as st
from rounds import KINDS, Case, start
from spread_tables import InOrder, Spread, SpreadTable

from gpustump import StumpBoostingRegressor
from gpustump.boosting.rounds.known_scores import in_vote_units
from gpustump.boosting.votes.votes import Taken
from gpustump.engines.cluster import state
from gpustump.engines.cluster.questions import narrowed
from gpustump.engines.contract import Step, Totals
from gpustump.engines.cpu import coded
from gpustump.engines.cpu.histogram import row_sums
from gpustump.engines.cpu.histogram.estimates import Move, move_slots
from gpustump.engines.cpu.histogram.quantile_sums import QuantileSums
from gpustump.engines.cpu.split import split_search
from gpustump.engines.cpu.split.cell_scores import NO_AGREEMENT
from gpustump.engines.cpu.split.cut_scores import KINDS as KEYS
from gpustump.engines.cpu.split.cut_scores import key_of_score, score_of
from gpustump.engines.cpu.split.part_bounds import NO_SCORE
from gpustump.engines.cpu.split.refine import BestCut, evaluating
from gpustump.engines.cpu.split.search import BestSplit, Edges, Evaluator
from gpustump.engines.cpu.split.skew import Expected, Skew, learn
from gpustump.engines.cpu.split.slices import EXACT, UNKNOWN, Outside, Slices
from gpustump.engines.cpu.table import codes
from gpustump.engines.cpu.table.bin_layout import BinLayout
from gpustump.engines.monotone import smoothing_of
from gpustump.engines.objective import Objective
from gpustump.engines.threads import Team
from gpustump.learners.split import Split

SEEDS = st.integers(0, 10**9)


def planes_of(terms: Any) -> np.ndarray:
    """The integers of each sample, in the planes of `Slices`."""
    first, second = terms
    found = [[np.maximum(own, 0), np.maximum(-own, 0)] for own in first]
    for own, more in zip(found, second, strict=False):
        own += [np.where(own[0] > 0, more, 0), np.where(own[0] > 0, 0, more)]
    return np.concatenate(found)


def as_in_bins(planes: np.ndarray, objective: Objective) -> np.ndarray:
    """Integers of samples in the planes that sums over bins have; see `amount_sums`."""
    if objective.loss not in ("poisson", "gamma"):
        return planes
    first, second = planes[0] - planes[1], planes[2] + planes[3]
    assert not ((first + second) & 1).any()
    return np.stack([(second + first) >> 1, (second - first) >> 1] * 2)


class Watched:
    """A run whose bounds are compared with all cuts inside of each bin.

    It looks into some bins that need no look, so that what it remembers of them grows old.
    """

    def __init__(self, case: Case, max_cuts: int, seed: int, where: str = "coded") -> None:
        self.case, self.objective = case, case.votes_of_run().objective("stump")
        if where == "cluster":
            self.table: Any = SpreadTable(
                case.X, case.rows, Spread(("cpu",) * 3, max_cuts=max_cuts)
            )
        else:
            self.table = codes.prepare(
                case.X, None, Team(1), room=codes.Room(patience=0), max_cuts=max_cuts
            )
        self.run = start(self.table, case.y, case.weights, self.objective)
        self.random = np.random.default_rng(seed)
        self.n_compared, self.n_estimated, self.looks_into_all = 0, 0, True
        self._bounds: list[tuple[Edges, np.ndarray, np.ndarray]] = []
        self._cells: list[tuple[Slices, np.ndarray]] = []

    def scores_of(self, keys: np.ndarray) -> np.ndarray:
        return scores_of_keys(keys, self.objective)

    def best_split(self, *about: Any) -> BestSplit:
        """In place of `BestSplit`."""
        watched = self

        class Watching(BestSplit):
            estimates = False

            def search(self, edges: Edges) -> None:
                self.edges, were_estimates = edges, self.estimates
                self.estimates = False
                super().search(edges)
                self.estimates = were_estimates

            def search_estimates(self, edges: Edges, renewed: Any) -> None:
                self.edges, self.estimates = edges, True
                super().search_estimates(edges, renewed)

            def _evaluated(self, *about: Any) -> np.ndarray:
                bounds = super()._evaluated(*about)
                slices, *_, offers, most = about[3:]
                keys, bounds, most = bounds, *map(watched.scores_of, (bounds, most))
                if most.shape[1]:
                    sums, error = slices.sums.copy(), slices.error.copy()  # as they are now
                    own = self.edges._replace(slices=slices._replace(sums=sums, error=error))
                    watched._bounds.append((own, bounds, most))
                elif not offers:
                    watched._cells.append((slices, bounds))
                elif slices is self.edges.slices:
                    watched._bounds.append((self.edges, bounds, most))
                return keys

            def _may_win(self, bounds: np.ndarray, best: BestCut) -> np.ndarray:
                share = 0.05 if self.estimates else 0.1
                if watched.looks_into_all and not self.estimates:
                    watched.looks_into_all, share = False, 1.0
                others = watched.random.random(len(bounds)) < share
                is_chosen = others & (bounds > below_all(watched.objective))
                return np.union1d(super()._may_win(bounds, best), np.flatnonzero(is_chosen))

        source, evaluator, *others = about  # Python refines bins, so that it can watch
        return Watching(source, replace(evaluator, refine=None), *others)

    def best_cut(self) -> Any:
        """The run's best cut; checks the bounds that it was found with."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(split_search, "BestSplit", self.best_split)
            found = self.run.best_cut()
        in_order = self._in_order(self._planes())
        for about in self._bounds:
            for feature in about[0].slices.feature.tolist():
                self._compare(feature, in_order[feature], *about)
        for slices, bounds in self._cells:
            self._compare_cells(in_order, slices, bounds)
        self._bounds.clear()
        self._cells.clear()
        return found

    def _planes(self) -> np.ndarray:
        """The integers of all samples, in the order of the table."""
        if not isinstance(self.run, InOrder):
            return planes_of(self.run._loss.terms)
        shards = self.run.state._shards._shards
        planes = np.concatenate([planes_of(shard._loss.terms) for shard in shards], axis=1)
        in_order = np.empty_like(planes)
        in_order[:, self.run._order] = planes
        return in_order

    def _in_order(self, planes: np.ndarray) -> list[tuple[np.ndarray, ...]]:
        """What `cuts_of_feature` says of each feature."""
        limit, found = limit_of_round(self.objective, self.run.totals), []
        for feature, x in enumerate(self.case.X.T):
            own = None if limit is None else limit.of_features(slice(feature, feature + 1))
            found.append(cuts_of_feature(x, planes, self.objective, own))
        return found

    def _compare(
        self,
        feature: int,
        in_order: tuple[np.ndarray, ...],
        edges: Edges,
        bounds: np.ndarray,
        most: np.ndarray,
    ) -> None:
        layout = edges.layout
        own, scores, is_cut, missing = in_order
        slots = layout.slots(feature)
        if len(edges.slices.error):
            self.n_estimated += 1
            check_sums(as_in_bins(missing, self.objective), edges, slots.stop, self.objective)
        for slot in range(*slots.indices(len(bounds))):
            start, end = layout.offset[slot], layout.offset[slot + 1]
            cuts = np.flatnonzero(is_cut[start : end - 1])
            assert bool(layout.has_inner_split[slot]) == (len(cuts) > 0)
            if len(edges.slices.error):
                in_bin = as_in_bins(own[:, start:end], self.objective)
                check_sums(in_bin.sum(axis=1), edges, slot, self.objective)
                if end < own.shape[1]:
                    assert scores[end - 1] <= min(most[0, feature], bounds[slot])
                assert bounds[slot] <= most[1, feature]
            if len(cuts):
                self.n_compared += 1
                assert scores[start:end][cuts].max() <= bounds[slot]
                if len(edges.slices.spread):
                    check_spread(own[:, start:end], cuts, edges.slices.spread[slot])
                if len(edges.slices.skew):
                    in_bin = as_in_bins(own[:, start:end], self.objective)
                    check_shares(in_bin, cuts, edges.slices.skew[:, slot], self.objective)

    def _compare_cells(
        self, in_order: list[tuple[np.ndarray, ...]], slices: Slices, bounds: np.ndarray
    ) -> None:
        """Of parts and samples in a search by estimates: no cut inside or behind one is better."""
        for feature, first, n_cells in zip(*slices[:3], strict=True):
            own, scores, is_cut, _ = in_order[feature]
            for u in range(first, first + n_cells):
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
    apart = np.abs(first * second[-1] - first[-1] * second)[cuts].max()
    assert apart <= Fraction(spread) * second[-1]


def check_sums(sums: np.ndarray, edges: Edges, slot: int, objective: Objective) -> None:
    """No estimate is off by more than is said."""
    estimates, error = edges.slices.sums[:, slot], edges.slices.error[:, slot]
    gaps = [int(a) - int(b) for a, b in zip(sums, estimates, strict=True)]
    if objective.loss == "squared_error":  # see `residual_sums`
        p, n, second, other = gaps
        assert abs(p - n) <= error[0]
        assert second + other == 0
    elif objective.gain == "newton" and objective.n_outputs > 1:  # see `row_sums`
        for k in range(0, len(sums), 4):
            (p, n, *seconds), by = gaps[k : k + 4], error[k : k + 4].tolist()
            assert p <= 0
            assert n <= by[0]
            assert abs(p - n) <= by[0]
            assert abs(sum(seconds)) <= by[2]
    else:
        assert all(abs(gap) <= by for gap, by in zip(gaps, error.tolist(), strict=True))


def hard_case(seed: int, how: str) -> tuple[Case, int]:
    """Features that copy and mirror each other in few bins, and weights of some kind."""
    random = np.random.default_rng(seed)
    n_samples, max_cuts = int(random.integers(60, 500)), int(random.integers(2, 9))
    X, y = mirrored(random, n_samples, 2)
    weights = {
        "equal weights": np.ones(n_samples),
        "any weights": 10.0 ** random.uniform(-300, 300, size=n_samples),
        "a heavy sample": np.where(np.arange(n_samples) == n_samples // 2, 1e18, 1.0),
    }[how]
    rate = float(random.choice([0.05, 0.3, 1.0, 5.0, 100.0]))
    return Case.of(X, y, weights, learning_rate=rate), max_cuts


follows_more = pytest.mark.usefixtures("following_more")


@pytest.fixture
def following_more(monkeypatch):
    """Sums are estimates more often than where that saves time."""
    monkeypatch.setattr(coded, "is_worth_following", lambda counts: max(counts) > sum(counts) / 2)
    monkeypatch.setattr(row_sums, "_FEW", 1e9)
    monkeypatch.setattr(state, "_LEAST_CODES", 0)
    monkeypatch.setattr(state, "_LARGEST_MINORITY", 1.0)


@follows_more
@pytest.mark.parametrize(
    ("kind", "is_constrained", "where", "how"),
    [
        *(
            (kind, False, "coded", how)
            for kind in KINDS
            for how in ("equal weights", "any weights")
        ),
        *((kind, True, "coded", "any weights") for kind in KINDS if KINDS[kind][1] == 1),
        *(
            (kind, False, "coded", "a heavy sample")
            for kind in ("discrete", "real", "shared newton")
        ),
        *((kind, True, "coded", "a heavy sample") for kind in ("real", "newton")),
        *((kind, False, "cluster", "any weights") for kind in KINDS),
    ],
)
def test_no_allowed_cut_inside_a_bin_is_better_than_its_bound(kind, is_constrained, where, how):
    """The first two features mirror each other: what one may do, the other may not."""
    n_compared, n_estimated = 0, 0
    for seed, directions in enumerate([(1, 1, 0), (-1, 1, -1, 1), (0, -1, 1)]):
        case, max_cuts = hard_case(seed, how)
        case = case.voting(kind, l2=float(seed))
        case = case.constrained(*directions) if is_constrained else case
        watched = Watched(case, max_cuts, seed, where)
        boosted(watched, n_rounds=16)
        n_compared += watched.n_compared
        n_estimated += watched.n_estimated
    assert n_compared > 200
    stays_exact = kind in ("discrete", "quantile")
    stays_exact |= kind == "squared" and how == "equal weights"
    if where == "cluster":
        stays_exact = kind not in ("real", "newton", "shared discrete", "shared real")
    if not stays_exact and how != "a heavy sample" and not is_constrained:
        assert n_estimated > 3


def boosted(watched: Watched, n_rounds: int, random: np.random.Generator | None = None) -> None:
    """Boost; with `random`, steps that no search has found come between the rounds, some of which
    no search sees alone."""
    run, votes = watched.run, watched.case.votes_of_run()
    for number in range(n_rounds):
        watched.best_cut()
        if number % 2 == 0:
            watched.best_cut()  # under the very integers that it has just looked at
        taken = votes.found(watched.table, run)
        if isinstance(taken, str) or votes.is_perfect(taken):
            break
        run.advance(votes.change(taken).step)
        if random is not None and number % 3:
            if number % 3 == 1:
                watched.best_cut()
            run.advance(votes.change(drawn_elsewhere(watched, random)).step)


def drawn_elsewhere(watched: Watched, random: np.random.Generator) -> Taken:
    """A split with votes, which are often so large that many weights become single units."""
    case = watched.case
    feature = int(random.integers(case.X.shape[1]))
    split = Split(feature, float(np.nanquantile(case.X[:, feature], random.random())))
    size = 0.1 if case.quantity is not None else random.choice([0.1, 10.0])
    numbers = in_vote_units(size * random.normal(size=(3, case.n_outputs)))
    return case.votes_of_run().known(split, tuple(map(tuple, numbers.tolist())), watched.run)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "discrete"])
def test_bounds_hold_after_steps_that_no_search_has_found(kind):
    for seed in range(3):
        case, max_cuts = hard_case(seed, "equal weights")
        watched = Watched(case.voting(kind, l2=1.0), max_cuts, seed)
        boosted(watched, n_rounds=16, random=np.random.default_rng(seed))
        assert watched.n_compared > 50


@pytest.mark.parametrize("kind", ["real", "newton", "poisson", "shared discrete", "shared real"])
def test_estimates_hold_round_after_round_without_being_added_up_anew(kind):
    case, max_cuts = hard_case(0, "equal weights")
    weights = 10.0 ** np.random.default_rng(0).uniform(-3, 3, size=len(case.y))
    case = Case.of(case.X, case.y, weights, learning_rate=0.1)
    watched = Watched(case.voting(kind, l2=1.0), max_cuts, 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coded, "is_worth_following", lambda *about: True)
        boosted(watched, n_rounds=20)
    assert watched.n_estimated > 20


SEARCHES = {
    "signs": Objective(),
    "rising signs": Objective(monotone=(1,)),
    "falling signs": Objective(monotone=(-1,)),
    "discrete": Objective.of("discrete", 3),
    "real": Objective.of("real", 2),
    "newton": Objective.of("newton", 2, l2=0.5),
    "newton without l2": Objective.of("newton", 1),
    "rising real": Objective.of("real", monotone=(1,)),
    "falling newton": Objective.of("newton", l2=0.5, monotone=(-1,)),
    "rising newton without l2": Objective.of("newton", monotone=(1,)),
}


def scores_of_keys(keys: np.ndarray, objective: Objective) -> np.ndarray:
    """The scores that have these keys, which stay as they are."""
    kind = KEYS[objective.gain]
    found = [score_of(key, kind) for key in keys.ravel().tolist()]
    return np.array(found, dtype=np.int64 if kind == KEYS["discrete"] else None).reshape(keys.shape)


def below_all(objective: Objective) -> int:
    """The largest key that stands for no score."""
    kind = KEYS[objective.gain]
    return NO_AGREEMENT if kind == KEYS["discrete"] else key_of_score(NO_SCORE, kind)


def bounds_of(
    objective: Objective, about: tuple[Slices, Outside], evaluator: Evaluator, most: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The bounds of some cells, and what is written to `most`; see `cell_scores.EVALUATED`."""
    evaluated = evaluating(lambda kernel, team, *own: team.run(kernel, *own))
    best = BestCut(np.zeros(1, np.int64), np.zeros(2, np.int64), np.empty((2, 0), np.int64))
    keys = evaluated(Team(1), 1, evaluator.kernel, *about, evaluator.rules, best, False, most)
    return scores_of_keys(keys, objective), scores_of_keys(most, objective)


class Cell(NamedTuple):
    """A cell of some samples between others, and what is asked of its bound."""

    random: np.random.Generator
    objective: Objective
    planes: np.ndarray
    outside: np.ndarray

    @classmethod
    def drawn(cls, name: str, seed: int) -> Cell:
        objective, random = SEARCHES[name], np.random.default_rng(seed)
        planes = drawn_planes(random, objective)
        return cls(random, objective, planes, random.integers(0, 40, size=(len(planes), 3)))

    @property
    def total(self) -> np.ndarray:
        return self.planes.sum(axis=1, keepdims=True)

    def slices(self, inside: np.ndarray, error: np.ndarray, skew: np.ndarray) -> Slices:
        one = np.asarray([0])
        last = np.asarray([self.planes.shape[1] - 1])
        return Slices(one, one, one + 1, inside, error, skew, last, np.ones(1, np.uint8))

    def check(self, slices: Slices, outside: Outside, *, has_errors: bool = False) -> None:
        """No cut inside is better than the bound; with errors, nor the one behind."""
        weight = int(self.planes.sum() + self.outside.sum())
        n_samples = int(self.random.integers(1, 20))
        evaluator = Evaluator.of(self.objective).smoothed(smoothing_of(weight, n_samples))
        limit = limit_of_round(self.objective, Totals(0, weight, 0, weight, n_samples))
        keys = np.zeros((2, int(has_errors)), dtype=np.int64)
        bounds, limits = bounds_of(self.objective, (slices, outside), evaluator, keys)
        assert scores_of_cuts(self.planes, self.outside, self.objective, limit).max() <= bounds[0]
        if has_errors:
            whole = np.concatenate([self.total, np.zeros_like(self.total)], axis=1)
            score = scores_of_cuts(whole, self.outside, self.objective, limit)[0]
            assert score <= limits[0, 0] <= limits[1, 0] == bounds[0]


@pytest.mark.parametrize("name", SEARCHES)
@settings(max_examples=200)
@given(seed=SEEDS)
def test_no_cut_inside_a_unit_of_small_integers_is_better_than_its_bound(name, seed):
    cell = Cell.drawn(name, seed)
    planes, outside = cell.planes, cell.outside
    stride = 4 if cell.objective.gain == "newton" else 2
    outside[2::stride] += outside[::stride] if stride == 4 else 0
    left = np.cumsum(planes, axis=1)[:, :-1]
    ahead = []
    for k in range(cell.objective.n_outputs):
        lead = left[stride * k] / planes[stride * k].sum()
        lead = lead - left[stride * k + 1] / planes[stride * k + 1].sum()
        ahead += [max(0.0, lead.max()), max(0.0, (-lead).max())]
    before, behind, missing = (np.ascontiguousarray(outside[:, k : k + 1]) for k in range(3))
    slices = cell.slices(cell.total, EXACT, np.asarray(ahead)[:, np.newaxis])
    cell.check(slices, Outside(before, before + cell.total + behind, missing))


@pytest.mark.parametrize("name", [name for name in SEARCHES if "signs" not in name])
@settings(max_examples=200)
@given(seed=SEEDS)
def test_no_cut_in_a_unit_is_better_than_its_bound_if_sums_are_estimates(name, seed):
    """Nothing is known of the shares, and each sum is off by as much as it may be, or less."""
    cell = Cell.drawn(name, seed)
    planes, random = cell.planes, cell.random
    error = random.integers(0, 12, size=(len(planes), 4))
    # A part of a bin is exact; a bin is off at least by what rounding makes of each sample.
    error[:, 3] = 0 if random.random() < 0.5 else error[:, 3] + 4 * planes.shape[1]
    shape = error.shape if random.random() < 0.5 else ()  # or all in the same direction
    errors = np.rint(error * random.choice([-1.0, 0.0, 0.5, 1.0], size=shape)).astype(np.int64)
    sums = np.concatenate([cell.outside, cell.total], axis=1) + errors
    before, behind, missing, inside = np.split(sums, 4, axis=1)
    before_error, behind_error, missing_error, inside_error = np.split(
        error.astype(float), 4, axis=1
    )
    around = (before, before + inside + behind, missing, before_error, behind_error, missing_error)
    slices = cell.slices(inside.copy(), inside_error.copy(), UNKNOWN)
    cell.check(slices, Outside(*map(np.ascontiguousarray, around)), has_errors=True)


@pytest.mark.parametrize("name", ["discrete", "real", "newton", "newton without l2"])
@settings(max_examples=200)
@given(seed=SEEDS)
def test_no_cut_between_cells_is_better_than_its_bound_if_sums_are_estimates(name, seed):
    """Units of a sample each. All sums of a plane are off in one direction, by as much as they may
    be, so their errors add up on both sides of a cut. Often both labels' first sums are off in
    opposite directions, and second sums are too large: then the true score is higher."""
    objective, random = SEARCHES[name], np.random.default_rng(seed)
    planes = 50 * drawn_planes(random, objective)
    n_planes, n_cells = planes.shape
    outside = random.integers(0, 40, size=(n_planes, 3))
    error = random.integers(0, 40, size=(n_planes, n_cells + 3))
    way = random.choice([-1, 1], size=n_planes)
    if random.random() < 0.5 and objective.gain == "newton":
        way = np.tile([*random.permutation([-1, 1]), 1, 1], objective.n_outputs)
    errors = error * way[:, np.newaxis]
    before, behind, missing = np.split(outside + errors[:, :3], 3, axis=1)
    before_error, behind_error, missing_error = np.split(error[:, :3].astype(float), 3, axis=1)
    inside = np.ascontiguousarray(planes + errors[:, 3:])
    one, is_open = np.asarray([0]), np.zeros(n_cells, np.uint8)
    slices = Slices(
        one, one, np.asarray([n_cells]), inside, np.ascontiguousarray(error[:, 3:].astype(float)),
        UNKNOWN, np.arange(n_cells), is_open,
    )  # fmt: skip
    present = before + inside.sum(axis=1, keepdims=True) + behind
    sums = (before, present, missing, before_error, behind_error, missing_error)
    ground = Outside(*map(np.ascontiguousarray, sums))
    evaluator = Evaluator.of(objective)
    most = np.zeros((2, 1), dtype=np.int64)
    bounds, most = bounds_of(objective, (slices, ground), evaluator, most)
    assert (scores_of_cuts(planes, outside, objective, None) <= bounds[:-1]).all()
    assert (most == bounds.max()).all()


def drawn_planes(random: np.random.Generator, objective: Objective) -> np.ndarray:
    """The small integers of a few samples, both labels in every output."""
    n_samples = int(random.integers(2, 9))
    sizes = random.integers(1, 4, size=(objective.n_outputs, n_samples))
    is_positive = random.random(sizes.shape) < 0.5
    at = random.integers(n_samples)
    is_positive[:, at], is_positive[:, at - 1] = True, False
    planes = [np.where(is_positive, sizes, 0), np.where(is_positive, 0, sizes)]
    if objective.gain == "newton":
        second = random.integers(1, sizes + 1)
        planes += [np.where(is_positive, second, 0), np.where(is_positive, 0, second)]
    return np.stack(planes, axis=1).reshape(-1, n_samples)


def one_bin(n_samples: int) -> BinLayout:
    """A feature with one bin, and nothing missing."""
    offset, last = np.asarray([0, n_samples]), np.asarray([n_samples - 1, -1])
    return BinLayout(np.asarray([0]), np.asarray([1]), offset, last, np.asarray([1, 0], np.uint8))


def as_cells(planes: np.ndarray, n_cells: int) -> Slices:
    """One bin of samples as cells of several samples each."""
    ends = np.linspace(0, planes.shape[1], n_cells + 1).astype(int)
    sums = np.add.reduceat(planes, ends[:-1], axis=1)
    one = np.asarray([0])
    return Slices(
        one, one, np.asarray([n_cells]), sums, EXACT, UNKNOWN, ends[1:] - 1,
        (np.diff(ends) > 1).astype(np.uint8),
    )  # fmt: skip


class Shares:
    """The memory of one bin, under weights that are given."""

    def __init__(self, weights: np.ndarray, labels: np.ndarray) -> None:
        self.weights, self.labels, self.objective = weights, labels, Objective.of("real")
        self.skew = Skew(one_bin(len(labels)), self.objective, Team(1))
        self._expected = Expected(self._sums(), np.zeros((2, 2)))

    @property
    def planes(self) -> np.ndarray:
        whole = np.ceil(self.weights).astype(np.int64)
        return np.stack([np.where(self.labels > 0, whole, 0), np.where(self.labels > 0, 0, whole)])

    def learn(self, n_cells: int) -> None:
        learn(self.skew.notes, np.asarray([0]), as_cells(self.planes, n_cells))

    def follow(self, in_first: np.ndarray, factors: np.ndarray, *, tells: bool = False) -> None:
        """Multiply by factors (2, 2), of two regions and of the labels -1 and +1.

        `tells` if it is known how many samples lie in each region.
        """
        pairs = [((float(a), float(b)),) for a, b in factors]
        votes = ((0.0,), (0.0,), (0.0,))
        step = Step(Split(0, 0.0), votes, (pairs[0], pairs[1], pairs[1]))
        counts = (int(np.count_nonzero(in_first)), int(np.count_nonzero(~in_first)), 0)
        sums, error = self._sums(), np.zeros((2, 2))
        move = Move.of(step, counts, [[(0, 1)]] * 3, self.objective) if tells else None
        if move is not None:
            inside = np.asarray([len(self.labels), 0])
            Team(1).run(move_slots, 1, sums, error, inside, move, np.zeros((2, 2)), 2)
        self._expected = Expected(sums, error)
        self.skew.follow(step, None if move is None else counts)
        own = factors[np.where(in_first, 0, 1), (self.labels > 0).astype(int)]
        self.weights = np.maximum(self.weights * own, 2.0**-900)

    def check(self) -> float:
        sums = self._sums()
        ahead = self.skew.bounds(sums, np.zeros((2, 2)), self._expected)[:, 0]
        planes = self.planes
        check_shares(planes, np.arange(planes.shape[1] - 1), ahead, self.objective)
        return float(ahead.min())

    def _sums(self) -> np.ndarray:
        return np.stack([self.planes.sum(axis=1), [0, 0]], axis=1)


@pytest.mark.parametrize("tells", [False, True])
@settings(max_examples=150)
@given(seed=SEEDS)
def test_shares_move_no_further_than_the_factors_let_them(tells, seed):
    """By any factors: integers may fall to single units, whose rounding counts, and weights to the
    floor, which holds what falls below it, so that shares move by any amount."""
    random = np.random.default_rng(seed)
    n_samples = int(random.choice([4, 60, 1003]))
    labels = np.where(np.arange(n_samples) % 2 > 0, 1, -1)
    if random.random() < 0.3:  # all of one label but a few, which are heavy
        labels[:-3] = labels[-2]
    weights = random.uniform(2.0**40, 2.0**44, size=n_samples)
    if random.random() < 0.5:
        weights = 2.0 ** random.uniform(-30, 44, size=n_samples)
        weights[-3:] = 40_000.0 * 2.0 ** random.choice([0, 20])
    shares = Shares(weights, labels)
    shares.learn(n_samples)
    for _ in range(4):
        in_first = np.arange(n_samples) <= random.integers(n_samples)  # parted inside the bin
        factors = np.exp(random.uniform(-0.5, 0.5, size=(2, 2)))
        if random.random() < 0.3:  # alike for all samples of a label, and of any size
            factors[:] = 2.0 ** random.choice([-960.0, -20.0, 0.0, 20.0, 940.0], size=2)
        for k, label in enumerate((-1, 1)):  # integers stay below 2**62
            most = shares.weights[labels == label].max() * factors[:, k].max()
            factors[:, k] *= 2.0**46 / most if most > 2.0**46 else 1.0
        shares.follow(in_first, factors, tells=tells)
        if shares.check() < 1.0 and random.random() < 0.3:
            shares.learn(int(random.integers(1, n_samples + 1)))
            shares.check()


@settings(max_examples=30)
@given(seed=SEEDS)
def test_changes_in_four_bytes_are_off_by_half_a_unit_at_most(seed):
    random = np.random.default_rng(seed)
    n_slots = int(random.integers(1, 40))
    first = np.unique(np.append(0, random.integers(0, n_slots, size=3)))
    changes = random.normal(size=(4, n_slots)) * 2.0 ** random.integers(0, 60, size=(4, 1))
    changes = changes.astype(np.int64)
    changes[0, 0] = 2 ** int(random.integers(29, 62)) - 1
    feature = np.searchsorted(first, np.arange(n_slots), side="right") - 1
    numbers, shift = narrowed(changes, first)
    unit = 1 << shift[:, feature].astype(np.int64)
    assert (np.abs(numbers * unit - changes) <= unit >> 1).all()
    most = np.maximum.reduceat(np.abs(changes), first, axis=1)[:, feature]
    assert (unit >> 1 <= most * 2.0**-29).all()


@pytest.mark.parametrize("quantile", [0.2, 0.5, 0.9])
def test_slopes_inside_a_bin_add_up_to_what_its_bounds_say_at_most(quantile, monkeypatch):
    """In each bin the samples above their prediction come first, so some bounds are reached."""
    random, n = np.random.default_rng(0), 4000
    X = random.standard_normal((n, 3))
    order = np.argsort(X[:, 0])
    y = 0.8 * np.sign(X[:, 1]) + 0.5 * np.sign(X[:, 2] - 0.5)
    y[order] += np.where(np.arange(n) % 80 < 40, 1.0, -1.0) * random.uniform(0.2, 1.0, n)
    shares, take_step = [], QuantileSums.take_step

    def watched(sums: QuantileSums, loss: Any, step: Step, regions: np.ndarray) -> Any:
        found = take_step(sums, loss, step, regions)
        offset = sums._table.layout.offset[sums._table.layout.all_slots(0)]
        gradient = loss.terms.gradient[0][order]
        above, below = sums.sums[:2, sums._table.layout.all_slots(0)]
        for b, (begin, end) in enumerate(itertools.pairwise(offset[:-1])):
            inside = np.cumsum(gradient[begin:end])
            assert -below[b] <= inside.min()
            assert inside.max() <= above[b]
            shares.append(inside.max() / above[b])
        return found

    monkeypatch.setattr(QuantileSums, "take_step", watched)
    monkeypatch.setenv("GPUSTUMP_KERNELS", "coded")
    model = StumpBoostingRegressor(
        loss="quantile", quantile=quantile, n_estimators=40, learning_rate=0.5, device="cpu"
    )
    model.fit(X, y)
    assert len(shares) > 1000
    assert max(shares) > 0.9
