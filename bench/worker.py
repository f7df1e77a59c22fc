"""A contender in a process of its own, where it is timed.

Libraries that share a process share more than the memory: threads of one spin while another is
timed, thread counts leak, one crash ends all. A worker has its contender alone, is held to so many
cores, loads its data once, and carries out one order at a time while the others wait. Memory is
measured in an earlier process, so that the first fit that is timed is a first fit.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from unittest.mock import patch

import numpy as np

from bench.contenders import Contender, device_used, on_host, release, synchronise
from bench.data import DataSet, Stored
from bench.memory import peak_memory
from bench.records import Run, Turn

_SETTLE = 0.02  # seconds between an order and its start, for most threads that spin to fall asleep
_PARTING = 5.0  # seconds that a process has to end when it is asked to
_THREAD_VARIABLES = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"),
    "VECLIB_MAXIMUM_THREADS",
)
_SHARED_GPU = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}  # else JAX takes most of its memory

NOT_YET = "its first turn was not over"
"""Why a contender has no results, if the benchmark was ended before."""

Result = TypeVar("Result")


class WithdrawnError(Exception):
    """A contender that cannot take part, or not any further; the message says why."""


class Entry(NamedTuple):
    """One contender's part in a benchmark."""

    contender: Contender
    data: Callable[[], DataSet]
    """Makes the data set; entries that share this share the data."""
    rounds: tuple[int, int]
    """Of the short and the long fit."""
    threads: int
    """Cores that its process may use."""
    whole: bool = False
    """Whether predicting and memory are measured, too."""


