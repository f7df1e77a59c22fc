"""A process of its own that carries out orders, and a contender that is timed in one.

Libraries that share a process disturb each other: threads of one spin while another is timed, one
changes the number of threads of another, and one crash ends all. So a worker holds one contender
only, on a fixed number of cores. It loads its data once, and carries out one order at a time while
the others wait. If an order raises, hangs or crashes, the contender withdraws, with the reason in
one line, and the benchmark goes on.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from unittest.mock import patch

import numpy as np
import psutil

from bench.contenders import Contender, device_used, on_host, release, synchronise
from bench.data import DataSet, Stored
from bench.records import Result

_PARTING = 5.0  # seconds that a process has to end when it is asked to
_SETTLE = 0.02  # seconds between an order and its start, for most threads that spin to fall asleep
_THREAD_VARIABLES = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"),
    "VECLIB_MAXIMUM_THREADS",
)
_SHARED_GPU = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}  # else JAX takes most of its memory
_BYTES_OF_MAXRSS = 1 if sys.platform == "darwin" else 1024
NOT_YET = "its first turn was not over"
"""Why a contender has no results if the benchmark was ended early."""

T = TypeVar("T")


class WithdrawnError(Exception):
    """A contender that cannot take part, or not any further; the message says why."""


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """The seconds that some work took, and its result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


class Process:
    """The near end of a process that carries out orders.

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
        self._pipe: Any = None

    def start(self, threads: int, stage: Callable[..., Any], *arguments: Any) -> None:
        """Start the process, held to so many cores. The stage is made there: its methods are the
        orders."""
        context = multiprocessing.get_context("spawn")
        self._pipe, far_end = context.Pipe()
        self._process = context.Process(
            target=serve, args=(far_end, self._log, threads, stage, arguments), daemon=True
        )
        variables = {**dict.fromkeys(_THREAD_VARIABLES, str(threads)), **_SHARED_GPU}
        with patch.dict(os.environ, variables):  # read when the process starts
            self._process.start()
        far_end.close()

    def ask(self, order: str, *arguments: Any) -> Any:
        """What a method of the stage returns.

        Raises
        ------
        WithdrawnError
            If it raised, or if the process ended or took too long; then it is closed at once, to
            free its cores and memory.
        """
        with contextlib.suppress(OSError):  # if its process has ended, receiving tells how
            self._pipe.send((order, arguments))
        try:
            if self._pipe.poll(self.limit):
                went_well, answer = self._pipe.recv()
            else:
                went_well, answer = False, f"no answer within {self.limit:g} s"
        except (EOFError, OSError):
            went_well, answer = False, self._how_it_ended()
        if not went_well:
            self.close()
            raise WithdrawnError(answer)
        return answer

    def close(self) -> None:
        """End the process: ask first, then insist."""
        if self._process is not None:
            for end in (self._process.terminate, self._process.kill):
                end()
                self._process.join(_PARTING)
            self._pipe.close()
            self._process = self._pipe = None

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
    """The far end: carry out orders until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the near end handles interrupts
    with log.open("w") as file:  # what the libraries print is read if the process dies
        for descriptor in (1, 2):
            os.dup2(file.fileno(), descriptor)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    stage = make_stage(*arguments)
    with contextlib.suppress(EOFError):
        while True:
            order, given = pipe.recv()
            try:
                answer = True, getattr(stage, order)(*given)
            except Exception as error:
                text = str(error).strip() or "no message"
                kind = "" if isinstance(error, WithdrawnError) else f"{type(error).__name__}: "
                answer = False, kind + text.splitlines()[0][:300]
            pipe.send(answer)


class Entry(NamedTuple):
    """One contender's part in a benchmark of speed."""

    contender: Contender
    data: Callable[[], DataSet]
    """Makes the data set; entries that share this share the data."""
    rounds: tuple[int, int]
    """Of the short and the long fit."""
    threads: int
    """Cores that its process may use."""
    whole: bool = False
    """Whether predicting is measured, too."""


