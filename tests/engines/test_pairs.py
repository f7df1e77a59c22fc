"""Runs by pairs of features: every library and the kernels make the same steps, the best ones."""

from __future__ import annotations

import itertools
from fractions import Fraction

import cuda_on_cpu
import numpy as np
import pytest
from backends import Backend
from cuda_on_cpu import OnCpu
from hypothesis import given, settings
from hypothesis import strategies as st

from gpustump import arrays
from gpustump.boosting.pairs.turns import PairCandidates, Turns
from gpustump.boosting.rounds.known_scores import beginning_of, exponential_of, in_vote_units
from gpustump.boosting.votes.settings import VoteSettings
from gpustump.engines import pair_runs
from gpustump.engines.contract import Beginning
from gpustump.engines.cpu.pairs.run import KernelPairRun
from gpustump.engines.cpu.pairs.turns import CHUNK
from gpustump.engines.cuda import pairs as on_cuda
from gpustump.engines.cuda.pairs import CudaPairRun
from gpustump.engines.integer_weights import in_units
from gpustump.engines.quadrants import PairRun, Turn, best_quadrants
from gpustump.engines.reference.pairs import ArrayPairRun
from gpustump.engines.reference.state import loss_of
from gpustump.engines.threads import Team

N_BINS = (5, 2, 32, 7)
PAIRS = np.asarray([[2, 3], [0, 1], [0, 2]], dtype=np.int64)
LOSSES = ("logistic", "softmax", "squared_error", "poisson", "gamma")


CUDA = pytest.param(
    "cuda",
    marks=pytest.mark.skipif(bool(cuda_on_cpu.unusable()), reason=str(cuda_on_cpu.unusable())),
)
by_kernels = pytest.mark.parametrize("kernels", ["cpu", CUDA])


