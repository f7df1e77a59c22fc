"""
A table larger than the memory
==============================

You can train on a table that does not fit into memory: it may lie in a file, and stay there. This
guide is for you if you have such a table and one machine. At the end you will have trained from a
file with a limit below the table's own size, and will know what is kept in memory and how much of
it.

The table here is drawn at random, and small enough for a page that is built often. Only its size
compared with the limit matters.
"""

# %%
# Write the table in blocks
# -------------------------
#
# NumPy's `.npy` files can be mapped: the system reads what is touched, and drops it again when
# memory is short. `open_memmap` makes one that is larger than the memory, block by block:

import tempfile
import textwrap
import tracemalloc
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from gpustump import AdaBoostClassifier

n_rows, n_features, block = 50_000, 300, 10_000
folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "table.npy"

rng = np.random.default_rng(0)
shape = (n_rows, n_features)
table = np.lib.format.open_memmap(path, "w+", np.float64, shape)
for start in range(0, n_rows, block):
    table[start : start + block] = rng.normal(size=(block, n_features))
score = table[:, 0] + table[:, 1] * table[:, 2]
y = (score + rng.normal(size=n_rows) > 0).astype(int)
table.flush()
del table

X = np.load(path, mmap_mode="r")
print(f"{X.nbytes / 1e6:.0f} MB in {path.name}")

# %%
# Train with a limit
# ------------------
#
# `max_memory` limits how much memory a fit may take beside the table: the host's memory, or the
# GPU's if it trains there. Here the limit is smaller than the table. tracemalloc counts what
# Python and NumPy allocate; the mapped file is not part of that.


def fitted(X, **settings):
    """A fit, and the most memory that it took at once, in MB."""
    fit = AdaBoostClassifier(n_estimators=10, device="cpu", **settings)
    tracemalloc.start()
    fit.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1] / 1e6
    tracemalloc.stop()
    return fit, peak


fitted(X)  # loads the kernels, which are no part of the table's memory
classifier, peak = fitted(X, max_memory="100 MB")
assert peak < 100 < X.nbytes / 1e6
print(f"at most {peak:.0f} MB at once")

# %%
# The model is the same as without a limit, and as that of the table in memory:

free, free_peak = fitted(X)
inside, inside_peak = fitted(np.array(X))
digests = {fit.model_.digest() for fit in (classifier, free, inside)}
assert len(digests) == 1
print(*digests)

# %%
bars = {
    "the table": X.nbytes / 1e6,
    "fit with max_memory='100 MB'": peak,
    "fit without a limit": free_peak,
    "fit of an array, beside it": inside_peak,
}
fig, ax = plt.subplots(figsize=(7, 2.6), layout="constrained")
drawn = ax.barh(list(bars), list(bars.values()), color="tab:blue")
drawn[0].set(color="lightgrey", hatch="//", edgecolor="grey")
ax.bar_label(drawn, fmt="%.0f", padding=3)
ax.axvline(100, color="black", linestyle=":", label="the limit")
ax.set(xlabel="most memory at once, MB (the first bar: in the file)")
ax.margins(x=0.12)
ax.invert_yaxis()
fig.legend(loc="outside upper right")
plt.show()

# %%
# Without a limit a fit takes more memory, to save time. (A table in memory takes its own size,
# too.)
#
# What stays in memory
# --------------------
#
# When training reads the table, it stores for every value the number of its bin, the *code*. Each
# round adds up weights by these codes. It reads the table again only where it searches inside a
# bin: some columns of some rows. These stay in memory:
#
# * one byte for each value, and a second one if there is room: it makes bins finer and rounds
#   faster;
# * some 100 bytes for each row: labels, weights, scores;
# * some 65 kB for each feature, for the bins;
# * if there is room, sorted positions, which save reading the table again.
#
# A limit can therefore be too small. Then an error says, before training starts, how much is
# needed:

try:
    AdaBoostClassifier(max_memory="50 MB", device="cpu").fit(X, y)
except ValueError as error:
    print(textwrap.fill(str(error), 72))

# %%
# Prediction goes through the rows in blocks, so it takes little more than its results:

tracemalloc.start()
answers = classifier.predict_proba(X)
found = tracemalloc.get_traced_memory()[1] / 1e6
tracemalloc.stop()
print(f"{found:.1f} MB at most")
print(f"{answers.nbytes / 1e6:.1f} MB of answers")
assert found < 20

folder.cleanup()

# %%
# What to know
# ------------
#
# * A disk is slower than memory. The first pass reads the whole file once. After that, the time
#   depends on how often a round searches inside bins, and on whether the system still has those
#   pages in memory. Use a fast local disk, not a network drive.
# * Save float32 if it is precise enough: the file is half as large. The dtype is part of the
#   data, so it may change the thresholds and with them the model.
# * `gpustump train table.npy --target ...` maps such files, too.
# * `block_bytes` is something else: how many bytes of temporaries the plain scan may take at once.
#   The scan trains where no kernels can be used.
# * On a GPU a table on the host, or in a file, is sent some columns at a time
#   (:doc:`/auto/guides/gpus`). If one machine is not enough, take several
#   (:doc:`/auto/guides/many_machines`).
# * Do not write to the file while a fit reads it.
