"""The CUDA engine's bounds hold: no cut inside a bin or a piece of it is better than they say.

A bound that is too low loses the best cut, but only on data where that cut lies there. So in every
round of some runs on the stand-in device the bounds of all bins are compared with all cuts inside,
by the scores that `engines.worth` defines; and so are those of the pieces of bins that are looked
into. What is noted of shares is compared with the shares of the integers, round after round. How
far a step moves shares at most, by `engines.movement`, is compared with weights that follow drawn
factors.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import cuda_on_cpu
import numpy as np
import pytest
from all_cuts import check_shares, cuts_of_feature
from cuda_on_cpu import Interrupted
from hypothesis import given, settings
from hypothesis import strategies as st
from rounds import KINDS, Case, signs
from trainers import start

from gpustump.engines.contract import Cut, Search, Step, split_at
from gpustump.engines.cuda import layout, sorting, split_state
from gpustump.engines.cuda import table as columns
from gpustump.engines.cuda.search import NO_SCORE
from gpustump.engines.cuda.split_search import SplitSearch
from gpustump.engines.movement import ROUNDINGS, Movement, movement_of

pytestmark = pytest.mark.skipif(bool(cuda_on_cpu.unusable()), reason=str(cuda_on_cpu.unusable()))

SPLIT_KINDS = [kind for kind in KINDS if kind != "discrete"]

SEEDS = st.integers(0, 10**9)

RUNS = (
    ("equal weights", 600, 5), ("equal weights", 5000, 1), ("some weights", 1500, 12),
    ("some weights", 5000, 2), ("any weights", 4500, 1), ("any weights", 600, 5),
    ("a heavy sample", 1500, 12), ("a heavy sample", 4500, 2), ("some weights", 600, 5),
)  # fmt: skip
"""What weights are like in each run, how many samples there are, and bins of a feature."""


def keys_of(scores: np.ndarray) -> np.ndarray:
    """Scores as the integers that the kernels compare."""
    if scores.dtype == np.int64:
        return scores
    bits = scores.view(np.int64)
    return np.where(bits >= 0, bits, NO_SCORE - bits)


class Seen(SplitSearch):
    """A search that keeps what its kernels wrote, before others write there.

    It looks into some bins and pieces that need no look, so that what it notes of them grows old.

    Attributes
    ----------
    of_bins : ndarray (n_slots,) of int64
        The bounds of the bins.
    of_pieces : list of (int, int, int)
        The bin, the number and the bound of each piece of the bins that are looked into.
    noted : ndarray (2, n_outputs, n_slots) of float64
        By how much one share may be ahead of the other.
    share_looked_into : float
        Of the bins in each round, beside those that need it; if it is 0, no bin is.
    """

    share_looked_into = 0.1

    def __init__(self, *about: Any) -> None:
        super().__init__(*about)
        self._random = np.random.default_rng(len(self._bounds))
        self._device.before = self._keep

    def _keep(self, kernel: str) -> None:
        if kernel == "list_bins":
            self.of_bins, self.noted = self._bounds.copy(), self._noted.copy()
            others = self._random.random(len(self._bounds)) < self.share_looked_into
            self._bounds[others & (self._table.bins.records["has_cuts"] > 0)] = 2**63 - 1
            if self.share_looked_into == 0.0:
                self._bounds[:] = NO_SCORE
        elif kernel.startswith("scan_"):
            n_pieces = int(layout.read(self._counts, layout.COUNTS)["n_pieces"][0])
            pieces = layout.read(self._pieces[:n_pieces], layout.PIECE_OF_BIN)
            bounds = self._piece_bounds[:n_pieces]
            self.of_pieces = [
                (*piece, bound)
                for piece, bound in zip(pieces.tolist(), bounds.tolist(), strict=True)
            ]
            bounds[self._random.random(n_pieces) < max(0.5, self.share_looked_into)] = 2**63 - 1


class Round(NamedTuple):
    """A round as `Seen` saw it.

    Attributes
    ----------
    X : ndarray (n_samples, n_features)
    bins : ndarray (n_slots,) of layout.BIN
    search : Search
    planes : ndarray (n_planes, n_samples) of int64
        See `all_cuts`.
    of_bins, of_pieces, noted
        As in `Seen`.
    """

    X: np.ndarray
    bins: np.ndarray
    search: Search
    planes: np.ndarray
    of_bins: np.ndarray
    of_pieces: list[tuple[int, int, int]]
    noted: np.ndarray

    def features(self) -> Iterator[tuple[np.ndarray, ...]]:
        """Of each feature its samples' planes in their order, the keys of cuts, and which are."""
        for x in self.X.T:
            own, scores, is_cut, _ = cuts_of_feature(x, self.planes, self.search)
            yield own, keys_of(scores), is_cut

    def bins_with_cuts(self, feature: int) -> list[tuple[int, int, int]]:
        """The numbers of a feature's bins that hold cuts, their offsets and sizes."""
        found = np.flatnonzero((self.bins["feature"] == feature) & (self.bins["has_cuts"] > 0))
        return [(int(b), *self.bins[["offset", "n_inside"]][b].item()) for b in found]

    def units_of_shares(self, slot: int, inside: np.ndarray) -> np.ndarray:
        """What `_noted` lacks of how far shares may be ahead, (n_outputs,): what rounding does."""
        n_outputs, stride = self.search.n_outputs, len(inside) // self.search.n_outputs
        n_units = 4 * int(self.bins["n_inside"][slot]) + 1024 * (n_outputs + 4)
        sums = inside.sum(axis=1).reshape(n_outputs, stride)[:, :2]
        with np.errstate(divide="ignore"):
            return np.asarray((n_units / sums).sum(axis=1))


