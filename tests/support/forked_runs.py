"""Programs that are forked from a process that has loaded everything, so that each starts at once.

Faults are injected from outside, into real processes: signals, limits of the system, files that
change. Starting Python and loading the package for each of them would take most of the time.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from command import Outcome

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

_SERVER = """
import json, os, sys
exec(sys.argv[1])
print("ready", flush=True)
for line in sys.stdin:
    asked = json.loads(line)
    if "wait" in asked:
        status = os.waitpid(asked["wait"], 0)[1]
        print(os.waitstatus_to_exitcode(status), flush=True)
        continue
    child = os.fork()
    if child == 0:
        break
    print(child, flush=True)
else:
    sys.exit()
os.chdir(asked["folder"])
for number, path in enumerate([os.devnull, *asked["streams"]]):
    os.dup2(os.open(path, os.O_RDWR), number)
sys.argv = ["gpustump", *asked["arguments"]]
exec(asked["program"])
"""

COMMAND = "from gpustump.cli import main; sys.exit(main())"
"""The command line, with the arguments of the run."""

LOADED = (
    "import sklearn.model_selection, gpustump.cli.commands.train, gpustump.cli.commands.predict"
)
"""What the command loads."""

KERNELS = "from gpustump.engines.cpu.engine import KERNELS; KERNELS.load()"


class Run:
    """One run, under way, which prints to two files: stdout and stderr."""

    def __init__(
        self, server: subprocess.Popen[str], number: int, streams: tuple[Path, Path]
    ) -> None:
        self._server, self.number, self._streams = server, number, streams

    def send(self, which: signal.Signals) -> None:
        """Send a signal; a process that has ended is still known until `end` has been called."""
        os.kill(self.number, which)

    def end(self, seconds: float = 300.0) -> Outcome:
        """Wait for its end, fails if that is late; the code is minus the number of a signal."""
        code = _answer(self._server, {"wait": self.number}, seconds)
        if code is None:
            self.send(signal.SIGKILL)
            _answered(self._server, 60.0)
            pytest.fail(f"a run hung for {seconds} seconds; it printed {self._printed()}")
        return Outcome(code, *self._printed())

    def _printed(self) -> tuple[str, str]:
        out, err = (path.read_text(errors="replace") for path in self._streams)
        return out, err


class Forked:
    """Starts runs, which print to files in a folder."""

    def __init__(self, server: subprocess.Popen[str], folder: Path) -> None:
        self._server, self._folder, self._n_started = server, folder, 0

    def start(self, folder: Path, *arguments: object, program: str = COMMAND) -> Run:
        """Start a program in a folder, by default the command line with these arguments."""
        self._n_started += 1
        streams = (self._folder / f"out{self._n_started}", self._folder / f"err{self._n_started}")
        for path in streams:
            path.touch()
        asked = {
            "folder": str(folder),
            "arguments": [str(argument) for argument in arguments],
            "streams": [str(path) for path in streams],
            "program": program,
        }
        number = _answer(self._server, asked, 60.0)
        assert number is not None
        return Run(self._server, number, streams)

    def run(self, folder: Path, *arguments: object, program: str = COMMAND) -> Outcome:
        """The same, to its end."""
        return self.start(folder, *arguments, program=program).end()


@contextmanager
def forked(
    folder: Path, loads: str = LOADED, kernels: str = "reference", **environment: str
) -> Iterator[Forked]:
    """A process from which runs are forked; `loads` is what it does first."""
    server = subprocess.Popen(
        [sys.executable, "-c", _SERVER, loads],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "GPUSTUMP_KERNELS": kernels, **environment},
    )
    with server:
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        yield Forked(server, folder)
        assert server.stdin is not None
        server.stdin.close()
        server.wait(60)


def _answer(server: subprocess.Popen[str], asked: object, seconds: float) -> int | None:
    """The number that the server answers; None if it does not in time."""
    assert server.stdin is not None
    server.stdin.write(json.dumps(asked) + "\n")
    server.stdin.flush()
    return _answered(server, seconds)


def _answered(server: subprocess.Popen[str], seconds: float) -> int | None:
    assert server.stdout is not None
    ready, _, _ = select.select([server.stdout], [], [], seconds)
    return int(server.stdout.readline()) if ready else None


def wait_until(holds: object, seconds: float = 60.0) -> None:
    """Wait until a condition, a callable, holds."""
    end = time.monotonic() + seconds
    while not holds():  # type: ignore[operator]
        assert time.monotonic() < end, "it never came about"


def write_table(folder: Path, n_rows: int, n_features: int = 3) -> None:
    """Features and noisy classes of them, in t.npz."""
    draw = np.random.default_rng(0)
    X = draw.normal(size=(n_rows, n_features))
    np.savez(folder / "t.npz", X=X, y=(X[:, 0] + draw.normal(size=n_rows) > 0).astype(int))


def rounds_in(checkpoint: Path) -> int:
    """How many rounds a checkpoint holds, which has to be whole."""
    from gpustump.boosting.checkpoints import file as checkpoint_file

    try:
        return checkpoint_file.read(checkpoint).n_rounds
    except FileNotFoundError:
        return 0
