"""`gpustump predict`: write a label and probabilities, or a quantity, for each row of a table."""

from __future__ import annotations

import argparse

import numpy as np

from gpustump.cli.columns.model import at_least_one_row, load_model, read_table_to_predict
from gpustump.cli.errors import InputError, as_input_error
from gpustump.cli.read.files import check_one_standard_input, shown_name
from gpustump.cli.write.results import Layout, Result, result_file, result_of, write_result
from gpustump.model.ensemble import StumpEnsemble

ROW = "row"
"""The name of the column with the numbers of the rows, counted from 1."""


def run(arguments: argparse.Namespace) -> None:
    """Predict as the options say."""
    check_one_standard_input(arguments.model, arguments.data)
    output = result_file(arguments)
    model = load_model(arguments.model)
    layout = _layout(model, arguments)
    output.check_replaced(result_of(layout, output.path), force=arguments.force)
    X, offsets, ids = read_table_to_predict(arguments, model, arguments.id)
    with as_input_error(f"{shown_name(arguments.data)}: "):
        scores = model.decision_function(at_least_one_row(X))[: len(X)]
    scores = offsets.added(scores, model)
    if model.is_regression:
        predicted = offsets.applied(np.asarray(model.quantities_of(scores)), model)
        columns = arrays = [ids, predicted]
    else:
        labels = np.asarray(model.labels_of(scores))
        columns, arrays = [ids, labels], [ids, labels, model.class_array]
        if arguments.proba:
            probabilities = model.probabilities_of(scores)
            columns += list(probabilities.T)
            arrays.append(probabilities)
    result = Result(
        n_rows=len(X),
        layout=layout,
        block=lambda rows: [column[rows] for column in columns],
        arrays=lambda: arrays,
    )
    write_result(output, result)


def _layout(model: StumpEnsemble, arguments: argparse.Namespace) -> Layout:
    first = arguments.id or ROW
    names = ["prediction"]
    arrays = ["row" if arguments.id is None else "id", "prediction"]
    if not model.is_regression:
        arrays.append("classes")
        if arguments.proba:
            names += [f"P({label})" for label in model.classes]
            arrays.append("probability")
    if first in names:
        raise InputError(f"--id {first}: the results have a column of this name; rename it.")
    return Layout([first, *names], arrays)
