"""`gpustump predict`: write a label and probabilities for each row of a table."""

from __future__ import annotations

import argparse

import numpy as np

from gpustump.cli.errors import as_input_error
from gpustump.cli.input.file_state import FileState, check_unchanged_if_mapped
from gpustump.cli.input.model_input import at_least_one_row, load_model, read_features
from gpustump.cli.input.standard_input import check_one_standard_input, shown_name
from gpustump.cli.output.result_file import (
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
    model, encoding = load_model(arguments.model)
    layout = _layout(model, with_probabilities=arguments.proba)
    check_replaced_result(arguments.output, layout, force=arguments.force)
    before = FileState.of(arguments.data)
    X = read_features(arguments.data, encoding, may_be_empty=True)
    with as_input_error(f"{shown_name(arguments.data)}: "):
        scores = model.decision_function(at_least_one_row(X))[: len(X)]
    check_unchanged_if_mapped(before)
    labels = np.asarray(model.labels_of(scores))
    probabilities = model.probabilities_of(scores) if arguments.proba else None
    write_result(arguments.output, _result(layout, model, labels, probabilities))


def _layout(model: StumpEnsemble, *, with_probabilities: bool) -> Layout:
    names, arrays = ["prediction"], ["prediction", "classes"]
    if with_probabilities:
        names += [f"P({label})" for label in model.classes]
        arrays.append("probability")
    return Layout(names, arrays)


def _result(
    layout: Layout, model: StumpEnsemble, labels: np.ndarray, probabilities: np.ndarray | None
) -> Result:
    columns, arrays = [labels], [labels, model.class_array]
    if probabilities is not None:
        columns += list(probabilities.T)
        arrays.append(probabilities)
    return Result(
        n_rows=len(labels),
        layout=layout,
        block=lambda rows: [column[rows] for column in columns],
        arrays=lambda: arrays,
    )
