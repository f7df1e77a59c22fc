"""The record of every benchmark: the machine, and a result for each contender on each data set.

The classes below are the schema of the JSON files. msgspec writes and reads them and checks types
and limits; `msgspec.json.schema(Report)` gives the schema to other programs. Times are in seconds,
memory in bytes. A file is readable by eye: each result stands on a line of its own.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from gpustump.model.whole_file import whole_file

Count = Annotated[int, Meta(ge=1)]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class FormatError(ValueError):
    """A file that is not the JSON of a benchmark."""


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An immutable value with checked fields."""


class Machine(Record, frozen=True):
    """The machine and the versions that a result was measured with."""

    processor: str
    cores: Count
    memory: int | None
    system: str
    python: str
    gpustump: str
    commit: str | None
    """Of the checkout, with a plus sign if there were changes on top."""
    source_sha256: Sha256
    versions: dict[str, str]
    gpus: tuple[str, ...]


class Result(Record, frozen=True):
    """One contender on one data set."""

    case: str
    """What the results belong to that are compared: a data set, an axis, a kind of tables."""
    contender: str
    data: str
    samples: Count
    features: Count
    data_sha256: Sha256 | None = None
    """Of the training table and its labels; in `accuracy` of the folds, too."""
    threads: Count = 1
    rounds: tuple[Count, ...] = ()
    """Of the fits of a turn: a short and a long one; in `accuracy` of the only one, if it is set
    by the command."""
    estimator: str = ""
    """Its class; empty in old files, from when gpustump had only one."""
    parameters: dict[str, Any] = {}
    """What the estimator was given beside rounds and threads."""
    reason: str | None = None
    """Why it could not be measured to the end; None if all went well."""
    facts: dict[str, Any] = {}
    """What was found once: memory, the digest, the time to load the libraries, ..."""
    values: dict[str, tuple[Any, ...]] = {}
    """What was found in every turn or fold: for each quantity one value a turn."""

    @property
    def n_turns(self) -> int:
        """How many turns, or folds, were measured."""
        return max(map(len, self.values.values()), default=0)


class Report(Record, frozen=True):
    """A whole run of one benchmark."""

    benchmark: str
    command: str
    started: Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]
    """In UTC."""
    seconds: Annotated[float, Meta(gt=0)]
    machine: Machine
    results: Annotated[tuple[Result, ...], Meta(min_length=1)]

    @property
    def cases(self) -> dict[str, list[Result]]:
        """The results of each case, in order."""
        found: dict[str, list[Result]] = {}
        for result in self.results:
            found.setdefault(result.case, []).append(result)
        return found


def write(report: Report, path: str | PathLike[str]) -> None:
    """Write a report as JSON, whole or not at all; each result on a line of its own."""
    head = msgspec.json.encode(msgspec.structs.replace(report, results=()))
    assert head.endswith(b"[]}")
    lines = b",\n".join(map(msgspec.json.encode, report.results))
    with whole_file(path) as file:
        file.write(head.removesuffix(b"]}") + b"\n" + lines + b"\n]}\n")


def read(path: str | PathLike[str]) -> Report:
    """Read a report.

    Raises
    ------
    FormatError
        If the file does not hold one; the message says where it goes wrong.
    """
    try:
        report = msgspec.json.decode(Path(path).read_bytes(), type=Report)
    except msgspec.DecodeError as error:  # a ValidationError is one, too
        raise FormatError(f"{path} is not the JSON of a benchmark: {error}") from None
    for result in report.results:
        counts = {len(values) for values in result.values.values()}
        if result.reason is None and (len(counts) != 1 or 0 in counts):
            raise FormatError(
                f"{path} is not the JSON of a benchmark: {result.contender} on {result.data} "
                "has neither a value for every turn nor a reason"
            )
    return report
