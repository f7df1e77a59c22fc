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

    def __init__(self, n_estimators: int, preparing: float, a_round: float, predicting: float):
        self.seconds = preparing + n_estimators * a_round
        self.predicting = predicting

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

    def __init__(self, n_estimators: int):
        super().__init__(n_estimators, 0.0, 0.0, 0.0)

    def fit(self, X: np.ndarray, y: np.ndarray) -> Refuser:
        raise ValueError("no such data, please\nand a second line")


class Crasher(Sleeper):
    """Takes its process down when it is to fit more than a few rounds."""

    def __init__(self, n_estimators: int):
        super().__init__(n_estimators, 0.0, 0.0, 0.0)
        self.rounds = n_estimators

    def fit(self, X: np.ndarray, y: np.ndarray) -> Crasher:
        if self.rounds > 5:
            print("out of luck", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        return self


class Quitter(Sleeper):
    """Makes only so many rounds."""

    def __init__(self, n_estimators: int, most: int):
        super().__init__(n_estimators, 0.0, 0.0, 0.0)
        self.tree_count_ = min(n_estimators, most)


class Traveller(Sleeper):
    """Trains on the CPU, whatever it is told."""

    def __init__(self, n_estimators: int, device: str):
        super().__init__(n_estimators, 0.0, 0.0, 0.0)
        self.device_ = "cpu"


class Slow(Sleeper):
    """Writes down the samples of each fit, which takes so many seconds.

    It knows nothing, so all classes are alike.
    """

    fitted: ClassVar[list[tuple[int, bytes, bytes]]] = []
    """For each fit: rounds, features and labels."""
    estimators_ = ()

    def __init__(self, n_estimators: int, seconds: float = 0.0):
        super().__init__(n_estimators, 0.0, 0.0, 0.0)
        self.rounds, self.pause = n_estimators, seconds

    def fit(self, X: np.ndarray, y: np.ndarray) -> Slow:
        time.sleep(self.pause)
        self.fitted.append((self.rounds, X.tobytes(), y.tobytes()))
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.zeros(len(X), dtype=np.int64)

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))
