"""Training on Dask clusters: the same model on one worker, on two and on eight.

    fitting       one fit, from collections to a model
    prediction    lazy predictions: predict, predict_proba, decision_function; score
    sparse        a fit to a sparse table, on one worker
    partitions    Dask collections as partitions of rows, a partition checked, labels of all
    categories    the categories of all partitions, numbered together
    rounds        the samples as boosting sees them: runs, and judges of held-out samples
    shards        the shards on the workers, and what happens when a worker is lost
    messages      messages to workers and their answers, by bare sockets or by Dask
    worker        what a worker keeps during a fit, and how it answers
    worker_rows   its rows: partitions, then a shard

A shard is the rows of one worker. What it computes, and how several shards are searched together,
does not depend on Dask: see `gpustump.engines.cluster`. Nothing else in the package imports this
room, which needs what the extra `dask` brings.
"""

from gpustump.dask.fitting import Use, fit
from gpustump.dask.prediction import decision_function, predict, predict_proba, score
from gpustump.dask.shards import ClusterLostError
from gpustump.dask.worker_rows import WorkerMemoryError

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
