"""Scores of held-out samples of K outputs, against decimals, fractions and scikit-learn."""

from __future__ import annotations

import decimal
import itertools
import math
import sys
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from backends import Backend
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    log_loss,
    roc_auc_score,
)

from gpustump.boosting.held_out_losses import _exact_sum
from gpustump.boosting.held_out_samples import error_of, weight_of
from gpustump.boosting.held_out_scores import (
    HeldOut,
    HeldOutClasses,
    Watched,
    additive_scorer,
    check_classes,
    scorer,
    value_of,
)
from gpustump.data.parameters import SCORINGS
from gpustump.engines.integer_weights import IntegerWeights
from gpustump.learners.step_table import VOTE_UNIT, VOTES_LIMIT

RNG = np.random.default_rng(0)

K = 4

LINKS = ("logistic", "softmax")

LOG_LOSSES = list(itertools.product(("loss", "neg_log_loss"), LINKS))

OF_EVERY_CLASS = ("balanced_accuracy", "roc_auc")

ADDITIVE = tuple(scoring for scoring in SCORINGS if scoring != "roc_auc")


def in_units(scores: np.ndarray) -> np.ndarray:
    return np.round(scores / VOTE_UNIT) * VOTE_UNIT


def held_out(n: int = 60, scale: float = 1.0, seed: int = 0):
    """Class numbers, weights and scores (n, K), with ties in rows and in columns."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, K, size=n)
    classes[:K] = range(K)
    scores = rng.normal(scale=2.0, size=(n, K)) - 1
    scores[np.arange(n), classes] += 2
    scores[::5] = scores[0]
    scores[1::7, 2] = scores[1::7, 1]
    scores[2::9] = 0
    return classes, rng.integers(1, 9, size=n).astype(float), in_units(scores * scale)


def score_of(scoring, classes, weights, scores, link="logistic", n_classes=K) -> float:
    samples = HeldOutClasses(classes, IntegerWeights.of(weights), n_classes)
    return scorer(scoring, samples, link)(scores)


def score_of_one_output(scoring, y, weights, scores) -> float:
    return scorer(scoring, HeldOut(y, IntegerWeights.of(weights)))(scores)


def precise() -> decimal.Context:
    return decimal.Context(prec=50, Emax=10**9, Emin=-(10**9))


def softplus(x: Decimal) -> Decimal:
    return (1 + x.exp()).ln()


def loss_of(scoring: str, link: str, of_class: int, scores: list[float]) -> Decimal:
    """A sample's loss by its definition."""
    factor = {"loss": 1, "neg_log_loss": 2}[scoring]
    with decimal.localcontext(precise()):
        F = [factor * Decimal(score) for score in scores]
        if link == "softmax":
            return sum((x.exp() for x in F), Decimal()).ln() - F[of_class]
        if scoring == "neg_log_loss":
            sigmas = [(-softplus(-x)).exp() for x in F]
            return sum(sigmas, Decimal()).ln() + softplus(-F[of_class])
        return sum((softplus(-x if k == of_class else x) for k, x in enumerate(F)), Decimal()) / K


def exponential_loss_of(of_class: int, scores: list[float]) -> Decimal:
    with decimal.localcontext(precise()):
        F = map(Decimal, scores)
        return sum(((-x if k == of_class else x).exp() for k, x in enumerate(F)), Decimal()) / K


def weighted_mean(values: list[Decimal], weights: np.ndarray) -> Decimal:
    with decimal.localcontext(precise()):
        total = sum((v * Decimal(w) for v, w in zip(values, weights, strict=True)), Decimal())
        return total / sum(map(Decimal, weights.tolist()))


def mean_by_definition(loss, classes, weights, scores) -> Decimal:
    values = [loss(*pair) for pair in zip(classes.tolist(), scores.tolist(), strict=True)]
    return weighted_mean(values, weights)


def probabilities(scores: np.ndarray, link: str) -> np.ndarray:
    shares = np.exp(2 * scores) if link == "softmax" else 1 / (1 + np.exp(-2 * scores))
    return shares / shares.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("scoring", SCORINGS)
