"""A model as a file: JSON that people can read, exact, and refused if anything in it has changed.

`document` decides what a model's document holds; this file writes and reads it. Python writes a
float with the fewest digits that give the same float when read, so thresholds and votes stay the
same bit for bit. The canonical bytes of a document are its JSON with sorted keys and without
spaces. The digest is that of the model's part, the checksum that of everything but itself. So a
file may be indented differently, but not edited.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from gpustump.data.readable import shown
from gpustump.model.whole_file import whole_file

FORMAT = "gpustump model"
VERSION = 1

_ON_ONE_LINE = ("missing_learnt", "pairs", "moved")
"""Parts that would have a line for each number, with little in it to read."""


class ModelFileError(ValueError):
    """The file is not an intact model; the message says what is wrong with it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from gpustump import ModelFileError, StumpEnsemble
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.json")
    ...     _ = path.write_text('{"weights": [1, 2]}')
    ...     try:
    ...         StumpEnsemble.load(path)
    ...     except ModelFileError as error:
    ...         print(str(error).partition("model.json ")[2])
    is not a gpustump model: it does not say 'gpustump model'.
    """


class ModelText(NamedTuple):
    """The part "model" of a document, with its members in JSON.

    Writing numbers takes long, so each is written once for the file, the digest and the checksum.

    Attributes
    ----------
    head : mapping
        Everything but the members.
    members : tuple of str
        Each member's rows, as `rows_text` writes them.
    """

    head: Mapping[str, Any]
    members: tuple[str, ...]

    def canonical(self) -> bytes:
        """The canonical bytes."""
        members = ",".join(member.replace(", ", ",") for member in self.members)
        pieces = {key: canonical(value) for key, value in self.head.items()}
        return canonical_object({**pieces, "members": f"[{members}]".encode()})

    def readable(self) -> str:
        """Indented JSON with one stump on a line."""
        members = _listed([_lines(member) for member in self.members])
        return _object({**_indented_parts(self.head), "members": members})


def rows_text(rows: Sequence[Sequence[int | float | str | None]]) -> str:
    """JSON of a member's rows, which hold no text with a comma or a bracket."""
    return json.dumps(rows, allow_nan=False)


def canonical(document: Any) -> bytes:
    """The canonical bytes of a document: the same for equal documents."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def as_read(value: Any) -> Any:
    """A value as a reader of the file finds it: tuples become lists, all keys text.

    Raises
    ------
    ValueError, TypeError
        If it cannot be written, or two keys of a mapping are the same as text.
    """
    return parsed(json.dumps(value, allow_nan=False))


def refuse_others(name: str, given: Any, written: Any) -> None:
    """Refuse a value of a file that is not as it is written; 1, 1.0 and true are different.

    Raises
    ------
    ValueError
        The message names the first part that differs.
    """
    if isinstance(written, dict):
        wanted = f"an object of {', '.join(sorted(written))}"
        if type(given) is dict and given.keys() == written.keys():
            for key, own in written.items():
                refuse_others(f"{name}.{key}", given[key], own)
            return
    elif isinstance(written, list):
        wanted = f"a list of {len(written)}"
        if type(given) is list and len(given) == len(written):
            for place, own in enumerate(written):
                refuse_others(f"{name}[{place}]", given[place], own)
            return
    else:
        wanted = shown(written)
        if repr(given) == repr(written):
            return
    raise ValueError(f"{name} must be {wanted}; got {shown(given)}.")


def write(parts: Mapping[str, Any], model: ModelText, path: str | PathLike[str]) -> None:
    """Write a document of some parts and a model to a file, whole or not at all.

    The parts are `as_read`.
    """
    model_bytes = model.canonical()
    head = {"format": FORMAT, "version": VERSION, "digest": sha256(model_bytes), **parts}
    pieces = {key: canonical(value) for key, value in head.items()}
    checksum = sha256(canonical_object({**pieces, "model": model_bytes}))
    texts = {"model": model.readable(), "checksum": json.dumps(checksum)}
    document = _indented_parts(head) | texts
    with whole_file(path) as file:
        file.write((_object(document) + "\n").encode())


def read(path: str | PathLike[str]) -> dict[str, Any]:
    """Read a document that `write` wrote; its parts are not checked.

    Raises
    ------
    ModelFileError
        If the file is not a model, was changed, or has another version.
    OSError
        If it cannot be read.
    """
    name = os.fspath(path)
    content = Path(path).read_bytes()
    try:
        document = _document(name, content)
        _check_intact(name, document)
    except RecursionError as error:
        raise ModelFileError(
            f"{name} is not a gpustump model: it is nested too deeply; a model has few levels."
        ) from error
    return document


def _document(name: str, content: bytes) -> dict[str, Any]:
    """The file's JSON, after checking format and version."""
    try:
        document = parsed(content.decode(json.detect_encoding(content)))
    except UnicodeDecodeError as error:
        raise ModelFileError(f"{name} is not a gpustump model: it is not JSON text.") from error
    except json.JSONDecodeError as error:
        if FORMAT.encode() in content[:200]:
            raise ModelFileError(
                f"{name} is damaged or truncated: its JSON ends or breaks at line {error.lineno}, "
                f"column {error.colno} ({error.msg}). Copy or train it again."
            ) from error
        raise ModelFileError(f"{name} is not a gpustump model: it is not JSON.") from error
    except ValueError as error:  # a key twice, or a number with too many digits
        raise ModelFileError(f"{name} is not a gpustump model: {error}.") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"{name} is not a gpustump model: it does not say '{FORMAT}'.")
    version = document.get("version")
    if type(version) is not int or version != VERSION:
        raise ModelFileError(
            f"{name} has format version {shown(version)}; this gpustump reads version {VERSION}. "
            "Use the gpustump that wrote it, or a newer one."
        )
    return document


