"""Margins where regions have votes of their own, and of several classes at once."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from backends import Backend
from made_up_models import PAIRED, paired_model, paired_rows, region_model, rows
from made_up_models import member as made_up
from numpy.testing import assert_allclose

from gpustump import LogitBoostClassifier, Member, RegionMember, Stump, StumpEnsemble
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


def made(kind: str) -> StumpEnsemble:
    """Of two classes or three; of discrete votes some are negative, and one member has none."""
    random = np.random.default_rng(1)
    if kind == "discrete":
        one, other = (made_up(random, n_stumps, 2, exact=1.0) for n_stumps in (8, 5))
        negative = Member(one.stumps, tuple(-vote for vote in one.votes))
        return StumpEnsemble((negative, other, Member((), ())), 2, (0, 1, 2))
    link, is_shared = "softmax" if kind == "softmax" else "logistic", kind in ("shared", "softmax")
    n_classes = 2 if kind == "two" else 3
    return region_model(random, 12, 2, n_classes, shared=is_shared, link=link)


def samples_of(model: StumpEnsemble) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(2)
    X = paired_rows()[:30] if model.pairs else rows(random, 30, 2, "float32")
    return X, random.integers(0, len(model.classes), 30)


def size_of(member: Member | RegionMember, output: int) -> Fraction:
    sizes = [max(map(Fraction, own)) for own in np.abs(member.region_votes)[:, :, output].tolist()]
    return sum(sizes, Fraction(abs(float(member.constant[output]))))


@pytest.mark.parametrize("kind", ["two", "discrete", "rest", "shared"])
def test_margins_of_each_output_are_exact_quotients_in_every_library(backend: Backend, kind: str):
    model = made(kind)
    X, y = samples_of(model)
    margins = normalised_margins(model, backend.asarray(X), backend.asarray(y))
    assert backend.owns(margins)
    scores = np.reshape(model.decision_function(X), (30, -1))
    found = np.reshape(backend.to_numpy(margins), scores.shape)
    for (i, k), margin in np.ndenumerate(found):
        sign = 1 if y[i] == (1 if kind == "two" else k) else -1
        member, output = (model.members[0], k) if kind == "shared" else (model.members[k], 0)
        size = size_of(member, output) or 1
        assert margin == float(sign * Fraction(float(scores[i, k])) / size)


def largest_differences(model: StumpEnsemble) -> Fraction:
    """The most by which each round, and each pair of features, can part two classes, and the
    constants do, added up."""
    constant = np.concatenate([member.constant for member in model.members])
    total = Fraction(max(constant)) - Fraction(min(constant))
    for pair in model.pairs:
        cells = pair.values.reshape(-1, len(model.classes))
        total += max(Fraction(max(own)) - Fraction(min(own)) for own in cells)
    for members in (model.members, model.moved):
        for number in range(max(map(len, members), default=0)):
            votes = [m.region_votes[number] for m in members if number < len(m)]
            if model.is_shared:  # a sample lies in one region for all classes
                total += max(Fraction(max(own)) - Fraction(min(own)) for own in votes[0])
            else:
                votes += [np.zeros((3, 1))] * (3 - len(votes))
                both = itertools.permutations(votes, 2)
                total += max(Fraction(one.max()) - Fraction(other.min()) for one, other in both)
    return total


@pytest.mark.parametrize("kind", ["discrete", "rest", "shared", "softmax", *list(PAIRED)[1:3]])
def test_class_margins_are_exact_quotients_in_every_library(backend: Backend, kind: str):
    model = paired_model(kind) if kind in PAIRED else made(kind)
    X, y = samples_of(model)
    found = backend.to_numpy(class_margins(model, backend.asarray(X), y))
    for own, label, margin in zip(model.decision_function(X), y, found, strict=True):
        other = max(np.delete(own, label))
        assert margin == float(
            (Fraction(own[label]) - Fraction(other)) / largest_differences(model)
        )


# Pairs of features


def crossed(n_samples: int = 400):
    """Labels that follow from two features together, a category, and missing values."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (n_samples, 3))
    X[:, 2] = rng.integers(0, 5, n_samples)
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
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
