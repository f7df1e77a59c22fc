"""Contenders are measured in processes of their own, whose end is a reason and not a crash."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.contenders import BACKENDS, PEERS, Contender, voting
from bench.data import Stored, store, synthetic
from bench.play import Plan, play, take_turns
from bench.records import Run, Turn
from bench.summary import per_round, preparation, spread
from bench.worker import NOT_YET, Entry, Worker

ROOT = Path(__file__).resolve().parents[2]


def fake(estimator: str, **parameters: Any) -> Contender:
    return Contender(estimator.lower(), ("fake_estimators",), estimator, parameters)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    return store(synthetic(200, 3), tmp_path_factory.mktemp("data") / "stored")


def worker_of(contender: Contender, data: Stored, *, whole: bool = False) -> Worker:
    return Worker(Entry(contender, data.load, (1, 6), 1, whole), data)


def played(contender: Contender, data: Stored, turns: int = 1, *, whole: bool = False) -> Run:
    worker = worker_of(contender, data, whole=whole)
    try:
        ((taken, reason),) = take_turns([worker], turns)
        return worker.run(taken, reason)
    finally:
        worker.close()


@pytest.mark.slow
def test_sleeps_are_timed_in_the_process_where_they_happen(data):
    sleeper = fake("Sleeper", preparing=0.03, a_round=0.02, predicting=0.04)
    run = played(sleeper, data, turns=3, whole=True)
    assert run.reason is None
    assert spread(per_round(run)).median == pytest.approx(0.02, rel=0.2)
    assert spread(preparation(run)).median == pytest.approx(0.03, rel=0.5)
    assert spread([turn.predict for turn in run.turns]).median == pytest.approx(0.04, rel=0.2)
    assert run.first_fit == pytest.approx(0.05, rel=0.5)
    assert run.load > 0


def test_quality_is_judged_on_rows_that_were_held_out(data):
    run = played(fake("Sleeper", preparing=0, a_round=0, predicting=0), data)
    held_out = data.load()
    accuracy = np.mean((held_out.X_test[:, 0] > 0) == held_out.y_test)
    assert run.accuracy == pytest.approx(accuracy)
    assert 0.5 < run.auc < 1.0
    assert run.digest is None


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="only Linux has the mark")
def test_memory_is_the_peak_of_a_fit_and_not_what_is_left_of_it(data):
    run = played(fake("Hungry", n_bytes=200_000_000), data, whole=True)
    assert run.host_memory == pytest.approx(200_000_000, rel=0.05)


def test_a_refusal_is_the_reason_in_one_line(data):
    run = played(fake("Refuser"), data)
    assert run.reason == "ValueError: no such data, please"
    assert (run.turns, run.first_fit, run.accuracy) == ((), None, None)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no such signal")
def test_a_crash_is_a_reason_too_with_the_last_words(data):
    run = played(fake("Crasher"), data)
    assert run.reason == "its process was ended by SIGKILL: out of luck"
    assert run.first_fit is not None


def test_what_is_not_installed_is_said_without_starting_a_process(data):
    worker = worker_of(Contender("x", ("no_such_module.part",), "X"), data)
    ((taken, reason),) = take_turns([worker], 2)
    assert (taken, reason) == ([], "no_such_module.part is not installed")
    assert worker.run(taken, reason).reason == reason


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system cannot hold cores")
def test_a_worker_is_held_to_its_cores_and_tells_the_library(data):
    contender = Contender("x", ("fake_estimators",), "Onlooker", threads="n_jobs")
    before = os.environ.get("OMP_NUM_THREADS")
    assert played(contender, data).reason is None
    assert os.environ.get("OMP_NUM_THREADS") == before


def test_processes_and_files_are_gone_afterwards(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    sleeper = fake("Sleeper", preparing=0, a_round=0, predicting=0)
    entry = Entry(sleeper, lambda: synthetic(200, 3), (1, 2), 1)
    found = []
    (section,) = play([Plan("one", (entry, entry), turns=1)], found=found.append)
    assert [(run.reason, len(run.turns)) for run in section.runs] == [(None, 1), (None, 1)]
    states = [[(run.reason, len(run.turns)) for run in before.runs] for (before,) in found]
    assert states == [[(None, 1), (NOT_YET, 0)], [(None, 1), (None, 1)]]
    assert not multiprocessing.active_children()
    assert list(tmp_path.iterdir()) == []


def test_contenders_of_other_votes_have_other_names_and_differ_in_nothing_else():
    for contender in (each for each in BACKENDS if each.name == "gpustump cuda kernels"):
        real, newton = (voting(contender, kind) for kind in ("real", "newton"))
        assert voting(contender, "discrete") == contender
        assert real.name == "gpustump cuda kernels real"
        assert real.parameters == {"device": "cuda", "votes": "real"}
        assert (newton.name, newton.estimator) == (
            "gpustump cuda kernels LogitBoost",
            "LogitBoostClassifier",
        )
        assert newton.parameters == contender.parameters
        assert newton.arrays == real.arrays == "cupy"


def test_names_are_told_apart_and_parameters_are_known():
    for group in (BACKENDS, PEERS):
        assert len({contender.name for contender in group}) == len(group)
    assert all(contender.parameters for contender in PEERS if "AdaBoost" not in contender.name)


def test_a_fit_that_stops_early_does_not_count(data):
    assert played(fake("Quitter", most=3), data).reason == "it stopped after 3 of 6 rounds"


def test_a_fit_on_another_device_does_not_count(data):
    assert (
        played(fake("Traveller", device="cuda:0"), data).reason
        == "it trained on cpu, not on cuda:0"
    )


def test_who_does_not_answer_in_time_is_ended_before_others_are_timed(data):
    sleeper = worker_of(fake("Sleeper", preparing=60.0, a_round=0, predicting=0), data)
    sleeper.limit = 3.0
    seen = []

    class Onlooker:
        name = "onlooker"

        def warm_up(self) -> None:
            pass

        def turn(self) -> Turn:
            seen.append(multiprocessing.active_children())
            return Turn(1.0, 2.0)

        def judge(self) -> None:
            pass

    start = time.monotonic()
    (_, reason), _ = take_turns([sleeper, Onlooker()], 1)
    assert (reason, seen) == ("no answer within 3 s", [[]])
    assert time.monotonic() - start < 30
    assert sleeper.run([], reason).reason == reason


@pytest.mark.parametrize("whole", [True, False])
def test_whether_it_can_take_part_is_tried_once(whole, data, tmp_path, monkeypatch):
    monkeypatch.setenv("TRIALS", str(tmp_path / "trials"))
    contender = Contender(
        *("x", ("fake_estimators",), "Sleeper"),
        {"preparing": 0, "a_round": 0, "predicting": 0},
        cuda="fake_estimators",
    )
    assert played(contender, data, whole=whole).reason is None
    assert (tmp_path / "trials").read_text() == "tried\n"


def test_a_worker_starts_without_the_libraries_whose_loading_it_times():
    heavy = ["sklearn", "joblib", "scipy", "numba", "torch", "matplotlib", "gpustump.boosting"]
    code = f"import sys, bench.worker; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")
