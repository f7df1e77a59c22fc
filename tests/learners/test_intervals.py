"""Intervals as weak learner: what makes none, and rounds of intervals after rounds of stumps."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gpustump import AdaBoostClassifier, Interval, Stump


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"low": 2.0}, "low must be below high"),
        ({"low": math.nan}, "low must be below high"),
        ({"high": math.inf}, "high finite"),
        ({"polarity": 0}, "polarity must be"),
        ({"missing": 2}, "missing must be"),
    ],
)
def test_an_interval_that_makes_no_sense_is_refused(change, message):
    fields = {"feature": 0, "low": 0.0, "high": 1.0, "polarity": 1, "missing": -1, "error": 0.1}
    with pytest.raises(ValueError, match=message):
        Interval(**(fields | change))


def test_a_warm_start_may_go_on_with_intervals():
    random = np.random.default_rng(5)
    X = random.normal(size=(300, 4))
    y = np.abs(X[:, 1]) + 0.4 * random.normal(size=300) < 0.7
    fitted = AdaBoostClassifier(n_estimators=4, warm_start=True).fit(X, y)
    fitted.set_params(n_estimators=8, weak_learner="interval").fit(X, y)
    kinds = [type(stump) for stump in fitted.model_.members[0].stumps]
    assert kinds[:4] == [Stump] * 4
    assert Interval in kinds[4:]
    assert fitted.rounds_[0][-1].training_error == np.mean(fitted.predict(X) != y)
