"""`python -m bench profile`: what each CUDA kernel of a round takes, and the rest of the round.

Rounds are timed twice: whole, by the clock, and launch by launch, by events on the device. Beside
the time of a kernel stands the speed at which it moves the bytes that it must read and write. An
event also counts the time that the device waits for a launch, so the time of an empty launch is
printed, too: no launch can seem shorter. `--shapes` then times `add`, which should take most of a
large round, with smaller tables and fewer threads.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from collections import defaultdict
from collections.abc import Iterator
from statistics import fmean, median
from typing import Any

import numpy as np

from bench.benchmarks import UsageError, add_shape, whole
from bench.data import synthetic
from bench.machine import describe
from bench.speed import gpu_probe
from bench.tables import markdown, number, ranged
from bench.worker import timed
from gpustump.arrays.devices import DeviceError, devices
from gpustump.boosting.rounds import Boosting
from gpustump.engines.cuda import layout
from gpustump.engines.cuda.codes import ResidentCodes
from gpustump.engines.cuda.device import THREADS, CudaDevice, device_named
from gpustump.engines.cuda.state import CudaState
from gpustump.engines.cuda.table import CudaTable, prepare

_SKIPPED = 3  # rounds that are made before the clock starts
_REPEATS = 7  # of a launch that is timed alone


def add_options(parser: argparse.ArgumentParser) -> None:
    """What can be chosen on the command line."""
    add_shape(parser, 1_000_000, 100)
    parser.add_argument("--rounds", type=whole(_SKIPPED + 1), default=50, metavar="N")
    parser.add_argument("--shapes", action="store_true", help="time `add` in other shapes, too")


def run(options: argparse.Namespace) -> str:
    """Measure, and describe it in words and tables."""
    device = _device()
    data = synthetic(options.samples, options.features)
    y = np.where(data.y > 0, 1.0, -1.0)

    def prepared(X: Any) -> CudaTable:
        columns = prepare(X, None, device)
        device.sent(device.xp.zeros(1))()  # waits for the device
        return columns

    with device.active():
        X = device.array(data.X)
        from_host, _ = timed(lambda: prepared(data.X))
        on_device, columns = timed(lambda: prepared(X))
    if not isinstance(columns.codes, ResidentCodes):
        raise UsageError("the codes do not fit into the GPU's memory: choose fewer --samples")
    rounds = _by_the_clock(columns, y, options.rounds)
    parts = [
        f"**{options.samples} x {options.features}**, prepared in {number(on_device)} s, from the "
        f"host in {number(from_host)} s; a round takes {ranged(rounds, 1e6)} microseconds",
        _kernels(device, columns, y, options.rounds, fmean(rounds)),
    ]
    if options.shapes:
        parts.append(_shapes(device, X, y))
    machine = describe()
    gpus = ", ".join(machine.gpus) or "no GPU"
    parts.append(f"{gpus}. gpustump {machine.gpustump} at {machine.commit or '?'}")
    return "\n\n".join(parts)


def now(device: CudaDevice) -> Any:
    """This moment in the device's order of work."""
    if not hasattr(device.xp, "cuda"):  # work is done when it is launched
        return time.perf_counter()
    event = device.xp.cuda.Event()
    event.record()
    return event


def seconds_between(device: CudaDevice, start: Any, end: Any) -> float:
    """Once all is done. Waits for that."""
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


def _by_the_clock(columns: CudaTable, y: np.ndarray, n_rounds: int) -> list[float]:
    """Seconds of each round, as the caller of `boost` sees them."""
    boosting = Boosting(columns, y, np.ones(len(y)), n_rounds=n_rounds)
    seconds = []
    for _ in range(n_rounds):
        took, record = timed(lambda: next(boosting, None))
        if record is None:
            break
        seconds.append(took)
    return seconds[_SKIPPED:] or seconds


@contextlib.contextmanager
def _watched(
    device: CudaDevice, columns: CudaTable
) -> Iterator[tuple[dict[str, list[tuple[Any, Any]]], list[int]]]:
    """Watch launches on the device.

    Yields, for each kernel, the moments before and after each launch; and the samples in the bins
    that each search looked into.
    """
    launch = device.launch
    launches: dict[str, list[tuple[Any, Any]]] = defaultdict(list)
    n_scanned: list[int] = []

    def timed_launch(kernel: str, *rest: Any, **more: Any) -> None:
        if kernel == "finish":
            listed, counts = rest[2:4]
            n_listed = int(device.sent(counts)()[1])
            bins = device.sent(listed)()[:n_listed, 0]
            n_scanned.append(int(columns.bins.facts[bins, 1].sum()))
        start = now(device)
        launch(kernel, *rest, **more)
        launches[kernel].append((start, now(device)))

    device.launch = timed_launch  # type: ignore[method-assign]
    try:
        yield launches, n_scanned
    finally:
        del device.launch


