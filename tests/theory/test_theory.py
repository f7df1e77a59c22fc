"""Bounds, margins and growth functions against their definitions.

Rational and decimal arithmetic stand in for logarithms, a search over every N for one that looks
ever closer, and counting every labelling for the growth functions. Nothing here takes a formula
over from the package in the form in which it is computed there.
"""

from __future__ import annotations

import decimal
import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpustump import Member, StumpBoostingRegressor, StumpEnsemble
from gpustump.theory import (
    class_margins,
    edge_bounds,
    interval_growth,
    losses_by_round,
    margin_bound,
    normalised_margins,
    product_growth,
    share_below,
    stump_growth,
    training_bounds,
    vc_bound,
    vc_bound_if_consistent,
    weak_learning_samples,
)

ERRORS = st.lists(st.floats(0.001, 0.999), min_size=1, max_size=30)
EXACT = decimal.Context(prec=60, Emax=10**9, Emin=-(10**9))


@pytest.fixture(autouse=True)
def _decimals():
    with decimal.localcontext(EXACT):
        yield


# Bounds on the training error


@given(ERRORS)
def test_squares_of_the_training_bounds_are_products_of_rationals(errors):
    square = Fraction(1)
    for error, bound in zip(errors, training_bounds(errors), strict=True):
        square *= 4 * Fraction(error) * (1 - Fraction(error))
        assert float(Fraction(bound) ** 2 / square) == pytest.approx(1.0, rel=1e-13)


@given(st.lists(st.tuples(st.floats(0.0, 0.999), st.floats(-20, 20)), max_size=30))
def test_training_bounds_with_votes_are_products_of_normalisers(pairs):
    errors, votes = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    product = Decimal(1)
    for error, vote, bound in zip(errors, votes, training_bounds(errors, votes), strict=True):
        e, a = Decimal(error), Decimal(vote)
        product *= e * a.exp() + (1 - e) * (-a).exp()
        assert bound == pytest.approx(float(product), rel=1e-13)


@given(ERRORS)
def test_edge_bounds_are_exponentials_of_squared_edges(errors):
    squares = Fraction(0)
    for error, bound in zip(errors, edge_bounds(errors), strict=True):
        squares += (Fraction(1, 2) - Fraction(error)) ** 2
        exponent = Decimal(squares.numerator) / Decimal(squares.denominator)
        assert bound == pytest.approx(float((-2 * exponent).exp()), rel=1e-13)


def test_bounds_of_stumps_without_error_and_of_large_votes_are_numbers():
    assert training_bounds([0.25, 0.0])[1] == 0.0
    assert training_bounds([0.0], [2.0])[0] == pytest.approx(math.exp(-2.0), rel=1e-15)
    found = training_bounds([0.0, 0.5, 0.5], [2000.0, 2000.0, 0.0])
    assert found.tolist() == [0.0, math.inf, math.inf]


# Margins


@settings(max_examples=50)
@given(
    st.lists(st.tuples(st.floats(-1, 1), st.integers(0, 9)), min_size=1, max_size=20),
    st.floats(-1, 1),
)
def test_shares_are_ratios_of_counts_or_of_weights(pairs, theta):
    margins = [margin for margin, _ in pairs]
    below = [margin <= theta for margin in margins]
    assert share_below(margins, theta) == sum(below) / len(below)
    weights = [weight for _, weight in pairs]
    if any(weights):  # whole numbers, so exact in the integers that weights become
        weight_below = sum(weight for weight, counts in zip(weights, below, strict=True) if counts)
        assert share_below(margins, theta, weights) == weight_below / sum(weights)


# Growth functions


def stump_labellings(X: np.ndarray) -> set[tuple[bool, ...]]:
    """Every labelling of the rows: all thresholds, both signs."""
    found = set()
    for column in X.T:
        for threshold in (*column, -np.inf):
            left = column <= threshold
            found |= {tuple(left.tolist()), tuple((~left).tolist())}
    return found


def interval_labellings(X: np.ndarray) -> set[tuple[bool, ...]]:
    found = set()
    for column in X.T:
        for low, high in itertools.product((*column, -np.inf), repeat=2):
            inside = (low < column) & (column <= high)
            found |= {tuple(inside.tolist()), tuple((~inside).tolist())}
    return found


def product_labellings(X: np.ndarray) -> set[tuple[bool, ...]]:
    """Stumps, and every product of two stumps of different features."""
    found = stump_labellings(X)
    for first, second in itertools.combinations(X.T, 2):
        for a, b in itertools.product(first, second):
            agrees = (first <= a) == (second <= b)
            found |= {tuple(agrees.tolist()), tuple((~agrees).tolist())}
    return found


