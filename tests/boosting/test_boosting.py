"""The rounds of boosting: what AdaBoost promises about them, when they end, how they are resumed.

Proved against the definitions: the training error of a round is that of the ensemble's own
predictions, the bound holds, a stump has no edge under the weights that follow it. The integers
that the scan adds up are watched in every round: their sum must stay below 2**62.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from backends import Backend
from hypothesis import given, settings
from hypothesis import strategies as st

from gpustump import Boosting, Member, Round, StumpEnsemble, boost, fit_stump
from gpustump.boosting.discrete_votes import vote_of
from gpustump.learners.step_table import VOTE_UNIT, VOTES_LIMIT

XOR = np.asarray([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]), np.asarray([1, -1, -1, 1])
STEP = np.asarray([[0.0], [1.0], [2.0], [3.0]]), np.asarray([-1, -1, 1, 1])


def noisy(seed: int = 0, n_samples: int = 120, n_features: int = 4, missing: float = 0.1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    y = np.where(X[:, 0] - X[:, 1] ** 2 + rng.normal(scale=0.7, size=n_samples) > -1, 1, -1)
    X[rng.random(X.shape) < missing] = np.nan
    return X, y, rng.integers(1, 50, size=n_samples).astype(float)


def ensemble(records: list[Round], n_features: int) -> StumpEnsemble:
    member = Member(tuple(r.stump for r in records), tuple(r.vote for r in records))
    return StumpEnsemble((member,), n_features)


def splits(record: Round) -> tuple[int, float, int, int]:
    stump = record.stump
    return stump.feature, stump.threshold, stump.polarity, stump.missing


def integers(run: Boosting) -> list[int]:
    """The integers that the next round's scan will add up: the weights, rounded up."""
    return [math.ceil(Fraction(weight)) for weight in np.asarray(run.weights).tolist()]


@pytest.mark.parametrize("learning_rate", [1.0, 0.3, 1.5])
@pytest.mark.parametrize("weighted", [False, True])
def test_training_error_is_that_of_the_ensembles_predictions(learning_rate, weighted):
    X, y, w = noisy()
    w = w if weighted else np.ones(len(y))
    records = []
    for record in boost(X, y, w, learning_rate=learning_rate, n_rounds=40):
        records.append(record)
        wrong = ensemble(records, X.shape[1]).predict(X) != y
        assert record.training_error == int(w[wrong].sum()) / int(w.sum())
    assert len(records) == 40
    assert [record.number for record in records] == list(range(1, 41))


def test_training_error_and_bound_are_the_same_in_every_library(backend: Backend):
    X, y, w = noisy(1)
    here = [backend.asarray(a) for a in (X, y, w)]
    assert list(boost(*here, n_rounds=8)) == list(boost(X, y, w, n_rounds=8))


@settings(max_examples=100)
@given(st.integers(0, 10**6), st.sampled_from([0.1, 0.7, 1.0]))
def test_training_error_never_exceeds_its_bound(seed, learning_rate):
    X, y, w = noisy(seed, n_samples=20, n_features=2)
    y[:2] = [1, -1]
    product = 1.0
    for record in boost(X, y, w, learning_rate=learning_rate, n_rounds=15):
        product *= record.normaliser
        assert record.training_bound == product
        assert record.training_error <= record.training_bound
        if learning_rate == 1.0 and record.error > 0:
            assert record.normaliser == pytest.approx(
                2 * math.sqrt(record.error * (1 - record.error)), rel=1e-9
            )
            assert record.normaliser < 1.0


@pytest.mark.parametrize("learning_rate", [1.5, 2.0, 3.0, 4.0])
def test_training_error_never_exceeds_its_bound_at_high_learning_rates(learning_rate):
    """Weights then swing so far that some fall below the integers' last bit, and return."""
    for seed in range(20):
        X, y, w = noisy(seed, n_samples=20, n_features=2)
        y[:2] = [1, -1]
        for record in boost(X, y, w, learning_rate=learning_rate, n_rounds=15):
            assert record.training_error <= record.training_bound, record


@pytest.mark.parametrize("learning_rate", [1.0, 1.5, 2.0, 4.0])
def test_a_stump_called_perfect_predicts_every_sample(learning_rate):
    for seed in range(20):
        X, y, w = noisy(seed, n_samples=20, n_features=2)
        y[:2] = [1, -1]
        run = boost(X, y, w, learning_rate=learning_rate, n_rounds=15)
        *_, last = run
        if run.stop_reason == "perfect":
            assert (last.stump.predict(X) == y).all(), last


