"""The benchmarks run, keep every timing, and compute what they show from those timings alone."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.timing import Contender, per_round, ratio, take_turns  # noqa: E402


def bench(*arguments: str) -> str:
    command = [sys.executable, "-m", "bench", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_backends_train_the_same_model_and_every_timing_is_kept(tmp_path):
    path = tmp_path / "backends.json"
    shown = bench("backends", "--samples=300", "--features=4", "--turns=2", f"--json={path}")
    report = json.loads(path.read_text())
    ours = [run for run in report["runs"] if run["name"].startswith("gpustump")]
    assert len({run["digest"] for run in ours}) == 1
    assert all(len(run["short"]) == len(run["long"]) == 2 for run in report["runs"])
    assert report["machine"]["versions"]["numpy"]
    assert bench("show", str(path)) == shown


def test_growth_covers_samples_and_features(tmp_path):
    path = tmp_path / "growth.json"
    sizes = ["--samples", "200", "400", "--features", "3", "6"]
    shown = bench("growth", *sizes, "--turns=1", f"--json={path}")
    axes = json.loads(path.read_text())["axes"]
    assert [run["shape"] for run in axes["samples"]] == [[200, 3], [400, 3]]
    assert [run["shape"] for run in axes["features"]] == [[400, 3], [400, 6]]
    assert shown.count("exponent") == 2


def test_a_round_costs_what_it_takes_and_ratios_are_formed_turn_by_turn():
    def sleeper(seconds: float) -> Contender:
        return Contender(f"{seconds} s a round", lambda rounds: time.sleep(0.02 + rounds * seconds))

    quick, slow = sleeper(0.005), sleeper(0.02)
    take_turns([quick, slow], (1, 5), 3, lambda: None)
    costs = [per_round(c.short, c.long, (1, 5)) for c in (quick, slow)]
    assert min(costs[0]) == pytest.approx(0.005, rel=0.5)
    assert min(costs[1]) == pytest.approx(0.02, rel=0.5)
    assert ratio([1.0, 2.0, 3.0], [2.0, 8.0, 9.0]) == 3.0
