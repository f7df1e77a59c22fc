"""One row's score in words and bars: which class is predicted, and what each term adds to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from gpustump.cli.summary.rules import decimals_for, signed
from gpustump.cli.wording import aligned_lines, label_text, number_text
from gpustump.data.readable import counted, shortened, thousands
from gpustump.model.columns import column_at
from gpustump.plots.one_row import UNITS, Amount, RowScore, total
from gpustump.plots.terms import PREDICTIONS, Pair, Term, counted_terms

_CLASSES = 6
"""The classes whose probabilities are shown, the most probable ones."""

WIDTH = 30
"""The width of the longest two bars together, in characters."""

_WHOLE = 1e15
"""Smaller whole numbers, such as years, are written in full."""


def row_lines(row: RowScore, place: str, limit: int) -> list[str]:
    """A row's prediction, and a line for each feature or pair that adds to the score.

    Parameters
    ----------
    row : RowScore
    place : str
        Which row of which table it is.
    limit : int
        The most terms with a line of their own; the others are summed in one line.
    """
    return [*aligned_lines(_header(row, place)), "", *_table(row, limit)]


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


def _table(row: RowScore, limit: int) -> list[str]:
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
    drawn = bars(values)
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


def bars(amounts: Sequence[float]) -> list[str]:
    """A bar for each amount, to both sides of one line at 0."""
    span = max(0.0, *amounts) - min(0.0, *amounts) or 1.0
    drawn = ["#" * round(WIDTH * abs(amount) / span) for amount in amounts]
    below = [bar if amount < 0 else "" for bar, amount in zip(drawn, amounts, strict=True)]
    above = [bar if amount >= 0 else "" for bar, amount in zip(drawn, amounts, strict=True)]
    width = max(map(len, below))
    return [f"{left:>{width}}|{right}" for left, right in zip(below, above, strict=True)]
