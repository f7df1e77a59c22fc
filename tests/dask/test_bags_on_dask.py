"""Bags on a cluster: the same shares, rounds and average as on one machine."""

from __future__ import annotations

import random
from typing import Any

import dask
import dask.array as da
import numpy as np
import on_dask
import pytest
from classifiers import drawn
from lost_workers import lose_one, sent_through
from on_dask import AdaBoostThere, LogitBoostThere
from partitioned_tables import spread

from gpustump import AdaBoostClassifier, LogitBoostClassifier
from gpustump.dask import ClusterLostError
from gpustump.data import parameters

X, Y = drawn(3, n_samples=240, missing=0.1)
X[:, 2] = np.nan_to_num(np.round(X[:, 2] * 2)) % 7
WEIGHTS = np.random.default_rng(0).integers(0, 3, len(Y)) * 0.7

ADABOOST = (AdaBoostThere, AdaBoostClassifier)
LOGITBOOST = (LogitBoostThere, LogitBoostClassifier)
KINDS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "all rounds": (*ADABOOST, {"class_weight": "balanced"}),
    "real, shared": (*ADABOOST, {"votes": "real", "multi_class": "shared", "n_iter_no_change": 2}),
    "newton, smoothed": (*LOGITBOOST, {"smoothing_rounds": 5, "n_iter_no_change": 3}),
    "ranked": (
        *LOGITBOOST,
        {"n_iter_no_change": 2, "scoring": "roc_auc", "multi_class": "one_vs_rest"},
    ),
    "categories": (*LOGITBOOST, {"categorical_features": [2], "n_iter_no_change": 3}),
}
HOW = {"n_estimators": 7, "n_bags": 3, "random_state": 4, "validation_fraction": 0.25}


def check_equal(there: Any, here: Any) -> None:
    assert there.model_.digest() == here.model_.digest()
    assert there.model_.bags == here.model_.bags
    assert there.model_.missing_learnt == here.model_.missing_learnt
    assert there.rounds_ == here.rounds_
    assert there.stop_reasons_ == here.stop_reasons_
    assert there.held_out_scores_ == here.held_out_scores_
    assert there.held_out_errors_ == here.held_out_errors_


@pytest.mark.parametrize(
    ("kind", "is_watching"),
    [*((kind, False) for kind in KINDS), ("ranked", True), ("newton, smoothed", True)],
)
def test_bags_make_the_model_of_one_machine(threads, kind, is_watching):
    on_dask, local, how = KINDS[kind]
    watched, parts = {}, {}
    if is_watching:
        watched = {"X_val": X[::3].astype(np.float32), "y_val": Y[::3]}
        parts = dict(zip(watched, spread(*watched.values(), seed=9), strict=False))
    here = local(**HOW, **how).fit(X, Y, WEIGHTS, **watched)
    there = on_dask(client=threads, **HOW, **how).fit(*spread(X, Y, WEIGHTS, seed=1), **parts)
    check_equal(there, here)
    assert there.model_.n_bags == 3
    low, high = there.predict_proba_interval(X)
    assert np.array_equal([low, high], here.predict_proba_interval(X))
    assert np.array_equal(there.predict_proba(spread(X, Y).X).compute(), here.predict_proba(X))


@pytest.mark.parametrize("few_samples", [159, 160])
def test_bags_that_are_not_counted_are_as_many_as_on_one_machine(threads, monkeypatch, few_samples):
    """160 of 240 rows have a weight; the others do not count."""
    monkeypatch.setattr(parameters, "FEW_SAMPLES", few_samples)
    labels, weights = Y > 0, np.tile([1.0, 0.0, 2.0], 80)
    how = {**HOW, "n_estimators": 2, "n_bags": None}
    here = LogitBoostClassifier(**how).fit(X, labels, weights)
    there = LogitBoostThere(client=threads, **how)
    check_equal(there.fit(*spread(X, labels, weights, seed=3)), here)
    assert here.model_.n_bags == (12 if few_samples == 160 else 6)


@pytest.mark.usefixtures("looks_again_soon")
@pytest.mark.parametrize("moments", [{25, 60}, {34}], ids=str)
def test_a_worker_that_is_lost_in_a_bag_costs_no_round_of_those_before(few, monkeypatch, moments):
    chance = random.Random(1)
    sent_through(
        monkeypatch, lambda number, _: lose_one(few, chance) if number in moments else None
    )
    made: list[Any] = []
    how = {**HOW, "n_bags": 2, "n_iter_no_change": 20, "categorical_features": [2]}
    there = LogitBoostThere(client=few, **how, callback=made.append)
    there.fit(*spread(X, Y, WEIGHTS, seed=2))
    check_equal(there, LogitBoostClassifier(**how).fit(X, Y, WEIGHTS))
    assert there.cluster_.n_lost > 0
    assert [record.number for record in made] == 2 * list(range(1, 8))


