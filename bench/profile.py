"""the time of each CUDA kernel in a round, and of the rest of the round.

Rounds are timed twice: whole, by the clock, and launch by launch, by events on the device. Beside
the time of a kernel that goes through all samples stands the speed at which it moves the bytes that
it must read and write. Events also include the time that the device waits for a launch. So the time
of the smallest launch is printed, too: no other can seem shorter. `--skip N` leaves out the first
N rounds: late rounds on hard data (`--data noise`) spend their time elsewhere.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import fmean, median
from typing import Any

import numpy as np

from bench import data
from bench.machine import describe
from bench.markdown import markdown, number
from bench.memory_speed import gpu_probe
from bench.tables import ranged
from bench.timing import UsageError, whole
from bench.worker import timed
from gpustump.arrays.devices import DeviceError, devices
from gpustump.boosting.rounds.boosting import Boosting
from gpustump.boosting.votes.settings import VoteSettings
from gpustump.data.parameters import Learner
from gpustump.engines.contract import Resources, Task, Trainer
from gpustump.engines.cuda.codes import ResidentCodes
from gpustump.engines.cuda.device import CudaDevice, device_named
from gpustump.engines.cuda.engine import CudaEngine
from gpustump.engines.cuda.table import CudaTable

_REPEATS = 7  # of a launch that is timed alone

_SETTINGS = {
    "discrete": VoteSettings("discrete"),
    "intervals": VoteSettings("discrete"),
    "real": VoteSettings("real"),
    "newton": VoteSettings("newton", learning_rate=0.2, l2_regularization=3.0),
}
"""As the estimators set them."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """What can be chosen on the command line."""
    add = parser.add_argument
    add("--data", default="synthetic", choices=data.FAMILIES)
    add("--samples", type=whole(16), default=1_000_000, metavar="N", help="default: 1 million")
    add("--features", type=whole(3), default=100, metavar="N", help="default: 100")
    add("--votes", nargs="+", choices=list(_SETTINGS), default=["discrete"], help="what is trained")
    add("--rounds", type=whole(1), default=50, metavar="N", help="rounds that are timed")
    add("--skip", type=whole(1), default=3, metavar="N", help="rounds that are made before")


def run(options: argparse.Namespace) -> Iterator[str]:
    """Measure, and yield each part, in words and tables, as soon as it is measured."""
    device = _device()
    drawn = data.load(options.data, options.samples, options.features)
    y = np.where(drawn.y > 0, 1.0, -1.0)
    with device.active():
        X = device.array(drawn.X)
    rounds = options.skip, options.rounds
    for kind in options.votes:
        yield from _with_votes(device, kind, (X, drawn.X), y, rounds)
    yield _least(device, options.samples)
    machine = describe()
    gpus = ", ".join(machine.gpus) or "no GPU"
    yield f"{gpus}. gpustump {machine.gpustump} at {machine.commit or '?'}"


def _with_votes(
    device: CudaDevice, kind: str, tables: Sequence[Any], y: np.ndarray, rounds: tuple[int, int]
) -> Iterator[str]:
    """A kind of votes, with the table on the device and on the host."""
    words = kind if kind == "intervals" else f"{kind} votes"
    search = _SETTINGS[kind].votes(np.ones(len(y))).search(_learner(kind))
    engine, seconds = CudaEngine(device), []
    for X in (tables[0], *tables):  # what is compiled at first does not count
        task = Task(X, len(y), search, sum(rounds))
        if refusal := engine.refusal(task):
            yield f"**{words}**: left out, since {refusal}"
            return

        def prepared(task: Task = task) -> Any:
            columns = engine.prepare(task, None, Resources())
            device.sent(device.xp.zeros(1))()  # waits for the device
            return columns

        with device.active():
            took, columns = timed(prepared)
        seconds.append(took)
    if not isinstance(columns.codes, ResidentCodes):
        raise UsageError("the codes do not fit into the GPU's memory: choose fewer --samples")
    took_rounds = _by_the_clock(columns, y, kind, rounds)
    _, on_device, from_host = map(number, seconds)
    yield (
        f"**{words}, {columns.n_samples} x {columns.n_features}**, prepared in {on_device} s, "
        f"from the host in {from_host} s; a round takes {ranged(took_rounds, 1e6)} microseconds "
        f"(after {rounds[0]} rounds)"
    )
    yield _kernels(device, columns, y, kind, rounds, fmean(took_rounds))


def _boosting(columns: CudaTable, y: np.ndarray, kind: str, n_rounds: int) -> Boosting:
    weights = np.ones(len(y))
    votes, learner = _SETTINGS[kind].votes(weights), _learner(kind)
    trainer = Trainer(columns, CudaEngine(columns.device).start)
    return Boosting(trainer, y, weights, votes=votes, n_rounds=n_rounds, learner=learner)


def _learner(kind: str) -> Learner:
    return "interval" if kind == "intervals" else "stump"


def now(device: CudaDevice) -> Any:
    """This moment in the device's order of work."""
    if not hasattr(device.xp, "cuda"):  # work is done when it is launched
        return time.perf_counter()
    event = device.xp.cuda.Event()
    event.record()
    return event