def test_a_score_is_the_same_number_in_every_library(backend: Backend, scoring, link):
    for scale in (0.1, 3.0, 5_000.0):
        samples = held_out(scale=scale)
        there = [backend.asarray(part) for part in samples]
        assert score_of(scoring, *there, link) == score_of(scoring, *samples, link)


def test_the_error_is_the_same_number_in_every_library(backend: Backend):
    classes, weights, scores = held_out()

    def error_of(classes, weights, scores):
        return HeldOutClasses(classes, IntegerWeights.of(weights), K).error(scores)

    found = error_of(*map(backend.asarray, (classes, weights, scores)))
    assert found == error_of(classes, weights, scores)
    predicted = scores.argmax(axis=1)
    assert found == pytest.approx(1 - accuracy_score(classes, predicted, sample_weight=weights))


@pytest.mark.parametrize(("scoring", "link"), LOG_LOSSES)
@pytest.mark.parametrize("scale", [1e-9, 0.3, 5.0, 100.0, 1e4])
def test_a_loss_is_its_definition_to_the_error_that_is_stated(scoring, link, scale):
    classes, weights, scores = held_out(scale=scale)
    expected = mean_by_definition(
        lambda *sample: loss_of(scoring, link, *sample), classes, weights, scores
    )
    found = Decimal(-score_of(scoring, classes, weights, scores, link))
    assert abs(found - expected) < K * Decimal(2) ** -24 + len(classes) * Decimal(2) ** -42


@pytest.mark.parametrize("link", LINKS)
def test_the_log_loss_is_that_of_scikit_learn(link):
    for seed in range(3):
        classes, weights, scores = held_out(200, seed=seed)
        expected = log_loss(classes, probabilities(scores, link), sample_weight=weights)
        found = score_of("neg_log_loss", classes, weights, scores, link)
        assert -found == pytest.approx(expected, abs=K * 2.0**-24)


def test_a_constant_added_to_all_scores_leaves_the_softmax_alone():
    classes, weights, scores = held_out()
    for scoring, constant in itertools.product(("loss", "neg_log_loss"), (1e5, -1e5, VOTE_UNIT)):
        before = score_of(scoring, classes, weights, scores, "softmax")
        assert score_of(scoring, classes, weights, scores + constant, "softmax") == before


@pytest.mark.parametrize(("scoring", "link"), LOG_LOSSES)
def test_equal_scores_of_many_classes_give_the_logarithm_of_their_number(scoring, link):
    found = score_of(scoring, np.arange(500), np.ones(500), np.zeros((500, 500)), link, 500)
    expected = np.log(2) if (scoring, link) == ("loss", "logistic") else np.log(500)
    assert -found == pytest.approx(expected, abs=500 * 2.0**-24)


@pytest.mark.parametrize(("scoring", "link"), LOG_LOSSES)
def test_a_loss_is_never_negative(scoring, link):
    scores = in_units(RNG.uniform(0, 40, size=(300, 1)) * np.asarray([[1.0, -1.0, -1.0, -1.0]]))
    for row in np.split(scores, 300):
        assert score_of(scoring, np.zeros(1, dtype=int), np.ones(1), row, link) <= 0


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("scoring", SCORINGS)
def test_extreme_scores_and_weights_have_a_score(backend: Backend, scoring, link):
    top = VOTES_LIMIT
    scores = np.full((K, K), -top)
    scores[0] = top
    scores[1, 0] = 1e5
    for weights in ([1.0] * K, [1e300, 1e-300, 1.0, 1.0], [1e-300, 1e300, 1e300, 1e300]):
        there = (backend.asarray(np.asarray(part)) for part in (np.arange(K), weights, scores))
        found = score_of(scoring, *there, link)
        is_loss = scoring in ("loss", "neg_log_loss", "neg_exponential_loss")
        assert np.isfinite(found) or (scoring == "neg_exponential_loss" and found == -math.inf)
        assert (found <= 0) if is_loss else (0 <= found <= 1)


