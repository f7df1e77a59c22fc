"""Rounds whose regions vote numbers of their own: records, models so far, going on from them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from backends import Backend

from gpustump import RegionRound, boost
from gpustump.learners.split import Split

OPTIONS = [
    {"votes": "real"},
    {"votes": "newton", "learning_rate": 0.3},
    {"votes": "newton", "learning_rate": 0.3, "l2_regularization": 1.0},
]
EVERY = pytest.mark.parametrize("options", OPTIONS, ids=["real", "newton", "newton-l2"])


def noisy(seed: int = 0, n_samples: int = 80, missing: float = 0.1):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_samples, 3))
    y = np.where(X[:, 0] - X[:, 1] ** 2 + random.normal(scale=0.7, size=n_samples) > -1, 1, -1)
    X[random.random(X.shape) < missing] = np.nan
    return X, y, random.integers(1, 50, size=n_samples).astype(float)


@EVERY
def test_the_model_so_far_has_the_training_error_of_its_last_record(options):
    X, y, w = noisy()
    run = boost(X, y, w, n_rounds=12, **options)
    for record in run:
        assert isinstance(record, RegionRound)
        wrong = run.model.predict(X) != y
        assert record.training_error == w[wrong].sum() / w.sum()
        assert len(run.model.members[0]) == record.number == run.n_done
    assert (record.number, run.stop_reason) == (12, "limit")


def test_newton_votes_start_from_half_the_log_odds_of_the_labels():
    X, y, w = noisy()
    run = boost(X, y, w, votes="newton")
    share = w[y == 1].sum() / w.sum()
    assert run.constant[0] == pytest.approx(math.log(share / (1 - share)) / 2, abs=2.0**-36)
    assert run.model.decision_function(X[:3]).tolist() == [run.constant[0]] * 3
    for votes in ("real", "discrete"):
        assert boost(X, y, w, votes=votes).constant == (0.0,)


@EVERY
@pytest.mark.parametrize("done", [0, 1, 5, 12])
def test_resumed_rounds_have_the_same_records_and_go_on_the_same_way(options, done):
    X, y, w = noisy(6)
    whole = list(boost(X, y, w, n_rounds=12, **options))
    run = boost(X, y, w, n_rounds=12, **options)
    known = run.resume([r.stump for r in whole[:done]], [r.votes for r in whole[:done]])
    assert list(known) == whole[:done]
    assert list(run) == whole[done:]
    assert run.stop_reason == "limit"


@EVERY
def test_resuming_in_another_library_goes_on_bit_for_bit(backend: Backend, options):
    X, y, w = noisy(6, n_samples=40)
    uninterrupted = boost(X, y, w, n_rounds=5, **options)
    whole = list(uninterrupted)
    run = boost(*(backend.asarray(part) for part in (X, y, w)), n_rounds=5, **options)
    known = run.resume([r.stump for r in whole[:3]], [r.vote for r in whole[:3]])
    assert [*known, *run] == whole
    assert run.model.digest() == uninterrupted.model.digest()


@EVERY
def test_resumed_votes_are_used_as_given(options):
    """The records describe the given votes, not the best ones."""
    X, y, w = noisy(2)
    run = boost(X, y, w, **options)
    votes = ((0.25,), (-0.5,), (0.125,))
    (record,) = run.resume([Split(1, 0.0)], [votes])
    assert record.votes == votes
    column = X[:, 1]
    added = np.where(np.isnan(column), 0.125, np.where(column <= 0, 0.25, -0.5))
    scores = run.model.decision_function(X)
    np.testing.assert_array_equal(scores, run.constant[0] + added)
    wrong = w[(scores > 0) != (y > 0)].sum() / w.sum()
    assert record.training_error == wrong
    if options["votes"] == "real":
        expected = (w * np.exp(-y * added)).sum() / w.sum()
        assert record.normaliser == pytest.approx(expected, rel=1e-12)
        assert record.training_bound == record.normaliser
        np.testing.assert_allclose(
            np.asarray(run.weights) / np.asarray(run.weights).sum(),
            w * np.exp(-y * added) / (w * np.exp(-y * added)).sum(),
            rtol=1e-9,
        )
    else:
        assert (record.normaliser, record.training_bound) == (None, None)
        wrong_share = 1 / (1 + np.exp(2 * y * scores))
        expected = w * wrong_share * (1 - wrong_share)
        found = np.asarray(run.weights)
        np.testing.assert_allclose(found / found.sum(), expected / expected.sum(), rtol=1e-9)


@EVERY
def test_a_vote_is_needed_for_every_split(options):
    X, y, w = noisy()
    (record,) = boost(X, y, w, n_rounds=1, **options)
    with pytest.raises(ValueError, match=r"shorter|longer"):
        boost(X, y, w, **options).resume([record.stump], [])


@EVERY
def test_a_run_that_was_interrupted_within_a_round_does_not_go_on(options, monkeypatch):
    X, y, w = noisy()
    run = boost(X, y, w, **options)
    next(run)

    def interrupt(step):
        raise KeyboardInterrupt

    monkeypatch.setattr(run._state, "advance", interrupt)
    with pytest.raises(KeyboardInterrupt):
        next(run)
    monkeypatch.undo()
    with pytest.raises(RuntimeError, match="interrupted in the middle of a round"):
        next(run)


@EVERY
def test_a_callback_ends_the_run_after_its_round(options):
    X, y, w = noisy()
    seen = []

    def stop_at_3(record):
        seen.append(record)
        return record.number == 3

    run = boost(X, y, w, callback=stop_at_3, **options)
    assert list(run) == seen
    assert (len(seen), run.stop_reason) == (3, "callback")


@EVERY
def test_the_scores_of_rounds_never_fall_short_of_other_splits_of_that_round(options):
    """A round's split is worth at least what any known split is worth under the same weights."""
    X, y, w = noisy(4)
    first, second, *_ = boost(X, y, w, n_rounds=3, **options)
    run = boost(X, y, w, **options)
    for feature in range(3):
        for threshold in (-0.5, 0.0, 0.7):
            other = boost(X, y, w, **options)
            votes = ((0.5,), (-0.5,), (0.25,))
            (record,) = other.resume([Split(feature, threshold)], [votes])
            assert record.score <= first.score
    run.resume([first.stump], [first.votes])
    assert next(run) == second


