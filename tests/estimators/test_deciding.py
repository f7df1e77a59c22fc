"""The parameters that decide a model, as files hold them."""

from __future__ import annotations

import json

import numpy as np

from gpustump import AdaBoostClassifier, GlassBoxClassifier, LogitBoostClassifier
from gpustump.estimators.deciding import deciding_parameters


def test_where_a_model_is_trained_decides_nothing() -> None:
    plain = LogitBoostClassifier()
    elsewhere = LogitBoostClassifier(device="cpu", n_jobs=1, verbose=2, max_memory="1 GB")
    assert deciding_parameters(plain) == deciding_parameters(elsewhere)


def test_every_value_is_one_that_json_has() -> None:
    estimator = AdaBoostClassifier(
        n_estimators=np.int64(7),
        learning_rate=np.float64(0.5),
        monotonic_cst=np.asarray([0, 1, -1]),
        class_weight={1: 2.0, "b": 1.0, "a": np.float32(0.5)},
        categorical_features=np.asarray([True, False, False]),
    )
    found = deciding_parameters(estimator)
    assert json.loads(json.dumps(found)) == found
    assert found["n_estimators"] == 7
    assert found["monotonic_cst"] == [0, 1, -1]
    assert found["class_weight"] == [[1, 2.0], ["a", 0.5], ["b", 1.0]]


def test_equal_arguments_in_other_forms_are_equal() -> None:
    one = LogitBoostClassifier(monotonic_cst=np.asarray([1, 0]), class_weight={0: 1, 1: 2})
    other = LogitBoostClassifier(monotonic_cst=(1, 0), class_weight={1: 2, 0: 1})
    assert deciding_parameters(one) == deciding_parameters(other)
    assert deciding_parameters(one) != deciding_parameters(GlassBoxClassifier())
