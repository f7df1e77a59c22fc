"""What early stopping watches, against its definition in exact arithmetic, on every library.

The oracles use fractions and decimal numbers of 50 digits, and look at every pair of samples.
"""

from __future__ import annotations

import decimal
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from backends import Backend
from sklearn.metrics import balanced_accuracy_score, log_loss, roc_auc_score

from gpustump import AdaBoostClassifier
from gpustump.boosting.held_out_scores import HeldOut, scorer
from gpustump.data.parameters import SCORINGS
from gpustump.engines.integer_weights import IntegerWeights
from gpustump.learners.step_table import VOTE_UNIT, VOTES_LIMIT

RNG = np.random.default_rng(0)


def held_out(n: int = 60, scale: float = 1.0, positive: float = 0.4, seed: int = 0):
    """Labels, weights, and scores that are whole multiples of the unit of votes, with ties."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < positive, 1.0, -1.0)
    y[:2] = [1.0, -1.0]
    scores = np.round((y + rng.normal(scale=2.0, size=n)) * scale / VOTE_UNIT) * VOTE_UNIT
    scores[::5] = scores[0]
    return y, rng.integers(1, 9, size=n).astype(float), scores


def score_of(scoring: str, y: np.ndarray, weights: np.ndarray, scores: np.ndarray) -> float:
    return scorer(scoring, HeldOut(y, IntegerWeights.of(weights)))(scores)  # type: ignore[arg-type]


FACTORS = {"loss": 1, "neg_log_loss": 2}
"""What a score is multiplied by to give the log-odds."""


def loss_of(scoring: str, y: float, score: float) -> Decimal:
    with decimal.localcontext(decimal.Context(prec=50, Emax=10**9, Emin=-(10**9))):
        return (1 + (-FACTORS[scoring] * Decimal(y) * Decimal(score)).exp()).ln()


def weighted_mean(values: list[Decimal], weights: np.ndarray) -> Decimal:
    with decimal.localcontext(decimal.Context(prec=50)):
        total = sum((v * Decimal(w) for v, w in zip(values, weights, strict=True)), Decimal())
        return total / sum(map(Decimal, weights.tolist()))


@pytest.mark.parametrize("scoring", SCORINGS)
@pytest.mark.parametrize("scale", [0.1, 3.0, 20_000.0])
def test_a_score_is_the_same_number_in_every_library(backend: Backend, scoring, scale):
    y, weights, scores = held_out(scale=scale)
    there = [backend.asarray(a) for a in (y, weights, scores)]
    assert score_of(scoring, *there) == score_of(scoring, y, weights, scores)


@pytest.mark.parametrize("scoring", FACTORS)
@pytest.mark.parametrize("scale", [1e-9, 0.3, 5.0, 100.0])
def test_a_loss_is_its_definition_to_2_to_the_minus_25(scoring, scale):
    y, weights, scores = held_out(scale=scale)
    losses = [loss_of(scoring, *pair) for pair in zip(y, scores, strict=True)]
    error = abs(Decimal(-score_of(scoring, y, weights, scores)) - weighted_mean(losses, weights))
    assert error < Decimal(2) ** -25 + len(y) * Decimal(2) ** -42


@pytest.mark.parametrize("scoring", FACTORS)
def test_each_sample_s_loss_is_its_definition_between_the_nodes_of_the_table_too(scoring):
    margins = np.concatenate([RNG.uniform(-25, 25, 300), [0.0, 12.0, 11.9995, -12.0, 1e5, -1e5]])
    margins = np.round(margins / VOTE_UNIT) * VOTE_UNIT
    ones = np.ones(len(margins))
    loss = scorer(scoring, HeldOut(ones, IntegerWeights.of(ones)))
    (found,) = loss.losses(margins)  # type: ignore[attr-defined]
    for one, margin in zip(found.tolist(), margins.tolist(), strict=True):
        error = one * Decimal(2) ** -32 - loss_of(scoring, 1.0, margin)
        assert -(Decimal(2) ** -31) <= error <= Decimal(2) ** -25 + Decimal(2) ** -31


@pytest.mark.parametrize("scoring", SCORINGS)
def test_extreme_scores_and_weights_have_a_score(backend: Backend, scoring):
    y = np.asarray([1.0, -1.0, 1.0, -1.0])
    top = VOTES_LIMIT - VOTE_UNIT
    scores = np.asarray([top, top, -top, -1e5])
    for weights in ([1.0] * 4, [1e300, 1e-300, 1.0, 1.0], [1e-300, 1e300, 1e300, 1e300]):
        found = score_of(scoring, *(backend.asarray(np.asarray(a)) for a in (y, weights, scores)))
        least = {"loss": -(2.0**18), "neg_log_loss": -(2.0**18), "neg_exponential_loss": -np.inf}
        assert least.get(scoring, 0) <= found <= (0 if scoring in least else 1)
    for scoring, factor in FACTORS.items():
        expected = pytest.approx(-factor * top / 2, rel=1e-14)
        assert score_of(scoring, y, np.ones(4), scores) == expected


def test_the_area_under_the_roc_curve_counts_pairs_and_ties_by_half():
    for seed in range(5):
        y, weights, scores = held_out(seed=seed)
        won, total = Fraction(0), Fraction(0)
        for i in np.flatnonzero(y > 0):
            for j in np.flatnonzero(y < 0):
                pair = Fraction(weights[i]) * Fraction(weights[j])
                won += pair * ((scores[i] > scores[j]) + Fraction(int(scores[i] == scores[j]), 2))
                total += pair
        found = score_of("roc_auc", y, weights, scores)
        assert found == float(won / total)
        assert found == pytest.approx(roc_auc_score(y, scores, sample_weight=weights), rel=1e-12)


def test_the_area_under_the_roc_curve_takes_weights_of_any_size():
    y, _, scores = held_out(400)
    for weights in (RNG.uniform(0.5, 2, 400), RNG.exponential(size=400) ** 6, np.full(400, 1 / 3)):
        expected = roc_auc_score(y, scores, sample_weight=weights)
        assert score_of("roc_auc", y, weights, scores) == pytest.approx(expected, abs=1e-6)


def test_balanced_accuracy_is_the_mean_recall():
    for seed in range(5):
        y, weights, scores = held_out(seed=seed)
        recalls = []
        for label in (1.0, -1.0):
            of = [Fraction(w) for w in weights[y == label]]
            right = (scores[y == label] > 0) == (label > 0)
            recalls.append(
                sum(w for w, is_right in zip(of, right, strict=True) if is_right) / sum(of)
            )
        found = score_of("balanced_accuracy", y, weights, scores)
        assert found == pytest.approx(float(sum(recalls) / 2), rel=1e-15)
        predicted = np.where(scores > 0, 1.0, -1.0)
        assert found == pytest.approx(balanced_accuracy_score(y, predicted, sample_weight=weights))


@pytest.mark.parametrize("scoring", SCORINGS)
def test_repeated_samples_score_as_weighted_ones_do(scoring):
    y, weights, scores = held_out()
    times = weights.astype(int)
    repeated = (np.repeat(y, times), np.ones(times.sum()), np.repeat(scores, times))
    weighted = score_of(scoring, y, weights, scores)
    assert score_of(scoring, *repeated) == pytest.approx(weighted, abs=1e-9)


def test_held_out_losses_are_those_that_scikit_learn_finds_in_the_held_out_samples():
    X = RNG.normal(size=(300, 4))
    y = (X[:, 0] + RNG.normal(size=300) > 0).astype(int)
    rows = watched_rows(y, 0.3, 0)
    options = {"n_iter_no_change": 30, "random_state": 0, "validation_fraction": 0.3}
    for scoring in FACTORS:
        classifier = AdaBoostClassifier(scoring=scoring, **options).fit(X, y)
        found = -classifier.held_out_scores_[0][classifier.n_iter_ - 1]
        odds = np.exp(FACTORS[scoring] * classifier.decision_function(X[rows]))
        assert found == pytest.approx(log_loss(y[rows], odds / (1 + odds)), abs=1e-7)
    expected = log_loss(y[rows], classifier.predict_proba(X[rows]))
    assert found == pytest.approx(expected, abs=1e-7)


def watched_rows(y: np.ndarray, share: float, random_state: int) -> np.ndarray:
    """The rows that a fit with this random_state holds out."""
    from sklearn.model_selection import train_test_split

    seed = int(np.random.RandomState(random_state).randint(2**31 - 1))
    return train_test_split(np.arange(len(y)), test_size=share, stratify=y, random_state=seed)[1]
