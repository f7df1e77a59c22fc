"""Compiled kernels on disk are those of the sources at hand, and another process makes them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

pytest.importorskip("numba")
pytest.importorskip("filelock")

import gpustump
from gpustump.engines.cpu.engine import KERNELS, Kernels
from gpustump.engines.cpu.runtime import building, kernel_folder
from gpustump.engines.threads import threads_of

HELPER = """
from gpustump.engines.cpu.runtime.compiling import kernel

@kernel("int64(int64)")
def helper(x):
    return x + {added}
"""

CALLER = """
import os, time
from gpustump.engines.cpu.runtime.compiling import kernel
from gpustump.engines.cpu.made_up_helper import helper

if not helper.stats.cache_hits:
    open(os.environ.get("BEGUN", os.devnull), "w").close()
    while not os.path.exists(os.environ.get("GO_ON", "/")):
        time.sleep(0.02)
if os.environ.get("FAILS"):
    raise ArithmeticError("made up")

@kernel("int64(int64)")
def caller(x):
    return helper(x) * 10
"""

PROGRAM = """
import sys
sys.path.insert(0, {folder!r})
from gpustump.engines.cpu.engine import KERNELS
{code}
from gpustump.engines.cpu.made_up_caller import caller
print(caller(1), caller.stats.cache_path or "", sum(caller.stats.cache_hits.values()))
"""

LOADS = 'assert KERNELS.load("made_up_caller")'


class Package:
    """A copy of the package with two small kernel files, one of which calls the other's kernel."""

    def __init__(self, folder: Path, processes: ExitStack) -> None:
        self.folder, self._processes = folder / "gpustump", processes
        own = Path(gpustump.__file__).parent
        shutil.copytree(own, self.folder, ignore=shutil.ignore_patterns("__pycache__"))
        self.edit(1)
        (self.folder / "engines" / "cpu" / "made_up_caller.py").write_text(CALLER)

    def edit(self, added: int) -> None:
        file = self.folder / "engines" / "cpu" / "made_up_helper.py"
        file.write_text(HELPER.format(added=added))

    def started(self, code: str = LOADS, **environment: object) -> subprocess.Popen[str]:
        """A process that runs some code, and then prints what `called` returns."""
        inherited = {k: v for k, v in os.environ.items() if k != kernel_folder.SETTING}
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM.format(folder=str(self.folder.parent), code=code)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=inherited | {k: str(v) for k, v in environment.items()},
        )
        self._processes.enter_context(process)
        self._processes.callback(process.kill)
        return process

    def called(self, code: str = LOADS, **environment: object) -> tuple[int, Path | None, int]:
        """The caller's answer for 1, where it is kept, and how often it was found there."""
        out, err = self.started(code, **environment).communicate(timeout=120)
        assert out, err
        answer, *path, hits = out.split()[-3:]
        return int(answer), Path(path[0]) if path else None, int(hits)


@pytest.fixture
def package(tmp_path: Path) -> Iterator[Package]:
    with ExitStack() as processes:
        yield Package(tmp_path, processes)


@pytest.mark.slow
def test_kernels_are_those_of_the_sources_and_of_this_numba(package):
    answer, path, hits = package.called()
    assert (answer, hits) == (20, 1)  # another process has compiled it
    assert path is not None
    assert path.parent == package.folder / "engines" / "cpu" / "__pycache__"
    package.edit(2)  # a helper in another file
    changed, elsewhere, _ = package.called()
    assert changed == 30
    assert elsewhere is not None
    assert elsewhere.parent == path.parent
    assert not path.exists()  # what an edit made useless is gone
    source = package.folder / "engines" / "integer_weights.py"  # a constant that kernels use
    source.write_text(source.read_text().replace("2.0**-900", "2.0**-901"))
    _, path, _ = package.called()
    assert path is not None
    assert path != elsewhere
    version = kernel_folder.importlib.metadata.version("numba")
    other = path.rename(path.with_name(path.name.replace(version, "0.1.2")))
    assert package.called()[:2] == (30, path)
    assert other.exists()  # environments may share one installation


