"""Votes against implementations written from the papers' formulas, in plain NumPy floats.

Each finds its own splits, by the criterion that its paper states, and keeps its own weights; the
package must take the same splits and make the same votes, but for rounding.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pytest
from rounds import Case
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from vote_runs import boosting

N_ROUNDS = 20


class Part(NamedTuple):
    """A split's feature, and the region (n_samples,) of each sample: 0, 1, or 2 for missing."""

    feature: int
    threshold: float
    region: np.ndarray


def parts(X: np.ndarray) -> list[Part]:
    """Every split between two values of a feature, or between values and none, and the constant."""
    found = []
    for feature, column in enumerate(X.T):
        values = np.unique(column[~np.isnan(column)])
        for low, high in itertools.pairwise([*values, np.inf]):
            threshold = np.inf if high == np.inf else (low + high) / 2
            region = np.where(np.isnan(column), 2, (column > threshold).astype(int))
            found.append(Part(feature, threshold, region))
    return [*found, Part(0, np.inf, np.zeros(len(X), dtype=int))]


def sums(part: Part, x: np.ndarray) -> np.ndarray:
    """Sums over the regions, (3, n_outputs), of numbers (n_samples, n_outputs)."""
    return np.stack([x[part.region == region].sum(axis=0) for region in range(3)])


def labels_of(y: np.ndarray, n_classes: int) -> np.ndarray:
    """-1.0 or 1.0, (n_samples, n_outputs)."""
    return np.where(y[:, np.newaxis] == np.arange(n_classes), 1.0, -1.0)


