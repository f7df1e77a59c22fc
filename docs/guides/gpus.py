"""
Training on a GPU
=================

This guide is for you if you have an NVIDIA GPU, or wonder whether one would help. At the end you
will know what `device` does, how to see where a model was trained, which arrays are read where
they lie, and what was measured on an H100.

The page was built on the machine that the first table describes. The same code runs with a GPU and
without one.
"""

# %%
# What this machine can use
# -------------------------
#
# `pip install '.[cuda13]'` in a checkout brings CuPy, which compiles and starts the kernels
# (`.[cuda12]` is for older drivers). :func:`gpustump.devices` lists what can be used, and why the
# rest cannot:

import json
import textwrap
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer

import gpustump
from gpustump import AdaBoostClassifier, DeviceError

for device in gpustump.devices():
    mark = "+" if device.usable else "-"
    line = f"{mark} {device.name:6} {device.library:17} {device.detail}"
    print(textwrap.fill(line, 72, subsequent_indent=" " * 27))

# %%
# Which device trains
# -------------------
#
# * `"auto"`, the default: arrays that lie on a GPU are trained there. A table on the host goes to a
#   GPU if CuPy works and the table is large enough to gain from it. Others stay on the CPU.
# * `"cuda"`, `"cuda:1"`: that GPU, or an error that says why not. It never falls back.
# * `"cpu"`: the CPU.
#
# `route_` says where a model was trained, by which engine, and why:

X, y = load_breast_cancer(return_X_y=True)
X = X.astype(np.float32)
for device in ["auto", "cpu", "cuda"]:
    classifier = AdaBoostClassifier(n_estimators=50, device=device)
    try:
        classifier.fit(X, y)
        said = classifier.route_
    except DeviceError as error:
        said = error
    print(textwrap.fill(f"{device:5} {said}", 72, subsequent_indent=" " * 6))

# %%
# The model does not depend on any of this. A pipeline may say `device="auto"` and run on machines
# with a GPU and without one.
#
# A large table on a GPU
# ----------------------
#
# A table that fits into no memory can lie in a NumPy file. Give it as float32, in the order of
# columns (`order="F"`), which is how it is read: some columns at a time are sent to the GPU, and
# one byte for each value stays there. `max_memory` limits how much of the GPU's memory is taken;
# without it, most of what is free may be. `verbose=1` shows the progress, and
# `checkpoint` keeps the rounds if the machine is taken away. This table is small, so that the page
# is built quickly:

gpus = [
    device
    for device in gpustump.devices()
    if device.usable and device.library == "cupy"
]
folder = TemporaryDirectory()
path = Path(folder.name) / "table.npy"
rng = np.random.default_rng(0)
table = np.lib.format.open_memmap(
    path, "w+", np.float32, shape=(20_000, 40), fortran_order=True
)
for feature in range(40):  # a column at a time: never the table as a whole
    table[:, feature] = rng.normal(size=20_000)
labels = (table[:, 0] + table[:, 1] > 0).astype(int)
table.flush()

large = AdaBoostClassifier(
    n_estimators=20,
    device="cuda" if gpus else "cpu",
    max_memory="2 GB",
    checkpoint=Path(folder.name) / "run.json",
)
large.fit(np.load(path, mmap_mode="r"), labels)
print(textwrap.fill(str(large.route_), 72))
print(large.model_.digest())

# %%
# The digest is that of any other machine and device. :doc:`/auto/guides/larger_than_memory`
# measures what is kept in memory, and :doc:`/checkpoints` says how a run goes on.
#
# Arrays that are read where they lie
# -----------------------------------
#
# A table on the GPU is read there, without a copy: CuPy's arrays, CUDA tensors of PyTorch, JAX's
# arrays, and others with DLPack or `__cuda_array_interface__`. Numeric labels must lie there, too;
# text stays on the host. Predictions are arrays of the same library on the same device.

if gpus:
    import cupy as xp
else:
    import numpy as xp

there = AdaBoostClassifier(n_estimators=50)
there.fit(xp.asarray(X), xp.asarray(y))
answers = there.predict_proba(xp.asarray(X))
print(type(answers).__module__.partition(".")[0], there.route_.place)

here = AdaBoostClassifier(n_estimators=50, device="cpu").fit(X, y)
assert there.model_.digest() == here.model_.digest()

