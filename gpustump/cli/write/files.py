"""The files that commands write: checked before the work begins, so that it is not lost at the end.

One rule holds for all of them: a file is replaced only if it is empty, or if the command recognises
it as its own kind. Any other file is refused, unless --force is given.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from gpustump.cli.errors import InputError, system_errors_at
from gpustump.data.readable import either, quoted, readable_bytes
from gpustump.model.ensemble import StumpEnsemble
from gpustump.model.model_file import FORMAT
from gpustump.model.whole_file import whole_file

STANDARD_INPUT = STANDARD_OUTPUT = "-"

_HEAD_BYTES = 600


class FileKind(NamedTuple):
    """A kind of file that a command writes, and how to recognise it.

    Attributes
    ----------
    name : str
        In words, after "a".
    includes : callable
        Says whether an open file is of this kind.
    """

    name: str
    includes: Callable[[BinaryIO], bool]


def kind_with_mark(name: str, mark: bytes) -> FileKind:
    """Files that have a mark near their beginning."""
    return FileKind(name, lambda file: mark in file.read(_HEAD_BYTES))


class OutputFile(NamedTuple):
    """A file that the user wants written: the option that names it, and its path.

    Each check raises an InputError that names both.
    """

    option: str
    path: str

    @property
    def is_stream(self) -> bool:
        """Whether it is standard output, a pipe or a device, which are not replaced."""
        path = self.path
        return path == STANDARD_OUTPUT or (os.path.exists(path) and not os.path.isfile(path))

    def check(self, *inputs: str | None) -> None:
        """Refuse a file that cannot be written, or that would replace an input."""
        option, path = self
        if not path:
            raise InputError(f"{option} needs the name of a file.")
        if path == STANDARD_OUTPUT:
            if sys.__stdout__ is None:  # closed by the shell, `>&-`
                raise InputError(f"{option}: standard output is closed.")
            return
        if os.path.isdir(path):
            raise InputError(f"{option}: {path} is a folder; give the name of a file in it.")
        folder = os.path.dirname(os.path.realpath(path))
        for place in (folder, os.path.dirname(path) or "."):  # the path may be absent/../out.csv
            if not os.path.isdir(place):
                raise InputError(f"{option}: the folder {place} does not exist; make it first.")
        for source in inputs:
            if source is None or source == STANDARD_INPUT:
                continue
            if os.path.exists(path) and os.path.exists(source) and os.path.samefile(path, source):
                raise InputError(f"{option}: {path} would replace the file that is read.")
        if self.is_stream:
            return
        with system_errors_at(f"{option} {path}"), contextlib.suppress(FileNotFoundError):
            os.stat(path)  # fails for a name that is too long, for example
        try:
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError as error:
            raise InputError(
                f"{option}: no file can be made in {folder}: {error.strerror}."
            ) from error

    def check_ending(self, endings: tuple[str, ...], hint: str = "") -> None:
        """Refuse a name with none of these endings, which tell the format; `hint` is advice."""
        if not self.path.lower().endswith(endings):
            name, wanted = quoted(self.path), either(endings)
            raise InputError(f"{self.option}: {name} must end in {wanted}{hint}.")

    def check_replaced(self, kind: FileKind, *, force: bool) -> None:
        """Refuse to replace a file of another kind, unless --force is given."""
        option, path = self
        if force or self.is_stream or not os.path.exists(path) or os.path.getsize(path) == 0:
            return
        with open(path, "rb") as file:
            if kind.includes(file):
                return
        raise InputError(
            f"{option}: {path} exists and is not a {kind.name}; give another name, or --force."
        )

    @contextlib.contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """The file to write to; it is whole in the end, or as it was before."""
        with system_errors_at(f"{self.option} {self.path}"), whole_file(self.path) as file:
            yield file

    def write(self, content: bytes) -> str:
        """Write the whole file; returns where it is and its size, in words."""
        if self.path == STANDARD_OUTPUT:
            sys.stdout.buffer.write(content)
            sys.stdout.flush()
            return f"standard output, {readable_bytes(len(content))}"
        with self.opened() as file:
            file.write(content)
        return f"{self.path}, {readable_bytes(len(content))}"


_MODEL = re.compile(rb'\A\s*\{[^{]*?"format"\s*:\s*"%b"' % FORMAT.encode())
MODEL = FileKind("gpustump model", lambda file: _MODEL.match(file.read(_HEAD_BYTES)) is not None)


def check_model_output(output: OutputFile, *, force: bool) -> None:
    """Refuse a name that does not end in .json, and replacing a file that is not a model."""
    if not force and not output.is_stream:
        output.check_ending((".json",), ", as the model is JSON text; --force takes any name")
        output.check_replaced(MODEL, force=False)


def write_model(model: StumpEnsemble, output: OutputFile) -> str:
    """Write a model; returns where it is and its size, in words."""
    if output.path == STANDARD_OUTPUT:
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder, "model.json")
            model.save(copy)
            return output.write(copy.read_bytes())
    with system_errors_at(f"{output.option} {output.path}"):
        model.save(output.path)
    return f"{output.path}, {readable_bytes(os.path.getsize(output.path))}"
