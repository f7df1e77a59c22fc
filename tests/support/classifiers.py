"""Every kind of boosting classifier, by name: the votes, and one run for each class or one for all.

With two classes "shared" and "one_vs_rest" are the same, so some tests take `TWO_CLASSES` only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpustump import AdaBoostClassifier, LogitBoostClassifier

Make = Callable[..., Any]
"""Makes a classifier from parameters."""


def _kind(cls: type, **fixed: Any) -> Make:
    return lambda **parameters: cls(**(fixed | parameters))


KINDS: dict[str, Make] = {
    "discrete": _kind(AdaBoostClassifier),
    "discrete-shared": _kind(AdaBoostClassifier, multi_class="shared"),
    "real": _kind(AdaBoostClassifier, votes="real"),
    "real-shared": _kind(AdaBoostClassifier, votes="real", multi_class="shared"),
    "newton": _kind(LogitBoostClassifier, multi_class="one_vs_rest"),
    "newton-shared": _kind(LogitBoostClassifier),
}

SHARED = tuple(name for name in KINDS if name.endswith("-shared"))
TWO_CLASSES = tuple(name for name in KINDS if name not in SHARED)

CASES = [(name, 2) for name in TWO_CLASSES] + [(name, 3) for name in KINDS]
"""Kinds with numbers of classes; for two classes without those that are the same as others."""


def drawn(
    n_classes: int = 2, *, n_samples: int = 120, missing: float = 0.0, seed: int = 0
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """X (n_samples, 4) and labels 0, 1, ..., which follow from X with noise."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_samples, 4))
    score = X[:, 0] + X[:, 1] * X[:, 2] + random.normal(size=n_samples) / 2
    X[random.random(X.shape) < missing] = np.nan
    return X, np.digitize(score, np.quantile(score, np.arange(1, n_classes) / n_classes))
