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


@pytest.fixture
def device(monkeypatch) -> OnCpu:
    found = OnCpu()
    monkeypatch.setattr("bench.profile.device_named", lambda place: found)
    return found


SMALL = ["profile", "--data", "noise", "--samples", "400", "--features", "5"]


def test_every_kernel_of_a_round_is_timed(device, capsys):
    assert main([*SMALL, "--rounds", "4", "--votes", "discrete"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("**discrete votes, 400 x 5**, prepared in ")
    rows = re.findall(r"^\| (\w[\w ]*?) +\|.* \| +(\S+) \|$", said, re.M)
    speeds = {name: speed for name, speed in rows if name in device.launched}
    assert {"advance", "add_staged", "scan", "mark"} <= {*speeds}
    for kernel, speed in speeds.items():
        assert (speed != "-") == kernel.startswith(("add", "advance"))
    assert {"all of them", "a round by the clock"} <= dict(rows).keys()
    assert not {"launch", "recorded"} & vars(device).keys()  # as it was


def test_votes_and_intervals_are_profiled_or_left_out_with_the_reason(monkeypatch, device, capsys):
    refusal = lambda engine, task: "it is newton" if task.search.votes == "newton" else None  # noqa: E731
    monkeypatch.setattr("gpustump.engines.cuda.engine.CudaEngine.refusal", refusal)
    assert main([*SMALL, "--rounds", "2", "--votes", "newton", "intervals"]) == 0
    left_out, measured = capsys.readouterr().out.split("\n\n", 1)
    assert left_out == "**newton votes**: left out, since it is newton"
    assert measured.startswith("**intervals, 400 x 5**, prepared in ")
    assert re.search(r"^\| pair_up +\|", measured, re.M)


def test_rounds_before_the_first_timed_one_are_made_but_not_timed(monkeypatch, device, capsys):
    arguments = [*SMALL, "--votes", "real", "--skip", "5"]
    assert main([*arguments, "--rounds", "2"]) == 0
    said = capsys.readouterr().out
    assert "microseconds (after 5 rounds)" in said
    assert re.search(r"^\| follow_exponential +\| +1.00 \|", said, re.M)
    monkeypatch.setattr("bench.profile._boosting", lambda *settings: iter(range(5)))
    assert main(arguments) == 2
    assert "boosting ended after 5 rounds: choose a smaller --skip" in capsys.readouterr().err


def test_a_launch_moves_each_array_once():
    table = types.SimpleNamespace(n_samples=1000, n_features=7)
    assert profile._bytes_moved("advance", table, 1) == 1000 * 41  # as signed weights are kept
    assert profile._bytes_moved("add_32", table, 1) == 1000 * 15
    assert profile._bytes_moved("add_staged", table, 2) == 1000 * 30
    assert profile._bytes_moved("follow_logistic", table, 2) == 1000 * 49
    assert profile._bytes_moved("scan", table, 1) is None


def test_without_a_gpu_the_reason_is_told(monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *rest: None)
    assert main(["profile"]) == 2
    assert "CuPy is not installed: pip install" in capsys.readouterr().err
