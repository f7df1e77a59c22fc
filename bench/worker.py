"""A contender in a process of its own, where it is timed.

Libraries that share a process share more than the memory: threads of one spin while another is
timed, thread counts leak, one crash ends all. A worker has its contender alone, is held to so many
cores, gets its data once, keeps them, and takes one order at a time. While it works, the others
wait.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from bench.contenders import Contender, finished, on_host
from bench.data import Stored
from bench.memory import peak_memory
from bench.records import Run, Turn
from bench.timing import WithdrawnError, timed

_SETTLE = 0.02  # seconds between an order and its start: whoever spun for work is asleep by then
_THREAD_VARIABLES = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"),
)

_SHARED_GPU = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}  # else JAX takes most of its memory


@dataclass(frozen=True)
class FirstFits:
    """What the warm-up showed; see `Run` for each."""

    first: tuple[float, ...]
    host_memory: int | None
    device_memory: int | None
    device: str | None


@dataclass(frozen=True)
class Verdict:
    """How good the last model is on held-out data, and its digest if it has one."""

    accuracy: float
    auc: float
    digest: str | None


class Worker:
    """The near end: a `Player` that hands every order to its process.

    Parameters
    ----------
    contender : Contender
    data : Stored
    rounds : tuple of int
        Of the short and the long fit.
    threads : int
        Cores that the process may use.
    predicts : bool
        Whether a turn includes predicting.
    """

    def __init__(
        self,
        contender: Contender,
        data: Stored,
        rounds: tuple[int, int],
        threads: int,
        *,
        predicts: bool = False,
    ) -> None:
        self.contender = contender
        self.data = data
        self.rounds = rounds
        self.threads = threads
        self.predicts = predicts
        self._first: FirstFits | None = None
        self._process: Any = None
        self._pipe: Connection | None = None
        self._log = data.folder / f"{id(self)}.log"

    def warm_up(self) -> None:
        """Start the process, and do everything once there."""
        if reason := self.contender.absent():
            raise WithdrawnError(reason)
        self._start()
        self._first = self._ask("warm_up", self.rounds[0], self.predicts)

    def turn(self) -> Turn:
        """A short fit, a long one, and predicting if that is wanted."""
        short = self._ask("fit", self.rounds[0])
        long = self._ask("fit", self.rounds[1])
        return Turn(short, long, self._ask("predict") if self.predicts else None)

    def run(self, turns: list[Turn], reason: str | None) -> Run:
        """The record of what was measured, once the turns are over."""
        verdict: Verdict | None = None
        if reason is None:
            try:
                verdict = self._ask("judge")
            except WithdrawnError as withdrawal:
                reason = str(withdrawal)
        return Run(
            contender=self.contender.name,
            parameters=dict(self.contender.parameters),
            exact=self.contender.exact,
            data=self.data.name,
            samples=self.data.shape[0],
            features=self.data.shape[1],
            distinct=self.data.distinct,
            threads=self.threads,
            rounds=self.rounds,
            reason=reason,
            turns=tuple(turns),
            **(asdict(self._first) if self._first else {}),
            **(asdict(verdict) if verdict else {}),
        )

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.terminate()
            self._process.join()
        if self._pipe is not None:
            self._pipe.close()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, far_end = context.Pipe()
        self._process = context.Process(
            target=serve,
            args=(far_end, self.contender, self.data, self._log, self.threads),
            daemon=True,
        )
        with _variables({**dict.fromkeys(_THREAD_VARIABLES, str(self.threads)), **_SHARED_GPU}):
            self._process.start()
        far_end.close()
        self._receive()

    def _ask(self, order: str, *arguments: int) -> Any:
        assert self._pipe is not None
        with contextlib.suppress(OSError):  # if its process has ended, receiving tells how
            self._pipe.send((order, arguments))
        return self._receive()

    def _receive(self) -> Any:
        assert self._pipe is not None
        try:
            went_well, answer = self._pipe.recv()
        except (EOFError, OSError):
            raise WithdrawnError(self._how_it_ended()) from None
        if not went_well:
            raise WithdrawnError(answer)
        return answer

    def _how_it_ended(self) -> str:
        self._process.join()
        code = self._process.exitcode
        try:
            how = f"its process was ended by {signal.Signals(-code).name}"
        except ValueError:
            how = f"its process ended with code {code}"
        said = self._log.read_text(errors="replace").split("\n") if self._log.exists() else []
        last = next((line.strip() for line in reversed(said) if line.strip()), "")
        return f"{how}: {last[:200]}" if last else how


def serve(pipe: Connection, contender: Contender, data: Stored, log: Path, threads: int) -> None:
    """The far end: answer orders until the pipe closes. Runs in the worker's process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the near end to handle
    _print_into(log)
    _use_cores(threads)
    stage: _Stage | None = None

    def open_stage() -> None:
        nonlocal stage
        stage = _Stage(contender, data, threads)

    _answer(pipe, open_stage)
    while stage is not None:
        try:
            order, arguments = pipe.recv()
        except EOFError:
            return
        _answer(pipe, lambda: getattr(stage, order)(*arguments))  # noqa: B023


