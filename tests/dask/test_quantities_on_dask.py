"""Quantities, counts and costs on a cluster: the model of one machine, byte for byte."""

from __future__ import annotations

import itertools
import random
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from lost_workers import lose_one, sent_through
from partitioned_tables import cut, sizes_of, spread

from gpustump import GlassBoxRegressor, StumpBoostingRegressor, audit, dask
from gpustump.boosting.held_out.losses import NegativeDeviance
from gpustump.boosting.held_out.samples import HeldOutTargets
from gpustump.boosting.held_out.scores import value_of
from gpustump.dask.conversation import Conversation
from gpustump.engines.integer_weights import IntegerWeights

LOSSES = ("squared_error", "poisson", "gamma")
N_ROWS = 600

each_loss = pytest.mark.parametrize("loss", LOSSES)


def drawn(loss: str, n_rows: int = N_ROWS):
    """X (n_rows, 4) with missing values, targets, and weights of which some are 0."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n_rows, 4)).astype(np.float32)
    mean = np.exp(np.sin(2.0 * X[:, 0]) + X[:, 1] / 2)
    y = {
        "squared_error": 1e6 + 50.0 * mean + rng.normal(size=n_rows),
        "poisson": rng.poisson(mean).astype(float),
        "gamma": rng.gamma(2.0, mean),
    }[loss]
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, y, np.round(rng.uniform(0.0, 3.0, n_rows)) * 0.3


def same(here: Any, there: Any) -> None:
    assert there.model_.digest() == here.model_.digest()
    assert there.rounds_ == here.rounds_
    assert there.stop_reasons_ == here.stop_reasons_
    assert there.held_out_scores_ == here.held_out_scores_
    assert there.held_out_errors_ == here.held_out_errors_
    assert there.evals_result_ == here.evals_result_


def fitted(client: Any, estimator: Any, *parts: Any, **more: Any) -> Any:
    return dask.fit(estimator, *parts, client=client, **more)


HOW: dict[str, dict[str, Any]] = {
    "plain": {"n_estimators": 15},
    "stopped": {"n_estimators": 80, "n_iter_no_change": 4, "tol": 1e-4, "random_state": 0},
    "regularized": {"n_estimators": 15, "l2_regularization": 3.0, "smoothing_rounds": 6},
    "constrained": {"n_estimators": 15, "monotonic_cst": [1, -1, 0, 1]},
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("how", HOW)
@each_loss
def test_any_partitions_make_the_model_of_one_machine(threads, loss, how, weighted):
    X, y, weights = drawn(loss)
    own = (X, y, weights) if weighted else (X, y)
    here = StumpBoostingRegressor(loss=loss, device="cpu", **HOW[how]).fit(*own)
    for seed in range(2):
        there = StumpBoostingRegressor(loss=loss, **HOW[how])
        same(here, fitted(threads, there, *spread(*own, seed=seed)[: len(own)]))


@each_loss
def test_a_glass_box_on_worker_processes_is_that_of_one_machine(processes, loss):
    X, y, weights = drawn(loss)
    how = {"loss": loss, "n_bags": 3, "n_estimators": 60, "smoothing_rounds": 10}
    here = GlassBoxRegressor(**how, random_state=2, device="cpu").fit(X, y, weights)
    parts = spread(X, y, weights)
    there = fitted(processes, GlassBoxRegressor(**how, random_state=2), *parts)
    same(here, there)
    predicted = dask.predict(there, parts.X)
    assert predicted.dtype == np.float64
    assert np.array_equal(predicted.compute(), here.predict(X))
    assert dask.score(there, *parts) == pytest.approx(here.score(X, y, weights), rel=1e-12)


@each_loss
def test_rows_to_watch_may_be_in_partitions_of_their_own(threads, loss):
    X, y, weights = drawn(loss)
    held = slice(400, None)
    how = {"loss": loss, "n_estimators": 40, "n_iter_no_change": 5}
    here = StumpBoostingRegressor(**how, device="cpu")
    own = {"X_val": X[held], "y_val": y[held], "sample_weight_val": weights[held]}
    here.fit(X[:400], y[:400], weights[:400], **own)
    watched = spread(X[held], y[held], weights[held], seed=5)
    parts = {"X_val": watched.X, "y_val": watched.y, "sample_weight_val": watched.sample_weight}
    there = StumpBoostingRegressor(**how)
    same(here, fitted(threads, there, *spread(X[:400], y[:400], weights[:400]), **parts))


@each_loss
def test_frames_with_categories_make_the_model_of_one_machine(threads, loss):
    X, y, _ = drawn(loss)
    kinds = np.asarray(["red", "green", "blue", "grey"])[np.arange(N_ROWS) * 7 % 4]
    frame = pd.DataFrame({"length": X[:, 0], "kind": kinds, "width": X[:, 1]})
    how = {"loss": loss, "n_estimators": 12, "categorical_features": "from_dtype"}
    here = StumpBoostingRegressor(**how, device="cpu").fit(frame, y)
    parts = dd.from_pandas(frame, npartitions=3), dd.from_pandas(pd.Series(y), npartitions=3)
    there = fitted(threads, StumpBoostingRegressor(**how), *parts)
    same(here, there)
    assert np.array_equal(dask.predict(there, parts[0]).compute(), here.predict(frame))


def test_an_exposure_is_a_rate_that_weighs_as_much(threads):
    X, y, weights = drawn("poisson")
    years = np.random.default_rng(1).uniform(0.1, 3.0, N_ROWS)
    here = StumpBoostingRegressor(loss="poisson", n_estimators=12, device="cpu")
    here.fit(X, y, weights, exposure=years)
    parts = spread(X, y / years, weights * years)
    there = fitted(threads, StumpBoostingRegressor(loss="poisson", n_estimators=12), *parts)
    assert there.model_.digest() == here.model_.digest()


@each_loss
def test_warm_starts_go_on_from_fits_of_either_kind(threads, loss):
    X, y, weights = drawn(loss)
    parts = spread(X, y, weights)
    whole = StumpBoostingRegressor(loss=loss, n_estimators=20, device="cpu").fit(X, y, weights)
    there = StumpBoostingRegressor(loss=loss, n_estimators=8, warm_start=True)
    there = fitted(threads, there.fit(X, y, weights).set_params(n_estimators=14), *parts)
    there.set_params(n_estimators=20).fit(X, y, weights)
    assert there.model_.digest() == whole.model_.digest()


@each_loss
def test_a_checkpoint_serves_on_one_machine_and_on_a_cluster(threads, tmp_path, loss):
    X, y, weights = drawn(loss)
    how = {"loss": loss, "n_estimators": 10, "checkpoint": tmp_path / "fit.checkpoint"}
    there = fitted(threads, StumpBoostingRegressor(**how), *spread(X, y, weights))
    here = StumpBoostingRegressor(**how).fit(X, y, weights)
    assert here.model_.digest() == there.model_.digest()
    assert audit(there.model_, X, y, weights).same
    assert audit(there.model_, X, y, weights).data_differences == ()
    with pytest.raises(ValueError, match="the target differs"):
        fitted(threads, StumpBoostingRegressor(**how), *spread(X, y + 1.0, weights))


@each_loss
def test_lost_workers_leave_the_model_as_it_was(few, monkeypatch, looks_again_soon, loss):
    X, y, weights = drawn(loss)
    how = {"loss": loss, "n_estimators": 25, "n_iter_no_change": 20, "random_state": 0}
    here = StumpBoostingRegressor(**how, device="cpu").fit(X, y, weights)
    chance = random.Random(LOSSES.index(loss))
    moments = set(chance.sample(range(40), 2))
    sent_through(
        monkeypatch, lambda number, _: lose_one(few, chance) if number in moments else None
    )
    there = fitted(few, StumpBoostingRegressor(**how), *spread(X, y, weights))
    same(here, there)


def test_a_lost_cluster_leaves_the_model_so_far_in_the_unit_of_the_targets(few, monkeypatch):
    X, y, _ = drawn("squared_error")
    sent = Conversation.send

    def fail_at_last(self, messages):
        if messages and messages[0].method == "advance":
            fail_at_last.n_left -= 1
            if not fail_at_last.n_left:
                raise dask.ClusterLostError("gone")
        return sent(self, messages)

    fail_at_last.n_left = 6
    monkeypatch.setattr(Conversation, "send", fail_at_last)
    with pytest.raises(dask.ClusterLostError) as caught:
        fitted(few, StumpBoostingRegressor(n_estimators=9), *spread(X, y))
    rounds = caught.value.model.n_rounds
    here = StumpBoostingRegressor(n_estimators=rounds, device="cpu").fit(X, y)
    assert rounds in (4, 5)
    assert np.array_equal(caught.value.model.predict(X), here.predict(X))


@pytest.mark.parametrize("loss", ["poisson", "gamma"])
def test_deviances_add_up_over_groups_of_any_size(loss):
    """Also where a sample is bounded, which depends on the number of all samples."""
    _, targets, _ = drawn(loss)
    targets, scores = targets / targets.max() * 8.0, np.full(N_ROWS, -0.5 + 2.0**-30)
    sign = 1.0 if loss == "poisson" else -1.0
    scores[::50] = sign * 90.0  # predicted far too large, or far too small
    units = np.random.default_rng(3).integers(1, 2**40, N_ROWS)
    whole = HeldOutTargets(targets, IntegerWeights(units, int(units.sum())))
    wanted = NegativeDeviance(whole, loss)(scores)
    parts, totals = [], []
    ends = np.cumsum([0, *sizes_of(N_ROWS, np.random.default_rng(4))])
    for start, end in itertools.pairwise(ends):
        own = IntegerWeights(units[start:end], int(units.sum()))
        group = NegativeDeviance(
            HeldOutTargets(targets[start:end], own, n_of_all_groups=N_ROWS), loss
        )
        parts.append(group.parts(scores[start:end]))
        totals.append(group.totals)
    sums = [list(map(sum, zip(*own, strict=True))) for own in (parts, totals)]
    assert value_of(f"neg_mean_{loss}_deviance")(*sums) == wanted


def test_what_is_not_meant_is_refused_by_name(threads):
    X, y, weights = drawn("squared_error")
    sizes = (200, 400)
    X, weights = cut(X, *sizes), cut(weights, *sizes)
    for loss, own, message in (
        ("poisson", y - 1e6 - 100.0, "y must be 0 or more for loss='poisson'"),
        ("gamma", np.where(np.arange(N_ROWS) == 500, 0.0, y), "y must be above 0 for loss='gamma'"),
        ("squared_error", np.where(np.arange(N_ROWS) == 500, np.nan, y), "must be finite|NaN"),
        ("poisson", np.zeros(N_ROWS), "y is 0 for every sample"),
        ("other", y, "loss must be"),
    ):
        reg = StumpBoostingRegressor(loss=loss)
        with pytest.raises(ValueError, match=message):
            fitted(threads, reg, X, cut(own, *sizes))
        assert not hasattr(reg, "model_")
    with pytest.raises(ValueError, match="sample_weight is zero for every sample"):
        fitted(threads, StumpBoostingRegressor(), X, cut(y, *sizes), weights * 0.0)
    with pytest.raises(ValueError, match="sample_weight_val is zero for every sample"):
        fitted(
            threads, StumpBoostingRegressor(), X, cut(y, *sizes),
            X_val=X, y_val=cut(y, *sizes), sample_weight_val=weights * 0.0,
        )  # fmt: skip
    reg = fitted(threads, StumpBoostingRegressor(n_estimators=2), X, cut(y, *sizes))
    for method in (dask.predict_proba, dask.decision_function):
        with pytest.raises(TypeError, match="predicts a quantity: take gpustump"):
            method(reg, X)
    with pytest.raises(ValueError, match="zero for every sample"):
        dask.score(reg, X, cut(y, *sizes), weights * 0.0)
