"""Workers that are lost in any phase of a fit cost time, not the model; nothing is left behind."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from classifiers import drawn
from clusters import check_equal, clone, fitted, fitted_here, lose_at, spread
from distributed import Status, worker_client

import gpustump.dask
from gpustump import AdaBoostClassifier, LogitBoostClassifier, StumpBoostingRegressor
from gpustump.dask import ClusterLostError, WorkerMemoryError, shards
from gpustump.dask.messages import Messages
from gpustump.dask.partitions import Reading, Rows
from gpustump.dask.worker_rows import Store, WorkerRows
from gpustump.engines.cluster import state

X, Y = drawn(2, n_samples=300, missing=0.1)
WEIGHTS = np.random.default_rng(0).integers(0, 4, size=300).astype(float)
DATA = X, Y, WEIGHTS
ADA = AdaBoostClassifier(n_estimators=12)
NEWTON = LogitBoostClassifier(n_estimators=15, n_iter_no_change=30, random_state=3)
BAGS = {"n_bags": 3, "n_estimators": 7, "random_state": 4, "validation_fraction": 0.25}

pytestmark = pytest.mark.usefixtures("looks_again_soon")

LOSING: dict[str, tuple[Any, bool]] = {
    "discrete": (ADA, False),
    "real": (clone(ADA).set_params(votes="real", class_weight={0: 5}), False),
    "watching": (NEWTON, True),
    "watching, ranked": (clone(ADA).set_params(scoring="roc_auc", n_iter_no_change=20), True),
    "bags": (LogitBoostClassifier(**BAGS, n_iter_no_change=20, smoothing_rounds=3), False),
    "quantity": (StumpBoostingRegressor(n_estimators=15), False),
    "counts": (StumpBoostingRegressor(n_estimators=15, loss="poisson"), True),
}


@pytest.mark.parametrize("name", LOSING)
def test_lost_workers_leave_the_model_as_it_was(few, monkeypatch, name):
    (estimator, is_watching), seed = LOSING[name], list(LOSING).index(name)
    moments = set(random.Random(seed).sample(range(12), 1)) | {20 + seed, 40}
    if seed % 2:  # steps are followed, though the table is small
        monkeypatch.setattr(state, "_LEAST_CODES", 0)
        monkeypatch.setattr(state, "_LARGEST_MINORITY", 1.0)
    lose_at(monkeypatch, few, moments, seed)
    watched, made = tuple(own[:100] for own in DATA) if is_watching else (), list[int]()
    noting = clone(estimator).set_params(callback=lambda record: made.append(record.number))
    there = fitted(few, noting, DATA, watched, seed=seed)
    check_equal(there, fitted_here(estimator, DATA, watched))
    assert there.cluster_.n_lost > 0
    assert made == [n for _ in range(3 if name == "bags" else 1) for n in range(1, max(made) + 1)]


def test_a_process_that_is_killed_is_replaced(processes):
    first, _ = processes.run(os.getpid).values()
    done: list[int] = []

    def kill(record: Any) -> None:
        done.append(record.number)
        if record.number == 5:
            os.kill(first, signal.SIGKILL)

    there = fitted(processes, clone(ADA).set_params(callback=kill), DATA)
    check_equal(there, fitted_here(ADA, DATA))
    assert done == list(range(1, 13))
    assert there.cluster_.n_lost >= 1
    processes.wait_for_workers(2)
    assert first not in processes.run(os.getpid).values()


@pytest.mark.parametrize("how", [{}, BAGS])
def test_lost_data_are_named_and_the_rounds_so_far_are_kept(few, how):
    n_before = 7 if how else 0
    scattered = [few.scatter(part) for part in np.array_split(np.column_stack([X, Y]), 3)]
    wait = dask.delayed(lambda x: x)
    parts = [da.from_delayed(wait(own), (np.nan, 5), dtype=float) for own in scattered]
    table, made = da.concatenate(parts, allow_unknown_chunksizes=True), list[Any]()

    def lose(record: Any) -> None:
        made.append(record)
        if len(made) == n_before + 4:
            for worker in list(few.cluster.workers.values())[1:]:
                few.sync(worker.close, nanny=False, executor_wait=False)

    estimator = clone(ADA).set_params(**how, callback=lose)
    with pytest.raises(ClusterLostError, match="a part of the data is lost") as e:
        gpustump.dask.fit(estimator, table[:, :4], table[:, 4], client=few)
    model = e.value.model
    if how:
        assert model.bags.sizes == ((7, 4),)
    else:
        here = fitted_here(clone(ADA).set_params(n_estimators=4), (X, Y))
        assert np.array_equal(model.decision_function(X), here.decision_function(X))


def test_a_cluster_without_workers_is_waited_for_and_then_given_up(few, monkeypatch):
    monkeypatch.setattr(shards, "_WAIT_FOR_WORKERS", 0.5)
    few.cluster.scale(0)
    while few.nthreads():
        time.sleep(0.05)
    with pytest.raises(ClusterLostError, match="has had no worker for"):
        fitted(few, ADA, DATA)


def test_an_interruption_leaves_the_cluster_clean(threads, monkeypatch):
    def interrupt(record: Any) -> None:
        raise KeyboardInterrupt

    estimator = clone(ADA).set_params(callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        gpustump.dask.fit(estimator, *spread(*DATA), client=threads)
    assert not hasattr(estimator, "model_")

    def interrupted(futures: list[Any], timeout: float) -> None:
        time.sleep(0.4)  # some partitions are there by now, others are computed
        raise KeyboardInterrupt

    slow = da.from_array(X, chunks=(50, 4)).map_blocks(
        lambda x: (time.sleep(0.3), x)[1], dtype=float, meta=np.empty((0, 0))
    )
    monkeypatch.setattr("distributed.wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        gpustump.dask.fit(clone(ADA), slow, da.from_array(Y, chunks=50), client=threads)


def test_workers_that_have_all_paused_are_not_waited_for_without_end(threads, monkeypatch):
    monkeypatch.setattr(shards, "_WAIT_FOR_WORKERS", 0.5)
    threads.run(_set_status, Status.paused)
    try:
        with pytest.raises(WorkerMemoryError, match="every worker has paused, as its memory is"):
            fitted(threads, ADA, DATA)
    finally:
        threads.run(_set_status, Status.running)
    check_equal(fitted(threads, ADA, DATA), fitted_here(ADA, DATA))


def _set_status(status: Status, dask_worker: Any) -> None:
    dask_worker.status = status


def test_too_little_memory_is_said_before_training(threads):
    with pytest.raises(WorkerMemoryError, match=r"rows of 4 features need .* on one worker"):
        fitted(threads, clone(ADA).set_params(max_memory="5 kB"), DATA)


def test_a_fit_within_a_task_leads_from_within_the_cluster(processes):
    parts = spread(X, Y)

    def train() -> str:
        with worker_client() as client:
            fit = gpustump.dask.fit(AdaBoostClassifier(n_estimators=12), *parts, client=client)
            return str(fit.model_.digest())

    assert processes.submit(train).result() == fitted_here(ADA, (X, Y)).model_.digest()


def test_two_fits_at_the_same_time_do_not_disturb_each_other(threads):
    found: list[Any] = []
    both = [
        threading.Thread(target=lambda: found.append(fitted(threads, ADA, DATA))) for _ in range(2)
    ]
    for one in both:
        one.start()
    for one in both:
        one.join()
    for one in found:
        check_equal(one, fitted_here(ADA, DATA))
    assert len(found) == 2


def test_rows_of_a_task_that_comes_too_late_are_refused(tmp_path):
    own = WorkerRows(Store(None, str(tmp_path)), 1)
    for number in range(3):
        own.add(number, Rows.of(X[:9], Y[:9], None, Reading(4)))
    assert own.keep((0, 2))
    assert sorted(own.samples_by_part(2, "labels")) == [0]
    with pytest.raises(RuntimeError, match="this partition came too late"):
        own.add(1, None)
    assert not WorkerRows(Store(None, str(tmp_path)), 1).keep((0,))


@pytest.mark.parametrize("way", ["sockets", "workers", "scheduler"])
def test_the_model_is_the_same_whichever_way_messages_take(processes, monkeypatch, way):
    by_dask: list[str] = []
    passed_on = Messages._passed_on

    async def noted(self, worker, payload):
        if payload:  # else it only asks whether the worker is there
            by_dask.append(worker)
        return await passed_on(self, worker, payload)

    async def cannot(self, worker):
        return False

    monkeypatch.setattr(Messages, "_passed_on", noted)
    if way == "workers":
        monkeypatch.setattr("gpustump.dask.messages.connected", lambda *_, **__: None)
    if way == "scheduler":
        monkeypatch.setattr(Messages, "_can_reach", cannot)
    check_equal(fitted(processes, ADA, DATA), fitted_here(ADA, DATA))
    assert bool(by_dask) is (way != "sockets")
