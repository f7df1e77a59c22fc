"""Lazy predictions: a model is applied to each partition where it is, when it is asked for."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
from dask.base import compute
from dask.delayed import delayed

from gpustump.dask.partitions import with_whole_rows


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
    model = delayed(classifier, name=f"gpustump-model-{classifier.model_.digest()[:16]}")
    if getattr(X, "chunks", None) is None:
        return _of_frame(model, method, X, like)
    how: dict[str, Any] = {"drop_axis": [1]}
    if like.ndim == 2:
        how = {"chunks": (X.chunks[0], like.shape[1:])}
    return X.map_blocks(
        _of_block, model=model, method=method, like=like, dtype=like.dtype, meta=like, **how
    )


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


def accuracy(predicted: Any, y: Any, sample_weight: Any) -> float:
    """The (weighted) share of right predictions, from sums over partitions."""
    weights = np.ravel(sample_weight.to_delayed()) if sample_weight is not None else None
    count = delayed(_right_and_all, pure=True)
    pairs = [
        count(own, labels, None if weights is None else weights[n])
        for n, (own, labels) in enumerate(
            zip(np.ravel(predicted.to_delayed()), np.ravel(y.to_delayed()), strict=True)
        )
    ]
    right, total = map(sum, zip(*compute(*pairs), strict=True))
    return float(right / total)


def _right_and_all(predicted: np.ndarray, y: Any, weights: Any) -> tuple[float, float]:
    """The weight of a partition's samples that are right, and that of all."""
    own = np.ones(len(predicted)) if weights is None else np.asarray(weights, dtype=np.float64)
    return float(own[predicted == np.asarray(y)].sum()), float(own.sum())
