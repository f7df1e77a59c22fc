"""What `python -m bench glassbox` writes: every single fold's numbers, as JSON (see `records`)."""

from __future__ import annotations

from os import PathLike
from typing import Annotated, Any, Literal

from msgspec import Meta

from bench import records
from bench.accuracy_records import Outline
from bench.records import Count, FormatError, Machine, Record, Seconds, Share


class GlassFold(Record, frozen=True):
    """One contender, trained on all folds but one, on the samples of that one."""

    error: Share
    """Share of wrong classes."""
    log_loss: Annotated[float, Meta(ge=0)]
    """Mean of minus the logarithm of the probability of the right class, which counts as 1e-7 at
    least."""
    brier: Annotated[float, Meta(ge=0, le=2)]
    """Mean of the squared distance between the probabilities of all classes and the right answer
    [Brier 1950]."""
    fit: Seconds
    """Of `fit`, choosing and holding out samples included."""
    predict: Seconds
    """Of `predict_proba` for the held-out samples: the median of a few calls."""


class GlassResult(Record, frozen=True):
    """One contender on one table."""

    contender: str
    parameters: dict[str, Any]
    """What its estimator was given beside the threads."""
    folds: tuple[GlassFold, ...] = ()
    reason: str | None = None
    """Why it could not be measured; None if all folds of the table were."""


class GlassTable(Outline, frozen=True):
    """All contenders on one table."""

    results: Annotated[tuple[GlassResult, ...], Meta(min_length=1)]


class Glassbox(Record, frozen=True, tag_field="schema", tag=4):
    """A whole run."""

    benchmark: Literal["glassbox"]
    command: str
    started: Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]
    """In UTC."""
    seconds: Seconds
    """Of all runs that the file was made in."""
    machine: Machine
    folds: Annotated[int, Meta(ge=2)]
    """Folds of a table whose time did not run out."""
    limit: Seconds
    """A table ends after the fold in which the fits of a contender have taken longer in all."""
    threads: Count
    tables: Annotated[tuple[GlassTable, ...], Meta(min_length=1)]
    shuffles: Annotated[int, Meta(ge=1)] = 1
    """How often the samples of a table are shuffled and cut into folds, if its time allows."""


def read(path: str | PathLike[str]) -> Glassbox:
    """Read a run.

    Raises
    ------
    FormatError
        If the file does not hold one; the message says where it goes wrong.
    """
    found: Glassbox = records.decoded(path, Glassbox)
    most = found.folds * found.shuffles
    for table in found.tables:
        counts = {len(result.folds) for result in table.results if result.reason is None}
        if len(counts) > 1 or counts & {0} or max(counts, default=1) > most:
            raise FormatError(
                f"{path} is not the JSON of a benchmark: the contenders on {table.name} have "
                f"{', '.join(map(str, sorted(counts)))} folds; all must have the same number, "
                f"from 1 to {most}"
            )
    return found
