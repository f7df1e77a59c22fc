"""What `python -m bench accuracy` writes: every single fold's numbers, as JSON (see `records`)."""

from __future__ import annotations

from os import PathLike
from typing import Annotated, Any, Literal

from msgspec import Meta

from bench import records
from bench.records import Count, FormatError, Machine, Record, Seconds, Sha256, Share


class Fold(Record, frozen=True):
    """One contender, trained on all folds but one, on the samples of that one."""

    error: Share
    """Share of wrong classes."""
    log_loss: Annotated[float, Meta(ge=0)]
    """Mean of minus the logarithm of the probability of the right class, which counts as 1e-7 at
    least."""
    stumps: Annotated[int, Meta(ge=0)]
    """In the model."""
    seconds: Seconds
    """Of `fit`."""


class Result(Record, frozen=True):
    """One contender on one table."""

    contender: str
    group: str
    """Contenders that differ in the learning rate only are of one group."""
    parameters: dict[str, Any]
    """What its estimator was given beside rounds and threads."""
    rounds: Count
    folds: tuple[Fold, ...] = ()
    reason: str | None = None
    """Why it could not be measured; None if all folds were."""


class Outline(Record, frozen=True):
    """What is recorded of a table before anything is trained on it."""

    name: str
    about: str
    samples: Count
    features: Count
    classes: Annotated[tuple[Count, ...], Meta(min_length=2)]
    """Samples of each class."""
    missing: Share
    """Of all values."""
    sha256: Sha256
    """Of features, labels, and the fold that each sample was held out in."""


class TableResults(Outline, frozen=True):
    """All contenders on one table."""

    results: Annotated[tuple[Result, ...], Meta(min_length=1)]


class Accuracy(Record, frozen=True, tag_field="schema", tag=2):
    """A whole run."""

    benchmark: Literal["accuracy"]
    command: str
    started: Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]
    """In UTC."""
    seconds: Seconds
    machine: Machine
    rounds: Count
    """As the command says; some contenders make as many for each class."""
    folds: Annotated[int, Meta(ge=2)]
    threads: Count
    tables: Annotated[tuple[TableResults, ...], Meta(min_length=1)]


def read(path: str | PathLike[str]) -> Accuracy:
    """Read a run.

    Raises
    ------
    FormatError
        If the file does not hold one; the message says where it goes wrong.
    """
    found: Accuracy = records.decoded(path, Accuracy)
    for table in found.tables:
        for result in table.results:
            if result.reason is None and len(result.folds) != found.folds:
                raise FormatError(
                    f"{path} is not the JSON of a benchmark: {result.contender} on {table.name} "
                    f"has {len(result.folds)} of {found.folds} folds, and no reason"
                )
    return found
