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
from distributed import Status, worker_client
from lost_workers import lose_one, sent_through
from on_dask import AdaBoostThere, LogitBoostThere
from partitioned_tables import spread
from sklearn.datasets import load_breast_cancer

from gpustump import AdaBoostClassifier, LogitBoostClassifier
from gpustump.dask import (
    ClusterLostError,
    WorkerMemoryError,
    shards,
)
from gpustump.dask.conversation import Conversation
from gpustump.dask.holding import Holding, Store
from gpustump.dask.partitions import Part
from gpustump.engines.cluster import state

X, Y = load_breast_cancer(return_X_y=True)
WEIGHTS = np.random.default_rng(0).integers(0, 4, size=len(Y)).astype(float)


pytestmark = pytest.mark.usefixtures("looks_again_soon")


@pytest.mark.parametrize("seed", range(10))
def test_three_lost_workers_leave_the_model_as_it_was(few, monkeypatch, seed):
    chance = random.Random(seed)
    moments = set(chance.sample(range(60), 3))
    if seed >= 5:  # steps are followed, though the table is small
        monkeypatch.setattr(state, "_LEAST_CODES", 0)
        monkeypatch.setattr(state, "_LARGEST_MINORITY", 1.0)
    kind, local, how = [
        (AdaBoostThere, AdaBoostClassifier, {}),
        (LogitBoostThere, LogitBoostClassifier, {"n_iter_no_change": 30}),
        (AdaBoostThere, AdaBoostClassifier, {"votes": "real", "class_weight": {0: 5}}),
    ][seed % 3]
    how = {"n_estimators": 20, **how}
    if "n_iter_no_change" in how:
        how["random_state"] = seed
    sent_through(
        monkeypatch, lambda number, _: lose_one(few, chance) if number in moments else None
    )
    own, parts = {}, {}
    if seed % 2 == 0:
        own = {"X_val": X[:200], "y_val": Y[:200]}
        parts = {"X_val": spread(X[:200], Y[:200]).X, "y_val": spread(X[:200], Y[:200]).y}
    there = kind(client=few, **how).fit(*spread(X, Y, WEIGHTS, seed=seed), **parts)
    here = local(**how).fit(X, Y, WEIGHTS, **own)
    assert there.model_.digest() == here.model_.digest()
    assert there.held_out_scores_ == here.held_out_scores_


def test_a_process_that_is_killed_is_replaced(processes):
    parts = spread(X, Y)
    first, _ = processes.run(os.getpid).values()
    done: list[int] = []

    def kill(record: Any) -> None:
        done.append(record.number)
        if record.number == 5:
            os.kill(first, signal.SIGKILL)

    there = AdaBoostThere(client=processes, n_estimators=25, callback=kill).fit(*parts)
    here = AdaBoostClassifier(n_estimators=25).fit(X, Y)
    assert there.model_.digest() == here.model_.digest()
    assert done == list(range(1, 26))
    assert there.cluster_.n_lost >= 1
    processes.wait_for_workers(2)
    assert first not in processes.run(os.getpid).values()


def test_lost_data_are_named_and_the_rounds_so_far_are_kept(few):
    scattered = [few.scatter(part) for part in np.array_split(np.column_stack([X, Y]), 3)]
    table = da.concatenate(
        [
            da.from_delayed(dask.delayed(lambda x: x)(own), (np.nan, 31), dtype=float)
            for own in scattered
        ],
        allow_unknown_chunksizes=True,
    )

    def lose(record: Any) -> None:
        if record.number == 4:
            for worker in list(few.cluster.workers.values())[1:]:
                few.sync(worker.close, nanny=False, executor_wait=False)

    fit = AdaBoostThere(client=few, n_estimators=20, callback=lose)
    with pytest.raises(ClusterLostError, match="a part of the data is lost") as e:
        fit.fit(table[:, :30], table[:, 30])
    assert e.value.model.n_rounds == 4
    here = AdaBoostClassifier(n_estimators=4).fit(X, Y)
    assert np.array_equal(e.value.model.decision_function(X), here.decision_function(X))


def test_a_cluster_without_workers_is_waited_for_and_then_given_up(few, monkeypatch):
    monkeypatch.setattr(shards, "_WAIT_FOR_WORKERS", 0.5)
    few.cluster.scale(0)
    while few.nthreads():
        time.sleep(0.05)
    with pytest.raises(ClusterLostError, match="has had no worker for"):
        AdaBoostThere(client=few).fit(*spread(X, Y))


def test_a_worker_that_joins_later_does_not_disturb(few):
    def join(record: Any) -> None:
        if record.number == 3:
            few.cluster.scale(5)

    there = AdaBoostThere(client=few, n_estimators=10, callback=join).fit(*spread(X, Y))
    here = AdaBoostClassifier(n_estimators=10).fit(X, Y)
    assert there.model_.digest() == here.model_.digest()