def planes_of(run: Any) -> np.ndarray:
    """The integers of each sample in a run's round."""
    terms = run._sweep.histograms.terms[:, : run._table.n_samples]
    step = 2 if run._wanted.votes == "newton" else 1
    is_positive = terms[::step] < 0
    of_outputs = [
        np.where(chosen, terms[layer::step] & (2**63 - 1), 0)
        for layer in range(step)
        for chosen in (is_positive, ~is_positive)
    ]
    return np.stack(of_outputs, axis=1).reshape(-1, terms.shape[1])


def hard_case(kind: str, seed: int, how: str, n_samples: int) -> Case:
    """Features that copy and mirror each other more or less, and weights of some kind."""
    random = np.random.default_rng(seed)
    x = random.normal(size=n_samples)
    shaken = x + random.normal(size=n_samples) * random.choice([0.0, 0.1, 1.0])
    X = np.stack([x, -shaken, np.round(8 * shaken), random.normal(size=n_samples)], axis=1)
    X[random.random(n_samples) < 0.1, 3] = np.nan
    y = signs(np.sin(7 * x) + x * random.choice([0.0, 0.5]), random, noise=0.7)
    if how == "a heavy sample":
        X[n_samples // 2, 0] = np.nan
    weights = {
        "equal weights": np.ones(n_samples),
        "some weights": 10.0 ** random.uniform(-3, 3, size=n_samples),
        "any weights": 10.0 ** random.uniform(-300, 300, size=n_samples),
        "a heavy sample": np.where(np.arange(n_samples) == n_samples // 2, 1e17, 1.0),
    }[how]
    rate = float(random.choice([0.05, 0.3, 1.0, 2.0]))
    case = Case.of(X.astype(np.float32), y, weights, learning_rate=rate)
    return case.voting(kind, l2=float(random.choice([0.0, 1.0])))


def rounds_of(case: Case, n_bins: int, n_rounds: int) -> Iterator[Round]:
    """Boost on a table of so many bins a feature."""
    votes = case.votes_of_run()
    search = votes.search("stump")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorting, "MOST_BINS", n_bins)
        patch.setattr(split_state, "SplitSearch", Seen)
        table = columns.prepare(case.X, None, Interrupted(threads=1))
        run: Any = start(table, case.y, case.weights, search)
    for _ in range(n_rounds):
        taken = votes.found(table, run)
        seen = run._search
        yield Round(
            case.X, table.bins.records, search, planes_of(run), seen.of_bins, seen.of_pieces,
            seen.noted,
        )  # fmt: skip
        if isinstance(taken, str) or votes.is_perfect(taken):
            return
        run.advance(votes.change(taken).step)


@pytest.fixture(scope="module", params=SPLIT_KINDS)
def rounds(request: pytest.FixtureRequest) -> list[list[Round]]:
    """The rounds of some runs with votes of one kind."""
    return [
        list(rounds_of(hard_case(request.param, seed, how, n_samples), n_bins, 18))
        for seed, (how, n_samples, n_bins) in enumerate(RUNS)
    ]


def check_bins(one: Round) -> int:
    """No cut inside a bin is better than its bound. Returns how many bins hold cuts."""
    n_compared = 0
    for feature, (_, keys, is_cut) in enumerate(one.features()):
        for slot, begin, n_inside in one.bins_with_cuts(feature):
            inside = slice(begin, begin + n_inside - 1)
            assert keys[inside][is_cut[inside]].max() <= one.of_bins[slot]
            n_compared += 1
    return n_compared


def check_pieces(one: Round) -> int:
    """The same of the pieces of bins that are looked into. Returns how many hold cuts."""
    n_compared = 0
    found = [(keys, is_cut) for _, keys, is_cut in one.features()]
    for slot, number, bound in one.of_pieces:
        begin, n_inside, feature, _ = one.bins[slot].item()
        first = begin + number * layout.SPLIT_PIECE
        inside = slice(first, min(first + layout.SPLIT_PIECE, begin + n_inside - 1))
        keys, is_cut = found[feature]
        if is_cut[inside].any():
            assert keys[inside][is_cut[inside]].max() <= bound
            n_compared += 1
    return n_compared


def check_noted(one: Round) -> dict[int, float]:
    """No share is further ahead than is known. Returns what is known of bins, by their numbers."""
    known = {}
    for feature, (own, _, is_cut) in enumerate(one.features()):
        for slot, begin, n_inside in one.bins_with_cuts(feature):
            cuts = np.flatnonzero(is_cut[begin : begin + n_inside - 1])
            inside = own[:, begin : begin + n_inside]
            ahead = one.noted[:, :, slot] + one.units_of_shares(slot, inside)
            check_shares(inside, cuts, ahead.T.ravel(), one.search)
            known[slot] = float(ahead.min())
    return known


def test_no_cut_inside_a_bin_is_better_than_its_bound(rounds):
    assert sum(check_bins(one) for one in itertools.chain(*rounds)) > 1000


def test_no_cut_inside_a_piece_or_at_its_end_is_better_than_its_bound(rounds):
    assert sum(check_pieces(one) for one in itertools.chain(*rounds)) > 1000


def test_no_share_is_further_ahead_than_was_noted_of_its_bin_rounds_ago(rounds):
    n_old = 0
    if rounds[0][0].search.quantity is not None:
        pytest.skip("of a quantity nothing is noted for later rounds")
    for of_run in rounds:
        looked_into: dict[int, int] = {}
        for number, one in enumerate(of_run):
            for slot, ahead in check_noted(one).items():
                n_old += ahead < 0.5 and number - looked_into.get(slot, number) > 1
            looked_into |= {slot: number for slot, _, _ in one.of_pieces}
    assert n_old > 50


@pytest.mark.parametrize("kind", SPLIT_KINDS)
def test_bounds_of_small_integers_hold(kind):
    """A sample of nearly all the weight has no values: the other integers are a few units each."""
    for seed in range(25):
        random = np.random.default_rng(seed)
        X = random.integers(0, 40, size=(40, 3)).astype(np.float32)
        X[0] = np.nan
        weights = np.append(10.0 ** random.choice([17, 17.8, 18.2]), random.integers(1, 4, size=39))
        y = signs(np.where(np.isnan(X[:, 0]), 0.0, X[:, 0]), random)
        case = Case.of(X, y, weights, learning_rate=0.05).voting(kind, l2=float(seed % 2))
        for one in rounds_of(case, int(random.choice([3, 8, 16])), 4):
            check_bins(one)
            check_pieces(one)


class Driven:
    """A run that takes steps which no votes would take, and whose bins are all looked into.

    Parameters
    ----------
    X, y, weights : ndarray
    search : Search
    n_bins : int
        Of a feature.
    """

    def __init__(
        self, X: np.ndarray, y: np.ndarray, weights: np.ndarray, search: Search, n_bins: int
    ) -> None:
        self._X, self._search = X.astype(np.float32), search
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sorting, "MOST_BINS", n_bins)
            patch.setattr(split_state, "SplitSearch", Seen)
            patch.setattr(Seen, "share_looked_into", 1.0)
            self.table = columns.prepare(self._X, None, Interrupted(threads=1))
            self.run: Any = start(self.table, y, weights, search)
            self.check()

    def check(self) -> None:
        """All bounds hold, and what is noted does."""
        seen = self.run._search
        seen.share_looked_into = 1.0
        seen.found()
        self.now = Round(
            self._X, self.table.bins.records, self._search, planes_of(self.run), seen.of_bins,
            seen.of_pieces, seen.noted,
        )  # fmt: skip
        check_bins(self.now)
        check_pieces(self.now)
        check_noted(self.now)

    def follow(self, cut: Cut, *factors: tuple[float, float], looks: bool = True) -> None:
        """A step with factors of the regions, each for the labels -1 and +1."""
        self.run._search.share_looked_into = float(looks)
        three = (*factors, *[factors[-1]] * (3 - len(factors)))
        step = Step(
            split_at(self.table, cut), ((0.0,),) * 3, tuple((own,) for own in three), cut=cut
        )
        self.run.advance(step)
        self.check()


