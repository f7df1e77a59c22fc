"""The command line: `gpustump train | predict | explain | inspect | audit | export | devices |
kernels`.

This file turns the outcome of a command into an exit code: 0 for success; 1 for an audit that found
a difference; 2, with one line on stderr, for an error that the user can mend; 130 after Ctrl-C; 141
if the reader of the output is gone. Any other error is a bug in this package, and its traceback is
shown.

    options     the commands and their options
    method      which estimator the options of `train` ask for
    commands/   one file for each command
    read/       from data files to tables of named columns
    columns/    from tables to features, target, weights and offsets
    summary/    what the commands print
    write/      the files that the commands write
    errors      errors that the user can mend, as messages of one line
    wording     names, values and counts as messages show them

Only the parser is imported here. Each command imports what it needs, so that `gpustump --help` is
quick, and a broken or missing optional library affects only the commands that use it.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

from gpustump.cli.errors import ToldInterrupt, is_short_of_memory, message_of
from gpustump.cli.options import parse, topic
from gpustump.cli.wording import tell

INTERRUPTED = 130
READER_GONE = 141
WRONG_INPUT = 2

RESERVE = 2**20
"""Bytes kept back, so that a command that runs out of memory can still say so."""


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
        with contextlib.suppress(AttributeError):  # streams in tests may lack it
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    with _warnings_in_one_line():
        code = _reported(sys.argv[1:] if argv is None else argv)
    if argv is None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the work is done
        gc.freeze()  # else Python looks through all objects for garbage at exit: up to a second
    return code


@contextlib.contextmanager
def _warnings_in_one_line() -> Iterator[None]:
    """Within it, each UserWarning is one line on stderr, without its place in the code."""

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if category is UserWarning:
            tell(str(message))
        else:
            shown(message, category, *place, **more)

    shown = warnings.showwarning
    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _reported(argv: Sequence[str]) -> int:
    """Run a command; report a failure by one line on stderr and the exit code."""
    reserve = bytearray()
    try:
        reserve = bytearray(RESERVE)  # if even this fails, it is told as any lack of memory
        return _run(argv)
    except KeyboardInterrupt as error:
        return _interrupted(error)
    except BrokenPipeError:
        _abandon_output()
        return READER_GONE
    except Exception as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # while a class was made, in Python 3.11
            return _interrupted(error.__cause__)
        del reserve
        if is_short_of_memory(error):
            traceback.clear_frames(error.__traceback__)
        message = message_of(error)
        if message is None:
            raise
        tell(f"error: {message}")
        if isinstance(error, OSError):
            _abandon_output()
        if is_short_of_memory(error):
            _say_no_more_at_exit()
        return WRONG_INPUT


def _run(argv: Sequence[str]) -> int:
    try:
        arguments = parse(argv)
        if arguments.command == "help":
            print(topic(arguments.topic), end="")
            return 0
        command = importlib.import_module(f"gpustump.cli.commands.{arguments.command}")
        return int(command.run(arguments) or 0)
    except SystemExit as ending:  # argparse, after --help and --version
        return int(ending.code or 0)
    finally:
        if sys.exc_info()[0] is not KeyboardInterrupt:
            sys.stdout.flush()  # now, while an error can still be reported


def _interrupted(error: KeyboardInterrupt) -> int:
    tell(str(error) if isinstance(error, ToldInterrupt) else "interrupted")
    return INTERRUPTED


def _abandon_output() -> None:
    """Discard what stdout could not take; otherwise Python would try again, and fail, at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _say_no_more_at_exit() -> None:
    """Discard what Python writes to stderr at exit, where memory may be short again."""
    with contextlib.suppress(OSError, ValueError, MemoryError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        atexit.register(os.dup2, nowhere, sys.stderr.fileno())