@pytest.mark.slow
def test_kernels_are_kept_where_a_setting_says_or_else_for_as_long_as_the_process_lives(
    package, tmp_path
):
    wanted, occupied = tmp_path / "kept", tmp_path / "file"
    occupied.touch()
    (package.folder / "engines" / "cpu" / "__pycache__").touch()  # a file in place of the folder
    nowhere = occupied / "folder"
    answer, path, hits = package.called(HOME=nowhere, XDG_CACHE_HOME=nowhere, TMPDIR=tmp_path)
    assert (answer, hits) == (20, 1)
    assert path is not None
    assert not path.exists()
    assert path.is_relative_to(tmp_path)
    _, path, _ = package.called(GPUSTUMP_CACHE_DIR=wanted)
    assert path is not None
    assert path.parent == wanted
    copy = shutil.copytree(wanted, tmp_path / "copy")
    first = package.called("", GPUSTUMP_CACHE_DIR=copy)
    assert first == (20, copy / path.name, 1)  # without any other process
    (kept,) = (copy / path.name).glob("*caller*.kernel")  # compiled for the level, not this CPU
    content, level = kept.read_bytes(), kernel_folder.target()[0].encode()
    kept.write_bytes(content.replace(level, level[::-1], 1))
    assert level in content
    assert package.called("", GPUSTUMP_CACHE_DIR=copy)[::2] == (20, 0)  # it is of another target
    assert package.called("", GPUSTUMP_CACHE_DIR=nowhere) == (20, None, 0)


@pytest.mark.slow
def test_nobody_waits_for_the_process_that_compiles_and_it_outlives_those_who_need_it(
    package, tmp_path
):
    begun, go_on = tmp_path / "begun", tmp_path / "go on"
    setting = {"BEGUN": begun, "GO_ON": go_on}
    tries = 'print(KERNELS.load("made_up_caller", waits=False)); raise SystemExit'
    out, err = package.started(tries, **setting).communicate(timeout=60)
    assert out == "False\n"
    assert "compiling the CPU kernels, once on this machine" in err
    while not begun.exists():
        time.sleep(0.02)
    waiting = package.started(**setting)  # its own process waits for its turn
    time.sleep(0.5)
    assert waiting.poll() is None
    go_on.touch()
    assert waiting.communicate(timeout=120)[0].split()[::2] == ["20", "1"]
    assert package.called(tries.replace("raise SystemExit", ""))[::2] == (20, 1)


@pytest.mark.slow
def test_what_is_compiled_from_behind_is_what_others_find(package, tmp_path):
    behind = (
        "from gpustump.engines.cpu.runtime.compiling import compile_from_behind\n"
        'compile_from_behind("made_up_caller"); raise SystemExit'
    )
    setting = {kernel_folder.SETTING: tmp_path}
    assert package.started(behind, **setting).wait(60) == 0
    assert package.called("", **setting)[::2] == (20, 1)


@pytest.mark.slow
def test_the_helper_ends_with_the_process_that_it_helps(package, tmp_path):
    begun, code = tmp_path / "begun", 'building.build("made_up_caller")'
    code = f"from gpustump.engines.cpu.runtime import building; {code}"
    first = package.started(code, BEGUN=begun, GO_ON=tmp_path / "never")
    while not begun.exists():
        time.sleep(0.02)
    helpers = psutil.Process(first.pid).children()
    assert len(helpers) == (threads_of(None) > 1)
    first.kill()
    _, alive = psutil.wait_procs(helpers, timeout=10)
    assert all(one.status() == psutil.STATUS_ZOMBIE for one in alive)  # nobody may wait for it


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="a process cannot be stopped there")
@pytest.mark.parametrize("sent", ["SIGKILL", "SIGSTOP"])
def test_a_compiler_that_was_killed_or_stopped_is_waited_for_a_limited_time(
    package, tmp_path, sent
):
    code = (
        "from gpustump.engines.cpu.runtime import building\n"
        "building._PATIENCE = {patience}\n"
        'building.build("made_up_caller")'
    )
    begun = tmp_path / "begun"
    first = package.started(code.format(patience=60), BEGUN=begun, GO_ON=tmp_path / "never")
    while not begun.exists():
        time.sleep(0.02)
    first.send_signal(getattr(signal, sent))
    patience = 60 if sent == "SIGKILL" else 0.5
    assert package.called(code.format(patience=patience))[0] == 20


@pytest.mark.slow
def test_kernels_that_cannot_be_compiled_are_refused_with_the_reason(package):
    code = """
import warnings
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    for _ in range(2):
        assert not KERNELS.load("made_up_caller")
print(len(told), told[0].message)
raise SystemExit
"""
    out, err = package.started(code, FAILS=1).communicate(timeout=60)
    assert out.startswith("1 Numba is installed but does not work: ArithmeticError: made up"), err


def test_a_machine_that_starts_no_process_compiles_in_this_one(monkeypatch):
    monkeypatch.setattr(building.sys, "executable", "")
    monkeypatch.setattr(building, "are_compiled", lambda *stages: False)
    assert not building.Builders().start("sorted")
    assert KERNELS.load("sorted") == Kernels().load("sorted") is True


