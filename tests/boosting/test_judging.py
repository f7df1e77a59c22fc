"""Judges: one place with all samples and many places with a group each give the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import cuda_on_cpu
import numpy as np
import pytest
from cuda_on_cpu import OnCpu
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import mean_pinball_loss

from gpustump import Stump
from gpustump.boosting.held_out.judging import Judgement, LocalJudge, added_up, judgement
from gpustump.boosting.held_out.losses import NegativeDeviance, NegativePinball
from gpustump.boosting.held_out.samples import HeldOut, HeldOutTargets
from gpustump.boosting.held_out.scores import scorer
from gpustump.boosting.rounds.stopping import EarlyStopping, Stopping
from gpustump.boosting.votes.votes import Vote
from gpustump.data.parameters import SCORINGS, Link, Scoring
from gpustump.engines.integer_weights import IntegerWeights
from gpustump.learners.category_split import CategorySplit
from gpustump.learners.hypothesis import Partition
from gpustump.learners.interval import Interval
from gpustump.learners.split import Split
from gpustump.learners.step_table import VOTE_UNIT

K = 3

N_FEATURES = 3

ADDITIVE = tuple(scoring for scoring in SCORINGS if scoring != "roc_auc")


class JudgeOfGroups:
    """Asks a local judge for each group, as a cluster does, and has no samples itself."""

    def __init__(self, scoring: Scoring, groups: Sequence[LocalJudge]) -> None:
        self._scoring, self._groups = scoring, groups
        self._totals = added_up([group.totals for group in groups])

    def add(self, hypothesis: Stump, region_votes: np.ndarray) -> None:
        for group in self._groups:
            group.add(hypothesis, region_votes)

    def judged(self) -> Judgement:
        parts = added_up([group.parts() for group in self._groups])
        return judgement(self._scoring, parts, self._totals)


def judges(random: np.random.Generator, n_outputs: int, scoring: Scoring, n_groups: int):
    """The judge of all samples, and that of the groups, some of which may be empty."""
    X = np.round(random.normal(size=(60, N_FEATURES)), 1)
    X[random.random(X.shape) < 0.1] = np.nan
    rows = np.sort(random.choice(60, size=30, replace=False))
    classes = np.arange(30) % max(2, n_outputs)
    weights = IntegerWeights.of(np.exp(random.normal(scale=3.0, size=30)))
    constant = [0.25 * (number + 1) for number in range(n_outputs)]
    everything = HeldOut(classes, weights, n_outputs)
    whole = LocalJudge(X, rows, everything, scorer(scoring, everything), constant)
    group_of = random.integers(n_groups, size=30)
    groups = []
    for number in range(n_groups):
        own = np.flatnonzero(group_of == number)
        mine = IntegerWeights(weights.values[own], weights.total)
        group = HeldOut(classes[own], mine, n_outputs)
        score = scorer(scoring, group)
        groups.append(LocalJudge(X, rows[own], group, score, constant))
    return whole, JudgeOfGroups(scoring, groups)


class Record(NamedTuple):
    """What early stopping reads of a round."""

    stump: Stump
    vote: Vote


def drawn_round(random: np.random.Generator, n_outputs: int) -> Record:
    polarity, missing = random.choice([-1, 1], size=2).tolist()
    at = float(random.normal())
    stump = Stump(int(random.integers(N_FEATURES)), at, polarity, missing, 0.4)
    votes = (random.integers(-8, 9, size=(3, n_outputs)) / 8).tolist()
    return Record(stump, 0.5 if n_outputs == 1 else tuple(map(tuple, votes)))


@pytest.mark.parametrize("n_outputs", [1, K])
@settings(max_examples=30)
@given(st.integers(0, 10**6), st.sampled_from(ADDITIVE), st.integers(1, 4))
def test_a_run_stops_in_the_same_round_wherever_its_samples_are(n_outputs, seed, scoring, n_groups):
    random = np.random.default_rng(seed)
    stopping = Stopping(patience=3, scoring=scoring)
    watches = [EarlyStopping(j, stopping) for j in judges(random, n_outputs, scoring, n_groups)]
    rounds = [drawn_round(random, n_outputs) for _ in range(8)]
    before = rounds[:2]
    for watch in watches:
        watch.resume([r.stump for r in before], [r.vote for r in before])
    ends = [[watch(record) for record in rounds[2:]] for watch in watches]
    whole, apart = watches
    assert ends[0] == ends[1]
    assert (whole.scores, whole.errors) == (apart.scores, apart.errors)
    assert whole.best_round == apart.best_round


@pytest.mark.parametrize("loss", ["poisson", "gamma"])
def test_deviances_add_up_over_groups_of_any_size(loss):
    """Also where a sample is bounded, which depends on the number of all samples."""
    random = np.random.default_rng(3)
    targets, scores = random.gamma(2.0, size=240), np.full(240, -0.5 + 2.0**-30)
    scores[::50] = 90.0 if loss == "poisson" else -90.0  # predicted far too large or too small
    units = random.integers(1, 2**40, 240)

    def deviance_of(rows: slice) -> NegativeDeviance:
        weights = IntegerWeights(units[rows], int(units.sum()))
        return NegativeDeviance(HeldOutTargets(targets[rows], weights, n_of_all_groups=240), loss)

    groups = [(rows, deviance_of(rows)) for rows in (slice(0, 1), slice(1, 100), slice(100, 240))]
    parts = added_up([group.parts(scores[rows]) for rows, group in groups])
    totals = added_up([group.totals for _, group in groups])
    assert NegativeDeviance.value(parts, totals) == deviance_of(slice(240))(scores)


def test_pinball_losses_add_up_over_groups_and_are_scikit_learns():
    random = np.random.default_rng(4)
    targets, scores = np.round(random.uniform(-1.0, 1.0, (2, 240)) * 2**30) * 2.0**-30
    units = random.integers(1, 2**40, 240)

    def loss_of(rows: slice) -> NegativePinball:
        weights = IntegerWeights(units[rows], int(units.sum()))
        return NegativePinball(HeldOutTargets(targets[rows], weights, 240, level=0.8))

    groups = [(rows, loss_of(rows)) for rows in (slice(0, 1), slice(1, 100), slice(100, 240))]
    parts = added_up([group.parts(scores[rows]) for rows, group in groups])
    totals = added_up([group.totals for _, group in groups])
    found = NegativePinball.value(parts, totals)
    assert found == loss_of(slice(240))(scores)
    expected = mean_pinball_loss(targets, scores, sample_weight=units, alpha=0.8)
    assert found == pytest.approx(-expected, rel=1e-10)


WATCHED: tuple[tuple[Scoring, int, Link], ...] = (
    ("loss", 1, "logistic"),
    ("neg_log_loss", 1, "logistic"),
    ("loss", K, "logistic"),
    ("loss", K, "softmax"),
    ("neg_log_loss", K, "softmax"),
    ("neg_mean_squared_error", 0, "identity"),
    ("neg_mean_poisson_deviance", 0, "log"),
    ("neg_mean_gamma_deviance", 0, "log"),
)
"""What a device adds up: scores, numbers of outputs (0 for a quantity), links."""

ELSEWHERE: tuple[tuple[Scoring, int, Link], ...] = (
    ("accuracy", K, "softmax"),
    ("roc_auc", 1, "logistic"),
)
"""What is judged where the table is."""


def drawn_partition(random: np.random.Generator) -> Partition:
    low, high = np.sort(random.normal(size=2)).tolist()
    return [
        Split(int(random.integers(2)), low),
        Split(0, np.inf),
        Interval(1, low, high, 1, -1, 0.4),
        CategorySplit(2, (0, 3, 4), (1, 7)),
    ][random.integers(4)]


@pytest.mark.skipif(bool(cuda_on_cpu.unusable()), reason=str(cuda_on_cpu.unusable()))
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8"])
@pytest.mark.parametrize(("scoring", "n_outputs", "link"), WATCHED + ELSEWHERE)
def test_a_device_judges_as_the_host_does(scoring, n_outputs, link, dtype):
    """Also rows of a file, scores of each sample, votes beyond all tables, and odd weights."""
    for seed in range(6):
        random = np.random.default_rng(seed)
        X = random.normal(size=(500, N_FEATURES)) * 3
        X[:, 2] = random.integers(0, 9, 500)
        if dtype != "int8":
            X[random.random(X.shape) < 0.1] = np.nan
        X = X.astype(dtype)
        rows = None if seed % 2 else random.choice(500, size=300, replace=False)
        n = 500 if rows is None else 300
        weights = IntegerWeights.of(np.exp(random.normal(scale=3.0, size=n)))
        if n_outputs == 0:
            targets = random.gamma(1.0, size=n) * random.choice([1e-3, 1.0, 1e6])
            own = HeldOutTargets(np.rint(targets / VOTE_UNIT) * VOTE_UNIT + VOTE_UNIT, weights)
        else:
            own = HeldOut(np.arange(n) % max(2, n_outputs), weights, n_outputs)
        start = np.rint(random.normal(size=(n, max(1, n_outputs))) / VOTE_UNIT) * VOTE_UNIT
        table = X.view(np.memmap) if seed % 3 == 0 else X
        score, device = scorer(scoring, own, link), OnCpu(threads=1 + seed % 3)
        one = LocalJudge(X, rows, own, score, start)
        other = LocalJudge(table, rows, own, score, start, device=device)
        for number in range(5):
            partition = drawn_partition(random)
            votes = random.integers(-(2**36), 2**36, size=(3, max(1, n_outputs))) * VOTE_UNIT
            votes *= 2.0 ** (6 * number - 6)
            one.add(partition, votes)
            other.add(partition, votes)
            if number != 1:
                assert one.judged() == other.judged()
        assert len(device.launched) == (0 if (scoring, n_outputs, link) in ELSEWHERE else 5)


@pytest.mark.skipif(bool(cuda_on_cpu.unusable()), reason=str(cuda_on_cpu.unusable()))
def test_the_losses_of_many_outputs_do_not_overflow_on_a_device():
    random, n, n_outputs = np.random.default_rng(0), 200, 50
    X = random.normal(size=(n, 3))
    own = HeldOut(np.arange(n) % n_outputs, IntegerWeights.of(np.ones(n)), n_outputs)
    start = np.rint(random.normal(size=(n, n_outputs)) * 2.0**17 / VOTE_UNIT) * VOTE_UNIT
    votes, found = np.zeros((3, n_outputs)), []
    for device in (None, OnCpu()):
        judge = LocalJudge(X, None, own, scorer("loss", own), start, device=device)
        judge.add(Split(0, 0.5), votes)
        found.append(judge.judged())
    assert found[0] == found[1]
    assert found[0].score < -(2**15)
