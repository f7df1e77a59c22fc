"""Benchmark records made up for tests, all alike but for what a test is about."""

from __future__ import annotations

from typing import Any

from bench.accuracy_records import Accuracy, Fold, Result, TableResults
from bench.glassbox_records import Glassbox, GlassFold, GlassResult, GlassTable
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
    """A run of a contender that is not installed."""
    return run(contender="absent", reason="not installed", load=None, accuracy=None, auc=None)


def machine() -> Machine:
    """A machine with the required fields."""
    return Machine(
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


def report(benchmark: str, *sections: Section, speeds: tuple[Speed, ...] = ()) -> Report:
    """A report of these sections."""
    command = f"python -m bench {benchmark}"
    return Report(benchmark, command, "2026-01-01T00:00:00Z", 1.0, machine(), sections, speeds)


def fold(error: float = 0.0, log_loss: float = 0.5, stumps: int = 7, seconds: float = 1.0) -> Fold:
    """What a contender did on one fold of `accuracy`."""
    return Fold(error=error, log_loss=log_loss, stumps=stumps, seconds=seconds)


def result(contender: str, *folds: Fold, group: str = "", reason: str | None = None) -> Result:
    """What a contender did on a table of `accuracy`."""
    return Result(
        contender=contender,
        group=group or contender,
        parameters={},
        rounds=7,
        folds=folds,
        reason=reason,
    )


def table(name: str, *results: Result, classes: tuple[int, ...] = (60, 40)) -> TableResults:
    """A table of `accuracy`: 4 features, a quarter of the values missing."""
    return TableResults(
        name=name,
        about=f"About {name}.",
        samples=sum(classes),
        features=4,
        classes=classes,
        missing=0.25,
        sha256="a" * 64,
        results=results,
    )


def accuracy(*tables: TableResults, folds: int = 2) -> Accuracy:
    """A run of `accuracy`."""
    return Accuracy(
        benchmark="accuracy",
        command="python -m bench accuracy",
        started="2026-01-01T00:00:00Z",
        seconds=1.0,
        machine=machine(),
        rounds=7,
        folds=folds,
        threads=1,
        tables=tables,
    )


def glass_fold(
    fit: float = 1.0, log_loss: float = 0.5, error: float = 0.1, predict: float = 0.01
) -> GlassFold:
    """What a contender did on one fold of `glassbox`."""
    return GlassFold(error=error, log_loss=log_loss, brier=0.2, fit=fit, predict=predict)


def glass_table(
    name: str, classes: tuple[int, ...] = (60, 40), **folds: tuple[GlassFold, ...] | str
) -> GlassTable:
    """A table of `glassbox`: each contender's folds, or the reason why it has none."""
    results = [
        GlassResult(contender=who.replace("_", " "), parameters={}, reason=done)
        if isinstance(done, str)
        else GlassResult(contender=who.replace("_", " "), parameters={}, folds=done)
        for who, done in folds.items()
    ]
    return GlassTable(
        name=name,
        about=f"About {name}.",
        samples=sum(classes),
        features=4,
        classes=classes,
        missing=0.25,
        sha256="a" * 64,
        results=tuple(results),
    )


def glassbox(*tables: GlassTable) -> Glassbox:
    """A run of `glassbox`, with at most 3 folds."""
    return Glassbox(
        benchmark="glassbox",
        command="python -m bench glassbox",
        started="2026-01-01T00:00:00Z",
        seconds=1.0,
        machine=machine(),
        folds=3,
        limit=10.0,
        threads=1,
        tables=tables,
    )
