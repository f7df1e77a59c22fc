"""Lazy predictions: a model is applied to each partition where it is, when it is asked for."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
from dask.base import compute
from dask.delayed import delayed
from sklearn.metrics import r2_score

from gpustump.dask.partitions import Collection, Part, Rows, column_of, with_whole_rows
from gpustump.data.weights import check_weights


def is_lazy(X: Any) -> bool:
    """Whether X is a Dask collection."""
    return hasattr(X, "to_delayed") and hasattr(X, "dask")


def applied(classifier: Any, method: str, X: Any, like: np.ndarray) -> da.Array:
    """What a classifier predicts for each row of X, as a Dask array with the same partitions.

    Parameters
    ----------
    classifier : StumpClassifier
        A fitted one without Dask.
    method : str
        The name of its method.
    X : dask array or frame
    like : ndarray (0, ...)
        An array without rows, otherwise of the results' dtype and shape.
    """
    X = with_whole_rows(X)
    model = _delayed(classifier)
    if getattr(X, "chunks", None) is None:
        return _of_frame(model, method, X, like)
    how: dict[str, Any] = {"drop_axis": [1]}
    if like.ndim == 2:
        how = {"chunks": (X.chunks[0], like.shape[1:])}
    return X.map_blocks(
        _of_block, model=model, method=method, like=like, dtype=like.dtype, meta=like, **how
    )


def _delayed(classifier: Any) -> Any:
    return delayed(classifier, name=f"gpustump-model-{classifier.model_.digest()[:16]}")


def _of_frame(model: Any, method: str, X: Any, like: np.ndarray) -> da.Array:
    """The same for a frame, whose partitions' lengths are not known."""
    call = delayed(_call, pure=True)
    shape = (np.nan, *like.shape[1:])
    blocks = [
        da.from_delayed(call(model, method, part, like), shape, dtype=like.dtype)
        for part in X.to_delayed()
    ]
    return da.concatenate(blocks, axis=0, allow_unknown_chunksizes=True)


def _of_block(block: Any, *, model: Any, method: str, like: np.ndarray) -> np.ndarray:
    return _call(model, method, block, like)


def _call(classifier: Any, method: str, part: Any, like: np.ndarray) -> np.ndarray:
    if len(part) == 0:
        return like
    found: np.ndarray = np.asarray(getattr(classifier, method)(part))
    return found


def accuracy(classifier: Any, rows: Collection) -> float:
    """The (weighted) share of rows that a fitted classifier predicts right, computed at once.

    Raises
    ------
    ValueError, TypeError
        If labels or weights are not one for each row, or weights are not as for a fit.
    """
    model, count = _delayed(classifier), delayed(_right_and_all, pure=True)
    parts = zip(rows.X, rows.y, rows.sample_weight, strict=True)
    right, total = map(sum, zip(*compute(*(count(model, *part) for part in parts)), strict=True))
    if not total:
        raise ValueError("sample_weight is zero for every sample; at least one must be positive.")
    return float(right / total)


def r2(regressor: Any, rows: Collection) -> float:
    """The (weighted) R2 of a fitted regressor's predictions, computed at once.

    Raises
    ------
    ValueError, TypeError
        If targets or weights are not one for each row, or not as for a fit.
    """
    model, judge = _delayed(regressor), delayed(_judged, pure=True)
    parts = zip(rows.X, rows.y, rows.sample_weight, strict=True)
    found = compute(*(judge(model, *part) for part in parts))
    true, predicted, weights = map(np.concatenate, zip(*found, strict=True))
    if not len(true):
        raise ValueError("sample_weight is zero for every sample; at least one must be positive.")
    return float(r2_score(true, predicted, sample_weight=weights))


def _judged(
    regressor: Any, X: Any, y: Any, weights: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Targets, predictions and weights of a partition's samples."""
    rows = Rows.of(Part(X, y, weights, loss=regressor.loss))
    if rows is None or not len(rows.labels):
        return np.empty(0), np.empty(0), np.empty(0)
    predicted = np.asarray(regressor.predict(X))
    return rows.labels, predicted if rows.rows is None else predicted[rows.rows], rows.weights


def _right_and_all(classifier: Any, X: Any, y: Any, weights: Any) -> tuple[float, float]:
    """The weight of a partition's samples that are right, and that of all."""
    part = Part(X, y, weights)
    if part.n_rows() == 0 or part.weighs_nothing:
        return 0.0, 0.0
    is_right = np.asarray(classifier.predict(X)) == np.asarray(column_of(y))
    own, positive = check_weights(column_of(weights), is_right)
    return float(own[is_right if positive is None else is_right[positive]].sum()), float(own.sum())
