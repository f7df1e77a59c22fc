"""Held-out scores of whole fits at any size of the votes, against decimals of 50 digits."""

from __future__ import annotations

import decimal
import math
import sys
import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from classifiers import CASES, KINDS, drawn

RATES = [1e-6, 3.0, 60.0, 2000.0, 1e6]

PRECISE = decimal.Context(prec=50, Emax=10**9, Emin=-(10**9))


def log_of_sum(terms: list[Decimal]) -> Decimal:
    return sum((term.exp() for term in terms), Decimal()).ln()


def loss_of(scoring: str, link: str, of_class: int, scores: list[Decimal]) -> Decimal:
    """A sample's loss by its definition, from the score of each output."""
    signs = [1 if number == of_class else -1 for number in range(len(scores))]
    if len(scores) == 1:
        signs = [1 if of_class else -1]
    margins = [sign * score for sign, score in zip(signs, scores, strict=True)]
    if scoring == "neg_exponential_loss":
        return sum(((-margin).exp() for margin in margins), Decimal()) / len(margins)
    factor = 2 if scoring == "neg_log_loss" else 1
    if link == "softmax":
        return log_of_sum([factor * score for score in scores]) - factor * scores[of_class]
    losses = [log_of_sum([Decimal(0), -factor * margin]) for margin in margins]
    if scoring == "neg_log_loss" and len(scores) > 1:
        logs = [-log_of_sum([Decimal(0), -2 * score]) for score in scores]
        return log_of_sum(logs) - logs[of_class]
    return sum(losses, Decimal()) / len(losses)


def scores_of_runs(fit: Any, staged: np.ndarray) -> list[np.ndarray]:
    """The scores that each run is judged by, (n_samples, n_outputs)."""
    if len(fit.held_out_scores_) == 1:
        return [staged.reshape(len(staged), -1)]
    return [staged[:, [number]] for number in range(len(fit.held_out_scores_))]


@pytest.mark.parametrize("scoring", ["loss", "neg_log_loss", "neg_exponential_loss"])
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize(("kind", "n_classes"), CASES)
def test_scores_are_right_or_infinite_at_any_learning_rate(kind, n_classes, rate, scoring):
    X, y = drawn(n_classes, n_samples=60)
    X_val, y_val = drawn(n_classes, n_samples=25, seed=1)
    how = {"n_estimators": 12, "learning_rate": rate, "scoring": scoring, "device": "cpu"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the larger rates end a run early
        fit = KINDS[kind](**how).fit(X, y, X_val=X_val, y_val=y_val)
    link = fit.model_.link
    judged = 0
    for number, staged in enumerate(fit.staged_decision_function(X_val)):
        for run, scores in enumerate(scores_of_runs(fit, staged)):
            if number >= len(fit.held_out_scores_[run]):
                continue
            found = fit.held_out_scores_[run][number]
            classes = y_val if len(fit.held_out_scores_) == 1 else (y_val == run).astype(int)
            with decimal.localcontext(PRECISE):
                pairs = zip(classes.tolist(), scores.tolist(), strict=True)
                losses = [loss_of(scoring, link, own, [*map(Decimal, row)]) for own, row in pairs]
                expected = sum(losses, Decimal()) / len(losses)
                if expected > Decimal(sys.float_info.max):
                    assert found == -math.inf
                elif scoring == "neg_exponential_loss":
                    slack = expected * Decimal(2) ** -49 + Decimal(math.ulp(0.0)) / 2
                    assert abs(Decimal(-found) - expected) <= slack
                else:
                    assert abs(Decimal(-found) - expected) < n_classes * Decimal(2) ** -23
            judged += 1
    assert judged >= (1 if rate < 1e6 else 0)


def test_a_run_whose_scores_are_all_infinite_keeps_its_first_round():
    X, y = drawn(2, n_samples=200)
    how = {"learning_rate": 2000.0, "n_iter_no_change": 3, "scoring": "neg_exponential_loss"}
    fit = KINDS["discrete"](**how, random_state=0, device="cpu").fit(X, y)
    assert fit.held_out_scores_ == ((-math.inf,) * 4,)
    assert (fit.n_iter_, fit.stop_reasons_) == (1, ("early",))
