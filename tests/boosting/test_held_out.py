"""Scores of held-out samples, of one output and of K: against decimals, fractions, scikit-learn."""

from __future__ import annotations

import decimal
import itertools
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from backends import Backend
from sklearn.metrics import accuracy_score, balanced_accuracy_score, log_loss

from gpustump.arrays import computing_on
from gpustump.boosting.held_out import tables as loss_tables
from gpustump.boosting.held_out.samples import HeldOut
from gpustump.boosting.held_out.scores import scorer
from gpustump.boosting.held_out.tables import ExponentialTable
from gpustump.data.parameters import SCORINGS
from gpustump.engines.integer_weights import IntegerWeights
from gpustump.learners.step_table import VOTE_UNIT, VOTES_LIMIT

RNG = np.random.default_rng(0)
K = 4
LINKS = ("logistic", "softmax")
LOG_LOSSES = ("loss", "neg_log_loss")
HOW = [(1, "logistic"), (K, "logistic"), (K, "softmax")]
"""Numbers of outputs, and links."""
PRECISE = decimal.Context(prec=50, Emax=10**9, Emin=-(10**9))

of_each = pytest.mark.parametrize(("n_outputs", "link"), HOW)


def in_units(scores: np.ndarray) -> np.ndarray:
    return np.round(scores / VOTE_UNIT) * VOTE_UNIT


def drawn(n_outputs: int, n: int = 60, scale: float = 1.0, seed: int = 0) -> Any:
    """Class numbers, weights and scores, (n,) or (n, K), with ties in rows and in columns."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, K, size=n)
    classes[:K] = range(K)
    scores = rng.normal(scale=2.0, size=(n, K)) - 1
    scores[np.arange(n), classes] += 2
    scores[::5] = scores[0]
    scores[1::7, 2] = scores[1::7, 1]
    scores[2::9] = 0
    scores, weights = in_units(scores * scale), rng.integers(1, 9, size=n).astype(float)
    return (classes, weights, scores) if n_outputs > 1 else (classes % 2, weights, scores[:, 0])


def score_of(scoring, classes, weights, scores, link="logistic", n_classes: int = K) -> float:
    n_outputs = 1 if scores.ndim == 1 else n_classes
    with computing_on(classes):
        samples = HeldOut(classes, IntegerWeights.of(weights), n_outputs)
    return scorer(scoring, samples, link)(scores)


def log_of_sum(terms: list[Decimal]) -> Decimal:
    return sum((term.exp() for term in terms), Decimal()).ln()


def loss_of(scoring: str, link: str, of_class: int, row: Any) -> Decimal:
    """A sample's loss by its definition, from the score of each output."""
    scores = [Decimal(float(score)) for score in np.atleast_1d(row)]
    positives = range(len(scores)) if len(scores) > 1 else [1]
    margins = [s if k == of_class else -s for k, s in zip(positives, scores, strict=True)]
    factor = 2 if scoring == "neg_log_loss" else 1
    if link == "softmax":
        return log_of_sum([factor * score for score in scores]) - factor * scores[of_class]
    if scoring == "neg_log_loss" and len(scores) > 1:
        logs = [-log_of_sum([Decimal(0), -2 * score]) for score in scores]
        return log_of_sum(logs) - logs[of_class]
    losses = [log_of_sum([Decimal(0), -factor * margin]) for margin in margins]
    return sum(losses, Decimal()) / len(losses)


def check(scoring, link, classes, weights, scores, found: float) -> None:
    """The mean of the losses by definition, to the error that is promised."""
    with decimal.localcontext(PRECISE):
        by = [*map(Decimal, np.asarray(weights).tolist())]
        pairs = zip(classes.tolist(), scores, by, strict=True)
        expected = sum((w * loss_of(scoring, link, *own) for *own, w in pairs), Decimal()) / sum(by)
        slack = Decimal(2) ** -25 if scores.ndim == 1 else scores.shape[1] * Decimal(2) ** -24
        assert abs(Decimal(-found) - expected) < slack + len(by) * Decimal(2) ** -42


