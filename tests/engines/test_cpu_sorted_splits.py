"""Small bins: the cut that a scan of all positions finds, whatever the bins are.

The conformance suite compares the scan with the reference.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

pytest.importorskip("numba")

from inner_functions import callable_from_python

from gpustump import AdaBoostClassifier, LogitBoostClassifier
from gpustump.engines.contract import Cut, Search
from gpustump.engines.cpu import engine
from gpustump.engines.cpu.loss.terms import Terms
from gpustump.engines.cpu.split import sample_rows, sorted_splits
from gpustump.engines.cpu.split.sorted_splits import SortedSearch
from gpustump.engines.cpu.table.columns import aligned
from gpustump.engines.cpu.table.sorted_table import MOST_BINS, SortedTable, prepare
from gpustump.engines.threads import Team

N_SAMPLES = 700

add_several = callable_from_python(sample_rows.add_several)
add_one_to_four = callable_from_python(sample_rows.add_one_to_four)
add_one = callable_from_python(sample_rows.add_one)


def mixed(random: np.random.Generator) -> np.ndarray:
    """Features of many values, of few, flags, some values missing."""
    X = np.column_stack(
        [
            random.normal(size=(N_SAMPLES, 4)),
            random.integers(0, 40, size=(N_SAMPLES, 3)),
            random.random((N_SAMPLES, 20)) < random.random(20) / 3,
            np.full((N_SAMPLES, 1), 7.0),
        ]
    ).astype(np.float32)
    X[random.random(X.shape) < 0.03] = np.nan
    X[:, -2] = np.nan
    return X


def drawn_terms(
    random: np.random.Generator, n_outputs: int, X: np.ndarray, votes: str = "newton"
) -> Terms:
    """Integers whose sums stay below 2**62, small and large ones, that some features tell."""
    classes = np.nan_to_num(X[:, 0] + X[:, 4] / 20) * 2 + random.normal(size=N_SAMPLES)
    classes = np.clip(classes.astype(np.int64) + n_outputs // 2, 0, max(1, n_outputs - 1))
    sizes = 2.0 ** random.uniform(0, 52 - np.log2(n_outputs), size=(n_outputs, N_SAMPLES))
    first = sizes.astype(np.int64) + 1
    is_positive = classes == (1 if n_outputs == 1 else np.arange(n_outputs)[:, np.newaxis])
    second = 1 + (first * random.random(first.shape)).astype(np.int64)
    if votes != "newton":
        second = np.empty((0, 0), dtype=np.int64)
    return Terms(np.where(is_positive, first, -first).reshape(n_outputs, -1), second)


def totals_of(terms: Terms) -> np.ndarray:
    second = terms.second if terms.second.size else np.abs(terms.first)
    return np.stack([terms.first.sum(axis=1), second.sum(axis=1)], axis=1)


def scan_of(X: np.ndarray, search: Search, terms: Terms) -> SortedSearch:
    return SortedSearch(prepare(X, None, Team(1)), search, terms.first)


def tables_in_bins(X: np.ndarray) -> list[SortedTable]:
    return [
        prepare(X, None, Team(1), most_bins=MOST_BINS),
        prepare(X, None, Team(2), most_bins=MOST_BINS, per_bin=1),
        prepare(X, None, Team(1), most_bins=2),
    ]


VOTES = {
    "newton": {},
    "regularised": {"votes": "newton", "l2": 2.0**50},
    "real": {},
    "discrete": {},
}


@pytest.mark.parametrize("n_outputs", [1, 2, 4, 5, 9, 13, 17, 30])
@pytest.mark.parametrize("votes", VOTES)
def test_bins_of_any_size_yield_the_cut_of_a_scan(n_outputs, votes):
    random = np.random.default_rng(n_outputs)
    X = mixed(random)
    how = {"votes": votes, **VOTES[votes]}
    for rising in (0, 1, -1) if n_outputs == 1 else (0,):
        monotone = (rising,) * X.shape[1] if rising else None
        search = Search("stump", n_outputs=n_outputs, monotone=monotone, **how)
        terms = drawn_terms(random, n_outputs, X, how["votes"])
        whole = scan_of(X, search, terms)
        scans = [SortedSearch(table, search, terms.first) for table in tables_in_bins(X)]
        for _ in range(6):
            totals = totals_of(terms)
            expected = whole.best_cut(terms, totals)
            assert votes == "regularised" or rising or expected.position is not None
            assert [scan.best_cut(terms, totals) for scan in scans] == [expected] * 3
            shares = random.random(terms.first.shape) ** 8  # other integers of the same signs
            signs, sizes = np.sign(terms.first), np.abs(terms.first)
            second = terms.second
            if second.size:
                second = 1 + (second * shares).astype(np.int64)
            terms = Terms(signs * (1 + (sizes * shares).astype(np.int64)), second)


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("votes", ["discrete", "real", "newton"])
def test_equal_scores_go_to_the_lower_feature_and_position(n_outputs, votes):
    """All features are copies of two, in both directions; equal integers make cuts tie."""
    random = np.random.default_rng(0)
    one = random.integers(0, 30, size=300).astype(np.float64)
    few = (one > 20).astype(np.float64)
    X = np.column_stack([few, -one, one, few, one, -few, -one, one])
    classes = np.where(np.arange(300) % 7 < 3, 0, 1 + (one > 20) * (n_outputs > 1))
    is_own = classes == (1 if n_outputs == 1 else np.arange(n_outputs)[:, np.newaxis])
    first = np.where(is_own, 2**40, -(2**40)).reshape(n_outputs, -1)
    second = np.full(first.shape, 2**38) if votes == "newton" else np.empty((0, 0), dtype=np.int64)
    terms = Terms(first, second)
    search = Search("stump", votes, n_outputs)
    for order in (slice(None), slice(None, None, -1)):
        moved = np.ascontiguousarray(X[:, order])
        expected = scan_of(moved, search, terms).best_cut(terms, totals_of(terms))
        for size in (1, 50):
            table = prepare(moved, None, Team(1), most_bins=20, per_bin=size)
            scan = SortedSearch(table, search, first)
            for _ in range(3):  # what the last round's best feature was makes no difference
                assert scan.best_cut(terms, totals_of(terms)) == expected


@pytest.mark.parametrize("most_bins", [1, MOST_BINS])
def test_without_any_cut_a_constant_is_found(most_bins):
    X = np.column_stack([np.full(50, 3.0), np.full(50, np.nan)])
    first = np.where(np.arange(50) % 3, 5, -7)[np.newaxis]
    terms = Terms(first, np.abs(first))
    table = prepare(X, None, Team(1), most_bins=most_bins)
    search = SortedSearch(table, Search("stump", "newton"), first)
    total, size = totals_of(terms)[0].tolist()
    assert search.best_cut(terms, totals_of(terms)) == Cut(0, None, 0, 0, total**2 / size)


def bins_of(table: SortedTable, j: int) -> np.ndarray:
    """The bin of each sample by a feature's codes; the number of bins where none is known."""
    columns, n_bins = table.columns, table.columns.n_bins[j]
    row = columns.begin[np.searchsorted(columns.begin, j, side="right") - 1]
    majority = columns.majority[j]
    coded = [b for b in range(n_bins + 1) if b != majority]
    found = np.full(table.n_samples, majority)
    for b, code in zip(coded, itertools.count(columns.first_code[j]), strict=False):
        found[columns.codes[row] == code] = b
        assert code < columns.n_codes[row]
    return found


