"""Kernels take the types that they declare, and groups of arrays by name.

Those kept on disk are those of the sources at hand, and old ones do not pile up.
"""

from __future__ import annotations

import importlib
import os
import re
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import pytest

pytest.importorskip("numba")

import gpustump
from gpustump.engines import announcements
from gpustump.engines.cpu.runtime import compile_turns, compiling
from gpustump.engines.cpu.runtime.compile_turns import Turns
from gpustump.engines.cpu.runtime.compiling import Integers, group, inner, kernel, record

_PLACE = record("_Place", "row", "column")


@group
class _Line(NamedTuple):
    slopes: Annotated[np.ndarray, "KEY[::1]"]
    starts: Integers
    scale: float


@kernel("float64(_Line, int64, _Place[::1])", KEY=("int32", "float64"))
def _at(line, x, places):  # type: ignore[no-untyped-def]
    places[0].row = x
    return (line.starts[0] + line.slopes[0] * x) * line.scale


def test_a_kernel_takes_groups_in_each_of_its_versions_and_records():
    starts, places = np.asarray([1]), np.zeros(1, dtype=_PLACE)
    for dtype in ("int32", "float64"):
        line = _Line(np.asarray([3], dtype=dtype), starts, 0.5)
        assert _at(line, 5, places) == 8.0
        assert places["row"].tolist() == [5]
    for bad in (np.zeros(1, dtype=np.int16), np.zeros(4)[::2], [1.0]):
        with pytest.raises(TypeError):
            _at(_Line(bad, starts, 0.5), 5, places)


@inner("float64(float64)")
def _doubled(x):  # type: ignore[no-untyped-def]
    return 2.0 * x


@kernel("float64(float64)")
def _four_times(x):  # type: ignore[no-untyped-def]
    return _doubled(_doubled(x))


def test_kernels_call_inner_functions_and_python_cannot():
    assert _four_times(1.5) == 6.0
    with pytest.raises(TypeError, match="No matching definition"):
        _doubled(1.5)
    with pytest.raises(AttributeError, match="Unheard"):
        kernel("void(Unheard)")(lambda unheard: None)


def test_the_stages_import_every_file_that_holds_kernels():
    compiling.load()
    importlib.import_module("gpustump.engines.cluster.kernel_shard")  # which has kernels of its own
    folder = Path(compiling.__file__).parents[1]
    holding = [
        file for file in folder.rglob("*.py") if re.search(r"\n@(kernel|inner)\(", file.read_text())
    ]
    names = [".".join(file.relative_to(folder).with_suffix("").parts) for file in holding]
    assert len(names) > 5
    assert [name for name in names if f"gpustump.engines.cpu.{name}" not in sys.modules] == []


@pytest.mark.parametrize("can_be_kept", [True, False])
def test_compiling_is_announced_once(monkeypatch, can_be_kept):
    if not can_be_kept:
        plain = compiling._compiled

        def refusing(function, signatures, options, *, cache):
            if cache:
                raise RuntimeError("cannot cache function: no locator available")
            return plain(function, signatures, options, cache=False)

        monkeypatch.setattr(compiling, "_compiled", refusing)
    monkeypatch.setattr(compiling, "_has_compiled", False)
    heard: list[str] = []
    monkeypatch.setattr(announcements, "listeners", [lambda text, level: heard.append(text)])

    def add(x, y):  # type: ignore[no-untyped-def]
        return x + y

    compiled = [compiling.kernel("int64(int64, int64)")(add) for _ in range(2)]
    assert compiled[0](2, 3) == 5
    assert len(heard) == (0 if can_be_kept and not compiling._has_compiled else 1)
    with pytest.raises(TypeError):
        compiled[0]("a", "b")


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
from gpustump.engines.cpu.runtime import compiling
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
    while not os.path.exists({go_on!r}):
        time.sleep(0.05)

@kernel("int64(int64)")
def caller(x):
    return helper(x) * 10
"""

COMPILES = "gpustump: compiling the CPU kernels, once on this machine: up to a minute ...\n"
WAITS = "gpustump: waiting for another process that is compiling the CPU kernels ...\n"


@pytest.mark.slow
@pytest.mark.parametrize("is_killed", [False, True])
def test_one_process_compiles_while_the_others_wait_and_say_so(package, tmp_path, is_killed):
    """Until it is done, or killed. It goes on when a file exists."""
    pytest.importorskip("filelock")
    kept, go_on = tmp_path / "kept", tmp_path / "go on"
    slow = SLOW.format(go_on=str(go_on))
    (package / "engines" / "cpu" / "made_up_slow.py").write_text(slow)
    with ExitStack() as processes:

        def started() -> subprocess.Popen[str]:
            process = subprocess.Popen(
                [sys.executable, "-c", LOADER.format(folder=str(package.parent))],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=os.environ | {"NUMBA_CACHE_DIR": str(kept)},
            )
            processes.enter_context(process)
            processes.callback(process.kill)
            return process

        first = started()
        assert first.stdout is not None
        assert first.stdout.readline() == "compiling\n"
        other = started()
        assert other.stderr is not None
        assert other.stderr.readline() == WAITS
        if is_killed:
            first.kill()
        go_on.touch()
        out, err = other.communicate(timeout=60)
        answer, path, hits = out.split()[-3:]
        assert Path(path).is_relative_to(kept)
        assert (answer, hits, err) == ("20", *(("0", COMPILES) if is_killed else ("1", "")))
        if not is_killed:
            out, err = first.communicate(timeout=60)
            assert (out.split()[::2], err) == (["20", "0"], COMPILES)


def test_a_turn_is_taken_once_and_ends_with_the_last_load(tmp_path, monkeypatch):
    """A process that was stopped is waited for a limited time; without a lock nobody waits."""
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
    (tmp_path / "no lock" / compile_turns.LOCK).mkdir(parents=True)
    turns = Turns()
    with turns.loading():
        assert not turns.take(tmp_path / "no lock")
    monkeypatch.setitem(sys.modules, "filelock", None)
    turns = Turns()
    with turns.loading():
        assert not turns.take(tmp_path)