def parsed(text: str) -> Any:
    """The value of a JSON text.

    Raises
    ------
    ValueError
        If the text is no JSON, or an object has a key twice.
    """
    return json.loads(text, object_pairs_hook=_unique)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, refused if it has a key twice: readers differ in which value they take."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {shown(key)} stands twice in one object")
        found[key] = value
    return found


def _check_intact(name: str, document: dict[str, Any]) -> None:
    """Refuse a document that is not what its checksum and its digest say."""
    pieces = intact_pieces(document)
    if pieces is None:
        raise ModelFileError(
            f"{name} was changed after it was written: its checksum does not match its content. "
            "Restore the original, or train again."
        )
    if document.get("digest") != sha256(pieces.get("model", b"")):
        raise ModelFileError(f"{name}: the model's digest does not match its stumps.")


def intact_pieces(document: Mapping[str, Any]) -> dict[str, bytes] | None:
    """The canonical bytes of a document's parts; None if it does not have its checksum."""
    try:
        pieces = {key: canonical(value) for key, value in document.items() if key != "checksum"}
    except ValueError:  # NaN and infinity, which Python's reader accepts
        return None
    has_checksum = document.get("checksum") == sha256(canonical_object(pieces))
    return pieces if has_checksum else None


def sha256(content: bytes) -> str:
    """SHA-256, hexadecimal."""
    return hashlib.sha256(content).hexdigest()


def canonical_object(pieces: Mapping[str, bytes]) -> bytes:
    """The canonical bytes of an object, from those of its values."""
    return b"{" + b",".join(canonical(key) + b":" + pieces[key] for key in sorted(pieces)) + b"}"


def _indented_parts(parts: Mapping[str, Any]) -> dict[str, str]:
    """The JSON text of each part of an object."""
    return {
        key: json.dumps(value, indent=None if key in _ON_ONE_LINE else 2)
        for key, value in parts.items()
    }


def _lines(rows: str) -> str:
    """A member's rows, each on a line."""
    return _listed([rows[1:-1].replace("], [", "],\n[")]) if len(rows) > 2 else rows


def _object(parts: Mapping[str, str]) -> str:
    """An indented JSON object of values that are JSON text already."""
    lines = [f"{json.dumps(key)}: {text}" for key, text in parts.items()]
    return "{\n" + _indented(lines) + "\n}"


def _listed(parts: list[str]) -> str:
    """An indented JSON array of values that are JSON text already."""
    return "[\n" + _indented(parts) + "\n]" if parts else "[]"


def _indented(parts: list[str]) -> str:
    # In JSON text a line break is never part of a string.
    return ",\n".join("  " + part.replace("\n", "\n  ") for part in parts)