@pytest.mark.parametrize("per_bin", [1, 16, 300])
def test_codes_tell_the_bin_and_bins_are_stretches_of_the_order(per_bin):
    X = mixed(np.random.default_rng(3))
    table = prepare(X, None, Team(1), most_bins=MOST_BINS, per_bin=per_bin)
    columns = table.columns
    for j in range(X.shape[1]):
        n_bins, own = columns.n_bins[j], bins_of(table, j)
        offset = columns.offset[j, : n_bins + 1]
        assert offset[0] == 0
        assert offset[-1] == columns.n_present[j] == np.count_nonzero(~np.isnan(X[:, j]))
        assert (np.diff(offset) > 0).all()
        assert (own[np.isnan(X[:, j])] == n_bins).all()
        most = np.bincount(own, minlength=n_bins + 1).max()
        assert (columns.majority[j] >= 0) == (2 * most > N_SAMPLES)
        ends = []
        for b in range(n_bins):
            values = X[own == b, j]
            assert len(values) == offset[b + 1] - offset[b]
            assert columns.is_open[j, b] == (len(np.unique(values)) > 1)
            ends += [values.min(), values.max()]
        assert ends == sorted(ends)
        assert len(set(ends[1::2])) == n_bins  # no value is in two bins
        assert columns.has_open[j] == columns.is_open[j].any()


