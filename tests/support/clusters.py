"""Dask clusters on this machine, for tests."""

from __future__ import annotations

import logging
from typing import Any

import distributed


def client_of(**how: Any) -> Any:
    cluster = distributed.LocalCluster(
        threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL, **how
    )
    return distributed.Client(cluster)


def closed(client: Any) -> None:
    client.close()
    client.cluster.close()
