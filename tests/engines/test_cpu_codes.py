"""Codes are what the scan takes them for: slices of the sorted order, known to be mixed or not."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba")

from hypothesis import given, settings
from hypothesis import strategies as st

from gpustump.engines.cpu.table import bundles, codes, cuts
from gpustump.engines.cpu.table.codes import CodedTable, Room
from gpustump.engines.cpu.table.columns import PART_BITS
from gpustump.engines.reference.table import prepare as sorted_columns
from gpustump.engines.threads import Team


def drawn(seed: int, n_samples: int, kind: str, dtype: str) -> np.ndarray:
    random = np.random.default_rng(seed)
    x = {
        "normal": random.normal(size=n_samples),
        "few": random.integers(0, 5, size=n_samples).astype(float),
        "heavy": np.where(random.random(n_samples) < 0.6, 0.0, random.normal(size=n_samples)),
        "wide": 10.0 ** random.uniform(-30, 30, size=n_samples) * random.choice([-1, 1], n_samples),
        "whole": random.integers(-500, 500, size=n_samples).astype(float),
    }[kind]
    x[random.random(n_samples) < random.choice([0.0, 0.1])] = np.nan
    with np.errstate(over="ignore"):
        return x.astype(dtype)[:, np.newaxis]


def bins_of(made: CodedTable, feature: int) -> np.ndarray:
    """Each sample's bin, by way of the column that the feature is in."""
    slots = made.bundles.by_code(feature, np.arange(made.layout.n_bins[feature] + 1))
    shift = PART_BITS if made.bundles.is_wide[feature] else 0
    return slots[made.codes_of(feature) >> shift]


@settings(max_examples=80)
@given(
    st.integers(0, 10**6),
    st.integers(1, 1500),
    st.sampled_from(["normal", "few", "heavy", "wide", "whole"]),
    st.sampled_from(["float16", "float32", "float64"]),
    st.integers(1, 1022),
)
def test_bins_are_slices_of_the_sorted_order(seed, n_samples, kind, dtype, max_cuts):
    X = drawn(seed, n_samples, kind, dtype)
    made = codes.prepare(X, None, Team(1), room=Room(patience=0), max_cuts=max_cuts)
    if made.bundles.is_wide[0]:
        assert made.parted.prepare(np.asarray([0]), Team(1)).all()
    x, bins, n_bins = X[:, 0], bins_of(made, 0), int(made.layout.n_bins[0])
    missing = np.isnan(x)
    assert (bins[missing] == n_bins).all()
    assert int(made.n_missing[0]) == missing.sum()
    assert n_bins <= max_cuts + 1
    counts = np.bincount(bins[~missing], minlength=n_bins)
    assert (counts > 0).all()
    assert made.layout.offset[:n_bins].tolist() == (np.cumsum(counts) - counts).tolist()
    largest = -np.inf
    for b in range(n_bins):
        inside = x[bins == b]
        assert b == 0 or inside.min() > largest
        largest = inside.max()
        assert made.layout.has_inner_split[b] or inside.min() == inside.max() == made.high[b]
        if made.has_parts(0):
            parts = made.codes_of(0)[bins == b][np.argsort(inside)].astype(int)
            assert (np.diff(parts) >= 0).all()
            stored = made.parted.bin(0, b)
            assert (np.diff(made.codes_of(0)[stored].astype(int)) >= 0).all()
            assert sorted(x[stored]) == sorted(inside)
        held = x[made.bins.sorted_bin(0, b)]
        assert held.tolist() == np.sort(inside).tolist()
    reference = sorted_columns(X)
    for position in range(int((~missing).sum())):
        assert made.threshold(0, position) == reference.threshold(0, position) or (
            position + 1 < n_samples and np.sort(x)[position] == np.sort(x)[position + 1]
        )


@given(st.lists(st.integers(1, 50), min_size=2, max_size=300), st.integers(1, 254))
def test_cuts_are_increasing_values_and_the_largest_is_one(counts, limit):
    chosen = np.empty(max(limit, 1), dtype=np.int64)
    n_chosen = cuts.spread(np.asarray(counts, dtype=np.int64), limit, chosen)
    found = chosen[:n_chosen].tolist()
    assert 1 <= n_chosen <= limit
    assert found == sorted(set(found))
    assert found[-1] == len(counts) - 1


@pytest.mark.parametrize("budget", [0, 20_000, None])
def test_no_more_sorted_bins_are_kept_than_allowed(budget):
    random = np.random.default_rng(1)
    X = random.normal(size=(3_000, 6))
    made = codes.prepare(X, None, Team(1), room=Room(sorted_bytes=budget))
    for feature in [0, 1, 2, 3, 4, 5, 0, 5, 2]:
        every = np.arange(made.layout.n_bins[feature])
        order, starts, _ = made.bins.sorted_bins(feature, every)
        assert made.bins.are_sorted(feature).all()
        samples = order & 0x7FFFFFFF
        assert samples.tolist() == np.argsort(X[:, feature], kind="stable").tolist()
        assert starts.tolist() == made.layout.offset[made.layout.slots(feature)].tolist()
    if budget is not None:
        assert made.bins._n_bytes <= max(budget, 4 * len(X))


def test_a_bundle_holds_up_to_256_combinations():
    every = np.asarray(np.meshgrid(*[[0, 1]] * 9)).reshape(9, -1).T.astype(np.float32)
    made = codes.prepare(every, None, Team(1))
    assert made.bundles.column.tolist() == [0] * 8 + [1]
    one_hot = np.eye(300, dtype=np.float32)[np.arange(900) % 300]
    made = codes.prepare(one_hot, None, Team(1))
    assert made.columns.n_columns <= -(-300 // bundles._RUN)
