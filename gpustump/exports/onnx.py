"""A model as a graph of ONNX whose size does not depend on the number of rounds.

All thresholds stand in one array, column after column. A binary search, unrolled, finds the step of
every value of every used column at once; then the votes of the steps are looked up and added up as
int64. In the same way the cells of pairs of columns are found, and their votes are added.

Thresholds are rounded down to the dtype of the input, which changes no comparison: a value of that
dtype is at most the rounded threshold exactly if it is at most the original one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from gpustump.arrays.devices import how_to_install
from gpustump.data.readable import quoted, shown
from gpustump.exports.tables import (
    VERSION,
    Column,
    ExportTables,
    Steps,
    export_tables,
    header_lines,
)
from gpustump.learners.thresholds import rounded_down
from gpustump.model.classes import label_array

OPSET, ML_OPSET, IR_VERSION = 17, 3, 8
"""Versions of ONNX that runtimes since 2022 know (ONNX 1.12, ONNX Runtime 1.12)."""


class Nodes:
    """The nodes and constants of a graph, in order."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, values: Any, dtype: Any = None) -> str:
        """A constant; text in an array of objects."""
        from onnx import numpy_helper

        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values, dtype=dtype), name))
        return name

    def add(self, kind: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """A node with one output."""
        from onnx import helper

        name = output or f"{kind.lower()}_{len(self.nodes)}"
        domain = "ai.onnx.ml" if kind == "LabelEncoder" else ""
        self.nodes.append(helper.make_node(kind, list(inputs), [name], domain=domain, **attributes))
        return name


DTYPES = ("float32", "float64")
"""The dtypes that a graph can take its numbers in."""


class _Inputs(NamedTuple):
    """The inputs of a graph: numbers, and text if there is any.

    Attributes
    ----------
    numbers, text : tuple of int
        The columns that each holds, by their places.
    """

    numbers: tuple[int, ...]
    text: tuple[int, ...]


def to_onnx(model: Any, dtype: Literal["float32", "float64"] = "float64") -> Any:
    """The model as a graph of ONNX.

    Its input is `X`, (n_samples, n_columns) of dtype. If the model has columns of text, these are
    in a second input, `text`, (n_samples, n_text_columns) of strings, and `X` has the others; both
    keep the order of the columns. NaN is missing, and so is empty text. Its outputs are `label`
    (n_samples,), `probabilities` (n_samples, n_classes) of float64, and `scores` (n_samples,) or
    (n_samples, n_classes) of int64, whole numbers of 2**-36. Labels and scores are exact. Of a
    model of a quantity the outputs are `prediction` (n_samples,) of float64 and `scores`; the
    metadata name their unit.

    Parameters
    ----------
    model : StumpEnsemble, or a fitted estimator
    dtype : "float32" or "float64"
        The dtype of X. float64 serves for tables of every dtype that models accept. Choose float32
        for tables of float32 only: rounding a float64 to float32 may carry it over a threshold.

    Returns
    -------
    onnx.ModelProto

    Raises
    ------
    ImportError
        If the library onnx is not installed.
    TypeError
        If model is neither a StumpEnsemble nor a fitted estimator.
    ValueError
        If dtype is neither of the two, or the model has votes or labels that a model file cannot
        hold.

    Examples
    --------
    >>> from gpustump import AdaBoostClassifier
    >>> from gpustump.exports import to_onnx
    >>> clf = AdaBoostClassifier().fit([[1], [2], [3]], [0, 1, 1])
    >>> graph = to_onnx(clf).graph
    >>> [given.name for given in graph.input]
    ['X']
    >>> [answer.name for answer in graph.output]
    ['label', 'probabilities', 'scores']
    """
    if dtype not in DTYPES:
        raise ValueError(
            "dtype must be float32 or float64, which runtimes compare exactly; got "
            f"{shown(dtype)}. Convert other numbers: float16 and integers of 16 bits to float32, "
            "integers of 32 bits to float64."
        )
    require_onnx()
    tables = export_tables(model)
    inputs = _inputs(tables)
    nodes = Nodes()
    scores = _scores(nodes, tables, inputs, dtype)
    answer = _prediction if tables.is_regression else _answers
    answer(nodes, tables, scores)
    return _finished(nodes, tables, inputs, dtype)


def require_onnx() -> None:
    """Raise an ImportError that says what to install if onnx is missing."""
    try:
        import onnx  # noqa: F401
    except ImportError as error:
        raise ImportError(f"an export to ONNX needs onnx; {how_to_install('onnx')}") from error


def _inputs(tables: ExportTables) -> _Inputs:
    text = tuple(place for place, own in enumerate(tables.columns) if own.is_text)
    return _Inputs(tuple(j for j in range(len(tables.columns)) if j not in {*text}), text)


def _scores(nodes: Nodes, tables: ExportTables, inputs: _Inputs, dtype: str) -> str:
    """The scores, (n_samples, n_outputs) of int64."""
    total = nodes.constant(tables.constant, np.int64)
    if not tables.used:
        rows = nodes.add("Shape", "X" if inputs.numbers else "text", end=1)
        shape = nodes.add("Concat", rows, nodes.constant([tables.n_outputs], np.int64), axis=0)
        return nodes.add("Expand", total, shape)
    axis = nodes.constant([1], np.int64)
    for steps, added in ((tables.steps, _votes), (tables.axes, _votes_of_cells)):
        if steps:
            places = _places(nodes, steps, tables, (inputs, dtype))
            votes = added(nodes, tables, places)
            total = nodes.add("Add", nodes.add("ReduceSum", votes, axis, keepdims=0), total)
    return total


def _votes(nodes: Nodes, tables: ExportTables, places: str) -> str:
    """What the steps at some places add, (n_samples, n_used, n_outputs)."""
    votes = nodes.constant(np.concatenate([own.units for own in tables.steps]), np.int64)
    return nodes.add("Gather", votes, places, axis=0)


def _votes_of_cells(nodes: Nodes, tables: ExportTables, places: str) -> str:
    """What pairs of columns add, (n_samples, n_pairs, n_outputs); places are those of the axes."""
    parts = nodes.constant(np.concatenate([own.units[:, 0] for own in tables.axes]), np.int64)
    reached = nodes.add("Gather", parts, places)
    both = nodes.add("Reshape", reached, nodes.constant([-1, len(tables.pairs), 2], np.int64))
    cells = nodes.add("ReduceSum", both, nodes.constant([2], np.int64), keepdims=0)
    return nodes.add("Gather", nodes.constant(tables.cells, np.int64), cells, axis=0)


def _places(
    nodes: Nodes, steps: tuple[Steps, ...], tables: ExportTables, where: tuple[_Inputs, str]
) -> str:
    """The places of values among the steps of all columns, (n_samples, n_steps)."""
    inputs, dtype = where
    starts = np.cumsum([0, *(len(own.units) for own in steps)])
    of_numbers = [i for i, own in enumerate(steps) if own.column in inputs.numbers]
    of_text = [i for i, own in enumerate(steps) if own.column in inputs.text]
    found = []
    if of_numbers:
        found.append(_steps_of_numbers(nodes, steps, of_numbers, (inputs, starts, dtype)))
    found += [_step_of_text(nodes, (steps[i], int(starts[i])), tables, inputs) for i in of_text]
    places = nodes.add("Concat", *found, axis=1) if len(found) > 1 else found[0]
    order = np.argsort([*of_numbers, *of_text])
    if (np.diff(order) == 1).all():
        return places
    return nodes.add("Gather", places, nodes.constant(order, np.int64), axis=1)


def _steps_of_numbers(
    nodes: Nodes,
    steps: tuple[Steps, ...],
    used: list[int],
    where: tuple[_Inputs, np.ndarray, str],
) -> str:
    """The places of numbers, (n_samples, n_used), by a binary search."""
    inputs, starts, dtype = where
    columns = [inputs.numbers.index(steps[i].column) for i in used]
    values = nodes.add("Gather", "X", nodes.constant(columns, np.int64), axis=1)
    ends = nodes.constant(_ends(steps, dtype))
    lengths = np.asarray([len(steps[i].thresholds) for i in used])
    place = nodes.constant(starts[used][np.newaxis], np.int64)
    last = nodes.constant((starts[used] + lengths - 1)[np.newaxis], np.int64)
    for power in reversed(range(int(lengths.max() - 1).bit_length())):
        ahead = nodes.add("Add", place, nodes.constant(2**power - 1, np.int64))
        probe = nodes.add("Min", ahead, last)  # at the last end, infinity, the search stays
        is_above = nodes.add("Greater", values, nodes.add("Gather", ends, probe))
        moved = nodes.add("Add", place, nodes.constant(2**power, np.int64))
        place = nodes.add("Where", is_above, moved, place)
    missing = nodes.constant((starts[used] + lengths)[np.newaxis], np.int64)
    return nodes.add("Where", nodes.add("IsNaN", values), missing, place)


def _ends(steps: tuple[Steps, ...], dtype: str) -> np.ndarray:
    """The ends of all steps, and an unused end at each row of votes for missing values."""
    ends = [np.append(own.thresholds, np.inf) for own in steps]
    return rounded_down(np.concatenate(ends), dtype)


def _step_of_text(
    nodes: Nodes, own: tuple[Steps, int], tables: ExportTables, inputs: _Inputs
) -> str:
    """The places of text, (n_samples, 1), by a table of texts."""
    steps, start = own
    column = tables.columns[steps.column]
    index = nodes.constant([inputs.text.index(steps.column)], np.int64)
    rows = _text_rows(column, steps)
    return nodes.add(
        "LabelEncoder",
        nodes.add("Gather", "text", index, axis=1),
        keys_strings=list(rows),
        values_int64s=[start + row for row in rows.values()],
        default_int64=start,
    )


def _text_rows(column: Column, steps: Steps) -> Mapping[str, int]:
    """The step of each text; for empty text and words of missing values that of these."""
    codes = {"": math.nan} | column.codes
    return {
        text: len(steps.thresholds)
        if math.isnan(code)
        else int(np.searchsorted(steps.thresholds, code))
        for text, code in codes.items()
    }


def _prediction(nodes: Nodes, tables: ExportTables, scores: str) -> None:
    """The outputs for a quantity."""
    nodes.add("Squeeze", scores, nodes.constant([1], np.int64), output="scores")
    numbers = nodes.add("Cast", "scores", to=_double())
    unit = nodes.constant(math.ldexp(1.0, tables.exponent))
    if tables.link == "identity":
        nodes.add("Mul", numbers, unit, output="prediction")
    else:
        nodes.add("Exp", nodes.add("Mul", numbers, unit), output="prediction")


def _answers(nodes: Nodes, tables: ExportTables, scores: str) -> None:
    """The outputs, by the names that converters of scikit-learn give them."""
    if tables.is_binary:
        nodes.add("Squeeze", scores, nodes.constant([1], np.int64), output="scores")
        above = nodes.add("Greater", "scores", nodes.constant(0, np.int64))
        index = nodes.add("Cast", above, to=_onnx_type(np.int64))
    else:
        nodes.add("Identity", scores, output="scores")
        index = nodes.add("ArgMax", nodes.add("Cast", scores, to=_double()), axis=1, keepdims=0)
    nodes.add("Gather", nodes.constant(_labels(tables)), index, output="label")
    numbers = nodes.add("Cast", scores, to=_double())
    twice = nodes.add("Mul", numbers, nodes.constant(2.0**-35))
    nodes.add("Softmax", _logs(nodes, tables, twice), axis=1, output="probabilities")


def _logs(nodes: Nodes, tables: ExportTables, twice: str) -> str:
    """Logarithms of numbers that are proportional to the probabilities, from 2 F."""
    if tables.link == "softmax":
        return twice
    zero = nodes.constant(0.0)
    if tables.is_binary:
        return nodes.add("Concat", nodes.add("Mul", twice, zero), twice, axis=1)
    small = nodes.add("Exp", nodes.add("Neg", nodes.add("Abs", twice)))
    rest = nodes.add("Log", nodes.add("Add", small, nodes.constant(1.0)))
    return nodes.add("Sub", nodes.add("Min", twice, zero), rest)


def _labels(tables: ExportTables) -> np.ndarray:
    labels = label_array(tables.classes)
    if labels.dtype.kind != "U":
        return labels
    for label in labels.tolist():
        _check_utf8(label)
    return labels.astype(object)


def _check_utf8(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"text must be Unicode; got {quoted(text)}.") from error


def _onnx_type(dtype: Any) -> int:
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def _double() -> int:
    return _onnx_type(np.float64)


def _finished(nodes: Nodes, tables: ExportTables, inputs: _Inputs, dtype: str) -> Any:
    """The checked model."""
    from onnx import checker, helper

    given = []
    if inputs.numbers or not inputs.text:
        given.append(_value("X", _onnx_type(dtype), ["n", len(inputs.numbers)]))
    if inputs.text:
        given.append(_value("text", _onnx_type(object), ["n", len(inputs.text)]))
    several = [tables.n_outputs] if tables.n_outputs > 1 else []
    scores = _value("scores", _onnx_type(np.int64), ["n", *several])
    if tables.is_regression:
        made = [_value("prediction", _double(), ["n"]), scores]
    else:
        made = [
            _value("label", _onnx_type(_labels(tables).dtype), ["n"]),
            _value("probabilities", _double(), ["n", len(tables.classes)]),
            scores,
        ]
    graph = helper.make_graph(nodes.nodes, "gpustump", given, made, nodes.constants)
    versions = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
    model = helper.make_model(
        graph, opset_imports=versions, ir_version=IR_VERSION, producer_name="gpustump",
        producer_version=VERSION, doc_string="\n".join(header_lines(tables, "ONNX", str)),
    )  # fmt: skip
    helper.set_model_props(model, _metadata(tables, inputs))
    checker.check_model(model)
    return model


def _value(name: str, kind: int, shape: list[str | int]) -> Any:
    from onnx import helper

    return helper.make_tensor_value_info(name, kind, shape)


def _metadata(tables: ExportTables, inputs: _Inputs) -> dict[str, str]:
    names = [column.name for column in tables.columns]
    return {
        "gpustump.version": VERSION,
        "gpustump.digest": tables.digest,
        "gpustump.score_unit": f"2**{tables.exponent}",
        "gpustump.classes": json.dumps(tables.classes),
        "gpustump.link": tables.link,
        "gpustump.columns_of_X": json.dumps([names[place] for place in inputs.numbers]),
        "gpustump.columns_of_text": json.dumps([names[place] for place in inputs.text]),
    }
