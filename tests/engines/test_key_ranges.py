"""Samples by ranges of keys: what a shard answers from is what brute force finds."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba")

from hypothesis import given, settings
from hypothesis import strategies as st
from spread_tables import any_values

from gpustump import arrays
from gpustump.engines.cluster.key_ranges import Grouped, KeyRanges, units_of_terms
from gpustump.engines.cluster.known_bins import KnownBins, Members, list_samples
from gpustump.engines.cpu.loss.regions import mark_by_value
from gpustump.engines.cpu.loss.terms import Terms
from gpustump.engines.cpu.table import codes
from gpustump.engines.cpu.table.cuts import Cuts
from gpustump.engines.cpu.table.source_table import Source
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


@given(ranges_and_samples(), SEEDS, st.integers(1, 3), st.booleans())
def test_samples_are_added_to_the_units_that_their_keys_name(drawn, seed, n_outputs, has_second):
    keys, owner, about = drawn
    random = np.random.default_rng(seed)
    in_order = np.argsort(owner, kind="stable")
    keys, owner = keys[in_order], owner[in_order]
    count = np.bincount(owner, minlength=len(about.first) - 1)
    samples = random.integers(0, 60, size=len(keys)).astype(np.int32)
    if np.array_equal(keys, keys.astype(np.int32)):
        keys = keys.astype(np.int32)
    members = Members(samples, keys, np.cumsum(count) - count, count)
    first = random.integers(-(2**55), 2**55, size=(n_outputs, 60))
    second = random.integers(0, 2**55, size=(n_outputs if has_second else 0, 60))
    terms = Terms(first, second if has_second else second.reshape(0, 0))
    planes = []
    for k in range(n_outputs):
        planes += [np.maximum(first[k], 0), np.maximum(-first[k], 0), *second[k : k + 1]]
    check_units(keys, owner, about, units_of_terms(members, about, terms), samples, planes)


def check_units(
    keys: np.ndarray,
    owner: np.ndarray,
    about: KeyRanges,
    units: Grouped,
    samples: np.ndarray,
    planes: list[np.ndarray],
) -> None:
    """Units are those that brute force finds."""
    expected: dict[tuple[int, int], list[int]] = {}
    for i, (key, bin_) in enumerate(zip(keys.tolist(), owner.tolist(), strict=True)):
        for r in range(about.first[bin_], about.first[bin_ + 1]):
            if about.low[r] <= key <= about.high[r]:
                name = r, as_python(key, about.low[r], about.shift[r])
                expected.setdefault(name, []).append(i)
    names = zip(units.range.tolist(), units.number.view(np.uint64).tolist(), strict=True)
    assert list(names) == sorted(expected)
    for u, name in enumerate(sorted(expected)):
        inside = expected[name]
        assert units.size[u] == len(inside)
        assert (units.low[u], units.high[u]) == (keys[inside].min(), keys[inside].max())
        assert units.sums[:, u].tolist() == [plane[samples[inside]].sum() for plane in planes]


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
        samples, count = listed(table, feature, bins)
        owner = np.repeat(np.arange(len(bins)), count)
        for place, (j, b) in enumerate(asked):
            bin_of = np.searchsorted(cuts[j].keys, keys[:, j])
            own = np.flatnonzero((bin_of == b) & (keys[:, j] != missing))
            assert np.sort(samples[owner == place]).tolist() == own.tolist()
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
        found = known.of(feature, bins)
        samples, count = listed(table, feature, bins)
        assert found.size.tolist() == count.tolist()
        inside = np.concatenate([k + np.arange(n) for k, n in zip(found.begin, count, strict=True)])
        assert np.array_equal(found.samples[inside], samples)
        assert np.array_equal(found.keys[inside], keys[samples, np.repeat(feature, count)])


def listed(
    table: codes.CodedTable, feature: np.ndarray, bins: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The samples of some bins, and how many each has."""
    count = table.layout.n_inside(table.layout.first[feature] + bins)
    samples = np.full(count.sum(), -1, dtype=np.int32)
    list_samples(table, feature, bins, np.cumsum(count) - count, samples)
    return samples, count


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
        found = np.full(len(values), 99, dtype=np.uint8)
        mark_by_value(values, hypothesis, found, Team(n_threads))
        assert found.tolist() == regions(hypothesis, values).tolist()
