"""Models whose columns are text, dates and booleans, with hostile names, and rows for them."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import numpy as np
import pytest

from gpustump import CategoryStump, Interval, Member, RegionMember, Split, Stump, StumpEnsemble
from gpustump.learners.step_table import VOTE_UNIT
from gpustump.model.encoding import Encoding, InputColumn

pl = pytest.importorskip("polars")

COLOURS = ("*/ x", "-- '", "?", "??/", 'a "b"', "a'b", "back\\slash", "blue", "line\nbreak\r", "é☃")
"""Sorted, as training sorts them; "?" is a word for missing values, so it is never met."""

SHAPES = ("", "0", "\x1b[31m", "round", "{x}", "\u202e rtl")

ENCODING = Encoding(
    (
        InputColumn("size", 1, "number"),
        InputColumn('col\'our "s" ☃', 2, "category", COLOURS),
        InputColumn("select", 3, "numbered", SHAPES),
        InputColumn("flag", 4, "boolean"),
        InputColumn("day", 5, "date"),
        InputColumn("at", 6, "datetime"),
        InputColumn("hour", 7, "time"),
        InputColumn("unused", 8, "category", ("p", "q")),
    ),
    9,
    True,
    missing=("?", "-9", "0.5"),
)
NAMES = tuple(column.name for column in ENCODING.columns)
N_FEATURES = len(ENCODING.shown_names)
SHAPE, FLAG, DAY, AT, HOUR = (1 + len(COLOURS) + k for k in range(5))
N_ROWS = 240


def binary_model() -> StumpEnsemble:
    random = np.random.default_rng(2)
    stumps: list[Any] = [
        Interval(0, -0.5, 0.5, 1, -1, 0.25),
        Stump(0, 0.25, -1, 1, 0.25),
        *(Stump(1 + k, 0.5, 1, 1 - 2 * (k % 2), 0.25) for k in range(len(COLOURS))),
        CategoryStump(SHAPE, (0, 2, 5), (1, 4), 1, -1, 0.25),
        CategoryStump(SHAPE, (1,), (3,), 1, 1, 0.25),
        Stump(FLAG, 0.5, 1, -1, 0.25),
        Stump(DAY, 10.5, 1, -1, 0.25),
        Stump(DAY, -3.0, 1, 1, 0.25),
        Stump(AT, 1.0005, 1, -1, 0.25),
        Stump(AT, 0.1, 1, -1, 0.25),
        Stump(HOUR, 3600.0, -1, 1, 0.25),
    ]
    votes = tuple((random.integers(1, 2**36, size=len(stumps)) * VOTE_UNIT).tolist())
    return _model((Member(tuple(stumps), votes),), ("no", "yes \"'; DROP TABLE data; --\n"))


def shared_model() -> StumpEnsemble:
    random = np.random.default_rng(3)
    splits = [
        Split(0, 0.5),
        Split(FLAG, 0.5),
        Split(DAY, 3.0),
        Split(AT, 1.0005),
        Split(HOUR, 60.5),
    ]
    splits += [Split(1 + k, 0.5) for k in range(len(COLOURS))] + [Split(SHAPE, 2.5)]
    votes = random.integers(-(2**37), 2**37, size=(len(splits), 3, 3)) * VOTE_UNIT
    return _model((RegionMember(tuple(splits), votes, np.zeros(3)),), (True + 1, 0, -5))


def _model(members: Any, classes: Any) -> StumpEnsemble:
    return StumpEnsemble(
        members, N_FEATURES, classes, ENCODING.feature_names,
        details={"encoding": ENCODING.as_details()},
    )  # fmt: skip


def _column(values: list[Any], random: np.random.Generator) -> list[Any]:
    return [values[k] for k in random.integers(len(values), size=N_ROWS)]


def table() -> dict[str, list[Any]]:
    """The rows as Python has them; None is missing."""
    random = np.random.default_rng(4)
    start = dt.datetime(1970, 1, 1)
    ticks = [0, 99, 100, 101, 1000, 1001, 1002, -5, 86_400_000]
    below_one_half = math.nextafter(0.5, 0)
    columns: list[list[Any]] = [
        [-9.0, 0.5, -0.5, 0.25, -0.0, below_one_half, math.nextafter(0.5, 1), math.inf, -math.inf],
        [*COLOURS, "unknown", "BLUE", "blue "],
        [*SHAPES, "unknown", "?"],
        [True, False],
        [dt.date(1970, 1, 1) + dt.timedelta(days=k) for k in (-4, -3, -2, 0, 3, 4, 10, 11, 20000)],
        [start + dt.timedelta(milliseconds=k) for k in ticks],
        [dt.time(0), dt.time(0, 1), dt.time(0, 1, 1), dt.time(1), dt.time(1, 0, 0, 1000)],
        ["p", "r"],
    ]
    return {
        name: _column([*values, None], random)
        for name, values in zip(NAMES, columns, strict=True)
    }  # fmt: skip


def frame() -> Any:
    return pl.DataFrame(table(), strict=False)


def rows() -> list[tuple[Any, ...]]:
    return list(zip(*table().values(), strict=True))


def rows_of_numbers() -> list[tuple[Any, ...]]:
    """The rows with dates and times in the units that exports to C and ONNX take."""
    days, seconds = pl.col(pl.Date).cast(int), pl.col(pl.Datetime).dt.epoch("us") / 1e6
    return frame().with_columns(days, seconds, pl.col(pl.Time).cast(int) / 1e9).rows()


MODELS = {"two classes": binary_model(), "three classes": shared_model()}
