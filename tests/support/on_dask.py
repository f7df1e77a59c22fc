"""Estimators that are fitted on a cluster, with the methods that they have on one machine."""

from __future__ import annotations

from typing import Any, ClassVar

from gpustump import AdaBoostClassifier, GlassBoxClassifier, LogitBoostClassifier, dask


class OnDask:
    """An estimator and a client: `fit` is `gpustump.dask.fit`, and so on for Dask collections."""

    plain: ClassVar[Any]

    def __init__(self, client: Any = None, **how: Any) -> None:
        self.client, self.estimator = client, self.plain(**how)

    def __getattr__(self, name: str) -> Any:
        if name == "estimator":  # while a copy is made
            raise AttributeError(name)
        return getattr(self.estimator, name)

    def fit(self, *arrays: Any, **more: Any) -> OnDask:
        assert dask.fit(self.estimator, *arrays, client=self.client, **more) is self.estimator
        return self

    def set_params(self, **parameters: Any) -> OnDask:
        self.estimator.set_params(**parameters)
        return self

    def predict(self, X: Any) -> Any:
        return self._of("predict", X)

    def predict_proba(self, X: Any) -> Any:
        return self._of("predict_proba", X)

    def decision_function(self, X: Any) -> Any:
        return self._of("decision_function", X)

    def score(self, X: Any, *others: Any) -> Any:
        return self._of("score", X, *others)

    def _of(self, name: str, X: Any, *others: Any) -> Any:
        if hasattr(X, "dask"):
            return getattr(dask, name)(self.estimator, X, *others)
        return getattr(self.estimator, name)(X, *others)


class AdaBoostThere(OnDask):
    plain = AdaBoostClassifier


class LogitBoostThere(OnDask):
    plain = LogitBoostClassifier


class GlassBoxThere(OnDask):
    plain = GlassBoxClassifier