def seconds_between(device: CudaDevice, start: Any, end: Any) -> float:
    """Seconds between two moments. Waits until the device has reached both."""
    if not hasattr(device.xp, "cuda"):
        return float(end - start)
    end.synchronize()
    return float(device.xp.cuda.get_elapsed_time(start, end)) / 1e3


def _device() -> CudaDevice:
    try:
        found = device_named("cuda")
    except DeviceError as error:
        raise UsageError(str(error)) from error
    if found is None:
        reasons = (one.detail for one in devices() if one.name.startswith("cuda"))
        raise UsageError("; ".join(reasons))
    return found


def _by_the_clock(
    columns: CudaTable, y: np.ndarray, kind: str, rounds: tuple[int, int]
) -> list[float]:
    """Seconds of each round, as the caller of `boost` sees them."""
    boosting = _boosting(columns, y, kind, sum(rounds))
    seconds = []
    for _ in range(sum(rounds)):
        took, record = timed(lambda: next(boosting, None))
        if record is None:
            break
        seconds.append(took)
    if len(seconds) <= rounds[0]:
        raise UsageError(f"boosting ended after {len(seconds)} rounds: choose a smaller --skip")
    return seconds[rounds[0] :]


@contextlib.contextmanager
def _watched(device: CudaDevice) -> Iterator[dict[str, list[tuple[Any, Any]]]]:
    """Watch launches on the device: for each kernel, the moments before and after each launch.

    Rounds are not recorded meanwhile, since launches of a recorded round cannot be told apart.
    """
    launch = device.launch
    launches: dict[str, list[tuple[Any, Any]]] = defaultdict(list)

    def timed_launch(kernel: str, *rest: Any, **more: Any) -> None:
        start = now(device)
        launch(kernel, *rest, **more)
        launches[kernel].append((start, now(device)))

    device.launch = timed_launch  # type: ignore[method-assign]
    device.recorded = lambda queue: queue  # type: ignore[method-assign]
    try:
        yield launches
    finally:
        del device.launch, device.recorded


def _kernels(
    device: CudaDevice,
    columns: CudaTable,
    y: np.ndarray,
    kind: str,
    rounds: tuple[int, int],
    whole_round: float,
) -> str:
    """A table of the kernels, the slowest first, and what a round takes beside all of them."""
    with _watched(device) as launches:
        boosting = _boosting(columns, y, kind, sum(rounds))  # it may record rounds when it starts
        for _ in itertools.islice(boosting, rounds[0]):
            pass
        launches.clear()
        n_done = sum(1 for _ in boosting)
    took = {
        name: [seconds_between(device, *moments) for moments in all_moments]
        for name, all_moments in launches.items()
    }
    rows = []
    for name, seconds in sorted(took.items(), key=lambda item: -sum(item[1])):
        n_bytes = _bytes_moved(name, columns, 2 if kind == "newton" else 1)
        figures = (len(seconds) / n_done, median(seconds) * 1e6, sum(seconds) / n_done * 1e6)
        speed = n_bytes / median(seconds) / 1e9 if n_bytes else None
        rows.append([name, *map(number, figures), number(speed)])
    together = sum(sum(seconds) for seconds in took.values()) / n_done
    rows.append(["all of them", "-", "-", number(together * 1e6), "-"])
    rows.append(["a round by the clock", "-", "-", number(whole_round * 1e6), "-"])
    return markdown(["", "launches a round", "us a launch", "us a round", "GB/s"], rows)


def _bytes_moved(kernel: str, columns: CudaTable, n_integers: int) -> int | None:
    """What a launch must read and write, each array once; None for kernels that go elsewhere.

    Every sample has so many integers of 8 bytes, which are added up.
    """
    samples = columns.n_samples
    if kernel.startswith(("advance", "follow")):  # weights and scores anew, a code, the integers
        return samples * (4 * 8 + 1 + 8 * n_integers)
    if kernel.startswith("add"):
        return samples * (columns.n_features + 8) * n_integers
    return None


def _least(device: CudaDevice, n_samples: int) -> str:
    """The time of the smallest launch, and the speed of the device's memory."""
    one, took = device.xp.zeros(1, dtype=np.uint32), []
    with device.active():
        for _ in range(_REPEATS):
            start = now(device)
            device.clear(one)
            took.append(seconds_between(device, start, now(device)))
    words = f"The smallest launch takes {number(median(took) * 1e6)} us."
    if probe := gpu_probe(n_samples):
        probe.copy()
        seconds, _ = timed(probe.copy)
        words += f" A copy moves {number(probe.copied / seconds / 1e9)} GB/s."
    return words
