"""A checkpoint as a file: the rounds so far, and what decides whether a fit may go on from them.

JSON with a checksum, as model files are. A row is that of a model file of version 4, stump by stump
or split by split, followed by the score and the error of the watched samples after that round. The
text of a round is made once, however often the file is written. So writing a checkpoint again costs
only the hashing and writing of its bytes.

The content of a file is not trusted. Nothing in it is executed; every value is checked; and its
rounds are only used if it was written for the same data and settings.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from gpustump.boosting.held_out.judging import Judgement
from gpustump.boosting.rounds.batches import Terms, member_of
from gpustump.boosting.rounds.logs import LoggedRound, RunLog
from gpustump.boosting.votes.votes import Vote
from gpustump.data.readable import shown
from gpustump.engines.objective import Objective
from gpustump.model import model_file
from gpustump.model.members import AnyMember, Member
from gpustump.model.model_file import canonical, refuse_others
from gpustump.model.rows import (
    WRONG,
    Row,
    as_text,
    check_member,
    fields_of,
    member_of_rows,
    reason_of,
    rows_of,
)
from gpustump.model.whole_file import whole_file

FORMAT = "gpustump checkpoint"
VERSION = 1

STOP_REASONS = (
    "", "no edge", "perfect", "limit", "callback", "small vote", "large votes", "early",
)  # fmt: skip
"""Why a run is over; empty if it is not."""

_JUDGED_FIELDS = ["held-out score", "held-out error"]


class CheckpointError(ValueError):
    """The file is no checkpoint that this fit may go on from; the message says why."""


class Head(NamedTuple):
    """What a checkpoint holds besides the rounds.

    Attributes
    ----------
    gpustump : str
        The version that wrote it.
    contract : int
        See `engines.contract.CONTRACT`.
    settings : mapping
        What decides the model besides the data, in JSON's types.
    data : mapping
        The fingerprints of the rows that are trained on and, if any are passed, of those that are
        watched.
    """

    gpustump: str
    contract: int
    settings: Mapping[str, Any]
    data: Mapping[str, Any]


class Outline(NamedTuple):
    """The form of the rounds in a fit's checkpoint.

    Attributes
    ----------
    objective : Objective
    n_features : int
    n_bags, n_runs : int
        How many bags there are, and how many runs in each.
    n_rounds : int
        The largest number of rounds of a run.
    is_watched : bool
        Whether samples are watched.
    """

    objective: Objective
    n_features: int
    n_bags: int
    n_runs: int
    n_rounds: int
    is_watched: bool

    @property
    def row_fields(self) -> list[str]:
        """The columns of a row of a model file."""
        has_signs = self.objective.has_signs
        outputs = None if has_signs else self.objective.n_outputs
        return fields_of(outputs, low=has_signs, sets=True)

    @property
    def fields(self) -> list[str]:
        """The columns of a row of a checkpoint."""
        return [*self.row_fields, *_JUDGED_FIELDS]


class BagLogs(NamedTuple):
    """The logs of a bag's runs, and the seed that drew the samples that it holds out, if any."""

    seed: int | None
    runs: tuple[RunLog, ...]

    @property
    def n_rounds(self) -> int:
        """How many rounds there are."""
        return sum(len(run.rounds) for run in self.runs)


class RunText:
    """The JSON text of a run's log, which grows with the log.

    Parameters
    ----------
    log : RunLog
    outline : Outline
    """

    def __init__(self, log: RunLog, outline: Outline) -> None:
        self._log, self._outline = log, outline
        self._known = (0, b"")  # how many rounds have their text, and their rows

    def canonical(self) -> bytes:
        """The canonical bytes of the run so far."""
        rounds, stop_reason = self._log.so_far()
        n_known, rows = self._known
        if new := rounds[n_known:]:
            text = canonical(_rows_of(new, self._log.constant, self._outline))[1:-1]
            rows = rows + b"," + text if rows else text
            self._known = (len(rounds), rows)  # in one step: an interruption leaves both or neither
        pieces = {
            "constant": canonical(self._log.constant),
            "rounds": b"[" + rows + b"]",
            "stop_reason": canonical(stop_reason),
        }
        return model_file.canonical_object(pieces)


def _rows_of(
    rounds: Sequence[LoggedRound], constant: Sequence[float], outline: Outline
) -> list[Row]:
    """The rows of some rounds."""
    terms = Terms([one.hypothesis for one in rounds], [one.vote for one in rounds])
    rows = rows_of(member_of(terms, constant, outline.objective), outline.row_fields)
    for row, one in zip(rows, rounds, strict=True):
        row += [None, None] if one.judged is None else [as_text(float(own)) for own in one.judged]
    return rows


