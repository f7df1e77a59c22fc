"""A model as one header of C99, which is C++11 as well: tables of constants and a binary search.

First come names and text as C has them, then the functions of the header, in which names between
two @ are replaced by parts of the model, and then the parts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpustump.data.readable import quoted, shown
from gpustump.exports.tables import ExportTables, Steps, export_tables, header_lines

_PLAIN = frozenset(range(0x20, 0x7F)) - frozenset(b'"\\?')
"""Bytes that stand for themselves in a string: no quote, no backslash, no ? of a trigraph."""

_PER_LINE = 4


def comment(text: str) -> str:
    """Text from a model, harmless in a // comment: ASCII, and no backslash at the end of a line."""
    plain = text.encode("ascii", "backslashreplace").decode()
    return plain.replace("??", "? ?").replace("/*", "/ *").replace("*/", "* /")


def string(text: str) -> str:
    """A string literal of the text in UTF-8."""
    return '"' + "".join(map(_in_string, text.encode())) + '"'


def _in_string(byte: int) -> str:
    return chr(byte) if byte in _PLAIN else f"\\{byte:03o}"


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


TOP = """\
#ifndef @NAME@_H
#define @NAME@_H

#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "-ffast-math assumes that no value is missing (NaN); compile without it"
#endif

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define @NAME@_DIGEST "@digest@"
#define @NAME@_N_COLUMNS @n_columns@
#define @NAME@_N_SCORES @n_scores@
"""

N_CLASSES = "#define @NAME@_N_CLASSES @n_classes@\n"

STEP = """
/* The first of the steps from low on that ends at the value or above it; last if it is missing. */
static inline int32_t @name@_step(double value, const double *ends, int32_t low, int32_t last)
{
  int32_t high = last - 1;
  if (value != value)
    return last;
  while (low < high) {
    const int32_t middle = low + (high - low) / 2;
    if (value <= ends[middle])
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}
"""

PAIRS = """
/* Adds to the scores what pairs of columns add. */
static inline void @name@_add_pairs(const double *row, int64_t *scores)
{
  static const int columns[] = { /* two of each pair */
    @pair_columns@};
  static const int32_t first_steps[] = {
    @pair_first_steps@};
  static const double ends[] = {
    @pair_ends@};
  static const int32_t numbers[] = { /* whose sum for both columns is the number of a cell */
    @pair_numbers@};
  static const int64_t cells[] = {
    @pair_cells@};
  for (int axis = 0; axis < 2 * @n_pairs@; axis += 2) {
    int32_t cell = 0;
    for (int own = axis; own < axis + 2; own++)
      cell += numbers[@name@_step(
        row[columns[own]], ends, first_steps[own], first_steps[own + 1] - 1)];
    for (int output = 0; output < @n_scores@; output++)
      scores[output] += cells[(ptrdiff_t)cell * @n_scores@ + output];
  }
}
"""

SCORES = """
/* The scores of a row of @NAME@_N_COLUMNS values, in units of 2**@exponent@. NaN is missing. */
static inline void @name@_scores(const double *row, int64_t *scores)
{
  static const int64_t constant[] = {
    @constant@};
  static const int columns[] = {
    @columns@};
  static const int32_t first_steps[] = {
    @first_steps@};
  static const double ends[] = { /* upper ends of steps; the last step is for missing values */
    @ends@};
  static const int64_t votes[] = {
    @votes@};
  for (int output = 0; output < @n_scores@; output++)
    scores[output] = constant[output];
  for (int used = 0; used < @n_used@; used++) {
    const int32_t step = @name@_step(
      row[columns[used]], ends, first_steps[used], first_steps[used + 1] - 1);
    for (int output = 0; output < @n_scores@; output++)
      scores[output] += votes[(ptrdiff_t)step * @n_scores@ + output];
  }@and_pairs@
}
"""

BINARY = """
/* The index of the class with these scores. */
static inline int @name@_class_of(const int64_t *scores)
{
  return scores[0] > 0;
}

/* The probabilities that belong to scores; their last bits may differ from the model's own. */
static inline void @name@_probabilities(const int64_t *scores, double *probabilities)
{
  const double twice = (double)scores[0] / 34359738368.0; /* 2**35 */
  const double small = exp(-fabs(twice));
  probabilities[scores[0] >= 0] = 1.0 / (1.0 + small);
  probabilities[scores[0] < 0] = small / (1.0 + small);
}
"""

