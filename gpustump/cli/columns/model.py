"""Read a model file, and a table for the model: how predict, explain, inspect and audit begin."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

import numpy as np

from gpustump.cli.columns.targets import Offsets, OtherColumns
from gpustump.cli.errors import InputError, as_input_error
from gpustump.cli.read.files import model_file, read_table
from gpustump.cli.read.table import NUMBER, TEXT, InputTable, Request, Wanted
from gpustump.cli.wording import tell
from gpustump.data.columns import NUMERIC, TEMPORAL, USABLE, AsText, Column, picked_columns
from gpustump.data.readable import quoted, temporal_text
from gpustump.model.encoding import NUMBERED, encode, needed_positions, unseen_text
from gpustump.model.ensemble import StumpEnsemble


def load_model(path: str) -> StumpEnsemble:
    """Read a model file, or a model from standard input if the path is -.

    Raises
    ------
    ModelFileError, InputError, OSError
        If the file is not an intact model.
    """
    with model_file(path) as file:
        return StumpEnsemble.load(file)


def with_shown_names(model: StumpEnsemble) -> StumpEnsemble:
    """The model with the names of features that reports and pictures show."""
    return replace(model, feature_names=model.encoding.shown_names)


def at_least_one_row(X: np.ndarray) -> np.ndarray:
    """A table (n_rows, n_features), or a row of zeros if it is empty, which models refuse."""
    return X if len(X) else np.zeros((1, X.shape[1]), dtype=X.dtype)


Kinds = Mapping[int, str | None]
"""What columns hold, by their positions: `TEXT`, `NUMBER`, or None if nobody knows."""


def read_for_model(
    path: str,
    model: StumpEnsemble,
    others_in: Callable[[InputTable], Kinds] = lambda header: {},
    *,
    may_be_empty: bool = False,
) -> InputTable:
    """The columns that a model needs in a data file, read as in training, and some others.

    Raises
    ------
    InputError, OSError
        If the file is not a table with these columns.
    """
    encoding = model.encoding

    def choose(header: InputTable) -> Wanted:
        names = {column.name for column in encoding.columns}
        for new, old in header.renamed.items():
            if old in names and new not in names:  # with both, the file is as in training
                raise InputError(
                    f"{header.source} has several columns named {quoted(old)}, which the model "
                    "needs; rename all but one of them."
                )
        kinds = dict(others_in(header))
        table, places = without_others(header, model, kinds)
        with as_input_error():
            positions = [places[at] for at in needed_positions(encoding, table)]
        orders = dict[int, str]()
        for at, needed in zip(positions, encoding.columns, strict=True):
            kinds[at] = TEXT if needed.kind in ("category", NUMBERED) else NUMBER
            if needed.date_order:
                orders[at] = needed.date_order
        return Wanted(frozenset(range(len(header.columns))) - kinds.keys(), kinds, orders)

    request = Request(
        choose,
        fallback=encoding.text_encoding,
        decimals=",." if encoding.decimals == "," else encoding.decimals,
        missing=encoding.missing,
        n_features=len(encoding.columns),
        first_index=encoding.first_index,
    )
    return read_table(path, request, may_be_empty=may_be_empty)


def without_others(
    table: InputTable, model: StumpEnsemble, others: Collection[int]
) -> tuple[InputTable, list[int]]:
    """The table in which the model finds its features, and the places of its columns in the whole.

    Other columns are left out if features are found by position, and the model knows nothing of
    the table that it was trained on.
    """
    places = list(range(len(table.columns)))
    if "encoding" in model.details or (model.encoding.named and table.named):
        return table, places
    places = [place for place in places if place not in others]
    matrix = table.matrix
    if matrix is not None and others:
        matrix = picked_columns(matrix, places) if places else matrix[:, :0]
    return replace(table, columns=tuple(table.columns[j] for j in places), matrix=matrix), places


def features_in(
    table: InputTable, model: StumpEnsemble, others: Collection[int] = ()
) -> np.ndarray:
    """The features (n_rows, n_features) in a table; stderr tells of doubts and unknown categories.

    Raises
    ------
    InputError
        If columns hold another kind of value than in training.
    """
    for warning in table.warnings:
        tell(f"{table.source}: {warning}")
    with as_input_error():
        X, unseen = encode(model.encoding, without_others(table, model, others)[0])
    for name, values in unseen.items():
        tell(unseen_text(name, values))
    return X


def read_features(path: str, model: StumpEnsemble, *, may_be_empty: bool = False) -> np.ndarray:
    """The features (n_rows, n_features) in a data file; see `read_for_model`, `features_in`."""
    return features_in(read_for_model(path, model, may_be_empty=may_be_empty), model)


def read_table_to_predict(
    arguments: argparse.Namespace, model: StumpEnsemble, id_name: str | None = None
) -> tuple[np.ndarray, Offsets, np.ndarray]:
    """The features (n_rows, n_features) in the table that options name, what is known of its rows,
    and an ID (n_rows,) of each: that in a column, or else the number of the row, from 1.

    Raises
    ------
    InputError, OSError
        If the file is not a table with the columns that the model or the options need.
    """
    wanted = OtherColumns.of_model(model, arguments)

    def others_in(header: InputTable) -> Kinds:
        at = None if id_name is None else header.column_or_vector(id_name, "--id")[1]
        kinds = {} if at is None else {at: TEXT}
        return kinds | dict.fromkeys(wanted.those_in(header, arguments).places(header), NUMBER)

    table = read_for_model(arguments.data, model, others_in, may_be_empty=True)
    there = wanted.those_in(table, arguments)
    for name, column in wanted.given.items():
        if name not in there.given:
            usual = "1" if name == "--exposure" else "0"
            tell(f"{table.source}: there is no {quoted(column)}; it is {usual} for every row")
    ids = np.arange(1, table.n_rows + 1)
    if id_name is not None:
        id_column, _ = table.column_or_vector(id_name, "--id")
        if id_column.kind not in USABLE:
            raise InputError(
                f"--id: the column {quoted(id_name)} of {table.source} is of type "
                f"{id_column.kind}; an ID is text, a number or a time."
            )
        with as_input_error(f"{table.source}: "):
            ids = _texts(id_column)
    return features_in(table, model, others_in(table)), there.offsets(table), ids


def _texts(column: Column) -> np.ndarray:
    """The values of a column as text; empty where there is none."""
    if column.kind in TEMPORAL:
        numbers = np.asarray(column.numbers()).tolist()
        found = [temporal_text(own, column.kind, "auto") or "" for own in numbers]
        return np.asarray(found, dtype=str)
    missing = column.missing()
    texts = np.full(len(missing), "", dtype=object)
    kept = column.with_rows(~missing)
    labels = kept.labels()
    if column.kind in NUMERIC and labels.dtype.kind not in "iu":  # a float may not hold an integer
        labels = AsText(kept).labels()
    texts[~missing] = labels.tolist()
    return texts.astype(str)
