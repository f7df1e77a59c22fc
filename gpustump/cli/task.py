"""What `gpustump train` is to learn: the table as features, labels and weights, and its two parts.

All that can be wrong with the data is found here, before anything is trained.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpustump.cli import report
from gpustump.cli.encoding import Encoding, encode, learn
from gpustump.cli.errors import InputError, counted, input_errors, listed, quoted
from gpustump.cli.labels import labels_of
from gpustump.cli.reading import read_table
from gpustump.cli.tables import ArrayColumn, Column, Table, of_matrix

if TYPE_CHECKING:
    from gpustump import StumpEnsemble

_ROWS_AT_ONCE = 2**16
"""Rows that are copied out of the table together."""


@dataclass(frozen=True)
class Task:
    """What is to be learnt.

    Attributes
    ----------
    source, target : str
    X : ndarray (n_rows, n_features)
    y : ndarray (n_rows,)
    weights : ndarray (n_rows,) or None
    encoding : Encoding
    dropped_rows : int
        Rows left out because their target is missing.
    """

    source: str
    target: str
    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None
    encoding: Encoding
    dropped_rows: int


@dataclass(frozen=True)
class Part:
    """Some of the rows, to train on or to judge by.

    The table itself is left as it is, since it may be a file larger than the memory.

    Attributes
    ----------
    X : ndarray (n_rows, n_features)
        The whole table.
    rows : ndarray (n_part,) of int64
        Which rows of it.
    y : ndarray (n_part,)
    weights : ndarray (n_part,) or None
    """

    X: np.ndarray
    rows: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None

    def scores(self, model: StumpEnsemble) -> np.ndarray:
        """The decision values of these rows."""
        starts = range(0, len(self.rows), _ROWS_AT_ONCE)
        parts = [self.rows[start : start + _ROWS_AT_ONCE] for start in starts]
        return np.concatenate([model.decision_function(self.X[rows]) for rows in parts])


def task_of(arguments: argparse.Namespace) -> Task:
    """The table that the options name, as features, labels and weights.

    Raises
    ------
    InputError
        If it cannot be learnt from as they say.
    """
    table, target, n_dropped = _labelled(arguments)
    column, at = table.taken(target, "--target")
    labels = labels_of(column, table.source)
    out = {at}
    weights = None
    if arguments.weight is not None:
        weight, weight_at = table.taken(arguments.weight, "--weight")
        if weight is column or (at is not None and weight_at == at):
            raise InputError(f"--weight and --target both name {quoted(column.name)}.")
        weights = _weights(weight, table.source)
        out.add(weight_at)
    out |= _dropped(table, arguments.drop)
    positions = [j for j in range(len(table.columns)) if j not in out]
    if not positions:
        raise InputError(f"{table.source}: no column is left to learn from.")
    encoding = learn(table, positions)
    X, _ = encode(encoding, table)
    return Task(table.source, column.name, X, labels, weights, encoding, n_dropped)


def _labelled(arguments: argparse.Namespace) -> tuple[Table, str, int]:
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
        there = listed(table.beside or table.names) if table.named or table.beside else ""
        raise InputError(
            "--target COLUMN is needed: which column holds the labels? "
            + (f"{table.source} has {there}." if there else "Columns count from 0; -1 is the last.")
        )
    missing = table.taken(arguments.target, "--target")[0].missing()
    n_missing = int(np.count_nonzero(missing))
    if n_missing == len(missing):
        raise InputError(f"{table.source}: the target {quoted(arguments.target)} is empty.")
    if n_missing and not arguments.drop_missing_target:
        raise InputError(
            f"{table.source}: the target is missing in {counted(n_missing, 'row')} of "
            f"{report.thousands(table.n_rows)}; leave them out with --drop-missing-target."
        )
    return table.kept(~missing) if n_missing else table, arguments.target, n_missing


def _breast_cancer() -> tuple[Table, str]:
    from sklearn.datasets import load_breast_cancer

    data = load_breast_cancer()
    labels = ArrayColumn("diagnosis", np.asarray(data.target_names)[data.target].astype(str))
    names = [str(name) for name in data.feature_names]
    source = "breast cancer, from scikit-learn"
    return of_matrix(source, data.data, names, {"diagnosis": labels}), "diagnosis"


def _weights(column: Column, source: str) -> np.ndarray:
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


def _dropped(table: Table, options: list[str]) -> set[int]:
    """The positions of all columns that --drop names."""
    dropped = set()
    for option in options:
        whole = table.named and option in table.names  # a name may hold a comma itself
        for name in [option] if whole else option.split(","):
            if name.strip():
                dropped.add(table.position(name.strip(), "--drop"))
    return dropped


def split(task: Task, share: float, seed: int) -> tuple[Part, Part | None]:
    """Rows to train on, and rows held out."""
    if share == 0.0:
        return _part(task, np.arange(len(task.y))), None
    from sklearn.model_selection import train_test_split

    classes, counts = np.unique(task.y, return_counts=True)
    n_held_out = math.ceil(share * len(task.y))
    rarest = quoted(classes[np.argmin(counts)].item())
    if min(counts) < 2:
        raise InputError(
            f"the target {quoted(task.target)} has {len(classes)} distinct values, and {rarest} "
            "occurs only once, so it cannot be both trained on and held out. Is it a column of "
            "labels? If so, leave that row out, or take --test-size 0."
        )
    if min(n_held_out, len(task.y) - n_held_out) < len(classes):
        raise InputError(
            f"--test-size {share:g} of {counted(len(task.y), 'row')} holds out {n_held_out}, but "
            f"each part needs a row of each of {len(classes)} classes; choose another share, or 0."
        )
    with input_errors("the rows cannot be split: "):
        rows, held_out = train_test_split(
            np.arange(len(task.y)), test_size=share, random_state=seed, stratify=task.y
        )
    return _part(task, np.sort(rows)), _part(task, np.sort(held_out))


def _part(task: Task, rows: np.ndarray) -> Part:
    weights = None if task.weights is None else task.weights[rows]
    return Part(task.X, rows, task.y[rows], weights)
