"""`gpustump devices`: devices, libraries and engines, and why some cannot be used here."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from gpustump.arrays.devices import Device, devices
from gpustump.cli.errors import as_input_error
from gpustump.cli.wording import aligned_lines
from gpustump.data.readable import thousands
from gpustump.engines import route
from gpustump.engines.contract import Task
from gpustump.engines.cpu.engine import CODED, SORTED
from gpustump.engines.cuda.engine import CudaEngine
from gpustump.engines.reference.engine import REFERENCE

_SMALL = f"{thousands(route.SORTED_SAMPLES)} rows and {thousands(route.SORTED_ELEMENTS)} values"

ENGINES: tuple[tuple[Any, str, str], ...] = (
    (REFERENCE, "any", "what the others cannot train, and short jobs"),
    (SORTED, "cpu", f"tables of up to {_SMALL}"),
    (CODED, "cpu", "larger tables"),
    (CudaEngine, "cuda", "arrays on a GPU, and large tables on the host"),
)
"""Each engine, the kind of device that it trains on, and which tables it trains."""


def run(arguments: argparse.Namespace) -> None:
    """Print a line for each device and library, one for each engine, and what "auto" does."""
    found = devices()
    n_samples = route.least_elements()  # large enough for a GPU; the values take no memory
    task = Task(np.broadcast_to(np.float32(0), (n_samples, 1)), n_samples)
    with as_input_error():  # about GPUSTUMP_KERNELS
        asked_for = route.asked_for()
        gpu_problem = route.why_not_on_gpu(task)
    blocks = [_device_lines(found), _engine_lines(found, task, gpu_problem)]
    blocks.append(_automatic_choice(gpu_problem))
    if asked_for != "auto":
        blocks.append([f"The environment variable GPUSTUMP_KERNELS asks for {asked_for!r}."])
    print("\n\n".join("\n".join(lines) for lines in blocks))


def _device_lines(found: tuple[Device, ...]) -> list[str]:
    rows = [("device", "library", "version", "usable", "")]
    for device in found:
        usable = "yes" if device.usable else "no"
        rows.append((device.name, device.library, device.version or "-", usable, device.detail))
    return aligned_lines(rows)


def _engine_lines(found: tuple[Device, ...], task: Task, gpu_problem: str | None) -> list[str]:
    rows, shown = [("engine", "device", "usable", "")], {device.detail for device in found}
    for engine, place, tables in ENGINES:
        problem = gpu_problem if place == "cuda" else engine.refusal(task)
        text = problem or tables
        if text in shown:
            text = "no usable GPU; the list of devices says why"
        usable = "yes" if problem is None else "no"
        rows.append((engine.name, place, usable, f"{engine.summary}: {text}"))
    return aligned_lines(rows)


def _automatic_choice(gpu_problem: str | None) -> list[str]:
    """What --device auto does with a table on the host, as all tables in files are."""
    rounds = f"{route.USUAL_ROUNDS} rounds"
    millions = -(-route.least_elements() // 10**6)
    large = f"{millions} million or more values (rows x columns)"
    if gpu_problem is not None:
        return [
            "--device auto: all tables train on the CPU here. If a GPU and its engine were usable,",
            f"tables of {large} would train there for {rounds}.",
        ]
    return [
        f"--device auto: for {rounds}, tables of {large} train on a GPU,",
        "smaller ones on the CPU. With more rounds the limit is lower, with fewer higher.",
    ]