def test_a_stump_that_misses_a_featherweight_sample_is_not_called_perfect():
    """Its weight is below the integers' last bit; the formula would still have boosting go on."""
    X, y, w = np.asarray([[0.0], [1.0], [2.0]]), np.asarray([1, -1, 1]), [1.0, 1.0, 1e-30]
    run = boost(X, y, w, n_rounds=5)
    records = list(run)
    assert (ensemble(records, 1).predict(X) == y).all() or run.stop_reason != "perfect"


@settings(max_examples=200)
@given(st.integers(0, 10**6))
def test_a_stump_has_no_edge_under_the_weights_that_follow_it(seed):
    X, y, w = noisy(seed, n_samples=30, n_features=3)
    y[:2] = [1, -1]
    run = boost(X, y, w, n_rounds=10)
    for record in run:
        if run.stop_reason is not None:
            break
        unit_weights = integers(run)
        right = record.stump.predict(X) == y
        correct = sum(
            total for total, is_right in zip(unit_weights, right, strict=True) if is_right
        )
        # Votes are rounded to 2**-36, and so is the edge that is left.
        assert abs(Fraction(correct, sum(unit_weights)) - Fraction(1, 2)) <= Fraction(1, 2**36)


def test_a_stump_is_never_taken_twice_in_a_row():
    X, y, w = noisy(5)
    records = list(boost(X, y, w, n_rounds=60))
    assert len(records) == 60
    assert all(a.stump != b.stump for a, b in itertools.pairwise(records))


def test_boosting_ends_without_a_round_where_no_stump_has_an_edge(backend: Backend):
    run = boost(*(backend.asarray(a) for a in XOR))
    assert run.stop_reason is None
    assert list(run) == []
    assert run.stop_reason == "no edge"
    assert fit_stump(*XOR).error == 0.5


def test_boosting_ends_after_a_perfect_stump(backend: Backend):
    run = boost(*(backend.asarray(a) for a in STEP), n_rounds=10)
    (record,) = run
    assert run.stop_reason == "perfect"
    assert (record.error, record.edge, record.training_error) == (0.0, 0.5, 0.0)
    assert record.stump.threshold == 1.5
    # As if half a sample of four were wrong: e = 1/8, and its odds are 7.
    assert record.vote == pytest.approx(0.5 * math.log(7), abs=VOTE_UNIT)
    assert record.normaliser == pytest.approx(math.exp(-record.vote))


def test_a_perfect_stump_votes_as_if_half_the_lightest_sample_were_wrong(backend: Backend):
    w = np.asarray([4.0, 2.0, 1.0, 1.0])  # half of 1 in 8: e = 1/16, and its odds are 15
    (record,) = boost(*(backend.asarray(a) for a in (*STEP, w)))
    assert record.error == 0.0
    assert record.vote == pytest.approx(0.5 * math.log(15), abs=VOTE_UNIT)


def test_boosting_ends_at_its_limit():
    X, y, w = noisy()
    run = boost(X, y, w, n_rounds=3)
    assert [record.number for record in run] == [1, 2, 3]
    assert run.stop_reason == "limit"
    assert next(run, None) is None


def test_a_callback_sees_every_round_and_ends_the_boosting():
    X, y, w = noisy()
    seen = []

    def stop_at_four(record: Round) -> bool:
        seen.append(record)
        return record.number == 4

    run = boost(X, y, w, callback=stop_at_four, n_rounds=9)
    assert list(run) == seen
    assert len(seen) == 4
    assert run.stop_reason == "callback"
    silent = boost(X, y, w, callback=seen.append, n_rounds=2)  # returns None: goes on
    assert len(list(silent)) == 2


def test_votes_never_sum_to_more_than_float64_can_add_exactly():
    X, y, w = noisy()
    run = boost(X, y, w, learning_rate=40_000.0)
    votes = [record.vote for record in run]
    assert 0 < sum(votes) <= VOTES_LIMIT
    assert run.stop_reason in ("large votes", "perfect")
    assert all((vote / VOTE_UNIT).is_integer() for vote in votes)


@pytest.mark.parametrize("learning_rate", [1e20, 1e300, 1.7e308])
def test_a_vote_beyond_the_limit_ends_the_boosting(learning_rate):
    X, y, w = noisy()
    run = boost(X, y, w, learning_rate=learning_rate)
    assert list(run) == []
    assert run.stop_reason == "large votes"


def test_learning_rate_scales_the_first_vote_and_nothing_else_of_it():
    X, y, w = noisy()
    (full,), (half,) = (list(boost(X, y, w, learning_rate=r, n_rounds=1)) for r in (1.0, 0.5))
    assert half.stump == full.stump
    assert half.error == full.error
    assert half.vote == pytest.approx(full.vote / 2, abs=VOTE_UNIT)
    assert half.normaliser > full.normaliser


