"""Pictures for files: the same on every machine, whatever the user's Matplotlib settings are.

A user's matplotlibrc and backend are meant for their own figures. Here they could make a report
unreadable, or fail after an hour of training; so neither is used. Warnings of Matplotlib about
folders and fonts are not shown, except that one line says when a font lacks characters.
"""

from __future__ import annotations

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

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_METADATA = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}
"""No date in any file, so that the same picture always has the same bytes."""


def check_matplotlib(option: str) -> None:
    """Refuse an option that draws, if Matplotlib is missing.

    Raises
    ------
    MissingLibraryError
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingLibraryError(option, "Matplotlib", extra="plots")


@contextlib.contextmanager
def default_matplotlib() -> Iterator[None]:
    """Within it, figures are drawn with Matplotlib's default settings and without its log."""
    if "matplotlib" not in sys.modules:
        os.environ["MPLBACKEND"] = "agg"  # an unknown one would be an error on import
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    import matplotlib

    with matplotlib.rc_context(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        matplotlib.rcdefaults()
        matplotlib.rcParams["svg.hashsalt"] = "gpustump"
        yield
    others = [warning for warning in caught if "Glyph" not in str(warning.message)]
    if len(others) < len(caught):
        print(
            "gpustump: the font of the pictures lacks some characters of the names; boxes stand "
            "for them",
            file=sys.stderr,
        )
    for warning in others:
        warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def new_figure(width: float, height: float) -> Figure:
    """A figure (sizes in inches) that pyplot does not keep, as it is for a file only."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def as_bytes(figure: Figure, kind: str, dpi: int) -> bytes:
    """The content of a picture file: "png", "svg" or "pdf"."""
    content = io.BytesIO()
    figure.savefig(content, format=kind, dpi=dpi, metadata=_METADATA[kind])
    return content.getvalue()
