"""
Why the model is the same everywhere
====================================

Boosting adds up weights and takes the best of many sums. In floating point, a sum depends on the
order of its terms, and every device has an order of its own. A *cut* divides the samples at a
threshold on a feature. Of two nearly equal cuts, one may be the best on a CPU and the other on a
GPU. After that the weights differ, and so does the model.

This page shows the problem, and what gpustump does about it.
"""

# %%
# The problem
# -----------
#
# Add up the same million numbers in three orders:

import os

import matplotlib.pyplot as plt
import numpy as np

from gpustump import AdaBoostClassifier

rng = np.random.default_rng(0)
weights = rng.exponential(size=1_000_000)
blocks = np.array_split(weights, 1024)
print(f"{np.cumsum(weights)[-1]:.17g} one by one")
print(f"{weights.sum():.17g} in pairs, as NumPy does")
print(f"{sum(part.sum() for part in blocks):.17g} in blocks, as a GPU may")

# %%
# The last digits differ. That is not a bug: additions are rounded, and roundings depend on the
# order. Compensated sums make the differences rarer, but do not remove them.
#
# Whole numbers
# -------------
#
# Sums of integers do not depend on the order. In each round, therefore, the weights are rounded up
# to whole multiples of one power of two. It is the smallest one for which the sum of all of them
# stays below 2\ :sup:`62`. Then no sum overflows, and as many digits as possible are kept:

unit = 2.0 ** (np.ceil(np.log2(weights.sum())) - 62)
if np.ceil(weights / unit).sum() >= 2.0**62:
    unit *= 2
integers = np.ceil(weights / unit).astype(np.int64)
totals = {
    int(np.cumsum(integers)[-1]),
    int(integers.sum()),
    sum(int(part.sum()) for part in np.array_split(integers, 1024)),
}
print(totals)

# %%
# Now there is one total. The search for the best stump adds up nothing but such integers:
# `score_left` is the cumulative sum of the signed weights in a feature's sorted order, and
# `score_right` is the rest. A stump predicts +1 on one side and -1 on the other. For the one with
# +1 on the left, the weight that it gets right minus the weight that it gets wrong is
# `score_left - score_right`. For the opposite stump it is minus that. The best cut is where the two
# scores are furthest apart.

y = np.where(rng.random(400) < 0.5, 1, -1)
x = rng.normal(size=400) + 0.6 * y
order = np.argsort(x)
signed = y[order].astype(np.int64)  # here all weights are 1
score_left = np.cumsum(signed)
score_right = signed.sum() - score_left
best = int(np.argmax(np.abs(score_left - score_right)))

fig, ax = plt.subplots(figsize=(7, 3.5), layout="constrained")
ax.step(x[order], score_left, where="post", label="score_left")
ax.step(x[order], score_right, "--", where="post", label="score_right")
ax.axvline(x[order][best], color="grey", linestyle=":", label="the best cut")
ax.set(xlabel="feature", ylabel="sum of signed weights")
ax.legend()
plt.show()

# %%
# Everything else
# ---------------
#
# A model may also differ because of a vote, a threshold or a tie. Each of these has a rule:
#
# * **Votes** are computed on the host, from Python's integers, and are whole multiples of 2\
#   :sup:`-36`. Sums of votes are therefore exact, too.
# * **Logarithms and exponentials** are taken once a round. Where the last digit of the C library
#   could decide a vote, decimal arithmetic is used.
# * **Weights** change by one IEEE multiplication. Every device computes the same bits for that.
# * **Thresholds** are midpoints between two values in the data's own dtype. They never reach the
#   upper value.
# * **Ties** have one order: the larger score, then the lower feature, then the lower threshold.
#
# The digest proves it
# --------------------
#
# A model's digest is the SHA-256 of its exact contents. Here the same table is trained four
# times: as NumPy's array, on one thread, with little memory, and by the plain scan that runs on
# any array library.

X = rng.normal(size=(5000, 20)).astype(np.float32)
noise = rng.normal(size=5000)
label = (np.abs(X[:, 0]) + X[:, 1] * X[:, 2] + noise > 1).astype(int)


def digest(**settings):
    """The digest of 30 rounds with these settings."""
    classifier = AdaBoostClassifier(n_estimators=30, **settings)
    return classifier.fit(X, label).model_.digest()


digests = {
    "as it comes": digest(),
    "one thread": digest(n_jobs=1),
    "20 MB": digest(max_memory="20 MB"),
}
os.environ["GPUSTUMP_KERNELS"] = "reference"
digests["the plain scan"] = digest()
del os.environ["GPUSTUMP_KERNELS"]
for how, found in digests.items():
    print(f"{how:15} {found}")
assert len(set(digests.values())) == 1

# %%
# The rules in full, and the code that keeps them, are in :doc:`the design </design>`.
