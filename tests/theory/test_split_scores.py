"""Scores of splits for real and Newton votes: against definitions, and against training."""

from __future__ import annotations

import math

import numpy as np
import pytest
from backends import Backend
from numpy.testing import assert_allclose, assert_array_equal

from gpustump import fit_stump
from gpustump.theory import split_scores

KINDS = [("real", 0.0), ("newton", 0.0), ("newton", 1.5)]


def parts(x, y, weights, threshold):
    """The weight of each region's samples with the label +1, and with the label -1."""
    regions = x <= threshold, x > threshold, np.isnan(x)
    return [
        tuple(math.fsum(weights[region & (y == sign)]) for sign in (1, -1)) for region in regions
    ]


def score_of(regions, kind: str, l2: float, total: float) -> float:
    """The score from its definition."""
    if kind == "real":
        return -sum(math.sqrt(p * n) for p, n in regions) / total
    return sum(((p - n) / 2) ** 2 / ((p + n) / 4 + l2) for p, n in regions if p + n)


def random_column(random, n_samples: int):
    x = random.integers(0, 5, size=n_samples).astype(float)
    x[random.random(n_samples) < 0.2] = np.nan
    y = random.choice([-1, 1], size=n_samples)
    y[:2] = [1, -1]
    return x, y, random.integers(1, 4, size=n_samples).astype(float)


@pytest.mark.parametrize(("kind", "l2"), KINDS)
def test_scores_are_those_of_every_split_from_the_definition(kind, l2):
    random = np.random.default_rng(0)
    for _ in range(50):
        x, y, weights = random_column(random, 12)
        found = split_scores(x, y, weights, votes=kind, l2_regularization=l2)
        assert found.values.tolist() == sorted({*x[~np.isnan(x)].tolist()})
        total = weights.sum()
        expected = [score_of(parts(x, y, weights, at), kind, l2, total) for at in found.thresholds]
        assert_allclose(found.scores, expected, rtol=1e-12, atol=1e-15)
        both = [(weights[y == 1].sum(), weights[y == -1].sum())]
        assert found.constant == pytest.approx(score_of(both, kind, l2, total), rel=1e-12)


@pytest.mark.parametrize(("kind", "l2"), KINDS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_best_split_is_the_one_that_training_finds_in_every_tie(kind, l2, dtype):
    random = np.random.default_rng(1)
    for _ in range(150):
        x, y, weights = random_column(random, int(random.integers(2, 9)))
        x = x.astype(dtype)
        found = split_scores(x, y, weights, votes=kind, l2_regularization=l2)
        best = found.best
        assert best.score == max(found.constant, *found.scores.tolist())
        stump = fit_stump(x[:, None], y, weights, votes=kind, l2_regularization=l2)
        assert best == stump


@pytest.mark.parametrize("kind", ["real", "newton"])
def test_a_column_without_a_cut_has_the_constant(kind):
    for x in ([1.0] * 3, [math.nan] * 3):
        found = split_scores(x, [1, 1, -1], votes=kind)
        stump = fit_stump(np.asarray(x)[:, None], [1, 1, -1], votes=kind)
        assert found.best == stump
        assert stump.split.threshold == math.inf
        assert found.best.score == found.constant


def test_scores_are_the_same_in_every_library(backend: Backend):
    x, y = np.asarray([0.5, math.nan, 2.0, -1.0, 2.0]), np.asarray([1.0, -1.0, 1.0, -1.0, -1.0])
    for kind, l2 in KINDS:
        how = {"votes": kind, "l2_regularization": l2}
        here, there = split_scores(x, y, **how), split_scores(*map(backend.asarray, (x, y)), **how)
        for name in ("values", "thresholds", "scores"):
            assert_array_equal(getattr(there, name), getattr(here, name))
        assert (there.best, there.constant) == (here.best, here.constant)


@pytest.mark.parametrize(
    ("arguments", "how", "message"),
    [
        (([[1.0], [2.0]], [1, 0]), {}, r"x must have one dimension.*X\[:, j\]"),
        (([1.0, 2.0], [1, -1]), {"votes": "discrete"}, "votes must be 'real' or 'newton'; got"),
        (([1.0, 2.0], [1, -1]), {"l2_regularization": -1.0}, "l2_regularization must be"),
    ],
)
def test_nonsense_is_refused(arguments, how, message):
    with pytest.raises((TypeError, ValueError), match=message):
        split_scores(*arguments, **how)
