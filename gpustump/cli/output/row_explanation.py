"""One row's score in words and bars: which class is predicted, and what each column adds to it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpustump.cli.output.region_rules import decimals_for, signed
from gpustump.cli.output.text_bars import BarStyle, bars
from gpustump.cli.output.text_layout import aligned_lines, name_value_lines
from gpustump.cli.wording import label_text, number_text
from gpustump.data.readable import counted, shortened, thousands
from gpustump.plots.columns import Category, Column
from gpustump.plots.one_row import UNITS, RowScore, total

_CLASSES = 6
"""The classes whose probabilities are shown, the most probable ones."""

_WHOLE = 1e15
"""Smaller whole numbers, such as years, are written in full."""


class Place(NamedTuple):
    """Which row of which table it is: its number from 1, the number of rows, the table's name."""

    number: int
    n_rows: int
    source: str


def row_lines(row: RowScore, place: Place, limit: int, style: BarStyle) -> list[str]:
    """A row's prediction, and a line for each column that adds to the score.

    Parameters
    ----------
    row : RowScore
    place : Place
    limit : int
        The most columns with a line of their own; the others are summed in one line.
    style : BarStyle
    """
    return [*name_value_lines(_header(row, place)), "", *_table(row, limit, style)]


def _header(row: RowScore, place: Place) -> list[tuple[str, str]]:
    model = row.model
    label = label_text(model.classes[1] if row.label is None else row.label)
    below = f"; below 0 means {label_text(model.classes[0])}" if row.label is None else ""
    of = f"{thousands(place.number)} of {thousands(place.n_rows)} in {shortened(place.source)}"
    return [
        ("row", of),
        ("predicted", label_text(row.predicted)),
        ("probabilities", _probabilities(row)),
        ("score of", f"{label}, {UNITS[model.link]}{below}"),
    ]


def _probabilities(row: RowScore) -> str:
    """The classes with their probabilities, the most probable first."""
    order = np.argsort(-row.probabilities, kind="stable").tolist()
    shown = [
        f"{label_text(row.model.classes[k])} {_probability(float(row.probabilities[k]))}"
        for k in order[:_CLASSES]
    ]
    n_more = len(order) - _CLASSES
    more = f" and {counted(n_more, 'class', 'classes')} more" if n_more > 0 else ""
    return ", ".join(shown) + more


def _probability(share: float) -> str:
    """Four decimals, which are never 0 or 1: no probability of a model is."""
    if share > 0.99995:
        return "> 0.9999"
    return f"{share:.4f}" if share >= 0.00005 else "< 0.0001"


def _table(row: RowScore, limit: int, style: BarStyle) -> list[str]:
    """The columns, the sum of those left out, the intercept and, below a line, the score."""
    shown, others = row.split(limit)
    rows = [(_name(row, column), _value(row, column)) for column, _ in shown]
    amounts = [amount for _, amount in shown]
    if others:
        rows.append((f"{thousands(len(others))} others: --top {len(row.addends)}", ""))
        amounts.append(total(others))
    rows.append(("(intercept)", ""))
    amounts.append(row.intercept)
    decimals = decimals_for(np.asarray([*amounts, row.score]))
    texts = [signed(amount, decimals) for amount in (*amounts, row.score)]
    line = "-" * max(map(len, texts))
    cells = [(*cell, text) for cell, text in zip(rows, texts, strict=False)]
    sums = [("", "", line), ("score", "", texts[-1])]
    lines = aligned_lines([("feature", "value", "adds"), *cells, *sums], right=(1, 2))
    head, *body = lines
    drawn = bars(amounts, style, beside=len(head) + 2)
    with_bars = [f"{text}  {bar}" for text, bar in zip(body, drawn, strict=False)]
    return [head, *with_bars, *body[len(drawn) :], *_idle(row)]


def _idle(row: RowScore) -> list[str]:
    """How many columns add nothing."""
    n_idle = row.n_columns - len(row.addends)
    return [f"({counted(n_idle, 'feature adds', 'features add')} 0)"] if n_idle else []


def _name(row: RowScore, column: Column) -> str:
    if isinstance(column, Category):
        return shortened(column.name)
    return shortened(row.model.encoding.shown_names[column])


def _value(row: RowScore, column: Column) -> str:
    return label_text(" + ".join(row.values_of(column, _number)))


def _number(value: float) -> str:
    is_short = value.is_integer() and abs(value) < _WHOLE
    return f"{value:.0f}" if is_short else number_text(value)