@pytest.fixture(autouse=True)
def of_small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a device several blocks share the samples."""
    monkeypatch.setattr(on_cuda, "_SAMPLES_OF_BLOCK", 100)


class Made:
    """Random samples of a loss, with known scores."""

    def __init__(self, loss: str, n: int = 90, seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        self.loss = loss
        self.bins = np.stack([random.integers(0, own, n) for own in N_BINS]).astype(np.uint8)
        effect = (self.bins[0] > 2) ^ (self.bins[2] > 15)
        self.n_outputs = 3 if loss == "softmax" else 1
        self.scores = in_vote_units(random.normal(size=(n, self.n_outputs)) / 4)
        self.weights = random.uniform(0.5, 3.0, n)
        if loss == "logistic":
            self.labels = np.where(effect ^ (random.random(n) < 0.2), 1.0, -1.0)
        elif loss == "softmax":
            self.labels = (random.integers(0, 2, n) + effect).astype(np.int64)
        elif loss == "squared_error":
            self.labels = in_vote_units((effect - 0.5) / 2 + random.normal(size=n) / 10)
        else:
            self.labels = random.gamma(1.0 + effect)
            self.labels = np.floor(self.labels) if loss == "poisson" else self.labels
        quantity = loss if loss in ("squared_error", "poisson", "gamma") else None
        how = VoteSettings("newton", 0.3, 0.7, quantity=quantity)
        self.rule = how.votes(self.weights, self.n_outputs).on(self.labels, self.weights)

    def beginning(self) -> Beginning:
        if self.loss in ("logistic", "softmax"):
            return beginning_of(
                self.labels, self.scores[:, 0] if self.loss == "logistic" else self.scores
            )
        own = self.scores.reshape(1, -1)
        if self.loss == "squared_error":
            return Beginning(own, own)
        return Beginning(own, exponential_of(own[0] if self.loss == "poisson" else -own[0])[None])

    def kernels(self, kind: str = "cpu") -> KernelPairRun | CudaPairRun:
        """Those of the CPU, or of CUDA on a stand-in for a device, with few threads a block."""
        units = in_units(self.weights, self.rule.objective().n_copies)
        given = self.bins, N_BINS, self.labels, units, self.loss, self.beginning()
        if kind == "cuda":
            return CudaPairRun(OnCpu(threads=1 + len(self.labels) % 3), *given)
        return KernelPairRun(*given)

    def reference(self, backend: Backend | None = None) -> ArrayPairRun:
        to = np.asarray if backend is None else backend.asarray
        start = self.beginning()
        start = Beginning(to(start.scores), to(start.numbers))
        units = to(in_units(self.weights, self.rule.objective().n_copies))
        with arrays.computing_on(units):
            loss = loss_of(to(self.labels), units, self.rule.objective(), start)
            return ArrayPairRun(to(self.bins), N_BINS, loss)


def test_lent_arrays_are_read_and_not_written():
    made = Made("logistic")
    wanted = turns_of(made.kernels(), made, 3, 0)
    for lent in (made.bins, made.labels, made.weights, made.scores):
        lent.flags.writeable = False
    check_equal(turns_of(made.kernels(), made, 3, 0), wanted)


def candidates(n_turns: int) -> PairCandidates:
    keys = np.arange(1, 7, dtype=np.uint64).reshape(3, 2)
    n_places = np.asarray(N_BINS)[PAIRS] - 1
    return PairCandidates(n_turns, np.uint64(7), keys, n_places)


def turns_of(run: PairRun, made: Made, n_turns: int, n_smoothing: int) -> list[Turn]:
    turns = Turns(run, PAIRS, made.rule, candidates(n_smoothing))
    return [turns.turn(number) for number in range(n_turns)]


def check_equal(found: list[Turn], wanted: list[Turn]) -> None:
    for own, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(own.places, other.places)
        np.testing.assert_array_equal(own.votes, other.votes)


@by_kernels
@pytest.mark.parametrize("loss", LOSSES)
def test_the_kernels_make_the_steps_of_the_reference(loss: str, kernels: str):
    """Also if they leave some steps to the host, as many of their votes are in doubt."""
    n_left, doubt = [], 2.0**12 if kernels == "cpu" else 2.0**-35  # the CPU's look twice
    for seed, n in enumerate((30, 70, 230, CHUNK, CHUNK + 1, 2 * CHUNK + 100)):
        made = Made(loss, n, seed)
        one, mixed, other = made.kernels(kernels), made.kernels(kernels), made.reference()

        def doubting(steps, pairs, own, at, rule, take_turns=mixed.take_turns):
            made_until = take_turns(steps, pairs, own, at, rule._replace(doubt=doubt))
            n_left.append(made_until < len(pairs))
            return made_until

        mixed.take_turns = doubting
        wanted = turns_of(other, made, 8, 3)
        for run in (one, mixed):
            check_equal(turns_of(run, made, 8, 3), wanted)
        for pair in itertools.combinations(range(4), 2):
            np.testing.assert_array_equal(one.cells(pair), other.cells(pair))
    assert {*n_left} == {True, False}


@pytest.mark.parametrize("loss", LOSSES)
def test_every_library_makes_the_same_steps(loss: str, backend: Backend):
    made = Made(loss)
    with arrays.computing_on(backend.asarray(made.weights)):
        found = turns_of(made.reference(backend), made, 2, 1)
    check_equal(found, turns_of(made.reference(), made, 2, 1))


@by_kernels
@pytest.mark.parametrize("loss", ["logistic", "softmax"])
@pytest.mark.filterwarnings("error")
def test_scores_whose_exponentials_are_no_floats_keep_their_labels(loss: str, kernels: str):
    made = Made(loss)
    made.scores = in_vote_units(made.scores * 2000.0)
    one, other = made.kernels(kernels), made.reference()
    check_equal(turns_of(one, made, 4, 1), turns_of(other, made, 4, 1))
    for pair in itertools.combinations(range(4), 2):
        found = one.cells(pair)
        np.testing.assert_array_equal(found, other.cells(pair))
        assert (np.abs(found[:, 0]) <= made.rule.objective().n_outputs * 2**62).all()
        assert (found[:, 1] >= 0).all()


@by_kernels
@pytest.mark.parametrize("loss", LOSSES)
def test_scores_of_pairs_are_those_of_their_best_cuts(loss: str, kernels: str):
    made, none = Made(loss), np.zeros((0, 2), dtype=np.int64)
    every = np.asarray([*itertools.combinations(range(4), 2)], dtype=np.int64)
    l2 = made.rule.objective().l2
    wanted = [
        best_quadrants(made.reference().cells(tuple(own)), l2).score for own in every.tolist()
    ]
    assert made.kernels(kernels).scores(every, l2, Team(3)).tolist() == wanted
    assert made.kernels(kernels).scores(none, l2, Team(1)).shape == (0,)
    assert made.reference().scores(every, l2, Team(1)).tolist() == wanted


@given(st.integers(2, 4), st.integers(2, 4), st.integers(1, 2), st.floats(0.0, 5.0), st.randoms())
@settings(max_examples=60, deadline=None)
def test_the_best_cut_has_the_largest_exact_gain_of_all(k, m, n_outputs, l2, random):
    """Against rational numbers; ties within the rounding of the scores may go either way."""
    second = np.asarray([random.randrange(0, 20) for _ in range(n_outputs * k * m)])
    first = np.asarray([random.randrange(-int(own), int(own) + 1) for own in second])
    cells = np.stack([first.reshape(n_outputs, k, m), second.reshape(n_outputs, k, m)], axis=1)

    def gain(a: int, b: int) -> Fraction:
        total = Fraction(0)
        for own in cells:
            parts = (own[:, :a, :b], own[:, :a, b:], own[:, a:, :b], own[:, a:, b:])
            for g, h in (part.sum(axis=(1, 2)).tolist() for part in parts):
                total += Fraction(g * g) / max(Fraction(h) + Fraction(l2), Fraction(1))
        return total

    found = best_quadrants(cells, l2)
    best = max(gain(a, b) for a in range(1, k) for b in range(1, m))
    assert gain(*found.place) >= best * (1 - Fraction(1, 2**48))
    assert abs(Fraction(found.score) - best) <= best / 2**48
    np.testing.assert_array_equal(found.sums.sum(axis=0), cells.sum(axis=(2, 3)))
    turned = best_quadrants(cells.swapaxes(2, 3), l2)  # whichever feature is the first
    assert turned.score == found.score
    candidates = np.asarray([[1, m - 1], [k - 1, 1]])
    scores = [best_quadrants(cells, l2, own[None]).score for own in candidates]
    assert best_quadrants(cells, l2, candidates).score == max(scores) <= found.score


def test_the_work_of_all_classes_is_weighed_against_loading_the_kernels(monkeypatch):
    found = []
    monkeypatch.setattr(
        pair_runs, "cpu_kernels_take", lambda X, seconds, stage: found.append(seconds)
    )
    for loss in ("logistic", "softmax"):
        made = Made(loss)
        given = made.labels, made.weights, made.rule.objective(), made.beginning()
        pair_runs.pair_run(made.bins, N_BINS, *given, 100)
    assert found[1] == 3 * found[0]


@by_kernels
def test_steps_are_added_to_other_samples_alike_by_kernels_and_arrays(kernels: str):
    made = Made("softmax")
    steps = turns_of(made.kernels(), made, 1, 0)[0]
    start = np.zeros((3, 90))
    one = made.kernels(kernels).added(start.copy(), made.bins, PAIRS, steps)
    np.testing.assert_array_equal(one, made.reference().added(start, made.bins, PAIRS, steps))
    assert one.any()