def cut_after(feature: int, position: int | None) -> Cut:
    return Cut(feature, position, 0, 0, 0.0)


EVERYWHERE = cut_after(0, None)


@pytest.mark.parametrize("gains", [True, False])
def test_logistic_weights_outside_of_the_bulk_may_move_a_sum_as_far_as_the_bulk_could(gains):
    """Odds of the majority are so large that its weights stay, though their factor is not 1."""
    k = np.arange(2000)
    is_rest = k % 1000 < 400
    X, y = np.stack([k, is_rest], axis=1), np.where(k % 2 > 0, 1.0, -1.0)
    driven = Driven(X, y, np.ones(2000), Search("stump", "newton"), 2)
    parted = cut_after(1, 1199)
    driven.follow(parted, (1e6, 1e6), (1e-3, 1e-3) if gains else (1e6, 1e6))
    driven.follow(parted, (1.0, 1.6 if gains else 0.6), (1.0, 1e4 if gains else 1e-9))


def test_bounds_of_sums_beyond_2_to_the_53_are_not_rounded_down():
    """A cut parts the labels, so it is as good as sums alone let it be."""
    x = np.arange(40.0)[:, np.newaxis]
    for seed in range(12):
        weights = np.random.default_rng(seed).uniform(0.5, 1.0, size=40)
        Driven(x, np.repeat([0, 1], 20), weights, Search("stump", "discrete", 2), 1)


