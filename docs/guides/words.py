"""
Words: sparse tables
====================

Texts as bags of words, one-hot categories and clicks make tables that are nearly all
zeros. Every estimator of gpustump takes them as SciPy has them, and never makes them
dense: it reads the values that are stored. This guide is for you if you put
`TfidfVectorizer`, `CountVectorizer` or `OneHotEncoder` before a classifier. At the end
you will have a model of less than 200 words that can be read, and that runs in a
database.
"""

# %%
# The texts
# ---------
#
# Which library does a docstring come from, SciPy or scikit-learn? Both are on your disk
# already. Names of the libraries would give it away, and are taken out.

import importlib
import inspect
import pkgutil
import re
import warnings

import numpy as np
import scipy.sparse
import sklearn
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from gpustump import LogitBoostClassifier
from gpustump.exports import to_sql


def docstrings(package):
    """The documentation of a package's functions, classes and methods."""
    found = set()
    for module in pkgutil.iter_modules(package.__path__):
        if module.name.startswith("_") or module.name == "conftest":
            continue
        own = importlib.import_module(f"{package.__name__}.{module.name}")
        for _, thing in inspect.getmembers(own, callable):
            inside = (
                inspect.getmembers(thing, callable)
                if inspect.isclass(thing)
                else ()
            )
            for each in [thing, *(method for _, method in inside)]:
                written_here = (
                    getattr(each, "__module__", None) or ""
                ).startswith(package.__name__)
                if written_here and each.__doc__:
                    found.add(
                        re.sub(
                            "scipy|scikit|sklearn|learn",
                            " ",
                            each.__doc__.lower(),
                        )
                    )
    return sorted(found)


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of parts that are going to be removed
    texts = {"SciPy": docstrings(scipy), "scikit-learn": docstrings(sklearn)}
every = [text for own in texts.values() for text in own]
y = np.repeat([*texts], [len(own) for own in texts.values()])
train, test, y_train, y_test = train_test_split(
    every, y, test_size=0.3, random_state=0
)
{name: len(own) for name, own in texts.items()}

# %%
# A model of words
# ----------------
#
# `TfidfVectorizer` gives a sparse matrix with a column for each word. A round of
# boosting takes the one word, and the one threshold, that helps the most; so a model of
# 150 rounds has at most 150 words.

vectorizer = TfidfVectorizer(token_pattern="[a-z]{2,}", dtype=np.float32)
X_train, X_test = vectorizer.fit_transform(train), vectorizer.transform(test)
words = vectorizer.get_feature_names_out()
clf = LogitBoostClassifier(n_estimators=150, learning_rate=0.3).fit(
    X_train, y_train
)
used = {table.feature for table in clf.model_.additive.tables[1]}
print(
    f"{X_train.shape[0]} texts, {len(words)} words, {X_train.nnz} values that are not 0"
)
print(
    f"{len(used)} words vote; {clf.score(X_test, y_test):.3f} of the others are right"
)
print(clf.route_)

# %%
# A linear model of all words, for comparison:

linear = LogisticRegression(C=100, max_iter=2000).fit(X_train, y_train)
print(
    f"{linear.score(X_test, y_test):.3f} with {np.count_nonzero(linear.coef_)} words"
)

# %%
# What the words say
# ------------------
#
# A word's step function says what its absence adds to the score of scikit-learn, and
# what much of it adds. These are the words with the largest steps.


def step(feature):
    """What the last step adds, against what an absent word adds."""
    table = clf.shape_function(int(feature))
    absent = float(table.look_up(np.zeros(1))[0])
    return float(table.values[-1]) - absent


print("one is for", clf.classes_[1], "and minus for", clf.classes_[0])
for feature in sorted(used, key=lambda feature: -abs(step(feature)))[:12]:
    print(f"{words[feature]:>14} {step(feature):+.2f}")

# %%
# One text: what each of its words adds against a text without it. Contributions are a
# sparse matrix, too, and the last column is the score of a text without any of the
# words. They add up to the score, bit for bit.

parts = clf.explain(X_test[:1])
names = [*words, "(no words)"]
for place in np.argsort(-abs(parts.toarray()[0]))[:6]:
    print(f"{names[place]:>14} {parts[0, place]:+.2f}")
print(
    f"{'score':>14} {parts.sum():+.2f} = {clf.decision_function(X_test[:1])[0]:+.2f}"
)

# %%
# In a database
# -------------
#
# The export to SQL names the columns that vote, and no others.

sql = to_sql(clf.model_)
print(f"{len(sql) / 1000:.0f} kB:", sql[:300], "...")

# %%
# Categories as columns
# ---------------------
#
# `OneHotEncoder` gives sparse columns by default, so it can stand before any estimator
# here. (Where categories are few, `categorical_features` of the estimators finds sets of
# them instead: see :doc:`missing values and categories <missing_values_and_categories>`.)

first = np.asarray([[text.split()[0]] for text in train])
pipeline = make_pipeline(
    OneHotEncoder(handle_unknown="ignore"),
    LogitBoostClassifier(n_estimators=50),
).fit(first, y_train)
first_of_test = np.asarray([[text.split()[0]] for text in test])
print(
    f"{pipeline.score(first_of_test, y_test):.3f} right by the first word alone"
)

# %%
# Clusters take Dask arrays with sparse blocks, and the command line takes files in
# svmlight's format: `gpustump train texts.svm`.
