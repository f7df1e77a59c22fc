"""A fingerprint tells whether two tables are the same, and depends on nothing else."""

from __future__ import annotations

import hashlib
import itertools
import json

import numpy as np
import pytest
from backends import Backend
from hypothesis import given
from hypothesis import strategies as st

from gpustump.data.fingerprint import (
    LEAF_ROWS,
    Fingerprint,
    all_weights,
    fingerprint_of,
    joined,
    leaves_of,
)


def table(n_rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(n_rows, 3)).astype(np.float32)
    X[draw.random(X.shape) < 0.1] = np.nan
    return X, draw.integers(0, 3, n_rows), draw.random(n_rows)


def as_described(X: np.ndarray, y: np.ndarray, weights: np.ndarray) -> str:
    """The digest as the module's docstring describes it, value by value."""
    classes, numbers = np.unique(y, return_inverse=True)
    columns = [*X.T, numbers, weights]
    whole = hashlib.sha256(str(len(X)).encode())
    for place, column in enumerate(columns):
        own = hashlib.sha256()
        for start in range(0, len(X), LEAF_ROWS):
            leaf = b"".join(
                np.float64(np.nan if v != v else (0.0 if v == 0 else v)).astype("<f8").tobytes()
                for v in column[start : start + LEAF_ROWS]
            )
            own.update(hashlib.sha256(leaf).digest())
        if place == len(columns) - 2:
            own.update(json.dumps(classes.tolist()).encode())
        whole.update(own.digest())
    return whole.hexdigest()


@pytest.mark.parametrize("n_rows", [2, LEAF_ROWS - 1, LEAF_ROWS, 2 * LEAF_ROWS + 17])
def test_the_digest_is_the_described_one(n_rows: int) -> None:
    X, y, weights = table(n_rows)
    y[:2] = 0, 1
    assert fingerprint_of(X, y, weights).digest == as_described(X, y, weights)


@given(st.lists(st.integers(0, 3 * LEAF_ROWS), max_size=5))
def test_partitions_have_the_fingerprint_of_the_whole(cuts: list[int]) -> None:
    X, y, weights = table(3 * LEAF_ROWS + 5)
    ends = [0, *sorted(cuts), len(X)]
    parts = [leaves_of(X[a:b], y[a:b], weights[a:b], a) for a, b in itertools.pairwise(ends)]
    assert joined(parts, (0, 1, 2)) == fingerprint_of(X, y, weights)


def test_every_library_gives_one_fingerprint(backend: Backend) -> None:
    X, y, weights = table(300)
    found = fingerprint_of(*map(backend.asarray, (X, y, weights)))
    assert found == fingerprint_of(X, y, weights)


def test_what_does_not_change_a_value_does_not_change_the_fingerprint() -> None:
    X, y, _ = table(500)
    X[0, 0] = 0.0
    before = fingerprint_of(X, y)
    other_zero = X.copy()
    other_zero[0, 0] = -0.0
    other_nan = X.copy()
    other_nan[np.isnan(X)] = -np.float32(np.nan)
    for same in (X.astype(np.float64), np.asfortranarray(X), other_zero, other_nan):
        assert fingerprint_of(same, y) == before
    assert fingerprint_of(X, y.astype(float), np.ones(500)) == before


def test_each_change_is_named() -> None:
    X, y, weights = table(5000)
    before = fingerprint_of(X, y, weights)
    cell, label, weight = X.copy(), y.copy(), weights.copy()
    cell[4999, 1] = np.nextafter(np.float32(7), np.float32(8))
    label[4321] = (label[4321] + 1) % 3
    weight[0] = np.nextafter(weight[0], 2)
    of_target, of_weights = "the target differs", "the sample weights differ, or the initial scores"
    for other, told in (
        ((X, y, weights), []),
        ((cell, y, weights), ["the values of feature 'b' differ"]),
        ((X, label, weight), [of_target, of_weights]),
        ((X[:-1], y[:-1], weights[:-1]), ["the table has 4999 rows instead of 5000"]),
        ((X[:, :2], y, weights), ["the table has 2 features instead of 3"]),
        ((X, y.astype(str), weights), [of_target]),
    ):
        assert before.differences(fingerprint_of(*other), ("a", "b", "c")) == told


def test_a_file_gives_back_the_fingerprint_or_is_refused() -> None:
    found = fingerprint_of(*table(20))
    details = json.loads(json.dumps(found.as_details()))
    assert Fingerprint.from_details(details) == found
    for part, value in [
        *(("rows", own) for own in (True, 2.0)),
        ("columns", "0" * 16),
        ("target", 7),
    ]:
        with pytest.raises(ValueError, match="a fingerprint"):
            Fingerprint.from_details(details | {part: value})
    for wrong in (list(details), details | {"more": 1}):
        with pytest.raises(ValueError, match="a fingerprint must be an object"):
            Fingerprint.from_details(wrong)
    assert all_weights([0.0, 2.0, 1e-320], np.zeros((3, 1))).tolist() == [0.0, 2.0, 0.0]
