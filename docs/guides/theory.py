"""
Boosting for a class
====================

This page goes through the theory of boosting as a lecture does: weak learners, the bound on the
training error, the bound of Vapnik and Chervonenkis, margins, and what pairs of features add. Each
theorem comes with an experiment with exact stumps. The page is for you if you teach boosting, or
learn it. At its end you will have pictures to show, and code that checks each theorem on data.

The sources are Shalev-Shwartz and Ben-David (2014), *Understanding Machine Learning*, chapter 10;
Freund and Schapire (1997), *A decision-theoretic generalization of on-line learning and an
application to boosting*; and Schapire, Freund, Bartlett and Lee (1998), *Boosting the margin*.
"""

# %%
# Stumps are weak learners
# ------------------------
#
# A weak learner finds, for any distribution over the samples, a hypothesis that is better than
# chance by some fixed gamma: with an error of at most 1/2 - gamma.
#
# **Theorem.** Let the labels be +1 inside an interval and -1 outside, or the other way round. Then
# for every distribution over the samples some stump has an error of at most 1/3 [Shalev-Shwartz
# and Ben-David 2014, example 10.1].
#
# The interval cuts the line into three regions. The lightest has at most a third of the weight,
# and some stump is wrong only there. Here are 500 such functions, each with a random distribution:

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from gpustump import (
    AdaBoostClassifier,
    GlassBoxClassifier,
    boost,
    fit_stump,
    plots,
    theory,
)
from gpustump.theory import make_intervals, random_distribution

rng = np.random.default_rng(0)
errors = []
for _ in range(500):
    X, y, function = make_intervals(60, 2, random_state=rng)
    D = random_distribution(function, X, random_state=rng)
    if len(set(y[D > 0])) == 2:
        errors.append(fit_stump(X, y, D).error)
assert max(errors) <= 1 / 3

fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.hist(errors, bins=40, color="tab:grey")
ax.axvline(1 / 3, color="black", linestyle="--", label="1/3")
ax.set(xlabel="weighted error of the best stump", ylabel="distributions")
ax.legend()
plt.show()

# %%
# `fit_stump` is exact, so the theorem must hold for it without a tolerance, and the assertion
# above has none. A learner that bins values or samples thresholds could miss the best stump.
#
# How the best stump is found
# ---------------------------
#
# Sort the samples by the feature. All thresholds between two neighbours give the same stump. Go
# through the samples once, and keep the sum of the weights of those that are wrong: one pass finds
# the best of all thresholds [Shalev-Shwartz and Ben-David 2014, 10.1.1]. From here on the data are
# real: two features of the breast-cancer table, +1 for malignant. First all samples weigh the
# same. Then those that the first stump misclassifies get half of the total weight, as in AdaBoost.

cancer = load_breast_cancer()
names = list(cancer.feature_names)
plane = [names.index("worst smoothness"), names.index("worst radius")]
X, y = cancer.data[:, plane], np.where(cancer.target == 0, 1, -1)

first = fit_stump(X, y)
wrong = first.predict(X) != y
reweighted = np.where(wrong, 0.5 / wrong.mean(), 0.5 / (~wrong).mean())
second = fit_stump(X, y, reweighted)

fig, axes = plt.subplots(2, 1, figsize=(7, 7), layout="constrained")
for ax, weights, name in zip(
    axes, (None, reweighted), ("equal weights", "second round"), strict=True
):
    plots.weighted_loss(X, y, feature=1, sample_weight=weights, ax=ax)
    ax.set_xlabel(f"threshold on worst radius; {name}")
plt.show()

# %%
# The same threshold is no better than chance in the second round: AdaBoost chooses the new weights
# so that the last stump has an error of one half. The best stump is another one, here on the other
# feature. The arrows point to the side where a stump says +1; points are as large as the weights.

assert first.feature != second.feature
error = reweighted[wrong].sum() / reweighted.sum()
assert np.isclose(error, 0.5)