def test_the_worst_scores_have_the_losses_that_they_should():
    top = VOTES_LIMIT
    scores = np.full((K, K), top) - 2 * top * np.eye(K)
    for link, scoring, expected in (
        ("logistic", "loss", top),
        ("logistic", "neg_log_loss", 2 * top + np.log(K - 1)),
        ("softmax", "loss", 2 * top + np.log(K - 1)),
        ("softmax", "neg_log_loss", 4 * top + np.log(K - 1)),
    ):
        found = score_of(scoring, np.arange(K), np.ones(K), scores, link)
        assert -found == pytest.approx(expected, abs=K * 2.0**-24)


@pytest.mark.parametrize("scoring", SCORINGS)
@pytest.mark.parametrize("scale", [0.1, 3.0, 20_000.0])
def test_two_outputs_of_opposite_scores_score_as_one_output_does(scoring, scale):
    """P is the same if F of the softmax is half of that of the single output."""
    rng = np.random.default_rng(1)
    classes = np.asarray([0, 1] * 40)
    half = in_units(rng.normal(size=80) * scale)
    half[::5] = half[0]
    weights = rng.integers(1, 9, size=80).astype(float)
    one = score_of_one_output(scoring, 2.0 * classes - 1, weights, 2 * half)
    two = np.stack([-half, half], axis=1)
    if scoring == "neg_log_loss":
        assert score_of(scoring, classes, weights, two, "softmax", 2) == one
    elif scoring == "loss":
        assert score_of(scoring, classes, weights, two, "softmax", 2) == one
        assert score_of(scoring, classes, weights, 2 * two, "logistic", 2) == one
    else:
        assert score_of(scoring, classes, weights, 2 * two, "logistic", 2) == one


def test_accuracy_and_balanced_accuracy_are_those_of_scikit_learn():
    for seed in range(5):
        classes, weights, scores = held_out(seed=seed)
        predicted = scores.argmax(axis=1)
        for scoring, peer in (
            ("accuracy", accuracy_score),
            ("balanced_accuracy", balanced_accuracy_score),
        ):
            expected = peer(classes, predicted, sample_weight=weights)
            found = score_of(scoring, classes, weights, scores)
            assert found == pytest.approx(expected, rel=1e-14)


def test_of_equal_scores_the_first_class_counts(backend: Backend):
    scores = np.asarray([[1.0, 1, 0, 0], [0, 2, 2, 2], [3, 3, 3, 3], [0, 0, 0, 5]])
    for classes, right in (([0, 1, 0, 3], 1.0), ([1, 2, 3, 3], 0.25)):
        parts = (np.asarray(classes), np.ones(4), scores)
        assert score_of("accuracy", *map(backend.asarray, parts)) == right


def test_the_area_under_the_roc_curve_counts_pairs_and_ties_by_half():
    for seed in range(3):
        classes, weights, scores = held_out(seed=seed)
        areas = []
        for k in range(K):
            won, total = Fraction(0), Fraction(0)
            for i, j in itertools.product(
                np.flatnonzero(classes == k), np.flatnonzero(classes != k)
            ):
                pair = Fraction(weights[i]) * Fraction(weights[j])
                tie = Fraction(int(scores[i, k] == scores[j, k]), 2)
                won += pair * (int(scores[i, k] > scores[j, k]) + tie)
                total += pair
            areas.append(won / total)
        found = score_of("roc_auc", classes, weights, scores)
        assert found == pytest.approx(float(sum(areas) / K), rel=1e-15)


def test_the_area_under_the_roc_curve_is_scikit_learn_s_ovr_for_scores_that_sum_to_one():
    classes, weights, scores = held_out(300)
    shares = in_units(probabilities(scores, "softmax"))
    shares[:, -1] = 1 - shares[:, :-1].sum(axis=1)
    expected = roc_auc_score(
        classes, shares, multi_class="ovr", average="macro", sample_weight=weights
    )
    for link in LINKS:
        found = score_of("roc_auc", classes, weights, shares, link)
        assert found == pytest.approx(expected, rel=1e-12)