@of_each
@pytest.mark.parametrize("scoring", SCORINGS)
def test_a_score_is_the_same_number_in_every_library_and_in_its_range(
    backend: Backend, scoring, n_outputs, link
):
    cases = [drawn(n_outputs, scale=scale) for scale in (0.1, 3.0, 20_000.0)]
    scores = np.full((K, K), -VOTES_LIMIT)
    scores[0], scores[1, 0] = VOTES_LIMIT, 1e5
    for weights in ([1.0] * K, [1e300, 1e-300, 1.0, 1.0], [1e-300, 1e300, 1e300, 1e300]):
        few = (np.arange(K), scores) if n_outputs > 1 else (np.arange(K) % 2, scores[:, 0])
        cases.append((few[0], np.asarray(weights), few[1]))
    for samples in cases:
        found = score_of(scoring, *samples, link)
        assert score_of(scoring, *map(backend.asarray, samples), link) == found
        is_loss = scoring.startswith("neg") or scoring == "loss"
        assert np.isfinite(found)
        assert (found <= 0) if is_loss else (0 <= found <= 1)
        classes, weights, scores = map(backend.asarray, samples)
        with computing_on(classes):
            there = HeldOut(classes, IntegerWeights.of(weights), n_outputs)
        predicted = (samples[2] > 0) if n_outputs == 1 else samples[2].argmax(axis=1)
        right = accuracy_score(samples[0], predicted, sample_weight=samples[1])
        assert there.error(scores) == pytest.approx(1 - right, abs=1e-15)


@of_each
@pytest.mark.parametrize("scoring", LOG_LOSSES)
@pytest.mark.parametrize("scale", [1e-9, 0.3, 5.0, 100.0, 1e4])
def test_a_loss_is_its_definition_to_the_error_that_is_stated(scoring, n_outputs, link, scale):
    samples = drawn(n_outputs, scale=scale)
    check(scoring, link, *samples, score_of(scoring, *samples, link))


@pytest.mark.parametrize("scoring", LOG_LOSSES)
def test_each_sample_s_loss_is_its_definition_between_the_nodes_of_the_table_too(scoring):
    margins = in_units(
        np.concatenate([RNG.uniform(-25, 25, 300), [0.0, 12.0, 11.9995, -12.0, 1e5, -1e5]])
    )
    ones = np.ones(len(margins))
    loss: Any = scorer(scoring, HeldOut(ones, IntegerWeights.of(ones), 1))
    (found,) = loss.losses(margins)
    for one, margin in zip(found.tolist(), margins.tolist(), strict=True):
        with decimal.localcontext(PRECISE):
            error = one * Decimal(2) ** -32 - loss_of(scoring, "logistic", 1, margin)
        assert -(Decimal(2) ** -31) <= error <= Decimal(2) ** -25 + Decimal(2) ** -31


@of_each
def test_scores_are_those_of_scikit_learn(n_outputs, link):
    for seed in range(3):
        classes, weights, scores = samples = drawn(n_outputs, 200, seed=seed)
        rows = scores if n_outputs > 1 else np.stack([-scores, scores], axis=1)
        shares = np.exp(2 * scores) if link == "softmax" else 1 / (1 + np.exp(-2 * rows))
        shares /= shares.sum(axis=1, keepdims=True)
        predicted = rows.argmax(axis=1)
        by = {"sample_weight": weights}
        for scoring, expected in (
            ("neg_log_loss", -log_loss(classes, shares, **by)),
            ("accuracy", accuracy_score(classes, predicted, **by)),
            ("balanced_accuracy", balanced_accuracy_score(classes, predicted, **by)),
        ):
            slack = K * 2.0**-24 if scoring == "neg_log_loss" else 1e-14
            assert score_of(scoring, *samples, link) == pytest.approx(expected, abs=slack)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("scoring", LOG_LOSSES)
def test_a_loss_is_never_negative_and_right_for_the_worst_scores(scoring, link):
    scores = in_units(RNG.uniform(0, 40, size=(100, 1)) * np.asarray([[1.0, -1.0, -1.0, -1.0]]))
    for row in np.split(scores, 100):
        assert score_of(scoring, np.zeros(1, dtype=int), np.ones(1), row, link) <= 0
    top = VOTES_LIMIT
    worst = np.full((K, K), top) - 2 * top * np.eye(K)
    factor = (2 if link == "softmax" else 1) * (2 if scoring == "neg_log_loss" else 1)
    more = 0.0 if (scoring, link) == ("loss", "logistic") else np.log(K - 1)
    found = score_of(scoring, np.arange(K), np.ones(K), worst, link)
    assert -found == pytest.approx(factor * top + more, abs=K * 2.0**-24)


