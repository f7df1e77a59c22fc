"""Benchmark records made up for tests, all alike but for what a test is about.

And which benchmarks are run from end to end: each starts processes for its contenders. The usual
run has one of each kind, with GPUSTUMP_TESTED_BENCHMARKS=all there are all.
"""

from __future__ import annotations

import functools
import os
from typing import Any

import pytest

from bench.front import RESULTS
from bench.records import Machine, Report, Result, read


def run(*turns: tuple[float, ...], **others: Any) -> Result:
    """A contender's turns: 1000 x 8, 2 and 12 rounds, unless told otherwise."""
    names = ("short", "long", "predict")
    fields: dict[str, Any] = {
        "case": "drawn",
        "contender": "someone",
        "data": "drawn",
        "data_sha256": "d" * 64,
        "samples": 1000,
        "features": 8,
        "rounds": (2, 12),
        "facts": {"exact": True, "load": 1.0, "first_fit": 2.0, "accuracy": 1.0, "auc": 1.0},
        "values": dict(zip(names, zip(*turns, strict=True), strict=False)),
    }
    return Result(**{**fields, **others})


def absent(**others: Any) -> Result:
    """A contender that is not installed."""
    return run(contender="absent", reason="not installed", facts={}, **others)


def scored(contender: str, data: str, case: str = "two classes", **values: Any) -> Result:
    """A contender's folds on a table of `accuracy`, or the reason why there are none."""
    reason = values.pop("reason", None)
    values = {name: tuple(own) for name, own in values.items()}
    classes = (60, 40) if case == "two classes" else (40, 30, 30)
    about = {"data": data, "samples": 100, "features": 4, "reason": reason, "values": values}
    facts = {"missing": 0.25, "classes": classes}
    return run(case=case, contender=contender, facts=facts, **about)


@functools.cache
def _machine() -> Machine:
    """The machine of a committed run."""
    return read(RESULTS / "panel.json").machine


def report(benchmark: str, *results: Result) -> Report:
    """A report of these results."""
    command = f"python -m bench {benchmark}"
    return Report(benchmark, command, "2026-01-01T00:00:00Z", 1.0, _machine(), results)


whole_run = pytest.mark.skipif(
    os.environ.get("GPUSTUMP_TESTED_BENCHMARKS") != "all",
    reason="a whole benchmark; see --all-benchmarks",
)


def whole_runs(*usual: Any) -> Any:
    """A function that marks the values of a parameter: others than these make whole runs."""
    return lambda value: value if value in usual else pytest.param(value, marks=whole_run)