def test_the_area_under_the_roc_curve_takes_weights_of_any_size():
    classes, _, scores = held_out(400)
    tiny_class = np.where(classes == 2, 1e-9, 1.0) * RNG.uniform(0.5, 2, 400)
    for weights in (tiny_class, RNG.exponential(size=400) ** 6, np.full(400, 1 / 3)):
        expected = np.mean(
            [roc_auc_score(classes == k, scores[:, k], sample_weight=weights) for k in range(K)]
        )
        found = score_of("roc_auc", classes, weights, scores)
        assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("scoring", SCORINGS)
def test_repeated_samples_score_as_weighted_ones_do(scoring, link):
    classes, weights, scores = held_out()
    repeated = np.repeat(np.arange(len(classes)), weights.astype(int))
    ones = np.ones(len(repeated))
    found = score_of(scoring, classes[repeated], ones, scores[repeated], link)
    assert found == pytest.approx(score_of(scoring, classes, weights, scores, link), abs=1e-9)


@pytest.mark.parametrize("scoring", SCORINGS)
def test_only_scores_that_need_every_class_are_refused_without_one(scoring):
    classes, weights, scores = held_out()
    kept = classes != 2
    parts = classes[kept], weights[kept], scores[kept]
    if scoring in OF_EVERY_CLASS:
        with pytest.raises(ValueError, match=f"scoring='{scoring}' needs.*class number 2 has none"):
            score_of(scoring, *parts)
    else:
        assert score_of(scoring, *parts) < (0 if scoring != "accuracy" else 1)


@pytest.mark.parametrize("scoring", OF_EVERY_CLASS)
def test_one_output_needs_both_labels(scoring):
    with pytest.raises(ValueError, match="class number 0 has none"):
        score_of_one_output(scoring, np.ones(3), np.ones(3), np.zeros(3))


def test_one_output_has_no_softmax():
    samples = HeldOut(np.ones(3), IntegerWeights.of(np.ones(3)))
    with pytest.raises(ValueError, match="link='softmax' needs one output for each class"):
        scorer("loss", samples, "softmax")


@pytest.mark.parametrize("scale", [1e-9, 0.3, 5.0, 60.0])
def test_the_exponential_loss_is_its_definition_to_2_to_the_minus_49_of_itself(scale):
    classes, weights, scores = held_out(scale=scale)
    expected = mean_by_definition(exponential_loss_of, classes, weights, scores)
    found = Decimal(-score_of("neg_exponential_loss", classes, weights, scores))
    assert abs(found - expected) < expected * Decimal(2) ** -49
    y = np.where(classes == 0, 1.0, -1.0)
    found = Decimal(-score_of_one_output("neg_exponential_loss", y, weights, scores[:, 0]))
    with decimal.localcontext(precise()):
        losses = [(-Decimal(margin)).exp() for margin in (y * scores[:, 0]).tolist()]
    expected = weighted_mean(losses, weights)
    assert abs(found - expected) < expected * Decimal(2) ** -49


def test_the_exponential_loss_is_small_where_all_samples_are_right():
    y, weights = np.ones(5), np.asarray([1.0, 2.0, 3.0, 4.0, 5.0])
    for size in (30.0, 200.0, 599.0):
        found = score_of_one_output("neg_exponential_loss", y, weights, np.full(5, size))
        assert -found == pytest.approx(np.exp(-size), rel=1e-13)


def test_the_exponential_loss_falls_if_one_sample_s_margin_rises_by_one_unit():
    """So small a change of one sample among many shows as long as the sample counts at all."""
    y = np.ones(1000)
    for scale in (0.1, 3.0, 12.0):
        scores = in_units(RNG.normal(scale=scale, size=1000))
        weights = IntegerWeights.of(RNG.uniform(0.5, 2, 1000))
        score = scorer("neg_exponential_loss", HeldOut(y, weights))
        before = score(scores)
        for i in range(0, 1000, 50):
            raised = scores.copy()
            raised[i] += VOTE_UNIT
            assert score(raised) >= before
        worst = np.argmin(scores)
        raised[worst] = scores[worst] + VOTE_UNIT
        assert score(raised) > before