def samples_of(seed: int, n_classes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X with missing values, classes, and weights without ties."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(70, 4))
    score = X[:, 0] + X[:, 1] ** 2 / 2 + random.normal(scale=0.8, size=70)
    X[random.random(X.shape) < 0.1] = np.nan
    return X, np.argsort(np.argsort(score)) * n_classes // 70, random.uniform(0.5, 2.0, 70)


Rounds = Iterator[tuple[Part, np.ndarray]]


def check(case: Case, expected: Rounds) -> None:
    n_rounds = 0
    for record, (part, votes) in zip(boosting(case, n_rounds=N_ROUNDS), expected, strict=False):
        n_rounds += 1
        assert record.stump.feature == part.feature, n_rounds
        assert record.stump.threshold == pytest.approx(part.threshold, rel=1e-12), n_rounds
        used = np.unique(part.region)
        assert np.allclose(np.asarray(record.votes)[used], votes[used], rtol=0, atol=1e-9), n_rounds
    assert n_rounds == N_ROUNDS


def confidence_rated(
    X: np.ndarray, y: np.ndarray, weights: np.ndarray, *, is_real: bool = True
) -> Rounds:
    """AdaBoost.MH with the distribution D(i, l) [Schapire and Singer 1999, sections 4 and 7].

    Real: the split of the least Z = 2 sum of sqrt(W+ W-), and votes 1/2 ln((W+ + e) / (W- + e))
    with e = 1 / (2 m k). Discrete: the split and signs of the largest edge, and one alpha.
    """
    distribution = np.repeat(weights[:, np.newaxis], y.shape[1], axis=1)
    distribution /= distribution.sum()
    splits, smoothing = parts(X), 1 / (2 * y.size)
    while True:
        if is_real:
            part = min(splits, key=lambda one: normaliser(one, distribution, y))
            positive, negative = (sums(part, distribution * (y == sign)) for sign in (1, -1))
            votes = np.log((positive + smoothing) / (negative + smoothing)) / 2
        else:
            part = max(splits, key=lambda one: edge(one, distribution * y))
            votes = signs_of(sums(part, distribution * y))
            gamma = edge(part, distribution * y)
            votes = votes * np.log((1 + gamma) / (1 - gamma)) / 2
        yield part, votes
        distribution *= np.exp(-y * votes[part.region])
        distribution /= distribution.sum()


def normaliser(part: Part, distribution: np.ndarray, y: np.ndarray) -> float:
    positive, negative = (sums(part, distribution * (y == sign)) for sign in (1, -1))
    return float(2 * np.sqrt(positive * negative).sum())


def edge(part: Part, signed: np.ndarray) -> float:
    """Of the best signs, of which left and right have opposite ones."""
    left, right, missing = sums(part, signed)
    return float((np.abs(left - right) + np.abs(missing)).sum())


def signs_of(signed: np.ndarray) -> np.ndarray:
    left, right, missing = signed
    first = np.where(left - right >= 0, 1.0, -1.0)
    own = np.where(missing == 0, left + right, missing)
    return np.stack([first, -first, np.where(own >= 0, 1.0, -1.0)])


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_real_votes_are_those_of_confidence_rated_adaboost(seed):
    X, classes, weights = samples_of(seed, 2)
    y = 2.0 * classes - 1.0
    expected = confidence_rated(X, y[:, np.newaxis], weights)
    check(Case(X, y, weights, votes="real"), expected)


@pytest.mark.parametrize("votes", ["real", "discrete"])
def test_shared_votes_are_those_of_adaboost_mh(votes):
    X, y, weights = samples_of(3, 4)
    expected = confidence_rated(X, labels_of(y, 4), weights, is_real=votes == "real")
    check(Case(X, y, weights, votes=votes, n_outputs=4), expected)


def logitboost(X: np.ndarray, y: np.ndarray, weights: np.ndarray, rate: float) -> Rounds:
    """LogitBoost for two classes [Friedman, Hastie and Tibshirani 2000, algorithm 3].

    Each round fits the working response z by weighted least squares: the split of the least
    squared error, and the weighted means of its regions.
    """
    share = weights[y == 1].sum() / weights.sum()
    score = np.full(len(y), np.log(share / (1 - share)) / 2)
    splits = parts(X)
    while True:
        p = 1 / (1 + np.exp(-2 * score))
        z, w = (y - p) / (p * (1 - p)), weights * p * (1 - p)
        part = min(splits, key=lambda one: squared_error(one, z, w))
        votes = rate * means(part, z, w) / 2
        yield part, votes[:, np.newaxis]
        score += votes[part.region]


def means(part: Part, z: np.ndarray, w: np.ndarray) -> np.ndarray:
    return np.asarray(
        [np.average(z[inside], weights=w[inside]) if inside.any() else 0.0
         for inside in (part.region == region for region in range(3))]
    )  # fmt: skip


def squared_error(part: Part, z: np.ndarray, w: np.ndarray) -> float:
    return float((w * (z - means(part, z, w)[part.region]) ** 2).sum())


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_newton_votes_of_two_classes_are_logitboosts_least_squares_fits(seed):
    X, y, weights = samples_of(seed, 2)
    case = Case(X, 2.0 * y - 1.0, weights, learning_rate=0.5, votes="newton")
    check(case, logitboost(X, y, weights, 0.5))


def softmax_newton(
    X: np.ndarray, y: np.ndarray, weights: np.ndarray, rate: float, l2: float
) -> Rounds:
    """A Newton step of the softmax loss with its diagonal Hessian [ibid., section 5], with lambda
    as in XGBoost [Chen and Guestrin 2016, equations 5 and 6]."""
    n_classes = int(y.max()) + 1
    is_own = y[:, np.newaxis] == np.arange(n_classes)
    shares = (weights[:, np.newaxis] * is_own).sum(axis=0) / weights.sum()
    score = np.repeat(np.log(shares)[np.newaxis] / 2, len(y), axis=0)
    splits = parts(X)
    while True:
        p = np.exp(2 * score)
        p /= p.sum(axis=1, keepdims=True)
        first, second = (weights[:, np.newaxis] * one for one in (is_own - p, p * (1 - p)))

        def gain(part: Part, first: np.ndarray = first, second: np.ndarray = second) -> float:
            return float((sums(part, first) ** 2 / (sums(part, second) + l2)).sum())

        part = max(splits, key=gain)
        votes = rate / 2 * sums(part, first) / (sums(part, second) + l2)
        yield part, votes
        score += votes[part.region]


@pytest.mark.parametrize(("n_classes", "l2"), [(3, 1.0), (4, 0.3), (5, 10.0)])
def test_newton_votes_of_several_classes_are_newton_steps_of_the_softmax_loss(n_classes, l2):
    X, y, weights = samples_of(n_classes, n_classes)
    how = {"learning_rate": 0.4, "votes": "newton", "l2": l2, "n_outputs": n_classes}
    check(Case(X, y, weights, **how), softmax_newton(X, y, weights, 0.4, l2))


@pytest.mark.parametrize(("rate", "l2"), [(0.3, 1.0), (1.0, 0.1)])
def test_newton_votes_are_the_trees_of_depth_one_that_xgboost_grows(rate, l2):
    """XGBoost adds up float32 gradients; a leaf is twice a vote, as the log-odds are twice F."""
    pytest.importorskip("xgboost", reason="xgboost is not installed")
    for load in (load_breast_cancer, load_wine, load_diabetes):
        X, y = load(return_X_y=True)
        X, y = X.astype(np.float32), (y > np.mean(y)).astype(int)
        case = Case.of(X, 2.0 * y - 1.0, learning_rate=rate, votes="newton", l2=l2)
        run = boosting(case, n_rounds=N_ROUNDS)
        trees = xgboost_trees(X, y, rate, l2)
        for number, (record, tree) in enumerate(zip(run, trees, strict=True)):
            (feature, threshold, *leaves), split = tree, record.stump
            assert split.feature == feature, number
            column = X[:, feature]
            assert np.array_equal(column <= split.threshold, column < threshold), number
            found = 2 * np.asarray(record.votes)[:2, 0]
            assert np.allclose(found, leaves, rtol=1e-4, atol=1e-5), number


def xgboost_trees(
    X: np.ndarray, y: np.ndarray, rate: float, l2: float
) -> list[tuple[int, np.float32, float, float]]:
    """For each tree its feature, threshold, left and right leaf; x < threshold goes left."""
    import json

    import xgboost

    parameters = {
        "objective": "binary:logistic", "tree_method": "exact", "max_depth": 1, "eta": rate,
        "lambda": l2, "min_child_weight": 0, "base_score": float(y.mean()), "nthread": 1,
    }  # fmt: skip
    booster = xgboost.train(parameters, xgboost.DMatrix(X, y), N_ROUNDS)
    found = []
    for tree in map(json.loads, booster.get_dump(dump_format="json")):
        leaves = {child["nodeid"]: child["leaf"] for child in tree["children"]}
        feature = int(tree["split"].removeprefix("f"))
        threshold = np.float32(tree["split_condition"])
        found.append((feature, threshold, leaves[tree["yes"]], leaves[tree["no"]]))
    return found
