"""`python -m bench profile`: what each CUDA kernel of a round takes, and the rest of the round.

Rounds are timed twice: whole, by the clock, and launch by launch, by events on the device. What the
kernels must read and write is set beside the time, and so what part of the memory's own speed they
reach. An event sees a launch that the device waited for, too: what a launch of nothing takes is
told, and that is as short as any can seem. `--shapes` then times `add`, which should take most of a
large round, with smaller tables and fewer threads.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bench.data import synthetic
from bench.machine import describe
from bench.options import UsageError, whole
from bench.speed import gpu_probe
from bench.tables import markdown, number
from gpustump.arrays.devices import DeviceError, devices
from gpustump.boosting.rounds import Boosting
from gpustump.engines.cuda import layout
from gpustump.engines.cuda.codes import ResidentCodes
from gpustump.engines.cuda.device import THREADS, Device, device_named
from gpustump.engines.cuda.state import CudaState
from gpustump.engines.cuda.table import CudaTable, prepare

ROUNDS = 50
_SKIPPED = 3
"""Rounds that are made before the clock starts."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """What can be chosen on the command line."""
    parser.add_argument("--samples", type=whole(16), default=1_000_000, metavar="N")
    parser.add_argument("--features", type=whole(3), default=100, metavar="N")
    parser.add_argument("--rounds", type=whole(_SKIPPED + 1), default=ROUNDS, metavar="N")
    parser.add_argument("--shapes", action="store_true", help="time `add` in other shapes, too")


def run(options: argparse.Namespace) -> str:
    """Measure, and put it in words and tables."""
    device = _device()
    data = synthetic(options.samples, options.features)
    y = np.where(data.y > 0, 1.0, -1.0)
    X = device.array(data.X)
    from_host = _timed(device, lambda: prepare(data.X, None, device))[0]
    on_device, columns = _timed(device, lambda: prepare(X, None, device))
    if not isinstance(columns.codes, ResidentCodes):
        raise UsageError("the codes do not fit into the GPU's memory: fewer samples, please")
    rounds = _by_the_clock(columns, y, options.rounds)
    parts = [
        f"**{options.samples} x {options.features}**, prepared in {number(on_device)} s, from the "
        f"host in {number(from_host)} s; a round takes {number(statistics.median(rounds) * 1e6)} "
        f"microseconds by the clock ({number(min(rounds) * 1e6)}..{number(max(rounds) * 1e6)})",
        _kernels(device, columns, y, options.rounds, statistics.fmean(rounds)),
    ]
    if options.shapes:
        parts.append(_shapes(device, X, y))
    machine = describe()
    gpus = ", ".join(map(str, machine["gpus"])) or "no GPU"
    parts.append(f"{gpus}. gpustump {machine['gpustump']} at {machine['commit'] or '?'}")
    return "\n\n".join(parts)


@dataclass
class Watched:
    """A device whose launches are timed.

    Attributes
    ----------
    seconds : dict of list of callable
        For each kernel, what tells the seconds of each launch once all is done.
    n_scanned : list of int
        Samples in the bins that each search looked into.
    """

    device: Device
    columns: CudaTable
    seconds: dict[str, list[Callable[[], float]]] = field(default_factory=lambda: defaultdict(list))
    n_scanned: list[int] = field(default_factory=list)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Within it, launches on the device are timed."""
        launch = self.device.launch

        def timed(kernel: str, *rest: Any, **more: Any) -> None:
            if kernel == "finish":
                self._count(*rest[2:4])
            done = stopwatch(self.device)
            launch(kernel, *rest, **more)
            self.seconds[kernel].append(done())

        self.device.launch = timed  # type: ignore[method-assign]
        try:
            yield
        finally:
            del self.device.launch

    def _count(self, listed: Any, counts: Any) -> None:
        n_listed = int(self.device.sent(counts)()[1])
        bins = self.device.sent(listed)()[:n_listed, 0]
        self.n_scanned.append(int(self.columns.bins.facts[bins, 1].sum()))


def stopwatch(device: Device) -> Callable[[], Callable[[], float]]:
    """Starts now, in the device's order of work; a call stops it, a second call reads it."""
    if not hasattr(device.xp, "cuda"):  # work is done when it is launched
        began = time.perf_counter()
        return lambda: (lambda took: lambda: took)(time.perf_counter() - began)
    start, end = device.xp.cuda.Event(), device.xp.cuda.Event()
    start.record()

    def stopped() -> Callable[[], float]:
        end.record()

        def read() -> float:
            end.synchronize()
            return float(device.xp.cuda.get_elapsed_time(start, end)) / 1e3

        return read

    return stopped


def _device() -> Device:
    try:
        found = device_named("cuda")
    except DeviceError as error:
        raise UsageError(str(error)) from error
    if found is None:
        reasons = (one.detail for one in devices() if one.name.startswith("cuda"))
        raise UsageError("; ".join(reasons))
    return found


