"""A model and the table that it is applied to: what several commands begin with."""

from __future__ import annotations

import sys
from typing import NamedTuple

import numpy as np

from gpustump.cli.encoding import UNITS, Encoding, encode, from_details
from gpustump.cli.errors import counted, listed
from gpustump.cli.reading import read_table
from gpustump.model.ensemble import StumpEnsemble


class Applied(NamedTuple):
    """A model, how it takes a table, and a table as it wants it.

    Attributes
    ----------
    model : StumpEnsemble
    encoding : Encoding
    source : str
        The table's file.
    X : ndarray (n_rows, n_features)
    """

    model: StumpEnsemble
    encoding: Encoding
    source: str
    X: np.ndarray


def loaded(path: str) -> tuple[StumpEnsemble, Encoding]:
    """A model, and how it takes a table.

    Raises
    ------
    ModelFileError, InputError, OSError
        If the file is not an intact model.
    """
    model = StumpEnsemble.load(path)
    return model, from_details(model.details, model.n_features, model.feature_names)


def applied(model: StumpEnsemble, encoding: Encoding, data: str) -> Applied:
    """A model and a data file; says on stderr where the table holds unknown categories.

    Raises
    ------
    InputError, OSError
        If the file is not a table with the columns that the model needs.
    """
    table = read_table(data, text_columns=encoding.text_columns)
    X, unseen = encode(encoding, table)
    for name, n_rows in unseen.items():
        print(
            f"gpustump: {listed([name])} has values that were not in training in "
            f"{counted(n_rows, 'row')}; none of its features is 1 there",
            file=sys.stderr,
        )
    return Applied(model, encoding, table.source, X)


def feature_names(model: StumpEnsemble, encoding: Encoding) -> list[str]:
    """A name for every feature: by its column's place where the columns had none."""
    return list(model.feature_names or (f"column {wanted.name}" for wanted in encoding.inputs))


def names_in_pictures(model: StumpEnsemble, encoding: Encoding) -> tuple[str, ...]:
    """A name for every feature, with the unit where it is time, counted as a number."""
    names = []
    for feature, name in enumerate(feature_names(model, encoding)):
        kind = encoding.input_of(feature)[0].kind
        names.append(f"{name}, {UNITS[kind]}" if kind in UNITS else name)
    return tuple(names)