def _answer(pipe: Connection, work: Callable[[], Any]) -> None:
    try:
        pipe.send((True, work()))
    except Exception as error:
        text = (
            f"{type(error).__name__}: {error}"
            if not isinstance(error, WithdrawnError)
            else str(error)
        )
        pipe.send((False, (text.strip().splitlines() or [type(error).__name__])[0][:300]))


class _Stage:
    """What an order finds in the worker's process: the data, placed, and the last model."""

    def __init__(self, contender: Contender, data: Stored, threads: int) -> None:
        if reason := contender.unfit():
            raise WithdrawnError(reason)
        self._contender = contender
        self._threads = threads
        self._host = data.arrays()
        self._placed = {part: finished(contender.place(x)) for part, x in self._host.items()}
        self._model: Any = None

    def warm_up(self, rounds: int, predicts: bool) -> FirstFits:
        """A fit of a few rows, to load and compile, then one of all while memory is watched."""
        y = self._host["y"]
        few = np.sort(np.concatenate([np.flatnonzero(y == label)[:32] for label in (0, 1)]))
        some = [self._contender.place(self._host[part][few]) for part in ("X", "y")]
        first = [timed(lambda: self._fitted(rounds, *some))[0]]
        with peak_memory() as peak:
            first.append(self.fit(rounds))
        if predicts:
            first.append(self.predict())
        device = getattr(self._model, "device_", None)
        return FirstFits(tuple(first), peak.host, peak.device, device and str(device))

    def fit(self, rounds: int) -> float:
        """Seconds of a whole fit."""
        self._model = None
        time.sleep(_SETTLE)
        seconds, self._model = timed(
            lambda: self._fitted(rounds, self._placed["X"], self._placed["y"])
        )
        return seconds

    def predict(self) -> float:
        """Seconds to predict the classes of the training table."""
        time.sleep(_SETTLE)
        return timed(lambda: finished(self._model.predict(self._placed["X"])))[0]

    def judge(self) -> Verdict:
        """The last model on held-out data."""
        from sklearn.metrics import accuracy_score, roc_auc_score

        X, y = self._placed["X_test"], self._host["y_test"]
        if hasattr(self._model, "decision_function"):
            scores = on_host(self._model.decision_function(X))
        else:
            scores = on_host(self._model.predict_proba(X))[:, 1]
        ensemble = getattr(self._model, "model_", None)
        return Verdict(
            accuracy=float(accuracy_score(y, on_host(self._model.predict(X)))),
            auc=float(roc_auc_score(y, scores)),
            digest=ensemble.digest() if ensemble is not None else None,
        )

    def _fitted(self, rounds: int, X: Any, y: Any) -> Any:
        return finished(self._contender.make(rounds, self._threads).fit(X, y))


def _use_cores(threads: int) -> None:
    """Stay on so many of the cores that there are, where the system can do that."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def _print_into(log: Path) -> None:
    """What the libraries print goes to a file: it is asked for if the process dies."""
    with log.open("w") as file:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                os.dup2(file.fileno(), stream.fileno())


@contextlib.contextmanager
def _variables(wanted: dict[str, str]) -> Iterator[None]:
    """Environment variables that hold while a process starts."""
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
