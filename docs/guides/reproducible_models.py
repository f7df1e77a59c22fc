"""
Reproducible models
===================

Months later somebody asks: is the model in this file really the one that these data give? This
guide is for you if you may have to answer. At the end you will know what a digest is, what a model
file records, how to audit it, how an interrupted fit goes on, and that exports give the same
scores and labels as the model.
"""

# %%
# A digest
# --------
#
# A model's digest is the SHA-256 of what decides its predictions: stumps, votes, classes. Equal
# digests mean equal models. The number of threads, a memory limit, and the memory order of the
# table do not change it:

import json
import sqlite3
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer

from gpustump import (
    Checkpoint,
    LogitBoostClassifier,
    ModelFileError,
    StumpEnsemble,
    audit,
    exports,
)

X, y = load_breast_cancer(return_X_y=True, as_frame=True)
temporary = tempfile.TemporaryDirectory()
folder = Path(temporary.name)

classifier = LogitBoostClassifier(n_estimators=100).fit(X, y)
digest = classifier.model_.digest()
print(digest)

other = LogitBoostClassifier(n_estimators=100, n_jobs=1, max_memory="1 MB")
copied = pd.DataFrame(np.asfortranarray(X), columns=X.columns)
assert other.fit(copied, y).model_.digest() == digest

# %%
# It is the same on other machines and with other array libraries, too. :doc:`/auto/how/exactness`
# has the reasons.
#
# What changes the digest: other values, another dtype of the table (thresholds are numbers of that
# dtype), other columns or another order of them, other parameters. Where rows are drawn (early
# stopping without `X_val`, bags), `random_state` and the order of the rows change it, too. With
# smoothing rounds the order of the rows changes it. Another order of the columns only renames the
# features of the model, except that it decides between equally good cuts.
#
# A frame has a type for each column. Its table is float32 if all of them are booleans, integers of
# up to 16 bits or floats of up to 32, and float64 otherwise. The same values of the same types give
# the same digest in pandas (also with nullable types and those of pyarrow), polars and pyarrow. A
# column without any value has no type. Python objects have the type of their values: booleans are
# booleans, NumPy's scalars are of their own dtype, other numbers are of 64 bits.
#
# Predictions need neither the order of the columns nor only these columns: where a table and a
# model have names, columns are found by name, and others are ignored.
#
# The file
# --------
#
# A file is JSON with a checksum. Nothing in it is executed when it is read, and a file that was
# changed is refused.

path = folder / "model.json"
classifier.model_.save(path)
model = StumpEnsemble.load(path)
assert model.digest() == digest
assert (model.predict(X) == classifier.predict(X)).all()

edited = folder / "edited.json"
edited.write_text(path.read_text().replace("16.795", "16.796"))
try:
    StumpEnsemble.load(edited)
except ModelFileError as error:
    print(str(error).rpartition("/")[2])

# %%
# It also records how the model was trained. The record is outside the digest.

print(json.dumps(model.details["estimator"], indent=1))

# %%
# Audit
# -----
#
# :func:`gpustump.audit` repeats the training and compares, round by round:

found = audit(path, X, y)
assert found.same
print(found)

# %%
# Now two labels are swapped before the audit. It finds the first round that differs, and shows
# what the file and the data say:

doctored = y.copy()
doctored.iloc[[18, 19]] = doctored.iloc[[19, 18]].to_numpy()
assert (doctored != y).sum() == 2
found = audit(path, X, doctored)
assert not found.same
print(found)

# %%
# If a single label is changed, the audit stops even earlier: the shares of the classes differ, and
# with them the scores from which boosting starts.

# %%
#
# Here a single threshold of the model is changed instead, with a checksum that fits:

member = model.members[0]
splits = list(member.splits)
splits[40] = replace(splits[40], threshold=splits[40].threshold * 1.001)
forged = replace(model, members=(replace(member, splits=tuple(splits)),))
found = audit(forged, X, y)
assert found.difference.what == "round 41, another stump"
print(found)

# %%
# An audit says that the model is the one of these data. It does not say that the data are right,
# or that the model is good. :doc:`/audit` has more.
#
# Checkpoints
# -----------
#
# With `checkpoint=` a fit saves its rounds to a file while it runs. Here a callback interrupts the
# fit, as Ctrl-C would:


def interrupt(record):
    """End the fit by an exception."""
    if record.number == 60:
        raise KeyboardInterrupt


run = Checkpoint(folder / "run.json", every_rounds=20)
fit = LogitBoostClassifier(n_estimators=100, checkpoint=run)
try:
    fit.set_params(callback=interrupt).fit(X, y)
except KeyboardInterrupt:
    print("interrupted")

made = []
fit.set_params(callback=lambda record: made.append(record.number))
fit.fit(X, y)
assert fit.model_.digest() == digest
print(f"went on with round {made[0]}, to the same digest")

# %%
# A fit with other data or other parameters is refused, as the result would be the model of
# neither. For this check a checkpoint holds a fingerprint of the data, and the model keeps it. An
# audit of this model also says what is different about the data:

print(*audit(fit.model_, X, doctored).data_differences)
temporary.cleanup()

# %%
# :doc:`/checkpoints` says when the file is written, and what it costs.
#
# Exports
# -------
#
# A model can be used outside Python. Votes are whole multiples of 2\ :sup:`-36`, so exports add up
# integers, and their scores and labels are those of the model, bit for bit. As SQL, run by
# the SQLite that Python brings:

database = sqlite3.connect(":memory:")
X.to_sql("patients", database, index=False)
rows = database.execute(exports.to_sql(model, "sqlite", table="patients"))
scores, labels = zip(*[row[-2:] for row in rows], strict=True)
assert list(labels) == model.predict(X).tolist()
assert (np.array(scores) * 2.0**-36 == model.decision_function(X)).all()

# %%
# And as C, a header without dependencies. Each export begins with the digest of its model:

header = exports.to_c(model, "cancer")
for name, text in {
    "SQL": exports.to_sql(model, "sqlite"),
    "C": header,
}.items():
    print(f"{name:3} {len(text) / 1000:5.1f} kB", digest in text)
print(*header.splitlines()[:5], sep="\n")

# %%
# :doc:`/exports` has ONNX, too, and says what is exact and what may differ in the last bit
# (probabilities, as exponentials do). :doc:`/trust` lists the promises and the test of each.
