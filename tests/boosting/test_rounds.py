"""The rounds of boosting, for every kind of votes: laws, bounds, ends of runs, and going on.

The training error of a round is that of the model's own predictions, the bound holds, a stump has
no edge under the weights that follow it. The integers that the scan adds up are watched in every
round: their sum must stay below 2**62.
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
from rounds import Case
from vote_runs import KINDS, boosting, drawn_case, facts, kinds

from gpustump import arrays, boost
from gpustump.boosting.votes.discrete import vote_of
from gpustump.boosting.votes.newton import NewtonVotes
from gpustump.boosting.votes.votes import Taken
from gpustump.engines.contract import Totals
from gpustump.engines.reference.softmax_loss import SoftmaxLoss
from gpustump.learners.hypothesis import regions
from gpustump.learners.split import Split
from gpustump.learners.step_table import VOTE_UNIT, VOTES_LIMIT

each_kind = pytest.mark.parametrize("kind", KINDS)
exponential_kinds = pytest.mark.parametrize("kind", kinds("real", "discrete"))
STEP = np.asarray([[0.0], [1.0], [2.0], [3.0]]), np.asarray([-1, -1, 1, 1])
SEEDS = st.integers(0, 10**6)


def integers(weights: Any) -> list[list[int]]:
    """What the next round's scan will add up: the weights, rounded up."""
    rows = np.asarray(weights).reshape(len(weights), -1).tolist()
    return [[math.ceil(Fraction(weight)) for weight in row] for row in rows]


@each_kind
@pytest.mark.parametrize("power", [-300, 1, 500])
def test_weights_times_a_power_of_two_change_nothing(kind, power):
    """Newton votes with lambda scaled as well: it is measured in sample weights."""
    case = drawn_case(kind, seed=1, l2=0.5 * (kind in kinds("newton")))
    scale = math.ldexp(1.0, power)
    scaled = replace(case, weights=case.weights * scale, l2=case.l2 * scale)
    one, other = boosting(case), boosting(scaled)
    assert [(r.stump, r.vote) for r in one] == [(r.stump, r.vote) for r in other]
    assert one.model.digest() == other.model.digest()
    assert len(one.model.members[0]) == 12


@each_kind
@hypothesis_settings(max_examples=5)
@given(seed=SEEDS)
def test_the_order_of_the_samples_copies_of_features_and_constant_ones_change_nothing(kind, seed):
    case = drawn_case(kind, seed)
    order = np.random.default_rng(seed).permutation(50)
    more = np.concatenate([case.X, case.X, np.full((50, 2), [3.0, np.inf])], axis=1)
    moved = replace(case, X=more[order], y=case.y[order], weights=case.weights[order])
    assert facts(boosting(moved)) == facts(boosting(case))


@each_kind
@hypothesis_settings(max_examples=5)
@given(seed=SEEDS)
def test_the_order_of_the_values_is_all_that_counts(kind, seed):
    """Each feature through an increasing function: the same regions, votes and scores."""
    case = drawn_case(kind, seed)
    changed = replace(case, X=np.arctan(case.X) * 5.0 + 1.0)
    one, other = boosting(case), boosting(changed)
    for record, its in zip(one, other, strict=True):
        assert replace(record, stump=its.stump) == its
        assert np.array_equal(
            regions(record.stump, case.X[:, record.stump.feature]),
            regions(its.stump, changed.X[:, its.stump.feature]),
        )


@exponential_kinds
@hypothesis_settings(max_examples=20)
@given(seed=SEEDS, rate=st.sampled_from([0.1, 1.0, 1.7, 4.0]))
def test_the_training_error_never_exceeds_its_bound(kind, seed, rate):
    """At high rates some weights fall below the integers' last bit, and return."""
    case = replace(drawn_case(kind, seed), learning_rate=rate)
    product = 1.0 if case.n_outputs == 1 else case.n_outputs / 2
    for record in boosting(case, n_rounds=20):
        product *= record.normaliser
        assert record.training_bound == pytest.approx(product, rel=1e-12)
        assert record.training_error <= record.training_bound * (1 + 1e-12)
        if kind == "discrete" and rate == 1.0 and record.error > 0:
            z = 2 * math.sqrt(record.error * (1 - record.error))
            assert record.normaliser == pytest.approx(z, rel=1e-9)