@settings(max_examples=300)
@given(st.integers(1, 2**60), st.integers(0, 2**61), st.floats(1e-3, 4.0))
def test_votes_are_the_formula_to_the_nearest_unit(wrong, more, learning_rate):
    total = 2 * wrong + more
    vote = vote_of(wrong, total, learning_rate)
    expected = learning_rate / 2 * math.log1p(more / wrong)
    assert (vote / VOTE_UNIT).is_integer()
    assert vote == pytest.approx(expected, rel=1e-14, abs=0.5000001 * VOTE_UNIT)


@pytest.mark.parametrize("power", [-900, -30, 3, 800])
def test_weights_in_another_unit_of_two_give_the_same_rounds(power):
    X, y, w = noisy()
    scaled = list(boost(X, y, w * 2.0**power, n_rounds=12))
    assert scaled == list(boost(X, y, w, n_rounds=12))


def test_equal_weights_are_no_weights():
    X, y, _ = noisy()
    plain = list(boost(X, y, n_rounds=6))
    assert list(boost(X, y, 4, n_rounds=6)) == plain
    assert list(boost(X, y, np.full(len(y), 2.0**-1000), n_rounds=6)) == plain
    # Another unit than a power of two changes the last bits of the integers, and so of the errors.
    for unit in (3.7, 1e-300):
        other = list(boost(X, y, np.full(len(y), unit), n_rounds=6))
        assert other[0] == plain[0]
        assert [splits(r) for r in other] == [splits(r) for r in plain]
        assert [r.error for r in other] == pytest.approx([r.error for r in plain], rel=1e-12)


def test_a_sample_of_weight_zero_is_as_if_it_were_not_there(backend: Backend):
    X, y, w = noisy(3)
    w[::3] = 0.0
    w[1] = 5e-324  # below the smallest normal number: counts as zero
    kept = w > 1e-300
    records = list(boost(*(backend.asarray(a) for a in (X, y, w)), n_rounds=6))
    assert records == list(boost(X[kept], y[kept], w[kept], n_rounds=6))


def test_a_sample_of_weight_two_is_two_samples():
    X, y, w = noisy(4, n_samples=40)
    w = np.where(w > 25, 2, 1)
    weighted = list(boost(X, y, w, n_rounds=8))
    repeated = list(boost(np.repeat(X, w, axis=0), np.repeat(y, w), n_rounds=8))
    assert [r.stump.feature for r in weighted] == [r.stump.feature for r in repeated]
    assert [r.stump.threshold for r in weighted] == [r.stump.threshold for r in repeated]
    assert weighted[0].error == repeated[0].error
    assert [r.error for r in weighted] == pytest.approx([r.error for r in repeated], rel=1e-9)


@pytest.mark.parametrize("learning_rate", [1.0, 0.5])
@pytest.mark.parametrize("done", [0, 1, 7, 20])
def test_resumed_rounds_are_those_of_an_uninterrupted_run(done, learning_rate):
    X, y, w = noisy(6)
    whole = list(boost(X, y, w, learning_rate=learning_rate, n_rounds=20))
    run = boost(X, y, w, learning_rate=learning_rate, n_rounds=20)
    run.resume([r.stump for r in whole[:done]], [r.vote for r in whole[:done]])
    assert list(run) == whole[done:]
    assert run.stop_reason == "limit"


def test_resuming_in_another_library_goes_on_bit_for_bit(backend: Backend):
    X, y, w = noisy(6)
    whole = list(boost(X, y, w, n_rounds=9))
    run = boost(*(backend.asarray(a) for a in (X, y, w)), n_rounds=9)
    run.resume([r.stump for r in whole[:4]], [r.vote for r in whole[:4]])
    assert list(run) == whole[4:]


def test_nothing_follows_a_resumed_perfect_stump():
    (record,) = boost(*STEP)
    run = boost(*STEP)
    run.resume([record.stump], [record.vote])
    assert list(run) == []
    assert run.stop_reason == "perfect"


def test_resuming_needs_a_vote_for_every_stump():
    X, y, w = noisy()
    (record,) = boost(X, y, w, n_rounds=1)
    with pytest.raises(ValueError, match=r"shorter|longer"):
        boost(X, y, w).resume([record.stump], [])


