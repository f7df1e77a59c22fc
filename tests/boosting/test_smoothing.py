"""Smoothing rounds: the cuts that they offer are spread evenly, and they take the best of these."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from classifiers import drawn

from gpustump import LogitBoostClassifier
from gpustump.boosting.rounds.smoothing import Candidates, CutPlaces, Smoothing
from gpustump.engines.category_search import Groups
from gpustump.learners.category_split import CategorySplit
from gpustump.learners.hypothesis import regions
from gpustump.learners.split import Split


def table(seed: int = 0, n_samples: int = 200, n_features: int = 6) -> np.ndarray:
    """Features with ties, missing values, one value and none."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_samples, n_features))
    X[:, 1] = np.round(X[:, 1])
    X[random.random(n_samples) < 0.2, 1] = np.nan
    X[:, 2], X[:, 3] = 7.0, np.nan
    X[:, 4] = np.where(random.random(n_samples) < 0.5, 1.0, np.nan)
    return X


def candidates(X: np.ndarray, n_rounds: int, bag: int = 0, run: int = 0) -> list[list[Any]]:
    own = Candidates(Smoothing(n_rounds, bag), CutPlaces.of(X), run)
    return [list(own.at(number)) for number in range(n_rounds)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_places_are_the_midpoints_of_distinct_values_and_what_parts_the_missing_ones(dtype):
    X = table().astype(dtype)
    places = CutPlaces.of(X)
    of_features = np.split(places.thresholds, np.cumsum(places.n_places)[:-1])
    for column, found in zip(X.T, of_features, strict=True):
        values = np.unique(column[~np.isnan(column)])
        expected = ((values[1:] + values[:-1]) / values.dtype.type(2)).astype(float).tolist()
        if len(values) and np.isnan(column).any():
            expected.append(np.inf)
        assert found.tolist() == expected
    assert places.features.tolist() == [0, 1, 4, 5]


def test_a_round_offers_as_many_features_as_the_square_root_each_once():
    X = np.random.default_rng(0).normal(size=(30, 50))
    for splits in candidates(X, 100):
        features = [split.feature for split in splits]
        assert len(features) == 8
        assert features == sorted(set(features))
    assert all(len(splits) == 1 for splits in candidates(X[:, :1], 5))


def test_bags_classes_and_rounds_offer_other_cuts_and_always_the_same_ones():
    X = np.random.default_rng(0).normal(size=(100, 30))
    draws = {(bag, run): candidates(X, 70, bag, run) for bag in (0, 1, 2) for run in (0, 1)}
    for own in draws.values():
        assert len({tuple(splits) for splits in own}) == 70
    assert len({str(own) for own in draws.values()}) == 6
    assert draws[1, 1] == candidates(X, 70, 1, 1)
    late = Candidates(Smoothing(70), CutPlaces.of(X))
    assert [list(late.at(n)) for n in (69, 3, 64)] == [draws[0, 0][n] for n in (69, 3, 64)]
    assert list(late.at(70)) == []


def test_a_categorical_feature_offers_random_sets_that_leave_no_side_empty():
    groups = Groups(((0,), (1, 4), (2,), (7,)))
    places = CutPlaces.of(np.zeros((10, 1)), {0: groups})
    candidates = Candidates(Smoothing(400), places)
    found = [split for n in range(400) for split in candidates.at(n)]
    assert len(found) == 400
    counts: dict[tuple[int, ...], int] = {}
    for split in found:
        assert isinstance(split, CategorySplit)
        assert sorted(split.left + split.right) == [0, 1, 2, 4, 7]
        assert split.right
        assert (1 in split.left) == (4 in split.left)
        counts[split.left] = counts.get(split.left, 0) + 1
    assert len(counts) == 7  # of 4 groups, each set that holds the first one, but not all


def gain_of(split: Split, X: np.ndarray, y: np.ndarray, p: np.ndarray, l2: float) -> float:
    """What a split is worth under the logistic loss, in floating point."""
    found = 0.0
    region = regions(split, X[:, split.feature])
    for number in range(3):
        here = region == number
        found += (y[here] - p[here]).sum() ** 2 / ((p[here] * (1 - p[here])).sum() + l2)
    return found


@pytest.mark.parametrize("seed", range(4))
def test_a_smoothing_round_takes_the_best_of_the_cuts_that_it_offers(seed):
    X, y = drawn(2, n_samples=150, missing=0.1, seed=seed)
    fit = LogitBoostClassifier(n_estimators=20, smoothing_rounds=12, device="cpu").fit(X, y)
    candidates = Candidates(Smoothing(12), CutPlaces.of(X), 1)
    shares = [np.full(len(y), y.mean()), *(p[:, 1] for p in fit.staged_predict_proba(X))]
    for number, record in enumerate(fit.rounds_[0][:12]):
        gain = [gain_of(own, X, y, shares[number], 3.0) for own in candidates.at(number)]
        assert record.stump in candidates.at(number)
        assert record.score == pytest.approx(max(gain), rel=1e-9)
    plain = LogitBoostClassifier(n_estimators=1, device="cpu").fit(X, y)
    assert fit.rounds_[0][0].score < plain.rounds_[0][0].score


def test_where_nothing_can_be_offered_the_rounds_look_at_all_cuts():
    X, y = drawn(2, n_samples=5000)
    X[:, :] = 0.0
    X[1:4, 0] = 1.0  # no row of the sample has this value
    y[1:4] = 1
    how = {"n_estimators": 3, "device": "cpu"}
    fit = LogitBoostClassifier(smoothing_rounds=3, **how).fit(X, y)
    assert fit.model_.digest() == LogitBoostClassifier(**how).fit(X, y).model_.digest()


def test_early_stopping_waits_for_the_end_of_the_smoothing_rounds():
    X, y = drawn(2, n_samples=200)
    y = np.random.default_rng(0).permutation(y)  # nothing to learn
    how = {"n_iter_no_change": 2, "random_state": 0, "n_estimators": 100, "device": "cpu"}
    fit = LogitBoostClassifier(smoothing_rounds=30, **how).fit(X, y)
    assert fit.n_iter_ < 25
    assert 30 < len(fit.held_out_scores_[0]) < 50