def beside_a_heavy_sample(x: np.ndarray, y: np.ndarray, weights: np.ndarray, n_bins: int) -> Driven:
    """Newton votes; a sample of nearly all the weight has no value, and is got right."""
    X = np.append(x, np.nan)[:, np.newaxis]
    y, weights = np.append(y, 1.0), np.append(weights, 1e18)
    driven = Driven(X, y, weights, Search("stump", "newton"), n_bins)
    driven.follow(cut_after(0, len(x) - 1), (1.0, 1.0), (1.0, 1.0), (1.0, 1e-20))
    return driven


@pytest.mark.parametrize("order", [1, -1])
def test_a_sample_of_one_unit_may_be_all_that_a_cut_leaves_on_a_side(order):
    """Its first integer is large, so nearly all that the cut is worth follows from its second."""
    y = np.where(np.arange(10) == 0, 1.0, -1.0)[::order]
    driven = beside_a_heavy_sample(np.arange(10.0), y, np.full(10, 4.0), 2)
    driven.follow(EVERYWHERE, (0.2, 30.0))


def test_the_cut_at_the_end_of_a_piece_leaves_none_of_its_samples_on_the_right():
    """Only the bin's last sample, whose second integer is one unit."""
    n = 2 * layout.SPLIT_PIECE
    x, y = np.arange(n + 1.0), np.where(np.arange(n + 1) % 2 > 0, 1.0, -1.0)
    driven = beside_a_heavy_sample(x, y, np.where(x < n, 1.0, 25_000.0), 1)
    driven.follow(cut_after(0, n - 1), (1.0, 1.0), (2e5, 2e5), (1.0, 1.0))


