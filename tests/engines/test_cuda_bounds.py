"""The CUDA engine's bounds hold: no cut inside a bin or a piece of it is better than they say.

A bound that is too low loses the best cut, but only on data where that cut lies there. So in every
round of some runs on the stand-in device the bounds of all bins are compared with all cuts inside,
by the scores that `engines.gain` defines; and so are those of the pieces of bins that are looked
into. What is noted of shares is compared with the shares of the integers, round after round. How
far a step moves shares at most, by `engines.movement`, is compared with weights that follow drawn
factors.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import cuda_on_cpu
import numpy as np
import pytest
from all_cuts import check_shares, cuts_of_feature, mirrored
from cuda_on_cpu import Interrupted
from hypothesis import given, settings
from hypothesis import strategies as st
from rounds import KINDS, Case, signs, start

from gpustump.engines.contract import Cut, Step, discrete_step, hypothesis_at, split_at
from gpustump.engines.cuda import layout, sorting, state
from gpustump.engines.cuda import table as columns
from gpustump.engines.cuda.interval_search import IntervalSearch
from gpustump.engines.cuda.search import NO_SCORE
from gpustump.engines.cuda.split_search import SplitSearch
from gpustump.engines.movement import ROUNDINGS, Movement, movement_of
from gpustump.engines.objective import Objective

pytestmark = pytest.mark.skipif(bool(cuda_on_cpu.unusable()), reason=str(cuda_on_cpu.unusable()))

SPLIT_KINDS = [kind for kind in KINDS if kind not in ("discrete", "quantile")]

SEEDS = st.integers(0, 10**9)

RUNS = (
    ("equal weights", 600, 5), ("equal weights", 5000, 1), ("some weights", 1500, 12),
    ("some weights", 5000, 2), ("any weights", 4500, 1), ("any weights", 600, 5),
    ("a heavy sample", 1500, 12), ("a heavy sample", 4500, 2), ("some weights", 600, 5),
    *(("small integers", 40, n_bins) for n_bins in (3, 3, 8, 8, 16, 16)),
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
        The bin, the number and the bound of each piece of the bins that are refined.
    noted : ndarray (5, n_outputs, n_slots) of float64
        By how much one share may be ahead of the other, the rise and the fall, and the tilt.
    share_refined : float
        Of the bins in each round, beside those that need it; if it is 0, no bin is.
    """

    share_refined = 0.1

    def __init__(self, *about: Any) -> None:
        super().__init__(*about)
        self._random = np.random.default_rng(len(self._bounds))
        self._device.before = self._keep

    def _keep(self, kernel: str) -> None:
        if kernel == "list_bins":
            self.of_bins, self.noted = self._bounds.copy(), self._noted.copy()
            others = self._random.random(len(self._bounds)) < self.share_refined
            self._bounds[others & (self._table.bins.records["has_cuts"] > 0)] = 2**63 - 1
            if self.share_refined == 0.0:
                self._bounds[:] = NO_SCORE
        elif kernel.startswith("scan_"):
            n_pieces = int(layout.read(self._counts, layout.COUNTS)["n_pieces"][0])
            pieces = layout.read(self._pieces[:n_pieces], layout.PIECE_OF_BIN)
            bounds = self._piece_bounds[:n_pieces]
            self.of_pieces = [
                (*piece, bound)
                for piece, bound in zip(pieces.tolist(), bounds.tolist(), strict=True)
            ]
            bounds[self._random.random(n_pieces) < max(0.5, self.share_refined)] = 2**63 - 1


