"""Kernels kept on disk are those of the sources at hand, and old ones do not pile up."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

pytest.importorskip("numba")

import gpustump
from gpustump.engines import announcements
from gpustump.engines.cpu.runtime import compile_turns
from gpustump.engines.cpu.runtime.compile_turns import Turns

HELPER = """
from gpustump.engines.cpu.runtime.compiling import kernel

@kernel("int64(int64)")
def helper(x):
    return x + {added}
"""

CALLER = """
from gpustump.engines.cpu.runtime.compiling import kernel
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
def test_kernels_are_those_of_the_sources_and_of_this_numba(package):
    answer, path, hits = called(package)
    assert (answer, hits) == (20, 0)
    assert called(package) == (20, path, 1)
    edit(package, 2)  # a helper in another file
    changed, elsewhere, hits = called(package)
    assert (changed, hits) == (30, 0)
    assert path is not None
    assert elsewhere is not None
    assert path.parent == elsewhere.parent == package / "engines" / "cpu" / "__pycache__"
    assert not path.exists()  # what an edit made useless is gone
    source = package / "engines" / "integer_weights.py"  # a constant that kernels use
    source.write_text(source.read_text().replace("2.0**-900", "2.0**-901"))
    answer, path, hits = called(package)
    assert (answer, hits) == (30, 0)
    assert path is not None
    sources, _, version = path.name.partition("-numba-")
    other = path.rename(path.with_name(f"{sources}-numba-0.1.2"))
    assert version.count(".") == 2
    assert called(package) == (30, path, 0)
    assert other.exists()  # environments may share one installation


@pytest.mark.slow
def test_kernels_are_kept_where_numba_is_told_and_nowhere_where_nothing_can_be_written(
    package, tmp_path
):
    wanted, occupied = tmp_path / "kept", tmp_path / "file"
    occupied.touch()
    nowhere = str(occupied / "folder")
    (package / "engines" / "cpu" / "__pycache__").touch()  # a file where the folder should be
    assert called(package, HOME=nowhere, XDG_CACHE_HOME=nowhere) == (20, None, 0)
    _, path, _ = called(package, NUMBA_CACHE_DIR=str(wanted))
    assert path is not None
    assert wanted in path.parents


LOADER = """
import sys
sys.path.insert(0, {folder!r})
from gpustump.engines.cpu.runtime import compile_turns, compiling
compile_turns.PATIENCE = {patience}
compiling.load("made_up_slow")
from gpustump.engines.cpu.made_up_slow import caller
print(caller(1), caller.stats.cache_path, sum(caller.stats.cache_hits.values()))
"""

SLOW = """
import os, time
from gpustump.engines.cpu.runtime.compiling import kernel
from gpustump.engines.cpu.made_up_helper import helper

if not helper.stats.cache_hits:
    print("compiling", flush=True)
    while not os.path.exists(os.environ["GO_ON"]):
        time.sleep(0.05)

@kernel("int64(int64)")
def caller(x):
    return helper(x) * 10
"""

COMPILES = "gpustump: compiling the CPU kernels, once on this machine: up to a minute ...\n"
WAITS = "gpustump: waiting for another process that is compiling the CPU kernels ...\n"


class Loader:
    """Processes that load two kernels of a package.

    One that has compiled the first kernel goes on when a file exists: by default at once.
    """

    def __init__(self, package: Path, cache: Path, processes: ExitStack) -> None:
        (package / "engines" / "cpu" / "made_up_slow.py").write_text(SLOW)
        self.cache = cache
        self._package, self._processes = package, processes

    def started(self, go_on: Path = Path(), *, patience: float = 60.0) -> subprocess.Popen[str]:
        """A process of its own."""
        program = LOADER.format(folder=str(self._package.parent), patience=patience)
        process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "NUMBA_CACHE_DIR": str(self.cache), "GO_ON": str(go_on)},
        )
        self._processes.enter_context(process)
        self._processes.callback(process.kill)
        return process

    def compiling(self, go_on: Path) -> subprocess.Popen[str]:
        """A process that has compiled the first kernel."""
        process = self.started(go_on)
        assert process.stdout is not None
        assert process.stdout.readline() == "compiling\n"
        return process


@pytest.fixture
def loader(package: Path, tmp_path: Path):
    pytest.importorskip("filelock")
    with ExitStack() as processes:
        yield Loader(package, tmp_path / "kept", processes)


@pytest.mark.slow
def test_one_process_compiles_while_the_others_wait_and_say_so(loader):
    go_on = loader.cache / "go on"
    first = loader.compiling(go_on)
    others = [loader.started() for _ in range(2)]
    assert [other.stderr.readline() for other in others] == [WAITS] * 2
    go_on.touch()
    for other in others:
        out, err = other.communicate(timeout=60)
        answer, path, hits = out.split()
        assert (answer, hits, err) == ("20", "1", "")
        assert Path(path).is_relative_to(loader.cache)
    out, err = first.communicate(timeout=60)
    assert out.split()[::2] == ["20", "0"]
    assert err == COMPILES


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a process cannot be stopped there")
@pytest.mark.parametrize(("sent", "patience"), [("SIGKILL", 60.0), ("SIGSTOP", 1.0)])
def test_a_compiler_that_was_killed_or_stopped_is_waited_for_a_limited_time(loader, sent, patience):
    first = loader.compiling(loader.cache / "never")
    second = loader.started(patience=patience)
    assert second.stderr.readline() == WAITS
    first.send_signal(getattr(signal, sent))
    out, err = second.communicate(timeout=60)
    assert out.split()[::2] == ["20", "0"]
    assert err == COMPILES


@pytest.mark.slow
def test_where_no_lock_can_be_made_nobody_waits(loader):
    (path,) = {loader.started().communicate(timeout=60)[0].split()[2]}
    for file in Path(path).iterdir():
        file.unlink()
    (Path(path) / "compiling.lock").mkdir()
    loader.compiling(loader.cache / "never")
    out, err = loader.started().communicate(timeout=60)
    assert out.split()[::2] == ["20", "0"]  # the other one has compiled the first kernel only
    assert err == COMPILES


def test_a_turn_is_taken_once_and_ends_with_the_last_load(tmp_path, monkeypatch):
    pytest.importorskip("filelock")
    monkeypatch.setattr(compile_turns, "PATIENCE", 0.1)
    monkeypatch.setattr(announcements, "listeners", [])
    turns, others = Turns(), Turns()
    assert not turns.take(tmp_path)  # nothing is being loaded: who would end the turn?
    with turns.loading():
        with turns.loading():
            assert turns.take(tmp_path)
            assert not turns.take(tmp_path)
        with others.loading():
            assert not others.take(tmp_path)
    later = Turns()
    with later.loading():
        assert later.take(tmp_path)
    monkeypatch.setitem(sys.modules, "filelock", None)  # without it nobody waits
    turns = Turns()
    with turns.loading():
        assert not turns.take(tmp_path)
