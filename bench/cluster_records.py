"""What `python -m bench cluster` writes: every single fit and message, as JSON (see `records`)."""

from __future__ import annotations

from os import PathLike
from typing import Annotated, Any, Literal

from msgspec import Meta

from bench import records
from bench.records import Bytes, Count, FormatError, Machine, Record, Seconds, Sha256

LOCAL = 0
"""Workers of a fit in one process, without Dask."""


class Said(Record, frozen=True):
    """What gpustump counts of its own messages, in the two fits of a turn."""

    messages: tuple[Count, Count]
    """To all workers together, in the short fit and in the long one."""
    round_bytes: Annotated[float, Meta(ge=0)]
    """Of the long fit: what a worker received and answered in a round."""


class ClusterTurn(Record, frozen=True):
    """What one contender took in one turn, and what it made."""

    short: Seconds
    """A whole fit with the smaller number of rounds."""
    long: Seconds
    """The same with the larger number of rounds."""
    passed: tuple[Bytes, Bytes]
    """What passed the loopback during either, of any process."""
    model: Sha256
    """Of the long fit: the digest, or that of the peer's dumped trees."""
    predictions: Sha256
    """Of that model's probabilities for the held-out rows."""
    said: Said | None = None


class ClusterRun(Record, frozen=True):
    """One contender on so many workers."""

    contender: str
    parameters: dict[str, Any]
    """What its estimator was given beside the rounds."""
    workers: Annotated[int, Meta(ge=0)]
    """0 for a fit in one process."""
    threads: Count
    """Of each worker."""
    rounds: tuple[Count, Count]
    """Of the short and the long fit."""
    reason: str | None = None
    """Why it could not be measured to the end; None if all went well."""
    first_fit: Seconds | None = None
    """A short one: what is loaded and compiled then."""
    turns: tuple[ClusterTurn, ...] = ()


class RoundTrips(Record, frozen=True):
    """Messages without content to all workers, and their answers."""

    workers: Count
    seconds: tuple[Seconds, ...] = ()
    """Of each, from the first byte sent to the last answer."""


class Case(Record, frozen=True):
    """Runs that took turns with each other on one data set."""

    data: str
    data_sha256: Sha256
    samples: Count
    features: Count
    chunks: tuple[Count, ...]
    """Rows of each chunk of the Dask arrays."""
    runs: Annotated[tuple[ClusterRun, ...], Meta(min_length=1)]
    trips: tuple[RoundTrips, ...] = ()


class Cluster(Record, frozen=True, tag_field="schema", tag=3):
    """A whole run."""

    benchmark: Literal["cluster"]
    command: str
    started: Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]
    """In UTC."""
    seconds: Seconds
    machine: Machine
    threads: Count
    """Of all workers of a cluster together, as the command says."""
    cases: Annotated[tuple[Case, ...], Meta(min_length=1)]


def read(path: str | PathLike[str]) -> Cluster:
    """Read a run.

    Raises
    ------
    FormatError
        If the file does not hold one; the message says where it goes wrong.
    """
    found: Cluster = records.decoded(path, Cluster)
    for run in (run for case in found.cases for run in case.runs):
        if run.reason is None and not run.turns:
            raise FormatError(
                f"{path} is not the JSON of a benchmark: {run.contender} on {run.workers} workers "
                "has neither turns nor a reason"
            )
    return found