LOGISTIC = "2.0 * fmin(score, 0.0) - log1p(exp(-2.0 * fabs(score)))"
SOFTMAX = "2.0 * score"

CLASSES = """
/* The index of the class with these scores: the first of the largest. */
static inline int @name@_class_of(const int64_t *scores)
{
  int best = 0;
  for (int index = 1; index < @n_classes@; index++)
    if (scores[index] > scores[best])
      best = index;
  return best;
}

/* The probabilities that belong to scores; their last bits may differ from the model's own. */
static inline void @name@_probabilities(const int64_t *scores, double *probabilities)
{
  double largest = -HUGE_VAL, total = 0.0;
  for (int index = 0; index < @n_classes@; index++) {
    const double score = (double)scores[index] / 68719476736.0; /* 2**36 */
    probabilities[index] = @log@;
    largest = fmax(largest, probabilities[index]);
  }
  for (int index = 0; index < @n_classes@; index++) {
    probabilities[index] = exp(probabilities[index] - largest);
    total += probabilities[index];
  }
  for (int index = 0; index < @n_classes@; index++)
    probabilities[index] /= total;
}
"""

PREDICT = """
/* The index of the predicted class. */
static inline int @name@_predict(const double *row)
{
  int64_t scores[@n_scores@];
  @name@_scores(row, scores);
  return @name@_class_of(scores);
}

/* The probability of each class. */
static inline void @name@_predict_proba(const double *row, double *probabilities)
{
  int64_t scores[@n_scores@];
  @name@_scores(row, scores);
  @name@_probabilities(scores, probabilities);
}

/* The label of the class with an index, as text in UTF-8. */
static inline const char *@name@_label(int index)
{
  static const char *const labels[] = {
    @labels@};
  return labels[index];
}
"""

QUANTITY = """
/* The prediction that belongs to a score. */
static inline double @name@_prediction_of(const int64_t *scores)
{
  return @link@(ldexp((double)scores[0], @exponent@));
}

/* The prediction for a row. */
static inline double @name@_predict(const double *row)
{
  int64_t scores[1];
  @name@_scores(row, scores);
  return @name@_prediction_of(scores);
}
"""

CATEGORY = """
/* The number that stands for text, in UTF-8, in a row. NULL is missing. */
static inline double @name@_text(int column, const char *text)
{
  static const char *const texts[] = { /* of each column, sorted */
    @texts@};
  static const double codes[] = {
    @codes@};
  int low, high;
  switch (column) {
@cases@
  default: /* no column of text */
    return NAN;
  }
  if (text == NULL)
    return NAN;
  while (low < high) {
    const int middle = low + (high - low) / 2;
    const int order = strcmp(text, texts[middle]);
    if (order == 0)
      return codes[middle];
    if (order < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return -1.0;
}
"""

END = "\n#endif\n"


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
    scores = STEP + (PAIRS if tables.pairs else "") + SCORES
    if tables.model.is_regression:
        code = TOP + scores + QUANTITY
    else:
        code = TOP + N_CLASSES + scores + (BINARY if tables.model.is_binary else CLASSES) + PREDICT
    parts = {
        "name": name,
        "NAME": name.upper(),
        "digest": tables.digest,
        "n_columns": str(len(tables.columns)),
        "n_classes": str(len(tables.classes)),
        "n_scores": str(tables.model.n_outputs),
        "n_used": str(len(tables.steps)),
        "n_pairs": str(len(tables.pairs)),
        "exponent": str(tables.exponent),
        "link": "exp" if tables.model.link == "log" else "",
        "log": LOGISTIC if tables.model.link == "logistic" else SOFTMAX,
        "and_pairs": f"\n  {name}_add_pairs(row, scores);" if tables.pairs else "",
        "labels": _strings([str(label) for label in tables.classes]),
        "constant": rows(list(map(str, tables.constant))),
        "pair_cells": rows(list(map(str, tables.cells.ravel().tolist()))),
    }
    parts |= _step_arrays(tables.steps, "", "votes") | _step_arrays(tables.axes, "pair_", "numbers")
    if any(column.is_text for column in tables.columns):
        code += CATEGORY
        parts |= _texts(tables)
    return _filled(code + END, parts)


def _filled(code: str, parts: dict[str, str]) -> str:
    """The code with its parts in place of their names; what is put in is not looked at again."""
    pieces = code.split("@")
    pieces[1::2] = [parts[name] for name in pieces[1::2]]
    return "".join(pieces)


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


def _strings(texts: Sequence[str]) -> str:
    return ",\n    ".join(map(string, texts))


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