@exponential_kinds
@hypothesis_settings(max_examples=6)
@given(seed=SEEDS)
def test_a_records_z_is_the_ratio_of_the_weights_after_and_before_the_votes(kind, seed):
    """The sums of exp(-y v) under the integer weights, by decimals of 40 digits."""
    case = drawn_case(kind, seed)
    run = boosting(case, n_rounds=6)
    while True:
        weights, record = integers(run.weights), next(run, None)
        if record is None or run.stop_reason == "perfect":
            return
        region, total = regions(record.stump, case.X[:, record.stump.feature]), Decimal(0)
        signs = record.stump.predict(case.X) if kind == "discrete" else None
        for number, own in enumerate(weights):
            for output, weight in enumerate(own):
                if signs is None:
                    vote = record.votes[region[number]][output]
                else:
                    vote = float(signs[number]) * record.vote
                is_own = case.y[number] == (output if case.n_outputs > 1 else 1.0)
                total += weight * (Decimal(-vote if is_own else vote)).exp()
        exactly = total / sum(map(sum, weights))
        assert abs(Decimal(record.normaliser) / exactly - 1) < Decimal("3e-16")


@hypothesis_settings(max_examples=60)
@given(SEEDS)
def test_a_stump_has_no_edge_under_the_weights_that_follow_it(seed):
    case = drawn_case("discrete", seed)
    run = boosting(case, n_rounds=10)
    for record in run:
        if run.stop_reason is not None:
            break
        weights = [own for (own,) in integers(run.weights)]
        right = record.stump.predict(case.X) == case.y
        correct = sum(itertools.compress(weights, right))
        # Votes are rounded to 2**-36, and so is the edge that is left.
        assert abs(Fraction(correct, sum(weights)) - Fraction(1, 2)) <= Fraction(1, 2**36)


@each_kind
@pytest.mark.parametrize("rate", [0.3, 1.0, 1.5])
def test_the_training_error_is_that_of_the_predictions_of_the_model_so_far(kind, rate):
    case = replace(drawn_case(kind, seed=5), learning_rate=rate)
    run = boosting(case, n_rounds=15)
    for number, record in enumerate(run, start=1):
        wrong = run.model.predict(case.X) != case.y
        assert record.training_error == case.weights[wrong].sum() / case.weights.sum()
        assert record.number == run.n_done == len(run.model.members[0]) == number
    assert (number, run.stop_reason, next(run, None)) == (15, "limit", None)


def test_shared_signs_are_not_perfect_where_a_class_lies_in_neither_left_nor_right():
    """Class 0 has no values: left and right have opposite signs for it, so one of them is wrong."""
    X = np.asarray([[0.0], [0.1], [1.0], [1.1], [1.2], [np.nan]])
    case = Case(X, np.asarray([1, 1, 2, 2, 2, 0]), np.ones(6), n_outputs=3)
    records = list(boosting(case, n_rounds=10))
    assert records[0].training_error > 0
    assert len(records) > 1
    assert records[-1].training_error == 0
    real = boosting(replace(case, votes="real"), n_rounds=10)
    assert [record.training_error for record in real] == [0.0]
    assert real.stop_reason == "perfect"


@each_kind
def test_rates_too_low_or_too_high_for_any_vote_end_a_run_with_that_reason(kind):
    """Also where present and missing values are parted, whose sums cancel out."""
    case = drawn_case(kind, seed=3)
    values = np.where(case.y == case.y[0], 1.0, np.nan)[:, np.newaxis]
    for rate, X in itertools.product((5e-324, 1e-14, 1e7, 1e300), (case.X, values)):
        run = boosting(replace(case, X=X, weights=np.ones(len(X)), learning_rate=rate))
        assert list(run) == []
        assert run.stop_reason == ("small vote" if rate < 1 else "large votes")


@pytest.mark.parametrize("kind", ["discrete", "real", "newton", "shared newton"])
def test_there_is_no_edge_if_every_value_has_equally_many_samples_of_each_class(
    backend: Backend, kind
):
    """Only these kinds: the others weigh each class against more samples of the rest."""
    votes, n_outputs = KINDS[kind]
    classes = [-1.0, 1.0] if n_outputs == 1 else list(range(n_outputs))
    X, y = (np.asarray(part) for part in zip(*itertools.product([0.0, 1.0], classes), strict=True))
    case = Case(X[:, np.newaxis], y, np.ones(len(y)), votes=votes, n_outputs=n_outputs)
    run = boosting(case, backend=backend)
    assert list(run) == []
    assert run.stop_reason == "no edge"


