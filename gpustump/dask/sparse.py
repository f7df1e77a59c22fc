"""Sparse tables on a cluster: their blocks are put together on one worker, which trains on them.

A sparse table is small beside its dense form, so one worker has room for all of it, and a round
needs no message. If that worker is lost, Dask gives the task to another one.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from dask.delayed import delayed

from gpustump.dask.partitions import Collection
from gpustump.data.tables import is_sparse_matrix
from gpustump.estimators.held_out import Validation, naming


def holds_sparse(X: Any) -> bool:
    """Whether the blocks of a Dask collection are sparse, as far as Dask knows."""
    return is_sparse_matrix(getattr(X, "_meta", None))


def fit_on_one_worker(
    estimator: Any, data: tuple[Any, Any, Any], watched: Validation | None, client: Any
) -> None:
    """Fit an estimator to a sparse table with its own `fit`, as a task of the cluster.

    Parameters
    ----------
    estimator : BoostedEstimator
    data : tuple of object
        X, y and the weights or None: Dask collections.
    validation : Validation or None
        The same of the rows to watch.
    client : distributed.Client

    Raises
    ------
    ValueError, TypeError
        As `fit` does, here or from the worker.
    """
    for name, way in (("callback", None), ("checkpoint", None), ("_skl_callbacks", "callbacks")):
        if getattr(estimator, name, None) is not None:
            raise ValueError(
                f"{way or name} is for the process that calls fit, and a worker fits sparse tables "
                "by itself. Leave it out, or gather the table and fit on one machine."
            )
    arguments = list(_parts_of(*data))
    if watched is not None:
        with naming("X_val and y_val"):
            arguments += _parts_of(*watched[:3])
    task = delayed(_fitted, pure=False)(copy.copy(estimator), *arguments)
    future = client.compute(task)
    try:
        found = future.result()
    finally:
        with contextlib.suppress(OSError):  # a cluster that is gone holds nothing
            future.cancel()
    estimator.__dict__ = found | estimator.get_params(deep=False)


def _parts_of(X: Any, y: Any, sample_weight: Any) -> Iterator[Any]:
    """The partitions of each of the three, put together by a task; None for no weights."""
    rows = Collection.of(X, y, sample_weight)
    together = delayed(_together, pure=True)
    for parts in (rows.X, rows.y, rows.sample_weight):
        yield None if parts[0] is None else together(parts)


def _together(parts: Sequence[Any]) -> Any:
    """Partitions of rows, one after the other."""
    if hasattr(parts[0], "iloc"):
        import pandas as pd

        return pd.concat(parts)
    if any(map(is_sparse_matrix, parts)):
        from scipy.sparse import vstack

        return vstack(parts, format="csr")
    return np.concatenate(parts)


def _fitted(estimator: Any, X: Any, y: Any, sample_weight: Any, *watched: Any) -> dict[str, Any]:
    """The attributes of an estimator that this worker has fitted with all of its threads."""
    from distributed import get_worker

    estimator.n_jobs = get_worker().state.nthreads
    names = ("X_val", "y_val", "sample_weight_val")
    how = dict(zip(names, watched, strict=False))
    return dict(vars(estimator.fit(X, y, sample_weight, **how)))