fig, axes = plt.subplots(1, 2, figsize=(9, 4.5), layout="constrained")
plots.stump_lines(first, X, y, ax=axes[0])
plots.stump_lines(second, X, y, sample_weight=reweighted, ax=axes[1])
for ax in axes:
    ax.set(xlabel="worst smoothness", ylabel="worst radius")
plt.show()

# %%
# The vote of many stumps
# -----------------------
#
# AdaBoost adds the stumps up, each with its vote. The sign of the sum is the prediction. After one
# round the boundary is one line; after some more it is a staircase.

fig, axes = plt.subplots(1, 3, figsize=(9, 4), layout="constrained")
for ax, n_rounds in zip(axes, (1, 3, 30), strict=True):
    classifier = AdaBoostClassifier(n_estimators=n_rounds).fit(X, y)
    plots.decision_regions(classifier, X, y, ax=ax)
    ax.set(xlabel=f"worst smoothness; rounds: {n_rounds}", ylabel="")
    ax.locator_params(axis="x", nbins=3)
axes[0].set_ylabel("worst radius")
plt.show()

# %%
# A model of boosted stumps is a sum of functions of one feature each. The boundary can bend, but
# what one feature adds to the score never depends on the other. (The last section but one is about
# pairs of features, where it does.)
#
# The training error falls exponentially
# --------------------------------------
#
# In round t the stump has the weighted error e, and its edge is g = 1/2 - e. The weights are
# multiplied by exp(-vote) where it is right and exp(vote) where it is wrong. Their sum then
# changes by the normaliser Z = 2 sqrt(e (1 - e)).
#
# **Theorem.** The training error after T rounds is at most the product of the normalisers, and
# that is at most exp(-2 sum of g\ :sup:`2`) [Freund and Schapire 1997, theorem 6]. With edges of
# gamma or more it is at most exp(-2 T gamma\ :sup:`2`) [Shalev-Shwartz and Ben-David 2014, theorem
# 10.2].

X_train, X_test, y_train, y_test = train_test_split(
    cancer.data, y, random_state=0
)
records = list(boost(X_train, y_train, n_rounds=300))
columns = {
    "error": [record.error for record in records],
    "edge": [record.edge for record in records],
    "vote": [record.vote for record in records],
    "Z": [record.normaliser for record in records],
    "training error": [record.training_error for record in records],
    "product of Z": [record.training_bound for record in records],
}
rounds = pd.DataFrame(columns, index=range(1, len(records) + 1))
rounds["from edges"] = np.exp(-2 * np.cumsum(rounds["edge"] ** 2))
assert (rounds["training error"] <= rounds["product of Z"] + 1e-12).all()
assert (rounds["product of Z"] <= rounds["from edges"]).all()
assert np.allclose(rounds["Z"].cumprod(), rounds["product of Z"])
rounds.loc[[1, 2, 3, 10, 30, 100, 300]].style.format("{:.3g}")

# %%
# The proof in one line: a sample that is wrong has exp(-y F(x)) of at least 1, and the mean of
# exp(-y F(x)) is the product of the normalisers. AdaBoost's vote makes each Z as small as it can
# be for its stump.

classifier = AdaBoostClassifier(n_estimators=300).fit(X_train, y_train)
F = classifier.decision_function(X_train)
assert np.isclose(np.exp(-y_train * F).mean(), rounds["product of Z"].iloc[-1])
plots.error_curve(classifier, X_test, y_test)
plt.show()

# %%
# The edges get smaller: the weights move to the samples that are hard. But they stay away from 0,
# so the bound goes on falling. Once it is below one over the number of samples, the training error
# is 0.
#
# New samples: the bound of Vapnik and Chervonenkis
# -------------------------------------------------
#
# **Theorem.** With probability 1 - delta over the draw of m samples, the error on new samples is
# at most the training error plus a term that grows with the number of rounds and falls with m
# [Freund and Schapire 1997, theorem 8].
#
# The term follows from the growth function of the votes of T stumps.
# :func:`gpustump.theory.vc_bound` computes the bound, and
# :func:`gpustump.theory.vc_bound_if_consistent` a better one for a training error of 0:

