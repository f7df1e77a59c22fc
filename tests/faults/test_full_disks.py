"""A file that cannot be written to its end: an error of one line; the old file stays as it was.

The system stops each file at the user's limit of its size, as a disk does that is full.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest
from command import refusal
from fault_counts import count
from forked_runs import COMMAND, forks, write_table

TRAIN = ("train", "t.npz", "--target", "y", "--quiet")
WAYS = {
    "model.json": (*TRAIN, "--rounds", 300, "--test-size", 0),
    "result.csv": ("predict", "known.json", "t.npz", "-o", "result.csv"),
    "result.npz": ("explain", "known.json", "t.npz", "-o", "result.npz"),
}
"""A command for each kind of file."""

AT_MOST = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({}, -1))"


pytestmark = forks


@pytest.mark.parametrize("name", WAYS)
def test_a_file_that_ends_while_it_is_written_keeps_the_old_one(with_kernels, tmp_path, name):
    write_table(tmp_path, 1_500)
    for arguments in ((*TRAIN, "--rounds", 5, "-o", "known.json"), WAYS[name]):
        assert with_kernels.run(tmp_path, *arguments).code == 0
    whole = (tmp_path / name).read_bytes()
    for most in np.linspace(1_000, len(whole) - 1, count(3, 34)).astype(int):
        program = f"{AT_MOST.format(most)}\n{COMMAND}"
        ended = with_kernels.run(tmp_path, *WAYS[name], program=program)
        assert refusal(ended).startswith(f"--output {name}: File too large")
        assert (tmp_path / name).read_bytes() == whole
        assert {path.name for path in tmp_path.iterdir()} == {"t.npz", "known.json", name}


@pytest.mark.skipif(sys.platform != "linux", reason="needs a folder in which nobody makes files")
def test_a_place_where_no_file_can_be_made_is_found_before_training(with_kernels, tmp_path):
    write_table(tmp_path, 50)
    ended = with_kernels.run(tmp_path, *TRAIN, "--rounds", 10**9, "-o", "/proc/model.json")
    assert refusal(ended).startswith("--output: no file can be made in /proc: ")