@EVERY
@pytest.mark.parametrize("learning_rate", [1e-13, 5e-324])
def test_a_learning_rate_too_low_for_any_vote_ends_with_that_reason(options, learning_rate):
    X, y, w = noisy()
    run = boost(X, y, w, **(options | {"learning_rate": learning_rate}))
    assert list(run) == []
    assert run.stop_reason == "small vote"


@EVERY
@pytest.mark.parametrize("learning_rate", [1e7, 1e300])
def test_a_learning_rate_too_high_for_any_vote_ends_with_that_reason(options, learning_rate):
    X, y, w = noisy()
    run = boost(X, y, w, **(options | {"learning_rate": learning_rate}))
    assert list(run) == []
    assert run.stop_reason == "large votes"


@EVERY
def test_without_an_edge_there_is_no_round(options):
    X = np.asarray([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    run = boost(X, [1, -1, -1, 1], **options)
    assert list(run) == []
    assert run.stop_reason == "no edge"


def test_a_newton_score_that_no_float_can_hold_is_infinite_and_boosting_goes_on():
    """Weights near 1e300, and samples far on the wrong side after a vote of nearly 100."""
    X = np.asarray([[0.0], [0.0], [0.0], [1.0], [1.0], [1.0]])
    w = np.asarray([3e300, 1e300, 1e300, 1e300, 1e300, 3e300])
    run = boost(X, [1, -1, 1, -1, 1, -1], w, votes="newton", learning_rate=300.0, n_rounds=6)
    scores = [record.score for record in run]
    assert run.stop_reason == "limit"
    assert math.inf in scores
    assert not any(map(math.isnan, scores))
    assert np.isfinite(run.model.decision_function(X)).all()
    # In another unit of two everything else is the same.
    small = boost(X, [1, -1, 1, -1, 1, -1], w * 2.0**-900, votes="newton", learning_rate=300.0)
    for record, score in zip(small, scores, strict=False):
        assert math.isfinite(record.score)
        assert math.isinf(score) or math.ldexp(record.score, 900) == score
