"""Estimators of known cost and known faults, for the benchmarks' workers to run."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import ClassVar

import numpy as np


class Sleeper:
    """Fits and predicts by sleeping: so long to prepare, so long for every round."""

    def __init__(
        self,
        n_estimators: int,
        preparing: float = 0.0,
        a_round: float = 0.0,
        predicting: float = 0.0,
    ) -> None:
        self.rounds, self.predicting = n_estimators, predicting
        self.seconds = preparing + n_estimators * a_round

    def fit(self, X: np.ndarray, y: np.ndarray) -> Sleeper:
        time.sleep(self.seconds)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        time.sleep(self.predicting)
        return self.decision_function(X) > 0

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        return X[:, 0]


class Refuser(Sleeper):
    """Refuses the data."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Refuser:
        raise ValueError("no such data, please\nand a second line")


class Crasher(Sleeper):
    """Takes its process down when it is to fit more than a few rounds."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> Crasher:
        if self.rounds > 5:
            print("out of luck", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        return self


class Quitter(Sleeper):
    """Makes three rounds at most."""

    @property
    def tree_count_(self) -> int:
        return min(self.rounds, 3)


class Traveller(Sleeper):
    """Trains on the CPU, whatever it is told."""

    device_ = "cpu"

    def __init__(self, n_estimators: int, device: str) -> None:
        super().__init__(n_estimators)


class Slow(Sleeper):
    """Writes down the samples of each fit.

    It knows nothing, so all classes are alike.
    """

    fitted: ClassVar[list[tuple[int, bytes, bytes]]] = []
    """For each fit: rounds, features and labels."""
    estimators_ = ()

    def fit(self, X: np.ndarray, y: np.ndarray) -> Slow:
        self.fitted.append((self.rounds, X.tobytes(), y.tobytes()))
        self.classes_ = np.unique(y)
        super().fit(X, y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.zeros(len(X), dtype=np.int64)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))