sizes = [len(X_train), 10**4, 10**5, 10**6, 10**7]
bounds = pd.DataFrame(
    {
        f"{T} rounds": [
            theory.vc_bound_if_consistent(T, m, n_features=30) for m in sizes
        ]
        for T in (10, 100, 1000)
    },
    index=pd.Index(sizes, name="samples"),
)
assert (bounds.iloc[0] > 1).all()
bounds.style.format(precision=3)

# %%
# The first row is for the number of samples of this page. A bound above 1 says nothing, and all
# bounds in this row are above 1. Two things are worth telling a class. The bound holds for every
# distribution, so it must allow for the worst one. And it gets worse with every round, while the
# held-out error in the picture above does not.
#
# The same kind of bound says when the best stump on m samples is a weak learner on new samples:

gammas = [0.15, 1 / 12, 0.05, 0.01]
for gamma in gammas:
    m = theory.weak_learning_samples(gamma, n_features=2)
    print(f"edge of {gamma:.3f} on new samples: {m} samples are enough")

# %%
# Far fewer are enough in practice. Here stumps are fitted to m samples that are drawn from the
# distribution that is hardest for stumps, with a third of the weight in each region. The
# last column is the share of draws with an edge of 1/12 or more.

points, labels, function = make_intervals(2000, 2, random_state=rng)
D = random_distribution(function, points, kind="thirds", random_state=rng)
D /= D.sum()
for m in (10, 30, 100, 300):
    errors = []
    for _ in range(50):
        drawn = rng.choice(len(D), size=m, p=D)
        stump = fit_stump(points[drawn], labels[drawn])
        errors.append(D[stump.predict(points) != labels].sum())
    learned = np.mean(np.array(errors) <= 1 / 2 - 1 / 12)
    print(
        f"m = {m:3}: mean error {np.mean(errors):.3f}, learned {learned:.0%}"
    )

# %%
# Margins
# -------
#
# The training error can be 0 while the held-out error still falls. What changes then are the
# margins: y F(x) divided by the sum of the votes. A margin is between -1 and 1, and above 0 if the
# sample is right. It says how clear the vote was.
#
# **Theorem.** For every theta above 0, with high probability, the error on new samples is at most
# the share of training samples with a margin of theta or less, plus a term of order sqrt(ln(m)
# ln(h) / (m theta\ :sup:`2`)), where h is the number of weak hypotheses. The number of rounds is
# not in it [Schapire et al. 1998, theorem 1; theorem 2 is for infinite classes].

plots.margin_distribution(classifier, X_train, y_train)
plt.show()

# %%
# Look at the left ends of the curves. After few rounds some margins are below 0; later even the
# smallest is above 0. The large margins fall, and the small ones grow.

for n_rounds in (5, 30, 100, 300):
    model = AdaBoostClassifier(n_estimators=n_rounds).fit(X_train, y_train)
    margins = theory.normalised_margins(model, X_train, y_train)
    print(
        f"{n_rounds:3} rounds: smallest margin {margins.min():6.3f}, "
        f"training error {1 - model.score(X_train, y_train):.4f}, "
        f"held-out error {1 - model.score(X_test, y_test):.4f}"
    )

# %%
# This bound is not small either. It falls below 1 for many samples only:

for m in sizes:
    share = theory.share_below(margins, 0.1)
    bound = theory.margin_bound(share, 0.1, m, n_features=30)
    print(f"{m:8} samples with these margins: error at most {bound:.3f}")

# %%
# Pairs of features
# -----------------
#
# Not everything can be learnt weakly by stumps. Let the label be the sign of the product of two
# features: +1 if both are positive or both are negative (the *exclusive or*).
#
# **Theorem.** With the same weight on the four points (-1, -1), (-1, 1), (1, -1) and (1, 1), every
# stump has an error of 1/2. No sum F of functions of one feature is right on all four.
#
# Proof: a stump is constant or looks at one feature; on either side of its threshold the labels
# sum to 0. For a sum of such functions F(1, 1) + F(-1, -1) = F(1, -1) + F(-1, 1). If F is right,
# the left side is positive and the right side negative.