def test_an_interruption_leaves_the_cluster_clean(threads):
    def interrupt(record: Any) -> None:
        if record.number == 3:
            raise KeyboardInterrupt

    fit = AdaBoostThere(client=threads, n_estimators=10, callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        fit.fit(*spread(X, Y))
    assert not hasattr(fit, "model_")


def test_an_interruption_while_partitions_are_brought_leaves_the_cluster_clean(
    threads, monkeypatch
):
    slow = da.from_array(X, chunks=(100, 30)).map_blocks(
        lambda x: (time.sleep(0.5), x)[1], dtype=float, meta=np.empty((0, 0))
    )

    def interrupted(futures: list[Any], timeout: float) -> None:
        time.sleep(0.7)  # some partitions are there by now, others are computed
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("distributed.wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            AdaBoostThere(client=threads).fit(slow, da.from_array(Y, chunks=100))
    ends = time.monotonic() + 5  # tasks that run already come to their end
    while time.monotonic() < ends and threads.run_on_scheduler(_n_tasks):
        time.sleep(0.1)


def _n_tasks(dask_scheduler: Any) -> int:
    return len(dask_scheduler.tasks)


def test_workers_that_have_all_paused_are_not_waited_for_without_end(threads, monkeypatch):
    monkeypatch.setattr(shards, "_WAIT_FOR_WORKERS", 1.0)
    threads.run(_set_status, Status.paused)
    try:
        with pytest.raises(WorkerMemoryError, match="every worker has paused, as its memory is"):
            AdaBoostThere(client=threads, n_estimators=2).fit(*spread(X, Y))
    finally:
        threads.run(_set_status, Status.running)
    there = AdaBoostThere(client=threads, n_estimators=2).fit(*spread(X, Y))
    assert len(there.model_.members[0]) == 2


def _set_status(status: Status, dask_worker: Any) -> None:
    dask_worker.status = status


def test_too_little_memory_is_said_before_training(threads):
    fit = AdaBoostThere(client=threads, max_memory="10 kB")
    with pytest.raises(WorkerMemoryError, match=r"rows of 30 features need .* on one worker"):
        fit.fit(*spread(X, Y))


def test_messages_go_through_the_scheduler_where_workers_cannot_be_reached(processes, monkeypatch):
    async def cannot(self: Conversation, worker: str) -> bool:
        return False

    monkeypatch.setattr(Conversation, "_can_reach", cannot)
    there = AdaBoostThere(client=processes, n_estimators=4).fit(*spread(X, Y))
    here = AdaBoostClassifier(n_estimators=4).fit(X, Y)
    assert there.model_.digest() == here.model_.digest()


def test_a_fit_within_a_task_leads_from_within_the_cluster(processes):
    parts = spread(X, Y)

    def train() -> str:
        with worker_client() as client:
            fit = AdaBoostThere(client=client, n_estimators=4).fit(*parts)
            return str(fit.model_.digest())

    digest = processes.submit(train).result()
    assert digest == AdaBoostClassifier(n_estimators=4).fit(X, Y).model_.digest()


def test_two_fits_at_the_same_time_do_not_disturb_each_other(threads):
    parts = spread(X, Y)
    wanted = AdaBoostClassifier(n_estimators=12).fit(X, Y).model_.digest()
    found: list[str] = []

    def train() -> None:
        fit = AdaBoostThere(client=threads, n_estimators=12).fit(*parts)
        found.append(fit.model_.digest())

    both = [threading.Thread(target=train) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert found == [wanted, wanted]


def test_rows_of_a_task_that_comes_too_late_are_refused(tmp_path):
    holding = Holding(Store(None, str(tmp_path)), 1)
    for number in range(3):
        holding.add(number, Part(X[:9], Y[:9], None))
    assert holding.keep((0, 2))
    assert sorted(holding.samples_by_part()) == [0, 2]
    with pytest.raises(RuntimeError, match="this partition came too late"):
        holding.add(1, Part(X[:9], Y[:9], None))
    assert not Holding(Store(None, str(tmp_path)), 1).keep((0,))


def test_a_worker_that_is_lost_while_predicting_leaves_the_predictions_as_they_were(few):
    parts = spread(X, Y)
    fit = AdaBoostThere(client=few, n_estimators=4).fit(*parts)
    slow = parts.X.map_blocks(lambda x: (time.sleep(0.2), x)[1], meta=np.empty((0, 0)))
    future = few.compute(fit.predict_proba(slow))
    lose_one(few, random.Random(0))
    assert np.array_equal(future.result(), fit.estimator.predict_proba(X))
