"""Margins where regions have votes of their own, and of several classes at once."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from backends import Backend
from made_up_models import member as made_up
from made_up_models import region_model, rows
from numpy.testing import assert_allclose, assert_array_equal

from gpustump import (
    LogitBoostClassifier,
    Member,
    RegionMember,
    Split,
    Stump,
    StumpEnsemble,
)
from gpustump.theory import class_margins, normalised_margins
from gpustump.theory.margins import _votes_of_pairs


def as_signs(member: RegionMember) -> Member:
    """The same score from stumps with signs: each split is a sum of stumps of its three regions.

    A vote for left, right and missing in a cube is a convex combination of the cube's corners; two
    corners, and the constant, are enough in each of these steps.
    """
    stumps, votes = [], []

    def add(at: float, feature: int, signs: tuple[int, int, int], vote: float) -> None:
        left, right, missing = signs
        if left == right:  # a stump that has all values on one side
            at = np.inf
        stumps.append(Stump(feature, at, left, missing, 0.25))
        votes.append(vote)

    for split, own in zip(member.splits, member.votes[:, :, 0].tolist(), strict=True):
        order = sorted(range(3), key=lambda r: abs(own[r]))  # the smallest first
        signs = [1 if v >= 0 else -1 for v in own]
        below = 0.0
        for place, region in enumerate(order):
            size = abs(own[region]) - below  # between two sizes: the larger regions' signs
            for flip in (1, -1):  # regions that are done with cancel out
                here = [s if r in order[place:] else s * flip for r, s in enumerate(signs)]
                add(split.threshold, split.feature, tuple(here), size / 2)
            below = abs(own[region])
    constant = float(member.constant[0])
    add(np.inf, 0, (1, 1, 1) if constant >= 0 else (-1, -1, -1), abs(constant))
    return Member(tuple(stumps), tuple(votes))


def test_margins_of_region_votes_are_those_of_the_stumps_that_they_are_sums_of():
    """So a theorem about votes of stumps with signs holds for them."""
    random = np.random.default_rng(0)
    for _ in range(20):
        model = region_model(random, 15, 2)
        X = random.normal(size=(60, 2))
        X[random.random(X.shape) < 0.2] = np.nan
        y = random.integers(0, 2, 60)
        signs = StumpEnsemble((as_signs(model.members[0]),), 2, (0, 1))
        finite = [split.threshold < np.inf for split in model.members[0].splits]
        assert any(finite)
        assert_allclose(signs.decision_function(X), model.decision_function(X), atol=1e-9)
        found = normalised_margins(model, X, y)
        assert_allclose(found, normalised_margins(signs, X, y), atol=1e-12)
        assert np.abs(found).max() <= 1


def size_of(member: Member | RegionMember, output: int) -> Fraction:
    sizes = [max(map(Fraction, own)) for own in np.abs(member.region_votes)[:, :, output].tolist()]
    return sum(sizes, Fraction(abs(float(member.constant[output]))))


@pytest.mark.parametrize("kind", ["two", "discrete", "rest", "shared"])
def test_margins_of_each_output_are_exact_quotients_in_every_library(backend: Backend, kind: str):
    random, n_outputs = np.random.default_rng(1), 1 if kind == "two" else 3
    model = region_model(random, 12, 2, max(n_outputs, 2), shared=kind == "shared")
    if kind == "discrete":  # some votes are negative, and one member is empty
        one, other = (made_up(random, n_stumps, 2, exact=1.0) for n_stumps in (8, 5))
        negative = Member(one.stumps, tuple(-vote for vote in one.votes))
        model = StumpEnsemble((negative, other, Member((), ())), 2, (0, 1, 2))
    X, y = rows(random, 30, 2, "float32"), random.integers(0, len(model.classes), 30)
    margins = normalised_margins(model, backend.asarray(X), backend.asarray(y))
    assert backend.owns(margins)
    found = np.reshape(backend.to_numpy(margins), (30, n_outputs))
    scores = np.reshape(model.decision_function(X), found.shape)
    for (i, k), margin in np.ndenumerate(found):
        sign = 1 if y[i] == (k if n_outputs > 1 else 1) else -1
        member, output = (model.members[0], k) if kind == "shared" else (model.members[k], 0)
        size = size_of(member, output) or 1
        assert margin == float(sign * Fraction(float(scores[i, k])) / size)


def test_class_margins_are_exact_quotients_in_every_library(backend: Backend):
    random = np.random.default_rng(2)
    model = region_model(random, 12, 2, 4, shared=True, link="softmax")
    X, y = rows(random, 30, 2, "float32"), random.integers(0, 4, 30)
    found = backend.to_numpy(class_margins(model, backend.asarray(X), y))
    scores = model.decision_function(X).tolist()
    (member,) = model.members
    total = Fraction(max(member.constant)) - Fraction(min(member.constant))
    for votes in member.votes.tolist():
        total += max(Fraction(max(own)) - Fraction(min(own)) for own in votes)
    for own, label, margin in zip(scores, y, found, strict=True):
        other = max(score for k, score in enumerate(own) if k != label)
        assert margin == float((Fraction(own[label]) - Fraction(other)) / total)


def test_votes_for_one_class_each_have_the_margin_of_schapire_and_others():
    random = np.random.default_rng(3)
    weights = random.integers(1, 9, size=20) / 8
    votes = np.zeros((20, 3, 3))
    chosen = random.integers(0, 3, size=(20, 3))
    for t, region in np.ndindex(20, 3):
        votes[t, region, chosen[t, region]] = weights[t]
    splits = tuple(Split(0, float(at)) for at in random.normal(size=20))
    model = StumpEnsemble((RegionMember(splits, votes, np.zeros(3)),), 1, (0, 1, 2))
    X, y = random.normal(size=(30, 1)), random.integers(0, 3, 30)
    for x, label, margin in zip(X[:, 0], y, class_margins(model, X, y), strict=True):
        says = [chosen[t, int(x > split.threshold)] for t, split in enumerate(splits)]
        of = [sum(w for w, k in zip(weights, says, strict=True) if k == c) for c in range(3)]
        wrong = max(of[c] for c in range(3) if c != label)
        assert margin == pytest.approx((of[label] - wrong) / weights.sum(), rel=1e-12)


@pytest.mark.parametrize("kind", ["discrete", "rest", "shared", "softmax"])
def test_class_margins_lie_within_one_and_are_positive_where_the_model_is_right(kind):
    random = np.random.default_rng(4)
    for _ in range(20):
        if kind == "discrete":
            members = tuple(made_up(random, 9, 2, exact=1.0) for _ in range(3))
            model = StumpEnsemble(members, 2, (0, 1, 2))
        else:
            link = "softmax" if kind == "softmax" else "logistic"
            model = region_model(random, 9, 2, 3, shared=kind != "rest", link=link)
        X, y = rows(random, 80, 2, "float64"), random.integers(0, 3, 80)
        margins = class_margins(model, X, y)
        assert np.abs(margins).max() <= 1
        scores = np.sort(model.decision_function(X), axis=1)
        decided = scores[:, -1] > scores[:, -2]
        assert_array_equal((margins > 0)[decided], (model.predict(X) == y)[decided])


# Pairs of features


def crossed(n_samples: int = 400, *, n_classes: int = 2):
    """Labels that follow from two features together, a category, and missing values."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (n_samples, 3))
    X[:, 2] = rng.integers(0, 5, n_samples)
    y = (X[:, 0] * X[:, 1] > 0).astype(int) + (n_classes > 2) * (X[:, 2] == 3)
    X[rng.random(n_samples) < 0.1, 0] = np.nan
    return X, y


