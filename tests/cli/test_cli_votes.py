"""`gpustump train` with every kind of votes, and what the other commands say of such models."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from classifiers import drawn
from command import command_fixture, numbers, parts  # noqa: F401
from sklearn.base import clone
from sklearn.metrics import log_loss

from gpustump import (
    AdaBoostClassifier,
    GlassBoxClassifier,
    LogitBoostClassifier,
    RegionMember,
    Split,
    StumpEnsemble,
)


def logit(**given: object) -> LogitBoostClassifier:
    return LogitBoostClassifier(device="cpu", **given)


def ada(n_rounds: int, **given: object) -> AdaBoostClassifier:
    return AdaBoostClassifier(n_estimators=n_rounds, device="cpu", **given)


OPTIONS = {
    "--loss logistic": logit(),
    "--loss logistic --multi-class one-vs-rest --l2 0.5 --rounds 30 --learning-rate 0.7": logit(
        n_estimators=30, learning_rate=0.7, l2_regularization=0.5, multi_class="one_vs_rest"
    ),
    "--loss logistic --smoothing-rounds 9 --rounds 20": logit(n_estimators=20, smoothing_rounds=9),
    "--votes real": ada(100, votes="real"),
    "--multi-class shared --loss exponential --rounds 30": ada(30, multi_class="shared"),
    "--votes real --multi-class shared --rounds 30": ada(30, votes="real", multi_class="shared"),
    "--glass-box --loss logistic --rounds 60": (
        GlassBoxClassifier(n_estimators=60, random_state=0, device="cpu")
    ),
    "--votes real --rounds 30 --bags 3 --patience 4": (
        ada(30, votes="real", n_bags=3, n_iter_no_change=4, random_state=0)
    ),
    "--loss exponential --patience 7": ada(100, n_iter_no_change=7, random_state=0),
}
"""Options, and the estimators that they stand for."""


def table(n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Features and labels, written as table.npz."""
    X, y = drawn(n_classes)
    np.savez("table.npz", X=X, y=y)
    return X, y


def trained(command, options: str, *more: object):
    return command.succeeds("train", "table.npz", "--target", "y", *options.split(), *more)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("options", OPTIONS)
def test_each_choice_is_the_librarys_estimator_and_its_log_loss_is_scikit_learns(
    command, options, n_classes
):
    X, y = table(n_classes)
    rows, held_out = parts(len(y), y)
    classifier = clone(OPTIONS[options]).fit(X[rows], y[rows])
    outcome = trained(command, options)
    assert outcome.row("digest") == classifier.model_.digest()
    assert StumpEnsemble.load("model.json") == classifier.model_
    found = numbers(outcome.row("held-out log-loss"))[0]
    assert found == pytest.approx(
        log_loss(y[held_out], classifier.predict_proba(X[held_out])), abs=1e-4
    )
    assert max(len(line) for line in outcome.out.splitlines() if "digest" not in line) <= 80


UNDEFINED = {
    "--loss logistic --votes real": "--votes is for --loss exponential",
    "--l2 1": "--l2 is for --loss logistic, and for quantities",
    "--loss squared": "squared_error, quantile, poisson or gamma; got 'squared'",
    "--votes newton": "must be discrete or real; got 'newton'",
    "--multi-class all": "--multi-class: must be one-vs-rest or shared; got 'all'",
    "--smoothing-rounds 9 --votes real": "--smoothing-rounds is for --loss logistic, and for",
    "--l2 -1 --loss logistic": "--l2: must be a number of at least 0; got '-1'",
    "--glass-box --votes real": "--glass-box takes no --loss exponential and no --votes",
    "--glass-box --interactions two": "--interactions: must be a whole number of at",
    "--glass-box --interactions=-2x": "got '-2x'",
    "--votes real --interactions auto": "--interactions is for --loss logistic",
    "--bags 0": "--bags: must be a whole number of at least 1 and at most 1000000; got '0'",
    "--loss squared_error --balanced": "--balanced is for classes",
    "--loss squared_error --quantile 0.5": "--quantile is for --loss quantile, not for --loss squ",
    "--quantile 1": "--quantile: must be a number between 0 and 1; got '1'",
    "--quantile 0.5 --votes real": "--quantile is for --loss quantile, not for --loss exponential",
    "--quantile 0.5 --interactions 3": "--loss quantile takes no --monotone and no --interactions",
}
SAID = {
    "--loss logistic --l2 2": "LogitBoostClassifier l2_regularization 2.0",
    "--votes real --learning-rate 0.5": "AdaBoostClassifier learning_rate 0.5 votes real",
    "--multi-class shared": "AdaBoostClassifier multi_class shared",
    "--loss exponential": "AdaBoostClassifier",
    "--glass-box --bags 2": "GlassBoxClassifier n_bags 2",
    "--loss gamma": "StumpBoostingRegressor loss gamma",
}


