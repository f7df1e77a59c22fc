"""The model that `gpustump train` writes: to a file, perhaps over an older model, or to a pipe."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import BinaryIO

from gpustump.cli.errors import system_errors_at
from gpustump.cli.write.paths import (
    STANDARD_OUTPUT,
    FileKind,
    OutputFile,
    check_ending,
    check_replaced_file,
    is_stream,
)
from gpustump.data.readable import readable_bytes
from gpustump.model.ensemble import StumpEnsemble
from gpustump.model.model_file import FORMAT

_MARK = re.compile(rb'\A\s*\{[^{]*?"format"\s*:\s*"%b"' % FORMAT.encode())
_HEAD_BYTES = 600


def _is_model(file: BinaryIO) -> bool:
    return _MARK.match(file.read(_HEAD_BYTES)) is not None


MODEL = FileKind("gpustump model", _is_model)


def check_model_output(output: OutputFile, *, force: bool) -> None:
    """Refuse a name that does not end in .json, and replacing a file that is not a model.

    Raises
    ------
    InputError
    """
    if force or is_stream(output.path):
        return
    check_ending(output, (".json",), ", as the model is JSON text; --force takes any name")
    check_replaced_file(output, MODEL, force=False)


def write_model(model: StumpEnsemble, path: str) -> str:
    """Write a model; - is standard output. Returns where it is and its size, in words."""
    if path != STANDARD_OUTPUT:
        with system_errors_at(f"--output {path}"):
            model.save(path)
        existing = path if os.path.exists(path) else os.path.realpath(path)  # absent/../model.json
        return f"{path}, {readable_bytes(os.path.getsize(existing))}"
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "model.json")
        model.save(copy)
        content = copy.read_bytes()
    sys.stdout.buffer.write(content)
    sys.stdout.flush()
    return f"standard output, {readable_bytes(len(content))}"