class Interrupted(BaseException):
    """Ends a fit in the middle."""


def interrupting(after: int) -> Any:
    seen: list[Any] = []

    def callback(record: Any) -> None:
        seen.append(record)
        if len(seen) > after:
            raise Interrupted

    return callback


@pytest.mark.parametrize("state", [4, None])
def test_a_checkpoint_keeps_the_bags_that_are_done(threads, tmp_path, state):
    """With random_state=None the seeds of the shares are those of the file."""
    how = {
        **HOW,
        "random_state": state,
        "n_iter_no_change": 20,
        "votes": "real",
        "multi_class": "shared",
    }
    path = tmp_path / "run.json"
    with pytest.raises(Interrupted):
        AdaBoostThere(client=threads, **how, checkpoint=path, callback=interrupting(10)).fit(
            *spread(X, Y, WEIGHTS)
        )
    before = path.read_bytes()
    made: list[Any] = []
    there = AdaBoostThere(client=threads, **how, checkpoint=path, callback=made.append).fit(
        *spread(X, Y, WEIGHTS, seed=3)
    )
    assert len(made) == 3 * 7 - 10
    path.write_bytes(before)
    check_equal(there, AdaBoostClassifier(**how, checkpoint=path).fit(X, Y, WEIGHTS))
    if state is not None:
        check_equal(there, AdaBoostClassifier(**how).fit(X, Y, WEIGHTS))


def test_a_warm_start_goes_on_in_every_bag(threads):
    how = {**HOW, "warm_start": True, "n_iter_no_change": 20}
    there, here = LogitBoostThere(client=threads, **how), LogitBoostClassifier(**how)
    for n_estimators in (3, 8):
        there.set_params(n_estimators=n_estimators).fit(*spread(X, Y, seed=n_estimators))
        here.set_params(n_estimators=n_estimators).fit(X, Y)
    check_equal(there, here)
    with pytest.raises(ValueError, match="n_bags is 2, but with warm_start=True it must be 3"):
        there.set_params(n_bags=2).fit(*spread(X, Y))


@pytest.mark.usefixtures("looks_again_soon")
def test_if_data_are_lost_the_error_has_the_average_of_the_bags_so_far(few):
    table = np.column_stack([np.nan_to_num(X), Y > 0])
    scattered = [few.scatter(part) for part in np.array_split(table, 3)]
    parts = [
        da.from_delayed(dask.delayed(lambda x: x)(own), (np.nan, X.shape[1] + 1), dtype=float)
        for own in scattered
    ]
    table = da.concatenate(parts, allow_unknown_chunksizes=True)
    made: list[Any] = []

    def lose(record: Any) -> None:
        made.append(record)
        if len(made) == 7 + 4:
            for worker in list(few.cluster.workers.values())[1:]:
                few.sync(worker.close, nanny=False, executor_wait=False)

    fit = AdaBoostThere(client=few, **HOW, callback=lose)
    with pytest.raises(ClusterLostError, match="a part of the data is lost") as error:
        fit.fit(table[:, :-1], table[:, -1])
    assert error.value.model.bags.sizes == ((7, 4),)


@pytest.mark.parametrize("how", [{"n_bags": 3}, {"n_bags": 1, "n_iter_no_change": 2}])
def test_a_class_of_one_sample_is_trained_on_as_on_one_machine(threads, how):
    labels = np.where(np.arange(len(Y)) == 11, 3, Y)
    fits = [
        (LogitBoostClassifier(**HOW | how), (X, labels)),
        (LogitBoostThere(client=threads, **HOW | how), spread(X, labels)[:2]),
    ]
    for classifier, data in fits:
        with pytest.warns(UserWarning, match="class 3 has one sample only") as found:
            classifier.fit(*data)
        told = [own.filename for own in found if "class 3" in str(own.message)]
        assert told in ([__file__], [on_dask.__file__])  # where `fit` is called
    check_equal(fits[1][0], fits[0][0])


def test_many_different_labels_are_warned_of_as_on_one_machine(threads):
    X, y = np.arange(30.0)[:, None], np.arange(30) % 16
    with pytest.warns(UserWarning, match="y holds 16 different values in 30 samples"):
        AdaBoostThere(client=threads, n_estimators=1).fit(*spread(X, y)[:2])
