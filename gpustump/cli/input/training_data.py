"""The data that `gpustump train` learns from: features, labels and weights, split into two parts.

Everything that can be wrong with the data is found here, before training begins.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpustump.cli.errors import InputError, as_input_error
from gpustump.cli.input.input_table import InputTable, table_of
from gpustump.cli.input.learning import learn_encoding
from gpustump.cli.input.reading import read_table
from gpustump.cli.input.target_labels import target_labels
from gpustump.data.columns import ArrayColumn, Column
from gpustump.data.readable import counted, listed, quoted, thousands
from gpustump.model.encoding import Encoding, encode

if TYPE_CHECKING:
    from gpustump import StumpEnsemble

_BLOCK_ROWS = 2**16
"""Number of rows that are copied out of the table together."""


@dataclass(frozen=True)
class TrainingData:
    """What is to be learned.

    Attributes
    ----------
    source, target : str
    X : ndarray (n_rows, n_features)
    y : ndarray (n_rows,)
    weights : ndarray (n_rows,) or None
    encoding : Encoding
    n_without_target : int
        Number of rows left out because their target is missing.
    """

    source: str
    target: str
    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None
    encoding: Encoding
    n_without_target: int


@dataclass(frozen=True)
class Part:
    """Some of the rows: those to train on, or those held out.

    The table is not copied, as it may be a file larger than the memory.

    Attributes
    ----------
    X : ndarray (n_rows, n_features)
        The whole table.
    rows : ndarray (n_part,) of int64
        Which of its rows.
    y : ndarray (n_part,)
    weights : ndarray (n_part,) or None
    """

    X: np.ndarray
    rows: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None

    def scores(self, model: StumpEnsemble) -> np.ndarray:
        """The model's decision values for these rows."""
        starts = range(0, len(self.rows), _BLOCK_ROWS)
        blocks = [self.rows[start : start + _BLOCK_ROWS] for start in starts]
        return np.concatenate([model.decision_function(self.X[rows]) for rows in blocks])


def read_training_data(arguments: argparse.Namespace) -> TrainingData:
    """The table that the options name, as features, labels and weights.

    Raises
    ------
    InputError
        If a model cannot be trained on it as the options say.
    """
    table, target, n_without_target = _table_with_target(arguments)
    column, at = table.column_or_vector(target, "--target")
    labels = target_labels(column, table.source)
    excluded = {at} | _dropped(table, arguments.drop)
    weights = None
    if arguments.weight is not None:
        weight, weight_at = table.column_or_vector(arguments.weight, "--weight")
        if weight is column or (at is not None and weight_at == at):
            raise InputError(f"--weight and --target both name {quoted(column.name)}.")
        weights = _checked_weights(weight, table.source)
        excluded.add(weight_at)
    positions = [j for j in range(len(table.columns)) if j not in excluded]
    if not positions:
        raise InputError(f"{table.source}: no column is left to learn from.")
    encoding = learn_encoding(table, positions)
    X, _ = encode(encoding, table)
    return TrainingData(table.source, column.name, X, labels, weights, encoding, n_without_target)


def _table_with_target(arguments: argparse.Namespace) -> tuple[InputTable, str, int]:
    """The table, its target's name, and how many rows without a target were left out."""
    if arguments.data is None:
        for option in ("target", "weight"):
            if getattr(arguments, option) is not None:
                raise InputError(
                    f"--{option} needs DATA, the name of a file. (Without DATA the breast-cancer "
                    "data is used, whose target is known.)"
                )
        table, target = _breast_cancer()
        return table, target, 0
    table = read_table(arguments.data)
    if arguments.target is None:
        raise InputError(_question_about_target(table))
    missing = table.column_or_vector(arguments.target, "--target")[0].missing()
    n_missing = int(np.count_nonzero(missing))
    if n_missing == len(missing):
        raise InputError(f"{table.source}: the target {quoted(arguments.target)} is empty.")
    if n_missing and not arguments.drop_missing_target:
        raise InputError(
            f"{table.source}: the target is missing in {counted(n_missing, 'row')} of "
            f"{thousands(table.n_rows)}; leave them out with --drop-missing-target."
        )
    return table.with_rows(~missing) if n_missing else table, arguments.target, n_missing


def _question_about_target(table: InputTable) -> str:
    names = table.vectors or (table.names if table.named else [])
    hint = "Columns count from 0; -1 is the last."
    if names:
        hint = f"{table.source} has {listed(names)}."
    return f"--target COLUMN is needed: which column holds the labels? {hint}"


def _breast_cancer() -> tuple[InputTable, str]:
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    labels = ArrayColumn("diagnosis", np.asarray(data.target_names)[data.target].astype(str))
    names = [str(name) for name in data.feature_names]
    source = "breast cancer, from scikit-learn"
    return table_of(source, data.data, names, {"diagnosis": labels}), "diagnosis"


def _checked_weights(column: Column, source: str) -> np.ndarray:
    where = f"{source}: the weights {quoted(column.name)}"
    if column.kind not in ("number", "boolean"):
        raise InputError(f"{where} are not numbers, but of type {column.kind}.")
    weights = column.numbers().astype(np.float64)
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        raise InputError(
            f"{where} must be finite and not negative; they are not in "
            f"{counted(int(np.count_nonzero(bad)), 'row')}, such as {weights[np.argmax(bad)]}."
        )
    if not weights.any():
        raise InputError(f"{where} are zero in every row; at least one must be positive.")
    return weights


def _dropped(table: InputTable, options: list[str]) -> set[int | None]:
    """The positions of all columns that --drop names."""
    dropped: set[int | None] = set()
    for option in options:
        is_one_name = table.named and option in table.names  # a name may hold a comma itself
        for name in [option] if is_one_name else option.split(","):
            if name.strip():
                dropped.add(table.position(name.strip(), "--drop"))
    return dropped


def split(data: TrainingData, share: float, seed: int) -> tuple[Part, Part | None]:
    """The rows to train on, and a share of all rows that is held out, if it is not 0.

    Raises
    ------
    InputError
        If a part would lack one of the classes.
    """
    if share == 0.0:
        return _part(data, np.arange(len(data.y))), None
    from sklearn.model_selection import train_test_split

    classes, counts = np.unique(data.y, return_counts=True)
    n_held_out = math.ceil(share * len(data.y))
    rarest = quoted(classes[np.argmin(counts)].item())
    if min(counts) < 2:
        raise InputError(
            f"the target {quoted(data.target)} has {len(classes)} distinct values, and {rarest} "
            "occurs only once, so it cannot be both trained on and held out. Is it a column of "
            "labels? If so, leave that row out, or use --test-size 0."
        )
    if min(n_held_out, len(data.y) - n_held_out) < len(classes):
        raise InputError(
            f"--test-size {share:g} of {counted(len(data.y), 'row')} holds out {n_held_out}, but "
            f"each part needs a row of each of {len(classes)} classes; choose another share, or 0."
        )
    with as_input_error("the rows cannot be split: "):
        rows, held_out = train_test_split(
            np.arange(len(data.y)), test_size=share, random_state=seed, stratify=data.y
        )
    return _part(data, np.sort(rows)), _part(data, np.sort(held_out))


def _part(data: TrainingData, rows: np.ndarray) -> Part:
    weights = None if data.weights is None else data.weights[rows]
    return Part(data.X, rows, data.y[rows], weights)
