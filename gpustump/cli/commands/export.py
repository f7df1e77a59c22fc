"""`gpustump export`: write a model as ONNX, C or SQL."""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

from gpustump import exports
from gpustump.cli.columns.model import load_model
from gpustump.cli.errors import InputError, MissingLibraryError, as_input_error
from gpustump.cli.options import LANGUAGES
from gpustump.cli.write.files import STANDARD_OUTPUT, OutputFile, kind_with_mark


class _Language(NamedTuple):
    """A language, how files of it are known, and the options that it takes."""

    name: str
    ending: str
    mark: bytes
    options: tuple[str, ...]


_LANGUAGES = {
    "onnx": _Language("onnx", ".onnx", b"\x12\x08gpustump", ("dtype",)),
    "c": _Language("c", ".h", b"gpustump export, C,", ("name",)),
    "sql": _Language("sql", ".sql", b"gpustump export, SQL", ("name", "dialect", "table", "proba")),
}
"""By the names of --to."""


def run(arguments: argparse.Namespace) -> None:
    """Export as the options say."""
    output = OutputFile("--output", arguments.output)
    output.check(arguments.model)
    language = _language(arguments.to, output)
    _check_ending(language, output, force=arguments.force)
    options = _options(language, arguments)
    model = load_model(arguments.model)
    try:
        with as_input_error():
            made = getattr(exports, f"to_{language.name}")(model, **options)
    except ImportError as error:
        raise MissingLibraryError("an export to ONNX", "onnx", "onnx") from error
    content = made.encode() if isinstance(made, str) else made.SerializeToString(deterministic=True)
    written = output.write(content)
    if not output.is_stream:
        print(f"written  {written}")


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
    if force or output.is_stream:
        return
    output.check_ending((language.ending,), "; --force takes any name")
    kind = kind_with_mark("gpustump export to this language", language.mark)
    output.check_replaced(kind, force=False)


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
