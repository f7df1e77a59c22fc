"""A checkpoint as a file: the rounds so far, and what decides whether a fit may go on from them.

JSON with a checksum, as model files are. A row is that of a model file of version 4, stump by stump
or split by split, followed by the score and the error of the watched samples after that round. The
text of a round is made once, however often the file is written. So writing a checkpoint again costs
only the hashing and writing of its bytes.

The content of a file is not trusted. Nothing in it is executed; every value is checked; and its
rounds are only used if it was written for the same data and settings.
"""

from __future__ import annotations

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
from gpustump.model.members import Member
from gpustump.model.model_file import canonical
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

    def texts(self, outline: Outline) -> BagTexts:
        """The seed, and the text of each run."""
        return self.seed, [RunText(run, outline) for run in self.runs]


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


BagTexts = tuple[int | None, list[RunText]]
"""The seed of a bag, and the texts of its runs."""


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
    bags: Sequence[BagTexts],
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
    bags : sequence of BagTexts
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
    pieces["bags"] = _bags_text(bags)
    checksum = model_file.sha256(model_file.canonical_object(pieces))
    pieces["bags"] = pieces["bags"].replace(b"],[", b"],\n[")  # a round on a line
    pieces["checksum"] = canonical(checksum)
    lines = [canonical(name) + b": " + piece for name, piece in pieces.items()]
    with whole_file(path) as file:
        file.write(b"{\n" + b",\n".join(lines) + b"\n}\n")


def _bags_text(bags: Sequence[BagTexts]) -> bytes:
    """The canonical bytes of all bags."""
    texts = []
    for seed, runs in bags:
        of_runs = b"[" + b",".join(run.canonical() for run in runs) + b"]"
        texts.append(model_file.canonical_object({"runs": of_runs, "seed": canonical(seed)}))
    return b"[" + b",".join(texts) + b"]"


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
        """The logs of all runs, which must be as `write` writes them.

        Raises
        ------
        CheckpointError
            If the bags are not those of a fit with this outline.
        """
        try:
            if self.fields != outline.fields:
                raise ValueError(f"fields must be {', '.join(outline.fields)}")
            bags = tuple(
                BagLogs(bag["seed"], tuple(_run_of(run, outline) for run in bag["runs"]))
                for bag in self.bags
            )
            if [len(bag.runs) for bag in bags] != [outline.n_runs] * outline.n_bags:
                raise ValueError(f"it must hold {outline.n_bags} bags of {outline.n_runs} runs")
            if canonical(self.bags) != _bags_text([bag.texts(outline) for bag in bags]):
                raise ValueError("its rounds would be written in another way")
        except WRONG as error:
            raise _refused(self.path, reason_of(error)) from error
        return bags

    def seeds(self) -> list[int | None]:
        """The seed of each bag, for a fit that draws none itself; None for one that cannot be
        read."""
        bags = self.bags if isinstance(self.bags, list) else []
        seeds = [bag.get("seed") if isinstance(bag, dict) else None for bag in bags]
        return [own if type(own) is int and 0 <= own < 2**31 else None for own in seeds]

    @property
    def n_rounds(self) -> int:
        """How many rounds it claims to hold; 0 if the bags are no bags."""
        try:
            return sum(len(run["rounds"]) for bag in self.bags for run in bag["runs"])
        except (TypeError, KeyError):
            return 0


def _run_of(run: Any, outline: Outline) -> RunLog:
    """The log of a run that may hold anything; what is checked here would also be written."""
    rows, reason, width = run["rounds"], run["stop_reason"], len(outline.row_fields)
    if not run["constant"]:  # it has not begun
        return RunLog()
    if reason not in STOP_REASONS:
        raise ValueError(f"stop_reason must be one of {STOP_REASONS}; got {shown(reason)}")
    if len(rows) > outline.n_rounds:
        raise ValueError(f"there must be at most {outline.n_rounds} rounds; got {len(rows)}")
    constant = None if outline.objective.has_signs else run["constant"]
    member = member_of_rows([row[:width] for row in rows], constant, outline.row_fields)
    check_member(member)
    if not all(0 <= one.feature < outline.n_features for one in member.hypotheses):
        raise ValueError(f"features must be whole numbers from 0 to {outline.n_features - 1}")
    judged = [_judgement(*row[width:]) for row in rows]
    if any((own is not None) != outline.is_watched for own in judged):
        wanted = "numbers" if outline.is_watched else "null"
        raise ValueError(f"{' and '.join(_JUDGED_FIELDS)} must be {wanted} in every round")
    votes: Sequence[Vote]  # each in the form of a round's record
    if isinstance(member, Member):
        votes = member.votes
    else:
        votes = [tuple(map(tuple, own)) for own in member.region_votes.tolist()]
    rounds = list(map(LoggedRound, member.hypotheses, votes, judged))
    return RunLog(rounds, tuple(member.constant.tolist()), reason)


def _judgement(score: Any, error: Any) -> Judgement | None:
    return None if score is None and error is None else Judgement(float(score), float(error))


def is_there(path: str | PathLike[str]) -> bool:
    """Whether there is a checkpoint to read; an empty file is none."""
    return Path(path).exists() and Path(path).stat().st_size > 0


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
    try:
        return _stored(name, model_file.parsed(Path(path).read_bytes().decode()))
    except (*WRONG, RecursionError) as error:
        raise _refused(name, reason_of(error)) from error


def _stored(name: str, document: Any) -> Stored:
    """The content of a file, after checking format, version and checksum."""
    if document["format"] != FORMAT:
        raise ValueError(f"it does not say '{FORMAT}'")
    version = document["version"]
    if version != VERSION:
        raise ValueError(f"it has format version {shown(version)}, and this gpustump reads 1")
    if model_file.intact_pieces(document) is None:
        raise ValueError("it was changed after it was written: its checksum does not match")
    head = Head(*(document[part] for part in Head._fields))
    if not (isinstance(head.settings, dict) and isinstance(head.data, dict)):
        raise ValueError("settings and data must be objects")
    return Stored(name, head, document["fields"], document["bags"])


def _refused(name: str, reason: str) -> CheckpointError:
    return CheckpointError(
        f"checkpoint: {name} is no checkpoint that gpustump can have written: {reason.rstrip('.')}."
        " Give another name, or remove the file to start anew."
    )
