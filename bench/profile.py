"""`python -m bench profile`: what each CUDA kernel of a round takes, and the rest of the round.

Rounds are timed twice: whole, by the clock, and launch by launch, by events on the device. What the
kernels must read and write is set beside the time, and so what part of the memory's own speed they
reach. `--shapes` then times `add`, which should take most of a round, in other launch shapes.
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
from gpustump.boosting import Boosting
from gpustump.cuda import layout
from gpustump.cuda.columns import DeviceColumns, prepare
from gpustump.cuda.device import Device, device_named
from gpustump.cuda.distribution import CudaDistribution
from gpustump.placement import DeviceError

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
    shape = f"{options.samples} x {options.features}, {options.rounds} rounds"
    preparing, columns = _timed(device, lambda: prepare(data.X, None, device))
    rounds = _by_the_clock(columns, y, options.rounds)
    parts = [
        f"**{shape}**, prepared in {number(preparing)} s; a round takes "
        f"{number(statistics.median(rounds) * 1e6)} microseconds by the clock "
        f"({number(min(rounds) * 1e6)}..{number(max(rounds) * 1e6)})",
        _kernels(device, columns, y, options.rounds),
    ]
    if options.shapes:
        parts.append(_shapes(device, columns, y))
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
    columns: DeviceColumns
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
        raise UsageError("the GPU is older than the kernels are made for")
    return found


def _timed(device: Device, work: Callable[[], Any]) -> tuple[float, Any]:
    with device.active():
        began = time.perf_counter()
        result = work()
        device.sent(device.xp.zeros(1))()
        return time.perf_counter() - began, result


def _by_the_clock(columns: DeviceColumns, y: np.ndarray, n_rounds: int) -> list[float]:
    """Seconds of each round, as the caller of `boost` sees them."""
    boosting = Boosting(columns, y, np.ones(len(y)), n_rounds=n_rounds)
    seconds = []
    for _ in range(n_rounds):
        began = time.perf_counter()
        if next(boosting, None) is None:
            break
        seconds.append(time.perf_counter() - began)
    return seconds[_SKIPPED:] or seconds


def _kernels(device: Device, columns: DeviceColumns, y: np.ndarray, n_rounds: int) -> str:
    """A table of the kernels, in the order in which they take time."""
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
    titles = ["", "launches a round", "us a launch", "us a round", "GB/s"]
    note = f"{number(100 * share)}% of the elements were scanned one by one in a round."
    probe = gpu_probe(samples)
    if probe is not None:
        probe.warm_up()
        probe.measure()
        copied = probe.copied / probe.copy_seconds[0] / 1e9
        note += f" A copy moves {number(copied)} GB/s."
    return markdown(titles, rows) + "\n\n" + note


def _shapes(device: Device, columns: DeviceColumns, y: np.ndarray) -> str:
    """`add` over all samples, by columns of its table, threads, and blocks."""
    run = CudaDistribution(columns, y, np.ones(len(y)))
    rows = []
    for bits in (3, 4, 5):
        for threads in (256, 512, 1024):
            for blocks in (1, 2):
                seconds = _add_alone(device, columns, run, bits, threads, blocks)
                if seconds is not None:
                    taken = number(seconds * 1e6)
                    rows.append([str(1 << bits), str(threads), str(blocks), taken])
    return markdown(["columns", "threads", "blocks a processor", "us, all samples"], rows)


def _add_alone(
    device: Device,
    columns: DeviceColumns,
    run: CudaDistribution,
    bits: int,
    threads: int,
    blocks: int,
) -> float | None:
    """Seconds of one `add` of everything; None where the shape is not possible."""
    shared = layout.table_bytes(bits)
    widest = max(group.width_bits for group in columns.groups)
    if bits < widest or blocks * shared > device.most_shared:
        return None
    (part,) = list(columns.codes.parts())
    grouped = np.asarray(device.sent(part.groups)())
    lanes = sum(1 << int(row[2]) for row in grouped[:-1])
    at = 0
    for row in grouped:
        row[4] = at
        at += max(1, round(device.n_processors * blocks * (1 << int(row[2])) / lanes))
    groups, grid = device.array(grouped), int(grouped[-1, 4])
    histograms = device.xp.zeros_like(run._sweep.histograms)
    took = []
    with device.active():
        for _ in range(7):
            done = stopwatch(device)
            device.launch(
                f"add_{1 << bits}", grid, threads, part.codes, groups, part.n_groups,
                run._sweep._change, 0, part.n, histograms, shared=shared,
            )  # fmt: skip
            took.append(done()())
    return statistics.median(took)
