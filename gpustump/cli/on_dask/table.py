"""The whole table, whose rows are on workers: how it is encoded, what is held out, its scores."""

from __future__ import annotations

import argparse
import pickle
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

import dask.array as da
import numpy as np
from dask.delayed import delayed

from gpustump.cli.errors import InputError
from gpustump.cli.input.exported_index import Finding, find_index
from gpustump.cli.input.target_labels import target_labels
from gpustump.cli.input.training_data import (
    Part,
    TrainingData,
    checked_weights,
    empty_target,
    encoding_of,
    missing_target,
    split_rows,
    without_columns,
)
from gpustump.cli.on_dask.files import FilePart
from gpustump.cli.on_dask.outlines import Outline, joined, joined_column, outline_of
from gpustump.cli.on_dask.parts import (
    Place,
    Plan,
    leaves_of_part,
    packed_samples_of,
    scores_of,
)
from gpustump.data.fingerprint import Fingerprint, all_weights
from gpustump.data.fingerprint import joined as fingerprint_from
from gpustump.data.labels import plain_labels
from gpustump.data.readable import counted
from gpustump.model.encoding import Encoding

if TYPE_CHECKING:
    from gpustump import StumpEnsemble


@dataclass(frozen=True)
class SpreadTable:
    """Parts of files, and what to read of them.

    Attributes
    ----------
    client : distributed.Client
    arguments : argparse.Namespace
    encoding : Encoding
    plans : list of Plan
    """

    client: Any
    arguments: argparse.Namespace
    encoding: Encoding
    plans: list[Plan]
    _scores: dict[str, np.ndarray] = field(default_factory=dict)

    def collections(self, y: np.ndarray, has_weights: bool) -> tuple[Any, Any, Any]:
        """The rows to train on as Dask arrays: features, labels, and weights or None.

        Parameters
        ----------
        y : ndarray
            Whose dtype the labels have.
        has_weights : bool
        """
        read = delayed(packed_samples_of, pure=False)
        about = (self.arguments, self.encoding)
        samples = [read(zlib.compress(pickle.dumps((plan, *about)))) for plan in self.plans]
        sizes = [plan.n_trained for plan in self.plans]
        width = len(self.encoding.shown_names)

        def array(which: int, dtype: Any, *more: int) -> Any:
            blocks = [
                da.from_delayed(own[which], (size, *more), dtype=dtype)
                for own, size in zip(samples, sizes, strict=True)
            ]
            return da.concatenate(blocks, axis=0)

        weights = array(2, np.float64) if has_weights else None
        return array(0, np.float64, width), array(1, y.dtype), weights

    def scores(self, model: StumpEnsemble) -> np.ndarray:
        """The model's decision values for all rows that have a target; they are kept."""
        digest = model.digest()
        if digest not in self._scores:
            found = asked(
                self.client, scores_of, [plan for plan in self.plans if plan.n_known],
                arguments=self.arguments, encoding=self.encoding, model=model,
            )  # fmt: skip
            self._scores[digest] = np.concatenate(found)
        return self._scores[digest]

    def fingerprint(self, data: TrainingData) -> tuple[Fingerprint, np.dtype]:
        """The fingerprint of the whole table, as on one machine, and the dtype of its features.

        The parts are read once more for it.
        """
        classes, numbers = np.unique(data.y, return_inverse=True)
        weights = all_weights(data.weights, np.empty((len(data.y), 1)))
        ends = np.cumsum([0, *(plan.n_known for plan in self.plans)]).tolist()
        places = [
            Place(plan, start, numbers[start:end], weights[start:end])
            for plan, (start, end) in zip(self.plans, pairwise(ends), strict=True)
            if plan.n_known
        ]
        found = asked(
            self.client, leaves_of_part, places, arguments=self.arguments, encoding=self.encoding
        )
        leaves, dtypes = zip(*found, strict=True)
        return fingerprint_from(leaves, plain_labels(classes)), np.result_type(*dtypes)


@dataclass(frozen=True)
class SpreadPart(Part):
    """Some rows of a table whose rows are on workers.

    Attributes
    ----------
    table : SpreadTable or None
    """

    table: SpreadTable | None = None

    def scores(self, model: StumpEnsemble) -> np.ndarray:
        """The model's decision values for these rows."""
        assert self.table is not None
        scores: np.ndarray = self.table.scores(model)[self.rows]
        return scores