def test_what_is_trained_is_said_and_nothing_undefined_is_trained(command):
    for options, said in UNDEFINED.items():  # before the table is read
        message = command.refuses("train", "absent.npy", "--target", 0, *options.split())
        assert said in message
        assert message.endswith("(see gpustump train --help)")
    X, y = table(2)
    np.savez("table.npz", X=X, y=y + 1)
    for options, said in SAID.items():
        lines = " ".join(trained(command, options, "--rounds", 3).out.split())
        assert f"estimator {said} rounds" in lines


@pytest.mark.parametrize("is_weighted", [False, True])
def test_logistic_boosting_states_the_training_log_loss_and_no_bound(command, is_weighted):
    X, y = table(4)
    weights = np.random.default_rng(5).exponential(size=len(y)) if is_weighted else np.ones(len(y))
    np.savez("table.npz", X=X, y=y, w=weights * 1e300)
    outcome = trained(command, "--loss logistic --rounds 20", *["--weight", "w"] * is_weighted)
    rows, _ = parts(len(y), y)
    model = StumpEnsemble.load("model.json")
    error = np.average(model.predict(X[rows]) != y[rows], weights=weights[rows])
    assert outcome.row("training error") == f"{error:.4f}"
    expected = log_loss(y[rows], model.predict_proba(X[rows]), sample_weight=weights[rows])
    assert float(outcome.row("training log-loss")) == pytest.approx(expected, abs=1e-4)
    assert outcome.row("rounds") == "20, shared by 4 classes"


@pytest.mark.parametrize("votes", ["discrete", "real"])
@pytest.mark.parametrize(
    ("n_classes", "multi_class"), [(2, "one-vs-rest"), (3, "one-vs-rest"), (3, "shared")]
)
def test_the_bound_is_the_exponential_loss_of_what_was_trained(
    command, votes, n_classes, multi_class
):
    X, y = table(n_classes)
    options = f"--votes {votes} --multi-class {multi_class} --rounds 60 --learning-rate 0.5"
    outcome = trained(command, options)
    rows, _ = parts(len(y), y)
    model = StumpEnsemble.load("model.json")
    scores = model.decision_function(X[rows]).reshape(len(rows), -1)
    signs = np.where(y[rows][:, None] == np.arange(n_classes)[-scores.shape[1] :], 1.0, -1.0)
    losses = np.exp(-signs * scores).mean(axis=0)  # Z_1 * ... * Z_T [Schapire and Singer 1999]
    bound = losses.sum() / (2.0 if multi_class == "shared" else 1.0)
    error = np.mean(model.predict(X[rows]) != y[rows])
    assert error <= bound
    name = "AdaBoost.MH's" if multi_class == "shared" else "AdaBoost's"
    at_most = f", at most {bound:.4f} by {name} bound" if bound < 1 else ""
    assert outcome.row("training error") == f"{error:.4f}{at_most}"


@pytest.mark.filterwarnings("ignore:.* made no round")
@pytest.mark.parametrize(
    ("options", "rounds", "votes"),
    [
        ("--votes real", "1 of 100: a stump without error ended it", "column 0 100.0%"),
        ("--votes real --learning-rate 1e-13", "0 of 100: further votes round to zero", "none"),
        ("--loss logistic --learning-rate 1e-13", "0 of 200: further votes round to zero", "none"),
    ],
)
def test_the_summary_says_why_the_rounds_ended(command, options, rounds, votes):
    x = np.arange(40.0)
    np.savez("table.npz", X=x[:, None], y=(x > 19).astype(int))
    outcome = trained(command, options)
    assert outcome.row("rounds") == rounds
    assert " ".join(outcome.row("most votes").split()) == votes
    np.savez("table.npz", X=np.ones((40, 1)), y=np.arange(40) % 2)  # no stump can help
    if "logistic" in options:
        outcome = trained(command, "--loss logistic")
        assert outcome.row("rounds") == "0 of 200: no further stump helps"
        assert outcome.row("most votes") == "none"
        assert numbers(outcome.row("training log-loss")) == [pytest.approx(math.log(2), abs=1e-4)]
        shown = command.succeeds("inspect", "model.json").out
        assert "no stumps: the score is the same for every row" in shown


@pytest.mark.filterwarnings("default")
def test_votes_that_become_too_large_are_told_on_stderr_too(command):
    table(2)
    outcome = command("train", "table.npz", "--target", "y", "--learning-rate", "1e6")
    assert outcome.row("rounds") == "0 of 100: at this learning rate votes become too large"
    assert outcome.err == (
        "gpustump: votes became too large: the fit ended after 0 rounds, as the sum of absolute "
        "votes may not exceed 131072. Take a smaller learning_rate than 1e+06.\n"
    )


@pytest.mark.parametrize("options", ["", "--loss logistic"])
def test_balanced_classes_are_the_librarys(command, options):
    X, y = drawn()
    y &= X[:, 3] > 0
    np.savez("table.npz", X=X, y=y)
    estimator = logit(class_weight="balanced") if options else ada(100, class_weight="balanced")
    outcome = trained(command, options, "--balanced", "--test-size", 0)
    assert outcome.row("digest") == estimator.fit(X, y).model_.digest()
    assert "class_weight balanced" in outcome.out


