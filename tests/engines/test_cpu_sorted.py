"""What only runs on sorted tables have: they know the regions of the cut that they found."""

from __future__ import annotations

import numpy as np
import pytest
from trainers import start

pytest.importorskip("numba")

from gpustump.engines.contract import Search
from gpustump.engines.cpu.table import sorted_table
from gpustump.engines.reference import table as reference
from gpustump.engines.threads import Team
from gpustump.learners.split import Split


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64"])
@pytest.mark.parametrize("lacks_some", [False, True])
def test_splits_beside_the_cut_that_was_found_have_sums_of_their_own(dtype, lacks_some):
    """At, just below and just above every value, so also those around the cut."""
    random = np.random.default_rng(0)
    X = random.integers(0, 20, size=(200, 1)).astype(dtype)
    if lacks_some and dtype != "int64":
        X[::7] = np.nan
    y = np.where(np.nan_to_num(X[:, 0]) + random.normal(size=200) > 9, 1.0, -1.0)
    run = y, np.ones(200), Search("stump", "real")
    expected, state = (
        start(reference.prepare(X), *run),
        start(sorted_table.prepare(X, None, Team(1)), *run),
    )
    assert state.best_cut().position is not None
    values = X[:, 0].astype(np.float64)
    steps = np.unique(values[~np.isnan(values)])
    thresholds = [*steps, *np.nextafter(steps, -np.inf), *np.nextafter(steps, np.inf), np.inf]
    for split in (Split(0, threshold) for threshold in thresholds):
        assert np.array_equal(state.region_sums(split), expected.region_sums(split))
