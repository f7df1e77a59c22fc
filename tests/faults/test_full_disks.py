"""Disks that are full or cannot be written to: an error of one line; the old file stays as it was.

The disk is a small one in memory, mounted where only the process under test sees it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from command import Command, Outcome, command_fixture, refusal  # noqa: F401
from fault_counts import count
from forked_runs import COMMAND, forks

TRAIN = ("train", "t.npz", "--target", "y")
IN_A_SPACE_OF_ITS_OWN = ("unshare", "--user", "--map-root-user", "--mount")


@cache
def why_no_disk() -> str | None:
    """Why no disk can be mounted here; None if one can."""
    if shutil.which("unshare") is None:
        return "needs the command unshare"
    mount = "mount -t tmpfs -o size=64k none /tmp"
    done = subprocess.run([*IN_A_SPACE_OF_ITS_OWN, "sh", "-c", mount], capture_output=True)
    return None if done.returncode == 0 else "this system lets no user mount a disk"


ON_A_SMALL_DISK = """
import contextlib, io, json, os, subprocess, sys
from gpustump.cli import main

folder, kind, rooms = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", folder + "/disk"], check=True)
os.chdir(folder)

def run(*arguments):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([*map(str, arguments)])
    return code, out.getvalue() + err.getvalue()

WAYS = {
    "train": ("train", "t.npz", "--target", "y", "--rounds", 1_000, "--test-size", 0, "--quiet",
              "-o", "disk/model.json"),
    "predict": ("predict", "new.json", "t.npz", "-o", "disk/result.csv"),
    "explain": ("explain", "new.json", "t.npz", "-o", "disk/result.npz"),
}
name = "disk/" + WAYS[kind][-1].partition("/")[2]
code, said = run(*WAYS[kind])
assert code == 0, said
assert said == "" if kind == "train" else said.startswith(f"written  {name}, "), said
whole = open(name, "rb").read()
found = []
for room in rooms:
    free = os.statvfs("disk").f_bavail * os.statvfs("disk").f_bsize
    with open("disk/filler", "wb") as filler:
        filler.write(bytes(max(0, free - room)))
    code, said = run(*WAYS[kind])
    same = open(name, "rb").read() == whole
    os.unlink("disk/filler")
    found.append((code, said, same, sorted(os.listdir("disk"))))
subprocess.run(["mount", "-o", "remount,ro", folder + "/disk"], check=True)
code, said = run(*WAYS[kind])
found.append((code, said, open(name, "rb").read() == whole, sorted(os.listdir("disk"))))
print(json.dumps(found))
"""


@pytest.fixture
def tables(command: Command) -> Path:
    """A table, its model, and a folder for the disk."""
    draw = np.random.default_rng(0)
    X = draw.normal(size=(1_500, 3))
    np.savez("t.npz", X=X, y=(X[:, 0] + draw.normal(size=1_500) > 0).astype(int))
    command.succeeds(*TRAIN, "--rounds", 5, "--quiet", "-o", "new.json")
    (command.folder / "disk").mkdir()
    return command.folder


@pytest.mark.parametrize("kind", ["train", "predict", "explain"])
def test_a_disk_that_fills_up_while_a_file_is_written_keeps_the_old_one(tables, kind):
    reason = why_no_disk()
    if reason is not None:
        pytest.skip(reason)
    rooms = np.linspace(0, 40_000, count(3, 34)).astype(int).tolist()
    done = subprocess.run(
        [*IN_A_SPACE_OF_ITS_OWN, sys.executable, "-c", ON_A_SMALL_DISK, tables, kind,
         json.dumps(rooms)],
        capture_output=True, text=True, env={**os.environ, "GPUSTUMP_KERNELS": "reference"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *full, read_only = json.loads(done.stdout)
    name = {"train": "model.json", "predict": "result.csv", "explain": "result.npz"}[kind]
    for code, said, same, files in full:
        assert code == 2
        assert said.startswith(f"gpustump: error: --output disk/{name}: No space left on device; ")
        assert said.count("\n") == 1
        assert (same, files) == (True, [name])
    code, said, same, files = read_only
    assert (code, same, files) == (2, True, [name])
    assert "no file can be made in " in said
    assert "Read-only file system" in said
    assert said.count("\n") == 1


AT_MOST = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, -1))"


@forks
def test_a_file_that_grows_beyond_the_users_limit_is_one_line(with_kernels, tables):
    for name, arguments in (
        ("model.json", (*TRAIN, "--rounds", 1_000, "--test-size", 0)),
        ("result.csv", ("predict", "new.json", "t.npz", "-o", "result.csv")),
    ):
        ended = with_kernels.run(tables, *arguments, program=f"{AT_MOST}\n{COMMAND}")
        assert refusal(Outcome(*ended)).startswith(f"--output {name}: File too large")
        assert sorted(path.name for path in tables.iterdir()) == ["disk", "new.json", "t.npz"]
