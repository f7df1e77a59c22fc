"""The sources' own procedures, written from their definitions, find the same stumps and rounds.

* MATLAB's build_stump in its own names: ind, x0, s, werr, score_left, score_right, Idec.
* AdaBoost [Freund and Schapire 1997; COS 511, lecture 11]: the distribution D_t kept explicitly and
  normalised in float64, edges, Z_t, the bound on the training error, the final sign.

Weights of the first are integers whose sum is a power of two, so that shares of the weight are
exact in float64 and the procedure's answers can be compared with `==`, ties included.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from backends import NUMPY, Backend
from hypothesis import given, settings
from hypothesis import strategies as st

from gpustump import boost, fit_stump


@st.composite
def samples(draw: st.DrawFn):
    """Integer-valued X with ties, y of both signs, and D: a distribution exact in float64."""
    n_samples, n_features = draw(st.integers(2, 12)), draw(st.integers(1, 4))
    top = draw(st.sampled_from([0, 1, 3, 20]))
    values = st.integers(0, top).map(float)
    X = draw(st.lists(values, min_size=n_samples * n_features, max_size=n_samples * n_features))
    y = draw(st.lists(st.sampled_from([-1, 1]), min_size=n_samples, max_size=n_samples))
    y[:2] = [1, -1]
    counts = draw(st.lists(st.integers(1, 9), min_size=n_samples, max_size=n_samples))
    counts[0] += 2 ** math.ceil(math.log2(sum(counts))) - sum(counts)
    D = np.asarray(counts) / sum(counts)
    return np.asarray(X).reshape(n_samples, n_features), np.asarray(y), D


@dataclass
class MatlabStump:
    """ind counts from 1; s = +1 says that the label changes from -1 to +1 at x0."""

    ind: int
    x0: float
    s: float
    werr: float


def build_stump(X: np.ndarray, y: np.ndarray, w: np.ndarray) -> MatlabStump:
    w = w / np.sum(w)
    stumps = [build_onedim_stump(X[:, i], y, w, i + 1) for i in range(X.shape[1])]
    return stumps[int(np.argmin([stump.werr for stump in stumps]))]


def build_onedim_stump(x: np.ndarray, y: np.ndarray, w: np.ndarray, ind: int) -> MatlabStump:
    I = np.argsort(x, kind="stable")  # noqa: E741
    Ir = I[::-1]
    xsorted = x[I]
    score_left = np.cumsum(w[I] * y[I])  # from the left up to and including each point
    score_right = np.cumsum(w[Ir] * y[Ir])  # from the right
    score = score_left[:-1] - score_right[-2::-1]
    Idec = np.flatnonzero(xsorted[:-1] < xsorted[1:])  # distinguishable points
    if len(Idec) == 0:
        return MatlabStump(ind, 0.0, 1.0, 0.5)  # no two values differ: give up
    at = Idec[np.argmax(np.abs(score[Idec]))]
    maxscore = abs(score[at])
    x0 = float((xsorted[at] + xsorted[at + 1]) / 2)
    return MatlabStump(ind, x0, float(np.sign(-score[at])), float(0.5 - 0.5 * maxscore))


@settings(max_examples=150)
@given(samples())
def test_build_stump_finds_the_same_split_unless_a_constant_is_better(sample):
    X, y, D = sample
    theirs, ours = build_stump(X, y, D), fit_stump(X, y, D)
    if np.ptp(X[:, theirs.ind - 1]) == 0:  # it gave up on a feature, and no split beats that
        assert ours.error <= theirs.werr == 0.5
        return
    if ours.is_constant:
        assert ours.error < theirs.werr  # build_stump has no constant stump
        return
    assert (ours.feature + 1, ours.threshold, ours.error) == (theirs.ind, theirs.x0, theirs.werr)
    assert theirs.s == (0.0 if ours.error == 0.5 else -ours.polarity)


def noisy_data(seed: int, n_samples: int = 200, weighted: bool = False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, 4))
    y = np.where(X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(scale=0.5, size=n_samples) > 0, 1, -1)
    return X, y, rng.uniform(0.1, 3.0, size=n_samples) if weighted else np.ones(n_samples)


@pytest.mark.parametrize(("learning_rate", "weighted"), [(1.0, True), (0.5, False)])
def test_rounds_are_those_of_adaboost_with_an_explicit_distribution(
    backend: Backend, learning_rate: float, weighted: bool
):
    X, y, w = noisy_data(3, weighted=weighted)
    n_rounds = 10 if backend.name.startswith("jax") else 30
    given = map(backend.asarray, (X, y, w))
    records = list(boost(*given, learning_rate=learning_rate, n_rounds=n_rounds))
    assert len(records) == n_rounds
    D = w / w.sum()
    D_1, F, product = D, np.zeros(len(y)), 1.0
    for record in records:
        h = NUMPY.to_numpy(record.stump.predict(X))
        e = D[h != y].sum()
        alpha = learning_rate * 0.5 * math.log((1 - e) / e)
        Z = (D * np.exp(-alpha * y * h)).sum()
        assert record.error == pytest.approx(e, rel=1e-9)
        assert record.stump.error == record.error
        assert record.edge == pytest.approx(0.5 - e, rel=1e-9, abs=1e-12)
        assert record.vote == pytest.approx(alpha, rel=1e-9, abs=2.0**-36)
        assert record.normaliser == pytest.approx(Z, rel=1e-9)
        if learning_rate == 1.0:
            assert record.normaliser == pytest.approx(2 * math.sqrt(e * (1 - e)), rel=1e-9)
        # No stump does better under D_t: the round's is the minimiser under float weights too.
        assert e <= fit_stump(X, y, D).error + 1e-12
        D = D * np.exp(-alpha * y * h) / Z
        F = F + alpha * h
        product *= Z
        training_error = D_1[np.where(F > 0, 1, -1) != y].sum()
        assert record.training_error == pytest.approx(training_error, rel=1e-9)
        assert record.training_bound == pytest.approx(product, rel=1e-8)
        assert record.training_error <= record.training_bound
        # After normalising, the last stump is no better than chance (at a learning rate of 1).
        if learning_rate == 1.0:
            assert D[h != y].sum() == pytest.approx(0.5, rel=1e-9)
