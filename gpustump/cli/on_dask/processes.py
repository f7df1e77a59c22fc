"""Workers on this machine, which end with the command, however it ends.

A separate process, which runs this file in a session of its own, starts them. So Ctrl-C in a
terminal reaches only the command, and the command ends them: it closes the pipe that the separate
process reads, as the operating system does if the command is killed.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

from gpustump.cli.errors import InputError

_GRACE = 5.0
"""Seconds that the workers have to end by themselves."""

_ADDRESS = "scheduler at "


@contextlib.contextmanager
def started_here(n_workers: int, *, quiet: bool) -> Iterator[str]:
    """The address of a scheduler that is started here, with workers of one thread each.

    Parameters
    ----------
    n_workers : int
    quiet : bool
        Whether to hide what the workers write to stderr, such as that they compile.

    Raises
    ------
    InputError
        If they cannot be started.
    """
    path = os.pathsep.join(folder or os.getcwd() for folder in sys.path)
    process = subprocess.Popen(
        [sys.executable, "-m", __name__, str(n_workers)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL if quiet else None,
        env=os.environ | {"PYTHONPATH": path},
        text=True,
        start_new_session=True,
    )
    try:
        yield _address(process)
    finally:
        _end(process)


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline().strip()
    if not line.startswith(_ADDRESS):
        raise InputError(f"--dask: the workers could not be started: {line or 'they ended'}")
    return line.removeprefix(_ADDRESS)


def _end(process: subprocess.Popen[str]) -> None:
    """Ask the workers to end, and make them."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        with contextlib.suppress(OSError):
            process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE)
    finally:
        _kill_all(process)
        process.wait()
        process.stdout.close()


def _kill_all(process: subprocess.Popen[str]) -> None:
    """End what is left of a session."""
    if not hasattr(os, "killpg"):
        process.kill()  # workers end with the process that started them
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def silence_logs() -> None:
    """Hide what Dask logs, once imported: errors are also raised, and reported in one line."""
    noisy = ("distributed", "tornado", "asyncio")
    own_levels = [n for n in logging.root.manager.loggerDict if n.partition(".")[0] in noisy]
    for name in (*noisy, *own_levels):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _main() -> None:
    """Run a scheduler and workers until stdin is closed."""
    import distributed

    silence_logs()
    try:
        cluster = distributed.LocalCluster(
            n_workers=int(sys.argv[1]),
            threads_per_worker=1,
            dashboard_address=None,
            scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},  # the usual port may be taken
            silence_logs=logging.CRITICAL,
        )
    except Exception as error:
        print(" ".join(str(error).split()), flush=True)
        os._exit(1)
    with cluster:
        print(f"{_ADDRESS}{cluster.scheduler_address}", flush=True)
        sys.stdin.read()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what Dask writes at its end does not matter


if __name__ == "__main__":
    _main()
