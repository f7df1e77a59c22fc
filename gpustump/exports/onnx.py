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
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from gpustump.arrays.devices import how_to_install
from gpustump.data.readable import shown
from gpustump.exports.tables import VERSION, ExportTables, Steps, export_tables, header_lines
from gpustump.learners.thresholds import rounded_down

OPSET, ML_OPSET, IR_VERSION = 17, 3, 8
"""Versions of ONNX that runtimes since 2022 know (ONNX 1.12, ONNX Runtime 1.12)."""


DTYPES = ("float32", "float64")
"""The dtypes that a graph can take its numbers in."""


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
    try:
        import onnx  # noqa: F401
    except ImportError as error:
        raise ImportError(f"an export to ONNX needs onnx; {how_to_install('onnx')}") from error
    graph = _Graph(export_tables(model), dtype)
    scores = graph.scores()
    answer = graph.add_prediction if graph.tables.model.is_regression else graph.add_answers
    answer(scores)
    return graph.finished()


class _Graph:
    """A graph in the making.

    Parameters
    ----------
    tables : ExportTables
    dtype : str
        That of the input of numbers.

    Attributes
    ----------
    numbers, text : list of int
        The columns that each input holds, by their places.
    nodes, constants : list
        In the order in which they were made.
    """

    def __init__(self, tables: ExportTables, dtype: str) -> None:
        self.tables, self.dtype = tables, dtype
        self.text = [place for place, own in enumerate(tables.columns) if own.is_text]
        self.numbers = [place for place, own in enumerate(tables.columns) if not own.is_text]
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    @property
    def labels(self) -> np.ndarray:
        """The labels of the classes; text in an array of objects."""
        found = self.tables.model.class_array
        return found.astype(object) if found.dtype.kind == "U" else found

    def constant(self, values: Any) -> str:
        """A constant; text in an array of objects."""
        from onnx import numpy_helper

        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def integers(self, values: Any) -> str:
        """A constant of int64."""
        return self.constant(np.asarray(values, dtype=np.int64))

    def add(self, kind: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """A node with one output."""
        from onnx import helper

        name = output or f"{kind.lower()}_{len(self.nodes)}"
        domain = "ai.onnx.ml" if kind == "LabelEncoder" else ""
        self.nodes.append(helper.make_node(kind, list(inputs), [name], domain=domain, **attributes))
        return name

    def scores(self) -> str:
        """The scores, (n_samples, n_outputs) of int64."""
        tables = self.tables
        total = self.integers(tables.constant)
        if not tables.used:
            rows = self.add("Shape", "X" if self.numbers else "text", end=1)
            shape = self.add("Concat", rows, self.integers([tables.model.n_outputs]), axis=0)
            return self.add("Expand", total, shape)
        axis = self.integers([1])
        for steps, added in ((tables.steps, self._votes), (tables.axes, self._votes_of_cells)):
            if steps:
                votes = added(self._places(steps))
                total = self.add("Add", self.add("ReduceSum", votes, axis, keepdims=0), total)
        return total

    def _votes(self, places: str) -> str:
        """What the steps at some places add, (n_samples, n_used, n_outputs)."""
        votes = self.integers(np.concatenate([own.units for own in self.tables.steps]))
        return self.add("Gather", votes, places, axis=0)

    def _votes_of_cells(self, places: str) -> str:
        """What pairs add, (n_samples, n_pairs, n_outputs), at the places of their axes."""
        parts = self.integers(np.concatenate([own.units[:, 0] for own in self.tables.axes]))
        reached = self.add("Gather", parts, places)
        both = self.add("Reshape", reached, self.integers([-1, len(self.tables.pairs), 2]))
        cells = self.add("ReduceSum", both, self.integers([2]), keepdims=0)
        return self.add("Gather", self.integers(self.tables.cells), cells, axis=0)

    def _places(self, steps: Sequence[Steps]) -> str:
        """The places of values among the steps of all columns, (n_samples, n_steps)."""
        starts = np.cumsum([0, *(len(own.units) for own in steps)])
        of_numbers = [i for i, own in enumerate(steps) if own.column in self.numbers]
        of_text = [i for i, own in enumerate(steps) if own.column in self.text]
        found = [self._steps_of_numbers(steps, of_numbers, starts)] if of_numbers else []
        found += [self._step_of_text(steps[i], int(starts[i])) for i in of_text]
        places = self.add("Concat", *found, axis=1) if len(found) > 1 else found[0]
        order = np.argsort([*of_numbers, *of_text])
        if (np.diff(order) == 1).all():
            return places
        return self.add("Gather", places, self.integers(order), axis=1)

    def _steps_of_numbers(self, steps: Sequence[Steps], used: list[int], starts: np.ndarray) -> str:
        """The places of numbers, (n_samples, n_used), by a binary search."""
        columns = [self.numbers.index(steps[i].column) for i in used]
        values = self.add("Gather", "X", self.integers(columns), axis=1)
        # An end that no search reaches stands at each row of votes for missing values.
        every = np.concatenate([np.append(own.thresholds, np.inf) for own in steps])
        ends = self.constant(rounded_down(every, self.dtype))
        lengths = np.asarray([len(steps[i].thresholds) for i in used])
        place = self.integers(starts[used][np.newaxis])
        last = self.integers((starts[used] + lengths - 1)[np.newaxis])
        for power in reversed(range(int(lengths.max() - 1).bit_length())):
            ahead = self.add("Add", place, self.integers(2**power - 1))
            probe = self.add("Min", ahead, last)  # at the last end, infinity, the search stays
            is_above = self.add("Greater", values, self.add("Gather", ends, probe))
            moved = self.add("Add", place, self.integers(2**power))
            place = self.add("Where", is_above, moved, place)
        missing = self.integers((starts[used] + lengths)[np.newaxis])
        return self.add("Where", self.add("IsNaN", values), missing, place)

    def _step_of_text(self, steps: Steps, start: int) -> str:
        """The places of text, (n_samples, 1), by a table of texts; empty text is missing."""
        codes = {"": math.nan} | self.tables.columns[steps.column].codes
        places = start + np.searchsorted(steps.thresholds, list(codes.values()))  # NaN comes last
        index = self.integers([self.text.index(steps.column)])
        return self.add(
            "LabelEncoder",
            self.add("Gather", "text", index, axis=1),
            keys_strings=list(codes),
            values_int64s=places.tolist(),
            default_int64=start,
        )

    def add_prediction(self, scores: str) -> None:
        """The outputs for a quantity."""
        self.add("Squeeze", scores, self.integers([1]), output="scores")
        numbers = self.add("Cast", "scores", to=_type_of(np.float64))
        unit = self.constant(math.ldexp(1.0, self.tables.exponent))
        if self.tables.model.link == "identity":
            self.add("Mul", numbers, unit, output="prediction")
        else:
            self.add("Exp", self.add("Mul", numbers, unit), output="prediction")

    def add_answers(self, scores: str) -> None:
        """The outputs for classes, by the names that converters of scikit-learn give them."""
        double = _type_of(np.float64)
        if self.tables.model.is_binary:
            self.add("Squeeze", scores, self.integers([1]), output="scores")
            above = self.add("Greater", "scores", self.integers(0))
            index = self.add("Cast", above, to=_type_of(np.int64))
        else:
            self.add("Identity", scores, output="scores")
            index = self.add("ArgMax", self.add("Cast", scores, to=double), axis=1, keepdims=0)
        self.add("Gather", self.constant(self.labels), index, output="label")
        numbers = self.add("Cast", scores, to=double)
        twice = self.add("Mul", numbers, self.constant(2.0**-35))
        self.add("Softmax", self._logs(twice), axis=1, output="probabilities")

    def _logs(self, twice: str) -> str:
        """Logarithms of numbers that are proportional to the probabilities, from 2 F."""
        if self.tables.model.link == "softmax":
            return twice
        zero = self.constant(0.0)
        if self.tables.model.is_binary:
            return self.add("Concat", self.add("Mul", twice, zero), twice, axis=1)
        small = self.add("Exp", self.add("Neg", self.add("Abs", twice)))
        rest = self.add("Log", self.add("Add", small, self.constant(1.0)))
        return self.add("Sub", self.add("Min", twice, zero), rest)

    def finished(self) -> Any:
        """The checked model."""
        from onnx import checker, helper

        def value(name: str, dtype: Any, *shape: int) -> Any:
            return helper.make_tensor_value_info(name, _type_of(dtype), ["n", *shape])

        tables, given = self.tables, []
        if self.numbers or not self.text:
            given.append(value("X", self.dtype, len(self.numbers)))
        if self.text:
            given.append(value("text", object, len(self.text)))
        if tables.model.is_regression:
            made = [value("prediction", np.float64)]
        else:
            label = value("label", self.labels.dtype)
            made = [label, value("probabilities", np.float64, len(tables.classes))]
        shape = [] if tables.model.has_one_score else [tables.model.n_outputs]
        made.append(value("scores", np.int64, *shape))
        graph = helper.make_graph(self.nodes, "gpustump", given, made, self.constants)
        versions = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
        model = helper.make_model(
            graph, opset_imports=versions, ir_version=IR_VERSION, producer_name="gpustump",
            producer_version=VERSION, doc_string="\n".join(header_lines(tables, "ONNX", str)),
        )  # fmt: skip
        names = [column.name for column in tables.columns]
        metadata = {
            "gpustump.version": VERSION,
            "gpustump.digest": tables.digest,
            "gpustump.score_unit": f"2**{tables.exponent}",
            "gpustump.classes": json.dumps(tables.classes),
            "gpustump.link": tables.model.link,
            "gpustump.columns_of_X": json.dumps([names[place] for place in self.numbers]),
            "gpustump.columns_of_text": json.dumps([names[place] for place in self.text]),
        }
        helper.set_model_props(model, metadata)
        checker.check_model(model)
        return model


def _type_of(dtype: Any) -> int:
    """ONNX's number for a dtype."""
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
