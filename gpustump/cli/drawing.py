"""Pictures for files: drawn alike everywhere, whatever Matplotlib is told on this machine.

A user's matplotlibrc and backend are for their own figures. Here they could only make a report
that cannot be read, or fail after an hour of training; so both are left aside. What Matplotlib has
to say about folders and fonts is not for the command line; that a font lacks characters is said
once.
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
"""So that the same picture is the same bytes tomorrow."""


def check_matplotlib(option: str) -> None:
    """Refuse an option that draws, if Matplotlib is missing.

    Raises
    ------
    MissingLibraryError
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingLibraryError(option, "Matplotlib", extra="plots")


@contextlib.contextmanager
def drawing() -> Iterator[None]:
    """Within it, figures are drawn with Matplotlib's own settings, and in silence."""
    if "matplotlib" not in sys.modules:
        os.environ["MPLBACKEND"] = "agg"  # an unknown one would be an error on import
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    import matplotlib

    with matplotlib.rc_context(), warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        matplotlib.rcdefaults()
        matplotlib.rcParams["svg.hashsalt"] = "gpustump"
        yield
    others = [one for one in heard if "Glyph" not in str(one.message)]
    if len(others) < len(heard):
        print(
            "gpustump: the font of the pictures lacks some characters of the names; boxes stand "
            "for them",
            file=sys.stderr,
        )
    for one in others:
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


def new_figure(width: float, height: float) -> Figure:
    """A figure of so many inches that pyplot does not know of: nobody is to see it but a file."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def as_bytes(figure: Figure, kind: str, dpi: int) -> bytes:
    """The figure as a file of a kind: png, svg or pdf."""
    made = io.BytesIO()
    figure.savefig(made, format=kind, dpi=dpi, metadata=_METADATA[kind])
    return made.getvalue()
