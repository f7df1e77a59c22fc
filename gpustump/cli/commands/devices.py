"""`gpustump devices`: devices, libraries and engines, and why some cannot be used here."""

from __future__ import annotations

import argparse
from typing import NamedTuple

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


class EngineLine(NamedTuple):
    """What is shown of an engine.

    Attributes
    ----------
    name, summary : str
    place : str
        The kind of device that it trains on.
    tables : str
        Which tables it trains.
    problem : str or None
        Why it cannot be used; None if it can.
    """

    name: str
    summary: str
    place: str
    tables: str
    problem: str | None


def run(arguments: argparse.Namespace) -> None:
    """Print a line for each device and library, one for each engine, and what "auto" does."""
    found = devices()
    with as_input_error():  # about GPUSTUMP_KERNELS
        asked_for = route.asked_for()
        gpu_problem = route.why_not_on_gpu(_large_table())
    blocks = [
        _device_lines(found),
        _engine_lines(_engines(gpu_problem), found),
        _automatic_choice(gpu_problem),
    ]
    if asked_for != "auto":
        blocks.append([f"The environment variable GPUSTUMP_KERNELS asks for {asked_for!r}."])
    print("\n\n".join("\n".join(lines) for lines in blocks))


def _device_lines(found: tuple[Device, ...]) -> list[str]:
    rows = [("device", "library", "version", "usable", "")]
    for device in found:
        usable = "yes" if device.usable else "no"
        rows.append((device.name, device.library, device.version or "-", usable, device.detail))
    return aligned_lines(rows)


def _large_table() -> Task:
    """A table on the host that is large enough for a GPU; its values take no memory."""
    n_samples = route.least_elements()
    return Task(np.broadcast_to(np.float32(0), (n_samples, 1)), n_samples)


def _engines(gpu_problem: str | None) -> list[EngineLine]:
    task = _large_table()
    small = f"{thousands(route.SORTED_SAMPLES)} rows or {thousands(route.SORTED_ELEMENTS)} values"
    lines = [
        EngineLine(engine.name, engine.summary, place, tables, engine.refusal(task))
        for engine, place, tables in (
            (REFERENCE, "any", "what the others cannot train, and short jobs"),
            (SORTED, "cpu", f"tables of up to {small}"),
            (CODED, "cpu", "larger tables"),
        )
    ]
    tables = "arrays on a GPU, and large tables on the host"
    return [*lines, EngineLine(CudaEngine.name, CudaEngine.summary, "cuda", tables, gpu_problem)]


def _engine_lines(engines: list[EngineLine], found: tuple[Device, ...]) -> list[str]:
    rows = [("engine", "device", "usable", "")]
    shown = {device.detail for device in found}
    for engine in engines:
        usable = "yes" if engine.problem is None else "no"
        text = engine.problem or engine.tables
        if text in shown:
            text = "no usable GPU; the list of devices says why"
        row = engine.name, engine.place, usable, f"{engine.summary}: {text}"
        rows.append(row)
    return aligned_lines(rows)


def _automatic_choice(gpu_problem: str | None) -> list[str]:
    """What --device auto does with a table on the host, as all tables in files are."""
    rounds = f"{route.USUAL_ROUNDS} rounds"
    millions = -(-route.least_elements() // 10**6)
    large = f"{millions} million or more values (rows x columns)"
    if gpu_problem is not None:
        lines = [
            "--device auto: all tables train on the CPU here. If a GPU and its engine were usable,",
            f"tables of {large} would train there for {rounds}.",
        ]
    else:
        lines = [
            f"--device auto: for {rounds}, tables of {large} train on a GPU,",
            "smaller ones on the CPU. With more rounds the limit is lower, with fewer higher.",
        ]
    return lines
