"""The benchmarks of speed measure what happens: in turns, in processes of their own."""

from __future__ import annotations

import multiprocessing
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from made_up import absent, report, run

from bench import records
from bench.__main__ import _parser
from bench.contenders import GROUPS, Contender, chosen
from bench.data import FAMILIES, load, store
from bench.records import FormatError, Result
from bench.tables import (
    disagreement,
    exponents,
    fastest_peer,
    page,
    per_round,
    preparation,
    ratios,
    whole_fit,
)
from bench.timing import planned, take_turns
from bench.worker import Entry, WithdrawnError, Worker
from gpustump import AdaBoostClassifier, GlassBoxClassifier

ROOT = Path(__file__).resolve().parents[2]


class Player:
    """Takes turns of made-up seconds; withdraws in a step, or takes its time in the first turn."""

    def __init__(self, name, heard, withdraws=None, pause=0.0):
        self.name, self.heard, self.withdraws, self.pause = name, heard, withdraws, pause
        self.number = -1

    def warm_up(self):
        self.number += 1
        self.heard.append(f"{self.name}{self.number}")
        if self.number == self.withdraws:
            raise WithdrawnError("no more")

    def turn(self):
        self.warm_up()
        time.sleep(self.pause)
        return {"short": 1.0, "long": float(self.number)}

    def judge(self):
        self.heard.append(f"judge {self.name}")

    def result(self, turns, reason):
        return run(*(tuple(turn.values()) for turn in turns), contender=self.name, reason=reason)


def test_players_warm_up_first_then_take_turns_until_they_withdraw_or_are_too_slow():
    heard, found = [], []
    players = [
        Player("a", heard),
        Player("b", heard, withdraws=2),
        Player("c", heard, pause=0.6),
        Player("d", heard, withdraws=0),
    ]
    results = take_turns(players, 3, 0.5, found.append)
    turns = ["a0", "b0", "c0", "d0", "a1", "judge a", "b1", "judge b", "c1", "judge c"]
    assert heard == [*turns, "a2", "b2", "a3"]
    done = [(own.contender, own.n_turns, own.reason) for own in results]
    assert done == [("a", 3, None), ("b", 1, "no more"), ("c", 1, None), ("d", 0, "no more")]
    assert found[-1] == results
    assert [own.n_turns for own in found[0]] == [1, 0, 0, 0]


def test_a_round_is_a_slope_and_preparing_is_what_is_left():
    own = run((1.0, 3.0), (1.5, 3.0))
    assert per_round(own) == pytest.approx([0.2, 0.15])
    assert preparation(own) == pytest.approx([0.6, 1.2])
    assert ratios(whole_fit, own, run((1.0, 6.0))) == [0.5]
    assert exponents(per_round, [10, 1000], [run((0, 1)), run((0, 10))]) == pytest.approx([0.5])
    assert exponents(per_round, [10, 1000], [run((1, 0)), run((0, 10))]) == []
    assert exponents(per_round, [10, 10], [run((0, 1)), run((0, 1))]) == []


def test_the_fastest_peer_is_another_one_in_a_round_than_in_a_whole_fit():
    how = {"rounds": (10, 110)}
    case = (
        run((0.1, 1.1), contender="gpustump", **how),
        run((1.0, 5.0), contender="quick to prepare", **how),
        run((4.0, 6.0), contender="quick to train", **how),
        absent(),
    )
    assert fastest_peer(per_round, case) is case[2]
    assert fastest_peer(whole_fit, case) is case[1]
    assert fastest_peer(whole_fit, (case[0], absent())) is None
    assert "ms per round" not in page(report("panel", *case), only_means=True)


def test_different_models_of_the_same_job_are_a_failure():
    def of(digest, **others):
        return run(facts={"digest": digest * 64}, **others)

    same = of("0", contender="a"), of("0", contender="b")
    assert disagreement((*same, of("2", data_sha256="e" * 64), of("3", rounds=(2, 13)))) is None
    votes = of("4", parameters={"votes": "real", "device": "cpu"})
    assert disagreement((*same, votes, of("5", estimator="LogitBoostClassifier"))) is None
    on_gpu = of("6", contender="b", parameters={"votes": "real", "device": "cuda"})
    assert disagreement((votes, on_gpu)) is not None
    complaint = disagreement((*same, of("1", contender="a")))
    assert complaint.endswith("a: 000000000000; b: 000000000000; a: 111111111111")


