"""A table that becomes shorter while it is mapped: an error of one line, never a bus error."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fault_counts import count
from forked_runs import COMMAND, LOADED, Forked, forked, forks

pytestmark = [forks, pytest.mark.skipif(not hasattr(signal, "SIGBUS"), reason="has no SIGBUS")]

TRAIN = ("train", "t.npy", "--target", -1, "--quiet", "--rounds", 10)
SAID = "gpustump: error: t.npy became shorter while it was read; wait until it is complete, and"

AT_THE_FIT = """
import os, gpustump.cli.commands.train as train
fit = train._fitted
def cut_short(*arguments):
    os.truncate("t.npy", 5_000)
    return fit(*arguments)
train._fitted = cut_short
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forked]:
    with forked(tmp_path_factory.mktemp("streams"), LOADED) as found:
        yield found


def write_table(folder: Path) -> None:
    draw = np.random.default_rng(0)
    X = draw.normal(size=(30_000, 10))
    np.save(folder / "t.npy", np.column_stack([X, X[:, 0] > 0]))


def test_a_page_that_is_gone_is_one_line(runs, tmp_path):
    write_table(tmp_path)
    ended = runs.run(tmp_path, *TRAIN, program=AT_THE_FIT + COMMAND)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(SAID)
    assert ended.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["t.npy"]


def test_a_file_cut_short_at_any_moment_makes_the_model_or_a_message(runs, tmp_path):
    write_table(tmp_path)
    started = time.monotonic()
    assert runs.run(tmp_path, *TRAIN).code == 0
    usual, model = time.monotonic() - started, tmp_path / "model.json"
    expected = model.read_bytes()
    for _ in range(count(3, 100)):
        write_table(tmp_path)
        model.unlink(missing_ok=True)
        run = runs.start(tmp_path, *TRAIN)
        time.sleep(random.uniform(0.0, usual))
        os.truncate(tmp_path / "t.npy", random.randrange(1, 2_000_000))
        ended = run.end()
        if ended.code == 0:  # it was read by then
            assert model.read_bytes() == expected
        else:
            assert ended.code == 2
            assert ended.err.startswith("gpustump: error: t.npy ")
            assert ended.err.count("\n") == 1
            assert not model.exists()
