"""Sparse tables on a cluster: their blocks are put together on one worker, which trains on them.

A sparse table is small beside its dense form, so one worker has room for all of it, and a round
needs no message. If that worker is lost, Dask gives the task to another one.
"""

from __future__ import annotations

import contextlib
import copy
from typing import Any

from dask.delayed import delayed

from gpustump.dask.partitions import Collection, is_frame
from gpustump.data.tables import is_sparse_matrix
from gpustump.estimators.base import Data
from gpustump.estimators.held_out import Validation, naming


def holds_sparse(X: Any) -> bool:
    """Whether the blocks of a Dask collection are sparse, as far as Dask knows."""
    return is_sparse_matrix(getattr(X, "_meta", None))


def fit_on_one_worker(estimator: Any, data: Data, watched: Validation | None, client: Any) -> None:
    """Fit an estimator to a sparse table with its own `fit`, as a task of the cluster.

    Parameters
    ----------
    estimator : BoostedEstimator
    data : Data
        Of Dask collections.
    watched : Validation or None
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
    given = _whole(data)
    if watched is not None:
        with naming("X_val and y_val"):
            given |= {f"{name}_val": own for name, own in _whole(watched).items()}
    task = delayed(_fitted, pure=False)(copy.copy(estimator), given)
    future = client.compute(task)
    try:
        found = future.result()
    finally:
        with contextlib.suppress(OSError):  # a cluster that is gone holds nothing
            future.cancel()
    estimator.__dict__ = found | estimator.get_params(deep=False)


def _whole(data: Data | Validation) -> dict[str, Any]:
    """What is given of rows, by its name. As an argument of a task Dask puts it together."""
    Collection.of(data.X, data.y, data.sample_weight, data.offset)  # refuses what does not match
    init_score, exposure, _ = data.offset
    given = {"X": data.X, "y": data.y, "sample_weight": data.sample_weight}
    given |= {"init_score": init_score, "exposure": exposure}
    return {
        name: own.repartition(npartitions=1).to_delayed()[0] if is_frame(own) else own
        for name, own in given.items()
        if own is not None
    }


def _fitted(estimator: Any, given: dict[str, Any]) -> dict[str, Any]:
    """The attributes of an estimator that this worker has fitted with all of its threads."""
    from distributed import get_worker

    estimator.n_jobs = get_worker().state.nthreads
    return dict(vars(estimator.fit(**given)))
