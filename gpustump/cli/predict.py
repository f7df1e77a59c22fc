"""`gpustump predict`: a model and a table -> a label and probabilities for each row.

CSV is written with the standard library, so that predicting arrays needs no optional one.
"""

from __future__ import annotations

import argparse
import csv
import io
import sys
from typing import BinaryIO

import numpy as np

from gpustump.cli.encoding import encode, from_details
from gpustump.cli.errors import InputError, MissingLibraryError, counted, input_errors, listed
from gpustump.cli.outputs import check_output
from gpustump.cli.reading import read_table
from gpustump.ensemble import StumpEnsemble
from gpustump.files import whole_file

ENDINGS = (".csv", ".parquet", ".npz")
BLOCK = 2**14
"""Rows that are turned into text at a time."""


def run(arguments: argparse.Namespace) -> None:
    """Predict as the command line says."""
    output: str = arguments.output
    if output != "-":
        if not output.lower().endswith(ENDINGS):
            raise InputError(
                f"--output: {output} must end in {', '.join(ENDINGS)}, which tells the format; "
                "- is CSV on standard output."
            )
        check_output(output, "--output", inputs=(arguments.model, arguments.data))
    model = StumpEnsemble.load(arguments.model)
    encoding = from_details(model.details, model.n_features, model.feature_names)
    table = read_table(arguments.data, text_columns=encoding.text_columns)
    X, unseen = encode(encoding, table)
    for name, n_rows in unseen.items():
        print(
            f"gpustump: {listed([name])} has values that were not in training in "
            f"{counted(n_rows, 'row')}; none of its features is 1 there",
            file=sys.stderr,
        )
    with input_errors(f"{table.source}: "):
        scores = model.decision_function(X)
    labels = np.asarray(model.labels_of(scores))
    probabilities = model.probabilities_of(scores) if arguments.proba else None
    if output == "-":
        _write_csv(sys.stdout.buffer, model, labels, probabilities)
        return
    write = {".csv": _write_csv, ".npz": _write_npz}.get(output.lower()[-4:], _write_parquet)
    with whole_file(output) as file:
        write(file, model, labels, probabilities)


def _names(model: StumpEnsemble) -> list[str]:
    return [f"P({label})" for label in model.classes]


def _write_csv(
    file: BinaryIO, model: StumpEnsemble, labels: np.ndarray, probabilities: np.ndarray | None
) -> None:
    names = ["prediction", *(_names(model) if probabilities is not None else [])]
    _write_rows(file, [names])
    for start in range(0, len(labels), BLOCK):
        block = slice(start, start + BLOCK)
        columns = [labels[block].tolist()]
        if probabilities is not None:
            columns += probabilities[block].T.tolist()
        _write_rows(file, zip(*columns, strict=True))
    file.flush()


def _write_rows(file: BinaryIO, rows: object) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)  # type: ignore[arg-type]
    file.write(text.getvalue().encode())


def _write_npz(
    file: BinaryIO, model: StumpEnsemble, labels: np.ndarray, probabilities: np.ndarray | None
) -> None:
    found = {"prediction": labels, "classes": model.class_array}
    if probabilities is not None:
        found["probability"] = probabilities
    np.savez(file, allow_pickle=False, **found)


def _write_parquet(
    file: BinaryIO, model: StumpEnsemble, labels: np.ndarray, probabilities: np.ndarray | None
) -> None:
    try:
        import polars as pl
    except ImportError as error:
        raise MissingLibraryError("writing Parquet", "polars") from error
    columns = {"prediction": labels}
    if probabilities is not None:
        columns.update(zip(_names(model), probabilities.T, strict=True))
    pl.DataFrame({name: np.ascontiguousarray(c) for name, c in columns.items()}).write_parquet(file)