def write(
    path: str | PathLike[str],
    head: Head,
    fields: Sequence[str],
    bags: Sequence[tuple[int | None, Sequence[RunText]]],
    *,
    is_finished: bool,
) -> None:
    """Write a checkpoint, whole or not at all.

    Parameters
    ----------
    path : str or path-like
    head : Head
    fields : sequence of str
        The columns of the rows.
    bags : sequence of (int or None, sequence of RunText)
        The seed and the runs of each bag.
    is_finished : bool
        Whether all runs are over; only for people who read the file.

    Raises
    ------
    OSError
        If it cannot be written; an earlier file stays as it was.
    """
    about = {"format": FORMAT, "version": VERSION, **head._asdict()}
    about |= {"is_finished": is_finished, "fields": list(fields)}
    pieces = {name: canonical(value) for name, value in about.items()}
    texts = []
    for seed, runs in bags:
        of_runs = b"[" + b",".join(run.canonical() for run in runs) + b"]"
        texts.append(model_file.canonical_object({"runs": of_runs, "seed": canonical(seed)}))
    pieces["bags"] = b"[" + b",".join(texts) + b"]"
    checksum = model_file.sha256(model_file.canonical_object(pieces))
    pieces["bags"] = pieces["bags"].replace(b"],[", b"],\n[")  # a round on a line
    pieces["checksum"] = canonical(checksum)
    lines = [canonical(name) + b": " + piece for name, piece in pieces.items()]
    with whole_file(path) as file:
        file.write(b"{\n" + b",\n".join(lines) + b"\n}\n")


class Stored(NamedTuple):
    """The content of a checkpoint; the bags are only checked by `bags_of`.

    Attributes
    ----------
    path : str
    head : Head
    fields, bags : object
        As in the file.
    """

    path: str
    head: Head
    fields: Any
    bags: Any

    def bags_of(self, outline: Outline) -> tuple[BagLogs, ...]:
        """The logs of all runs, after checking every value.

        Raises
        ------
        CheckpointError
            If the bags are not those of a fit with this outline.
        """
        try:
            if self.fields != outline.fields:
                wanted = ", ".join(outline.fields)
                raise ValueError(f"fields must be {wanted}; got {shown(self.fields)}")
            bags = _list_of(self.bags, outline.n_bags, "bags")
            return tuple(_bag_of(bag, number, outline) for number, bag in enumerate(bags))
        except ValueError as error:
            raise _refused(self.path, str(error)) from error

    def seeds(self) -> list[int | None]:
        """The seed of each bag, for a fit that draws none itself; None for one that cannot be
        read."""
        bags = self.bags if isinstance(self.bags, list) else []
        seeds = [bag.get("seed") if isinstance(bag, dict) else None for bag in bags]
        return [seed if _is_seed(seed) else None for seed in seeds]

    @property
    def n_rounds(self) -> int:
        """How many rounds it claims to hold; 0 if the bags are no bags."""
        try:
            return sum(len(run["rounds"]) for bag in self.bags for run in bag["runs"])
        except (TypeError, KeyError):
            return 0


def is_there(path: str | PathLike[str]) -> bool:
    """Whether there is a checkpoint to read; an empty file is none."""
    return Path(path).exists() and (not Path(path).is_file() or Path(path).stat().st_size > 0)


def read(path: str | PathLike[str]) -> Stored:
    """Read a checkpoint that `write` wrote.

    Raises
    ------
    CheckpointError
        If the file is no checkpoint, was changed or has a newer version.
    OSError
        If it cannot be read.
    """
    name = os.fspath(path)
    if Path(path).exists() and not (Path(path).is_file() or Path(path).is_dir()):
        raise CheckpointError(  # reading it may never end
            f"checkpoint: {name} is a pipe or a device, which cannot be read again. Give the name "
            "of a file."
        )
    content = Path(path).read_bytes()
    try:
        return _stored(name, _intact(content))
    except RecursionError as error:
        raise _refused(name, "it is nested too deeply") from error
    except ValueError as error:
        raise _refused(name, str(error)) from error


def _refused(name: str, reason: str) -> CheckpointError:
    return CheckpointError(
        f"checkpoint: {name} is no checkpoint that gpustump can have written: {reason.rstrip('.')}."
        " Give another name, or remove the file to start anew."
    )


