"""A contender in a process of its own, where it is timed.

Libraries that share a process share more than the memory: threads of one spin while another is
timed, thread counts leak, one crash ends all. A worker has its contender alone, is held to so many
cores, gets its data once, keeps them, and takes one order at a time. While it works, the others
wait. Memory is weighed in a process before that one, so that the first fit timed is a first fit.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from bench.contenders import Contender, as_it_is, on_host, release, synchronise
from bench.data import Stored
from bench.memory import Peak, peak_memory
from bench.records import Run, Turn
from bench.timing import WithdrawnError, timed

_SETTLE = 0.02  # seconds between an order and its start, for most threads that spin to fall asleep
_PARTING = 5.0  # seconds that a process has to end when it is asked to
_THREAD_VARIABLES = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"),
    "VECLIB_MAXIMUM_THREADS",
)
_SHARED_GPU = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}  # else JAX takes most of its memory


@dataclass(frozen=True)
class Start:
    """What a fresh process took to load the libraries, and for its first fit; see `Run`."""

    load: float
    first_fit: float
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
    whole : bool
        Whether predicting and memory are measured too.
    limit : float
        Seconds that an order may take.
    """

    def __init__(
        self,
        contender: Contender,
        data: Stored,
        rounds: tuple[int, int],
        threads: int,
        *,
        whole: bool = False,
        limit: float = 600.0,
    ) -> None:
        self.contender = contender
        self.data = data
        self.rounds = rounds
        self.threads = threads
        self.whole = whole
        self.limit = limit
        self._tried = False
        self._peak = Peak()
        self._start: Start | None = None
        self._process: Any = None
        self._pipe: Connection | None = None
        self._log = data.folder / f"{id(self)}.log"

    def warm_up(self) -> None:
        """Weigh the memory, then start the process that is timed, and do everything once there."""
        if reason := self.contender.absent():
            raise WithdrawnError(reason)
        if self.whole:
            self._launch()
            self._peak = self._ask("weigh", self.rounds[0])
            self.close()
        load = self._launch()
        first_fit, device = self._ask("first_fit", self.rounds[0])
        self._start = Start(load, first_fit, device)
        if self.whole:
            self._ask("predict")

    def turn(self) -> Turn:
        """A short fit, a long one, and predicting if that is wanted."""
        short = self._ask("fit", self.rounds[0])
        long = self._ask("fit", self.rounds[1])
        return Turn(short, long, self._ask("predict") if self.whole else None)

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
            data_sha256=self.data.sha256,
            samples=self.data.shape[0],
            features=self.data.shape[1],
            distinct=self.data.distinct,
            threads=self.threads,
            rounds=self.rounds,
            reason=reason,
            host_memory=self._peak.host,
            device_memory=self._peak.device,
            turns=tuple(turns),
            **(asdict(self._start) if self._start else {}),
            **(asdict(verdict) if verdict else {}),
        )

    def close(self) -> None:
        """End the process: ask first, then insist."""
        if self._process is not None:
            self._process.terminate()
            self._process.join(_PARTING)
            if self._process.is_alive():
                self._process.kill()
                self._process.join(_PARTING)
            self._process = None
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None

    def _launch(self) -> float:
        """Start a process; returns the seconds it took to load the libraries."""
        context = multiprocessing.get_context("spawn")
        self._pipe, far_end = context.Pipe()
        tried = self._tried  # what a GPU library starts for that trial would not count as a start
        process = context.Process(
            target=serve,
            args=(far_end, self.contender, self.data, self._log, self.threads, tried),
            daemon=True,
        )
        threads = dict.fromkeys(_THREAD_VARIABLES, str(self.threads))
        with _variables({**threads, **_SHARED_GPU}), _uninterrupted():
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
        """The answer; whoever has none is ended at once, lest it keep cores and memory."""
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
        said = self._log.read_text(errors="replace") if self._log.exists() else ""
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        return f"{how}: {lines[-1][:200]}" if lines else how


