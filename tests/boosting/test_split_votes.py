"""Votes of regions: the laws that they obey, when runs end, and what records say.

Real votes, Newton votes and votes that several classes share, on the reference engine.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from backends import Backend
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from vote_runs import KINDS, Samples, boosting, drawn_samples, facts, kinds

from gpustump.boosting.vote_settings import VoteSettings
from gpustump.learners.hypothesis import regions

each_kind = pytest.mark.parametrize("kind", KINDS)
exponential_kinds = pytest.mark.parametrize("kind", kinds("real", "discrete"))


@each_kind
@pytest.mark.parametrize("power", [-300, -7, 1, 500])
def test_weights_times_a_power_of_two_change_nothing(kind, power):
    """Newton votes with lambda scaled as well: it is measured in sample weights."""
    settings, samples = drawn_samples(kind, seed=1, l2=0.5)
    scale = math.ldexp(1.0, power)
    scaled = replace(settings, l2_regularization=0.5 * scale)
    many = samples._replace(weights=samples.weights * scale)
    one, other = boosting(settings, samples), boosting(scaled, many)
    assert [(r.stump, r.votes) for r in one] == [(r.stump, r.votes) for r in other]
    assert one.model.digest() == other.model.digest()
    assert len(one.model.members[0]) == 12


@each_kind
def test_integer_weights_are_worth_so_many_copies_of_a_sample(kind):
    """But for the smoothing of real votes, which depends on the number of samples."""
    settings, samples = drawn_samples(kind, seed=2)
    counts = np.random.default_rng(0).integers(1, 5, len(samples.y))
    weighted = samples._replace(weights=counts.astype(np.float64))
    copied = Samples(
        np.repeat(samples.X, counts, axis=0), np.repeat(samples.y, counts),
        np.ones(counts.sum()), samples.n_outputs,
    )  # fmt: skip
    one, other = next(boosting(settings, weighted)), next(boosting(settings, copied))
    assert one.stump == other.stump
    if "real" not in kind:
        assert np.allclose(one.votes, other.votes, rtol=1e-9)
    assert one.score == pytest.approx(other.score, rel=1e-12)


@each_kind
@hypothesis_settings(max_examples=5)
@given(seed=st.integers(0, 10**6))
def test_a_copy_of_a_feature_is_never_chosen_over_the_first_one(kind, seed):
    settings, samples = drawn_samples(kind, seed)
    d = samples.X.shape[1]
    X = np.concatenate([samples.X, samples.X], axis=1)
    doubled = boosting(settings, samples._replace(X=X))
    assert facts(doubled) == facts(boosting(settings, samples))
    assert doubled.model.members[0].used_features <= set(range(d))


@each_kind
@hypothesis_settings(max_examples=5)
@given(seed=st.integers(0, 10**6))
def test_the_order_of_the_samples_changes_nothing(kind, seed):
    settings, samples = drawn_samples(kind, seed)
    order = np.random.default_rng(seed).permutation(len(samples.y))
    X, y, weights, n_outputs = samples
    other = boosting(settings, Samples(X[order], y[order], weights[order], n_outputs))
    assert facts(other) == facts(boosting(settings, samples))


@each_kind
@hypothesis_settings(max_examples=5)
@given(seed=st.integers(0, 10**6))
def test_constant_features_change_nothing(kind, seed):
    settings, samples = drawn_samples(kind, seed)
    constant = np.full((len(samples.y), 1), 3.0)
    X = np.concatenate([samples.X, constant, constant * np.inf], axis=1)
    other = boosting(settings, samples._replace(X=X))
    assert facts(other) == facts(boosting(settings, samples))


@each_kind
@hypothesis_settings(max_examples=5)
@given(seed=st.integers(0, 10**6))
def test_the_order_of_the_values_is_all_that_counts(kind, seed):
    """Each feature through an increasing function: the same regions, votes and scores."""
    settings, samples = drawn_samples(kind, seed)
    changed = samples._replace(X=np.arctan(samples.X) * 5.0 + 1.0)
    one, other = boosting(settings, samples), boosting(settings, changed)
    for record, its in zip(one, other, strict=True):
        assert replace(record, stump=its.stump) == its
        for run, split in ((samples, record.stump), (changed, its.stump)):
            regions(split, run.X[:, split.feature])
        assert np.array_equal(
            regions(record.stump, samples.X[:, record.stump.feature]),
            regions(its.stump, changed.X[:, its.stump.feature]),
        )


@exponential_kinds
@hypothesis_settings(max_examples=15)
@given(seed=st.integers(0, 10**6), rate=st.sampled_from([0.1, 1.0, 1.7]))
def test_the_training_error_never_exceeds_its_bound(kind, seed, rate):
    settings, samples = drawn_samples(kind, seed)
    product = 1.0 if samples.n_outputs == 1 else samples.n_outputs / 2
    for record in boosting(replace(settings, learning_rate=rate), samples, n_rounds=20):
        product *= record.normaliser
        assert record.training_bound == pytest.approx(product, rel=1e-12)
        assert record.training_error <= record.training_bound * (1 + 1e-12)


@exponential_kinds
@hypothesis_settings(max_examples=6)
@given(seed=st.integers(0, 10**6))
def test_a_records_z_is_the_ratio_of_the_weights_after_and_before_the_votes(kind, seed):
    """The sums of exp(-y v) under the integer weights, by decimals of 40 digits."""
    settings, samples = drawn_samples(kind, seed)
    run = boosting(settings, samples, n_rounds=6)
    while True:
        weights = integers(run.weights)
        record = next(run, None)
        if record is None:
            return
        region = regions(record.stump, samples.X[:, record.stump.feature])
        total = Decimal(0)
        for number, own in enumerate(weights):
            for output, weight in enumerate(own):
                sign = samples.sign(number, output)
                total += weight * (Decimal(-sign * record.votes[region[number]][output])).exp()
        exactly = total / sum(map(sum, weights))
        assert abs(Decimal(record.normaliser) / exactly - 1) < Decimal("3e-16")


def integers(weights: Any) -> list[list[int]]:
    rows = np.asarray(weights).reshape(len(weights), -1).tolist()
    return [[math.ceil(Fraction(weight)) for weight in row] for row in rows]


@each_kind
@pytest.mark.parametrize("rate", [0.3, 1.0])
def test_the_training_error_is_that_of_the_models_predictions(kind, rate):
    settings, samples = drawn_samples(kind, seed=5)
    run = boosting(replace(settings, learning_rate=rate), samples, n_rounds=15)
    for record in run:
        wrong = run.model.predict(samples.X) != samples.y
        assert record.training_error == samples.weights[wrong].sum() / samples.weights.sum()


def test_shared_signs_are_not_perfect_where_a_class_lies_in_neither_left_nor_right():
    """Class 0 has no values: left and right have opposite signs for it, so one of them is wrong."""
    X = np.asarray([[0.0], [0.1], [1.0], [1.1], [1.2], [np.nan]])
    samples = Samples(X, np.asarray([1, 1, 2, 2, 2, 0]), np.ones(6), 3)
    run = boosting(VoteSettings("discrete"), samples, n_rounds=10)
    records = list(run)
    assert records[0].training_error > 0
    assert len(records) > 1
    assert records[-1].training_error == 0
    real = boosting(VoteSettings("real"), samples, n_rounds=10)
    assert [record.training_error for record in real] == [0.0]
    assert real.stop_reason == "perfect"


@each_kind
def test_a_learning_rate_whose_votes_round_to_zero_is_told_from_no_edge(kind):
    """Also where present and missing values are parted, whose sums cancel out."""
    settings, samples = drawn_samples(kind, seed=3)
    tiny = replace(settings, learning_rate=1e-14)
    values = np.where(samples.y == samples.y[0], 1.0, np.nan)[:, np.newaxis]
    for X in (samples.X, values):
        run = boosting(tiny, samples._replace(X=X, weights=np.ones(len(X))))
        assert list(run) == []
        assert run.stop_reason == "small vote"


@pytest.mark.parametrize("kind", ["real", "newton", "shared newton"])
def test_there_is_no_edge_if_every_value_has_equally_many_samples_of_each_class(kind):
    """Only these kinds: the others weigh each class against more samples of the rest."""
    votes, n_outputs = KINDS[kind]
    run = boosting(VoteSettings(votes), balanced(n_outputs))
    assert list(run) == []
    assert run.stop_reason == "no edge"


def balanced(n_outputs: int) -> Samples:
    """Every value has as many samples of one class as of another."""
    classes = [-1.0, 1.0] if n_outputs == 1 else list(range(n_outputs))
    pairs = list(itertools.product([0.0, 1.0], classes))
    X, y = (np.asarray(part) for part in zip(*pairs, strict=True))
    return Samples(X[:, np.newaxis], y, np.ones(len(y)), n_outputs)


@pytest.mark.parametrize("power", [-1020, -980, 0, 900])
def test_a_record_holds_the_score_in_the_units_of_the_weights_whatever_these_are(power):
    settings = VoteSettings("newton")
    y = np.asarray([1.0, 1.0, -1.0, 1.0, -1.0, -1.0])
    weights = np.full(6, math.ldexp(1.0, power))
    samples = Samples(np.arange(6.0)[:, np.newaxis], y, weights, 1)
    record = next(boosting(settings, samples))
    # Left: A = 3/2 - 0 of 2 samples, right: 1/2 - 3/2 of 4, with B = 1/4 for each sample.
    assert record.score == math.ldexp(1.0 / 0.5 + 1.0 / 1.0, power)


def test_weights_are_the_same_in_every_library_where_a_user_asks_for_them(backend: Backend):
    """Outside of a round, too, where JAX has no 64-bit numbers."""
    if backend.kernels != "reference":
        pytest.skip("the reference's arrays differ by library; kernels have none")
    for kind in kinds("newton"):
        settings, samples = drawn_samples(kind, seed=4)
        here, there = (
            boosting(settings, samples, n_rounds=2, backend=one) for one in (backend, None)
        )
        assert len(list(here)) == len(list(there)) == 2
        assert np.array_equal(backend.to_numpy(here.weights), there.weights)
        assert there.weights.dtype == np.float64


def test_softmax_probabilities_after_huge_votes_are_the_same_in_every_library(backend: Backend):
    """Products below the smallest normal number, which XLA flushes to zero, must not count."""
    from gpustump import arrays
    from gpustump.boosting.newton_votes import NewtonVotes
    from gpustump.boosting.votes import Taken
    from gpustump.engines.contract import Totals
    from gpustump.engines.reference.softmax_loss import SoftmaxLoss
    from gpustump.learners.split import Split

    def weights_after(xp_array, votes_of_rounds):
        y, weights, region = map(xp_array, (np.asarray([0, 1, 2]), np.ones(3), np.zeros(3, "i8")))
        with arrays.computing_on(weights):
            loss = SoftmaxLoss(y, weights, 3)
            for votes in votes_of_rounds:
                taken = Taken(Split(0, math.inf), (votes,) * 3, Totals(0, 1, 0, 1, 3))
                step = NewtonVotes(1.0, 3, 0.0, 0).change(taken).step
                loss.advance(region, step.votes, step.factors)
            return loss.weights

    # Down to the floor, then up again by more than the other classes' products can hold.
    rounds = [(-340.0, 0.0, -20.0), (350.0, 0.0, 0.0), (-345.0, 0.0, 0.0), (-30.0, -40.0, 0.0)]
    for n_rounds in range(1, 5):
        found = backend.to_numpy(weights_after(backend.asarray, rounds[:n_rounds]))
        assert np.array_equal(found, weights_after(np.asarray, rounds[:n_rounds]))
