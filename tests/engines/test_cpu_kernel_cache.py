"""Kernels kept on disk are those of the sources at hand, and old ones do not pile up."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba")

import gpustump

HELPER = """
from gpustump.engines.cpu.compiling import kernel

@kernel("int64(int64)")
def helper(x):
    return x + {added}
"""

CALLER = """
from gpustump.engines.cpu.compiling import kernel
from gpustump.engines.cpu.made_up_helper import helper

@kernel("int64(int64)")
def caller(x):
    return helper(x) * 10
"""

PROGRAM = """
import sys
sys.path.insert(0, {folder!r})
from gpustump.engines.cpu.made_up_caller import caller
print(caller(1), caller.stats.cache_path or "", sum(caller.stats.cache_hits.values()))
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package with two small kernel files, one of which calls the other's kernel."""
    folder = tmp_path / "gpustump"
    shutil.copytree(
        Path(gpustump.__file__).parent, folder, ignore=shutil.ignore_patterns("__pycache__")
    )
    edit(folder, 1)
    (folder / "engines" / "cpu" / "made_up_caller.py").write_text(CALLER)
    return folder


def edit(package: Path, added: int) -> None:
    (package / "engines" / "cpu" / "made_up_helper.py").write_text(HELPER.format(added=added))


def called(package: Path, **environment: str) -> tuple[int, Path | None, int]:
    """The caller's answer for 1 in a process of its own, its cache, and how often that helped."""
    inherited = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(folder=str(package.parent))],
        capture_output=True,
        text=True,
        env=inherited | {"PYTHONPATH": str(package.parent)} | environment,
    )
    assert done.returncode == 0, done.stderr
    answer, *path, hits = done.stdout.split()
    return int(answer), Path(path[0]) if path else None, int(hits)


@pytest.mark.slow
def test_a_kernel_is_compiled_anew_when_a_helper_in_another_file_changes(package):
    answer, path, hits = called(package)
    assert (answer, hits) == (20, 0)
    assert called(package) == (20, path, 1)
    edit(package, 2)
    changed, elsewhere, hits = called(package)
    assert (changed, hits) == (30, 0)
    assert path is not None
    assert elsewhere is not None
    assert path.parent == elsewhere.parent == package / "engines" / "cpu" / "__pycache__"
    assert not path.exists()  # what an edit made useless is gone
    assert elsewhere.exists()


@pytest.mark.slow
def test_a_kernel_is_compiled_anew_when_the_least_weight_changes(package):
    called(package)
    weights = package / "engines" / "integer_weights.py"
    weights.write_text(weights.read_text().replace("2.0**-900", "2.0**-901"))
    assert called(package)[2] == 0


@pytest.mark.slow
def test_kernels_are_kept_where_numba_is_told_to_keep_them(package, tmp_path):
    wanted = tmp_path / "kept"
    _, path, _ = called(package, NUMBA_CACHE_DIR=str(wanted))
    assert path is not None
    assert wanted in path.parents
    assert called(package, NUMBA_CACHE_DIR=str(wanted)) == (20, path, 1)


@pytest.mark.slow
def test_where_nothing_can_be_written_kernels_are_compiled_in_each_process(package, tmp_path):
    occupied = tmp_path / "file"
    occupied.touch()
    nowhere = str(occupied / "folder")
    (package / "engines" / "cpu" / "__pycache__").touch()  # a file where the folder should be
    for _ in range(2):
        answer, path, hits = called(package, HOME=nowhere, XDG_CACHE_HOME=nowhere)
        assert (answer, path, hits) == (20, None, 0)
