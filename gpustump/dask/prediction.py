"""Lazy predictions: a model is applied to each partition where it is, when it is asked for."""

from __future__ import annotations

import copy
from typing import Any

import dask.array as da
import numpy as np
from dask.base import compute
from dask.delayed import delayed
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from gpustump.dask.partitions import (
    Collection,
    blocks_of,
    example_of,
    n_rows_of,
    offset_parts,
    plain,
    targets_of,
    with_whole_rows,
)
from gpustump.estimators.boosters import BoostedClassifier, BoostedEstimator
from gpustump.estimators.targets import Offset
from gpustump.model.ensemble import StumpEnsemble


def decision_function(estimator: Any, X: Any, *, init_score: Any = None) -> Any:
    """The score of each sample of a Dask collection: lazily, with its partitions.

    Parameters
    ----------
    estimator : classifier of gpustump
        Fitted, on a cluster or on one machine.
    X : dask array (n_samples, n_features) or dask frame
    init_score : dask collection, optional
        Partitioned as X, as the estimator's own methods take it.

    Returns
    -------
    dask array (n_samples,) or (n_samples, n_classes) of float64

    Examples
    --------
    >>> import dask.array as da
    >>> import gpustump.dask
    >>> from gpustump import AdaBoostClassifier
    >>> clf = AdaBoostClassifier(n_estimators=3).fit([[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1])
    >>> X = da.from_array([[1], [2], [3]], chunks=(2, 1))
    >>> gpustump.dask.decision_function(clf, X).compute().round(3).tolist()
    [-1.016, -1.016, 0.37]
    """
    n_classes = len(_of_classes(estimator).classes_)
    like = np.empty((0,) if n_classes == 2 else (0, n_classes))
    return _applied(estimator, "decision_function", X, like, Offset(init_score))


def predict(estimator: Any, X: Any, *, init_score: Any = None, exposure: Any = None) -> Any:
    """The label, or the quantity, of each sample of a Dask collection: lazily, with its partitions.

    Parameters are those of `decision_function`, and the exposure of counts.

    Examples
    --------
    >>> import dask.array as da
    >>> import gpustump.dask
    >>> from gpustump import AdaBoostClassifier
    >>> clf = AdaBoostClassifier(n_estimators=3).fit([[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1])
    >>> gpustump.dask.predict(clf, da.from_array([[1], [2], [3]], chunks=(2, 1))).compute().tolist()
    [0, 0, 1]
    """
    like = getattr(_fitted(estimator), "classes_", np.empty(0))[:0]
    return _applied(estimator, "predict", X, like, Offset(init_score, exposure))


def predict_proba(estimator: Any, X: Any, *, init_score: Any = None) -> Any:
    """Class probabilities of a Dask collection's samples: lazily, with its partitions.

    Parameters are those of `decision_function`.

    Examples
    --------
    >>> import dask.array as da
    >>> import gpustump.dask
    >>> from gpustump import LogitBoostClassifier
    >>> clf = LogitBoostClassifier(n_estimators=10).fit([[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1])
    >>> X = da.from_array([[1], [2], [3]], chunks=(2, 1))
    >>> gpustump.dask.predict_proba(clf, X).compute()[:1].round(3).tolist()
    [[0.693, 0.307]]
    """
    n_classes = len(_of_classes(estimator).classes_)
    like = np.empty((0, n_classes))
    return _applied(estimator, "predict_proba", X, like, Offset(init_score))