@pytest.mark.parametrize("size", [600.0, 601.0, 709.0, 743.0])
def test_the_exponential_loss_is_right_to_the_ends_of_float64(size):
    y = np.asarray([1.0, -1.0])
    for margins in (-size, size, np.asarray([size, -size]), np.asarray([-size, -0.5])):
        scores = in_units(y * margins)
        with decimal.localcontext(precise()):
            losses = [(-Decimal(margin)).exp() for margin in (y * scores).tolist()]
        expected = weighted_mean(losses, np.ones(2))
        found = score_of_one_output("neg_exponential_loss", y, np.ones(2), scores)
        if expected > Decimal(sys.float_info.max):
            assert found == -math.inf
        else:
            slack = expected * Decimal(2) ** -49 + Decimal(math.ulp(0.0)) / 2
            assert abs(Decimal(-found) - expected) <= slack


def test_the_exponential_loss_is_infinite_or_zero_beyond_float64():
    y, n = np.asarray([1.0, -1.0, 1.0]), 3
    for size in (800.0, 801.0, 1e5, VOTES_LIMIT):
        assert score_of_one_output("neg_exponential_loss", y, np.ones(n), -y * size) == -math.inf
        assert score_of_one_output("neg_exponential_loss", y, np.ones(n), y * size) == 0.0
        weights = np.asarray([1e-300, 1.0, 1.0])  # the integer weights are 1 and about 2**61
        scores = y * np.asarray([-size, size, size])
        assert score_of_one_output("neg_exponential_loss", y, weights, scores) == -math.inf


def test_light_samples_far_on_the_wrong_side_count_by_their_weights():
    y, scores = np.ones(3), np.asarray([-720.0, 0.0, 5.0])
    weights = np.asarray([1.0, 2.0**40, 2.0**40])
    with decimal.localcontext(precise()):
        expected = weighted_mean([(-Decimal(score)).exp() for score in scores.tolist()], weights)
    found = score_of_one_output("neg_exponential_loss", y, weights, scores)
    assert abs(Decimal(-found) - expected) < expected * Decimal(2) ** -49


def test_sums_are_exact_however_far_apart_their_terms_are():
    for spread in (1, 50, 380):
        values = np.ldexp(RNG.uniform(0.5, 1, 500), RNG.integers(-spread, spread, 500))
        values[::7] = 0
        assert Fraction(_exact_sum(values), 2**512) == sum(map(Fraction, values.tolist()))
    assert _exact_sum(np.zeros(3)) == 0


def watched(classes, weights: IntegerWeights, n_outputs: int, has_kernels: bool = False) -> Watched:
    """Held-out samples of one output or of K, added up by the CPU kernels or by arrays."""
    sums = None
    if has_kernels:
        from gpustump.engines.cpu.predict.held_out_sums import HeldOutSums

        sums = HeldOutSums(classes, weights.values, max(2, n_outputs))
    if n_outputs == 1:
        return HeldOut(2.0 * (classes == 1) - 1.0, weights, sums=sums)
    return HeldOutClasses(classes, weights, n_outputs, sums=sums)


def added_up(groups: list[list[int]]) -> list[int]:
    assert all(type(number) is int for group in groups for number in group)
    return [sum(column) for column in zip(*groups, strict=True)]


def grouped_samples(seed: int, n_outputs: int):
    """Classes, integer weights, scores, and the numbers of each of 1 to 4 groups of samples."""
    random = np.random.default_rng(seed)
    n_samples = int(random.integers(6, 40))
    classes, _, scores = held_out(n_samples, random.choice([1e-9, 0.3, 5.0, 1e4]), seed)
    scores = scores[:, 0] if n_outputs == 1 else scores
    classes = classes % 2 if n_outputs == 1 else classes
    spread = random.choice([0.0, 1.0, 9.0])
    weights = IntegerWeights.of(np.exp(random.normal(scale=spread, size=n_samples)))
    n_groups = int(random.integers(1, 5))
    groups = random.integers(random.integers(1, n_groups + 1), size=n_samples)  # some may be empty
    return classes, weights, scores, [np.flatnonzero(groups == g) for g in range(n_groups)]


