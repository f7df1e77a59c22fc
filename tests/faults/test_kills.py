"""SIGKILL at any moment, also while a file is written: every file is whole, the old or the new one.

Nothing else may be left but temporary files, whose names tell what they are.
"""

from __future__ import annotations

import random
import re
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from fault_counts import count
from forked_runs import COMMAND, Forked, Run, forks, rounds_in

pytestmark = [forks, pytest.mark.skipif(sys.platform == "win32", reason="has no SIGKILL")]

TRAIN = ("train", "t.npz", "--target", "y", "--quiet", "--test-size", 0)
NAMES = ("t.npz", "model.json", "run.json")
SORTED = f"import os\nos.environ['GPUSTUMP_KERNELS'] = 'sorted'\n{COMMAND}"
"""The command, with the engine of small tables."""
ROUNDS = (2_000, 1_999)  # so many that a kill comes before the end


@pytest.fixture
def table(tmp_path: Path) -> Path:
    draw = np.random.default_rng(0)
    X = draw.normal(size=(60, 3))
    np.savez(tmp_path / "t.npz", X=X, y=(X[:, 0] + draw.normal(size=60) > 0).astype(int))
    return tmp_path


def models(runs: Forked, table: Path, rounds: tuple[int, int] = ROUNDS) -> list[bytes]:
    """The models of runs that nobody kills, by number of rounds; the last one stays there."""
    found = []
    for n_rounds in rounds:
        ended = runs.run(table, *TRAIN, "--rounds", n_rounds, program=SORTED)
        assert (ended.code, ended.err) == (0, "")
        found.append((table / "model.json").read_bytes())
    return found


def left_in(folder: Path) -> list[Path]:
    """Files that were left, each of which is a temporary one by its name."""
    left = [path for path in folder.iterdir() if path.name not in NAMES]
    assert all(re.fullmatch(r"\.gpustump\.[0-9a-f]{16}", path.name) for path in left)
    return left


def kill_later(run: Run, seconds: float) -> int:
    time.sleep(seconds)
    run.send(signal.SIGKILL)
    return run.end().code


def test_a_kill_at_any_moment_leaves_the_old_model_or_the_new_one(with_kernels, table):
    runs = with_kernels
    whole = models(runs, table)
    started = time.monotonic()
    runs.run(table, *TRAIN, "--rounds", ROUNDS[1], program=SORTED)
    usual = time.monotonic() - started
    codes = []
    for number in range(count(3, 100)):
        run = runs.start(table, *TRAIN, "--rounds", ROUNDS[number % 2], program=SORTED)
        codes.append(kill_later(run, random.uniform(0.0, 1.1 * usual)))
        assert (table / "model.json").read_bytes() in whole
        left_in(table)
    assert set(codes) <= {0, -signal.SIGKILL}


AT_A_CALL = """
import os, signal, sys
from gpustump.model import whole_file
make_file, n_left = whole_file.new_file, {n_calls}
def kill(frame, event, argument):
    global n_left
    n_left -= 1
    if n_left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
def counting(*arguments):
    sys.setprofile(kill)  # at every call and return of a function, those written in C included
    return make_file(*arguments)
whole_file.new_file = counting
"""


def test_a_kill_at_every_call_while_the_model_is_written_leaves_the_old_one_or_the_new_one(
    with_kernels, table
):
    runs = with_kernels
    old, new = models(runs, table, (40, 41))
    n_calls, was_left, model = 0, [], table / "model.json"
    model.write_bytes(old)
    while model.read_bytes() != new:
        program = AT_A_CALL.format(n_calls=n_calls) + SORTED
        ended = runs.run(table, *TRAIN, "--rounds", 41, program=program)
        assert ended.code == -signal.SIGKILL
        assert model.read_bytes() in (old, new)
        was_left.append(len(left_in(table)) > sum(was_left))
        n_calls += count(20, 1)
    assert sum(was_left) >= 3  # the file was there, and had not its name yet


def has_ended(run: Run) -> bool:
    """Whether it has ended and waits for its exit code to be read."""
    state = Path(f"/proc/{run.number}/stat")
    return state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_run_that_is_killed_again_and_again_ends_with_the_model_of_one_that_never_was(
    with_kernels, table
):
    runs = with_kernels
    whole, checkpoint, n_resumed = models(runs, table)[0], table / "run.json", 0
    model = table / "model.json"
    resuming = (*TRAIN, "--rounds", ROUNDS[0], "--checkpoint", "run.json", "--resume")
    n_runs = 0
    while n_runs < count(3, 100) or n_resumed == 0:
        n_runs += 1
        assert n_runs <= 200, "every run was done before it was killed"
        model.unlink(missing_ok=True)
        before = rounds_in(checkpoint)
        run = runs.start(table, *resuming, "--checkpoint-every", "25 rounds", program=SORTED)
        while rounds_in(checkpoint) == before and not has_ended(run):
            pass  # some rounds are made and kept
        kill_later(run, random.uniform(0.0, 0.05))
        assert rounds_in(checkpoint) >= before or model.exists()
        n_resumed += before > 0
        if model.exists():  # it was done before it was killed, and starts anew
            assert model.read_bytes() == whole
    model.unlink(missing_ok=True)
    last = runs.run(table, *resuming, program=SORTED)
    assert (last.code, last.err) == (0, "")
    assert model.read_bytes() == whole
    assert not checkpoint.exists()