def test_flags_of_a_category_share_a_column():
    random = np.random.default_rng(0)
    flags = np.eye(40)[random.integers(0, 40, size=2000)]
    X = np.column_stack([random.normal(size=2000), flags, flags[:, ::-1]])
    table = prepare(X, None, Team(1), most_bins=MOST_BINS)
    assert table.columns.begin.tolist() == [0, 1, 41, 64, 81]  # 64 features are coded at a time


@pytest.mark.parametrize("n_outputs", [1, 2, 4, 5, 12, 13, 25])
def test_rows_are_added_up_by_code(n_outputs):
    random = np.random.default_rng(1)
    first = random.integers(-(2**50), 2**50, size=(n_outputs, 200))
    second = random.integers(1, 2**50, size=(n_outputs, 200))
    rows = sorted_splits.Rows.empty(first)
    sorted_splits.pack(first, second, totals_of(Terms(first, second)), rows)
    codes = random.integers(0, 256, size=(4, 200)).astype(np.uint8)
    width = sample_rows.row_width(n_outputs)
    expected = np.zeros((4, 256, width), dtype=np.int64)
    for column, own in enumerate(codes):
        for k in range(n_outputs):
            np.add.at(expected[column, :, 2 * k], own, first[k])
            np.add.at(expected[column, :, 2 * k + 1], own, second[k])
        if n_outputs == 1:
            np.add.at(expected[column, :, 2], own, np.maximum(first[0], 0))
    found = aligned(4 * 256 * width).reshape(4, 256 * width)
    if n_outputs == 1:
        add_one_to_four(*codes, rows.rows, found.ravel())
        alone = aligned(256 * width)
        add_one(codes[0], rows.rows, alone)
        assert (alone == found[0]).all()
    else:
        for own, into in zip(codes, found, strict=True):
            add_several(own, rows.rows, width, into)
    assert (found.reshape(expected.shape) == expected).all()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("how", [LogitBoostClassifier, AdaBoostClassifier])
def test_fits_with_bins_and_without_are_the_same(monkeypatch, how, n_classes, n_jobs):
    random = np.random.default_rng(2)
    X = mixed(random)
    y = np.digitize(np.nan_to_num(X[:, 0] + X[:, 4] / 20), [0.8, 1.6][: n_classes - 1])
    y = np.where(random.random(N_SAMPLES) < 0.1, random.permutation(y), y)
    digests = set()
    for kernels, fewest in (("sorted", 2**60), ("sorted", 1), ("coded", 1)):
        monkeypatch.setenv("GPUSTUMP_KERNELS", kernels)
        for name in ("BINNED_ADDITIONS", "BINNED_SAMPLES", "BINNED_SAMPLES_WITH_SIGNS"):
            monkeypatch.setattr(engine, name, fewest)
        fitted = how(n_estimators=60, n_iter_no_change=20, random_state=0, n_jobs=n_jobs).fit(X, y)
        assert fitted.route_.engine == kernels
        digests.add((fitted.model_.digest(), *map(str, fitted.held_out_scores_)))
    assert len(digests) == 1
