"""A model as one header of C99, which is C++11 as well: tables of constants and a binary search."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpustump.data.readable import quoted
from gpustump.exports.c_functions import (
    AND_PAIRS,
    BINARY,
    CATEGORY,
    CLASSES,
    END,
    EXPONENTIAL,
    IDENTITY,
    LOGISTIC,
    N_CLASSES,
    PAIRS,
    PREDICT,
    QUANTITY,
    SCORES,
    SOFTMAX,
    STEP,
    TOP,
)
from gpustump.exports.c_text import check_name, comment, number, rows, string
from gpustump.exports.header_lines import header_lines
from gpustump.exports.tables import ExportTables, Steps, export_tables


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
    check_name(name)
    tables = export_tables(model)
    refuse_nul(tables)
    lines = header_lines(tables, "C", comment)
    top = "".join(f"// {line}".rstrip() + "\n" for line in [*lines, "", *_usage(name, tables)])
    return top + "\n" + _code(tables, name)


def refuse_nul(tables: ExportTables) -> None:
    """Refuse text with the character NUL, at which text in C ends.

    Raises
    ------
    ValueError
    """
    texts = [str(label) for label in tables.classes]
    texts += [text for own in tables.columns for text in (*own.values, *own.words)]
    for text in texts:
        if "\0" in text:
            raise ValueError(
                f"text in C ends at the character NUL, which {quoted(text)} holds; export the "
                "model to another language."
            )


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
        *(of_quantity if tables.is_regression else of_classes),
        f"int64_t scores[{name.upper()}_N_SCORES];",
        f"{name}_scores(row, scores);",
    ]
    text = [place for place, column in enumerate(tables.columns) if column.is_text]
    if text:
        lines.insert(1, f'row[{text[0]}] = {name}_text({text[0]}, "...");  for columns of text')
    return lines


def _code(tables: ExportTables, name: str) -> str:
    scores = STEP + (PAIRS if tables.pairs else "") + SCORES
    if tables.is_regression:
        code = TOP + scores + QUANTITY
    else:
        code = TOP + N_CLASSES + scores + (BINARY if tables.is_binary else CLASSES) + PREDICT
    parts = _sizes(tables) | _arrays(tables) | _labels(tables)
    parts["and_pairs"] = AND_PAIRS.format(name) if tables.pairs else ""
    parts |= {"name": name, "NAME": name.upper(), "digest": tables.digest}
    parts["log"] = LOGISTIC if tables.link == "logistic" else SOFTMAX
    prediction = IDENTITY if tables.link == "identity" else EXPONENTIAL
    parts["prediction"] = prediction.format(tables.exponent)
    parts["exponent"] = str(tables.exponent)
    if any(column.is_text for column in tables.columns):
        code += CATEGORY
        parts |= _texts(tables)
    return _filled(code + END, parts)


def _filled(code: str, parts: dict[str, str]) -> str:
    """The code with its parts in place of their names; what is put in is not looked at again."""
    pieces = code.split("@")
    pieces[1::2] = [parts[name] for name in pieces[1::2]]
    return "".join(pieces)


def _sizes(tables: ExportTables) -> dict[str, str]:
    counts = {
        "n_columns": len(tables.columns),
        "n_classes": len(tables.classes),
        "n_scores": tables.n_outputs,
        "n_used": len(tables.steps),
        "n_pairs": len(tables.pairs),
    }
    return {key: str(count) for key, count in counts.items()}


def _arrays(tables: ExportTables) -> dict[str, str]:
    found = _step_arrays(tables.steps, "", "votes") | _step_arrays(tables.axes, "pair_", "numbers")
    found["constant"] = rows(list(map(str, tables.constant)))
    found["pair_cells"] = rows(list(map(str, tables.cells.ravel().tolist())))
    return found


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


def _labels(tables: ExportTables) -> dict[str, str]:
    return _listed_texts("label", [str(label) for label in tables.classes])


def _listed_texts(kind: str, texts: list[str]) -> dict[str, str]:
    """The parts `{kind}s` and `long_{kind}s`: long texts stand in arrays before the list."""
    literals = list(map(string, texts))
    arrays = []
    for place, literal in enumerate(literals):
        if literal.startswith("{"):
            arrays.append(f"  static const char {kind}_{place}[] = {literal};\n")
            literals[place] = f"{kind}_{place}"
    return {f"{kind}s": ",\n    ".join(literals) or "0", f"long_{kind}s": "".join(arrays)}


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
    found = {"codes": rows(codes), "cases": "\n".join(cases)}
    return found | _listed_texts("text", texts)