def test_boosting_ends_after_a_perfect_stump_new_or_known(backend: Backend):
    """It votes as if half the lightest sample were wrong."""
    for weights, odds in (([1.0] * 4, 7), ([4.0, 2.0, 1.0, 1.0], 15)):
        given = [backend.asarray(part) for part in (*STEP, np.asarray(weights))]
        run, again = boost(*given, n_rounds=10), boost(*given, n_rounds=10)
        (record,) = run
        assert (record.error, record.edge, record.training_error) == (0.0, 0.5, 0.0)
        assert record.stump.threshold == 1.5
        assert record.vote == pytest.approx(0.5 * math.log(odds), abs=VOTE_UNIT)
        assert record.normaliser == pytest.approx(math.exp(-record.vote))
        again.resume([record.stump], [record.vote])
        assert list(again) == []
        assert run.stop_reason == again.stop_reason == "perfect"


def test_a_stump_that_misses_a_featherweight_sample_is_not_called_perfect():
    """Its weight is below the integers' last bit; the formula would still have boosting go on."""
    X, y, w = np.asarray([[0.0], [1.0], [2.0]]), np.asarray([1, -1, 1]), [1.0, 1.0, 1e-30]
    run = boost(X, y, w, n_rounds=5)
    list(run)
    assert (run.model.predict(X) == y).all() or run.stop_reason != "perfect"


def test_votes_never_sum_to_more_than_float64_can_add_exactly():
    run = boosting(replace(drawn_case("discrete", 0), learning_rate=40_000.0), n_rounds=999)
    votes = [record.vote for record in run]
    assert 0 < sum(votes) <= VOTES_LIMIT
    assert run.stop_reason in ("large votes", "perfect")
    assert all((vote / VOTE_UNIT).is_integer() for vote in votes)


@hypothesis_settings(max_examples=100)
@given(st.integers(1, 2**60), st.integers(0, 2**61), st.floats(1e-3, 4.0))
def test_votes_are_the_formula_to_the_nearest_unit(wrong, more, learning_rate):
    vote = vote_of(wrong, 2 * wrong + more, learning_rate)
    expected = learning_rate / 2 * math.log1p(more / wrong)
    assert (vote / VOTE_UNIT).is_integer()
    assert vote == pytest.approx(expected, rel=1e-14, abs=0.5000001 * VOTE_UNIT)


@pytest.mark.parametrize("kind", ["real", "newton"])
def test_resumed_votes_are_used_as_given(kind):
    """The records describe the given votes, not the best ones."""
    case = drawn_case(kind, 2)
    X, y, w = case.X, case.y, case.weights
    run, votes = boosting(case), ((0.25,), (-0.5,), (0.125,))
    (record,) = run.resume([Split(1, 0.0)], [votes])
    assert record.votes == votes
    column = X[:, 1]
    added = np.where(np.isnan(column), 0.125, np.where(column <= 0, 0.25, -0.5))
    scores = run.model.decision_function(X)
    np.testing.assert_array_equal(scores, run.constant[0] + added)
    assert record.training_error == w[(scores > 0) != (y > 0)].sum() / w.sum()
    wrong_share = 1 / (1 + np.exp(2 * y * scores))
    expected = w * wrong_share * (1 - wrong_share)
    if kind == "real":
        expected = w * np.exp(-y * added)
        assert record.normaliser == pytest.approx(expected.sum() / w.sum(), rel=1e-12)
        assert record.training_bound == record.normaliser
    found = np.asarray(run.weights)
    np.testing.assert_allclose(found / found.sum(), expected / expected.sum(), rtol=1e-9)


