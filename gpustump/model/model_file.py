"""A model as a file: JSON that people can read, exact, and refused if anything in it has changed.

`ensemble` decides what a model's document holds; this file writes and reads it. Python writes a
float with the fewest digits that give the same float when read, so thresholds and votes stay the
same bit for bit. The canonical bytes of a document are its JSON with sorted keys and without
spaces. The digest is that of the model's part, the checksum that of everything but itself. So a
file may be indented differently, but not edited.
"""

from __future__ import annotations

import hashlib
import json
import os
from os import PathLike
from pathlib import Path
from typing import Any

from gpustump.model.whole_file import whole_file

FORMAT = "gpustump model"
VERSION = 2
"""The newest version that can be read: 1 has stumps only, 2 intervals as well."""


class ModelFileError(ValueError):
    """The file is not an intact model; the message says what is wrong with it."""


def canonical(document: Any) -> bytes:
    """The canonical bytes of a document: the same for equal documents."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def digest_of(model: Any) -> str:
    """SHA-256 of the canonical bytes of a document's part "model", hexadecimal."""
    return hashlib.sha256(canonical(model)).hexdigest()


def write(parts: dict[str, Any], path: str | PathLike[str], version: int) -> None:
    """Write a document with a part "model" to a file, whole or not at all."""
    document = {"format": FORMAT, "version": version, "digest": digest_of(parts["model"]), **parts}
    document = json.loads(
        json.dumps(document, allow_nan=False)
    )  # tuples become lists, as for a reader
    document["checksum"] = _checksum(document)
    with whole_file(path) as file:
        file.write(_readable(document).encode())


def read(path: str | PathLike[str]) -> dict[str, Any]:
    """Read a document that `write` wrote.

    Raises
    ------
    ModelFileError
        If the file is not a model, was changed, or has a newer version.
    OSError
        If it cannot be read.
    """
    name = os.fspath(path)
    document = _document(name, Path(path).read_bytes())
    if document.get("digest") != digest_of(document.get("model")):
        raise ModelFileError(f"{name}: the model's digest does not match its stumps.")
    return document


def _document(name: str, content: bytes) -> dict[str, Any]:
    """The file's JSON, after checking format, version and checksum."""
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
    except (
        RecursionError,
        ValueError,
    ) as error:  # too deeply nested, or a number with too many digits
        raise ModelFileError(f"{name} is not a gpustump model: {error}.") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"{name} is not a gpustump model: it does not say '{FORMAT}'.")
    if document.get("version") not in range(1, VERSION + 1):
        raise ModelFileError(
            f"{name} has format version {document.get('version')!r}; this gpustump reads versions "
            f"up to {VERSION}. Use the gpustump that wrote it, or a newer one."
        )
    claimed = document.pop("checksum", None)
    try:
        intact = claimed == _checksum(document)
    except ValueError:  # NaN and infinity, which Python's reader accepts
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
    """The document as indented JSON with one stump on a line."""
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
