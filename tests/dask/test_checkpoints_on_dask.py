"""Checkpoints of fits on clusters: a fit goes on from them on any cluster, or on one machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from classifiers import drawn
from on_dask import AdaBoostThere, LogitBoostThere
from partitioned_tables import spread

from gpustump import AdaBoostClassifier, LogitBoostClassifier

KINDS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "discrete": (AdaBoostThere, AdaBoostClassifier, {"class_weight": "balanced"}),
    "real-shared": (
        AdaBoostThere,
        AdaBoostClassifier,
        {"votes": "real", "multi_class": "shared"},
    ),
    "newton": (
        LogitBoostThere,
        LogitBoostClassifier,
        {"n_iter_no_change": 8, "random_state": 2},
    ),
}


class Interrupted(BaseException):
    """Ends a fit in the middle."""


def interrupting(after: int) -> Any:
    seen = []

    def callback(record):
        seen.append(record)
        if len(seen) > after:
            raise Interrupted

    return callback


def facts_of(classifier: Any) -> tuple[Any, ...]:
    return (
        classifier.model_.digest(),
        classifier.rounds_,
        classifier.stop_reasons_,
        classifier.held_out_scores_,
        classifier.held_out_errors_,
    )


@pytest.mark.parametrize("is_watching", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_fit_goes_on_on_another_cluster_and_on_one_machine(threads, kind, is_watching, tmp_path):
    there, here, how = KINDS[kind]
    X, y = drawn(3, n_samples=150, missing=0.1)
    weights = np.random.default_rng(0).integers(0, 3, 150) * 0.7
    watched, spread_watched = {}, {}
    if is_watching:
        watched = {"X_val": X[::2], "y_val": y[::2], "sample_weight_val": weights[::2]}
        spread_watched = dict(zip(watched, spread(*watched.values(), seed=4), strict=True))
    how = {"n_estimators": 9, **how}
    whole = here(**how).fit(X, y, weights, **watched)
    how["checkpoint"] = path = tmp_path / "run.json"
    for after, seed in ((3, 0), (2, 1)):
        with pytest.raises(Interrupted):
            there(client=threads, **how, callback=interrupting(after)).fit(
                *spread(X, y, weights, seed=seed), **spread_watched
            )
    with pytest.raises(Interrupted):
        here(**how, callback=interrupting(2)).fit(X, y, weights, **watched)
    before = Path(path).read_bytes()
    found = there(client=threads, **how).fit(*spread(X, y, weights, seed=2), **spread_watched)
    assert facts_of(found) == facts_of(whole)
    Path(path).write_bytes(before)
    assert facts_of(here(**how).fit(X, y, weights, **watched)) == facts_of(whole)


def test_other_data_are_refused_wherever_they_are(threads, tmp_path):
    X, y = drawn(n_samples=150, missing=0.1)
    weights = np.ones(150)
    how = {"n_estimators": 4, "checkpoint": tmp_path / "run.json", "client": threads}
    AdaBoostThere(**how).fit(*spread(X, y, weights))
    before = (tmp_path / "run.json").read_bytes()
    cell, label, weight = X.copy(), y.copy(), weights.copy()
    cell[130, 3], label[20], weight[60] = 9.0, 1 - y[20], 0.0
    changes = [
        ((cell, y, weights), "the values of feature 3 differ"),
        ((X, label, weights), "the target differs"),
        ((X, y, weight), "the sample weights differ"),
        ((X.astype(np.float32), y, weights), "dtype of X was 'float64', and is 'float32' now"),
        ((X[:-1], y[:-1], weights[:-1]), "the table has 149 rows instead of 150"),
    ]
    for given, message in changes:
        with pytest.raises(ValueError, match=message):
            AdaBoostThere(**how).fit(*spread(*given))
    assert (tmp_path / "run.json").read_bytes() == before
