"""A process that carries out orders, one at a time.

The near end, in the benchmark's process, starts it with a stage: a class whose methods are the
orders. If an order raises, hangs or crashes, the contender withdraws, with the reason in one line,
and the benchmark goes on.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from unittest.mock import patch

_PARTING = 5.0  # seconds that a process has to end when it is asked to
_THREAD_VARIABLES = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"),
    "VECLIB_MAXIMUM_THREADS",
)
_SHARED_GPU = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}  # else JAX takes most of its memory


class WithdrawnError(Exception):
    """A contender that cannot take part, or not any further; the message says why."""


class Servant:
    """The near end of a process.

    Parameters
    ----------
    log : Path
        The file for what it prints.
    limit : float
        Seconds; an order that takes longer ends the process.
    """

    def __init__(self, log: Path, limit: float) -> None:
        self.limit = limit
        self._log = log
        self._process: Any = None
        self._pipe: Connection | None = None

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not been closed."""
        return self._process is not None

    def start(self, threads: int, stage: Callable[..., Any], *arguments: Any) -> None:
        """Start the process, held to so many cores; the stage is made there."""
        context = multiprocessing.get_context("spawn")
        self._pipe, far_end = context.Pipe()
        process = context.Process(
            target=serve, args=(far_end, self._log, threads, stage, arguments), daemon=True
        )
        variables = {**dict.fromkeys(_THREAD_VARIABLES, str(threads)), **_SHARED_GPU}
        with patch.dict(os.environ, variables), _uninterrupted():  # read when the process starts
            process.start()
        self._process = process
        far_end.close()

    def ask(self, order: str, *arguments: Any) -> Any:
        """What a method of the stage returns.

        Raises
        ------
        WithdrawnError
            If it raised, or if the process ended or took too long; then it is closed.
        """
        assert self._pipe is not None
        with contextlib.suppress(OSError):  # if its process has ended, receiving tells how
            self._pipe.send((order, arguments))
        return self._receive()

    def close(self) -> None:
        """End the process: ask first, then insist."""
        if self._process is not None:
            for end in (self._process.terminate, self._process.kill):
                end()
                self._process.join(_PARTING)
            self._process = None
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None

    def _receive(self) -> Any:
        """The answer. A process that gives none is ended at once, to free its cores and memory."""
        assert self._pipe is not None
        try:
            if not self._pipe.poll(self.limit):
                went_well, answer = False, f"no answer within {self.limit:g} s"
            else:
                went_well, answer = self._pipe.recv()
        except (EOFError, OSError):
            went_well, answer = False, self._how_it_ended()
        if not went_well:
            self.close()
            raise WithdrawnError(answer)
        return answer

    def _how_it_ended(self) -> str:
        self._process.join(_PARTING)
        code = self._process.exitcode
        try:
            how = f"its process was ended by {signal.Signals(-code).name}"
        except (TypeError, ValueError):
            how = f"its process ended with code {code}"
        printed = self._log.read_text(errors="replace").split("\n") if self._log.exists() else []
        last_words = [line.strip()[:200] for line in printed if line.strip()][-1:]
        return ": ".join([how, *last_words])


def serve(
    pipe: Connection,
    log: Path,
    threads: int,
    make_stage: Callable[..., Any],
    arguments: tuple[Any, ...],
) -> None:
    """The far end: carry out orders until the pipe closes. Runs in the servant's process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the near end handles interrupts
    with log.open("w") as file:  # what the libraries print is read if the process dies
        for descriptor in (1, 2):
            os.dup2(file.fileno(), descriptor)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    stage = make_stage(*arguments)
    while True:
        try:
            order, given = pipe.recv()
        except EOFError:
            return
        try:
            answer = True, getattr(stage, order)(*given)
        except Exception as error:
            text = str(error).strip() or "no message"
            kind = "" if isinstance(error, WithdrawnError) else f"{type(error).__name__}: "
            answer = False, kind + text.splitlines()[0][:300]
        pipe.send(answer)


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Block SIGINT while a process starts. It inherits the block, until it ignores the signal."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # starting it would lift the block
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