class Worker:
    """The near end: a `Player` that hands every order to its process.

    An order that takes longer than `limit` seconds ends the process.
    """

    def __init__(self, entry: Entry, data: Stored, limit: float = 600.0) -> None:
        self.name = entry.contender.name
        self.limit = limit
        self._entry = entry
        self._data = data
        self._found: dict[str, Any] = {}  # fields of the record
        self._tried = False
        self._process: Any = None
        self._pipe: Connection | None = None
        self._log = data.folder / f"{id(self)}.log"

    def warm_up(self) -> None:
        """Measure the memory, then start the process that is timed, and do everything once."""
        if reason := self._entry.contender.absent():
            raise WithdrawnError(reason)
        short = self._entry.rounds[0]
        if self._entry.whole:
            self._launch()
            self._found |= self._ask("weigh", short)
            self.close()
        self._found["load"] = self._launch()
        self._found |= self._ask("first_fit", short)
        if self._entry.whole:
            self._ask("predict")

    def turn(self) -> Turn:
        """A short fit, a long one, and predicting if that is wanted."""
        short, long = (self._ask("fit", rounds) for rounds in self._entry.rounds)
        return Turn(short, long, self._ask("predict") if self._entry.whole else None)

    def judge(self) -> None:
        """Look at the model of the last long fit."""
        self._found |= self._ask("judge")

    def run(self, turns: Sequence[Turn], reason: str | None) -> Run:
        """The record of what was measured so far."""
        if reason is None and not (turns and "accuracy" in self._found):
            reason = NOT_YET
        contender, data = self._entry.contender, self._data
        return Run(
            contender=contender.name,
            estimator=contender.estimator,
            parameters=dict(contender.parameters),
            exact=contender.exact,
            data=data.name,
            data_sha256=data.sha256,
            samples=data.shape[0],
            features=data.shape[1],
            distinct=data.distinct,
            threads=self._entry.threads,
            rounds=self._entry.rounds,
            reason=reason,
            turns=tuple(turns),
            **self._found,
        )

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

    def _launch(self) -> float:
        """Start a process; returns the seconds it took to load the libraries."""
        context = multiprocessing.get_context("spawn")
        self._pipe, far_end = context.Pipe()
        contender, _, _, threads, whole = self._entry
        # A GPU reads the table once a fit; new memory for gigabytes takes many seconds.
        shared = bool(contender.cuda) and not whole
        process = context.Process(
            target=serve,
            args=(far_end, contender, self._data, self._log, threads, self._tried, shared),
            daemon=True,
        )
        variables = {**dict.fromkeys(_THREAD_VARIABLES, str(threads)), **_SHARED_GPU}
        with patch.dict(os.environ, variables), _uninterrupted():  # read when the process starts
            process.start()
        self._process = process
        far_end.close()
        seconds = float(self._receive())
        self._tried = True
        return seconds

    def _ask(self, order: str, *arguments: int) -> Any:
        assert self._pipe is not None
        with contextlib.suppress(OSError):  # if its process has ended, receiving tells how
            self._pipe.send((order, arguments))
        return self._receive()

    def _receive(self) -> Any:
        """The answer; a process that has none is ended at once, lest it keep cores and memory."""
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
    contender: Contender,
    data: Stored,
    log: Path,
    threads: int,
    tried: bool,
    shared: bool,
) -> None:
    """The far end: carry out orders until the pipe closes. Runs in the worker's process.

    `tried` tells that an earlier process has found no obstacle for this contender. Trying again
    would start the GPU libraries before the first fit. `shared`: see `Stored.load`.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the near end handles interrupts
    with log.open("w") as file:  # what the libraries print is asked for if the process dies
        for descriptor in (1, 2):
            os.dup2(file.fileno(), descriptor)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    stage = _Stage(contender, data, threads, shared)
    order, arguments = "load", (tried,)
    while True:
        try:
            answer = True, getattr(stage, order)(*arguments)
        except Exception as error:
            text = str(error).strip() or "no message"
            kind = "" if isinstance(error, WithdrawnError) else f"{type(error).__name__}: "
            answer = False, kind + text.splitlines()[0][:300]
        pipe.send(answer)
        try:
            order, arguments = pipe.recv()
        except EOFError:
            return


def timed(work: Callable[[], Result]) -> tuple[float, Result]:
    """The seconds that some work took, and its result."""
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


class _Stage:
    """The orders, and what they find in the worker's process: the data and the last model."""

    def __init__(self, contender: Contender, data: Stored, threads: int, shared: bool) -> None:
        self._contender = contender
        self._data = data
        self._shared = shared
        self._threads = threads
        self._model: Any = None

    def load(self, tried: bool) -> float:
        """Seconds to import what the contender needs; then its data are placed."""
        seconds, _ = timed(self._contender.load)
        if not tried and (reason := self._contender.obstacle()):
            raise WithdrawnError(reason)
        host = self._data.load(shared=self._shared)
        self._y_test = host.y_test
        self._X, self._y, self._X_test = map(self._contender.placed, host[:3])
        if self._contender.arrays != "numpy":  # else no device has been used yet
            synchronise()
        return seconds

    def weigh(self, rounds: int) -> dict[str, int | None]:
        """The memory of a fit of all, beyond what a fit of a few rows has loaded already."""
        host = self._data.load()
        few = np.sort(np.concatenate([np.flatnonzero(host.y == k)[:32] for k in np.unique(host.y)]))
        some = [self._contender.placed(part[few]) for part in (host.X, host.y)]
        del host
        self._fitted(rounds, *some)
        for module in self._contender.large:
            with contextlib.suppress(ImportError):
                importlib.import_module(module)
        release()
        with peak_memory() as peak:
            self._fitted(rounds, self._X, self._y)
        return {f"{place}_memory": n_bytes for place, n_bytes in asdict(peak).items()}

    def first_fit(self, rounds: int) -> dict[str, Any]:
        """Seconds of the first fit of all, and where it says that it trained."""
        return {"first_fit": self.fit(rounds), "device": device_used(self._model)}

    def fit(self, rounds: int) -> float:
        """Seconds of a whole fit."""
        self._model = None
        time.sleep(_SETTLE)
        seconds, self._model = timed(lambda: self._fitted(rounds, self._X, self._y))
        release()
        if reason := self._contender.disqualified(self._model, rounds):
            raise WithdrawnError(reason)
        return seconds

    def predict(self) -> float:
        """Seconds to predict the classes of the training table."""

        def predict() -> Any:
            predicted = self._model.predict(self._X)
            synchronise()
            return predicted

        time.sleep(_SETTLE)
        seconds, _ = timed(predict)
        release()
        return seconds

    def judge(self) -> dict[str, Any]:
        """The last model on held-out data, and its digest if it has one."""
        from sklearn.metrics import accuracy_score, roc_auc_score

        predicted = on_host(self._model.predict(self._X_test)).reshape(-1)  # CatBoost: a column
        ensemble = getattr(self._model, "model_", None)
        return {
            "accuracy": float(accuracy_score(self._y_test, predicted)),
            "auc": float(roc_auc_score(self._y_test, self._scores(), multi_class="ovr")),
            "digest": ensemble.digest() if ensemble is not None else None,
        }

    def _scores(self) -> np.ndarray:
        """Of the held-out samples: a number each for two classes, probabilities for more."""
        if hasattr(self._model, "decision_function") and self._y_test.max() < 2:
            return on_host(self._model.decision_function(self._X_test))
        scores = on_host(self._model.predict_proba(self._X_test))
        return scores if scores.shape[1] > 2 else scores[:, 1]

    def _fitted(self, rounds: int, X: Any, y: Any) -> Any:
        model = self._contender.make(rounds, self._threads).fit(X, y)
        synchronise()
        return model


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Hold interrupts back while a process starts: it inherits that until it ignores them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # starting it lifts the block, so it comes before
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
