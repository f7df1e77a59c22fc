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


def client_fixture(scope: Any, doc: str, **how: Any) -> Any:
    def client() -> Iterator[Any]:
        found = client_of(**how)
        yield found
        closed(found)

    client.__doc__ = doc
    return pytest.fixture(scope=scope)(client)


threads = client_fixture("session", "Four workers in this process.", n_workers=4, processes=False)
processes = client_fixture("session", "Two worker processes.", n_workers=2, processes=True)
few = client_fixture("function", "Three workers that may be lost.", n_workers=3, processes=False)


@pytest.fixture
def looks_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lost worker of this process leaves its connections open; only the scheduler notices the
    loss."""
    monkeypatch.setattr("gpustump.dask.messages._LOOK_AGAIN", 0.1)
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
            item.add_marker(
                pytest.mark.filterwarnings(
                    "ignore::ResourceWarning",
                    "ignore::pytest.PytestUnraisableExceptionWarning",
                    "ignore:Sending large graph:UserWarning",
                )
            )
