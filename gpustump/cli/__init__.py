"""The command line: `gpustump train | predict | explain | inspect | devices`.

This file turns the outcome of a command into an exit code: 0 for success; 2, with one line on
stderr, for an error that the user can mend; 130 after Ctrl-C; 141 if the reader of the output is
gone. Any other error is a bug in this package, and its traceback is shown.

    arguments   the commands and their options
    commands/   one file for each command
    input/      from data files to what a model takes
    output/     what the commands print and write
    errors, wording   messages in one line; names, values and counts in words

Only the parser is imported here. Each command imports what it needs, so that `gpustump --help` is
quick, and a broken or missing optional library only concerns the commands that use it.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Sequence

from gpustump.cli.arguments import parse
from gpustump.cli.errors import message_of

INTERRUPTED = 130
READER_GONE = 141
WRONG_INPUT = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the program's name; by default those of the process.

    Returns
    -------
    int
        The exit code.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by the shell, `>&-`
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):  # a stream of a test may lack it
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        return _run(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt:
        print("gpustump: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        _abandon_output()
        return READER_GONE
    except Exception as error:
        message = message_of(error)
        if message is None:
            raise
        print(f"gpustump: error: {message}", file=sys.stderr)
        if isinstance(error, OSError):
            _abandon_output()
        return WRONG_INPUT


def _abandon_output() -> None:
    """Discard what stdout could not take; otherwise Python would try again, and fail, at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(argv: Sequence[str]) -> int:
    try:
        arguments = parse(argv)
        command = importlib.import_module(f"gpustump.cli.commands.{arguments.command}")
        command.run(arguments)
    except SystemExit as ending:  # argparse, after --help and --version
        return int(ending.code or 0)
    finally:
        if sys.exc_info()[0] is not KeyboardInterrupt:
            sys.stdout.flush()  # now, as an error can still be reported
    return 0