def serve(
    pipe: Connection, contender: Contender, data: Stored, log: Path, threads: int, tried: bool
) -> None:
    """The far end: answer orders until the pipe closes. Runs in the worker's process.

    It is found out whether the contender can take part, unless that was tried before.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the near end to handle
    _print_into(log)
    _use_cores(threads)
    stage = _Stage(contender, data, threads)
    if not _answer(pipe, stage.load, tried):
        return
    while True:
        try:
            order, arguments = pipe.recv()
        except EOFError:
            return
        _answer(pipe, getattr(stage, order), *arguments)


def _answer(pipe: Connection, work: Callable[..., Any], *arguments: Any) -> bool:
    """Send what the work gives, or why it failed, in a line; returns whether it went well."""
    try:
        pipe.send((True, work(*arguments)))
    except Exception as error:
        text = str(error).strip() or "without a word"
        kind = "" if isinstance(error, WithdrawnError) else f"{type(error).__name__}: "
        pipe.send((False, kind + text.splitlines()[0][:300]))
        return False
    return True


class _Stage:
    """What an order finds in the worker's process: the data, placed, and the last model."""

    def __init__(self, contender: Contender, data: Stored, threads: int) -> None:
        self._contender = contender
        self._data = data
        self._threads = threads
        self._placed: dict[str, Any] = {}
        self._y_test = np.zeros(0)
        self._model: Any = None

    def load(self, tried: bool) -> float:
        """Seconds to import what the contender needs; then its data go where they belong."""
        seconds, _ = timed(self._contender.load)
        if not tried and (reason := self._contender.unfit()):
            raise WithdrawnError(reason)
        host = self._data.arrays()
        self._y_test = host["y_test"]
        self._placed = {part: self._contender.place(x) for part, x in host.items()}
        if self._contender.place is not as_it_is:  # else no device has been touched yet
            synchronise()
        return seconds

    def weigh(self, rounds: int) -> Peak:
        """The memory of a fit of all, beyond what a fit of a few rows has loaded already."""
        host = self._data.arrays()
        few = np.concatenate([np.flatnonzero(host["y"] == label)[:32] for label in (0, 1)])
        some = [self._contender.place(host[part][np.sort(few)]) for part in ("X", "y")]
        del host
        self._fitted(rounds, *some)
        for module in self._contender.large:
            with contextlib.suppress(ImportError):
                importlib.import_module(module)
        release()
        with peak_memory() as peak:
            self._fitted(rounds, self._placed["X"], self._placed["y"])
        return peak

    def first_fit(self, rounds: int) -> tuple[float, str | None]:
        """Seconds of the first fit of all, and where it says that it trained."""
        return self.fit(rounds), self._contender.device(self._model)

    def fit(self, rounds: int) -> float:
        """Seconds of a whole fit."""
        self._model = None
        time.sleep(_SETTLE)
        seconds, self._model = timed(
            lambda: self._fitted(rounds, self._placed["X"], self._placed["y"])
        )
        release()
        if reason := self._contender.disqualified(self._model, rounds):
            raise WithdrawnError(reason)
        return seconds

    def predict(self) -> float:
        """Seconds to predict the classes of the training table."""
        time.sleep(_SETTLE)
        seconds, _ = timed(self._predicted)
        release()
        return seconds

    def judge(self) -> Verdict:
        """The last model on held-out data."""
        from sklearn.metrics import accuracy_score, roc_auc_score

        X, y = self._placed["X_test"], self._y_test
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
        model = self._contender.make(rounds, self._threads).fit(X, y)
        synchronise()
        return model

    def _predicted(self) -> Any:
        predicted = self._model.predict(self._placed["X"])
        synchronise()
        return predicted


def _use_cores(threads: int) -> None:
    """Stay on so many of the cores that there are, where the system can do that."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def _print_into(log: Path) -> None:
    """What the libraries print goes to a file: it is asked for if the process dies."""
    with log.open("w") as file:
        for descriptor in (1, 2):
            os.dup2(file.fileno(), descriptor)


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
