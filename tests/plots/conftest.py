"""Data and classifiers that several pictures are drawn of."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine

from gpustump import AdaBoostClassifier


@pytest.fixture(scope="session")
def cancer():
    """A frame of ten features, of which one lacks values, and two classes of text."""
    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = X.iloc[:, :10].copy()
    X.loc[X.index[::5], "mean area"] = np.nan
    return X, np.where(y == 0, "malignant", "benign")


@pytest.fixture(scope="session")
def binary(cancer):
    X, y = cancer
    return AdaBoostClassifier(n_estimators=60, device="cpu").fit(X[:300], y[:300])


@pytest.fixture(scope="session")
def wine():
    return load_wine(return_X_y=True)


@pytest.fixture(scope="session")
def three(wine):
    """Of intervals, one class against the rest."""
    clf = AdaBoostClassifier(n_estimators=12, device="cpu", weak_learner="interval")
    return clf.fit(*wine)