def test_pairs_are_sums_of_stumps_and_of_products_of_two():
    """Their votes, with all signs that samples can have, make every score again."""
    X, y = crossed()
    clf = LogitBoostClassifier(
        n_estimators=10, interactions="3x", categorical_features=[2], random_state=0
    ).fit(X, y)
    model = clf.model_
    constant, votes = _votes_of_pairs(model)
    axes = {axis.feature: axis for pair in model.pairs for axis in pair.axes}

    def signs(feature: int) -> np.ndarray:
        """The stumps before each bin but the first, (n_bins - 1, n_samples)."""
        bins = axes[feature].bins_of(X[:, feature])
        return np.where(bins >= np.arange(1, axes[feature].n_bins)[:, np.newaxis], 1.0, -1.0)

    products = [
        (signs(j)[:, np.newaxis] * signs(k)).reshape(-1, len(X))
        for j, k in (pair.features for pair in model.pairs)
    ]
    n_products = sum(map(len, products))
    score = constant[0] + votes[:n_products, 0] @ np.concatenate(products)
    at = n_products
    for feature in sorted(axes):
        stumps = signs(feature)
        score = score + votes[at : at + len(stumps), 0] @ stumps
        at += len(stumps)
    assert at == len(votes)
    rounds = LogitBoostClassifier(n_estimators=10, categorical_features=[2], random_state=0).fit(
        X, y
    )
    wanted = clf.decision_function(X) - rounds.decision_function(X)
    assert_allclose(score, wanted, atol=1e-9)
    total = np.abs(constant + rounds.model_.members[0].constant)[0] + np.abs(votes).sum()
    total += np.abs(rounds.model_.members[0].votes).max(axis=1).sum()
    y_sign = np.where(y == 1, 1, -1)
    assert_allclose(
        normalised_margins(clf, X, y), y_sign * clf.decision_function(X) / total, rtol=1e-9
    )
