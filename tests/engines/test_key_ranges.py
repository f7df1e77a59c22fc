"""Samples by ranges of keys: what a shard answers from is what brute force finds."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba")

from hypothesis import given, settings
from hypothesis import strategies as st
from spread_tables import any_values

from gpustump import arrays
from gpustump.engines.cpu import codes
from gpustump.engines.cpu.cuts import Cuts
from gpustump.engines.cpu.key_ranges import (
    KeyRanges,
    KnownBins,
    grouped,
    keys_of,
    regions_of,
    samples_of_bins,
    signed_unit_sums,
    unit_sums,
)
from gpustump.engines.cpu.source_table import Source
from gpustump.engines.cpu.terms import Terms
from gpustump.engines.threads import Team
from gpustump.learners.hypothesis import Partition, regions
from gpustump.learners.interval import Interval
from gpustump.learners.split import Split

DTYPES = st.sampled_from(["float32", "float64"])
SEEDS = st.integers(0, 2**32 - 1)


def as_python(key: int, low: int, shift: int) -> int:
    """The number of a unit, by integers of any size."""
    return int(key) - int(low) if shift < 0 else (int(key) - int(low)) >> int(shift)


@st.composite
def ranges_and_samples(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, KeyRanges]:
    """Keys of samples, the bin of each, and ranges of keys that do not overlap in a bin."""
    n_bins = draw(st.integers(1, 4))
    key = st.integers(-(2**63) + 1, 2**63 - 2) | st.integers(-20, 20)
    first, low, high, shift = [0], [], [], []
    for _ in range(n_bins):
        ends = sorted(draw(st.lists(key, min_size=0, max_size=8, unique=True)))
        for start, end in zip(ends[::2], ends[1::2], strict=False):
            width = (end - start).bit_length()
            low.append(start)
            high.append(end)
            shift.append(draw(st.sampled_from([-1, max(0, width - 3), max(0, width - 7)])))
        first.append(len(low))
    n_samples = draw(st.integers(0, 60))
    near = [k + by for k in [*low, *high] for by in (-1, 0, 1)]
    keys = draw(
        st.lists(key | st.sampled_from(near or [0]), min_size=n_samples, max_size=n_samples)
    )
    owner = draw(st.lists(st.integers(0, n_bins - 1), min_size=n_samples, max_size=n_samples))
    about = KeyRanges(*(np.asarray(own, dtype=np.int64) for own in (first, low, high, shift)))
    return np.asarray(keys, dtype=np.int64), np.asarray(owner, dtype=np.int64), about


@given(ranges_and_samples())
def test_samples_are_put_into_the_units_that_their_keys_name(drawn):
    keys, owner, about = drawn
    in_order = np.argsort(owner, kind="stable")
    keys, owner = keys[in_order], owner[in_order]
    ends = np.cumsum(np.bincount(owner, minlength=len(about.first) - 1))
    units, unit = grouped(keys, ends, about)
    expected: dict[tuple[int, ...], list[int]] = {}
    for i, (key, bin_) in enumerate(zip(keys.tolist(), owner.tolist(), strict=True)):
        own = range(about.first[bin_], about.first[bin_ + 1])
        inside = [r for r in own if about.low[r] <= key <= about.high[r]]
        if not inside:
            assert unit[i] == -1
            continue
        (r,) = inside
        by_value = bool(about.shift[r] < 0)
        number = as_python(key, about.low[r], about.shift[r])
        expected.setdefault((r, number, *[i] * by_value), []).append(i)
    assert len(units.size) == len(expected)
    assert (np.diff(units.range) >= 0).all()
    for (r, number, *_), samples in expected.items():
        (u,) = set(unit[samples].tolist())
        assert (units.range[u], int(units.number[u].view(np.uint64))) == (r, number)
        assert units.size[u] == len(samples)
        assert (units.low[u], units.high[u]) == (keys[samples].min(), keys[samples].max())


@given(SEEDS, st.integers(0, 50), st.integers(1, 4), st.booleans())
def test_sums_over_units_are_those_of_their_samples(seed, n_inside, n_outputs, has_second):
    random = np.random.default_rng(seed)
    first = random.integers(-(2**55), 2**55, size=(n_outputs, 60))
    second = random.integers(0, 2**55, size=(n_outputs if has_second else 0, 60))
    samples = random.integers(0, 60, size=n_inside)
    unit = random.integers(-1, 5, size=n_inside)
    terms = Terms(first, second if has_second else second.reshape(0, 0))
    expected = []
    for k in range(n_outputs):
        planes = [np.maximum(first[k], 0), np.maximum(-first[k], 0), *second[k : k + 1]]
        expected += [[own[samples[unit == u]].sum() for u in range(5)] for own in planes]
    assert unit_sums(terms, samples, unit, 5).tolist() == expected
    signed = random.normal(size=60) * 2.0 ** random.integers(-3, 50, size=60)
    whole = np.sign(signed) * np.ceil(np.abs(signed))
    found = signed_unit_sums(signed, samples, unit, 5)
    for plane, sign in zip(found, (1, -1), strict=True):
        own = np.maximum(sign * whole, 0).astype(np.int64)
        assert plane.tolist() == [own[samples[unit == u]].sum() for u in range(5)]


@settings(max_examples=60)
@given(st.data(), DTYPES, st.booleans(), st.sampled_from([0, 1, 100]))
def test_all_samples_of_some_bins_are_found(data, dtype, is_crowded, patience):
    n_features = data.draw(st.integers(1, 3))
    columns = [data.draw(any_values(dtype)) for _ in range(n_features)]
    n = min(map(len, columns))
    X = np.stack([own[:n] for own in columns], axis=1)
    keys, missing = arrays.order_keys(X), arrays.missing_key(dtype)
    cuts = []
    for j in range(n_features):
        present = np.unique(keys[:, j][keys[:, j] != missing])
        chosen = data.draw(st.lists(st.sampled_from(present), unique=True)) if len(present) else []
        cuts.append(Cuts(np.sort(np.asarray(chosen, dtype=keys.dtype)), is_crowded))
    source, room = Source(np.asfortranarray(X), None), codes.SHARD._replace(patience=patience)
    table, extremes = codes.prepare_by_cuts(source, cuts, Team(2), room)
    pairs = [(j, b) for j in range(n_features) for b in range(len(cuts[j].keys) + 1)]
    asked = sorted(data.draw(st.lists(st.sampled_from(pairs), unique=True, min_size=1)))
    feature, bins = (np.asarray(own, dtype=np.int64) for own in zip(*asked, strict=True))
    for _ in range(3):  # the samples of a feature are put in order at last
        found = samples_of_bins(table, feature, bins)
        owner = np.repeat(np.arange(len(bins)), np.diff(found.ends, prepend=0))
        assert np.array_equal(keys_of(table, found, feature), keys[found.samples, feature[owner]])
        for place, (j, b) in enumerate(asked):
            bin_of = np.searchsorted(cuts[j].keys, keys[:, j])
            own = np.flatnonzero((bin_of == b) & (keys[:, j] != missing))
            assert np.sort(found.samples[owner == place]).tolist() == own.tolist()
            slot = table.layout.first[j] + b
            if len(own):
                assert extremes.low[slot] == keys[own, j].min()
                assert extremes.high[slot] == keys[own, j].max()
            else:
                assert extremes.low[slot] > extremes.high[slot]


@settings(max_examples=60)
@given(st.data(), DTYPES, SEEDS, st.integers(0, 3))
def test_bins_that_are_kept_have_the_samples_and_keys_that_are_found_anew(data, dtype, seed, kept):
    random = np.random.default_rng(seed)
    X = random.normal(size=(data.draw(st.integers(1, 60)), 3)).astype(dtype)
    X[random.random(X.shape) < 0.2] = np.nan
    keys = arrays.order_keys(X)
    cuts = [Cuts(np.unique(own[own < own.max()])[::4], True) for own in keys.T]
    table, _ = codes.prepare_by_cuts(Source(np.asfortranarray(X), None), cuts, Team(1))
    known = KnownBins(table, kept)
    pairs = [(j, b) for j in range(3) for b in range(len(cuts[j].keys) + 1)]
    for _ in range(6):  # what there is room for is kept, until there is no more
        asked = sorted(data.draw(st.lists(st.sampled_from(pairs), unique=True, min_size=1)))
        feature, bins = (np.asarray(own, dtype=np.int64) for own in zip(*asked, strict=True))
        found, found_keys = known.of(feature, bins)
        anew = samples_of_bins(table, feature, bins)
        assert np.array_equal(found.samples, anew.samples)
        assert np.array_equal(found.ends, anew.ends)
        assert np.array_equal(found_keys, keys_of(table, anew, feature))


@given(st.data(), DTYPES, st.integers(1, 3))
def test_regions_are_those_of_the_hypothesis(data, dtype, n_threads):
    values = data.draw(any_values(dtype))
    near = [float(x) for x in values if x == x]
    threshold = st.floats(allow_nan=False) | st.sampled_from([*near, 0.0, np.inf, -np.inf])
    ends = sorted([data.draw(threshold), data.draw(threshold)])
    hypotheses: list[Partition] = [Split(0, ends[0])]
    if ends[0] < ends[1] < np.inf:
        hypotheses.append(Interval(0, *ends, 1, -1, 0.0))
    for hypothesis in hypotheses:
        found = regions_of(values, hypothesis, Team(n_threads))
        assert found.tolist() == regions(hypothesis, values).tolist()
