"""A part of a file, read by a worker: its rows, as features, labels and weights."""

from __future__ import annotations

import argparse
import contextlib
import pickle
import socket
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpustump.cli.errors import InputError, as_input_error, message_of
from gpustump.cli.input.exported_index import may_be_index
from gpustump.cli.input.file_state import FileState
from gpustump.cli.input.input_table import InputTable
from gpustump.cli.input.polars_files import parquet_number_columns
from gpustump.cli.input.target_labels import plain_labels
from gpustump.cli.input.training_data import (
    Choice,
    choice_of,
    read_data_file,
    target_of,
)
from gpustump.cli.on_dask.files import FilePart
from gpustump.data.fingerprint import Leaves, leaves_of
from gpustump.model.encoding import Encoding, encode

if TYPE_CHECKING:
    from gpustump import StumpEnsemble


FileContent = tuple[int, int] | None
"""Size and time of the last change of a file; None if they cannot be seen."""


class Reading(NamedTuple):
    """A part that was read.

    Attributes
    ----------
    table : InputTable
    choice : Choice
        What the options say of it.
    missing : ndarray (n_rows,) of bool
        Rows without a target.
    state : FileContent
    """

    table: InputTable
    choice: Choice
    missing: np.ndarray
    state: FileContent

    @property
    def known(self) -> InputTable:
        """The rows that have a target."""
        return self.table.with_rows(~self.missing) if self.missing.any() else self.table


def read_part(
    part: FilePart, arguments: argparse.Namespace, *, skips_numbers: bool = False
) -> Reading:
    """Read a part; of Parquet, columns of numbers may be skipped.

    Raises
    ------
    InputError
        If it is not as the options say.
    """
    state = FileState.of(part.path)
    numbers: frozenset[str] = frozenset()
    if skips_numbers and part.path.lower().endswith((".parquet", ".pq")):
        numbers = parquet_number_columns(part.path)

    def skipped(header: InputTable, choice: Choice) -> frozenset[int]:
        found = (j for j, name in enumerate(header.names) if name in numbers)
        needed = choice.forced.text
        return frozenset(
            j for j in found if j not in needed and not may_be_index(j, header.names[j])
        )

    table = read_data_file(part.path, arguments, rows=part.rows, skips=skipped, may_be_empty=True)
    choice = choice_of(table, arguments.target, arguments)
    missing = target_of(table, choice).missing()
    return Reading(table, choice, missing, None if state is None else state.content)


class _Enough(Exception):  # noqa: N818
    """Ends a reading once the columns are checked."""


def check_columns(file: str, arguments: argparse.Namespace) -> None:
    """Refuse options that name columns that a file does not have, before workers are started.

    Raises
    ------
    InputError
    """

    def stop(header: InputTable, choice: Choice) -> frozenset[int]:
        raise _Enough

    with contextlib.suppress(_Enough):
        read_data_file(file, arguments, skips=stop, may_be_empty=True)


class Plan(NamedTuple):
    """What becomes of the rows of a part.

    Attributes
    ----------
    part : FilePart
    state : FileContent
        That of the file when its outline was made; the file must not have changed since.
    n_known : int
        How many rows have a target.
    trained : bytes or None
        Which of them are trained on, a bit for each; None for all.
    """

    part: FilePart
    state: FileContent
    n_known: int
    trained: bytes | None

    @property
    def n_trained(self) -> int:
        """How many rows are trained on."""
        return self.n_known if self.trained is None else int(np.count_nonzero(self._mask()))

    def _mask(self) -> np.ndarray:
        bits = np.frombuffer(self.trained or b"", dtype=np.uint8)
        return np.unpackbits(bits, count=self.n_known).astype(bool)

    def chosen(self, rows: np.ndarray) -> np.ndarray:
        """Those of the known rows that are trained on."""
        return rows if self.trained is None else rows[self._mask()]


class Samples(NamedTuple):
    """Rows to train on: features (n, n_features), labels (n,), and weights (n,) or None."""

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None


def samples_of(plan: Plan, arguments: argparse.Namespace, encoding: Encoding) -> Samples:
    """A task: the rows of a part that are trained on."""
    with told_from_afar(plan.part):
        reading = _read_again(plan, arguments)
        known = reading.known
        X = _features(encoding, known)
        y = plain_labels(target_of(known, reading.choice), known.source)
        weights = None
        if arguments.weight is not None:
            column, _ = known.column_or_vector(arguments.weight, "--weight")
            weights = column.numbers().astype(np.float64)
        return Samples(
            plan.chosen(X), plan.chosen(y), None if weights is None else plan.chosen(weights)
        )


def packed_samples_of(packed: bytes) -> Samples:
    """`samples_of` with its arguments packed, so that tasks share no object.

    Dask would keep a shared object on one worker, and it would be lost with that worker.
    """
    return samples_of(*pickle.loads(zlib.decompress(packed)))


def scores_of(
    plan: Plan, arguments: argparse.Namespace, encoding: Encoding, model: StumpEnsemble
) -> np.ndarray:
    """A task: the model's decision values for all rows of a part that have a target."""
    with told_from_afar(plan.part):
        known = _read_again(plan, arguments).known
        scores: np.ndarray = model.decision_function(_features(encoding, known))
        return scores


class Place(NamedTuple):
    """The rows of a part that have a target, and their place in the whole table.

    Attributes
    ----------
    plan : Plan
    first_row : int
    numbers : ndarray (n_known,) of int64
        Of their classes.
    weights : ndarray (n_known,) of float64
    """

    plan: Plan
    first_row: int
    numbers: np.ndarray
    weights: np.ndarray


def leaves_of_part(
    place: Place, arguments: argparse.Namespace, encoding: Encoding
) -> tuple[Leaves, np.dtype]:
    """A task: what the fingerprint of the whole table needs of a part, and its features' dtype."""
    with told_from_afar(place.plan.part):
        X = _features(encoding, _read_again(place.plan, arguments).known)
        return leaves_of(X, place.numbers, place.weights, place.first_row), X.dtype


def _features(encoding: Encoding, table: InputTable) -> np.ndarray:
    with as_input_error():
        return encode(encoding, table)[0]


def _read_again(plan: Plan, arguments: argparse.Namespace) -> Reading:
    reading = read_part(plan.part, arguments)
    n_known = len(reading.missing) - int(np.count_nonzero(reading.missing))
    if reading.state != plan.state or n_known != plan.n_known:
        raise InputError(
            f"{plan.part.path} was changed while it was read; wait until it is complete, and start "
            "again."
        )
    return reading


@contextlib.contextmanager
def told_from_afar(part: FilePart) -> Iterator[None]:
    """Turn errors that users can mend into an InputError, which can be sent from a worker."""
    try:
        yield
    except FileNotFoundError as error:
        raise InputError(
            f"{part.path} is not on {socket.gethostname()}, where a worker should read it; workers "
            "need the files under the same names."
        ) from error
    except (InputError, OSError) as error:
        raise InputError(message_of(error)) from error
