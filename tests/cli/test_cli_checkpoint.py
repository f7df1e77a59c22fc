"""`gpustump train --checkpoint`: the rules for the file; tests of faults send signals and kill."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from classifiers import drawn
from command import command_fixture  # noqa: F401

N_ROUNDS = 300

TRAIN = ("train", "t.npz", "--target", "y", "--rounds", N_ROUNDS, "--device", "cpu")


@pytest.fixture
def whole(command) -> bytes:
    """The model of an uninterrupted run, whose table is there."""
    X, y = drawn()
    np.savez("t.npz", X=X, y=y)
    command.succeeds(*TRAIN, "-o", "whole.json", "--quiet")
    return Path("whole.json").read_bytes()


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
        (("--drop", "2"), "the table has 3 features instead of 4"),
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


REFUSED = [
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
]


def test_options_that_make_no_sense_are_refused(command):
    np.savez("t.npz", X=np.eye(4), y=[0, 1, 0, 1])
    for more, message in REFUSED:
        assert message in command.refuses("train", "t.npz", "--target", "y", *more)