def test_a_file_comes_back_and_a_result_needs_values_or_a_reason(tmp_path):
    path, whole = tmp_path / "x.json", report("peers", run((1.0, 2.0)), absent())
    records.write(whole, path)
    assert records.read(path) == whole
    assert len(path.read_text().splitlines()) == 4  # a line for each result
    for broken in (run(), run(values={"short": (1.0, 2.0), "long": (1.0,)})):
        records.write(report("peers", broken), path)
        with pytest.raises(FormatError, match="someone on drawn has neither"):
            records.read(path)
    path.write_text('{"benchmark": "peers"}')
    with pytest.raises(FormatError, match=r"is not the JSON of a benchmark: .*missing"):
        records.read(path)


def test_a_case_of_the_panel_is_planned_for_each_of_its_data_and_may_be_shrunk():
    options = _parser().parse_args(["panel", "--cases", "small", "cuda", "--shrink", "10000"])
    *of_families, last = planned(options)
    assert [plan.entries[0].data.args[0] for plan in of_families] == [*FAMILIES]
    assert {entry.rounds for plan in of_families for entry in plan.entries} == {(10, 100)}
    assert last.entries[0].data.args == ("noise", 500, 100)
    assert "XGBoost cuda, CuPy arrays" in [entry.contender.name for entry in last.entries]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return store(load("synthetic", 200, 3), tmp_path_factory.mktemp("data") / "here")


def played(data, estimator: str, limit: float = 60.0, **how) -> Result:
    contender = Contender("x", ("fake_estimators",), estimator, how)
    worker = Worker("one", Entry(contender, lambda: None, (1, 6), 1), data, limit)
    try:
        (found,) = take_turns([worker], 1, 60.0)
        return found
    finally:
        worker.close()


def test_a_worker_measures_two_fits_and_the_model(data):
    own = played(data, "Sleeper", preparing=0.05, a_round=0.05, predicting=0.0)
    assert own.reason is None
    assert 0.02 < per_round(own)[0] < 0.2
    assert 0 <= own.facts["accuracy"] <= 1
    assert own.facts["first_fit"] > 0.1
    assert own.facts["load"] > 0


@pytest.mark.parametrize(
    ("estimator", "how", "reason"),
    [
        ("Refuser", {}, "ValueError: no such data, please"),
        ("Crasher", {}, "its process was ended by SIGKILL: out of luck"),
        ("Quitter", {}, "it stopped after 3 of 6 rounds"),
        ("Traveller", {"device": "cuda:0"}, "it trained on cpu, not on cuda:0"),
        ("Sleeper", {"limit": 2.0, "preparing": 60, "a_round": 0, "predicting": 0},
         "no answer within 2 s"),
    ],
)  # fmt: skip
def test_who_cannot_go_on_withdraws_with_the_reason_and_its_process_ends(
    data, estimator, how, reason
):
    assert played(data, estimator, **how).reason == reason
    assert not multiprocessing.active_children()


def test_a_worker_starts_without_the_libraries_whose_loading_it_times():
    heavy = ["sklearn", "joblib", "scipy", "numba", "torch", "matplotlib", "gpustump.boosting"]
    code = f"import sys, bench.worker; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_only_glass_boxes_may_end_before_their_rounds():
    X, y = np.arange(8.0).reshape(-1, 1), np.arange(8) > 3
    (plain,) = chosen(GROUPS["peers"], ["gpustump"])
    (glass,) = chosen(GROUPS["panel"], ["gpustump GlassBox"])
    assert plain.disqualified(AdaBoostClassifier(n_estimators=1).fit(X, y), 6)
    X, y = np.tile(X, (9, 1)), np.tile(y, 9)
    assert glass.disqualified(GlassBoxClassifier(n_estimators=3, device="cpu").fit(X, y), 6) is None