def asked(client: Any, task: Callable[..., Any], parts: Sequence[Any], **about: Any) -> list[Any]:
    """The results of a task for each part, by the workers; `about` are its other arguments.

    Raises
    ------
    InputError
        If a worker refuses a part.
    """
    futures = client.map(task, parts, **about, pure=False)
    try:
        return list(client.gather(futures))
    finally:
        if client.status == "running":
            client.cancel(futures, force=True)


@dataclass(frozen=True)
class SpreadTraining:
    """What is to be learned, and where it is.

    Attributes
    ----------
    data : TrainingData
        Without rows of features.
    table : SpreadTable
    trained, held_out : SpreadPart
        None if no rows are held out.
    """

    data: TrainingData
    table: SpreadTable
    trained: SpreadPart
    held_out: SpreadPart | None


def learned(
    client: Any, parts: Sequence[FilePart], source: str, arguments: argparse.Namespace
) -> SpreadTraining:
    """Let workers look at all parts; decide what becomes of columns and rows.

    Raises
    ------
    InputError
        If a model cannot be trained on it as the options say.
    """
    arguments = argparse.Namespace(**{**vars(arguments), "files": [], "data": None})  # to be sent
    outlines = asked(client, outline_of, parts, arguments=arguments)
    data = _data(outlines, source, arguments)
    rows, held_out = split_rows(data, arguments.test_size, arguments.seed)
    plans = _plans(outlines, None if held_out is None else rows)
    table = SpreadTable(client, arguments, data.encoding, plans)
    return SpreadTraining(
        data, table, _part(data, rows, table),
        None if held_out is None else _part(data, held_out, table),
    )  # fmt: skip


def _part(data: TrainingData, rows: np.ndarray, table: SpreadTable) -> SpreadPart:
    weights = None if data.weights is None else data.weights[rows]
    return SpreadPart(data.X, rows, data.y[rows], weights, table)


def _data(outlines: Sequence[Outline], source: str, arguments: argparse.Namespace) -> TrainingData:
    """Columns, labels and weights of all parts together."""
    whole, choice = joined(source, outlines), outlines[0].choice
    if not whole.n_rows:
        raise InputError(f"{source} has columns but no rows.")
    n_known = sum(outline.n_known for outline in outlines)
    target = joined_column(source, [(one.part.path, one.target) for one in outlines])
    if not n_known and target.kind == "empty":
        raise empty_target(source, choice)
    y = target_labels(target, source)
    n_missing = whole.n_rows - n_known
    if n_missing and not arguments.drop_missing_target:
        raise missing_target(source, n_missing, whole.n_rows, _first_missing(outlines))
    weights = None
    if arguments.weight is not None:
        columns = [(one.part.path, one.weights) for one in outlines if one.weights is not None]
        weights = checked_weights(joined_column(source, columns), source)
    encoding = encoding_of(whole, choice, _index(outlines, whole), arguments)
    n_files = len({outline.part.path for outline in outlines})
    notes = (f"{counted(n_files, 'file')}, in {counted(len(outlines), 'part')}", *whole.notes)
    X = np.empty((0, len(encoding.shown_names)))
    return TrainingData(source, target.name, X, y, weights, encoding, n_missing, notes)


def _first_missing(outlines: Sequence[Outline]) -> int:
    """The number of the first row without a target, counted over all files."""
    start = 0
    for outline in outlines:
        if outline.n_known < outline.n_rows:
            return start + outline.first_missing
        start += outline.n_rows
    raise AssertionError("every row has a target")


def _index(outlines: Sequence[Outline], whole: Any) -> Finding:
    """Columns that number the rows: of all files together, or of each file from its start."""
    choice = outlines[0].choice
    others = {choice.target_at, choice.weight_at}
    found = find_index(without_columns(whole, others))
    by_file = groupby(outlines, lambda outline: outline.part.path)
    tables = (joined(whole.source, list(own)) for _, own in by_file)
    each = [find_index(without_columns(table, others)) for table in tables if table.n_rows]
    if not found.left_out and all(one.left_out == each[0].left_out for one in each):
        return each[0]
    return found


def _plans(outlines: Sequence[Outline], rows: np.ndarray | None) -> list[Plan]:
    """What becomes of each part if some rows, or all, are trained on."""
    sizes = [outline.n_known for outline in outlines]
    chosen: Iterator[bytes | None] = iter([None] * len(sizes))
    if rows is not None:
        mask = np.zeros(sum(sizes), dtype=bool)
        mask[rows] = True
        own = np.split(mask, np.cumsum(sizes)[:-1])
        chosen = (np.packbits(one).tobytes() for one in own)
    return [
        Plan(outline.part, outline.state, size, bits)
        for outline, size, bits in zip(outlines, sizes, chosen, strict=True)
    ]
