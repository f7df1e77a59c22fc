"""What a run of a benchmark writes: the machine, every timing and the models' quality, as JSON.

The records below are the schema of the JSON. msgspec writes them, reads them and checks types and
limits; `msgspec.json.schema(Report)` gives the schema to other programs. Times are in seconds,
memory in bytes.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from gpustump.model.whole_file import whole_file

Seconds = Annotated[float, Meta(gt=0)]
Count = Annotated[int, Meta(ge=1)]
Bytes = Annotated[int, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, le=1)]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class FormatError(ValueError):
    """A file that is not the JSON of a benchmark."""


class Record(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An immutable value with checked fields."""


class Machine(Record, frozen=True):
    """The machine and the versions that a result was measured with."""

    processor: str
    cores: Count
    memory: Bytes | None
    system: str
    python: str
    gpustump: str
    commit: str | None
    """Of the checkout, with a plus sign if there were changes on top."""
    source_sha256: Sha256
    versions: dict[str, str]
    gpus: tuple[str, ...]


class Turn(Record, frozen=True):
    """What one contender took in one turn."""

    short: Seconds
    """A whole fit, from the arrays to the model, with the smaller number of rounds."""
    long: Seconds
    """The same with the larger number of rounds."""
    predict: Annotated[float, Meta(ge=0)] | None = None
    """Predicting the classes of the training table with the long fit's model."""


class Run(Record, frozen=True):
    """One contender on one data set."""

    contender: str
    parameters: dict[str, Any]
    """What its estimator was given beside rounds and threads."""
    exact: bool
    """Whether it looks at every threshold."""
    data: str
    data_sha256: Sha256
    """Of the training table and its labels."""
    samples: Count
    features: Count
    distinct: Annotated[int, Meta(ge=2)] | None
    """Distinct values per feature that the data were drawn with; None if all values differ."""
    threads: Count
    rounds: tuple[Count, Count]
    """Of the short and the long fit."""
    reason: str | None = None
    """Why it could not be measured to the end; None if all went well."""
    device: str | None = None
    """Where the model says that it was trained."""
    load: float | None = None
    """Importing the libraries in a fresh process."""
    first_fit: float | None = None
    """The first fit of that process, a short one, including what is compiled then."""
    host_memory: Bytes | None = None
    """Peak of a short fit beyond what was held before."""
    device_memory: Bytes | None = None
    turns: tuple[Turn, ...] = ()
    accuracy: Share | None = None
    """Of the long fit's model on held-out data, as is the AUC."""
    auc: Share | None = None
    """For more than two classes the mean over the classes, each against the rest."""
    r2: Annotated[float, Meta(le=1)] | None = None
    """The same for a quantity, which has no accuracy and no AUC."""
    digest: Sha256 | None = None
    estimator: str = ""
    """Its class; empty in old files, from when gpustump had only one."""


class Section(Record, frozen=True):
    """Runs that took turns with each other: a data set of `peers`, an axis of `growth`, ..."""

    name: str
    runs: Annotated[tuple[Run, ...], Meta(min_length=1)]


class Speed(Record, frozen=True):
    """How fast a device's memory was, measured once in every turn."""

    device: str
    """"cpu" or "cuda:0"."""
    threads: Count
    """That worked at once; 1 on a GPU, which has its own."""
    copied: Count
    """Bytes read and written by one copy."""
    copy: Annotated[tuple[Seconds, ...], Meta(min_length=1)]
    gathered: Count
    """Elements of 8 bytes fetched by one gather, in random order."""
    gather: Annotated[tuple[Seconds, ...], Meta(min_length=1)]


class Report(Record, frozen=True, tag_field="schema", tag=1):
    """A whole run of one benchmark."""

    benchmark: Literal["backends", "peers", "panel", "growth", "limit"]
    command: str
    started: Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]
    """In UTC."""
    seconds: Seconds
    machine: Machine
    sections: Annotated[tuple[Section, ...], Meta(min_length=1)]
    speeds: tuple[Speed, ...] = ()
    """Of `limit` only."""


def write(report: Record, path: str | PathLike[str]) -> None:
    """Write a report as JSON, whole or not at all."""
    with whole_file(path) as file:
        file.write(msgspec.json.format(msgspec.json.encode(report), indent=1) + b"\n")


def read(path: str | PathLike[str]) -> Report:
    """Read a report.

    Raises
    ------
    FormatError
        If the file does not hold one; the message says where it goes wrong.
    """
    report: Report = decoded(path, Report)
    for run in (run for section in report.sections for run in section.runs):
        quality = run.r2 is not None or None not in (run.accuracy, run.auc)
        measured = quality and None not in (run.load, run.first_fit)
        if run.reason is None and not (measured and run.turns):
            raise FormatError(
                f"{path} is not the JSON of a benchmark: {run.contender} on {run.data} "
                "has neither results nor a reason"
            )
    return report


def decoded(path: str | PathLike[str], kind: Any) -> Any:
    """The record in a JSON file: of this type, or of one of a union.

    Raises
    ------
    FormatError
        If the file does not hold one; the message says where it goes wrong.
    """
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=kind)
    except msgspec.DecodeError as error:  # a ValidationError is one, too
        raise FormatError(f"{path} is not the JSON of a benchmark: {error}") from None