# %%
# Memory
# ------
#
# A table on the host, or in a mapped file, is sent some columns at a time, so it may be larger
# than the GPU's memory. One byte for each value stays there: the number of the bin that holds the
# value. Four more bytes for each value, the order of the samples, stay as far as there is room. A
# round needs them where it searches inside a bin, and computes them again if they are not there.
# If not even the single bytes fit, they are sent from the host in every round, and the progress
# line (`verbose=1`) says so.
#
# `max_memory="8 GB"` leaves the rest of the GPU to others. CuPy keeps memory in a pool, as PyTorch
# and JAX do; JAX takes most of a GPU when it starts, unless configured otherwise.
#
# What was measured
# -----------------
#
# The repository holds the timings of an NVIDIA H100, beside XGBoost on the same GPU
# (`device="cuda"`, depth 1), each from a float32 table on the host, and from CuPy's array of the
# same table on the GPU. They are read here from its files. Each was measured once or twice only:

folders = [Path.cwd(), *Path.cwd().parents]  # one of them is the repository
results = next(
    folder / "bench/results"
    for folder in folders
    if (folder / "bench/results/gpu-large.json").exists()
)


def runs(name):
    """All runs of a file of results, each of one library on one table."""
    return json.loads((results / name).read_text())["results"]


files = ["gpu-large.json", "gpu-noise.json", "gpu-late.json"]
rows = [
    {
        "table": f"{run['data']}, {run['samples']} x {run['features']}, "
        f"{run['rounds'][-1]} rounds, from the "
        f"{'GPU' if run['contender'].endswith(', CuPy arrays') else 'host'}",
        "library": run["contender"]
        .replace(" cuda", "")
        .removesuffix(", CuPy arrays"),
        "seconds": median(run["values"]["long"]),
    }
    for name in files
    for run in runs(name)
]
seconds = pd.DataFrame(rows).pivot_table(
    index="table", columns="library", values="seconds", sort=False
)
seconds.round(2)

# %%
# The same as shares of XGBoost's time. A share below 1 means that the fit took less time.

share = seconds.div(seconds["XGBoost"], axis=0).drop(columns="XGBoost")
fig, ax = plt.subplots(figsize=(8, 5.2), layout="constrained")
share.plot.barh(ax=ax, width=0.75, edgecolor="white")
for bars, hatch in zip(ax.containers, ["", "//", ".."], strict=True):
    ax.bar_label(bars, fmt="%.2f", padding=3)
    for bar in bars:
        bar.set_hatch(hatch)
ax.axvline(1, color="black", linestyle=":")
ax.set(xlabel="time of a whole fit / XGBoost's", ylabel="", xlim=(0, 1.25))
ax.invert_yaxis()
ax.legend(loc="upper right")
plt.show()
machine = json.loads((results / "gpu-large.json").read_text())["machine"]
print(machine["gpus"][0])

# %%
# From the host XGBoost spends most of the time before its first round: a table that fits should be
# copied to the GPU first. `noise` is hard data: most of its features say nothing about the labels.
# Rounds on it are gpustump's weakest case, as it must search inside many bins. Since these timings
# it searches fewer: late rounds look at 0.6 to 0.8 times as many samples, those of squared loss at
# 0.2 (counted, not timed). XGBoost only looks at the edges of its bins, and finds other stumps.
#
# On the machine that this GPU belongs to, whole fits were compared with those on its 16 CPU cores
# (`numba`). Both made the same models:

rows = [
    {
        "contender": run["contender"],
        "rounds": run["rounds"][-1],
        "seconds": round(run["values"]["long"][0], 2),
        "digest": run["facts"]["digest"][:16],
    }
    for run in runs("gpu-digest.json")
]
found = pd.DataFrame(rows).set_index("contender")
pairs = found["digest"].to_numpy().reshape(-1, 2)
assert (pairs[:, 0] == pairs[:, 1]).all()
assert machine["cores"] == 16
found

# %%
# When not to use one
# -------------------
#
# * A small table: starting and sending take longer than the fit. `device="auto"` allows for that.
# * One of the older GPUs (compute capability below 7.0): there is no kernel for it, and the plain
#   scan in CuPy trains instead.
# * Quantiles (`loss="quantile"`): the kernels do not find them, so the plain scan trains instead.
# * Monotone constraints, pairs and held-out samples: their GPU kernels have been tested on CPUs
#   only, where the same sources are compiled and run. Those for intervals have run on a GPU, but
#   the models were compared on CPUs only. No glass box has been timed with these kernels yet.
# * Several GPUs: on a Dask cluster each worker can use one, but this has not been run on several
#   GPUs yet (:doc:`/cluster`).
#
# :doc:`/benchmarks` has all timings, :doc:`/notes` what limits them.