@pytest.mark.parametrize("has_kernels", [False, True])
@pytest.mark.parametrize("n_outputs", [1, K])
@settings(max_examples=50)
@given(st.integers(0, 10**6), st.sampled_from(ADDITIVE), st.sampled_from(LINKS))
def test_parts_and_totals_of_groups_add_up_to_those_of_all_samples(
    has_kernels, n_outputs, seed, scoring, link
):
    if has_kernels:
        pytest.importorskip("numba")
    link = "logistic" if n_outputs == 1 else link
    classes, weights, scores, groups = grouped_samples(seed, n_outputs)
    everything = watched(classes, weights, n_outputs, has_kernels)
    of_all = scorer(scoring, everything, link)
    parts, totals, errors = [], [], []
    for own in groups:
        mine = IntegerWeights(weights.values[own], weights.total)
        group = watched(classes[own], mine, n_outputs, has_kernels)
        of_group = additive_scorer(scoring, group, link)
        parts.append(of_group.parts(scores[own]))
        totals.append(of_group.totals)
        errors.append([group.right_weight(scores[own]), weight_of(group)])
    assert added_up(parts) == of_all.parts(scores)
    assert added_up(totals) == of_all.totals
    assert value_of(scoring)(added_up(parts), added_up(totals)) == of_all(scores)
    assert error_of(*added_up(errors)) == everything.error(scores)


@pytest.mark.parametrize("n_outputs", [1, K])
@pytest.mark.parametrize("scoring", ADDITIVE)
def test_no_samples_add_nothing_in_every_library(backend: Backend, scoring, n_outputs):
    classes, weights, scores = held_out()
    scores = scores[:, 0] if n_outputs == 1 else scores
    units = IntegerWeights.of(weights)
    none = (backend.asarray(part[:0]) for part in (classes, units.values, scores))
    classes, values, scores = none
    if n_outputs == 1:
        nobody: Watched = HeldOut(backend.asarray(np.zeros(0)), IntegerWeights(values, units.total))
    else:
        nobody = HeldOutClasses(classes, IntegerWeights(values, units.total), n_outputs)
    for link in LINKS[:n_outputs]:
        score = additive_scorer(scoring, nobody, link)
        assert {*score.parts(scores), *score.totals} == {0}
        assert nobody.right_weight(scores) == weight_of(nobody) == 0


def test_a_score_s_value_needs_no_samples():
    assert value_of("accuracy")([3], [4]) == 0.75
    assert value_of("balanced_accuracy")([3, 1], [4, 4]) == 0.5
    assert value_of("loss")([3], [3 << 20]) == -1.0
    assert value_of("neg_exponential_loss")([3 << 1312, 1 << 1312], [2]) == -1.0
    assert error_of(3, 4) == 0.25


def test_a_group_may_lack_a_class_that_another_one_has():
    ones = IntegerWeights.of(np.ones(2))
    group = watched(np.asarray([0, 2]), ones, 3)
    totals = additive_scorer("balanced_accuracy", group).totals
    with pytest.raises(ValueError, match="class number 1 has none"):
        check_classes("balanced_accuracy", totals)
    check_classes("balanced_accuracy", added_up([totals, [0, 5, 0]]))


def test_the_area_under_the_roc_curve_is_not_additive():
    samples = watched(np.asarray([0, 1]), IntegerWeights.of(np.ones(2)), 1)
    assert not scorer("roc_auc", samples).is_additive
    assert all(scorer(scoring, samples).is_additive for scoring in ADDITIVE)
    for ask in (lambda: value_of("roc_auc"), lambda: additive_scorer("roc_auc", samples)):
        with pytest.raises(ValueError, match="scoring='roc_auc' does not add up over groups"):
            ask()
