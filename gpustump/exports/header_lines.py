"""The lines at the top of every export: what it is, of which model, and what its columns hold.

Names and labels come from a model file, so they may hold anything. Here they are made printable, on
one line; each language then puts its own comment marks before the lines.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

from gpustump.data.columns import UNITS
from gpustump.data.readable import counted, quoted, thousands
from gpustump.exports.tables import Column, ExportTables

MARK = "gpustump export"
"""What the first line of every export begins with, after the comment mark."""

VERSION = str(importlib.import_module("gpustump").__version__)
"""Looked up at run time: the package's root imports from all rooms, so no room may import it."""

_SHOWN = 60
"""Names and labels with more characters are cut in these lines."""

_MOST_LISTED = 200
"""More columns or classes than that are counted, not listed."""


def header_lines(tables: ExportTables, kind: str, texts: Callable[[str], str]) -> list[str]:
    """The lines for one model: what the export is, its columns and its classes.

    Parameters
    ----------
    tables : ExportTables
    kind : str
        The language.
    texts : callable
        Makes text from a model harmless in a comment of that language.
    """
    n_steps = sum(len(own.thresholds) for own in tables.steps)
    pairs = f"{counted(len(tables.pairs), 'pair')}, " if tables.pairs else ""
    return [
        f"{MARK}, {kind}, by gpustump {VERSION}",
        f"model {tables.digest}",
        f"{counted(len(tables.columns), 'column')}, {thousands(len(tables.used))} of them used, "
        f"{counted(n_steps, 'step')}, {pairs}{_predicted(tables)}",
        "",
        *_exactness(tables),
        "",
        "columns:",
        *_listed([_column_line(place, own, texts) for place, own in enumerate(tables.columns)]),
        *(["classes:"] if tables.classes else []),
        *_listed([f"{i}: {shortened(label, texts)}" for i, label in enumerate(tables.classes)]),
    ]


def _predicted(tables: ExportTables) -> str:
    if tables.is_regression:
        return "predicts a quantity"
    return counted(len(tables.classes), "class", "classes")


def _exactness(tables: ExportTables) -> list[str]:
    """What scores are, and what is exact."""
    unit = f"2**{tables.exponent}"
    if not tables.is_regression:
        return [
            f"Scores are whole numbers of {unit}: score * {unit} is the model's decision_function.",
            "Scores and labels are exact; probabilities may differ in the last bits.",
        ]
    if tables.link == "identity":
        return [
            f"Scores are whole numbers of {unit}: score * {unit} is the prediction.",
            "Scores and predictions are exact. An init_score is added to the prediction.",
        ]
    return [
        f"Scores are whole numbers of {unit}: exp(score * {unit}) is the prediction.",
        "Scores are exact; predictions may differ in the last bits.",
        "A prediction is multiplied by the exposure, or by the exponential of an init_score.",
    ]


def shortened(value: object, texts: Callable[[str], str] = str) -> str:
    """A name or label on one line, cut if it is long; text in quotes."""
    text = quoted(value) if isinstance(value, str) else repr(value)
    return texts(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def _column_line(place: int, column: Column, texts: Callable[[str], str]) -> str:
    holds = UNITS.get(column.kind, column.kind)
    if column.is_text:
        holds = f"text, {counted(len(column.values), 'value')}"
    if column.kind == "boolean":
        holds = "0 or 1"
    return f"{place}: {shortened(column.name, texts)}, {holds}"


def _listed(lines: list[str]) -> list[str]:
    more = len(lines) - _MOST_LISTED
    shown = lines[:_MOST_LISTED] + ([f"and {thousands(more)} more"] if more > 0 else [])
    return [f"  {line}" for line in shown]
