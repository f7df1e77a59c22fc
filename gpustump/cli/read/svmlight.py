"""Read files in the format of SVMlight and LIBSVM with scikit-learn, as sparse tables.

A line holds a target, then `INDEX:VALUE` for each feature that is not 0. The file tells neither
how many features there are nor whether the first has the number 0 or 1. So training finds out both,
and the model keeps them. Features are counted from 1, as in LIBSVM, unless one has the number 0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import IO, Any

import numpy as np

from gpustump.arrays.sparse import from_scipy
from gpustump.cli.errors import InputError
from gpustump.cli.read.packed import unpacked, without_compression
from gpustump.cli.read.table import (
    InputTable,
    Request,
    check_column_names,
    table_of,
)
from gpustump.cli.wording import one_line
from gpustump.data.columns import ArrayColumn
from gpustump.data.readable import counted, thousands

ENDINGS = (".svm", ".svmlight", ".libsvm")
BEGINNING = re.compile(rb"(#.*\n|[-+.\de]+\s*\n)*[-+.\de]+([ \t]+\w+:[-+.\w]+)+\s")
"""How text of this format begins: comments and rows without features, then a row with some."""

TARGET = "target"
"""What the target is called, as the file has no name for it."""

MOST_FEATURES = 2**24
"""A name and a number are kept of each feature, so a wrong index could fill the memory."""


def is_svmlight(path: str) -> bool:
    """Whether a file's name ends as those of this format do."""
    return without_compression(path).endswith(ENDINGS)


def read_svmlight(path: str, request: Request) -> InputTable:
    """Read a file in svmlight's format; see `files.read_table`."""
    matrix, y = _loaded(path)
    lowest = int(matrix.indices.min()) if matrix.nnz else 1
    first = min(lowest, 1) if request.first_index is None else request.first_index
    if lowest < first:
        raise InputError(
            f"{path} has a feature 0, but in training the features were counted from 1; count them "
            "from 1 here, too."
        )
    found = int(matrix.indices.max()) + 1 - first if matrix.nnz else 0
    names = request.feature_names
    wanted = len(names) if names is not None else request.n_features
    if names is not None and len(names) < found:
        raise InputError(
            f"--feature-names has {counted(len(names), 'name')}, but {path} has "
            f"{counted(found, 'feature')}, counted from {first}."
        )
    n_features = found if wanted is None else wanted
    if n_features > MOST_FEATURES:
        raise InputError(
            f"{path} has a feature {thousands(n_features)}; at most {thousands(MOST_FEATURES)} "
            "are read. Number those that occur from 1 without gaps."
        )
    from scipy.sparse import csr_array

    every = (len(y), max(found, n_features))
    own = csr_array((matrix.data, matrix.indices - first, matrix.indptr), shape=every)
    own = own[:, :n_features] if found > n_features else own
    target = {TARGET: ArrayColumn(TARGET, y)}
    notes: tuple[str, ...] = ("features counted from 0",) if first == 0 else ()
    table = table_of(path, from_scipy(own), names, target, first)
    table = replace(table, notes=notes, first_index=first)
    if found > n_features:
        above = counted(found - n_features, "feature at the end was", "features at the end were")
        table = replace(table, warnings=(f"{above} not in training, and left out.",))
    if table.columns:
        request.choose(table)
    return table


def read_names(path: str) -> tuple[str, ...]:
    """The names of the features in a text file, one a line.

    Raises
    ------
    InputError, OSError
        If it is not text, or a name is empty or stands there twice.
    """
    from gpustump.cli.read.text import text_of

    names = [line.strip() for line in text_of(path).decode().split("\n")]
    if names and not names[-1]:
        del names[-1]
    if "" in names:
        raise InputError(f"{path}: line {names.index('') + 1} is empty; it must hold a name.")
    check_column_names(path, names)
    return tuple(names)


class _Lines:
    """The lines of a file, and the number of the one that is being read."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.number, self.read = file, 0, file.read

    def __iter__(self) -> Iterator[bytes]:
        for line in self.file:
            self.number += 1
            yield line


def _loaded(path: str) -> tuple[Any, np.ndarray]:
    """A matrix of SciPy whose columns are the numbers of the features as they stand, and targets.

    Raises
    ------
    InputError
        If the file is not of this format.
    """
    from sklearn.datasets import load_svmlight_file

    with unpacked(path) as file:
        lines = _Lines(file)
        try:
            matrix, y = load_svmlight_file(lines, zero_based=True)
        except (ValueError, OverflowError) as error:  # a line is not as it should be
            reason = one_line(str(error))[:100].rstrip(".")
            raise InputError(
                f"{path} is not in svmlight's format: line {thousands(lines.number)} must be a "
                "target, then INDEX:VALUE for each feature that is not 0, by increasing index "
                f"({reason})."
            ) from error
    return matrix, y
