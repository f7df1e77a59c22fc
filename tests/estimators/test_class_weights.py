"""Weights of classes: the fit with multiplied sample weights, as scikit-learn multiplies them."""

from __future__ import annotations

import numpy as np
import pytest
from classifiers import CASES, KINDS, drawn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.utils.class_weight import compute_class_weight, compute_sample_weight

from gpustump.data.weights import check_class_weight, class_factors

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
