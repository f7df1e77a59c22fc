"""Read a model file, and a table for the model: how predict, explain and inspect begin."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.cli.columns.targets import Offsets, OtherColumns
from gpustump.cli.errors import InputError, as_input_error
from gpustump.cli.read.files import model_file, read_table
from gpustump.cli.read.table import NUMBER, TEXT, InputTable, Request, Wanted
from gpustump.cli.wording import tell
from gpustump.data.columns import NUMERIC, TEMPORAL, AsText, Column
from gpustump.data.readable import quoted, temporal_text
from gpustump.model.encoding import NUMBERED, Encoding, encode, needed_positions, unseen_text
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


def terms_that_vote(model: StumpEnsemble) -> list[int]:
    """The features and pairs whose contributions are not 0 everywhere, and the intercept."""
    features = [table.feature for table in model.additive.tables[1]]
    return [*features, *range(model.n_features, model.n_features + len(model.pairs) + 1)]


def contributions_of(model: StumpEnsemble, X: Array, terms: Sequence[int] | None) -> np.ndarray:
    """The contributions of some terms, or all, (n_rows, n_terms) or (n_rows, n_classes, n_terms).

    Of a sparse table only those of a few terms should be asked for: they are dense, as those of a
    dense table are, not against a row of zeros as `explain` has them.
    """
    parts = model.explain(X)
    if arrays.is_sparse(X):
        terms = [*range(len(model.term_names) + 1)] if terms is None else terms
        by_class = [parts] if model.has_one_score else parts
        of_zeros = np.asarray(model.explain(np.zeros((1, model.n_features))))[..., terms]
        found = np.stack([own[:, terms].toarray() for own in by_class], axis=1)
        found = np.reshape(found, (len(X), *of_zeros.shape[1:])) + of_zeros
        is_intercept = np.asarray(terms) == len(model.term_names)
        found[..., is_intercept] = of_zeros[..., is_intercept]
        return np.asarray(found)
    return np.asarray(parts if terms is None else parts[..., terms])


def at_least_one_row(X: np.ndarray) -> np.ndarray:
    """A table (n_rows, n_features), or a row of zeros if it is empty, which models refuse."""
    return X if len(X) else np.zeros((1, X.shape[1]), dtype=X.dtype)


def read_features(path: str, encoding: Encoding, *, may_be_empty: bool = False) -> np.ndarray:
    """The features (n_rows, n_features) in a data file; stderr tells of unknown categories.

    Raises
    ------
    InputError, OSError
        If the file is not a table with the columns that the model needs.
    """
    return _features(read_table(path, _request(encoding), may_be_empty=may_be_empty), encoding)


class TableToPredict(NamedTuple):
    """The features (n_rows, n_features), what is known of the rows, and an ID (n_rows,) of each."""

    X: np.ndarray
    offsets: Offsets
    ids: np.ndarray


def read_table_to_predict(
    arguments: argparse.Namespace, model: StumpEnsemble, id_name: str | None = None
) -> TableToPredict:
    """The table that options name, with the IDs in a column, or else the numbers of rows from 1.

    Raises
    ------
    InputError, OSError
        If the file is not a table with the columns that the model or the options need.
    """
    encoding = model.encoding
    named = OtherColumns.of_model(model, arguments)
    found: list[OtherColumns] = []

    def more(header: InputTable) -> dict[int, str]:
        found[:] = [named.those_in(header, arguments)]
        kinds = dict.fromkeys(found[0].places(header), NUMBER)
        at = None if id_name is None else header.column_or_vector(id_name, "--id")[1]
        return kinds if at is None else {at: TEXT} | kinds

    table = read_table(arguments.data, _request(encoding, more), may_be_empty=True)
    offsets = found[0].offsets(table)
    ids = np.arange(1, table.n_rows + 1)
    if id_name is not None:
        column, _ = table.column_or_vector(id_name, "--id")
        if column.kind in ("list", "array", "struct"):
            raise InputError(
                f"--id: the column {quoted(id_name)} of {table.source} is of type {column.kind}; "
                "an ID is text, a number or a time."
            )
        with as_input_error(f"{table.source}: "):
            ids = _texts(column)
    return TableToPredict(_features(table, encoding), offsets, ids)


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


def _features(table: InputTable, encoding: Encoding) -> np.ndarray:
    for warning in table.warnings:
        tell(warning)
    with as_input_error():
        X, unseen = encode(encoding, table)
    for name, values in unseen.items():
        tell(unseen_text(name, values))
    return X


def _nothing_more(header: InputTable) -> dict[int, str]:
    return {}


def _request(
    encoding: Encoding, more: Callable[[InputTable], dict[int, str]] = _nothing_more
) -> Request:
    """The columns that a model needs, read as in training, and the kinds of some more."""

    def choose(header: InputTable) -> Wanted:
        with as_input_error():
            positions = needed_positions(encoding, header)
        _refuse_repeated(encoding, header)
        kinds, orders = as_in_training(encoding, positions)
        kinds = more(header) | kinds
        return Wanted(frozenset(range(len(header.columns))) - kinds.keys(), kinds, orders)

    return request_of(encoding, choose)


def _refuse_repeated(encoding: Encoding, header: InputTable) -> None:
    """Refuse a name that the model needs if several columns have it here, and one had in training.

    Raises
    ------
    InputError
    """
    names = [column.name for column in encoding.columns]
    for name, last in header.repeated.items():
        if encoding.named and name in names and last not in names:
            raise InputError(
                f"{header.source} has several columns named {quoted(name)}, which the model needs; "
                "rename all but one of them."
            )


def as_in_training(
    encoding: Encoding, positions: list[int]
) -> tuple[dict[int, str], dict[int, str]]:
    """What the columns that a model needs hold, and how their dates begin; see `Wanted`.

    `positions` are where the columns are now.
    """
    pairs = list(zip(encoding.columns, positions, strict=True))
    kinds = {at: TEXT if needed.kind in ("category", NUMBERED) else NUMBER for needed, at in pairs}
    return kinds, {at: needed.date_order for needed, at in pairs if needed.date_order}


def request_of(encoding: Encoding, choose: Callable[[InputTable], Wanted]) -> Request:
    """A request for a model's table, whose text is read as in training."""
    decimals = ",." if encoding.decimals == "," else encoding.decimals
    n_features, first_index = len(encoding.columns), encoding.first_index
    as_text = (encoding.text_encoding, decimals, encoding.missing)
    return Request(choose, None, *as_text, n_features, first_index)
