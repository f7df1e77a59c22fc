"""Benchmarks' data: the same everywhere, a part held out, no answer among the features."""

from __future__ import annotations

import numpy as np
import pytest

from bench import data


@pytest.mark.parametrize("name", ["breast_cancer", *data.OF_CLASSES])
def test_every_set_has_all_its_classes_and_rows_held_out(name):
    found = data.load(name, 400, 5)
    assert found.name == name
    assert found.X.dtype == found.X_test.dtype == np.float32
    assert found.y.dtype == np.int64
    assert {*found.y} == {*found.y_test} == {*range(10 if name == "ten_classes" else 2)}
    assert len(found.X) == len(found.y) > len(found.X_test) == len(found.y_test)


@pytest.mark.parametrize(
    ("name", "sha256"),
    [
        ("synthetic", "490e2f48ecdd"),
        ("noise", "9469b4845e01"),
        ("heavy", "be4cb91444fe"),
        ("mixed", "93180d3a646d"),
        ("ten_classes", "20677579b02e"),
    ],
)
def test_the_generators_are_fixed(name, sha256, tmp_path):
    stored = data.store(data.load(name, 50, 4), tmp_path / "here")
    assert stored.sha256.startswith(sha256)  # if NumPy changes this, so do the results


@pytest.mark.parametrize("family", data.FAMILIES)
def test_a_quantity_is_the_score_whose_sign_is_the_label(family):
    classes, quantity = data.load(family, 300, 5), data.load(f"{family}-quantity", 300, 5)
    threshold = 0.5 if family == "synthetic" else 0.0
    assert quantity.y.dtype == quantity.y_test.dtype == np.float64
    assert np.array_equal(quantity.X, classes.X, equal_nan=True)
    assert np.array_equal(quantity.y > threshold, classes.y == 1)
    assert np.array_equal(quantity.y_test > threshold, classes.y_test == 1)


def test_stored_data_come_back_also_in_shared_memory_that_may_be_written_to(tmp_path):
    made = data.load("noise", 50, 4)
    stored = data.store(made, tmp_path / "here")
    assert (stored.name, stored.shape) == ("noise", (50, 4))
    shared = stored.load(shared=True)
    for mine, own, theirs in zip(made[:4], stored.load()[:4], shared[:4], strict=True):
        assert type(theirs) is np.ndarray
        assert np.array_equal(own, theirs)
        assert np.array_equal(own, mine)
    shared.X[:] = 0.0
    assert np.array_equal(stored.load(shared=True).X, made.X)