@st.composite
def adversarial(draw: st.DrawFn):
    """Few samples with weights over the whole range of float64, and an extreme learning rate."""
    n_samples = draw(st.integers(2, 12))
    exponents = st.integers(-1022, 1023) | st.sampled_from([-1022, 0, 1023])
    one = st.builds(math.ldexp, st.floats(1.0, 1.99), exponents)
    weights = draw(st.lists(one, min_size=n_samples, max_size=n_samples))
    y = draw(st.lists(st.sampled_from([-1, 1]), min_size=n_samples, max_size=n_samples))
    y[:2] = [1, -1]
    cells = st.integers(0, 3).map(float)
    X = draw(st.lists(st.tuples(cells, cells), min_size=n_samples, max_size=n_samples))
    return np.asarray(X), np.asarray(y), np.asarray(weights)


@settings(max_examples=150)
@given(adversarial(), st.sampled_from([1e-6, 0.5, 1.0, 3.0, 1000.0, 30_000.0]))
def test_integer_weights_always_sum_to_just_under_2_to_62(sample, learning_rate):
    X, y, w = sample
    run = boost(X, y, w, learning_rate=learning_rate, n_rounds=30)
    first = sum(integers(run))
    assert 2**60 <= first < 2**62
    for _ in run:
        weights = np.asarray(run.weights)
        assert np.isfinite(weights).all()
        assert (weights > 0).all()
        assert sum(integers(run)) < 2**62


@settings(max_examples=100)
@given(st.integers(0, 10**6), st.sampled_from([0.3, 1.0]))
def test_integer_weights_keep_60_bits_in_every_round(seed, learning_rate):
    """A sum that sank with the rounds would lose precision as quietly as an overflow."""
    X, y, w = noisy(seed, n_samples=30, n_features=2)
    y[:2] = [1, -1]
    run = boost(X, y, w, learning_rate=learning_rate, n_rounds=15)
    for _ in run:
        if run.stop_reason is None:
            assert 2**60 <= sum(integers(run)) < 2**62


def test_one_heavy_sample_leaves_the_others_their_bits():
    """One sample of 10**15 among 10**5: the light ones still count, to the last of them."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 50, size=(100_000, 1)).astype(np.float32)
    y = np.where(rng.random(100_000) < 0.5, 1, -1)
    w = np.ones(100_000)
    w[7] = 1e15
    stump = fit_stump(X, y, w)
    wrong = stump.predict(X) != y
    assert not wrong[7]
    assert stump.error == int(wrong.sum()) / (10**15 + 99_999)


def test_extreme_sums_of_signed_weights_do_not_overflow():
    """Two samples that hold the whole weight, one on each side of every cut."""
    X = np.asarray([[0.0], [1.0], [2.0], [np.nan]])
    for w in ([1e308, 1e-300, 1e308, 1e308], [1.0, 1.0, 1e-30, 1e-30], [1e-30, 1.0, 1.0, 1.0]):
        for signs in range(1, 15):
            y = [1 if signs >> i & 1 else -1 for i in range(4)]
            stump = fit_stump(X, y, w)
            total = sum(map(Fraction, w))
            wrong = sum(Fraction(w[i]) for i in np.flatnonzero(stump.predict(X) != y))
            assert 0.0 <= stump.error <= 0.5
            assert stump.error == pytest.approx(float(wrong / total), abs=1e-18)


def test_the_model_so_far_can_be_taken_at_any_round():
    X, y, w = noisy()
    run = boost(X, y, w, n_rounds=6)
    for record in run:
        model = run.model
        assert len(model.members[0]) == record.number
        wrong = model.predict(X) != y
        assert w[wrong].sum() / w.sum() == pytest.approx(record.training_error, abs=1e-12)
    resumed = boost(X, y, w, n_rounds=9)
    resumed.resume(model.members[0].stumps, model.members[0].votes)
    assert resumed.model == model


def test_a_learning_rate_too_low_for_any_vote_is_told_from_having_no_edge():
    X, y, w = noisy()
    run = boost(X, y, w, learning_rate=1e-13)
    assert list(run) == []
    assert run.stop_reason == "small vote"


def test_the_bound_holds_with_a_sample_that_weighs_next_to_nothing():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = np.where(X[:, 0] > 0, 1, -1)
    y[:3] = -y[:3]
    X, y = np.concatenate([X, X[10:11]]), np.append(y, -y[10])
    w = np.append(np.ones(40), 1e-300)
    for record in boost(X, y, w, n_rounds=400):
        assert record.training_error <= record.training_bound


def test_the_repr_tells_how_many_rounds_are_done():
    rounds = boost([[0.0], [1.0], [2.0], [3.0]], [-1, 1, -1, 1], n_rounds=2)
    assert repr(rounds) == "<Boosting: 0 of 2 rounds done, iterate over it for more>"
    list(rounds)
    assert repr(rounds) == "<Boosting: 2 of 2 rounds done, stopped: limit>"
