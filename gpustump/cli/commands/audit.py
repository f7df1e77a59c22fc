"""`gpustump audit`: derive a model again from its training table, and compare it round by round.

The model's file says how it was trained, and how the table is read: which columns are features,
which of them are text, which words stand for missing values. The target and the weights are named
by options, or by the file. Besides that, only what is compared is taken from it.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gpustump.cli.columns.model import LoadedModel, as_in_training, load_model, text_options
from gpustump.cli.columns.targets import OffsetColumns, target_labels, target_numbers
from gpustump.cli.columns.training import (
    BREAST_CANCER_TARGET,
    TrainingData,
    as_read,
    breast_cancer,
    by_feature,
    checked_weights,
    known_rows,
    places_of,
    split_rows,
    words_removed,
)
from gpustump.cli.errors import InputError, as_input_error
from gpustump.cli.method import Recipe, check_device_option, estimator, recipe_of
from gpustump.cli.read.files import (
    FileState,
    check_one_standard_input,
    check_unchanged,
    read_table,
    shown_name,
)
from gpustump.cli.read.table import TEXT, InputTable, Request, Wanted
from gpustump.cli.wording import name_value_lines
from gpustump.data.columns import Column
from gpustump.data.readable import counted, shortened, shown, thousands
from gpustump.estimators.audit import audit_with
from gpustump.estimators.base import Data
from gpustump.estimators.recorded import Recorded, checked_dtype, of_estimator, recorded
from gpustump.estimators.targets import Offset
from gpustump.model.encoding import Encoding, encode, needed_positions, unseen_text
from gpustump.model.ensemble import StumpEnsemble

SAME, DIFFERENT = 0, 1
"""Exit codes."""


def run(arguments: argparse.Namespace) -> int:
    """Print what the audit found; the exit code tells whether the data give the same model."""
    check_one_standard_input(arguments.model, arguments.data)
    check_device_option(arguments.device)
    loaded = load_model(arguments.model)
    details = loaded.model.details
    columns = columns_of(loaded.model, arguments)
    with as_input_error():
        recipe = recipe_of(details)
        known = _known(loaded, recipe)
    before = FileState.of(arguments.data)
    data = read_audit_data(arguments.data, loaded, columns)
    kept = None if recipe is None else _kept(data, recipe)
    with as_input_error():
        has_bar = not arguments.quiet and importlib.util.find_spec("tqdm") is not None
        means = {
            "n_jobs": arguments.jobs,
            "max_memory": arguments.max_memory,
            "verbose": int(has_bar),
        }
        offset = Offset(*data.offsets)
        given = Data(data.X, data.y, data.weights, arguments.device, offset=offset)
        found = audit_with(loaded.model, known, given, kept=kept, means=means)
    check_unchanged(before, if_mapped=True)
    if not arguments.quiet:
        n_held_out = 0 if kept is None else int(np.count_nonzero(~kept))
        rows = [
            ("model", shortened(shown_name(arguments.model))),
            ("table", f"{shortened(data.source)}, {rows_text(data, n_held_out)}"),
            *found.rows(),
        ]
        print("\n".join(name_value_lines(rows)))
    return SAME if found.same else DIFFERENT


def _known(loaded: LoadedModel, recipe: Recipe | None) -> Recorded:
    """How the model was trained."""
    if recipe is None:
        known = recorded(loaded.model.details)
        if known is None:
            raise InputError(
                "the model does not say how it was trained: models of `gpustump train` do, and "
                "those of estimators. For any other model, use "
                "gpustump.audit(model, X, y, estimator=...) in Python, with the parameters of its "
                "fit."
            )
        return known
    encoding = loaded.encoding
    unknown = set(recipe.monotone) - {column.name for column in encoding.columns}
    if unknown:
        raise InputError(
            f"the model's details name a monotone constraint of {shown(min(unknown))}, which is "
            "not one of its columns."
        )
    own = estimator(
        recipe.method,
        categorical_features=list(encoding.categorical_features) or None,
        monotonic_cst=by_feature(encoding, recipe.monotone),
    )
    checked = of_estimator(own).set_params(random_state=recipe.seed)
    return Recorded(checked, dtype=checked_dtype(loaded.model.details.get("dtype")))


def _kept(data: TrainingData, recipe: Recipe) -> np.ndarray | None:
    """The rows that training did not hold out; None for all."""
    try:
        rows, held_out = split_rows(data, recipe.test_size, recipe.seed)
    except InputError as error:  # its advice is for `train`
        raise InputError(
            f"{data.source} is not the table that the model was trained on: training held out rows "
            f"(--test-size {recipe.test_size}), and these {rows_text(data, 0)} cannot be split so."
        ) from error
    if held_out is None:
        return None
    kept = np.zeros(len(data.y), dtype=bool)
    kept[rows] = True
    return kept


class Columns(NamedTuple):
    """The names of columns that are no features, as options or the model's file give them."""

    target: str
    weight: str | None
    offsets: OffsetColumns = OffsetColumns()

    @property
    def named(self) -> dict[str, str]:
        """The names, by the options for them."""
        weight = {} if self.weight is None else {"--weight": self.weight}
        return {"--target": self.target, **weight, **dict(self.offsets.given)}


