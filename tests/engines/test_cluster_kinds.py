"""Shards with the CPU's kernels and shards with arrays only are one cluster, whatever the votes."""

from __future__ import annotations

import numpy as np
import pytest
from trainers import start

pytest.importorskip("numba")

from spread_tables import Spread, SpreadTable

from gpustump.engines.contract import Search
from gpustump.engines.reference import table as reference_table


@pytest.mark.parametrize("n_classes", [2, 3, 4, 5, 8])
def test_shards_of_both_kinds_add_up_the_same_sums(n_classes):
    random = np.random.default_rng(n_classes)
    X = random.normal(size=(300, 3)).astype(np.float32)
    classes = np.digitize(X[:, 0] + random.normal(size=300), np.linspace(-1, 1, n_classes - 1))
    y = classes if n_classes > 2 else np.where(classes, 1.0, -1.0)
    search = Search(votes="newton", n_outputs=1 if n_classes == 2 else n_classes)
    run = y, np.ones(300), search
    expected = start(reference_table.prepare(X), *run).best_cut()
    for kinds in (("kernels", "arrays"), ("arrays", "kernels", "kernels")):
        assert start(SpreadTable(X, None, Spread(kinds)), *run).best_cut() == expected
