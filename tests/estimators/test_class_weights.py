"""Weights of classes: the fit with multiplied sample weights, as scikit-learn multiplies them."""

from __future__ import annotations

import numpy as np
import pytest
from backends import Backend
from classifiers import CASES, KINDS, drawn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils.class_weight import compute_class_weight, compute_sample_weight

from gpustump.data.class_weights import check_class_weight, class_factors

RNG = np.random.default_rng(0)
WEIGHTS = RNG.integers(0, 4, size=120) / 3.0  # some are zero
CHOICES = ["balanced", {0: 3.0, 1: 0.25}, {1: 2}, {}, {0: 1, 1: 7, 2: 0.5, "none": 4.0}]


@pytest.mark.parametrize("class_weight", CHOICES, ids=str)
@pytest.mark.parametrize(("kind", "n_classes"), CASES)
def test_the_model_is_that_of_the_sample_weights_which_scikit_learn_multiplies(
    kind, n_classes, class_weight
):
    X, y = drawn(n_classes)
    y = np.where(np.arange(120) % 3 == 0, 0, y)  # the classes differ in size
    for weights in (None, WEIGHTS):
        product = compute_sample_weight(class_weight, y) * (1.0 if weights is None else weights)
        expected = KINDS[kind](n_estimators=6).fit(X, y, product)
        found = KINDS[kind](n_estimators=6, class_weight=class_weight).fit(X, y, weights)
        assert found.model_.digest() == expected.model_.digest()
        assert found.rounds_ == expected.rounds_


@pytest.mark.parametrize(("kind", "n_classes"), [("newton-shared", 3)])
def test_every_backend_gets_the_same_model(backend: Backend, kind, n_classes):
    X, y = drawn(n_classes, n_samples=60)
    y = np.where(np.arange(60) % 3 == 0, 0, y)
    for class_weight, weights in (("balanced", None), ({0: 0.1, 1: 3.0}, WEIGHTS[:60])):
        options = {"n_estimators": 3, "class_weight": class_weight}
        plain = KINDS[kind](**options).fit(X, y, weights)
        own = None if weights is None else backend.asarray(weights)
        found = KINDS[kind](**options).fit(backend.asarray(X), backend.asarray(y), own)
        assert found.model_.digest() == plain.model_.digest()


def test_labels_may_be_text_or_booleans_and_keys_of_a_dict_any_equal_value():
    X, y = drawn(2)
    plain = KINDS["newton"](n_estimators=3, class_weight={0: 1.0, 1: 5.0}).fit(X, y)
    rounds = plain.rounds_
    for labels, class_weight in (
        (np.asarray(["no", "yes"])[y], {"yes": 5}),
        (np.asarray(["1", "2"])[y], {"2": 5}),
        (y.astype(bool), {True: np.float32(5)}),
        (y.astype(float), {np.int64(1): 5}),
        (y.astype(np.uint8).tolist(), {1.0: 5.0, 0: 1}),
    ):
        found = KINDS["newton"](n_estimators=3, class_weight=class_weight).fit(X, labels)
        assert found.rounds_ == rounds


def test_early_stopping_watches_multiplied_weights_and_a_warm_start_goes_on_with_them():
    X, y = drawn(2, n_samples=200)
    watching = {"n_iter_no_change": 3, "random_state": 1, "validation_fraction": 0.3}
    product = compute_sample_weight("balanced", y)
    whole = KINDS["newton"](n_estimators=30, **watching).fit(X, y, product)
    parts = KINDS["newton"](
        n_estimators=2, warm_start=True, class_weight="balanced", **watching
    ).fit(X, y)
    parts.set_params(n_estimators=30).fit(X, y)
    assert parts.model_.digest() == whole.model_.digest()
    assert parts.held_out_scores_ == whole.held_out_scores_


def test_a_class_of_weight_zero_is_no_class():
    X, y = drawn(3)
    found = KINDS["real"](n_estimators=3, class_weight={1: 0}).fit(X, y)
    assert found.classes_.tolist() == [0, 2]
    assert found.rounds_ == KINDS["real"](n_estimators=3).fit(X[y != 1], y[y != 1]).rounds_
    with pytest.warns(UserWarning, match="y holds one class only, 2"):
        alone = KINDS["real"](class_weight={0: 0, 1: 0}).fit(X, y)
    assert alone.predict(X).tolist() == [2] * len(X)
    with pytest.raises(ValueError, match="sample_weight times class_weight is zero for every"):
        KINDS["real"](class_weight={0: 0, 1: 0}).fit(X, y, np.where(y == 2, 0.0, 1.0))


BAD = [
    ("balance", ValueError, "class_weight must be None, 'balanced' or a dict .*; got 'balance'"),
    ([1, 2], TypeError, r"class_weight must be None, 'balanced' or a dict .*; got \[1, 2\]"),
    (2.0, TypeError, "class_weight must be None, 'balanced' or a dict .*; got 2.0"),
    ({0: -1}, ValueError, r"class_weight\[0\] must be a finite number of at least 0; got -1"),
    ({"a": np.nan}, ValueError, r"class_weight\['a'\] must be .*; got nan"),
    ({0: "1"}, TypeError, r"class_weight\[0\] must be .*; got '1'"),
    ({0: 1, 7: 2}, ValueError, "class_weight names 7, which y does not hold, but not 1, which y"),
    ({1: 1e300}, ValueError, "sample_weight times class_weight contains infinite weights"),
]


@pytest.mark.parametrize(("class_weight", "error", "message"), BAD, ids=str)
def test_a_bad_class_weight_is_named_and_leaves_the_fitted_model_alone(
    class_weight, error, message
):
    X, y = drawn(2)
    fitted = KINDS["discrete"](n_estimators=2).fit(X, y)
    before = fitted.model_.digest()
    fitted.set_params(class_weight=class_weight)
    with pytest.raises(error, match=message):
        fitted.fit(X, y, np.full(120, 1e10))
    assert fitted.model_.digest() == before


KEYS = st.integers(-2, 6)


@settings(max_examples=60)
@given(
    st.lists(KEYS, min_size=1, max_size=30),
    st.dictionaries(KEYS, st.floats(0, 1e6), max_size=4) | st.just("balanced"),
)
def test_factors_are_scikit_learn_s_and_so_are_the_refusals(y, class_weight):
    classes, counts = np.unique(y, return_counts=True)
    try:
        expected = compute_class_weight(class_weight, classes=classes, y=np.asarray(y))
    except ValueError:
        with pytest.raises(ValueError, match="which y does not hold"):
            class_factors(check_class_weight(class_weight), classes, counts.tolist())
    else:
        found = class_factors(check_class_weight(class_weight), classes, counts.tolist())
        np.testing.assert_array_equal(found, expected)
