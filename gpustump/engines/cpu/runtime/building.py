"""Kernels that are not on disk are compiled by a process of its own, so that nobody waits for them.

The process compiles what it is asked for, and goes on if the one that started it ends. If one
program starts several, each waits for the end of the one before: what is needed first comes first.
A lock, a file beside the kernels, lets one such process of all programs work at a time; the others
find the kernels on disk when their turn comes. The system releases the lock when a process ends,
however it ends.

It has a helper, which compiles the same kernels from the other end while a core is idle. So what
nothing else competes with takes half the time.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from gpustump.engines.cpu.runtime.kernel_folder import (
    SETTING,
    STAGES,
    TARGET_SETTINGS,
    are_compiled,
    kernel_folder,
    note_compiled,
    target,
)
from gpustump.engines.threads import threads_of

_PATIENCE = 180.0
"""Seconds that a builder waits for another one; that may have been stopped."""

_PROGRAM = """
import os, sys, threading
before = threading.Thread(target=os.read, args=(0, 1), daemon=True)  # until the one before ends
before.start()
before.join({patience})
sys.path[:] = {path!r}
from gpustump.engines.cpu.runtime.building import build_behind
build_behind(*{stages!r})
"""

_HELPER = """
import contextlib, os, sys, threading
if hasattr(os, "nice"):
    os.nice(15)
with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
    file.write("1000")  # if memory is short, the system ends this process first
ends = lambda: os._exit(len(os.read(0, 1)))  # when the process that it helps ends
threading.Thread(target=ends, daemon=True).start()
sys.path[:] = {path!r}
from gpustump.engines.cpu.runtime.compiling import compile_from_behind
compile_from_behind(*{stages!r})
"""


class Builders:
    """The processes that compile for this one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._builders: dict[str, subprocess.Popen[bytes]] = {}
        self._before = subprocess.DEVNULL  # a pipe that is closed when the last builder ends

    def start(self, *stages: str) -> bool:
        """Have stages compiled that are not yet; returns False if no process can be started."""
        with self._lock:
            missing = [s for s in stages if s not in self._builders and not are_compiled(s)]
            if not missing:
                return True
            folder = kernel_folder()
            if folder is None:
                return False
            for stage in missing:  # what an earlier process noted
                _problem_file(folder, stage).unlink(missing_ok=True)
            program = _PROGRAM.format(path=sys.path, stages=tuple(missing), patience=_PATIENCE)
            try:
                ended, held = os.pipe()
            except OSError:  # too many files are open
                return False
            try:  # Ctrl-C at the terminal does not reach another session
                builder = _started(program, folder, self._before, held, start_new_session=True)
            finally:
                os.close(held)
            if builder is None:
                os.close(ended)
                return False
            if self._before != subprocess.DEVNULL:
                os.close(self._before)
            self._before = ended
            self._builders |= dict.fromkeys(missing, builder)
            return True

    def are_at_work(self, *stages: str) -> bool:
        """Whether any of some stages is still being compiled."""
        builders = [self._builders[stage] for stage in stages if stage in self._builders]
        return any(builder.poll() is None for builder in builders)

    def are_asked_for(self, *stages: str) -> bool:
        """Whether a process was started for each of some stages, and none has failed."""
        return {*stages} <= {*self._builders} and self.problem(*stages) is None

    def problem(self, *stages: str) -> str | None:
        """Why some stages could not be compiled; None as long as no reason is known."""
        folder = kernel_folder()
        for stage in stages:
            if folder is None or self.are_at_work(stage) or are_compiled(stage):
                continue
            if stage in self._builders:
                with contextlib.suppress(OSError):
                    return _problem_file(folder, stage).read_text()
                code = self._builders[stage].returncode
                return f"the process that compiles the kernels ended with code {code}"
        return None


def build(*stages: str, told: Callable[[], None] | None = None) -> None:
    """Compile stages that are not on disk, and note that they are.

    Parameters
    ----------
    stages : str
        In the order in which they are needed; by default all.
    told : callable, optional
        Called after each kernel, of which all stages together have `n_kernels`.
    """
    folder = kernel_folder()
    os.environ |= _compiles_for()  # this process is there to compile
    with _turn(folder):
        missing = [own for own in stages or STAGES if not are_compiled(own)]
        with _helper(folder, missing):
            for stage in missing:
                from gpustump.engines.cpu.runtime import compiling  # not before its turn

                compiling.listeners[:] = [] if told is None else [told]
                try:
                    compiling.load(stage)
                except Exception as error:
                    if folder is not None:
                        _problem_file(folder, stage).write_text(f"{type(error).__name__}: {error}")
                    raise
                for own in (stage, *compiling.loaded()):  # with the stages that it imports
                    note_compiled(own)


def build_behind(*stages: str) -> None:
    """`build` in a process of its own, while somebody waits for an answer in another."""
    if hasattr(os, "nice"):
        os.nice(5)
    folder = kernel_folder()

    def go_on() -> None:
        if folder is None or not folder.exists():  # it was the other process's own
            sys.exit()

    build(*stages, told=go_on)


def wait_for(builders: Builders, *stages: str) -> None:
    """Wait until stages are compiled, or cannot be."""
    while builders.are_at_work(*stages):
        time.sleep(0.02)


def _started(
    program: str, folder: Path, stdin: int, stdout: int, *, start_new_session: bool = False
) -> subprocess.Popen[bytes] | None:
    """A process that compiles into a folder; None if the system starts none."""
    try:
        return subprocess.Popen(
            [sys.executable, "-c", program],
            env={**os.environ, **_compiles_for(), SETTING: str(folder.parent)},
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.DEVNULL,
            start_new_session=start_new_session,
        )
    except (OSError, ValueError, TypeError):  # no program, no memory, no more processes
        return None


def _compiles_for() -> dict[str, str]:
    """What tells Numba, before it is imported, for which CPU to compile."""
    return dict(zip(TARGET_SETTINGS, target(), strict=True))


def _problem_file(folder: Path, stage: str) -> Path:
    return folder / f"{stage}.problem"


@contextlib.contextmanager
def _helper(folder: Path | None, stages: Sequence[str]) -> Iterator[None]:
    """A second process that compiles the same stages from behind, if there is a core for it."""
    helper = None
    if folder is not None and stages and threads_of(None) > 1:
        program = _HELPER.format(path=sys.path, stages=tuple(stages))
        helper = _started(program, folder, subprocess.PIPE, subprocess.DEVNULL)
    try:
        yield
    finally:
        if helper is not None:
            helper.kill()
            helper.communicate()


@contextlib.contextmanager
def _turn(folder: Path | None) -> Iterator[None]:
    """Wait for the folder's lock, but not for ever; a folder without locks needs none."""
    with contextlib.ExitStack() as held:
        # Numba may be here without filelock; a timeout is an OSError, too.
        with contextlib.suppress(ImportError, OSError, NotImplementedError):
            from filelock import FileLock

            if folder is not None:
                lock = FileLock(folder / "compiling.lock", thread_local=False)
                held.enter_context(lock.acquire(timeout=_PATIENCE))
        yield
