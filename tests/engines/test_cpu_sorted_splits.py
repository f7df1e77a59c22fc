"""Small bins: the cut that a scan of all positions finds, whatever the bins are.

The conformance suite compares the scan with the reference.
"""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba")


from gpustump.engines.contract import Search
from gpustump.engines.cpu.loss.terms import Terms
from gpustump.engines.cpu.split.sorted_splits import SortedSearch
from gpustump.engines.cpu.table.sorted_table import MOST_BINS, SortedTable, prepare
from gpustump.engines.threads import Team

N_SAMPLES = 700


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


def test_flags_of_a_category_share_a_column():
    random = np.random.default_rng(0)
    flags = np.eye(40)[random.integers(0, 40, size=2000)]
    X = np.column_stack([random.normal(size=2000), flags, flags[:, ::-1]])
    table = prepare(X, None, Team(1), most_bins=MOST_BINS)
    assert table.columns.begin.tolist() == [0, 1, 41, 64, 81]  # 64 features are coded at a time
