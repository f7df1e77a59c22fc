"""`gpustump predict`: write a label and probabilities for each row of a table."""

from __future__ import annotations

import argparse

import numpy as np

from gpustump.cli.errors import as_input_error
from gpustump.cli.input.model_input import load_model, read_features
from gpustump.cli.output.result_file import Result, check_result_file, write_result
from gpustump.model.ensemble import StumpEnsemble


def run(arguments: argparse.Namespace) -> None:
    """Predict as the options say."""
    check_result_file(arguments.output, inputs=(arguments.model, arguments.data))
    model, encoding = load_model(arguments.model)
    X = read_features(arguments.data, encoding)
    with as_input_error(f"{arguments.data}: "):
        scores = model.decision_function(X)
    labels = np.asarray(model.labels_of(scores))
    probabilities = model.probabilities_of(scores) if arguments.proba else None
    write_result(arguments.output, _result(model, labels, probabilities))


def _result(model: StumpEnsemble, labels: np.ndarray, probabilities: np.ndarray | None) -> Result:
    columns, arrays = [labels], {"prediction": labels, "classes": model.class_array}
    names = ["prediction"]
    if probabilities is not None:
        columns += list(probabilities.T)
        names += [f"P({label})" for label in model.classes]
        arrays["probability"] = probabilities
    return Result(
        n_rows=len(labels),
        names=names,
        block=lambda rows: [column[rows] for column in columns],
        arrays=lambda: arrays,
    )
