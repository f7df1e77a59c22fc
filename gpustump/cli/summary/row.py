"""One row's score in words and bars: which class is predicted, and what each term adds to it.

Bars are made of characters, to both sides of a zero line. If the output cannot hold block
characters, ASCII characters replace them.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpustump.cli.summary.rules import decimals_for, signed
from gpustump.cli.wording import aligned_lines, label_text, name_value_lines, number_text
from gpustump.data.readable import counted, shortened, thousands
from gpustump.model.columns import column_at
from gpustump.plots.one_row import UNITS, Amount, RowScore, total
from gpustump.plots.terms import PREDICTIONS, Pair, Term, counted_terms

_CLASSES = 6
"""The classes whose probabilities are shown, the most probable ones."""

_WHOLE = 1e15
"""Smaller whole numbers, such as years, are written in full."""


def row_lines(row: RowScore, place: str, limit: int, style: BarStyle) -> list[str]:
    """A row's prediction, and a line for each feature or pair that adds to the score.

    Parameters
    ----------
    row : RowScore
    place : str
        Which row of which table it is.
    limit : int
        The most terms with a line of their own; the others are summed in one line.
    style : BarStyle
    """
    return [*name_value_lines(_header(row, place)), "", *_table(row, limit, style)]


def _header(row: RowScore, place: str) -> list[tuple[str, str]]:
    model = row.model
    if model.is_regression:
        (predicted,) = _quantities(row, np.asarray([row.score.value]))
        rows = [("row", place), ("predicted", predicted), *_over_bags(row)]
        return [*rows, ("score", PREDICTIONS[model.link])]
    label = label_text(model.classes[1] if row.label is None else row.label)
    below = f"; below 0 means {label_text(model.classes[0])}" if row.label is None else ""
    return [
        ("row", place),
        ("predicted", label_text(row.predicted)),
        ("probabilities", _probabilities(row)),
        *_over_bags(row),
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


def _over_bags(row: RowScore) -> list[tuple[str, str]]:
    """The range of the bags' probabilities of the predicted class, or of their predictions; no row
    without bags."""
    if row.model.n_bags == 1:
        return []
    if row.model.is_regression:
        low, high = _quantities(row, np.asarray([row.score.bags.min(), row.score.bags.max()]))
        return [(f"over {row.model.n_bags} bags", f"{low} to {high}")]
    own = row.probabilities_of_bags[:, row.model.classes.index(row.predicted)]
    low, high = _probability(float(own.min())), _probability(float(own.max()))
    return [(f"over {row.model.n_bags} bags", f"{label_text(row.predicted)} {low} to {high}")]


def _quantities(row: RowScore, scores: np.ndarray) -> list[str]:
    return [number_text(value) for value in row.model.quantities_of(scores).tolist()]


def _probability(share: float) -> str:
    """Four decimals, but never 0 or 1, which no probability of a model is."""
    if share > 0.99995:
        return "> 0.9999"
    return f"{share:.4f}" if share >= 0.00005 else "< 0.0001"


def _table(row: RowScore, limit: int, style: BarStyle) -> list[str]:
    """The terms, the sum of those left out, the intercept and, below a line, the score."""
    lines = list(_addends(row, limit))
    amounts = [amount for _, _, amount in lines]
    values = [amount.value for amount in amounts]
    decimals = decimals_for(np.asarray([*values, row.score.value]))
    texts = [_numbers(amount, decimals) for amount in (*amounts, row.score)]
    rule = ["-" * max(map(len, column)) for column in zip(*texts, strict=True)]
    cells = [(name, value, *text) for (name, value, _), text in zip(lines, texts, strict=False)]
    heads = ("feature", "value", "adds", *["spread"] * (row.model.n_bags > 1))
    sums = [("", "", *rule), ("score", "", *texts[-1])]
    head, *body = aligned_lines([heads, *cells, *sums], right=range(1, len(heads)))
    drawn = bars(values, style, beside=len(head) + 2)
    with_bars = [f"{text}  {bar}" for text, bar in zip(body, drawn, strict=False)]
    return [head, *with_bars, *body[len(drawn) :], *_notes(row)]


def _addends(row: RowScore, limit: int) -> Iterator[tuple[str, str, Amount]]:
    """Names, values and amounts, what is known beforehand and the intercept last."""
    shown, others = row.split(limit)
    for term, amount in shown:
        yield _name(row, term), _value(row, term), amount
    if others:
        yield f"{thousands(len(others))} others: --top {len(row.addends)}", "", total(others)
    if row.known is not None:
        yield "(known beforehand)", "", row.known
    yield "(intercept)", "", row.intercept


def _numbers(amount: Amount, decimals: int) -> list[str]:
    """What is added and, for a bagged model, its standard deviation over the bags."""
    own = [f"{amount.deviation:.{decimals}f}"] if amount.bags.size else []
    return [signed(amount.value, decimals), *own]


def _notes(row: RowScore) -> list[str]:
    """How many terms add nothing, and what the spread is."""
    n_idle, idle = len(row.idle), []
    if n_idle:
        what = counted_terms(row.idle)
        idle = [f"({counted(n_idle, f'{what} adds', f'{what} add')} 0)"]
    n_bags = row.model.n_bags
    return [*idle, *[f"(spread: one standard deviation over {n_bags} bags)"] * (n_bags > 1)]


def _name(row: RowScore, term: Term) -> str:
    if isinstance(term, Pair):
        return " x ".join(shortened(column_at(row.model, own).name) for own in term.features)
    return shortened(term.name)


def _value(row: RowScore, term: Term) -> str:
    if isinstance(term, Pair):
        return ", ".join(_value(row, column_at(row.model, own)) for own in term.features)
    return label_text(row.value_of(term, _number))


def _number(value: float) -> str:
    is_short = value.is_integer() and abs(value) < _WHOLE
    return f"{value:.0f}" if is_short else number_text(value)


WIDTH = 30
"""The width of the longest two bars together, in characters; less in a narrow terminal."""

_LEAST = 10

_LINE_AND_PART = 2
"""Characters for the zero line and a part of a cell."""


class Marks(NamedTuple):
    """The characters of bars: whole cells, halves and slivers beside the line, and the line."""

    cell: str
    half_right: str
    half_left: str
    sliver_right: str
    sliver_left: str
    line: str


BLOCKS = Marks("█", "▌", "▐", "▏", "▕", "│")
ASCII = Marks("#", ":", ":", ".", ".", "|")


@dataclass(frozen=True)
class BarStyle:
    """How bars are written.

    Attributes
    ----------
    marks : Marks
    n_columns : int or None
        The width of the terminal; None if the output is none.
    """

    marks: Marks
    n_columns: int | None

    @classmethod
    def of(cls, stream: Any) -> BarStyle:
        """The style for a stream."""
        return cls(
            BLOCKS if _can_write(stream, "".join(BLOCKS)) else ASCII,
            shutil.get_terminal_size().columns if stream.isatty() else None,
        )


def _can_write(stream: Any, text: str) -> bool:
    try:
        text.encode(getattr(stream, "encoding", None) or "ascii")
    except (LookupError, UnicodeEncodeError):
        return False
    return True


def bars(amounts: Sequence[float], style: BarStyle, *, beside: int) -> list[str]:
    """A bar for each amount, with one scale and one line at 0.

    Parameters
    ----------
    amounts : sequence of float
    style : BarStyle
    beside : int
        The width of the text to the left of the bars.
    """
    room = WIDTH if style.n_columns is None else style.n_columns - beside - _LINE_AND_PART
    span = max(0.0, *amounts) - min(0.0, *amounts)
    unit = span / max(_LEAST, min(WIDTH, room)) or 1.0
    found = [_bar(amount, unit, style.marks) for amount in amounts]
    left = max(len(bar) if amount < 0 else 0 for bar, amount in zip(found, amounts, strict=True))
    lines = []
    for bar, amount in zip(found, amounts, strict=True):
        if amount < 0:
            before = " " * (left - len(bar)) + bar
            lines.append(before + style.marks.line)
        else:
            lines.append(" " * left + style.marks.line + bar)
    return lines


def _bar(amount: float, unit: float, marks: Marks) -> str:
    """The characters of a bar; `unit` is the amount of a whole one."""
    n_cells, n_halves = divmod(round(2 * abs(amount) / unit), 2)
    if amount < 0:
        return marks.half_left * n_halves + marks.cell * n_cells or marks.sliver_left
    return marks.cell * n_cells + marks.half_right * n_halves or marks.sliver_right * (amount > 0)
