"""A contender in a process of its own, where it is timed.

Libraries that share a process disturb each other: threads of one spin while another is timed, one
changes the number of threads of another, and one crash ends all. So a worker holds one contender
only, on a fixed number of cores. It loads its data once, and carries out one order at a time while
the others wait. Memory is measured in an earlier process, so that the first fit that is timed is
the first of its process.
"""

from __future__ import annotations

import contextlib
import importlib
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple, TypeVar

import numpy as np

from bench.contenders import Contender, device_used, on_host, release, synchronise
from bench.data import DataSet, Stored
from bench.memory import peak_memory
from bench.records import Run, Turn
from bench.servant import Servant, WithdrawnError

_SETTLE = 0.02  # seconds between an order and its start, for most threads that spin to fall asleep

NOT_YET = "its first turn was not over"
"""Why a contender has no results if the benchmark was ended early."""

Result = TypeVar("Result")


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


class Worker(Servant):
    """The near end: a `Player` that hands every order to its process.

    An order that takes longer than `limit` seconds ends the process.
    """

    def __init__(self, entry: Entry, data: Stored, limit: float = 600.0) -> None:
        super().__init__(data.folder / f"{id(self)}.log", limit)
        self.name = entry.contender.name
        self._entry = entry
        self._data = data
        self._found: dict[str, Any] = {}  # fields of the record
        self._tried = False

    def warm_up(self) -> None:
        """Measure the memory, then start the process that is timed, and do everything once."""
        if reason := self._entry.contender.absent():
            raise WithdrawnError(reason)
        short = self._entry.rounds[0]
        if self._entry.whole:
            self._launch()
            self._found |= self.ask("weigh", short)
            self.close()
        self._found["load"] = self._launch()
        self._found |= self.ask("first_fit", short)
        if self._entry.whole:
            self.ask("predict")

    def turn(self) -> Turn:
        """A short fit, a long one, and predicting if that is wanted."""
        short, long = (self.ask("fit", rounds) for rounds in self._entry.rounds)
        return Turn(short, long, self.ask("predict") if self._entry.whole else None)

    def judge(self) -> None:
        """Look at the model of the last long fit."""
        self._found |= self.ask("judge")

    def run(self, turns: Sequence[Turn], reason: str | None) -> Run:
        """The record of what was measured so far."""
        if reason is None and not (turns and "digest" in self._found):
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

    def _launch(self) -> float:
        """Start a process; returns the seconds it took to load the libraries."""
        contender, _, _, threads, whole = self._entry
        # A GPU reads the table once a fit; new memory for gigabytes takes many seconds.
        shared = bool(contender.cuda) and not whole
        self.start(threads, _Stage, contender, self._data, threads, shared)
        seconds = float(self.ask("load", self._tried))
        self._tried = True
        return seconds


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
        """Seconds to import what the contender needs; then its data are placed.

        If `tried`, an earlier process has found no obstacle for this contender. Another check would
        start the GPU libraries before the first fit.
        """
        seconds, _ = timed(self._contender.load)
        if not tried and (reason := self._contender.obstacle()):
            raise WithdrawnError(reason)
        host = self._data.load(shared=self._shared)
        self._y_test = host.y_test
        self._X, self._y, self._X_test = map(self._contender.placed, host[:3])
        if self._contender.arrays != "numpy":  # otherwise no device has been used yet
            synchronise()
        return seconds

    def weigh(self, rounds: int) -> dict[str, int | None]:
        """The peak memory of a fit to all rows, beyond what a fit to a few rows has loaded."""
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
        """Seconds of the process's first fit, and the device that the model was trained on."""
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
        """The quality of the last model on held-out data, and its digest if it has one."""
        from sklearn.metrics import accuracy_score, r2_score, roc_auc_score

        predicted = on_host(self._model.predict(self._X_test)).reshape(-1)  # CatBoost: a column
        ensemble = getattr(self._model, "model_", None)
        digest = ensemble.digest() if ensemble is not None else None
        if self._y_test.dtype == np.float64:
            return {"r2": float(r2_score(self._y_test, predicted)), "digest": digest}
        return {
            "accuracy": float(accuracy_score(self._y_test, predicted)),
            "auc": float(roc_auc_score(self._y_test, self._scores(), multi_class="ovr")),
            "digest": digest,
        }

    def _scores(self) -> np.ndarray:
        """Scores of the held-out samples: one each for two classes, probabilities for more."""
        if hasattr(self._model, "decision_function") and self._y_test.max() < 2:
            return on_host(self._model.decision_function(self._X_test))
        scores = on_host(self._model.predict_proba(self._X_test))
        return scores if scores.shape[1] > 2 else scores[:, 1]

    def _fitted(self, rounds: int, X: Any, y: Any) -> Any:
        model = self._contender.make(rounds, self._threads).fit(X, y)
        synchronise()
        return model