def saved(votes, splits, constant, **options) -> None:
    member = RegionMember(tuple(splits), np.asarray(votes, dtype=float), np.asarray(constant))
    StumpEnsemble((member,), 2, **options).save("model.json")


def test_rules_say_what_each_region_votes(command):
    saved(
        [
            [[-0.71875], [0.9296875], [0.0]],
            [[0.25], [-0.25], [0.5]],
            [[0.125], [0.25], [-0.5]],
            [[-0.5], [0.0], [-0.5]],
        ],
        [Split(0, 884.55), Split(1, 2.0), Split(1, math.inf), Split(0, math.inf)],
        [-0.5],
        classes=("benign", "malignant"),
        feature_names=("worst area", "age"),
        missing_learnt=(False, True),
    )
    lines = command.lines("inspect", "model.json")
    assert lines[4:] == [
        "scores half the log-odds of malignant",
        "start from -0.500",
        lines[6],
        "",
        "rule missing",
        "1. worst area <= 884.55 -> benign +0.719, else malignant +0.930 -",
        "2. age <= 2 -> malignant +0.250, else benign +0.250 malignant +0.500",
        "3. age is present -> malignant +0.125 benign +0.500",
        "4. always benign +0.500 benign +0.500",
        "",
        "feature votes stumps",
        "worst area 54.5% 1",  # half the largest difference: 0.8242 of 1.5117
        "age 45.5% 2",
    ]
    assert lines[6].startswith("digest ")
    saved([[[-(2.0**-10)], [2.0**-14], [0.0]]], [Split(0, 1.0)], [0.0])
    lines = command.lines("inspect", "model.json")
    assert "1. column 0 <= 1 -> -1 +0.000977, else 1 +0.000061 0" in lines


def test_shared_stumps_are_tables_of_classes_and_regions(command):
    saved(
        [[[1.0, -0.5, 0.0], [-0.25, 0.5, 0.0], [0.0, 0.0, 0.125]], np.full((3, 3), 0.25)],
        [Split(1, 2.45), Split(0, math.inf)],
        [0.0, 0.0, 0.0],
        classes=("setosa", "versicolor", "virginica"),
        link="softmax",
    )
    lines = command.lines("inspect", "model.json")
    assert "rounds 2, shared by all 3 classes" in lines
    assert (
        "scores half the log-odds of the classes, up to a constant that is common to all of them"
        in lines
    )
    assert not any(line.startswith("start from") for line in lines)
    at = lines.index("rule class then else missing")
    assert lines[at + 1 : at + 7] == [
        "1. column 1 <= 2.45 setosa +1.000 -0.250 0",
        "versicolor -0.500 +0.500 0",
        "virginica 0 0 +0.125",
        "2. always setosa +0.250 +0.250",
        "versicolor +0.250 +0.250",
        "virginica +0.250 +0.250",
    ]


def test_of_many_classes_a_shared_stump_shows_those_that_it_tells_apart(command):
    votes = np.zeros((1, 3, 6))
    votes[0, 0] = [0.125, -0.25, 0.5, 0.75, -1.0, 0.0]
    saved(votes, [Split(0, 1.0)], np.arange(6) / 4, classes=tuple("abcdef"))
    lines = command.lines("inspect", "model.json")
    assert "start from a: 0, b: +0.250, c: +0.500, d: +0.750, e: +1.000, f: +1.250" in lines
    at = lines.index("rule class then else missing")
    assert lines[at + 1 : at + 5] == [
        "1. column 0 <= 1 c +0.500 0 0",
        "d +0.750 0 0",
        "e -1.000 0 0",
        "and 3 classes with less",
    ]


def test_the_rules_shown_add_up_to_the_scores(command):
    X, y = table(2)
    np.savez("table.npz", X=X, y=y | (X[:, 3] > 0))  # scores do not start from 0
    trained(command, "--loss logistic --rounds 12 --learning-rate 1", "--quiet")
    lines = command.lines("inspect", "model.json")
    (start,) = (line for line in lines if line.startswith("start from"))
    scores = np.full(len(X), numbers(start)[0])
    rule = re.compile(r"\d+\. column (\d) <= (\S+) -> (\d) \+(\S+), else (\d) \+(\S+) -")
    found = [match for match in map(rule.fullmatch, lines) if match]
    assert len(found) == 12
    for match in found:
        feature, threshold, label, vote, other_label, other_vote = map(float, match.groups())
        votes = (2 * label - 1) * vote, (2 * other_label - 1) * other_vote
        scores += np.where(X[:, int(feature)] <= threshold, *votes)
    expected = StumpEnsemble.load("model.json").decision_function(X)
    assert scores == pytest.approx(expected, abs=13 * 0.0005)
