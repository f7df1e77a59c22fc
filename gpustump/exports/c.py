"""A model as one header of C99, which is C++11 as well: tables of constants and a binary search.

The functions of the header stand in `model.h`, in which names between two @ are replaced by parts
of the model. Here are names and text as C has them, and the parts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from importlib import resources
from typing import Any

import numpy as np

from gpustump.data.readable import quoted, shown
from gpustump.exports.tables import ExportTables, Steps, export_tables, header_lines

_PLAIN = frozenset(range(0x20, 0x7F)) - frozenset(b'"\\?')
"""Bytes that stand for themselves in a string: no quote, no backslash, no ? of a trigraph."""

_PER_LINE = 4

LOG_OF_LOGISTIC = "2.0 * fmin(score, 0.0) - log1p(exp(-2.0 * fabs(score)))"
"""The logarithm of 1 / (1 + exp(-2 F)) in C."""


def to_c(model: Any, name: str = "gpustump") -> str:
    """The model as one header of C99 without dependencies, which is valid C++11, too.

    It holds `NAME_scores(row, scores)`, `NAME_predict(row)`, `NAME_predict_proba(row, p)`,
    `NAME_label(index)` and, if there are columns of text, `NAME_text(column, text)`. Of a quantity
    it holds `NAME_scores` and `NAME_predict`, whose result is a double. A row is an array of
    doubles with a value for each column; NaN is missing. Scores are int64_t, whole numbers of
    2**-36 (of a quantity, of a power of two that the header names), and exact. Nothing is
    allocated, and several threads may call at once.

    Parameters
    ----------
    model : StumpEnsemble, or a fitted estimator
    name : str
        How the names of all functions and macros begin: 1 to 63 letters, digits and _, a letter
        first.

    Returns
    -------
    str
        ASCII. Text from the model is in UTF-8, with its bytes escaped.

    Raises
    ------
    TypeError
        If model is neither a StumpEnsemble nor a fitted estimator.
    ValueError
        If name is not as described, a text in the model holds the character NUL, or the model has
        votes or labels that a model file cannot hold.

    Examples
    --------
    >>> from gpustump import AdaBoostClassifier
    >>> from gpustump.exports import to_c
    >>> clf = AdaBoostClassifier().fit([[1], [2], [3]], ["no", "yes", "yes"])
    >>> lines = to_c(clf, name="passed").splitlines()
    >>> [line for line in lines if "passed_predict(" in line]
    ['// int index = passed_predict(row);', 'static inline int passed_predict(const double *row)']
    """
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,62}", name):
        raise ValueError(
            "name must be 1 to 63 letters, digits and _, a letter first, as it begins the names in "
            f"C; got {shown(name)}."
        )
    tables = export_tables(model)
    texts = [str(label) for label in tables.classes]
    texts += [text for own in tables.columns for text in (*own.values, *own.words)]
    for text in texts:
        if "\0" in text:
            raise ValueError(
                f"text in C ends at the character NUL, which {quoted(text)} holds; export the "
                "model to another language."
            )
    lines = header_lines(tables, "C", comment)
    top = "".join(f"// {line}".rstrip() + "\n" for line in [*lines, "", *_usage(name, tables)])
    return top + "\n" + _code(tables, name)


def _usage(name: str, tables: ExportTables) -> list[str]:
    of_classes = [
        f"int index = {name}_predict(row);",
        f"const char *label = {name}_label(index);",
        f"double p[{name.upper()}_N_CLASSES];",
        f"{name}_predict_proba(row, p);  link with -lm",
    ]
    of_quantity = [f"double prediction = {name}_predict(row);  link with -lm"]
    lines = [
        f"double row[{name.upper()}_N_COLUMNS] = {{...}};  NaN is missing",
        *(of_quantity if tables.model.is_regression else of_classes),
        f"int64_t scores[{name.upper()}_N_SCORES];",
        f"{name}_scores(row, scores);",
    ]
    text = [place for place, column in enumerate(tables.columns) if column.is_text]
    if text:
        lines.insert(1, f'row[{text[0]}] = {name}_text({text[0]}, "...");  for columns of text')
    return lines


def _code(tables: ExportTables, name: str) -> str:
    model = tables.model
    wanted = ["top", "step", *(["pairs"] if tables.pairs else []), "scores"]
    if model.is_regression:
        wanted.append("quantity")
    else:
        wanted += ["binary" if model.is_binary else "classes", "predict"]
    if any(column.is_text for column in tables.columns):
        wanted.append("text")
    template = resources.files("gpustump.exports").joinpath("model.h").read_text("utf-8")
    _, *pieces = re.split(r"^/\* part: (\w+) \*/\n", template, flags=re.MULTILINE)
    code_of = dict(zip(pieces[::2], pieces[1::2], strict=True))
    parts = {
        "name": name,
        "NAME": name.upper(),
        "digest": tables.digest,
        "n_columns": str(len(tables.columns)),
        "n_classes": str(len(tables.classes)),
        "n_scores": str(model.n_outputs),
        "n_used": str(len(tables.steps)),
        "n_pairs": str(len(tables.pairs)),
        "exponent": str(tables.exponent),
        "link": "exp" if model.link == "log" else "",
        "log": LOG_OF_LOGISTIC if model.link == "logistic" else "2.0 * score",
        "and_pairs": f"\n  {name}_add_pairs(row, scores);" if tables.pairs else "",
        "labels": _strings([str(label) for label in tables.classes]),
        "constant": rows(list(map(str, tables.constant))),
        "pair_cells": rows(list(map(str, tables.cells.ravel().tolist()))),
    }
    parts |= _step_arrays(tables.steps, "", "votes") | _step_arrays(tables.axes, "pair_", "numbers")
    parts |= _texts(tables)
    code = "".join(code_of[own] for own in [*wanted, "end"]).split("@")
    code[1::2] = [parts[own] for own in code[1::2]]  # what is put in is not looked at again
    return "".join(code)


def _step_arrays(steps: Sequence[Steps], prefix: str, kind: str) -> dict[str, str]:
    """The parts for steps of several columns; what they add is named as its kind says."""
    first = np.cumsum([0, *(len(own.units) for own in steps)])
    ends = [end for own in steps for end in (*own.thresholds.tolist(), math.inf)]
    return {
        f"{prefix}columns": rows([str(own.column) for own in steps]),
        f"{prefix}first_steps": rows(list(map(str, first.tolist()))),
        f"{prefix}ends": rows([number(end) for end in ends]),
        f"{prefix}{kind}": rows([str(one) for own in steps for one in own.units.ravel().tolist()]),
    }


def _texts(tables: ExportTables) -> dict[str, str]:
    texts: list[str] = []
    codes: list[str] = []
    cases: list[str] = []
    for place, column in enumerate(tables.columns):
        if column.is_text:
            own = sorted(column.codes.items(), key=lambda pair: pair[0].encode())  # as strcmp does
            cases.append(
                f"  case {place}:\n    low = {len(texts)};\n    high = {len(texts) + len(own)};\n"
                "    break;"
            )
            texts += [text for text, _ in own]
            codes += ["NAN" if math.isnan(code) else number(code) for _, code in own]
    return {"codes": rows(codes), "cases": "\n".join(cases), "texts": _strings(texts) or "0"}


def _strings(texts: Sequence[str]) -> str:
    return ",\n    ".join(map(string, texts))


def comment(text: str) -> str:
    """Text from a model, harmless in a // comment: ASCII, and no backslash at the end of a line."""
    plain = text.encode("ascii", "backslashreplace").decode()
    return plain.replace("??", "? ?").replace("/*", "/ *").replace("*/", "* /")


def string(text: str) -> str:
    """A string literal of the text in UTF-8."""
    escaped = (chr(byte) if byte in _PLAIN else f"\\{byte:03o}" for byte in text.encode())
    return f'"{"".join(escaped)}"'


def number(value: float) -> str:
    """A double literal of 17 digits: read in extended precision first, it is still the same."""
    if math.isinf(value):
        return "HUGE_VAL" if value > 0 else "-HUGE_VAL"
    text = f"{value:.17g}"
    return text if "." in text or "e" in text else f"{text}.0"


def rows(texts: Sequence[str]) -> str:
    """The lines of an initialiser, some values on each; 0 if there are none, as C requires one."""
    found = list(texts) or ["0"]
    lines = [", ".join(found[i : i + _PER_LINE]) for i in range(0, len(found), _PER_LINE)]
    return ",\n    ".join(lines)
