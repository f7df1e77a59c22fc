"""Training on Dask clusters: the same model on one worker, on two and on eight.

    estimators    fit, predict, predict_proba, decision_function, score
    fitting       one fit, from collections to rounds
    ground        the fit as boosting sees it: runs, and held-out samples
    shards        the shards on the workers, and what happens when a worker is lost
    conversation  messages to workers and their answers
    worker        what a worker keeps during a fit, and how it answers
    holding       its rows: partitions, then a shard
    categories    the categories of all partitions, numbered together
    partitions    Dask collections as partitions of rows, and a partition checked
    prediction    lazy predictions

A shard is the rows of one worker. What it computes, and how several shards are searched together,
does not depend on Dask: see `gpustump.engines.cluster`. Nothing else in the package imports this
room, which needs what the extra `dask` brings.
"""

from gpustump.dask.estimators import decision_function, fit, predict, predict_proba, score
from gpustump.dask.fitting import Use
from gpustump.dask.holding import WorkerMemoryError
from gpustump.dask.shards import ClusterLostError

__all__ = [
    "ClusterLostError",
    "Use",
    "WorkerMemoryError",
    "decision_function",
    "fit",
    "predict",
    "predict_proba",
    "score",
]
