"""Small bins under Newton votes: the cut that a scan of all positions finds, whatever the bins are.

The scan is the direct engine's, which the conformance suite compares with the reference.
"""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba")

from gpustump import LogitBoostClassifier
from gpustump.engines.contract import Cut, Search
from gpustump.engines.cpu import binned
from gpustump.engines.cpu.loss.terms import Terms
from gpustump.engines.cpu.split import binned_rows, binned_splits
from gpustump.engines.cpu.split.binned_splits import BinnedScan
from gpustump.engines.cpu.split.direct_splits import SplitScan
from gpustump.engines.cpu.table.columns import aligned
from gpustump.engines.threads import Team

N_SAMPLES = 700


def mixed(random: np.random.Generator) -> np.ndarray:
    """Features of many values, of few, flags that share columns, some values missing."""
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


def drawn_terms(random: np.random.Generator, n_outputs: int, X: np.ndarray) -> Terms:
    """Integers whose sums stay below 2**62, small and large ones, that some features tell."""
    classes = np.nan_to_num(X[:, 0] + X[:, 4] / 20) * 2 + random.normal(size=N_SAMPLES)
    classes = np.clip(classes.astype(np.int64) + n_outputs // 2, 0, max(1, n_outputs - 1))
    sizes = 2.0 ** random.uniform(0, 52 - np.log2(n_outputs), size=(n_outputs, N_SAMPLES))
    first = sizes.astype(np.int64) + 1
    is_positive = classes == (1 if n_outputs == 1 else np.arange(n_outputs)[:, np.newaxis])
    second = 1 + (first * random.random(first.shape)).astype(np.int64)
    return Terms(np.where(is_positive, first, -first).reshape(n_outputs, -1), second)


def totals_of(terms: Terms) -> np.ndarray:
    return np.stack([terms.first.sum(axis=1), terms.second.sum(axis=1)], axis=1)


@pytest.mark.parametrize("n_outputs", [1, 2, 4, 5, 9, 13, 17, 30])
@pytest.mark.parametrize("l2", [0.0, 2.0**50])
def test_bins_of_any_size_yield_the_cut_of_a_scan(n_outputs, l2):
    random = np.random.default_rng(n_outputs)
    X = mixed(random)
    search = Search("stump", "newton", n_outputs, l2)
    tables = [
        binned.prepare(X, None, Team(1)),
        binned.prepare(X, None, Team(2), per_bin=1),
        binned.prepare(X, None, Team(1), max_cuts=2),
    ]
    whole = SplitScan(tables[0], search)
    terms = drawn_terms(random, n_outputs, X)
    scans = [BinnedScan(table.binned_columns, table.team, search, terms.first) for table in tables]
    for _ in range(6):
        totals = totals_of(terms)
        expected = whole.best_cut(terms, totals)
        assert l2 or expected.position is not None
        assert [scan.best_cut(terms, totals) for scan in scans] == [expected] * 3
        shares = random.random(terms.first.shape) ** 8  # other integers of the same signs
        signs, sizes = np.sign(terms.first), np.abs(terms.first)
        terms = Terms(
            signs * (1 + (sizes * shares).astype(np.int64)),
            1 + (terms.second * shares).astype(np.int64),
        )


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_equal_scores_go_to_the_lower_feature_and_position_in_whatever_column_they_are(n_outputs):
    """All features are copies of two, in both directions; equal integers make cuts tie."""
    random = np.random.default_rng(0)
    one = random.integers(0, 30, size=300).astype(np.float64)
    few = (one > 20).astype(np.float64)
    X = np.column_stack([few, -one, one, few, one, -few, -one, one])
    classes = np.where(np.arange(300) % 7 < 3, 0, 1 + (one > 20) * (n_outputs > 1))
    is_own = classes == (1 if n_outputs == 1 else np.arange(n_outputs)[:, np.newaxis])
    first = np.where(is_own, 2**40, -(2**40)).reshape(n_outputs, -1)
    terms = Terms(first, np.full(first.shape, 2**38))
    search = Search("stump", "newton", n_outputs)
    for order in (slice(None), slice(None, None, -1)):
        tables = [
            binned.prepare(np.ascontiguousarray(X[:, order]), None, Team(1), per_bin=size)
            for size in (1, 50)
        ]
        expected = SplitScan(tables[0], search).best_cut(terms, totals_of(terms))
        for table in tables:
            scan = BinnedScan(table.binned_columns, table.team, search, first)
            for _ in range(3):  # what the last round's best column was makes no difference
                assert scan.best_cut(terms, totals_of(terms)) == expected


def test_without_any_cut_a_constant_is_found():
    X = np.column_stack([np.full(50, 3.0), np.full(50, np.nan)])
    search = Search("stump", "newton")
    first = np.where(np.arange(50) % 3, 5, -7)[np.newaxis]
    terms = Terms(first, np.abs(first))
    table = binned.prepare(X, None, Team(1))
    found = BinnedScan(table.binned_columns, table.team, search, first).best_cut(
        terms, totals_of(terms)
    )
    assert found == SplitScan(table, search).best_cut(terms, totals_of(terms))
    assert found == Cut(0, None, 0, 0, found.score)


@pytest.mark.parametrize("n_outputs", [1, 2, 4, 5, 12, 13, 25])
def test_rows_are_added_up_by_code(n_outputs):
    random = np.random.default_rng(1)
    first = random.integers(-(2**50), 2**50, size=(n_outputs, 200))
    second = random.integers(1, 2**50, size=(n_outputs, 200))
    rows = binned_splits.Rows.empty(first)
    totals = totals_of(Terms(first, second))
    binned_splits.pack(first, second, totals, rows)
    codes = random.integers(0, 256, size=(4, 200)).astype(np.uint8)
    width = binned_rows.row_width(n_outputs)
    expected = np.zeros((4, 256, width), dtype=np.int64)
    for column, own in enumerate(codes):
        for k in range(n_outputs):
            np.add.at(expected[column, :, 2 * k], own, first[k])
            np.add.at(expected[column, :, 2 * k + 1], own, second[k])
        if n_outputs == 1:
            np.add.at(expected[column, :, 2], own, np.maximum(first[0], 0))
    found = aligned(4 * 256 * width).reshape(4, 256 * width)
    if n_outputs == 1:
        binned_rows.add_one_to_four(codes, rows.rows, found.ravel())
        alone = aligned(256 * width)
        binned_rows.add_one(codes[0], rows.rows, alone)
        assert (alone == found[0]).all()
    else:
        for own, into in zip(codes, found, strict=True):
            binned_rows.add_several(own, rows.rows, width, into)
    assert (found.reshape(expected.shape) == expected).all()
    assert (rows.total[: 2 * n_outputs] == totals.ravel()).all()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_fits_on_every_engine_are_the_same(monkeypatch, n_classes, n_jobs):
    random = np.random.default_rng(2)
    X = mixed(random)
    y = np.digitize(np.nan_to_num(X[:, 0] + X[:, 4] / 20), [0.8, 1.6][: n_classes - 1])
    y = np.where(random.random(N_SAMPLES) < 0.1, random.permutation(y), y)
    digests = set()
    for kernels in ("direct", "binned", "coded"):
        monkeypatch.setenv("GPUSTUMP_KERNELS", kernels)
        fitted = LogitBoostClassifier(
            n_estimators=60, n_iter_no_change=20, random_state=0, n_jobs=n_jobs
        ).fit(X, y)
        assert fitted.route_.engine == kernels
        digests.add((fitted.model_.digest(), *map(str, fitted.held_out_scores_)))
    assert len(digests) == 1