def _timed(device: Device, work: Callable[[], Any]) -> tuple[float, Any]:
    with device.active():
        began = time.perf_counter()
        result = work()
        device.sent(device.xp.zeros(1))()
        return time.perf_counter() - began, result


def _by_the_clock(columns: CudaTable, y: np.ndarray, n_rounds: int) -> list[float]:
    """Seconds of each round, as the caller of `boost` sees them."""
    boosting = Boosting(columns, y, np.ones(len(y)), n_rounds=n_rounds)
    seconds = []
    for _ in range(n_rounds):
        began = time.perf_counter()
        if next(boosting, None) is None:
            break
        seconds.append(time.perf_counter() - began)
    return seconds[_SKIPPED:] or seconds


def _kernels(device: Device, columns: CudaTable, y: np.ndarray, n_rounds: int, whole: float) -> str:
    """A table of the kernels, in the order in which they take time, and what is left of a round."""
    watched = Watched(device, columns)
    with watched.watching():
        n_done = sum(1 for _ in Boosting(columns, y, np.ones(len(y)), n_rounds=n_rounds))
    took = {name: [read() for read in reads] for name, reads in watched.seconds.items()}
    elements, samples = columns.n_samples * columns.n_features, columns.n_samples
    share = statistics.fmean(watched.n_scanned) / elements
    moved = {  # bytes a launch: each array once
        "advance": samples * (5 * 8 + 1),
        "add": sum(group.n_features for group in columns.groups) * samples + samples * 8,
        "scan": share * elements * (4 + 8),
    }
    rows = []
    for name, seconds in sorted(took.items(), key=lambda item: -sum(item[1])):
        in_a_round = sum(seconds) / n_done
        n_bytes = moved.get("add" if name.startswith("add_") else name, 0)
        speed = number(n_bytes / statistics.median(seconds) / 1e9) if n_bytes else "-"
        figures = (len(seconds) / n_done, statistics.median(seconds) * 1e6, in_a_round * 1e6)
        rows.append([name, *map(number, figures), speed])
    rest = whole - sum(sum(seconds) for seconds in took.values()) / n_done
    rows.append(["the rest", "-", "-", number(rest * 1e6), "-"])
    titles = ["", "launches a round", "us a launch", "us a round", "GB/s"]
    note = (
        f"{number(100 * share)}% of the elements were scanned one by one in a round. A launch of "
        f"nothing takes {number(_of_nothing(device) * 1e6)} us."
    )
    probe = gpu_probe(samples)
    if probe is not None:
        probe.warm_up()
        probe.measure()
        copied = probe.copied / probe.copy_seconds[0] / 1e9
        note += f" A copy moves {number(copied)} GB/s."
    return markdown(titles, rows) + "\n\n" + note


def _of_nothing(device: Device) -> float:
    """Seconds of a launch that has nothing to do, as events see it."""
    marks = device.xp.zeros(1, dtype=np.uint32)
    took = []
    with device.active():
        for _ in range(7):
            done = stopwatch(device)
            device.launch("mark", 1, THREADS, marks, 0, 0, 0, marks)
            took.append(done()())
    return statistics.median(took)


def _shapes(device: Device, X: Any, y: np.ndarray) -> str:
    """`add` over all samples: groups and tables of so many columns, threads and blocks."""
    rows = []
    padded = layout.padded(len(y))
    most = device.most_shared
    for bits in (3, 4, 5):
        if layout.table_bytes(bits) > most:
            continue
        device.most_shared = layout.table_bytes(bits)  # as if there were no more
        try:
            columns = prepare(X, None, device)
            run = CudaState(columns, y, np.ones(len(y)))
            by_grid = {}  # a large table has as many blocks as processors, in any case
            for samples in (4096, 1024, 256):
                described = layout.described(device, columns.groups, padded, samples)
                by_grid[described[1]] = described
            for threads in (256, 512, device.most_threads):
                for groups, grid in by_grid.values():
                    seconds = _add_alone(device, columns, run, threads, groups, grid)
                    figures = (1 << bits, threads, grid)
                    rows.append([*map(str, figures), number(seconds * 1e6)])
        finally:
            device.most_shared = most
    return markdown(["columns", "threads", "blocks", "us, all samples"], rows)


def _add_alone(
    device: Device,
    columns: CudaTable,
    run: CudaState,
    threads: int,
    described: np.ndarray,
    grid: int,
) -> float:
    """Seconds of one `add` of everything."""
    (part,) = columns.codes.parts()
    bits, groups = layout.column_bits(device), device.array(described)
    histograms = device.xp.zeros_like(run._sweep.histograms)
    took = []
    with device.active():
        for _ in range(7):
            done = stopwatch(device)
            device.launch(
                f"add_{1 << bits}", grid, threads, part.codes, groups, part.n_groups,
                run._sweep._change, 0, part.n, histograms, shared=layout.table_bytes(bits),
            )  # fmt: skip
            took.append(done()())
    return statistics.median(took)
