"""A model as a file: plain JSON, readable, exact, and refused if anything in it has changed.

Python writes a float with the fewest digits that read back as the same float, so thresholds and
votes survive bit for bit. Infinite thresholds, which JSON does not know, are written as text. The
canonical bytes of a document are its JSON with sorted keys and no spaces; the digest is taken of
the model's part of it, the checksum of everything but itself. So a file may be re-indented, but
not edited.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from os import PathLike
from pathlib import Path
from typing import Any

from gpustump.ensemble import Member, StumpEnsemble
from gpustump.files import whole_file
from gpustump.stump import Stump

FORMAT = "gpustump model"
VERSION = 1
STUMP_FIELDS = ["feature", "threshold", "polarity", "missing", "error", "vote"]


class ModelFileError(ValueError):
    """A file that is not an intact model; the message says what is wrong with it."""


def model_part(model: StumpEnsemble) -> dict[str, Any]:
    """What the digest covers, as JSON knows it."""
    return {
        "n_features": model.n_features,
        "classes": list(model.classes),
        "stump_fields": STUMP_FIELDS,
        "members": [
            [
                [s.feature, _number(s.threshold), s.polarity, s.missing, s.error, vote]
                for s, vote in zip(member.stumps, member.votes, strict=True)
            ]
            for member in model.members
        ],
    }


def canonical(document: Any) -> bytes:
    """A document's one and only byte form."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def write(model: StumpEnsemble, path: str | PathLike[str]) -> None:
    """Write a model to a file, whole or not at all."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "digest": model.digest(),
        "feature_names": None if model.feature_names is None else list(model.feature_names),
        "details": dict(model.details),
        "model": model_part(model),
    }
    document = json.loads(
        json.dumps(document, allow_nan=False)
    )  # as a reader will see it: keys are text
    document["checksum"] = _checksum(document)
    with whole_file(path) as file:
        file.write(_readable(document).encode())


def read(path: str | PathLike[str]) -> StumpEnsemble:
    """Read a model from a file; see `StumpEnsemble.load`."""
    name = os.fspath(path)
    document = _document(name, Path(path).read_bytes())
    try:
        part = document["model"]
        members = tuple(_member(rows) for rows in part["members"])
        names = document["feature_names"]
        model = StumpEnsemble(
            members=members,
            n_features=part["n_features"],
            classes=tuple(part["classes"]),
            feature_names=None if names is None else tuple(names),
            details=document["details"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFileError(f"{name}: the model in it cannot be read: {error!r}.") from error
    if model.digest() != document["digest"]:
        raise ModelFileError(f"{name}: the model's digest does not match its stumps.")
    return model


def _document(name: str, content: bytes) -> dict[str, Any]:
    """The file's JSON, once it has proved to be a model of ours, of this version, and intact."""
    try:
        document = json.loads(content)
    except UnicodeDecodeError as error:
        raise ModelFileError(f"{name} is not a gpustump model: it is not JSON text.") from error
    except json.JSONDecodeError as error:
        if FORMAT.encode() in content[:200]:
            raise ModelFileError(
                f"{name} is damaged or truncated: its JSON ends or breaks at line {error.lineno}, "
                f"column {error.colno} ({error.msg}). Copy or train it again."
            ) from error
        raise ModelFileError(f"{name} is not a gpustump model: it is not JSON.") from error
    except (RecursionError, ValueError) as error:  # absurdly deep, or an endless number
        raise ModelFileError(f"{name} is not a gpustump model: {error}.") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"{name} is not a gpustump model: it does not say '{FORMAT}'.")
    if document.get("version") != VERSION:
        raise ModelFileError(
            f"{name} has format version {document.get('version')!r}; this gpustump reads version "
            f"{VERSION}. Use the gpustump that wrote it, or a newer one."
        )
    claimed = document.pop("checksum", None)
    try:
        intact = claimed == _checksum(document)
    except ValueError:  # NaN and infinity, which Python's reader admits
        intact = False
    if not intact:
        raise ModelFileError(
            f"{name} was changed after it was written: its checksum does not match its content. "
            "Restore the original, or train again."
        )
    return document


def _checksum(document: dict[str, Any]) -> str:
    return hashlib.sha256(canonical(document)).hexdigest()


def _readable(document: dict[str, Any]) -> str:
    """The document as indented JSON with one stump a line."""
    members = [
        _listed([json.dumps(row) for row in member]) for member in document["model"]["members"]
    ]
    model = {**document["model"], "members": None}
    parts = {key: json.dumps(value, indent=2, allow_nan=False) for key, value in document.items()}
    inner = {key: json.dumps(value, indent=2) for key, value in model.items()}
    parts["model"] = _object({**inner, "members": _listed(members)})
    return _object(parts) + "\n"


def _object(parts: dict[str, str]) -> str:
    """An indented JSON object of values that are JSON text already."""
    lines = [f"{json.dumps(key)}: {text}" for key, text in parts.items()]
    return "{\n" + _indented(lines) + "\n}"


def _listed(parts: list[str]) -> str:
    """An indented JSON array of values that are JSON text already."""
    return "[\n" + _indented(parts) + "\n]" if parts else "[]"


def _indented(parts: list[str]) -> str:
    # In JSON text a line break is never part of a string.
    return ",\n".join("  " + part.replace("\n", "\n  ") for part in parts)


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def _member(rows: list[list[Any]]) -> Member:
    stumps, votes = [], []
    for feature, threshold, polarity, missing, error, vote in rows:
        stumps.append(Stump(feature, float(threshold), polarity, missing, error))
        votes.append(vote)
    return Member(tuple(stumps), tuple(votes))
