"""Fits of every kind for audits: the classifier, its data, and what an audit needs beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from classifiers import KINDS, drawn

from gpustump import (
    AdaBoostClassifier,
    GlassBoxClassifier,
    GlassBoxRegressor,
    LogitBoostClassifier,
    StumpBoostingRegressor,
)


class Fit(NamedTuple):
    """A fitted estimator, and the arguments after the model that audit it."""

    classifier: Any
    data: tuple[Any, ...]
    more: Mapping[str, Any] = MappingProxyType({})


def _plain(kind: str, n_classes: int) -> Callable[[], Fit]:
    def fitted() -> Fit:
        X, y = drawn(n_classes, missing=0.1)
        return Fit(KINDS[kind](n_estimators=8).fit(X, y), (X, y))

    return fitted


def _of(make: Callable[..., Any], n_classes: int = 2, **parameters: Any) -> Callable[[], Fit]:
    def fitted() -> Fit:
        X, y = drawn(n_classes, n_samples=300, missing=0.1)
        weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
        return Fit(make(**parameters).fit(X, y, weights), (X, y, weights))

    return fitted


def _categorical(kind: str, n_classes: int = 2) -> Callable[[], Fit]:
    def fitted() -> Fit:
        X, y = drawn(n_classes, n_samples=300, missing=0.1)
        X[:, 0] = np.digitize(X[:, 0], [-1.0, -0.3, 0.4, 1.0]) * 7 % 5
        classifier = KINDS[kind](n_estimators=8, categorical_features=[0])
        return Fit(classifier.fit(X, y), (X, y))

    return fitted


def _quantity(make: Callable[..., Any], **parameters: Any) -> Callable[[], Fit]:
    def fitted() -> Fit:
        X, _ = drawn(2, n_samples=300, missing=0.1)
        random = np.random.default_rng(2)
        mean = np.exp(np.nan_to_num(X[:, 0]) / 2)
        weights = random.uniform(0.5, 2.0, len(X))
        if parameters.get("loss") == "poisson":
            exposure = random.uniform(0.5, 3.0, len(X))
            y = random.poisson(mean * exposure)
            data, more = (X, y, weights), {"exposure": exposure}
        else:
            data, more = (X, mean * random.uniform(0.5, 1.5, len(X)), weights), {}
        return Fit(make(**parameters).fit(*data, **more), data, more)

    return fitted


def _watching() -> Fit:
    X, y = drawn(2, n_samples=300)
    X_val, y_val = drawn(2, n_samples=200, seed=1)
    held = {"X_val": X_val, "y_val": y_val}
    classifier = AdaBoostClassifier(n_estimators=60, n_iter_no_change=3)
    return Fit(classifier.fit(X, y, **held), (X, y), held)


FITS: dict[str, Callable[[], Fit]] = {
    "discrete": _plain("discrete", 2),
    "discrete of 3 classes": _plain("discrete", 3),
    "discrete-shared": _plain("discrete-shared", 3),
    "real": _plain("real", 2),
    "real of 3 classes": _plain("real", 3),
    "real-shared": _plain("real-shared", 3),
    "newton": _plain("newton", 2),
    "newton of 3 classes": _plain("newton", 3),
    "newton-shared": _plain("newton-shared", 3),
    "intervals": _of(AdaBoostClassifier, weak_learner="interval", n_estimators=8),
    "categories": _categorical("discrete"),
    "categories, newton": _categorical("newton"),
    "categories, shared": _categorical("real-shared", 3),
    "monotone": _of(AdaBoostClassifier, monotonic_cst=[1, -1, 0, 1], n_estimators=8),
    "monotone, newton": _of(LogitBoostClassifier, monotonic_cst=[1, -1, 0, 1], n_estimators=8),
    "class_weight": _of(LogitBoostClassifier, 3, class_weight={0: 3, 1: 0.5}, n_estimators=8),
    "early stopping": _of(LogitBoostClassifier, n_iter_no_change=3, random_state=2),
    "early stopping, 3 classes": _of(
        LogitBoostClassifier, 3, multi_class="one_vs_rest", n_iter_no_change=3, random_state=1
    ),
    "bags": _of(AdaBoostClassifier, n_bags=3, n_estimators=5),
    "bags, 3 classes": _of(LogitBoostClassifier, 3, n_bags=2, n_estimators=5),
    "glass box": _of(GlassBoxClassifier, n_estimators=60, n_iter_no_change=4, random_state=0),
    "smoothing": _of(LogitBoostClassifier, smoothing_rounds=5, n_estimators=8),
    "smoothing, 3 classes": _of(
        LogitBoostClassifier, 3, smoothing_rounds=3, multi_class="one_vs_rest", n_estimators=6
    ),
    "X_val": _watching,
    "quantity": _quantity(StumpBoostingRegressor, n_estimators=8),
    "counts with exposures": _quantity(StumpBoostingRegressor, loss="poisson", n_estimators=8),
    "costs": _quantity(
        StumpBoostingRegressor, loss="gamma", n_iter_no_change=3, random_state=1, n_estimators=60
    ),
    "glass box of a quantity": _quantity(
        GlassBoxRegressor, n_estimators=60, n_iter_no_change=4, n_bags=3
    ),
}
"""What a fit may be asked for, by name."""
