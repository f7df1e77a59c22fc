"""Exports that are run: each answers for a table of numbers, and is compared with the model."""

from __future__ import annotations

import ctypes
import shutil
import sqlite3
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from gpustump import StumpEnsemble
from gpustump.exports import to_c, to_onnx, to_sql
from gpustump.exports.tables import export_tables
from gpustump.model.classes import label_array

FLAGS = ("-Wall", "-Wextra", "-Werror", "-pedantic")


class Answers(NamedTuple):
    """What an export says of the rows of a table.

    Of a quantity the predictions are in the place of what is as exact: in that of the labels if
    they are the scores, in that of probabilities if they are exponentials.
    """

    labels: list[Any]
    scores: np.ndarray
    probabilities: np.ndarray | None


def predicted(model: StumpEnsemble, scores: np.ndarray, predictions: Any) -> Answers:
    """The answers for a quantity."""
    own = np.asarray(predictions, dtype=np.float64)
    if model.link == "identity":
        return Answers(own.tolist(), scores, None)
    return Answers([], scores, own)


def expected(model: StumpEnsemble, X: Any) -> Answers:
    """What the model says, its scores as whole numbers of their unit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        scores = np.asarray(model.decision_function(X))
    unit = 2.0 ** export_tables(model).exponent if model.is_regression else 2.0**-36
    units = (scores / unit).astype(np.int64)
    assert (units * unit == scores).all()
    if model.is_regression:
        return predicted(model, units, model.quantities_of(scores))
    labels = np.asarray(model.labels_of(scores)).tolist()
    return Answers(labels, units, np.asarray(model.probabilities_of(scores)))


def assert_same(found: Answers, wanted: Answers) -> None:
    assert found.scores.dtype == np.int64
    np.testing.assert_array_equal(found.scores, wanted.scores)
    assert found.labels == wanted.labels
    assert [*map(type, found.labels)] == [*map(type, wanted.labels)]
    if found.probabilities is not None:
        np.testing.assert_allclose(
            found.probabilities, wanted.probabilities, rtol=1e-13, atol=1e-300
        )


# --- C


def compiler(language: str) -> str:
    found = shutil.which("cc" if language == "c" else "c++")
    if found is None:
        pytest.skip(f"there is no compiler of {language}")
    return found


class Compiled:
    """The exports of several models, compiled into one library."""

    def __init__(self, models: Sequence[StumpEnsemble], folder: Path) -> None:
        code = []
        for number, model in enumerate(models):
            (folder / f"m{number}.h").write_text(to_c(model, f"m{number}"))
            code.append(f'#include "m{number}.h"\n')
            wrapper = _QUANTITY_WRAPPER if model.is_regression else _WRAPPER
            code.append(wrapper.replace("NAME", f"m{number}").replace("@", f"M{number}"))
            if any(column.values for column in model.encoding.columns):
                code.append(_CODE.replace("NAME", f"m{number}"))
        source, library = folder / "all.c", folder / "all.so"
        source.write_text("".join(code))
        command = [compiler("c"), "-std=c99", *FLAGS, "-O1", "-shared", "-fPIC", source, "-lm"]
        built = subprocess.run([*command, "-o", library], capture_output=True, text=True)
        assert (built.returncode, built.stderr) == (0, "")
        self._library = ctypes.CDLL(str(library))

    def code(self, number: int, column: int, text: str | None) -> float:
        """The number that stands for text."""
        call = getattr(self._library, f"m{number}_code")
        call.restype = ctypes.c_double
        found: float = call(column, None if text is None else text.encode())
        return found

    def answers(self, number: int, model: StumpEnsemble, X: np.ndarray) -> Answers:
        X = np.ascontiguousarray(X, dtype=np.float64)
        scores = np.empty((len(X), model.n_outputs), dtype=np.int64)
        assert X.shape[1] == len(model.encoding.columns)
        call = getattr(self._library, f"m{number}_all")
        call.restype = None
        if model.is_regression:
            predictions = np.empty(len(X))
            pointers = [ctypes.c_void_p(own.ctypes.data) for own in (X, scores, predictions)]
            call(ctypes.c_int64(len(X)), *pointers)
            return predicted(model, scores[:, 0], predictions)
        index = np.empty(len(X), dtype=np.int32)
        probabilities = np.empty((len(X), len(model.classes)))
        arrays = (X, scores, index, probabilities)
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
        call(ctypes.c_int64(len(X)), *pointers)
        label = getattr(self._library, f"m{number}_label_text")
        label.restype = ctypes.c_char_p
        classes = label_array(model.classes).tolist()
        texts = [label(own).decode() for own in range(len(classes))]
        assert texts == [*map(str, classes)]
        labels = [classes[own] for own in index.tolist()]
        return Answers(labels, scores[:, 0] if model.is_binary else scores, probabilities)


_CODE = """
double NAME_code(int column, const char *text);
double NAME_code(int column, const char *text) { return NAME_text(column, text); }
"""

_WRAPPER = """
void NAME_all(int64_t n, const double *rows, int64_t *scores, int32_t *index, double *proba);
void NAME_all(int64_t n, const double *rows, int64_t *scores, int32_t *index, double *proba)
{
  const double *row = rows;
  int64_t i;
  for (i = 0; i < n; i++, row += @_N_COLUMNS) {
    NAME_scores(row, scores + i * @_N_SCORES);
    index[i] = NAME_predict(row);
    NAME_predict_proba(row, proba + i * @_N_CLASSES);
  }
}
const char *NAME_label_text(int index);
const char *NAME_label_text(int index) { return NAME_label(index); }
"""


_QUANTITY_WRAPPER = """
void NAME_all(int64_t n, const double *rows, int64_t *scores, double *predictions);
void NAME_all(int64_t n, const double *rows, int64_t *scores, double *predictions)
{
  int64_t i;
  for (i = 0; i < n; i++) {
    NAME_scores(rows + i * @_N_COLUMNS, scores + i * @_N_SCORES);
    predictions[i] = NAME_predict(rows + i * @_N_COLUMNS);
  }
}
"""


def by_c(model: StumpEnsemble, X: np.ndarray) -> Answers:
    with tempfile.TemporaryDirectory() as folder:
        return Compiled([model], Path(folder)).answers(0, model, X)


# --- SQL


def by_sqlite(model: StumpEnsemble, X: np.ndarray) -> Answers:
    rows = [[None if x != x else x for x in row] for row in X.astype(np.float64).tolist()]
    connection = sqlite3.connect(":memory:")
    try:
        return _by_sql(connection, model, rows, "sqlite")
    finally:
        connection.close()


def by_duckdb(model: StumpEnsemble, X: np.ndarray) -> Answers:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        connection.execute("SET threads = 1")
        return _by_sql(connection, model, X.astype(np.float64).tolist(), "duckdb")


def _by_sql(connection: Any, model: StumpEnsemble, rows: list[list[Any]], dialect: str) -> Answers:
    n_columns = model.n_features
    names = model.feature_names or [f"x{j}" for j in range(n_columns)]
    fill(connection, names, ["DOUBLE"] * n_columns, rows)
    return sql_answers(connection, model, dialect)


def columns_of(names: Iterable[str], types: Iterable[str]) -> str:
    """The columns of a table as SQL declares them."""
    return ", ".join(f"{quoted_name(name)} {own}" for name, own in zip(names, types, strict=True))


def fill(
    connection: Any,
    names: Sequence[str],
    types: Sequence[str],
    rows: Sequence[Sequence[Any]],
    table: str = "data",
) -> None:
    """Make a table of these columns and rows; its column `place_` says the order of the rows."""
    quoted, marks = quoted_name(table), ", ?" * len(names)
    connection.execute(f"CREATE TABLE {quoted} (place_ INTEGER, {columns_of(names, types)})")
    numbered = [[place, *row] for place, row in enumerate(rows)]
    if numbered:
        connection.executemany(f"INSERT INTO {quoted} VALUES (?{marks})", numbered)


def sql_answers(
    connection: Any,
    model: StumpEnsemble,
    dialect: str,
    table: str = "data",
    *,
    probabilities: bool = True,
) -> Answers:
    """The answers for a table whose column `place_` says the order of its rows."""
    query = to_sql(model, dialect, table=table, probabilities=probabilities)
    cursor = connection.execute(query + "ORDER BY place_")
    found = cursor.fetchall()
    names = [entry[0] for entry in cursor.description]
    if model.is_regression:
        assert names[-2:] == ["gpustump_score", "gpustump_prediction"]
        own = np.asarray([row[-2] for row in found], dtype=np.int64)
        return predicted(model, own, [row[-1] for row in found])
    n_classes = len(model.classes)
    scores = ["score"] if model.is_binary else [f"score_{k}" for k in range(n_classes)]
    shares = [f"probability_{k}" for k in range(n_classes if probabilities else 0)]
    own = len(scores) + 1 + len(shares)
    assert names[-own:] == [f"gpustump_{name}" for name in (*scores, "label", *shares)]
    labels = [row[len(scores) - own] for row in found]
    if dialect == "sqlite" and isinstance(model.classes[0], bool):
        labels = [bool(label) for label in labels]
    numbers = np.asarray([row[-own : len(scores) - own] for row in found], dtype=np.int64)
    return Answers(
        labels,
        numbers[:, 0] if model.is_binary else numbers,
        np.asarray([row[-n_classes:] for row in found], np.float64) if probabilities else None,
    )


def quoted_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


# --- ONNX


def session(model: StumpEnsemble, dtype: str) -> Any:
    pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    graph = to_onnx(model, dtype).SerializeToString()
    return onnxruntime.InferenceSession(graph, options, providers=["CPUExecutionProvider"])


def by_onnx(model: StumpEnsemble, X: np.ndarray, dtype: str | None = None) -> Answers:
    wanted = dtype or ("float32" if np.result_type(X, np.float32) == np.float32 else "float64")
    answers = session(model, wanted).run(None, {"X": X.astype(wanted)})
    if model.is_regression:
        predictions, scores = answers
        return predicted(model, scores, predictions)
    labels, probabilities, scores = answers
    return Answers(labels.tolist(), scores, probabilities)


TARGETS: dict[str, Callable[[StumpEnsemble, np.ndarray], Answers]] = {
    "sqlite": by_sqlite,
    "duckdb": by_duckdb,
    "onnx": by_onnx,
}
"""How each export answers; C is compiled for many models at once."""


# --- rows at which exports go wrong first


def edge_rows(model: StumpEnsemble, dtype: str, n_rows: int = 120) -> np.ndarray:
    """Rows of values at all thresholds, just below and just above them, and of special ones."""
    random = np.random.default_rng(7)
    kind = np.dtype(dtype).type
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, np.finfo(kind).smallest_subnormal, 1.0]
    special += [-np.finfo(kind).smallest_subnormal, np.finfo(kind).max, np.finfo(kind).min]
    found = np.empty((n_rows, model.n_features), dtype=dtype)
    edges = _edges(model, kind)
    for feature in range(model.n_features):
        own = np.concatenate([edges.get(feature, np.empty(0, kind)), np.asarray(special, kind)])
        times = -(-n_rows // len(own))
        found[:, feature] = random.permutation(np.tile(random.permutation(own), times))[:n_rows]
        found[: len(own), feature] = random.permutation(own)[:n_rows]
    return found


def _edges(model: StumpEnsemble, kind: Any) -> dict[int, np.ndarray]:
    found = {}
    for table in model.additive.tables[1]:
        with np.errstate(all="ignore"):
            near = table.thresholds.astype(kind)
            below = np.nextafter(near, kind(-np.inf))
            above = np.nextafter(near, kind(np.inf))
        found[table.feature] = np.concatenate([near, below, above])
    return found