def columns_of(model: StumpEnsemble, arguments: argparse.Namespace) -> Columns:
    """The target, the weights and the offsets: by the options, or else by the model's details.

    Raises
    ------
    InputError
        If neither says which column is the target, or a name in the details is not text.
    """
    names = {"target": arguments.target, "weight": arguments.weight}
    for name, given in names.items():
        held = model.details.get(name)
        if given is None and held is not None:
            if not isinstance(held, str):
                raise InputError(
                    f"the model's details hold {shown(held)} as its {name}; it must be text."
                )
            names[name] = held
    if names["target"] is None:
        raise InputError(
            "--target COLUMN is needed: which column is predicted? The model does not say."
        )
    return Columns(names["target"], names["weight"], OffsetColumns.of_model(model, arguments))


def read_audit_data(path: str | None, loaded: LoadedModel, columns: Columns) -> TrainingData:
    """The features, targets and weights in a file, or in the breast-cancer data if there is none.

    Rows without a target are left out, as training either leaves them out or refuses the table.

    Raises
    ------
    InputError, OSError
        If it is not a table with the columns that the model was trained on.
    """
    reader = _Reader(loaded, columns)
    table = words_removed(_table(path, reader), loaded.encoding.missing)
    target, target_at = table.column_or_vector(columns.target, "--target")
    target = reader.as_labels(target, target_at)
    missing = target.missing()
    n_missing = known_rows(missing, table.source, target.name)
    if n_missing:
        table = table.with_rows(~missing)
        target = reader.as_labels(*table.column_or_vector(columns.target, "--target"))
    is_quantity = loaded.model.is_regression
    values = (target_numbers if is_quantity else target_labels)(target, table.source)
    weights = None
    if columns.weight is not None:
        weight, _ = table.column_or_vector(columns.weight, "--weight")
        weights = checked_weights(weight, table.source)
    X = reader.features(table)
    return TrainingData(
        *(table.source, target.name, X, values, weights, loaded.encoding, n_missing, table.notes),
        is_quantity=is_quantity,
        offsets=columns.offsets.read(table),
    )


def _table(path: str | None, reader: _Reader) -> InputTable:
    if path is not None:
        return read_table(path, reader.request)
    if reader.columns.target != BREAST_CANCER_TARGET:
        raise InputError(
            "DATA is needed: the table that the model was trained on. (Without DATA, "
            "scikit-learn's breast-cancer data is used; this model was not trained on it.)"
        )
    return breast_cancer()[0]


class _Reader(NamedTuple):
    """How a table is read for a model."""

    loaded: LoadedModel
    columns: Columns

    @property
    def encoding(self) -> Encoding:
        return self.loaded.encoding

    @property
    def is_stored(self) -> bool:
        """Whether the model knows the columns of its training table, and not only its features."""
        return "encoding" in self.loaded.model.details

    @property
    def has_text_labels(self) -> bool:
        """Whether labels are text, so that numbers in their column were read as text."""
        classes = self.loaded.model.classes
        return bool(classes) and all(isinstance(label, str) for label in classes)

    @property
    def request(self) -> Request:
        """The columns to read: features, target and weights."""
        return Request(self._choose, text_options(self.encoding))

    def as_labels(self, column: Column, place: int | None) -> Column:
        """The target as training read it."""
        return as_read(column, place, self.encoding.missing, is_text=self.has_text_labels)

    def features(self, table: InputTable) -> np.ndarray:
        """The features (n_rows, n_features); stderr tells of unknown categories."""
        with as_input_error():
            X, unseen = encode(self.encoding, self._table_of_features(table))
        for name, values in unseen.items():
            print(f"gpustump: {unseen_text(name, values)}", file=sys.stderr)
        return X

    def _choose(self, header: InputTable) -> Wanted:
        target_at = header.column_or_vector(self.columns.target, "--target")[1]
        others = places_of(header, self.columns.named)
        with as_input_error():
            positions = self._positions(header)
        kinds, orders = as_in_training(self.encoding, positions)
        if target_at is not None and self.has_text_labels:
            kinds[target_at] = TEXT
        wanted = kinds.keys() | others
        return Wanted(frozenset(range(len(header.columns))) - wanted, kinds, orders)

    def _positions(self, table: InputTable) -> list[int]:
        """Where the features' columns are."""
        places = self._places(table)
        if places is None:
            return needed_positions(self.encoding, table)
        return [places[at] for at in needed_positions(self.encoding, _of(table, places))]

    def _table_of_features(self, table: InputTable) -> InputTable:
        places = self._places(table)
        return table if places is None else _of(table, places)

    def _places(self, table: InputTable) -> list[int] | None:
        """The columns besides target and weights, if features are found by position; else None."""
        if self.is_stored or (self.encoding.named and table.named):
            return None
        others = places_of(table, self.columns.named)
        return [place for place in range(len(table.columns)) if place not in others]


def _of(table: InputTable, places: list[int]) -> InputTable:
    """Some of the columns of a table."""
    columns = tuple(table.columns[place] for place in places)
    matrix = table.matrix
    if matrix is not None and len(places) < len(table.columns):
        first, last = places[0], places[-1] + 1
        is_slice = places == list(range(first, last))
        matrix = matrix[:, first:last] if is_slice else matrix[:, places]
    return replace(table, columns=columns, matrix=matrix)


def rows_text(data: TrainingData, n_held_out: int) -> str:
    """How many rows there are, how many training held out, and how many were left out."""
    parts = []
    if n_held_out:
        parts.append(f"{thousands(n_held_out)} of them held out in training")
    if data.n_without_target:
        parts.append(f"{thousands(data.n_without_target)} without a target left out")
    return ", ".join([counted(len(data.y), "row"), *parts])
