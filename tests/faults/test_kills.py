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

import pytest
from fault_counts import count
from forked_runs import COMMAND, Forked, Run, forks, rounds_in, write_table

pytestmark = [forks, pytest.mark.skipif(sys.platform == "win32", reason="has no SIGKILL")]

TRAIN = ("train", "t.npz", "--target", "y", "--quiet", "--test-size", 0)
NAMES = ("t.npz", "model.json", "run.json")
SORTED = f"import os\nos.environ['GPUSTUMP_KERNELS'] = 'sorted'\n{COMMAND}"
"""The command, with the engine of small tables."""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    write_table(tmp_path, 60)
    return tmp_path


def model_of(runs: Forked, table: Path, n_rounds: int) -> bytes:
    """The model of a run that nobody kills, which stays there."""
    ended = runs.run(table, *TRAIN, "--rounds", n_rounds, program=SORTED)
    assert (ended.code, ended.err) == (0, "")
    return (table / "model.json").read_bytes()


def left_in(folder: Path) -> list[Path]:
    """Files that were left, each of which is a temporary one by its name."""
    left = [path for path in folder.iterdir() if path.name not in NAMES]
    assert all(re.fullmatch(r"\.gpustump\.[0-9a-f]{16}", path.name) for path in left)
    return left


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
    old, new = (model_of(with_kernels, table, n_rounds) for n_rounds in (40, 41))
    n_calls, was_left, model = 0, [], table / "model.json"
    model.write_bytes(old)
    while model.read_bytes() != new:
        program = AT_A_CALL.format(n_calls=n_calls) + SORTED
        ended = with_kernels.run(table, *TRAIN, "--rounds", 41, program=program)
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
    n_rounds = 2_000  # so many that a kill comes before the end
    whole, model = model_of(with_kernels, table, n_rounds), table / "model.json"
    checkpoint, n_resumed = table / "run.json", 0
    resuming = (*TRAIN, "--rounds", n_rounds, "--checkpoint", "run.json", "--resume")
    n_runs = 0
    while n_runs < count(3, 100) or n_resumed == 0:
        n_runs += 1
        assert n_runs <= 200, "every run was done before it was killed"
        model.unlink(missing_ok=True)
        before = rounds_in(checkpoint)
        more = ("--checkpoint-every", "25 rounds")
        run = with_kernels.start(table, *resuming, *more, program=SORTED)
        while rounds_in(checkpoint) == before and not has_ended(run):
            pass  # some rounds are made and kept
        time.sleep(random.uniform(0.0, 0.05))
        run.send(signal.SIGKILL)
        run.end()
        assert rounds_in(checkpoint) >= before or model.exists()
        n_resumed += before > 0
        if model.exists():  # it was done before it was killed, and starts anew
            assert model.read_bytes() == whole
    model.unlink(missing_ok=True)
    last = with_kernels.run(table, *resuming, program=SORTED)
    assert (last.code, last.err) == (0, "")
    assert model.read_bytes() == whole
    assert not checkpoint.exists()
