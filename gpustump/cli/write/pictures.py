"""Pictures for files: the same on every machine, whatever the user's Matplotlib settings are.

A user's matplotlibrc and backend are meant for their own figures. Here they could make a picture
unreadable, so neither is used. Matplotlib's warnings about folders and fonts are not shown.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import logging
import os
import sys
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpustump.cli.errors import MissingLibraryError
from gpustump.cli.write.files import OutputFile, kind_with_mark

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMATS = {".png": b"\x89PNG", ".svg": b"<svg", ".pdf": b"%PDF"}
"""The formats, and what files of them begin with."""

_DPI = 150

_METADATA = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
"""No date in any file, so that the same picture always has the same bytes."""


def picture_file(arguments: argparse.Namespace) -> OutputFile | None:
    """The file of --plot, None without the option; it can be drawn and written.

    Raises
    ------
    InputError
        If it cannot, or would replace a file of another kind.
    """
    if arguments.plot is None:
        return None
    output = OutputFile("--plot", arguments.plot)
    output.check_ending(tuple(FORMATS))
    output.check(arguments.model, arguments.data)
    ending = _ending(output.path)
    kind = kind_with_mark(f"{ending.removeprefix('.')} picture", FORMATS[ending])
    output.check_replaced(kind, force=arguments.force)
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingLibraryError(output.option, "Matplotlib", extra="plots")
    return output


def picture(figure: Figure, path: str) -> bytes:
    """The content of a picture file in the format that the ending of its name tells."""
    from matplotlib import pyplot

    pyplot.close(figure)  # it is for a file, not for a screen
    content, kind = io.BytesIO(), _ending(path).removeprefix(".")
    figure.savefig(content, format=kind, dpi=_DPI, metadata=_METADATA[kind])
    return content.getvalue()


def _ending(path: str) -> str:
    return path.lower()[path.rindex(".") :]


@contextlib.contextmanager
def default_matplotlib() -> Iterator[None]:
    """Within it, figures are drawn with Matplotlib's default settings and without its log."""
    if "matplotlib" not in sys.modules:
        os.environ["MPLBACKEND"] = "agg"  # an unknown one would be an error on import
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    import matplotlib

    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # a character that the font lacks is a box
        matplotlib.rcdefaults()
        matplotlib.rcParams["svg.hashsalt"] = "gpustump"
        yield