@dataclass(frozen=True, eq=False)
class Round:
    """A round as `Seen` saw it.

    Attributes
    ----------
    X : ndarray (n_samples, n_features)
    bins : ndarray (n_slots,) of layout.BIN
    objective : Objective
    planes : ndarray (n_planes, n_samples) of int64
        See `all_cuts`.
    of_bins, of_pieces, noted
        As in `Seen`.
    """

    X: np.ndarray
    bins: np.ndarray
    objective: Objective
    planes: np.ndarray
    of_bins: np.ndarray
    of_pieces: list[tuple[int, int, int]]
    noted: np.ndarray

    @functools.cached_property
    def features(self) -> list[tuple[np.ndarray, ...]]:
        """Of each feature its samples' planes in their order, the keys of cuts, and which are."""
        found = []
        for x in self.X.T:
            own, scores, is_cut, _ = cuts_of_feature(x, self.planes, self.objective)
            found.append((own, keys_of(scores), is_cut))
        return found

    def bins_with_cuts(self, feature: int) -> list[tuple[int, int, int]]:
        """The numbers of a feature's bins that hold cuts, their offsets and sizes."""
        found = np.flatnonzero((self.bins["feature"] == feature) & (self.bins["has_cuts"] > 0))
        return [(int(b), *self.bins[["offset", "n_inside"]][b].item()) for b in found]

    def units_of_shares(self, slot: int, inside: np.ndarray) -> np.ndarray:
        """By how much rounding moves shares, (n_outputs, 2), which `_noted` does not say."""
        n_outputs, stride = self.objective.n_outputs, len(inside) // self.objective.n_outputs
        n_units = 4 * int(self.bins["n_inside"][slot]) + 1024 * (n_outputs + 4)
        sums = inside.sum(axis=1).reshape(n_outputs, stride)[:, :2]
        with np.errstate(divide="ignore"):
            return np.asarray(n_units / sums)


