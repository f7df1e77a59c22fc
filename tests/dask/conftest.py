"""Clusters for the tests: one of threads, whose workers start at once, and one of processes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed")
pytest.importorskip("numba")

from clusters import client_of, closed, tasks_left, what_is_left


@pytest.fixture(scope="session")
def threads() -> Iterator[Any]:
    """A client of four workers in this process."""
    client = client_of(n_workers=4, processes=False)
    yield client
    closed(client)


@pytest.fixture(scope="session")
def processes() -> Iterator[Any]:
    """A client of two worker processes."""
    client = client_of(n_workers=2, processes=True)
    yield client
    closed(client)


@pytest.fixture
def few() -> Iterator[Any]:
    """A client of three workers of its own, which may be closed."""
    client = client_of(n_workers=3, processes=False)
    yield client
    closed(client)


@pytest.fixture
def looks_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lost worker of this process leaves its connections open; only the scheduler notices the
    loss."""
    monkeypatch.setattr("gpustump.dask.conversation._LOOK_AGAIN", 0.1)
    monkeypatch.setattr("gpustump.dask.shards._LOOK_AGAIN", 0.1)


@pytest.fixture(autouse=True)
def leaves_the_cluster_clean(request: pytest.FixtureRequest) -> Iterator[None]:
    """After each test no worker holds data, tasks or an open host, whatever the test did."""
    yield
    for name in ("threads", "processes"):
        if name in request.fixturenames:
            client = request.getfixturevalue(name)
            ends = time.monotonic() + 5  # a task that runs already comes to its end
            while client.run_on_scheduler(tasks_left) and time.monotonic() < ends:
                time.sleep(0.05)
            assert not client.run_on_scheduler(tasks_left)
            held = client.run(what_is_left)
            assert not any(held.values()), held


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sockets and loops that Dask itself leaves to the garbage collector are no failures here."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings("ignore::ResourceWarning"))
            item.add_marker(
                pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
            )
            item.add_marker(pytest.mark.filterwarnings("ignore:Sending large graph:UserWarning"))
