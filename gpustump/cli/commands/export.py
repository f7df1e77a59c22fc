"""`gpustump export`: write a model as ONNX, C or SQL."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from gpustump import exports
from gpustump.cli.columns.model import load_model
from gpustump.cli.errors import InputError, MissingLibraryError, as_input_error, system_errors_at
from gpustump.cli.options import LANGUAGES
from gpustump.cli.write.paths import (
    STANDARD_OUTPUT,
    OutputFile,
    check_ending,
    check_output,
    check_replaced_file,
    is_stream,
    kind_with_mark,
)
from gpustump.data.readable import readable_bytes
from gpustump.model.whole_file import whole_file


class _Language(NamedTuple):
    """A language, how files of it are known, and the options that it takes."""

    name: str
    ending: str
    mark: bytes
    options: tuple[str, ...]


def run(arguments: argparse.Namespace) -> None:
    """Export as the options say."""
    output = OutputFile("--output", arguments.output)
    check_output(output, inputs=(arguments.model,))
    language = _language(arguments.to, output)
    _check_ending(language, output, force=arguments.force)
    options = _options(language, arguments)
    model, _ = load_model(arguments.model)
    with as_input_error(), _onnx_needed():
        made = getattr(exports, f"to_{language.name}")(model, **options)
    content = made.encode() if isinstance(made, str) else made.SerializeToString(deterministic=True)
    _write(content, output)


def _language(to: str | None, output: OutputFile) -> _Language:
    """The language that --to names, or else the one of the file's ending."""
    if to is not None:
        return _LANGUAGES[to]
    for language in _LANGUAGES.values():
        if output.path.lower().endswith(language.ending):
            return language
    endings = ", ".join(own.ending for own in _LANGUAGES.values())
    raise InputError(
        f"--to is needed: {', '.join(LANGUAGES)}; or let the name of --output end in one of "
        f"{endings}."
    )


def _check_ending(language: _Language, output: OutputFile, *, force: bool) -> None:
    """Refuse a name with another ending, and replacing a file that is not such an export."""
    if language.ending == ".onnx" and output.path == STANDARD_OUTPUT:
        raise InputError("--output: ONNX is not text; give the name of a file that ends in .onnx.")
    if force or is_stream(output.path):
        return
    check_ending(output, (language.ending,), "; --force takes any name")
    kind = kind_with_mark("gpustump export to this language", language.mark)
    check_replaced_file(output, kind, force=False)


def _options(language: _Language, arguments: argparse.Namespace) -> dict[str, Any]:
    """The options that were given; one that the language does not take is refused."""
    found: dict[str, Any] = {}
    for name in ("name", "dtype", "dialect", "table", "proba"):
        value = getattr(arguments, name)
        if value is None:
            continue
        if name not in language.options:
            takers = [to for to, own in _LANGUAGES.items() if name in own.options]
            raise InputError(f"--{name} is for --to {' and '.join(takers)}.")
        found["probabilities" if name == "proba" else name] = value
    return found


@contextlib.contextmanager
def _onnx_needed() -> Iterator[None]:
    """Within it, a missing onnx is an error that the user can mend."""
    try:
        yield
    except ImportError as error:
        raise MissingLibraryError("an export to ONNX", "onnx", "onnx") from error


def _write(content: bytes, output: OutputFile) -> None:
    if output.path == STANDARD_OUTPUT:
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
        return
    with system_errors_at(f"--output {output.path}"), whole_file(output.path) as file:
        file.write(content)
    if not is_stream(output.path):
        print(f"written  {output.path}, {readable_bytes(len(content))}")


_LANGUAGES = {
    "onnx": _Language("onnx", ".onnx", b"\x12\x08gpustump", ("dtype",)),
    "c": _Language("c", ".h", b"gpustump export, C,", ("name",)),
    "sql": _Language("sql", ".sql", b"gpustump export, SQL", ("name", "dialect", "table", "proba")),
}
"""By the names of --to."""
