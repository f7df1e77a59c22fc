"""Two processes from which the runs of all these tests are forked, so that each starts at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from forked_runs import KERNELS, LOADED, Forked, forked


@pytest.fixture(scope="session")
def without_kernels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forked]:
    """All is imported; the kernels are loaded by each run anew."""
    with forked(tmp_path_factory.mktemp("streams"), LOADED, "coded") as found:
        yield found


@pytest.fixture(scope="session")
def with_kernels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forked]:
    """The kernels are loaded, too."""
    pytest.importorskip("numba")
    with forked(tmp_path_factory.mktemp("streams"), f"{LOADED}\n{KERNELS}", "coded") as found:
        yield found