def test_what_a_program_asks_for_first_is_compiled_first(monkeypatch, tmp_path):
    log, (waits, _, _) = tmp_path / "log", building._PROGRAM.partition("sys.path")
    notes = f"""
import time
time.sleep(0.5 if {{stages!r}} == ("first",) else 0.0)
with open({str(log)!r}, "a") as file:
    print(*{{stages!r}}, file=file)
"""
    monkeypatch.setattr(building, "_PROGRAM", waits + notes)
    monkeypatch.setattr(building, "are_compiled", lambda *stages: False)
    builders, stages = building.Builders(), ["first", "second", "third"]
    assert all(builders.start(stage) for stage in stages)
    building.wait_for(builders, *stages)
    assert log.read_text().split() == stages


def test_a_full_folder_serves_where_nothing_can_be_written(tmp_path, monkeypatch):
    def refused(**how: object) -> None:
        raise PermissionError("read-only")

    monkeypatch.setenv(kernel_folder.SETTING, str(tmp_path))
    find = kernel_folder.kernel_folder.__wrapped__
    folder = find()
    monkeypatch.setattr(kernel_folder.tempfile, "TemporaryFile", refused)
    for stage in kernel_folder.STAGES:
        assert find() is None
        (folder / f"{stage}.done").touch()
    assert find() == folder


def test_in_a_shared_place_only_kernels_that_nobody_used_lately_are_removed(tmp_path, monkeypatch):
    monkeypatch.setenv(kernel_folder.SETTING, str(tmp_path))
    find, old = kernel_folder.kernel_folder.__wrapped__, time.time() - 40 * 24 * 60 * 60
    own, others = find(), [tmp_path / f"kernels-{number}-numba-0.1.2-0" for number in "12"]
    for other in others:
        other.mkdir()
    for folder in (own, others[0]):
        os.utime(folder, (old, old))
    assert find() == own
    assert own.stat().st_mtime > old + 60  # it is used again
    assert [other.exists() for other in others] == [False, True]


def test_kernels_that_a_wheel_brings_come_first_if_all_are_there(tmp_path, monkeypatch):
    monkeypatch.setenv(kernel_folder.SETTING, str(tmp_path / "own"))
    monkeypatch.setattr(kernel_folder, "SHIPPED", tmp_path / "shipped")
    find = kernel_folder.kernel_folder.__wrapped__
    shipped = tmp_path / "shipped" / find().name
    shipped.mkdir(parents=True)
    for stage in kernel_folder.STAGES:
        assert find().parent == tmp_path / "own"
        (shipped / f"{stage}.done").touch()
    assert find() == shipped


LEVEL_OF = [
    ({"baseline": ["X86_V2"], "found": ["X86_V3"]}, "x86-64-v3"),
    ({"baseline": ["X86_V2"], "found": ["X86_V3", "X86_V4", "AVX512_ICL"]}, "x86-64-v4"),
    ({"baseline": ["X86_V2", "X86_V3"]}, "x86-64-v3"),  # a NumPy that was made for this machine
    ({"baseline": ["SSE2"], "found": ["AVX", "FMA3", "AVX2"]}, "x86-64-v3"),  # before NumPy 2.4
    ({"baseline": ["SSE2"], "found": ["FMA3", "AVX2", "AVX512_SKX"]}, "x86-64-v4"),
    ({"baseline": ["SSE2"], "found": ["AVX", "AVX2"]}, "x86-64"),
    ({"baseline": ["X86_V2"]}, "x86-64"),
    ({}, "x86-64"),
]


@pytest.mark.parametrize(("found", "level"), LEVEL_OF)
def test_kernels_are_compiled_for_the_level_of_the_cpu(found, level, monkeypatch):
    for name in kernel_folder.TARGET_SETTINGS:
        monkeypatch.delenv(name, raising=False)
    config = {"SIMD Extensions": found} if found else {}  # NumPy leaves out what is empty
    monkeypatch.setattr(kernel_folder.platform, "machine", lambda: "AMD64")
    monkeypatch.setattr(kernel_folder.np, "show_config", lambda mode: config)
    assert kernel_folder.target.__wrapped__() == (level, "")
    monkeypatch.setattr(kernel_folder.platform, "machine", lambda: "arm64")
    assert kernel_folder.target.__wrapped__() == ("generic", "")


@pytest.mark.skipif(kernel_folder.target()[0] not in kernel_folder.LEVELS, reason="not x86-64")
def test_every_level_is_a_cpu_that_the_compiler_knows():
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    of_x86 = llvm.Target.from_default_triple()
    text = "define <8 x i64> @f(<8 x i64> %x) {\n  %y = add <8 x i64> %x, %x\n  ret <8 x i64> %y\n}"
    code = {
        level: of_x86.create_target_machine(cpu=level).emit_assembly(llvm.parse_assembly(text))
        for level in kernel_folder.LEVELS
    }
    widths = [level for level in code if "ymm" in code[level] or "zmm" in code[level]]
    assert widths == ["x86-64-v4", "x86-64-v3"]
    assert "zmm" in code["x86-64-v4"]
