"""`gpustump predict`: write a label and probabilities, or a quantity, for each row of a table."""

from __future__ import annotations

import argparse

import numpy as np

from gpustump.cli.columns.model import (
    at_least_one_row,
    load_model,
    read_features_and_offsets,
)
from gpustump.cli.errors import as_input_error
from gpustump.cli.read.file_state import FileState, check_unchanged_if_mapped
from gpustump.cli.read.streams import check_one_standard_input, shown_name
from gpustump.cli.write.results import (
    Layout,
    Result,
    check_replaced_result,
    check_result_file,
    write_result,
)
from gpustump.model.ensemble import StumpEnsemble


def run(arguments: argparse.Namespace) -> None:
    """Predict as the options say."""
    check_one_standard_input(arguments.model, arguments.data)
    check_result_file(arguments.output, inputs=(arguments.model, arguments.data))
    loaded = load_model(arguments.model)
    model = loaded.model
    layout = _layout(model, with_probabilities=arguments.proba)
    check_replaced_result(arguments.output, layout, force=arguments.force)
    before = FileState.of(arguments.data)
    X, offsets = read_features_and_offsets(arguments, loaded)
    with as_input_error(f"{shown_name(arguments.data)}: "):
        scores = model.decision_function(at_least_one_row(X))[: len(X)]
    check_unchanged_if_mapped(before)
    scores = offsets.added(scores, model)
    if model.is_regression:
        predicted = offsets.applied(np.asarray(model.quantities_of(scores)), model)
        write_result(arguments.output, _result(layout, [predicted], [predicted]))
        return
    labels = np.asarray(model.labels_of(scores))
    probabilities = model.probabilities_of(scores) if arguments.proba else None
    columns, arrays = [labels], [labels, model.class_array]
    if probabilities is not None:
        columns += list(probabilities.T)
        arrays.append(probabilities)
    write_result(arguments.output, _result(layout, columns, arrays))


def _layout(model: StumpEnsemble, *, with_probabilities: bool) -> Layout:
    if model.is_regression:
        return Layout(["prediction"], ["prediction"])
    names, arrays = ["prediction"], ["prediction", "classes"]
    if with_probabilities:
        names += [f"P({label})" for label in model.classes]
        arrays.append("probability")
    return Layout(names, arrays)


def _result(layout: Layout, columns: list[np.ndarray], arrays: list[np.ndarray]) -> Result:
    return Result(
        n_rows=len(columns[0]),
        layout=layout,
        block=lambda rows: [column[rows] for column in columns],
        arrays=lambda: arrays,
    )
