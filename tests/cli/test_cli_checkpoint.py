"""`gpustump train --checkpoint`: signals to a real process, and the rules for the file."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import numpy as np
import pytest
from command import command_fixture, process  # noqa: F401

N_ROUNDS = 300

SLOWED = """
import time
from gpustump.boosting.rounds.logs import RunLog
note = RunLog.note
def slow(self, done):
    note(self, done)
    time.sleep(0.005)
RunLog.note = slow
"""
"""A signal then comes while there are rounds to make."""

TRAIN = ("train", "t.npz", "--target", "y", "--rounds", N_ROUNDS, "--device", "cpu")


@pytest.fixture
def whole(command) -> bytes:
    """The model of an uninterrupted run, whose table is there."""
    random = np.random.default_rng(3)
    X = random.normal(size=(200, 3))
    np.savez("t.npz", X=X, y=(X[:, 0] + random.normal(size=200) > 0).astype(int))
    command.succeeds(*TRAIN, "-o", "whole.json", "--quiet")
    return Path("whole.json").read_bytes()


def _rounds_in(path: str | Path) -> int:
    """How many rounds a checkpoint holds; the file is complete whenever it exists."""
    if not Path(path).exists():
        return -1
    bags = json.loads(Path(path).read_text())["bags"]
    return sum(len(run["rounds"]) for bag in bags for run in bag["runs"])


def _ended(folder: Path, number: signal.Signals, *more: object) -> tuple[int, str]:
    """How a process ends that is sent a signal after some more rounds than the checkpoint held at
    first, and what it says."""
    arguments = (*TRAIN, "--checkpoint", "run.json", "--checkpoint-every", "7 rounds", *more)
    least = max(0, _rounds_in("run.json")) + 20
    env = {**os.environ, "GPUSTUMP_KERNELS": "reference"}  # starts sooner than Numba's kernels
    with process(*arguments, folder=folder, before=SLOWED, env=env) as running:
        while _rounds_in("run.json") < least:
            assert running.poll() is None, running.communicate()
            time.sleep(0.02)
        running.send_signal(number)
        out, err = running.communicate(timeout=300)
    assert out == ""
    return running.returncode, err


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_after_each_signal_the_same_command_goes_on_to_the_model_of_an_uninterrupted_run(
    command, whole
):
    code, told = _ended(command.folder, signal.SIGINT)
    assert code == 130
    made = _rounds_in("run.json")
    assert told == (
        f"gpustump: interrupted after {made} rounds, kept in run.json; to go on, run the same "
        "command with --resume\n"
    )
    code, told = _ended(command.folder, signal.SIGTERM, "--resume")
    assert code == -signal.SIGTERM
    assert _rounds_in("run.json") >= made + 20
    made = _rounds_in("run.json")
    assert told == (
        f"gpustump: ended by SIGTERM after {made} rounds, kept in run.json; to go on, run the "
        "same command\n"
    )
    ended = _ended(command.folder, signal.SIGKILL, "--resume", "--quiet")
    assert ended == (-signal.SIGKILL, "")
    made = _rounds_in("run.json")
    assert made < N_ROUNDS
    outcome = command.succeeds(*TRAIN, "--checkpoint", "run.json", "--resume")
    assert outcome.row("went on") == f"from {made} rounds of run.json"
    assert Path("model.json").read_bytes() == whole
    assert command.files().keys() - {"t.npz"} == {"model.json", "whole.json"}


def _interrupt_in_this_process(command, monkeypatch, *more: object) -> None:
    from gpustump.boosting.rounds.logs import RunLog

    note = RunLog.note

    def interrupting(self, done):
        note(self, done)
        if len(self.rounds) == 30:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(RunLog, "note", interrupting)
        outcome = command(*TRAIN, "--checkpoint", "run.json", *more)
    assert (outcome.code, outcome.out) == (130, "")
    assert "interrupted after 30 rounds, kept in run.json" in outcome.err


def test_a_checkpoint_is_replaced_only_if_an_option_says_so(command, whole, monkeypatch):
    _interrupt_in_this_process(command, monkeypatch)
    before = Path("run.json").read_bytes()
    assert command.refuses(*TRAIN, "--checkpoint", "run.json") == (
        "--checkpoint: run.json exists; --resume goes on from it, --force replaces it and starts "
        "again."
    )
    for other, said in (
        (("--learning-rate", "0.5"), "learning_rate was 1.0, and is 0.5 now"),
        (("--drop", "2"), "the table has 2 features instead of 3"),
    ):
        assert said in command.refuses(*TRAIN, "--checkpoint", "run.json", "--resume", *other)
    _interrupt_in_this_process(command, monkeypatch, "--force")
    assert Path("run.json").read_bytes() == before  # the same rounds, made anew
    Path("run.json").write_text("notes of mine")
    said = command.refuses(*TRAIN, "--checkpoint", "run.json", "--resume")
    assert said.startswith("checkpoint: run.json is no checkpoint that gpustump can have written")
    command.succeeds(*TRAIN, "--checkpoint", "run.json", "--force")
    assert Path("model.json").read_bytes() == whole
    assert not Path("run.json").exists()
    outcome = command.succeeds(*TRAIN, "--checkpoint", "run.json", "--resume")
    assert "went on" not in outcome.out  # there was no checkpoint
    assert Path("model.json").read_bytes() == whole


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--resume",), "--resume is for a checkpoint; name its file with --checkpoint."),
        (("--checkpoint-every", "5s"), "--checkpoint-every is for a checkpoint"),
        (("--checkpoint", "model.json"), "--checkpoint and --output both name model.json."),
        (("--checkpoint", "none/run.json"), "--checkpoint: the folder "),
        (("--checkpoint", "t.npz", "--force"), "would replace the file that is read"),
        (("--checkpoint", "-"), "--checkpoint: - cannot be read again later"),
        (("--checkpoint", "."), "--checkpoint: . cannot be read again later"),
        (("--checkpoint", ""), "--checkpoint needs the name of a file."),
        *(
            (("--checkpoint", "run.json", "--checkpoint-every", wrong), "must be a time or a numb")
            for wrong in ("5", "0s", "1.5 rounds", "1e3s")
        ),
    ],
)
def test_options_that_make_no_sense_are_refused(command, more, message):
    np.savez("t.npz", X=np.eye(4), y=[0, 1, 0, 1])
    assert message in command.refuses("train", "t.npz", "--target", "y", *more)