class Worker:
    """The near end of a contender that takes turns."""

    def __init__(self, case: str, entry: Entry, data: Stored, limit: float) -> None:
        self.name = entry.contender.name
        self.process = Process(data.folder / f"{id(self)}.log", limit)
        self.facts: dict[str, Any] = {"exact": entry.contender.exact}
        self.case, self.entry, self.data = case, entry, data

    def start(self) -> float:
        """Start the process; returns the seconds it took to load the libraries."""
        self.process.start(
            self.entry.threads, Stage, self.entry.contender, self.data, self.entry.threads
        )
        return float(self.process.ask("load"))

    def warm_up(self) -> None:
        """Do everything once that only a first fit needs, such as compiling.

        Raises
        ------
        WithdrawnError
            As the methods below.
        """
        if reason := self.entry.contender.absent():
            raise WithdrawnError(reason)
        self.facts["load"] = self.start()
        self.facts |= self.process.ask("first_fit", self.entry.rounds[0])
        if self.entry.whole:
            self.process.ask("predict")

    def close(self) -> None:
        """End its process."""
        self.process.close()

    def turn(self) -> dict[str, Any]:
        """One turn: a short fit, a long one, and predicting if that is wanted."""
        short, long = (self.process.ask("fit", rounds) for rounds in self.entry.rounds)
        took = {"short": short, "long": long}
        return {**took, "predict": self.process.ask("predict")} if self.entry.whole else took

    def judge(self) -> None:
        """Look at the model of the last long fit; called once, after the first turn."""
        self.facts |= self.process.ask("judge")

    def result(self, turns: Sequence[dict[str, Any]], reason: str | None) -> Result:
        """The record of what was measured so far, and the reason if it withdrew."""
        contender, data = self.entry.contender, self.data
        return Result(
            case=self.case,
            contender=contender.name,
            data=data.name,
            samples=data.shape[0],
            features=data.shape[1],
            data_sha256=data.sha256,
            threads=self.entry.threads,
            rounds=self.entry.rounds,
            estimator=contender.estimator,
            parameters=dict(contender.parameters),
            reason=reason or (None if turns else NOT_YET),
            facts={name: value for name, value in self.facts.items() if value is not None},
            values=side_by_side(turns),
        )


def side_by_side(turns: Sequence[dict[str, Any]]) -> dict[str, tuple[Any, ...]]:
    """For each quantity its values in all turns."""
    return {name: tuple(turn[name] for turn in turns) for name in (turns[0] if turns else ())}


class Stage:
    """The orders, and what they find in the worker's process: the data and the last model."""

    def __init__(self, contender: Contender, data: Stored, threads: int) -> None:
        self.contender, self.data, self.threads = contender, data, threads
        self.model: Any = None

    def load(self) -> float:
        """Seconds to import what the contender needs; then its data are placed."""
        seconds, _ = timed(self.contender.load)
        # A GPU reads the table once a fit; new memory for gigabytes takes many seconds.
        host = self.data.load(shared="cuda" in self.contender.name)
        self.y_test = host.y_test
        self.X, self.y, self.X_test = map(self.contender.placed, host[:3])
        if self.contender.arrays != "numpy":  # otherwise no device has been used yet
            synchronise()
        return seconds

    def first_fit(self, rounds: int) -> dict[str, Any]:
        """Seconds of the process's first fit, the bytes by which it raised the process's peak
        memory, and the device that the model was trained on."""
        before = psutil.Process().memory_info().rss
        seconds = self.fit(rounds)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _BYTES_OF_MAXRSS
        memory = {"host_memory": max(peak - before, 0)}
        return {"first_fit": seconds, "device": device_used(self.model), **memory}

    def fit(self, rounds: int) -> float:
        """Seconds of a whole fit."""
        self.model = None
        time.sleep(_SETTLE)
        seconds, self.model = timed(lambda: self.fitted(rounds))
        release()
        if reason := self.contender.disqualified(self.model, rounds):
            raise WithdrawnError(reason)
        return seconds

    def fitted(self, rounds: int) -> Any:
        """A new model."""
        model = self.contender.make(rounds, self.threads).fit(self.X, self.y)
        synchronise()
        return model

    def predict(self) -> float:
        """Seconds to predict the classes of the training table."""
        time.sleep(_SETTLE)
        seconds, _ = timed(self._predicted)
        release()
        return seconds

    def _predicted(self) -> None:
        self.model.predict(self.X)
        synchronise()

    def judge(self) -> dict[str, Any]:
        """The quality of the last model on held-out data, and its digest if it has one."""
        from sklearn.metrics import accuracy_score, r2_score, roc_auc_score

        predicted = on_host(self.model.predict(self.X_test)).reshape(-1)  # CatBoost: a column
        ensemble = getattr(self.model, "model_", None)
        digest = {"digest": ensemble.digest() if ensemble is not None else None}
        if self.y_test.dtype == np.float64:
            return {"r2": float(r2_score(self.y_test, predicted)), **digest}
        if hasattr(self.model, "decision_function") and self.y_test.max() < 2:
            scores = on_host(self.model.decision_function(self.X_test))
        else:
            scores = on_host(self.model.predict_proba(self.X_test))
            scores = scores if scores.shape[1] > 2 else scores[:, 1]
        auc = float(roc_auc_score(self.y_test, scores, multi_class="ovr"))
        return {"accuracy": float(accuracy_score(self.y_test, predicted)), "auc": auc, **digest}