def _kernels(
    device: CudaDevice, columns: CudaTable, y: np.ndarray, n_rounds: int, whole_round: float
) -> str:
    """A table of the kernels, the slowest first, and what is left of a round."""
    with _watched(device, columns) as (launches, n_scanned):
        n_done = sum(1 for _ in Boosting(columns, y, np.ones(len(y)), n_rounds=n_rounds))
    took = {
        name: [seconds_between(device, *moments) for moments in all_moments]
        for name, all_moments in launches.items()
    }
    elements, samples = columns.n_samples * columns.n_features, columns.n_samples
    share = fmean(n_scanned) / elements
    moved = {  # bytes a launch: each array once
        "advance": samples * (5 * 8 + 1),
        "add": sum(group.n_features for group in columns.groups) * samples + samples * 8,
        "scan": share * elements * (4 + 8),
    }
    rows = []
    for name, seconds in sorted(took.items(), key=lambda item: -sum(item[1])):
        n_bytes = moved.get("add" if name.startswith("add_") else name)
        figures = (len(seconds) / n_done, median(seconds) * 1e6, sum(seconds) / n_done * 1e6)
        speed = n_bytes / median(seconds) / 1e9 if n_bytes else None
        rows.append([name, *map(number, figures), number(speed)])
    rest = whole_round - sum(sum(seconds) for seconds in took.values()) / n_done
    rows.append(["the rest", "-", "-", number(rest * 1e6), "-"])
    marks = device.xp.zeros(1, dtype=np.uint32)
    empty = _alone(device, "mark", 1, THREADS, marks, 0, 0, 0, marks)
    note = (
        f"{number(100 * share)}% of the elements were scanned one by one in a round. An empty "
        f"launch takes {number(empty * 1e6)} us."
    )
    if probe := gpu_probe(samples):
        probe.warm_up()
        probe.measure()
        note += f" A copy moves {number(probe.copied / probe.copy_seconds[0] / 1e9)} GB/s."
    titles = ["", "launches a round", "us a launch", "us a round", "GB/s"]
    return f"{markdown(titles, rows)}\n\n{note}"


def _alone(device: CudaDevice, kernel: str, *arguments: Any, shared: int = 0) -> float:
    """Seconds of a launch, again and again, as events see it."""
    took = []
    with device.active():
        for _ in range(_REPEATS):
            start = now(device)
            device.launch(kernel, *arguments, shared=shared)
            took.append(seconds_between(device, start, now(device)))
    return median(took)


def _shapes(device: CudaDevice, X: Any, y: np.ndarray) -> str:
    """`add` over all samples: groups and tables of so many columns, threads and blocks."""
    rows = []
    most = device.most_shared
    for bits in (3, 4, 5):
        if layout.table_bytes(bits) > most:
            continue
        device.most_shared = layout.table_bytes(bits)  # as if there were no more
        try:
            columns = prepare(X, None, device)
            sweep = CudaState(columns, y, np.ones(len(y)))._sweep
            (part,) = columns.codes.parts()
            histograms = device.xp.zeros_like(sweep.histograms)
            by_grid = {}  # a large table has as many blocks as processors, in any case
            for samples in (4096, 1024, 256):
                groups, grid = layout.described(
                    device, columns.groups, layout.padded(len(y)), samples
                )
                by_grid[grid] = device.array(groups)
            for threads in (256, 512, device.most_threads):
                for grid, groups in by_grid.items():
                    seconds = _alone(
                        device, f"add_{1 << bits}", grid, threads, part.codes, groups,
                        part.n_groups, sweep._change, 0, part.n, histograms,
                        shared=layout.table_bytes(bits),
                    )  # fmt: skip
                    rows.append([*map(str, (1 << bits, threads, grid)), number(seconds * 1e6)])
        finally:
            device.most_shared = most
    return markdown(["columns", "threads", "blocks", "us, all samples"], rows)