def planes_of(run: Any) -> np.ndarray:
    """The integers of each sample in a run's round."""
    terms = run._update.histograms.terms[:, : run._table.n_samples]
    step = 2 if run._update._objective.gain == "newton" else 1
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
    X, y = mirrored(random, n_samples, 8)
    if how == "a heavy sample":
        X[n_samples // 2, 0] = np.nan
    if how == "small integers":  # but for a sample of nearly all the weight, without values
        X[0] = np.nan
    light = np.random.default_rng(seed).integers(1, 4, size=n_samples - 1)
    weights = {
        "equal weights": np.ones(n_samples),
        "some weights": 10.0 ** random.uniform(-3, 3, size=n_samples),
        "any weights": 10.0 ** random.uniform(-300, 300, size=n_samples),
        "a heavy sample": np.where(np.arange(n_samples) == n_samples // 2, 1e17, 1.0),
        "small integers": np.append(10.0 ** (17 + 0.6 * (seed % 3)), light),
    }[how]
    rate = float(random.choice([0.05, 0.3, 1.0, 2.0]))
    case = Case.of(X, y, weights, learning_rate=rate)
    return case.voting(kind, l2=float(random.choice([0.0, 1.0])))


def rounds_of(case: Case, n_bins: int, n_rounds: int) -> Iterator[Round]:
    """Boost on a table of so many bins a feature."""
    votes = case.votes_of_run()
    objective = votes.objective("stump")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorting, "MOST_BINS", n_bins)
        patch.setattr(state, "SplitSearch", Seen)
        table = columns.prepare(case.X, None, Interrupted(threads=1))
        run: Any = start(table, case.y, case.weights, objective)
    for _ in range(n_rounds):
        taken = votes.found(table, run)
        seen = run._search
        yield Round(
            case.X, table.bins.records, objective, planes_of(run), seen.of_bins, seen.of_pieces,
            seen.noted,
        )  # fmt: skip
        if isinstance(taken, str) or votes.is_perfect(taken):
            return
        run.advance(votes.change(taken).step)


def check_bins(one: Round) -> int:
    """No cut inside a bin is better than its bound. Returns how many bins hold cuts."""
    n_compared = 0
    for feature, (_, keys, is_cut) in enumerate(one.features):
        for slot, begin, n_inside in one.bins_with_cuts(feature):
            inside = slice(begin, begin + n_inside - 1)
            assert keys[inside][is_cut[inside]].max() <= one.of_bins[slot]
            n_compared += 1
    return n_compared


def check_pieces(one: Round) -> int:
    """The same of the pieces of bins that are refined. Returns how many hold cuts."""
    n_compared = 0
    for slot, number, bound in one.of_pieces:
        begin, n_inside, feature, _ = one.bins[slot].item()
        first = begin + number * layout.SPLIT_PIECE
        inside = slice(first, min(first + layout.SPLIT_PIECE, begin + n_inside - 1))
        _, keys, is_cut = one.features[feature]
        if is_cut[inside].any():
            assert keys[inside][is_cut[inside]].max() <= bound
            n_compared += 1
    return n_compared


def check_noted(one: Round) -> list[int]:
    """All notes of bins hold. Returns the bins of which something is known."""
    known = []
    for feature, (own, _, is_cut) in enumerate(one.features):
        for slot, begin, n_inside in one.bins_with_cuts(feature):
            cuts = np.flatnonzero(is_cut[begin : begin + n_inside - 1])
            inside, noted = sides_of(own[:, begin : begin + n_inside], one.objective), one.noted
            units = one.units_of_shares(slot, inside)
            reach = reach_of(inside, noted[2:, :, slot], units, one.objective)
            check_reach(inside, cuts, reach)
            if one.objective.loss == "squared_error":
                is_known = bool(np.isfinite(reach).all())
            else:
                ahead = noted[:2, :, slot] + units.sum(axis=1)
                check_shares(inside, cuts, ahead.T.ravel(), one.objective)
                is_known = bool(ahead.min() < 0.5)
            known += [slot] * is_known
    return known


def sides_of(planes: np.ndarray, objective: Objective) -> np.ndarray:
    """The planes of some samples; of Poisson and gamma loss the first two are those of amounts."""
    if objective.loss not in ("poisson", "gamma"):
        return planes
    gradient, hessian = planes[0] - planes[1], planes[2] + planes[3]
    return np.stack([(hessian + gradient) >> 1, (hessian - gradient) >> 1, *planes[2:]])


def reach_of(
    planes: np.ndarray, noted: np.ndarray, units: np.ndarray, objective: Objective
) -> np.ndarray:
    """How far the sum of gradients inside a bin may be above, and below, its left edge's.

    `noted` (3, n_outputs) has the rise, the fall and the tilt; returns (n_outputs, 2).
    """
    sums = planes.sum(axis=1).reshape(noted.shape[1], -1).astype(np.float64)
    rise, fall, tilt = noted
    p, n, (of_p, of_n) = sums[:, 0], sums[:, 1], units.T
    with np.errstate(all="ignore"):
        if objective.loss == "squared_error":
            drift, size = np.maximum(0.0, [-tilt, tilt]), sums[:, 2] + sums[:, 3]
            return np.stack([size * (rise + drift[0]), size * (fall + drift[1])], axis=1)
        above = p * (rise + of_p + tilt * of_n) + np.maximum(0.0, p * tilt - n)
        below = n * (fall + of_n + of_p / tilt) + np.maximum(0.0, n / tilt - p)
    return np.stack([above, below], axis=1)


def check_reach(planes: np.ndarray, cuts: np.ndarray, reach: np.ndarray) -> None:
    """No sum of gradients at a cut inside a bin is further from the left edge's than that."""
    for (positive, negative, *_), (above, below) in zip(
        planes.reshape(len(reach), -1, planes.shape[1]), reach, strict=True
    ):
        gradient = np.cumsum(positive - negative)[cuts]
        for most, own in ((above, gradient), (below, -gradient)):
            assert np.isnan(most) or own.max(initial=0) <= most * (1 + 1e-11) + 1


@pytest.mark.parametrize("kind", SPLIT_KINDS)
def test_bounds_of_bins_and_pieces_hold_and_so_does_what_was_noted_of_bins_rounds_ago(kind):
    n_bins_compared = n_pieces_compared = n_old = 0
    for seed, (how, n_samples, n_bins) in enumerate(RUNS):
        looked_into: dict[int, int] = {}
        case = hard_case(kind, seed, how, n_samples)
        for number, one in enumerate(rounds_of(case, n_bins, 18)):
            n_bins_compared += check_bins(one)
            n_pieces_compared += check_pieces(one)
            n_old += sum(number - looked_into.get(slot, number) > 1 for slot in check_noted(one))
            looked_into |= {slot: number for slot, _, _ in one.of_pieces}
    assert min(n_bins_compared, n_pieces_compared) > 1000
    assert n_old > 50


class Driven:
    """A run that takes steps which no votes would take, and whose bins are all refined.

    Parameters
    ----------
    X, y, weights : ndarray
    objective : Objective
    n_bins : int
        Of a feature.
    """

    def __init__(
        self, X: np.ndarray, y: np.ndarray, weights: np.ndarray, objective: Objective, n_bins: int
    ) -> None:
        self._X, self._objective = X.astype(np.float32), objective
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sorting, "MOST_BINS", n_bins)
            patch.setattr(state, "SplitSearch", Seen)
            patch.setattr(Seen, "share_refined", 1.0)
            self.table = columns.prepare(self._X, None, Interrupted(threads=1))
            self.run: Any = start(self.table, y, weights, objective)
            self.check()

    def check(self) -> None:
        """All bounds hold, and what is noted does."""
        seen = self.run._search
        seen.share_refined = 1.0
        seen.found()
        self.now = Round(
            self._X, self.table.bins.records, self._objective, planes_of(self.run), seen.of_bins,
            seen.of_pieces, seen.noted,
        )  # fmt: skip
        check_bins(self.now)
        check_pieces(self.now)
        check_noted(self.now)

    @property
    def room(self) -> float:
        """Binary digits by which all weights may grow: their sum stays below 2**62."""
        return max(0.0, 60.0 - np.log2(float(planes_of(self.run).sum())))

    def follow(self, cut: Cut, factors: np.ndarray, looks: bool = True) -> None:
        """A step with factors (3, n_outputs, 2) of the regions, for the labels -1 and +1."""
        self.run._search.share_refined = float(looks)
        n_outputs = self._objective.n_outputs
        step = Step(
            split_at(self.table, cut),
            ((0.0,) * n_outputs,) * 3,
            tuple(tuple(map(tuple, own)) for own in factors.tolist()),
            cut=cut,
        )
        self.run.advance(step)
        self.check()