def _intact(content: bytes) -> dict[str, Any]:
    """The file's JSON, after checking format, version and checksum."""
    try:
        document = model_file.parsed(content.decode())
    except UnicodeDecodeError as error:
        raise ValueError("it is not JSON text") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"its JSON ends or breaks at line {error.lineno}") from error
    if type(document) is not dict or document.get("format") != FORMAT:
        raise ValueError(f"it does not say '{FORMAT}'")
    version = document.get("version")
    if type(version) is not int or version != VERSION:
        raise ValueError(f"it has format version {shown(version)}, and this gpustump reads 1")
    if model_file.intact_pieces(document) is None:
        raise ValueError("it was changed after it was written: its checksum does not match")
    del document["checksum"]
    return document


def _stored(name: str, document: Mapping[str, Any]) -> Stored:
    wanted = {"format", "version", "is_finished", "fields", "bags", *Head._fields}
    if set(document) != wanted:
        raise ValueError(f"it must hold {', '.join(sorted(wanted))}; got {shown(list(document))}")
    types = {"gpustump": str, "contract": int, "settings": dict, "data": dict, "is_finished": bool}
    for part, kind in types.items():
        if type(document[part]) is not kind:
            raise ValueError(f"{part} must be of type {kind.__name__}; got {shown(document[part])}")
    head = Head(*(document[part] for part in Head._fields))
    return Stored(name, head, document["fields"], document["bags"])


def _bag_of(bag: Any, number: int, outline: Outline) -> BagLogs:
    where = f"bags[{number}]"
    _check_object(bag, {"runs", "seed"}, where)
    if bag["seed"] is not None and not _is_seed(bag["seed"]):
        raise ValueError(
            f"{where}: seed must be null or a whole number from 0 to 2**31 - 1; got "
            f"{shown(bag['seed'])}"
        )
    runs = _list_of(bag["runs"], outline.n_runs, f"{where}: runs")
    found = []
    for place, run in enumerate(runs):
        try:
            found.append(_run_of(run, outline))
        except WRONG as error:
            raise ValueError(f"{where}, run {place}: {reason_of(error)}") from error
    return BagLogs(bag["seed"], tuple(found))


def _run_of(run: Any, outline: Outline) -> RunLog:
    _check_object(run, {"constant", "rounds", "stop_reason"}, "it")
    reason, constant = run["stop_reason"], run["constant"]
    if type(reason) is not str or reason not in STOP_REASONS:
        raise ValueError(f"stop_reason must be one of {STOP_REASONS}; got {shown(reason)}")
    if constant == [] and run["rounds"] == [] and not reason:
        return RunLog()
    rows, width = run["rounds"], len(outline.row_fields)
    if len(rows) > outline.n_rounds:
        raise ValueError(f"there must be at most {outline.n_rounds} rounds; got {len(rows)}")
    member = _member_of([row[:width] for row in rows], constant, outline)
    judged = [_judgement(*row[width:]) for row in rows]
    if any((own is not None) != outline.is_watched for own in judged):
        wanted = "numbers" if outline.is_watched else "null"
        raise ValueError(f"{' and '.join(_JUDGED_FIELDS)} must be {wanted} in every round")
    rounds = tuple(map(LoggedRound, member.hypotheses, _votes_of(member), judged))
    if rounds:
        refuse_others("rounds", rows, _rows_of(rounds, constant, outline))
    return RunLog(rounds, tuple(constant), reason)


def _member_of(rows: list[Row], constant: Any, outline: Outline) -> AnyMember:
    has_signs, n_features = outline.objective.has_signs, outline.n_features
    member = member_of_rows(rows, None if has_signs else constant, outline.row_fields)
    refuse_others("constant", constant, member.constant.tolist())
    check_member(member)
    if not all(0 <= one.feature < n_features for one in member.hypotheses):
        raise ValueError(f"features must be whole numbers from 0 to {n_features - 1}")
    return member


def _judgement(score: Any, error: Any) -> Judgement | None:
    return None if score is None and error is None else Judgement(float(score), float(error))


def _votes_of(member: AnyMember) -> Sequence[Vote]:
    """The votes of each round, in the form of its record."""
    if isinstance(member, Member):
        return member.votes
    return [tuple(map(tuple, own)) for own in member.region_votes.tolist()]


def _list_of(value: Any, length: int, name: str) -> list[Any]:
    if type(value) is not list or len(value) != length:
        raise ValueError(f"{name} must be a list of {length}; got {shown(value)}")
    return value


def _check_object(value: Any, keys: set[str], name: str) -> None:
    if type(value) is not dict or set(value) != keys:
        raise ValueError(f"{name} must be an object of {', '.join(sorted(keys))}")


def _is_seed(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**31