COUNTED = {
    stump_growth: stump_labellings,
    interval_growth: interval_labellings,
    product_growth: product_labellings,
}


@pytest.mark.parametrize("growth", COUNTED, ids=lambda growth: growth.__name__)
@settings(max_examples=100)
@given(shape=st.tuples(st.integers(1, 7), st.integers(1, 4)), data=st.data())
def test_no_samples_are_labelled_in_more_ways_than_the_growth_function_says(growth, shape, data):
    size = math.prod(shape)
    values = data.draw(st.lists(st.integers(0, 9), min_size=size, max_size=size))
    found = COUNTED[growth](np.asarray(values).reshape(shape))
    assert len(found) <= growth(*shape) <= 2 ** shape[0]


def most_labellings(growth, m: int, n_features: int) -> int:
    """Of many tables with features in random orders; stops where the growth function is met."""
    rng, most = np.random.default_rng(0), 0
    for _ in range(3000):
        X = np.stack([rng.permutation(m) for _ in range(n_features)], axis=1)
        most = max(most, len(COUNTED[growth](X)))
        if most >= growth(m, n_features):
            break
    return most


@pytest.mark.parametrize(
    ("growth", "m", "n_features"),
    [
        *((stump_growth, *shape) for shape in [(1, 1), (2, 1), (8, 1), (4, 2), (7, 3), (2, 9)]),
        *((interval_growth, *shape) for shape in [(1, 1), (3, 1), (4, 1), (8, 1), (3, 2), (6, 2)]),
    ],
)
def test_growth_functions_are_attained(growth, m: int, n_features: int):
    assert most_labellings(growth, m, n_features) == growth(m, n_features)


# Bounds on the error on new samples


GROWTH = {"stump": stump_growth, "interval": interval_growth, "product": product_growth}


def margin_bound_by_search(share, theta, m, delta, *, growth=None, size=None) -> Decimal:
    """Every N until eps_N alone is more than the least sum so far; no logarithm is taken apart."""
    theta, delta, best = Decimal(theta), Decimal(delta), Decimal("inf")
    for N in itertools.count(1):
        if size is None:
            union = 4 * N * (N + 1) ** 2 * Decimal(growth) ** N / delta
            deviation = (8 * union.ln() / m).sqrt()
        else:
            union = N * (N + 1) ** 2 * Decimal(size) ** N / delta
            deviation = (union.ln() / (2 * m)).sqrt()
        if deviation > best:
            break
        best = min(best, 2 * (-N * theta**2 / 8).exp() + deviation)
    return best + Decimal(share)


@pytest.mark.parametrize(("m", "theta"), [(1, 1.0), (30, 1e-9), (1000, 0.4), (30_000, 1.0)])
@pytest.mark.parametrize("of", [2, 10**30, *GROWTH])
def test_the_margin_bound_is_the_least_over_all_means(m, theta, of):
    if of in GROWTH:
        known, how = {"growth": GROWTH[of](2 * m, 5)}, {"n_features": 5, "weak_learner": of}
    else:
        known, how = {"size": of}, {"n_hypotheses": of}
    wanted = margin_bound_by_search(0.125, theta, m, 0.01, **known)
    found = margin_bound(0.125, theta, m, delta=0.01, **how)
    assert found == pytest.approx(float(wanted), rel=1e-13)


def test_margin_bounds_overflow_nowhere():
    for theta in (1.0, 1e-3, 1e-200):
        assert 0 < margin_bound(0.0, theta, 10**8, n_features=10**6) < 3
        assert 0 < margin_bound(0.0, theta, 10**30, n_hypotheses=2**2000) < 3
    assert margin_bound(0.0, 1.0, 10**12, n_features=1) < 0.01


def growth_of_votes(T: int, m: int, growth: int) -> Decimal:
    """G(m): every labelling of m samples, or Sauer's lemma for each choice of T labellings."""
    every = Decimal(2) ** m
    return min(every, (Decimal(1).exp() * m / T) ** T * Decimal(growth) ** T) if m >= T else every


@pytest.mark.parametrize("weak_learner", GROWTH)
@given(st.sampled_from([1, 3, 50]), st.integers(1, 10**5))
def test_vc_bounds_are_the_theorems(weak_learner, T, m):
    growth = GROWTH[weak_learner](2 * m, 4)
    G = growth_of_votes(T, 2 * m, growth)
    uniform = (8 * (4 * G / Decimal("0.1")).ln() / m).sqrt()
    found = vc_bound(0.25, T, m, 4, delta=0.1, weak_learner=weak_learner)
    assert found == pytest.approx(0.25 + float(uniform), rel=1e-13)
    consistent = (2 * G / Decimal("0.1")).ln() / Decimal(2).ln() * 2 / m
    found = vc_bound_if_consistent(T, m, 4, delta=0.1, weak_learner=weak_learner)
    assert found == pytest.approx(float(consistent), rel=1e-13)


