"""`gpustump train --checkpoint FILE`: the rules of the command line for that file.

The estimator writes the file and goes on from it; see `boosting.checkpoints.writing`. The command
line uses or replaces a file that exists only if an option says so, and removes it once the model is
written.
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpustump.cli.errors import InputError, ToldInterrupt, system_errors_at
from gpustump.cli.wording import tell
from gpustump.cli.write.files import OutputFile
from gpustump.data.readable import counted

if TYPE_CHECKING:
    from gpustump.boosting.checkpoints.writing import Checkpoint


def check_checkpoint_option(arguments: argparse.Namespace, model: OutputFile) -> None:
    """Refuse a file that cannot be written, or that exists while no option says what to do with it.

    `model` is the other file that is written.
    """
    path = arguments.checkpoint
    if path is None:
        for option in ("resume", "checkpoint_every"):
            if getattr(arguments, option):
                name = option.replace("_", "-")
                raise InputError(f"--{name} is for a checkpoint; name its file with --checkpoint.")
        return
    own = OutputFile("--checkpoint", path)
    if own.is_stream:
        raise InputError(f"--checkpoint: {path} cannot be read again later; name a plain file.")
    own.check(arguments.data, arguments.feature_names)
    own.check_differs(model)
    from gpustump.boosting.checkpoints.file import is_there

    if is_there(path) and not arguments.resume and not arguments.force:
        raise InputError(
            f"--checkpoint: {path} exists; --resume goes on from it, --force replaces it and "
            "starts again."
        )


def checkpoint_of(arguments: argparse.Namespace) -> Checkpoint | None:
    """The estimator's `checkpoint` parameter; removes a file that is to be replaced."""
    if arguments.checkpoint is None:
        return None
    from gpustump.boosting.checkpoints.writing import Checkpoint

    if not arguments.resume:
        remove(arguments)
    if arguments.checkpoint_every is None:
        return Checkpoint(arguments.checkpoint)
    rounds, seconds = arguments.checkpoint_every
    return Checkpoint(arguments.checkpoint, every_rounds=rounds, every_seconds=seconds)


def remove(arguments: argparse.Namespace) -> None:
    """Remove the file, if there is one."""
    if arguments.checkpoint is not None:
        with (
            system_errors_at(f"--checkpoint {arguments.checkpoint}"),
            contextlib.suppress(FileNotFoundError),
        ):
            os.unlink(arguments.checkpoint)


def rounds_in(path: str | None) -> int | None:
    """How many rounds a checkpoint holds; None if there is no checkpoint that can be read."""
    from gpustump.boosting.checkpoints.file import CheckpointError, is_there, read

    if path is None or not is_there(path):
        return None
    try:
        return read(path).n_rounds
    except (OSError, CheckpointError):
        return None


@contextlib.contextmanager
def telling_of_the_rounds(arguments: argparse.Namespace) -> Iterator[None]:
    """Within it, Ctrl-C and SIGTERM end the command with a line that says what is kept.

    SIGTERM then ends the process, as it would have without a checkpoint.
    """
    if arguments.checkpoint is None:
        yield
        return
    from gpustump.boosting.checkpoints.writing import ending_in_order

    with ending_in_order(lambda: tell(_kept(arguments, "ended by SIGTERM"))):
        try:
            yield
        except KeyboardInterrupt as error:
            raise ToldInterrupt(_kept(arguments, "interrupted")) from error


def _kept(arguments: argparse.Namespace, what: str) -> str:
    rounds = rounds_in(arguments.checkpoint)
    if rounds is None:
        return what
    how = "the same command" if arguments.resume else "the same command with --resume"
    if rounds == 0:
        return f"{what} before the first round was made; to start again, run {how}"
    made = counted(rounds, "round")
    return f"{what} after {made}, kept in {arguments.checkpoint}; to go on, run {how}"
