"""The profile of a round, on the stand-in device: what is timed and what is printed."""

from __future__ import annotations

import re
import types

import cuda_on_cpu
import pytest
from cuda_on_cpu import OnCpu

from bench import profile
from bench.__main__ import main

pytestmark = pytest.mark.skipif(bool(cuda_on_cpu.unusable()), reason=str(cuda_on_cpu.unusable()))


def test_every_kernel_of_a_round_is_timed(monkeypatch, capsys):
    device = OnCpu()
    monkeypatch.setattr("bench.profile.device_named", lambda place: device)
    arguments = ["--samples", "2000", "--features", "6", "--rounds", "6"]
    assert main(["profile", *arguments, "--votes", "discrete"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("**discrete votes, 2000 x 6**, prepared in ")
    rows = re.findall(r"^\| (\w[\w ]*?) +\|.* \| +(\S+) \|$", said, re.M)
    speeds = {name: speed for name, speed in rows if name in device.launched}
    assert {"advance", "add_staged", "scan", "mark"} <= {*speeds}
    for kernel, speed in speeds.items():
        assert (speed != "-") == kernel.startswith(("add", "advance"))
    assert {"all of them", "a round by the clock"} <= dict(rows).keys()
    assert "The smallest launch takes " in said
    assert not {"launch", "recorded"} & vars(device).keys()  # as it was


def test_votes_are_profiled_one_kind_after_the_other_or_left_out_with_the_reason(
    monkeypatch, capsys
):
    device = OnCpu()
    monkeypatch.setattr("bench.profile.device_named", lambda place: device)
    refusal = lambda engine, task: "it is newton" if task.search.votes == "newton" else None  # noqa: E731
    monkeypatch.setattr("gpustump.engines.cuda.engine.CudaEngine.refusal", refusal)
    arguments = ["--samples", "500", "--features", "4", "--rounds", "4"]
    assert main(["profile", *arguments, "--votes", "newton", "discrete"]) == 0
    left_out, measured, *_ = capsys.readouterr().out.split("\n\n")
    assert left_out == "**newton votes**: left out, since it is newton"
    assert measured.startswith("**discrete votes, 500 x 4**, prepared in ")


def test_intervals_are_profiled_like_a_kind_of_votes(monkeypatch, capsys):
    device = OnCpu()
    monkeypatch.setattr("bench.profile.device_named", lambda place: device)
    arguments = ["--samples", "500", "--features", "4", "--rounds", "4"]
    assert main(["profile", *arguments, "--votes", "intervals"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("**intervals, 500 x 4**, prepared in ")
    assert re.search(r"^\| pair_up +\|", said, re.M)


def test_rounds_before_the_first_timed_one_are_made_but_not_timed(monkeypatch, capsys):
    device = OnCpu()
    monkeypatch.setattr("bench.profile.device_named", lambda place: device)
    arguments = ["--data", "noise", "--samples", "400", "--features", "5", "--votes", "real"]
    assert main(["profile", *arguments, "--skip", "5", "--rounds", "2"]) == 0
    said = capsys.readouterr().out
    assert "microseconds (after 5 rounds)" in said
    assert re.search(r"^\| follow_exponential +\| +1.00 \|", said, re.M)
    monkeypatch.setattr("bench.profile._boosting", lambda *settings: iter(range(5)))
    assert main(["profile", *arguments, "--skip", "5"]) == 2
    assert "boosting ended after 5 rounds: choose a smaller --skip" in capsys.readouterr().err


def test_a_launch_moves_each_array_once():
    table = types.SimpleNamespace(n_samples=1000, n_features=7)
    assert profile._bytes_moved("advance", table, 1) == 1000 * 41  # as signed weights are kept
    assert profile._bytes_moved("add_32", table, 1) == 1000 * 15
    assert profile._bytes_moved("add_staged", table, 2) == 1000 * 30
    assert profile._bytes_moved("follow_logistic", table, 2) == 1000 * 49
    assert profile._bytes_moved("scan", table, 1) is None


class FakeEvent:
    """An event of CuPy's: recorded at moments that a test sets."""

    moments = iter(())

    def record(self) -> None:
        self.at = next(FakeEvent.moments)

    def synchronize(self) -> None:
        assert self.at is not None


def test_a_gpus_own_clock_is_read_once_all_is_done(monkeypatch):
    cuda = types.SimpleNamespace(
        Event=FakeEvent, get_elapsed_time=lambda start, end: end.at - start.at
    )
    monkeypatch.setattr(FakeEvent, "moments", iter((2.0, 5.0)))
    device = types.SimpleNamespace(xp=types.SimpleNamespace(cuda=cuda))
    start, end = profile.now(device), profile.now(device)
    assert profile.seconds_between(device, start, end) == 0.003  # of milliseconds


def test_without_a_gpu_the_reason_is_told(monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *rest: None)
    assert main(["profile"]) == 2
    assert "CuPy is not installed: pip install" in capsys.readouterr().err
