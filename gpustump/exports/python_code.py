"""A model as one file of plain Python, which needs nothing but the standard library."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from gpustump.data.columns import TEMPORAL
from gpustump.exports.header_lines import header_lines
from gpustump.exports.python_functions import (
    BINARY,
    CLASSES,
    LOGISTIC,
    NUMBER,
    READ,
    SCORES,
    SOFTMAX,
    TEXT,
    TIMES,
)
from gpustump.exports.tables import Column, ExportTables, Steps, export_tables
from gpustump.model.class_labels import Label


def to_python(model: Any) -> str:
    """The model as one file of plain Python.

    It holds `predict(row)`, `predict_proba(row)` and `scores(row)`. A row is a sequence of the
    columns' values in their order, or a mapping from the columns' names. Its values are Python's
    own: numbers, str, and the classes of `datetime`. `None` and NaN are missing. Scores are lists
    of integers, whole numbers of 2**-36, and exact.

    Parameters
    ----------
    model : StumpEnsemble, or a fitted classifier

    Returns
    -------
    str
        ASCII, for Python 3.6 and later.

    Raises
    ------
    TypeError
        If model is neither a StumpEnsemble nor a fitted classifier.
    ValueError
        If the model has votes or labels that a model file cannot hold.

    Examples
    --------
    >>> from gpustump import AdaBoostClassifier
    >>> from gpustump.exports import to_python
    >>> clf = AdaBoostClassifier().fit([[1], [2], [3]], ["no", "yes", "yes"])
    >>> functions = {}
    >>> exec(to_python(clf), functions)
    >>> functions["predict"]([1.2]), functions["predict"]([2.9])
    ('no', 'yes')
    """
    tables = export_tables(model)
    lines = header_lines(tables, "Python", _ascii)
    comment = "".join(f"# {line}".rstrip() + "\n" for line in [*lines, "", *_usage(tables)])
    return comment + _imports(tables) + _data(tables) + _functions(tables)


def _usage(tables: ExportTables) -> list[str]:
    names = [column.name for column in tables.columns]
    example = ascii(names[0] if names else "x0")
    return [
        "predict(row) is the label, predict_proba(row) the probabilities, scores(row) the scores.",
        f"A row is a list of all columns, or a mapping such as {{{example[:60]}: ...}}.",
        "None and NaN are missing.",
    ]


def _ascii(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode()


def _imports(tables: ExportTables) -> str:
    modules = ["datetime", "math"] if _times(tables) else ["math"]
    lines = [f"import {module}\n" for module in modules]
    return "\n" + "".join(lines) + (
        "from bisect import bisect_left\nfrom collections.abc import Mapping\n"
    )  # fmt: skip


def _data(tables: ExportTables) -> str:
    text = {place: column.codes for place, column in enumerate(tables.columns) if column.is_text}
    return "\n".join(
        [
            "",
            f"DIGEST = {tables.digest!r}",
            f"COLUMNS = {_tuple(ascii(column.name) for column in tables.columns)}",
            f"CLASSES = {_tuple(map(_label, tables.classes))}",
            f"CONSTANT = {_tuple(map(str, tables.constant))}",
            *([f"CODES = {_literal(text)}"] if text else []),
            "STEPS = (  # column, upper ends of steps, what each and, last, a missing value adds",
            *map(_steps_lines, tables.steps),
            ")\n",
        ]
    )


def _literal(codes: dict[int, dict[str, float]]) -> str:
    """A dict of codes as Python code, with math.nan for NaN."""
    columns = []
    for place, own in codes.items():
        pairs = (
            f"{value!a}: {'math.nan' if math.isnan(code) else repr(code)}"
            for value, code in own.items()
        )
        columns.append(f"    {place}: {{{', '.join(pairs)}}},\n")
    return "{\n" + "".join(columns) + "}"


def _steps_lines(steps: Steps) -> str:
    ends = _tuple(_float(end) for end in steps.thresholds.tolist())
    votes = _tuple(_tuple(map(str, own)) for own in steps.units.tolist())
    return f"    ({steps.column},\n     {ends},\n     {votes}),"


def _float(value: float) -> str:
    return repr(value) if math.isfinite(value) else ("math.inf" if value > 0 else "-math.inf")


def _label(label: Label) -> str:
    return _float(label) if isinstance(label, float) else ascii(label)


def _tuple(texts: Iterable[str]) -> str:
    found = list(texts)
    return f"({', '.join(found)}{',' * (len(found) == 1)})"


def _times(tables: ExportTables) -> list[str]:
    """The kinds of times among the columns, and those whose functions theirs call."""
    kinds = {column.kind for column in tables.columns}
    needs = kinds | ({"datetime", "duration"} if "date" in kinds else set())
    needs |= {"duration"} if "datetime" in kinds else set()
    return [kind for kind in TEMPORAL if kind in needs]


def _functions(tables: ExportTables) -> str:
    one_or_more = "a list of one" if tables.n_outputs == 1 else "one for each class"
    rest = LOGISTIC if tables.link == "logistic" else SOFTMAX
    kinds = [_kind(column) for column in tables.columns]
    readers = {"_number": NUMBER, "_text": TEXT} | {f"_{k}": TIMES[k] for k in TEMPORAL}
    used = {"_number", *kinds, *(f"_{kind}" for kind in _times(tables))}
    blocks = [
        SCORES.replace("{one_or_more}", one_or_more),
        BINARY if tables.is_binary else CLASSES + "\n" + rest,
        READ,
        "\n".join(code for name, code in readers.items() if name in used),
        f"\n\n_READERS = {_tuple(kinds)}\n",
    ]
    return "\n" + "".join(blocks)


def _kind(column: Column) -> str:
    """The name of the function that reads a column's values."""
    if column.is_text or column.kind in TEMPORAL:
        return f"_{column.kind}"
    return "_number"