def cut_after(feature: int, position: int | None) -> Cut:
    return Cut(feature, position, 0, 0, 0.0)


@pytest.mark.parametrize("kind", ["real", "newton", "shared discrete"])
@settings(max_examples=25)
@given(seed=SEEDS)
def test_bounds_and_notes_hold_after_steps_that_no_votes_would_take(kind, seed):
    """Few heavy samples among light ones, one outside that sets the unit; factors of any size.

    So integers may fall to single units, whose rounding counts, and weights to their floor.
    """
    random = np.random.default_rng(seed)
    votes, n_outputs = KINDS[kind]
    n_light = int(random.choice([10, 1000, 2 * layout.SPLIT_PIECE]))
    light = np.arange(n_light + 5) < n_light
    X = np.stack([np.arange(n_light + 5.0), np.where(light, 0.0, np.arange(n_light + 5))], axis=1)
    X[-1, 0] = np.nan
    y = np.append(random.permutation(np.resize([1.0, -1.0], n_light)), [1.0, -1.0, 1.0, -1.0, 1.0])
    y[:n_light] = random.choice([y[:n_light], np.ones(n_light), np.sort(y[:n_light])])
    weights = np.where(light, 1.0, random.choice([1.0, 4.0, 20_000.0]))
    weights[-1] = random.choice([1.0, 1e18, 2.0**61])
    y = y if n_outputs == 1 else (y > 0) + (np.arange(len(y)) > n_light // 2)
    n_bins = int(random.choice([1, 2]))
    driven = Driven(X, y, weights, Objective.of(votes, n_outputs), n_bins)
    reach = random.choice([1.0, 20.0, 990.0])
    for _ in range(4):
        cut = cut_after(1, n_light - 1) if random.random() < 0.6 else cut_after(0, None)
        if random.random() < 0.3:
            cut = cut_after(0, int(random.integers(n_light + 3)))
        exponents = random.uniform(-reach, 0.0, size=(3, n_outputs, 2)) * random.choice(
            [0.0, 1.0], size=(3, n_outputs, 2)
        )
        if random.random() < 0.4:
            exponents = np.minimum(-exponents, driven.room)
        driven.follow(cut, 2.0**exponents, looks=random.random() < 0.5)


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


@pytest.mark.parametrize("loss", ["exponential", "logistic", "softmax"])
@settings(max_examples=300)
@given(seed=SEEDS)
def test_shares_of_weights_move_no_further_than_is_said(loss, seed):
    n_outputs = 3 if loss == "softmax" else 1
    region, counts, factors, random = drawn_step(seed, n_outputs)
    weights = 10.0 ** random.uniform(-3, 3, size=len(region))
    odds = 10.0 ** (random.uniform(-4, 4) + random.uniform(-2, 2, size=(n_outputs, len(region))))
    objective = Objective.of("real" if loss == "exponential" else "newton", n_outputs)
    for known in (counts, None) if loss != "softmax" else (counts,):
        movement = movement_of(factors, known, objective)
        for k, label in itertools.product(range(n_outputs), (0, 1)):
            moved = odds * factors[region, :, label].T
            if loss == "exponential":
                then, now = weights, weights * factors[region, 0, label]
            elif loss == "logistic":
                then, now = (weights * (own[0] / (1 + own[0])) for own in (odds, moved))
            else:
                then, now = (weights * parts_of(own, k)[label] for own in (odds, moved))
            check_move(then, now, movement, k, label)


def parts_of(odds: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """A class's probability and that of all others."""
    total = odds.sum(axis=0)
    return odds[k] / total, np.delete(odds, k, axis=0).sum(axis=0) / total


class SeenIntervals(IntervalSearch):
    """A search that keeps its bounds, and looks into some bins that need no look."""

    def __init__(self, *about: Any) -> None:
        super().__init__(*about)
        self._random = np.random.default_rng(len(self._bounds))
        self._device.before = self._keep

    def _keep(self, kernel: str) -> None:
        if kernel == "list_bins":
            self.of_bins = self._bounds.copy()
            others = self._random.random(len(self._bounds)) < 0.1
            self._bounds[others & (self._table.bins.records["has_cuts"] > 0)] = 2**63 - 1


def pairs_of_feature(x: np.ndarray, units: np.ndarray) -> tuple[np.ndarray, ...]:
    """The agreements of all stumps and intervals, and where their ends are; -1 for a stump.

    From a feature's values (n_samples,) and the signed integer weights (n_samples,).
    """
    order = np.argsort(x, kind="stable")[: int((~np.isnan(x)).sum())]
    score_left, values = np.cumsum(units[order]), x[order]
    present = int(score_left[-1]) if len(order) else 0
    cuts = np.flatnonzero(values[1:] != values[:-1])
    after, position = (own.ravel() for own in np.meshgrid(np.append(-1, cuts), cuts, indexing="ij"))
    after, position = after[after < position], position[after < position]
    up_to = np.append(score_left, 0)  # the last stands for position -1
    inside = up_to[position] - up_to[after]
    return np.abs(2 * inside - present) + abs(int(units.sum()) - present), after, position


def test_no_pair_with_an_end_inside_a_bin_is_better_than_the_bins_bound():
    """A sample of nearly all the weight has no values: the other integers are a few units each."""
    objective, n_bounds, n_met = Objective(learner="interval"), 0, 0
    for seed, n_bins, n_samples in ((0, 12, 200), (1, 3, 120), (2, 1, 60), (3, 60, 200)):
        random = np.random.default_rng(seed)
        X = random.normal(size=(n_samples, 3)).astype(np.float32)
        X[random.random(X.shape) < 0.1] = np.nan
        X[0], X[:, 1] = np.nan, np.round(X[:, 1] * 20)
        y = signs(np.abs(np.nan_to_num(X[:, 0])), random)
        heavy = 10.0 ** random.choice([17, 18, 18.3])
        weights = np.append(heavy, random.integers(1, 4, n_samples - 1))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sorting, "MOST_BINS", n_bins)
            patch.setattr(state, "IntervalSearch", SeenIntervals)
            table = columns.prepare(X, None, Interrupted(threads=1))
            run: Any = start(table, y, weights, objective)
        for _ in range(8):
            cut = run.best_cut()
            signed = run._update.signed
            units = (np.ceil(np.abs(signed)) * np.sign(signed)).astype(np.int64)
            pairs = [pairs_of_feature(x, units) for x in X.T]
            bins = zip(run._search.of_bins.tolist(), table.bins.records.tolist(), strict=True)
            for bound, (begin, n_inside, feature, has_cuts) in bins:
                if has_cuts:
                    score, *ends = pairs[feature]
                    is_inside = [(end >= begin) & (end < begin + n_inside - 1) for end in ends]
                    best = score[is_inside[0] | is_inside[1]].max()
                    assert best <= bound
                    n_bounds, n_met = n_bounds + 1, n_met + int(best == bound)
            rescale_exponent = int(run.totals.weight > 2**61 or cut.score % 3 == 0)
            stump = hypothesis_at(table, cut, run.totals)
            run.advance(
                discrete_step(stump, 0.5, 1.75 / 2**rescale_exponent, rescale_exponent, cut)
            )
    assert n_bounds > 1000
    assert n_met > 50
