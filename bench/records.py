"""What a run of a benchmark leaves: every timing and what they mean, as plain values and as JSON.

The JSON follows `schema.json`, which stands beside this file. Times are in seconds, memory in
bytes.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import json
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from gpustump.model.whole_file import whole_file

SCHEMA = Path(__file__).with_name("schema.json")


class FormatError(ValueError):
    """A file that is not the JSON of a benchmark."""


@dataclass(frozen=True)
class Turn:
    """What one contender took in one turn, in seconds.

    Attributes
    ----------
    short, long : float
        Whole fits, from the arrays to the model, with the run's two numbers of rounds.
    predict : float or None
        Predicting the training table's classes with the long fit's model.
    """

    short: float
    long: float
    predict: float | None = None


@dataclass(frozen=True)
class Run:
    """One contender on one data set.

    Attributes
    ----------
    contender : str
    parameters : dict
        What its estimator was given beside rounds and threads.
    exact : bool
        Whether it looks at every threshold.
    data, data_sha256 : str
        Its name, and the SHA-256 of the training table and its labels.
    samples, features : int
        Shape of the training table.
    distinct : int or None
        Distinct values per feature that the data were drawn with; None if as many as there are.
    threads : int
    rounds : tuple of int
        Of the short and the long fit.
    reason : str or None
        Why it could not be measured, or not to the end; None if all went well.
    device : str or None
        Where it says that it computed, if it says.
    load, first_fit : float or None
        Seconds that a fresh process took to import what the contender needs, and for its first
        fit, a short one: what is compiled then is in it.
    host_memory, device_memory : int or None
        Bytes that the short fit took at its peak beyond what was held before.
    turns : tuple of Turn
    accuracy, auc : float or None
        Of the long fit's model, on held-out data.
    digest : str or None
        Of the long fit's model, if it has one.
    """

    contender: str
    parameters: dict[str, Any]
    exact: bool
    data: str
    data_sha256: str
    samples: int
    features: int
    distinct: int | None
    threads: int
    rounds: tuple[int, int]
    reason: str | None = None
    device: str | None = None
    load: float | None = None
    first_fit: float | None = None
    host_memory: int | None = None
    device_memory: int | None = None
    turns: tuple[Turn, ...] = ()
    accuracy: float | None = None
    auc: float | None = None
    digest: str | None = None


@dataclass(frozen=True)
class Section:
    """Runs that took turns with each other: a data set of `peers`, an axis of `growth`."""

    name: str
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class Speed:
    """How fast a device's memory was, measured once in every turn.

    Attributes
    ----------
    device : str
        "cpu" or "cuda:0".
    threads : int
        That copied and gathered at once; 1 on a GPU, which has its own.
    copied : int
        Bytes read and written by one copy.
    copy : tuple of float
        Seconds of a copy.
    gathered : int
        Elements of 8 bytes that one gather fetched, in random order, from a vector as long as the
        samples.
    gather : tuple of float
        Seconds of a gather.
    """

    device: str
    threads: int
    copied: int
    copy: tuple[float, ...]
    gathered: int
    gather: tuple[float, ...]


@dataclass(frozen=True)
class Report:
    """A whole run of one benchmark.

    Attributes
    ----------
    benchmark : str
    command : str
        That ran it.
    started : str
        UTC, ISO 8601.
    seconds : float
        It took.
    machine : dict
        Processor, memory, GPUs, versions.
    sections : tuple of Section
    speeds : tuple of Speed
    """

    benchmark: str
    command: str
    started: str
    seconds: float
    machine: dict[str, Any]
    sections: tuple[Section, ...]
    speeds: tuple[Speed, ...] = ()


def write(report: Report, path: str | PathLike[str]) -> None:
    """Write a report as JSON, whole or not at all."""
    content = {"schema": 1, **dataclasses.asdict(report)}
    with whole_file(path) as file:
        file.write((json.dumps(content, indent=1, allow_nan=False) + "\n").encode())


def read(path: str | PathLike[str]) -> Report:
    """Read a report.

    Raises
    ------
    FormatError
        If the file is not one; the message says where it goes wrong.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise FormatError(f"{path} is not JSON: {error}") from None
    if found := mistake(content):
        raise FormatError(f"{path} is not the JSON of a benchmark: {found}")
    try:
        return _report(content)
    except (
        KeyError,
        TypeError,
        ValueError,
    ) as error:  # what slips through where jsonschema is not installed
        raise FormatError(f"{path} is not the JSON of a benchmark: {error}") from None


def mistake(content: Any) -> str | None:
    """Where a JSON value departs from the schema, if it does.

    The library jsonschema does the checking. Where it is not installed, only the version is read.
    """
    if importlib.util.find_spec("jsonschema") is None:
        known = isinstance(content, dict) and content.get("schema") == 1
        return None if known else "it has no 'schema': 1"
    import jsonschema

    validator = jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    error = jsonschema.exceptions.best_match(validator.iter_errors(content))
    return None if error is None else f"at {error.json_path}, {error.message[:200]}"


def _report(content: dict[str, Any]) -> Report:
    own = {"schema", "sections", "speeds"}
    return Report(
        **{name: value for name, value in content.items() if name not in own},
        sections=tuple(
            Section(section["name"], tuple(map(_run, section["runs"])))
            for section in content["sections"]
        ),
        speeds=tuple(
            Speed(**{**speed, "copy": tuple(speed["copy"]), "gather": tuple(speed["gather"])})
            for speed in content["speeds"]
        ),
    )


def _run(content: dict[str, Any]) -> Run:
    short, long = content["rounds"]
    turns = tuple(Turn(**turn) for turn in content["turns"])
    return Run(**{**content, "rounds": (short, long), "turns": turns})