@pytest.mark.parametrize("n_outputs", [1, K])
def test_the_area_under_the_roc_curve_counts_pairs_and_ties_by_half(n_outputs):
    for seed in range(3):
        classes, weights, scores = drawn(n_outputs, seed=seed)
        areas = []
        for number, column in enumerate(np.atleast_2d(scores.T)):
            own = classes == (1 if n_outputs == 1 else number)
            weight = np.outer(weights[own], weights[~own])  # whole, and halves below: exact sums
            won = (np.sign(column[own][:, np.newaxis] - column[~own]) + 1) / 2
            areas.append((weight * won).sum() / weight.sum())
        assert score_of("roc_auc", classes, weights, scores) == math.fsum(areas) / n_outputs


LIMIT = 800 << 36


def exponentials(units: np.ndarray) -> list[Fraction]:
    """Those of the table, as exact numbers."""
    pairs = zip(*ExponentialTable.beside(units).exponentials(units), strict=True)
    return [Fraction(float(one)) * Fraction(2) ** (800 * int(band)) for one, band in pairs]


def test_the_loss_rises_with_the_margin_s_fall_without_exception():
    """Ties aside: a table whose entries were a digit off could turn two rounds around."""
    nodes, drops = loss_tables._loss_table()
    assert (np.diff(nodes) <= 0).all()
    assert (np.diff(drops) <= 2).all()  # convex but for the rounding
    assert nodes[0] == round(Decimal(2).ln() * 2**32)


def test_entries_that_a_c_library_could_round_either_way_are_decimal(monkeypatch):
    """With every entry in doubt, all of them come from decimal arithmetic, and none changes."""
    plain = loss_tables._loss_table()
    monkeypatch.setattr(loss_tables, "_LAST_NODE", 1500)
    monkeypatch.setattr(loss_tables, "_DOUBT", 1.0)
    nodes, _ = loss_tables._loss_table.__wrapped__()
    assert np.array_equal(nodes[:-1], plain[0][:1500])


def test_exponentials_are_their_definition_to_2_to_the_minus_50_in_every_library(backend: Backend):
    units = np.concatenate(
        [RNG.integers(-LIMIT, LIMIT, 800), [0, 1, -1, LIMIT, -LIMIT], RNG.integers(-99, 99, 50)]
    )
    for one, unit in zip(exponentials(units), units.tolist(), strict=True):
        with decimal.localcontext(PRECISE):
            right = Fraction((-Decimal(unit) / 2**36).exp())
        assert abs(one - right) < right * Fraction(2) ** -50
    values, bands = ExponentialTable.beside(units).exponentials(units)
    assert 2.0**-402 < values.min() < values.max() < 2.0**402
    there = backend.asarray(units)
    with computing_on(there):
        found = ExponentialTable.beside(there).exponentials(there)
    for one, other in zip(found, (values, bands), strict=True):
        assert np.array_equal(backend.to_numpy(one), other)


def test_exponentials_are_capped_at_800_and_fall_strictly_from_one_unit_to_the_next():
    units = np.asarray([LIMIT, LIMIT + 1, 2**53, -LIMIT, -LIMIT - 1, -(2**53)])
    small, large = exponentials(np.asarray([LIMIT, -LIMIT]))
    assert exponentials(units) == [small] * 3 + [large] * 3
    places = (-800, -278, -277, -3, 0, 1, 7, 799)
    borders = [place << bits for bits in (0, 12, 24, 36) for place in places]
    for border in [*borders, *RNG.integers(-LIMIT, LIMIT, 50).tolist()]:
        near = np.clip(np.arange(border - 5, border + 6), -LIMIT, LIMIT)
        falls = [one > other for one, other in itertools.pairwise(exponentials(near))]
        assert falls == (np.diff(near) > 0).tolist()
