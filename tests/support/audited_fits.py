"""Fits of every kind, by name, for laws that hold for all: audits, warm starts, checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from classifiers import CASES, KINDS, SHARED, drawn

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


class Recipe(NamedTuple):
    """How to make an estimator from parameters, and what its `fit` is given."""

    make: Callable[..., Any]
    data: tuple[Any, ...]
    more: Mapping[str, Any] = MappingProxyType({})

    def unfitted(self, **changes: Any) -> Any:
        """The estimator, with some parameters changed."""
        return self.make().set_params(**changes)

    def fitted(self, **changes: Any) -> Fit:
        """The estimator after its fit."""
        classifier = self.unfitted(**changes).fit(*self.data, **self.more)
        return Fit(classifier, self.data, self.more)


def facts_of(estimator: Any) -> Mapping[str, Any]:
    """All that a fit learns, for comparisons to the last bit."""
    model = estimator.model_
    names = ("rounds_", "n_iter_", "stop_reasons_", "held_out_scores_", "held_out_errors_")
    return {name: getattr(estimator, name) for name in (*names, "evals_result_")} | {
        "digest": model.digest(),
        "bags": model.bags,
        "missing": model.missing_learnt,
        "encoding": model.details.get("encoding"),
        "classes": list(getattr(estimator, "classes_", ())),
        "categorical": list(getattr(estimator, "is_categorical_", ())),
    }


class Interrupted(BaseException):
    """Ends a fit in the middle."""


class Interrupting:
    """A callback that raises an error at the round of a given number, counted from 1."""

    def __init__(self, at: int, error: type[BaseException] = Interrupted) -> None:
        self.seen: list[Any] = []
        self._at, self._error = at, error

    def __call__(self, record: Any) -> None:
        self.seen.append(record)
        if len(self.seen) == self._at:
            raise self._error


def _plain(kind: str, n_classes: int) -> Recipe:
    return Recipe(lambda: KINDS[kind](n_estimators=8), drawn(n_classes, missing=0.1))


def _of(
    make: Callable[..., Any],
    n_classes: int = 2,
    *,
    given: Mapping[str, Any] | None = None,
    **how: Any,
) -> Recipe:
    """With weights, some of which are 0; a feature that is categorical has five categories."""
    X, y = drawn(n_classes, n_samples=300, missing=0.1)
    for feature in how.get("categorical_features", ()):
        X[:, feature] = np.digitize(X[:, feature], [-1.0, -0.3, 0.4, 1.0]) * 7 % 5
    weights = np.random.default_rng(1).integers(0, 4, len(y)) * 0.7
    return Recipe(lambda: make(**how), (X, y, weights), given or {})


def _quantity(make: Callable[..., Any], **parameters: Any) -> Recipe:
    X, _ = drawn(2, n_samples=300, missing=0.1)
    random = np.random.default_rng(2)
    mean = np.exp(np.nan_to_num(X[:, 0]) / 2)
    weights = random.uniform(0.5, 2.0, len(X))
    if parameters.get("loss") == "poisson":
        exposure = random.uniform(0.5, 3.0, len(X))
        data = X, random.poisson(mean * exposure), weights
        return Recipe(lambda: make(**parameters), data, {"exposure": exposure})
    y = mean * random.uniform(0.5, 1.5, len(X))
    return Recipe(lambda: make(**parameters), (X, y, weights))


def _watching(make: Callable[..., Any], n_classes: int = 2, **parameters: Any) -> Recipe:
    X_val, y_val = drawn(n_classes, n_samples=200, seed=1)
    held = {"X_val": X_val, "y_val": y_val, "sample_weight_val": np.arange(200) % 3}
    data = drawn(n_classes, n_samples=200)
    return Recipe(lambda: make(n_estimators=60, n_iter_no_change=3, **parameters), data, held)


STOPS = {"n_iter_no_change": 3, "random_state": 2}
CATEGORIES = {"categorical_features": [0], "n_estimators": 8}
KNOWN = {"init_score": np.random.default_rng(3).normal(size=300)}

FITS: dict[str, Recipe] = {
    **{
        kind if n_classes == 2 or kind in SHARED else f"{kind} of 3 classes": _plain(
            kind, n_classes
        )
        for kind, n_classes in CASES
    },
    "intervals": _of(AdaBoostClassifier, weak_learner="interval", n_estimators=8),
    "categories": _of(KINDS["discrete"], **CATEGORIES),
    "categories, newton": _of(KINDS["newton"], **CATEGORIES),
    "categories, shared": _of(KINDS["real-shared"], 3, **CATEGORIES),
    "monotone": _of(AdaBoostClassifier, monotonic_cst=[1, -1, 0, 1], n_estimators=8),
    "monotone, newton": _of(LogitBoostClassifier, monotonic_cst=[1, -1, 0, 1], n_estimators=8),
    "class_weight": _of(LogitBoostClassifier, 3, class_weight={0: 3, 1: 0.5}, n_estimators=8),
    "balanced, stopped": _of(AdaBoostClassifier, 3, class_weight="balanced", **STOPS),
    "early stopping": _of(LogitBoostClassifier, **STOPS),
    "early stopping, 3 classes": _of(LogitBoostClassifier, 3, multi_class="one_vs_rest", **STOPS),
    "early stopping, shared": _of(
        AdaBoostClassifier, 3, votes="real", multi_class="shared", **STOPS
    ),
    "bags": _of(AdaBoostClassifier, n_bags=3, n_estimators=5),
    "bags, 3 classes": _of(LogitBoostClassifier, 3, n_bags=2, n_estimators=5),
    "glass box": _of(
        GlassBoxClassifier, n_estimators=40, n_iter_no_change=4, n_bags=3, random_state=0
    ),
    "smoothing": _of(LogitBoostClassifier, smoothing_rounds=5, n_estimators=8),
    "smoothing, 3 classes": _of(
        LogitBoostClassifier, 3, smoothing_rounds=3, multi_class="one_vs_rest", n_estimators=6
    ),
    "X_val": _watching(AdaBoostClassifier),
    "X_val, 3 classes": _watching(LogitBoostClassifier, 3, multi_class="one_vs_rest"),
    "X_val, bags": _watching(LogitBoostClassifier, 3, n_bags=2, random_state=1),
    "known scores": _of(LogitBoostClassifier, given=KNOWN, n_estimators=8),
    "known scores, real": _of(AdaBoostClassifier, given=KNOWN, votes="real", n_estimators=8),
    "quantity": _quantity(StumpBoostingRegressor, n_estimators=8),
    "quantity, bags": _quantity(StumpBoostingRegressor, n_bags=2, n_estimators=20, **STOPS),
    "counts with exposures": _quantity(StumpBoostingRegressor, loss="poisson", n_estimators=8),
    "costs": _quantity(StumpBoostingRegressor, loss="gamma", n_estimators=60, **STOPS),
    "glass box of a quantity": _quantity(
        GlassBoxRegressor, n_estimators=60, n_iter_no_change=4, n_bags=3
    ),
}
"""What a fit may be asked for, by name."""
