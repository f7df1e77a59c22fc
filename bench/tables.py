"""Tables from the JSON of a run; nothing is measured here."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

from bench.timing import per_round, ratio


def table(report: dict[str, Any]) -> str:
    """The report as text."""
    lines = {"backends": _backends, "growth": _growth}[report["benchmark"]](report)
    machine = report["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    gpus = "; ".join(machine["gpus"]) or "no GPU"
    return "\n".join(
        [*lines, "", f"{machine['processor']}, {machine['cores']} cores, {gpus}", versions]
    )


def _backends(report: dict[str, Any]) -> list[str]:
    runs = report["runs"]
    samples, features = runs[0]["shape"]
    costs = [per_round(run["short"], run["long"], report["rounds"]) for run in runs]
    width = max(len(run["name"]) for run in runs)
    lines = [
        f"{samples} x {features} float32, cost of a round, median of {len(costs[0])} turns",
        "",
        f"{'':{width}}  ms/round  (min-max)        ns/element  x {runs[-1]['name']}  digest",
    ]
    for run, cost in zip(runs, costs, strict=True):
        middle = statistics.median(cost)
        spread = f"({min(cost) * 1e3:.1f}-{max(cost) * 1e3:.1f})"
        times = f"{ratio(cost, costs[-1]):.1f}"
        lines.append(
            f"{run['name']:{width}}  {middle * 1e3:8.1f}  {spread:15}"
            f"{middle * 1e9 / (samples * features):12.2f}"
            f"{times:>{len(runs[-1]['name']) + 4}}  {(run['digest'] or '-')[:12]}"
        )
    return lines


def _growth(report: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    for column, (axis, runs) in enumerate(report["axes"].items()):
        costs = [
            statistics.median(per_round(run["short"], run["long"], report["rounds"]))
            for run in runs
        ]
        exponent = _exponent([run["shape"][column] for run in runs], costs)
        lines += [""] if lines else []
        lines.append(f"{runs[0]['name']}: cost of a round over {axis}, exponent {exponent:.2f}")
        for run, cost in zip(runs, costs, strict=True):
            samples, features = run["shape"]
            each = cost * 1e9 / (samples * features)
            lines.append(f"  {samples:>8} x {features:<4}{cost * 1e3:9.2f} ms{each:8.2f} ns/el.")
    return lines


def _exponent(sizes: Sequence[int], costs: Sequence[float]) -> float:
    """The exponent of a power law through the points: a line through their logarithms."""
    x, y = [math.log(size) for size in sizes], [math.log(cost) for cost in costs]
    return statistics.linear_regression(x, y).slope if len(sizes) > 1 else math.nan