corners = np.array([[-1, -1], [-1, 1], [1, -1], [1, 1]])
assert fit_stump(corners, corners.prod(axis=1)).error == 0.5

# %%
# The product of two stumps is the label itself, without an error: Kegl and Busa-Fekete (2009),
# *Boosting products of base classifiers*. With `interactions`, gpustump cuts a pair of features
# into four quadrants, and each of them votes. A constant, a stump of each feature and the product
# of both stumps have four votes, too, so every such step is a sum of them. The same labels at 600
# random points, half of them to train on:

crossed = rng.uniform(-1, 1, (600, 2))
signs = np.where(crossed.prod(axis=1) > 0, 1, -1)
for n_pairs in (0, 1):
    model = GlassBoxClassifier(interactions=n_pairs, random_state=0)
    model.fit(crossed[:300], signs[:300])
    print(
        f"{n_pairs} pairs: {model.score(crossed[300:], signs[300:]):.3f} right"
    )

# %%
# Which pairs are worth it? Each pair's best cut has a gain on what the single features leave, and
# the pairs of the largest gains are taken: the plan of FAST [Lou, Caruana, Gehrke and Hooker 2013,
# *Accurate intelligible models with pairwise interactions*]. Here gains are exact.
#
# A table over two features may hold what a single feature explains. Then the same model can be
# written in many ways. So the weighted mean of each row and each column is moved into the
# functions of single features, until none is left [Lengerich, Tan, Chang, Hooker and Caruana 2020,
# *Purifying interaction effects with the functional ANOVA*]:

(table,) = model.model_.pairs
on_cells = table.values[:, :, 0] * table.weights
assert np.abs(on_cells.sum(axis=0)).max() < 1e-9
assert np.abs(on_cells.sum(axis=1)).max() < 1e-9

# %%
# What does it cost? The stumps of d features can label m samples in at most 2 + 2 d (m - 1) ways.
# A pair can be cut at (m - 1)\ :sup:`2` places, and its product has two signs, so products add at
# most d (d - 1) (m - 1)\ :sup:`2` ways. The logarithm grows like 2 ln(d m) in place of ln(d m). The
# VC dimension is the largest m for which some m samples can be labelled in all 2\ :sup:`m` ways.
# There the number must be 2\ :sup:`m` or more, which bounds the dimension:


def largest(growth, d):
    """The largest m for which the count allows all labellings."""
    m = 1
    while growth(m + 1, d) == 2 ** (m + 1):
        m += 1
    return m


features = [2, 10, 100, 1000, 10_000]
dimensions = pd.DataFrame(
    {
        "stumps": [largest(theory.stump_growth, d) for d in features],
        "products": [largest(theory.product_growth, d) for d in features],
    },
    index=pd.Index(features, name="features"),
)
assert (dimensions["products"] <= 2 * dimensions["stumps"] + 2).all()
dimensions

# %%
# Both grow like the logarithm of the number of features, the second one about twice as fast. The
# logarithm stands in the bounds on new samples: in the margin bound ln(h), or the logarithm of the
# growth function. If it doubles, the term needs twice as many samples to be as small as before:

for m in sizes[1:]:
    stumps = theory.margin_bound(0, 0.1, m, n_features=30)
    products, twice = (
        theory.margin_bound(0, 0.1, n, n_features=30, weak_learner="product")
        for n in (m, 2 * m)
    )
    assert abs(twice - stumps) < 0.01 * stumps
    print(
        f"{m:8} samples: {stumps:.3f} for stumps, {products:.3f} for products, "
        f"{twice:.3f} for products and twice the samples"
    )

# %%
# Sums of products make any table over two features, so they can also fit any noise whose rows
# differ in them. Early stopping and few pairs keep that in check, not the bound.
#
# What the bounds are for
# -----------------------
#
# None of these bounds predicts the error of a model. They say which quantities matter: the number
# of samples, the richness of the class of hypotheses, and the margins. To know the error of a
# model, measure it on samples that were held out.
#
# All assertions on this page run whenever it is built. The rules that make the sums exact, so that
# the theorems hold to the last bit, are in :doc:`/auto/how/exactness`.