@pytest.mark.parametrize("kind", ["discrete", "newton"])
def test_a_run_does_not_go_on_after_an_interruption(kind, monkeypatch):
    case = drawn_case(kind, 0)
    given, votes = (case.X, case.y, case.weights), case.votes
    run = boost(*given, votes=votes, callback=lambda record: record.number == 3)
    assert (len(list(run)), run.stop_reason) == (3, "callback")
    run = boost(*given, votes=votes, callback=lambda record: None)
    next(run)

    def interrupt(step: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(run._state, "advance", interrupt)
        with pytest.raises(KeyboardInterrupt):
            next(run)
    with pytest.raises(RuntimeError, match="interrupted in the middle of a round"):
        next(run)


@st.composite
def adversarial(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Few samples with weights over the whole range of float64."""
    n_samples = draw(st.integers(2, 12))
    exponents = st.integers(-1022, 1023) | st.sampled_from([-1022, 0, 1023])
    one = st.builds(math.ldexp, st.floats(1.0, 1.99), exponents)
    weights = draw(st.lists(one, min_size=n_samples, max_size=n_samples))
    y = draw(st.lists(st.sampled_from([-1, 1]), min_size=n_samples, max_size=n_samples))
    y[:2] = [1, -1]
    cells = st.integers(0, 3).map(float)
    X = draw(st.lists(st.tuples(cells, cells), min_size=n_samples, max_size=n_samples))
    return np.asarray(X), np.asarray(y), np.asarray(weights)


@hypothesis_settings(max_examples=40)
@given(adversarial(), st.sampled_from([1e-6, 0.5, 1.0, 3.0, 1000.0, 30_000.0]))
def test_integer_weights_always_sum_to_just_under_2_to_62(sample, learning_rate):
    """A sum that sank with the rounds would lose precision as quietly as an overflow."""
    X, y, w = sample
    run = boost(X, y, w, learning_rate=learning_rate, n_rounds=30)
    assert 2**60 <= sum(own for (own,) in integers(run.weights)) < 2**62
    for record in run:
        weights = np.asarray(run.weights)
        assert np.isfinite(weights).all()
        assert (weights > 0).all()
        total = sum(own for (own,) in integers(weights))
        assert total < 2**62
        assert total >= 2**60 or learning_rate > 1.0 or run.stop_reason is not None
        assert record.training_error <= record.training_bound * (1 + 1e-12)


def test_a_newton_score_that_no_float_can_hold_is_infinite_and_boosting_goes_on():
    """Weights near 1e300, and samples far on the wrong side after a vote of nearly 100."""
    X = np.asarray([[0.0], [0.0], [0.0], [1.0], [1.0], [1.0]])
    w = np.asarray([3e300, 1e300, 1e300, 1e300, 1e300, 3e300])
    how: dict[str, Any] = {"votes": "newton", "learning_rate": 300.0, "n_rounds": 6}
    run = boost(X, [1, -1, 1, -1, 1, -1], w, **how)
    scores = [record.score for record in run]
    assert run.stop_reason == "limit"
    assert math.inf in scores
    assert not any(map(math.isnan, scores))
    # In another unit of two everything else is the same.
    small = boost(X, [1, -1, 1, -1, 1, -1], w * 2.0**-900, **how)
    for record, score in zip(small, scores, strict=True):
        assert math.isfinite(record.score)
        assert math.isinf(score) or math.ldexp(record.score, 900) == score


def test_products_that_some_libraries_flush_to_zero_do_not_count(backend: Backend):
    """Of votes down to the floor, then up again by more than other classes' products can hold."""

    def weights_after(asarray: Any, votes_of_rounds: Any) -> Any:
        y, weights, region = map(asarray, (np.asarray([0, 1, 2]), np.ones(3), np.zeros(3, "i8")))
        with arrays.computing_on(weights):
            loss = SoftmaxLoss(y, weights, 3)
            for votes in votes_of_rounds:
                taken = Taken(Split(0, math.inf), (votes,) * 3, Totals(0, 1, 0, 1, 3))
                step = NewtonVotes(1.0, 3, 0.0, 0).change(taken).step
                loss.advance(region, step.votes, step.factors)
            return loss.weights

    rounds = [(-340.0, 0.0, -20.0), (350.0, 0.0, 0.0), (-345.0, 0.0, 0.0), (-30.0, -40.0, 0.0)]
    for n_rounds in range(1, 5):
        found = backend.to_numpy(weights_after(backend.asarray, rounds[:n_rounds]))
        assert np.array_equal(found, weights_after(np.asarray, rounds[:n_rounds]))
