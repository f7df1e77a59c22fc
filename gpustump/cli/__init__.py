"""The command line: `gpustump train | predict | explain | inspect | devices`.

This file turns what happens into an exit code: 0 if all went well; 2 and one line on stderr for
whatever the user can mend; 130 after Ctrl-C; 141 if whoever read the output has gone away. What is
left over is a bug in this package, and its traceback is shown.

Only the parser is imported here; each command fetches what it needs, so that `gpustump --help`
answers at once and broken or missing optional libraries are met by those alone who use them.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
from collections.abc import Sequence

from gpustump.cli.arguments import parse
from gpustump.cli.errors import explained

INTERRUPTED = 130
READER_GONE = 141
WRONG_INPUT = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments after the program's name; those of the process if not given.

    Returns
    -------
    int
        The exit code.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed from the start, `>&-`: nobody wants to read
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):  # a test's own stream may not know how
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
        message = explained(error)
        if message is None:
            raise
        print(f"gpustump: error: {message}", file=sys.stderr)
        if isinstance(error, OSError):
            _abandon_output()
        return WRONG_INPUT


def _abandon_output() -> None:
    """Let what stdout could not take disappear; Python would try again at exit, and complain."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(argv: Sequence[str]) -> int:
    try:
        arguments = parse(argv)
        command = importlib.import_module(f"gpustump.cli.{arguments.command}")
        command.run(arguments)
    except SystemExit as leaving:  # argparse, after --help and --version
        return int(leaving.code or 0)
    finally:
        if sys.exc_info()[0] is not KeyboardInterrupt:
            sys.stdout.flush()  # here, where a full disk or a closed pipe can still be reported
    return 0