def of_many_light_samples() -> Driven:
    """1000 light samples, two heavy ones of either label, and one outside that sets the unit."""
    light = np.arange(1005) < 1000
    X = np.stack([np.arange(1005.0), np.where(light, 0.0, 1.0 + np.arange(1005))], axis=1)
    X[-1, 0] = np.nan
    y = np.append(np.ones(1000), [1.0, -1.0, 1.0, -1.0, 1.0])
    weights = np.where(light, 1.0, 20_000.0)
    weights[-1] = 2.0**61
    driven = Driven(X, y, weights, Search("stump", "real"), 1)
    driven.follow(cut_after(1, 999), (1.0, 2.0**-30), (1.0, 1.0), looks=False)
    driven.follow(cut_after(0, 1003), (1.0, 1.0), (1.0, 1.0), (1.0, 2.0**-44), looks=False)
    return driven


@pytest.mark.parametrize("by", [2.0**20, 2.0**-20])
def test_shares_of_integers_are_off_by_their_rounding(by):
    """Light samples count one unit each, before and after the weights of all samples change."""
    driven = of_many_light_samples()
    if by < 1.0:
        driven.follow(EVERYWHERE, (1 / by, 1 / by))
    driven.follow(EVERYWHERE, (by, by), looks=False)


def test_sums_that_shares_are_moved_by_are_off_by_rounding():
    """While units are coarse, nobody looks; then one heavy sample gains on the other."""
    driven = of_many_light_samples()
    driven.follow(EVERYWHERE, (2.0**20, 2.0**20))
    driven.follow(EVERYWHERE, (2.0**-20, 2.0**-20), looks=False)
    grown = 2.0**20 * 1.05
    driven.follow(cut_after(1, 1001), (2.0**20, 2.0**20), (2.0**20, grown), looks=False)


