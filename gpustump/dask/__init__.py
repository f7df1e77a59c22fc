"""Training on Dask clusters: the same model on one worker, on two and on eight.

    estimators    DaskAdaBoostClassifier, DaskLogitBoostClassifier
    fitting       one fit, from collections to rounds
    ground        what boosting sees of it: runs, and held-out samples
    shards        the shards on the workers, and what happens when a worker is lost
    conversation  messages to workers and their answers
    worker        what lives on a worker during a fit
    holding       its rows: partitions, then a shard
    categories    the categories of all partitions, numbered together
    partitions    Dask collections as partitions of rows, and a partition checked
    prediction    lazy predictions

What a shard is and how many of them are searched through is not a matter of Dask: see
`gpustump.engines.cluster`. Nothing else in the package imports this room: it needs
`pip install 'gpustump[dask]'`.
"""

from gpustump.dask.estimators import DaskAdaBoostClassifier, DaskLogitBoostClassifier
from gpustump.dask.fitting import Use
from gpustump.dask.holding import WorkerMemoryError
from gpustump.dask.shards import ClusterLostError

__all__ = [
    "ClusterLostError",
    "DaskAdaBoostClassifier",
    "DaskLogitBoostClassifier",
    "Use",
    "WorkerMemoryError",
]
