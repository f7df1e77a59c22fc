"""`gpustump predict`: a model and a table -> a label and probabilities for each row."""

from __future__ import annotations

import argparse

import numpy as np

from gpustump.cli.applied import applied, loaded
from gpustump.cli.columns_file import Sheet, check_columns_file, write
from gpustump.cli.errors import input_errors
from gpustump.model.ensemble import StumpEnsemble


def run(arguments: argparse.Namespace) -> None:
    """Predict as the command line says."""
    check_columns_file(arguments.output, inputs=(arguments.model, arguments.data))
    model, _, source, X = applied(*loaded(arguments.model), arguments.data)
    with input_errors(f"{source}: "):
        scores = model.decision_function(X)
    labels = np.asarray(model.labels_of(scores))
    probabilities = model.probabilities_of(scores) if arguments.proba else None
    write(arguments.output, _sheet(model, labels, probabilities))


def _sheet(model: StumpEnsemble, labels: np.ndarray, probabilities: np.ndarray | None) -> Sheet:
    named = {} if probabilities is None else {"probability": probabilities}
    of_classes = [] if probabilities is None else list(probabilities.T)
    return Sheet(
        n_rows=len(labels),
        names=["prediction", *(f"P({label})" for label in model.classes[: len(of_classes)])],
        block=lambda rows: [labels[rows], *(column[rows] for column in of_classes)],
        arrays=lambda: {"prediction": labels, "classes": model.class_array, **named},
    )
