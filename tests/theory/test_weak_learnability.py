"""Interval functions, and the theorem that stumps learn them weakly: an error of at most 1/3."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from backends import Backend
from hypothesis import given
from hypothesis import strategies as st

from gpustump import boost, fit_stump
from gpustump.theory import edge_bounds
from gpustump.theory.weak_learnability import (
    KINDS,
    IntervalFunction,
    make_intervals,
    random_distribution,
)


@st.composite
def weighted_intervals(draw: st.DrawFn):
    """Whole values with ties, a function with both labels on them, whole weights, some of them 0.

    In whole weights the reported error is exact.
    """
    n_samples, n_features = draw(st.integers(2, 14)), draw(st.integers(1, 3))
    values = st.lists(
        st.integers(0, 9), min_size=n_samples * n_features, max_size=n_samples * n_features
    )
    X = np.asarray(draw(values), dtype=np.float64).reshape(n_samples, n_features)
    low, high = sorted(draw(st.tuples(st.integers(0, 9), st.integers(0, 9))))
    function = IntervalFunction(
        draw(st.integers(0, n_features - 1)), low, high, draw(st.sampled_from([-1, 1]))
    )
    weights = st.lists(st.integers(0, 20), min_size=n_samples, max_size=n_samples)
    return X, function, np.asarray(draw(weights))


def exact_error(predicted, y, weights) -> Fraction:
    wrong = sum(
        int(w) for h, label, w in zip(predicted, y, weights, strict=True) if int(h) != int(label)
    )
    return Fraction(wrong, int(weights.sum()))


@given(weighted_intervals())
def test_under_any_distribution_some_stump_errs_on_a_third_at_most(sample):
    X, function, weights = sample
    y = function.labels(X)
    if len(set(y[weights > 0].tolist())) < 2:
        return  # one label only: a constant has no error at all
    stump = fit_stump(X, y, weights)
    error = exact_error(stump.predict(X), y, weights)
    assert error <= Fraction(1, 3)
    assert stump.error == error.numerator / error.denominator
    unit_weights = [int(weights[function.regions(X) == region].sum()) for region in (0, 1, 2)]
    assert error <= Fraction(min(unit_weights), sum(unit_weights))


@pytest.mark.parametrize("seed", range(5))
def test_with_a_third_of_the_weight_on_each_region_no_stump_does_better(seed: int):
    X, y, function = make_intervals(40, random_state=seed)
    regions = function.regions(X)
    sizes = np.bincount(regions)
    weights = (math.prod(sizes.tolist()) // sizes)[regions]  # whole, and as much for each region
    assert fit_stump(X, y, weights).error == 1 / 3


@given(st.integers(3, 80), st.integers(0, 2**32 - 1))
def test_boosting_learns_every_interval_function_with_edges_of_a_sixth(n_samples, seed):
    X, y, _ = make_intervals(n_samples, 2, random_state=seed)
    most = math.floor(18 * math.log(n_samples)) + 1  # where exp(-2 * T / 36) is below 1/n_samples
    rounds = list(boost(X, y, n_rounds=most))
    assert all(record.error <= 1 / 3 for record in rounds)
    assert all(r.training_error <= r.training_bound * (1 + 1e-13) for r in rounds)
    by_sixths = np.exp(-np.arange(1, len(rounds) + 1) / 18)
    assert (edge_bounds([r.error for r in rounds]) <= by_sixths * (1 + 1e-13)).all()
    assert rounds[-1].training_error == 0.0


# Functions


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("polarity", [1, -1])
def test_labels_are_the_definition_in_every_library(backend: Backend, dtype: str, polarity: int):
    X = np.asarray([[9, value] for value in (-3, 0, 1, 2, 5, 7)]).astype(dtype)
    function = IntervalFunction(1, 0.0, 2.5, polarity)
    labels = function.labels(backend.asarray(X))
    assert backend.owns(labels)
    assert backend.dtype_of(labels) == "int64"
    wanted = [polarity if 0.0 <= value <= 2.5 else -polarity for value in X[:, 1].tolist()]
    assert backend.to_numpy(labels).tolist() == wanted


def test_missing_values_and_ends_between_two_float32_values_are_outside(backend: Backend):
    X = np.asarray([[math.nan], [math.inf], [-math.inf], [0.5]])
    assert backend.to_numpy(
        IntervalFunction(0, 0.0, 1.0, 1).regions(backend.asarray(X))
    ).tolist() == [2, 2, 0, 1]
    tenth = backend.asarray(np.asarray([[np.float32(0.1)]]))  # a little above 0.1
    assert backend.to_numpy(IntervalFunction(0, 0.0, 0.1, 1).labels(tenth)).tolist() == [-1]
    assert backend.to_numpy(IntervalFunction(0, 0.1, 1.0, 1).labels(tenth)).tolist() == [1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: IntervalFunction(0, 2.0, 1.0, 1), "low must not be above high; got 2.0 and 1.0"),
        (lambda: IntervalFunction(0, math.nan, 1.0, 1), "low must not be above high"),
        (lambda: IntervalFunction(0, 0.0, 1.0, 0), "polarity must be"),
        (lambda: IntervalFunction(-1, 0.0, 1.0, 1), "feature must be at least 0"),
        (lambda: IntervalFunction(2, 0.0, 1.0, 1).labels([[0.0, 0.0]]), "at least 3 are needed"),
        (lambda: make_intervals(10, noise=1.5), r"noise must be in \[0, 1\]; got 1.5"),
        (
            lambda: random_distribution(IntervalFunction(0, 0, 1, 1), [[0.0]], kind="heavy"),
            "kind must be one of equal, .*; got 'heavy'",
        ),
    ],
)
def test_nonsense_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# Samples


@given(st.integers(1, 50), st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_samples_lie_in_every_region_that_they_are_enough_for(n_samples, n_features, seed):
    X, y, function = make_intervals(n_samples, n_features, random_state=seed)
    assert X.shape == (n_samples, n_features)
    assert (y == function.labels(X)).all()
    assert set(function.regions(X).tolist()) == [{1}, {1, 2}, {0, 1, 2}][min(n_samples, 3) - 1]


def test_noise_flips_each_label_with_its_probability():
    def flipped(noise: float) -> float:
        X, y, function = make_intervals(4000, random_state=1, noise=noise)
        return float(np.mean(y != function.labels(X)))

    assert flipped(0.0) == 0.0
    assert flipped(1.0) == 1.0
    assert flipped(0.3) == pytest.approx(0.3, abs=0.05)  # seven standard deviations


@pytest.mark.parametrize("kind", [*KINDS, None])
def test_distributions_sum_to_one(kind: str | None):
    for seed in range(10):
        X, _, function = make_intervals(25, 2, random_state=seed)
        D = random_distribution(function, X, kind=kind, random_state=seed)
        assert D.shape == (25,)
        assert (D >= 0).all()
        assert math.fsum(D) == pytest.approx(1.0, rel=1e-12)
        again = random_distribution(function, X, kind=kind, random_state=seed)
        assert (again == D).all()


def test_thirds_give_each_region_a_third_and_peaked_is_peaked():
    X, _, function = make_intervals(200, random_state=0)
    regions = function.regions(X)
    D = random_distribution(function, X, kind="thirds", random_state=0)
    shares = [math.fsum(D[regions == region]) for region in (0, 1, 2)]
    np.testing.assert_allclose(shares, 1 / 3, rtol=1e-12)
    peaked = random_distribution(function, X, kind="peaked", random_state=0)
    spread = random_distribution(function, X, kind="spread", random_state=0)
    two = IntervalFunction(0, 0.0, 1.0, 1)  # none of its samples are below
    D = random_distribution(two, [[0.5], [2.0], [3.0]], kind="thirds", random_state=0)
    assert D[0] == pytest.approx(0.5, rel=1e-12)
    assert np.sort(peaked)[-20:].sum() > 0.9 > 0.5 > np.sort(spread)[-20:].sum()
