"""Checkpoints: when the rounds so far are written to a file, and how a fit goes on from it.

A fit with a checkpoint notes each round in a log (`rounds.logs`). From time to time, at its end,
and when it is interrupted, the logs are written to the file (`file`), whole or not at all.

Schedulers and clouds send SIGTERM before they take a machine away. By default Python ends at once.
Within `ending_in_order` the signal first raises an exception, as Ctrl-C does: files are written and
threads end. Then the process ends by the signal, as its parent expects.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from types import FrameType
from typing import Any, Self

from gpustump.boosting.checkpoints.file import BagLogs, Head, Outline, write
from gpustump.boosting.rounds.logs import RunLog
from gpustump.data.parameters import check_count, check_real
from gpustump.data.readable import caller_level


@dataclass(frozen=True)
class Checkpoint:
    """A file that keeps the rounds of a fit while they are made, and how often it is written.

    A fit with this checkpoint goes on from the file if it exists, and otherwise starts from the
    beginning. A file is for one fit: its data and parameters must stay the same.

    Parameters
    ----------
    path : str or path-like
        The name of a JSON file.
    every_rounds : int, optional
        Write the file after so many rounds, counted over all runs and bags.
    every_seconds : float, optional
        Write the file at the end of the first round after so many seconds. If both are given, what
        comes first counts. If both are None, the file is written only when the fit begins, ends or
        is interrupted.

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described.

    Examples
    --------
    >>> import tempfile
    >>> from gpustump import AdaBoostClassifier, Checkpoint
    >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     often = Checkpoint(f"{folder}/run.json", every_rounds=500)
    ...     first = AdaBoostClassifier(n_estimators=3, checkpoint=often).fit(X, y)
    ...     again = AdaBoostClassifier(n_estimators=3, checkpoint=often).fit(X, y)
    >>> first.model_.digest() == again.model_.digest()
    True
    """

    path: str | PathLike[str]
    every_rounds: int | None = None
    every_seconds: float | None = 60.0

    def __post_init__(self) -> None:
        if not isinstance(self.path, str | PathLike) or not isinstance(os.fspath(self.path), str):
            raise TypeError(f"path must be the name of a file; got {self.path!r}.")
        if not os.fspath(self.path):
            raise ValueError("path must be the name of a file; got an empty one.")
        if self.every_rounds is not None:
            check_count(self.every_rounds, "every_rounds")
        if self.every_seconds is not None:
            check_real(self.every_seconds, "every_seconds", least=0.0)

    @property
    def name(self) -> str:
        """The file's name."""
        return os.fspath(self.path)


def check_checkpoint(value: Any) -> Checkpoint | None:
    """A checkpoint from the parameter of an estimator.

    Raises
    ------
    TypeError, ValueError
        If it is neither None nor the name of a file nor a `Checkpoint`.
    """
    if value is None or isinstance(value, Checkpoint):
        return value
    if not isinstance(value, str | PathLike):
        raise TypeError(
            f"checkpoint must be None, the name of a file or a gpustump.Checkpoint; got {value!r}."
        )
    if not os.fspath(value):
        raise ValueError("checkpoint must be the name of a file; got an empty one.")
    return Checkpoint(value)


class CheckpointWriter:
    """Writes the logs of a fit to its checkpoint, as a context manager around the training.

    It writes at the beginning of a new fit, so that a file that cannot be written is an error
    before the first round; then from time to time; and at the end, also after an error. If a later
    write fails, training goes on: one warning says so, and the earlier file stays.

    Parameters
    ----------
    checkpoint : Checkpoint
    head : Head
    outline : Outline
    bags : sequence of BagLogs
        With the rounds that the file holds.
    is_new : bool
        Whether there is no file yet.

    Raises
    ------
    OSError
        At the start of the context, if the file is new and cannot be written.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        head: Head,
        outline: Outline,
        bags: Sequence[BagLogs],
        *,
        is_new: bool,
    ) -> None:
        self._checkpoint, self._head, self._fields = checkpoint, head, outline.fields
        self._path = Path(checkpoint.name).absolute()  # a callback may change the working folder
        self._logs: list[RunLog] = [run for bag in bags for run in bag.runs]
        self._texts = [bag.texts(outline) for bag in bags]
        self._is_new = is_new
        self._lock = threading.Lock()  # bags that are trained side by side share the file
        self._n_new = 0
        self._written_at = time.monotonic()
        self._written = self._state()
        self._has_warned = False

    def __enter__(self) -> Self:
        if self._is_new:
            self._write()
        for log in self._logs:
            log.tell = self._round_ends
        return self

    def __exit__(self, *_: object) -> None:
        if self._state() != self._written:
            self._write_or_warn()

    def _round_ends(self) -> None:
        n_rounds, seconds = self._checkpoint.every_rounds, self._checkpoint.every_seconds
        with self._lock:
            self._n_new += 1
            is_due = n_rounds is not None and self._n_new >= n_rounds
            if is_due or (seconds is not None and time.monotonic() - self._written_at >= seconds):
                self._write_or_warn()

    def _write_or_warn(self) -> None:
        try:
            self._write()
        except OSError as error:
            if not self._has_warned:
                self._has_warned = True
                warnings.warn(
                    f"the checkpoint {self._checkpoint.name} cannot be written: "
                    f"{error.strerror or error}. Training goes on, and tries again later; what the "
                    "file held before is still there.",
                    stacklevel=caller_level(),
                )
        self._n_new, self._written_at = 0, time.monotonic()

    def _write(self) -> None:
        state = self._state()
        is_finished = all(reason for _, reason in state)
        write(self._path, self._head, self._fields, self._texts, is_finished=is_finished)
        self._written = state

    def _state(self) -> list[tuple[int, str]]:
        """What changes if there is anything new to write."""
        return [(len(log.rounds), log.stop_reason) for log in self._logs]


class Terminated(BaseException):
    """The process was sent SIGTERM. It is no `Exception`, so that `except Exception` lets it
    pass."""


@contextlib.contextmanager
def ending_in_order(last_words: Callable[[], None] | None = None) -> Iterator[None]:
    """A context in which SIGTERM raises `Terminated`; at its end the process then ends by SIGTERM.

    Only in the main thread, and only where SIGTERM has its default handler, which is put back. A
    second signal changes nothing, as the process is about to end.

    Parameters
    ----------
    last_words : callable, optional
        Called before the process ends.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    process, was_called, is_over = os.getpid(), False, False

    def terminate(number: int, frame: FrameType | None) -> None:
        nonlocal was_called
        if is_over or os.getpid() != process:  # a child that was forked meanwhile
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
        elif not was_called:
            was_called = True
            raise Terminated

    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        is_over = True
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if was_called:
            if last_words is not None:
                last_words()
            os.kill(os.getpid(), signal.SIGTERM)
