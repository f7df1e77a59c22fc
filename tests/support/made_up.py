"""Benchmark records made up for tests, all alike but for what a test is about."""

from __future__ import annotations

from typing import Any

from bench.records import Machine, Report, Run, Section, Speed, Turn


def run(*turns: tuple[float, ...], **others: Any) -> Run:
    """A run of these turns: 1000 x 8, 2 and 12 rounds, unless told otherwise."""
    fields: dict[str, Any] = {
        "contender": "someone",
        "parameters": {},
        "exact": True,
        "data": "drawn",
        "data_sha256": "d" * 64,
        "samples": 1000,
        "features": 8,
        "distinct": None,
        "threads": 1,
        "rounds": (2, 12),
        "load": 1.0,
        "first_fit": 2.0,
        "accuracy": 1.0,
        "auc": 1.0,
    }
    return Run(turns=tuple(Turn(*turn) for turn in turns), **{**fields, **others})


def absent() -> Run:
    """A run of someone who was not there."""
    return run(contender="absent", reason="not installed", load=None, accuracy=None, auc=None)


def report(benchmark: str, *sections: Section, speeds: tuple[Speed, ...] = ()) -> Report:
    """A report of these sections."""
    machine = Machine(
        processor="a processor",
        cores=1,
        memory=None,
        system="Linux",
        python="3.11",
        gpustump="0.1.0",
        commit=None,
        source_sha256="5" * 64,
        versions={"numpy": "2.1"},
        gpus=(),
    )
    command = f"python -m bench {benchmark}"
    return Report(benchmark, command, "2026-01-01T00:00:00Z", 1.0, machine, sections, speeds)