def score(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    init_score: Any = None,
    exposure: Any = None,
) -> float:
    """The (weighted) share of a Dask collection's samples that are predicted right, at once.

    Of a quantity it is R2, for which targets and predictions of all samples are gathered. What is
    beside X is cut as X is, and checked, as in `fit`.

    Examples
    --------
    >>> import dask.array as da
    >>> import gpustump.dask
    >>> from gpustump import AdaBoostClassifier
    >>> X = da.from_array([[1], [2], [3], [4], [5]], chunks=(3, 1))
    >>> y = da.from_array([0, 0, 1, 0, 1], chunks=3)
    >>> clf = AdaBoostClassifier(n_estimators=3).fit(X.compute(), y.compute())
    >>> gpustump.dask.score(clf, X, y)
    1.0
    """
    own = _fitted(estimator)
    offset = Offset(init_score, exposure)
    own._table(example_of(with_whole_rows(X), may_be_text=may_be_text(own)), reset=False)
    rows = Collection.of(X, y, sample_weight, offset)
    model, judge = _delayed(own), delayed(_judged, pure=True)
    found = list(zip(*compute(*(judge(model, *part) for part in rows.parts)), strict=True))
    if not sum(map(len, found[-1])):
        raise ValueError("sample_weight is zero for every sample; at least one must be positive.")
    if isinstance(own, BoostedClassifier):
        right, total = (sum(own.sum() for own in parts) for parts in found)
        return float(right / total)
    true, predicted, weights = map(np.concatenate, found)
    return float(r2_score(true, predicted, sample_weight=weights))


def check_estimator(estimator: Any) -> None:
    """Refuse what is no boosting estimator.

    Raises
    ------
    TypeError
    """
    if not isinstance(estimator, BoostedEstimator):
        why = ", which is fitted on one machine."
        if isinstance(estimator, StumpEnsemble):
            why = ". A model's methods take one partition: X.map_partitions(model.predict)."
        raise TypeError(
            "estimator must be an AdaBoostClassifier, a LogitBoostClassifier, a "
            "StumpBoostingRegressor or a glass box; got "
            f"{type(estimator).__name__}{why}"
        )


def may_be_text(estimator: Any) -> bool:
    """Whether columns of frames may hold text."""
    return estimator.categorical_features is not None


def _fitted(estimator: Any) -> Any:
    check_estimator(estimator)
    check_is_fitted(estimator)
    return estimator


def _of_classes(estimator: Any) -> Any:
    if not isinstance(_fitted(estimator), BoostedClassifier):
        raise TypeError(
            f"this {type(estimator).__name__} predicts a quantity: take gpustump.dask.predict."
        )
    return estimator


def _applied(estimator: Any, method: str, X: Any, like: np.ndarray, offset: Offset) -> da.Array:
    """What a method of an estimator gives for each row of X, with the same partitions.

    `like` is an array without rows, otherwise of the results' dtype and shape.
    """
    X, model = with_whole_rows(X), _delayed(estimator)
    estimator._table(example_of(X, may_be_text=may_be_text(estimator)), reset=False)
    parts, call = blocks_of(X, "X"), delayed(_of_part, pure=True)
    lengths = getattr(X, "chunks", [[np.nan] * len(parts)])[0]  # those of a frame are not known
    blocks = [
        da.from_delayed(
            call(part, model, method, like, known), (length, *like.shape[1:]), dtype=like.dtype
        )
        for part, known, length in zip(
            parts, offset_parts(X, offset, len(parts)), lengths, strict=True
        )
    ]
    return da.concatenate(blocks, axis=0, allow_unknown_chunksizes=True)


def _delayed(estimator: Any) -> Any:
    """The estimator for workers, which need the model only: no rounds, callbacks or checkpoint."""
    light = copy.copy(estimator)
    light.callback = light.checkpoint = None
    for name in ("_runs", "_skl_callbacks"):
        vars(light).pop(name, None)
    return delayed(light, name=f"gpustump-model-{light.model_.digest()[:16]}")


def _of_part(part: Any, model: Any, method: str, like: np.ndarray, offset: Offset) -> np.ndarray:
    if n_rows_of(part, None, None, offset) == 0:
        return like
    found: np.ndarray = np.asarray(getattr(model, method)(part, **plain(offset).given))
    return found


def _judged(
    model: Any, X: Any, y: Any, sample_weight: Any, offset: Offset
) -> tuple[np.ndarray, ...]:
    """The weights of a partition's samples that are right, and of all; of a quantity the targets,
    predictions and weights."""
    loss = getattr(model, "loss", None)
    if not n_rows_of(X, y, sample_weight, offset):
        return (np.empty(0),) * (2 if loss is None else 3)
    predicted = np.asarray(model.predict(X, **plain(offset).given))
    true, weights, rows, _ = targets_of(predicted, y, sample_weight, loss)
    predicted = predicted if rows is None else predicted[rows]
    return (weights[true == predicted], weights) if loss is None else (true, predicted, weights)