def test_what_is_noted_is_forgotten_where_weights_have_reached_the_floor():
    k = np.arange(2000)
    y, weights = np.where(k % 2 > 0, 1.0, -1.0), 2.0 ** -(k // 2 % 1000 / 100)
    driven = Driven(k[:, np.newaxis], y, weights, Search("stump", "real"), 1)
    driven.follow(EVERYWHERE, (1.0, 2.0**-995), looks=False)
    driven.follow(EVERYWHERE, (1.0, 2.0**945), looks=False)


class Moving(NamedTuple):
    """Samples of one label in a bin, and a step.

    Attributes
    ----------
    region : ndarray (n_samples,) of int64
    counts : ndarray (3,) of int64
        How many samples of the table, which has more than the bin, lie in each region.
    factors : ndarray (3, n_outputs, 2) of float64
    random : numpy.random.Generator
    """

    region: np.ndarray
    counts: np.ndarray
    factors: np.ndarray
    random: np.random.Generator


def drawn_step(seed: int, n_outputs: int = 1) -> Moving:
    """Few samples or many outside of the majority, with factors of any kind."""
    random = np.random.default_rng(seed)
    n_samples = int(random.integers(2, 60))
    shares = random.permutation([1.0, *random.choice([0.0, 0.01, 0.1, 1.0], size=2)])
    region = random.choice(3, size=n_samples, p=shares / shares.sum())
    counts = np.bincount(region, minlength=3) + np.rint(1000 * shares).astype(np.int64)
    reach = random.choice([0.05, 0.7, 5.0])
    factors = np.exp(random.uniform(-reach, reach, size=(3, n_outputs, 1 if n_outputs > 1 else 2)))
    if random.random() < 0.3:  # what lies outside of the majority gains weight, or loses it
        factors.sort(axis=0)
        majority, end = int(np.argmax(counts)), int(random.choice([0, 2]))
        factors[[majority, end]] = factors[[end, majority]]
    if n_outputs > 1 and random.random() < 0.5:  # what changes are the odds of other classes
        factors[int(np.argmax(counts))] = factors[:, 0] = 1.0
    return Moving(region, counts, np.broadcast_to(factors, (3, n_outputs, 2)), random)


def furthest(movement: Movement, k: int, label: int, then: float, now: float) -> float:
    """How far a share may move, as `moved` in `splits.cu` says it, without rounding to units."""
    most = float(movement.most[k, label])
    if not movement.is_one_way[k, label]:
        return most
    ends = movement.low[k, label] * then, movement.high[k, label] * then
    gain = max(abs(now - end) for end in ends)
    share = gain / now if now > gain else 1.0
    return min(most, float(movement.of_majority[k, label]) + share + ROUNDINGS)


def check_move(then: np.ndarray, now: np.ndarray, movement: Movement, k: int, label: int) -> None:
    """No share of weights (n_samples,) is further from what it was than is said."""
    by = np.abs(np.cumsum(now) / now.sum() - np.cumsum(then) / then.sum()).max()
    assert by <= furthest(movement, k, label, then.sum(), now.sum()) + 1e-13


@pytest.mark.parametrize("label", [0, 1])
@settings(max_examples=300)
@given(seed=SEEDS)
def test_shares_of_exponential_weights_move_no_further_than_is_said(label, seed):
    region, counts, factors, random = drawn_step(seed)
    then = 10.0 ** random.uniform(-3, 3, size=len(region))
    now = then * factors[region, 0, label]
    search = Search("stump", "real")
    check_move(then, now, movement_of(factors, counts, search), 0, label)
    check_move(then, now, movement_of(factors, None, search), 0, label)


@pytest.mark.parametrize("label", [0, 1])
@settings(max_examples=300)
@given(seed=SEEDS)
def test_shares_of_logistic_weights_move_no_further_than_is_said(label, seed):
    region, counts, factors, random = drawn_step(seed)
    weights = 10.0 ** random.uniform(-3, 3, size=len(region))
    odds = 10.0 ** (random.uniform(-4, 4) + random.uniform(-2, 2, size=len(region)))
    then = weights * (odds / (1 + odds))
    odds = odds * factors[region, 0, label]
    now = weights * (odds / (1 + odds))
    search = Search("stump", "newton")
    check_move(then, now, movement_of(factors, counts, search), 0, label)
    check_move(then, now, movement_of(factors, None, search), 0, label)


@settings(max_examples=300)
@given(seed=SEEDS)
def test_shares_of_softmax_weights_move_no_further_than_is_said(seed):
    region, counts, factors, random = drawn_step(seed, n_outputs=3)
    weights = 10.0 ** random.uniform(-3, 3, size=len(region))
    odds = 10.0 ** random.uniform(-3, 3, size=(3, len(region)))
    movement = movement_of(factors, counts, Search("stump", "newton", 3))
    moved = odds * factors[region, :, 0].T
    for k in range(3):
        own, others = (weights * part for part in parts_of(odds, k))
        own_now, others_now = (weights * part for part in parts_of(moved, k))
        check_move(own, own_now, movement, k, 0)
        check_move(others, others_now, movement, k, 1)


def parts_of(odds: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """A class's probability and that of all others."""
    total = odds.sum(axis=0)
    return odds[k] / total, np.delete(odds, k, axis=0).sum(axis=0) / total


def test_two_shares_move_as_far_as_is_said():
    """From 1/3 to 2/3 if one sample gains four times as much as the other."""
    factors = np.asarray([[[1.0, 4.0]], [[1.0, 1.0]], [[1.0, 9.0]]])
    search = Search("stump", "real")
    for counts in (np.asarray([1, 1, 0]), None):
        movement = movement_of(factors[:2] if counts is None else factors, counts, search)
        assert movement.most[0] == pytest.approx([0.0, 1 / 3], abs=1e-11)
        assert furthest(movement, 0, 1, 3.0, 6.0) == pytest.approx(1 / 3)


def test_shares_hardly_move_where_a_step_hardly_changes_what_it_makes_of_the_bulk():
    factors = np.asarray([[[0.5, 0.5]], [[1.0, 2.0]], [[1.0, 2.0]]])
    movement = movement_of(factors, np.asarray([100, 5, 0]), Search("stump", "real"))
    assert movement.is_one_way.all()
    assert furthest(movement, 0, 1, 1000.0, 501.0) == pytest.approx(1 / 501)
    assert furthest(movement, 0, 0, 1000.0, 999.0) == pytest.approx(movement.most[0, 0])