# Samples for weak learning


def is_enough(m: int, gamma: float, n_features: int, delta: float) -> bool:
    eps = Decimal(1) / 6 - Decimal(gamma)
    return 4 * stump_growth(2 * m, n_features) * (-m * (eps / 2) ** 2 / 8).exp() <= Decimal(delta)


@settings(max_examples=60)
@given(st.floats(1e-6, 0.16), st.integers(1, 10**6), st.floats(1e-9, 0.999))
def test_the_samples_for_weak_learning_are_the_least_that_are_enough(gamma, n_features, delta):
    m = weak_learning_samples(gamma, n_features=n_features, delta=delta)
    assert is_enough(m, gamma, n_features, delta)
    assert all(is_enough(m + more, gamma, n_features, delta) for more in (1, 2, 10, m, 10 * m))
    assert not any(is_enough(less, gamma, n_features, delta) for less in {m - 1, m // 2, 1, 2, 9})


# What is refused


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: training_bounds([0.2, 1.0]), r"errors must be in \[0, 1\); got 1 at index 1"),
        (lambda: training_bounds([math.nan]), "errors must be .* got nan at index 0"),
        (lambda: training_bounds([[0.2]]), "errors must have one dimension"),
        (lambda: training_bounds(["a"]), "errors has dtype"),
        (lambda: training_bounds([0.2], [1.0, 2.0]), "must have the same length; got 1 and 2"),
        (lambda: training_bounds([0.2], [math.inf]), "votes must be within .* got inf at index 0"),
        (lambda: edge_bounds([-0.1]), "errors must be in"),
        (lambda: share_below([]), "margins is empty"),
        (lambda: share_below([0.0, math.nan]), "margins contains NaN, the first at index 1"),
        (lambda: share_below([[0.0]]), r"margins must have one dimension.* margins\[:, k\]"),
        (lambda: share_below([0.0], math.inf), "theta must be a finite number"),
        (lambda: share_below([0.0], 0.0, [-1.0]), "negative weights"),
        (lambda: stump_growth(0, 1), "n_samples must be at least 1"),
        (lambda: interval_growth(1, 0), "n_features must be at least 1"),
        (lambda: margin_bound(1.1, 0.5, 9, n_features=1), r"share must be in \[0, 1\]; got 1.1"),
        (lambda: margin_bound(0.1, 0.0, 9, n_features=1), r"theta must be in \(0, 1\]; got 0.0"),
        (lambda: margin_bound(0.1, 0.5, 9), "exactly one of n_hypotheses and n_features"),
        (lambda: margin_bound(0.1, 0.5, 9, n_hypotheses=2, n_features=1), "exactly one of"),
        (lambda: margin_bound(0.1, 0.5, 9, n_hypotheses=1), "n_hypotheses must be at least 2"),
        (lambda: margin_bound(0, 1, 9, n_features=1, delta=1), r"delta must be in \(0, 1\)"),
        (lambda: margin_bound(0, 1, 9, n_features=1, weak_learner="tree"), "'product'; got"),
        (lambda: vc_bound(-0.1, 1, 1, 1), "training_error must be in"),
        (lambda: vc_bound(0.1, 0, 1, 1), "n_rounds must be at least 1"),
        (lambda: vc_bound_if_consistent(1, 1, 1, delta=0), "delta must be in"),
        (lambda: weak_learning_samples(1 / 6), "gamma must be below 1/6"),
        (lambda: weak_learning_samples(0.0), "gamma must be in"),
    ],
)
def test_what_is_wrong_is_refused_by_name(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_a_quantity_has_neither_margins_nor_losses_of_classes():
    X, y = [[1.0], [2.0]], [0.5, 1.5]
    fitted = StumpBoostingRegressor(n_estimators=1, device="cpu").fit(X, y)
    for call in (normalised_margins, class_margins, losses_by_round):
        with pytest.raises(TypeError, match="this model predicts a quantity"):
            call(fitted, X, y)


def test_a_label_that_the_model_does_not_know_is_named():
    model = StumpEnsemble((Member((), ()),), 1, ("no", "yes"))
    with pytest.raises(ValueError, match=r"'maybe' at index 1, .* 'no', 'yes'"):
        normalised_margins(model, [[0.0], [1.0]], ["no", "maybe"])
    with pytest.raises(ValueError, match="y holds 0 at index 0"):
        normalised_margins(StumpEnsemble((Member((), ()),), 1), [[0.0]], [0])
    with pytest.raises(ValueError, match="inconsistent numbers of samples: 1 and 2"):
        normalised_margins(model, [[0.0]], ["no", "yes"])
