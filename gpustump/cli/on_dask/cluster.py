"""The workers: processes that are started here, or those of a scheduler that is running."""

from __future__ import annotations

import argparse
import asyncio
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from gpustump.cli.errors import InputError, MissingLibraryError
from gpustump.cli.on_dask.processes import silence_logs, started_here
from gpustump.cli.wording import one_line
from gpustump.data.readable import shortened


def check_library() -> None:
    """Refuse to go on without Dask.

    Raises
    ------
    MissingLibraryError
    """
    try:
        import_module("dask.array")
        import_module("distributed")
    except ImportError as error:
        raise MissingLibraryError("--dask", "distributed", "dask") from error


@contextmanager
def connected(arguments: argparse.Namespace) -> Iterator[Any]:
    """A client of the cluster that the options ask for; processes started here are ended.

    Raises
    ------
    InputError
        If there is no such cluster, or if it has no workers.
    """
    silence_logs()
    warnings.filterwarnings("ignore", "Sending large graph", UserWarning)  # masks of rows
    if arguments.dask:
        with _client_of(arguments.dask) as client:
            yield client
        return
    from dask.system import CPU_COUNT

    n_workers = int(arguments.jobs or CPU_COUNT)
    with (
        started_here(n_workers, quiet=arguments.quiet) as address,
        _client_of(address) as client,
    ):
        yield client


@contextmanager
def _client_of(address: str) -> Iterator[Any]:
    """A client of a scheduler that is running."""
    import distributed

    patience = _patience()
    _check_scheduler(address, patience)
    with distributed.Client(address, name="gpustump-train") as client:
        try:
            client.wait_for_workers(1, timeout=patience)
        except TimeoutError as error:
            raise InputError(
                f"--dask {address}: the scheduler has had no worker for {patience:g} s; start one "
                f"with: dask worker {address}"
            ) from error
        yield client


def _patience() -> float:
    """Seconds in which a scheduler has to answer."""
    import dask

    text = dask.config.get("distributed.comm.timeouts.connect")
    return float(dask.utils.parse_timedelta(text))


def _check_scheduler(address: str, patience: float) -> None:
    """Refuse an address where no scheduler answers in time; a client would wait for ever."""
    try:
        kind = asyncio.run(asyncio.wait_for(_kind_of(address, patience), patience))
    except (TimeoutError, OSError) as error:
        raise InputError(
            f"--dask {address}: no scheduler answers there within {patience:g} s. Start one with: "
            "dask scheduler"
        ) from error
    except Exception as error:  # something else answers
        raise InputError(f"--dask {address}: no scheduler is there: {_shown(error)}") from error
    if kind != "Scheduler":
        raise InputError(f"--dask {address}: a {kind} answers there; give the scheduler's address.")


async def _kind_of(address: str, patience: float) -> str:
    """What answers at an address."""
    import distributed
    from distributed.core import rpc

    keys = distributed.Security().get_connection_args("client")
    async with rpc(address, connection_args=keys, timeout=patience) as remote:
        return str((await remote.identity())["type"])


def _shown(error: Exception) -> str:
    return shortened(one_line(str(error)), 120)
