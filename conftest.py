"""Fixtures of all tests, also of the examples in docstrings, which lie outside of `tests`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

# Read by Matplotlib when it is first imported: pictures are drawn, but not shown.
os.environ["MPLBACKEND"] = "agg"


@pytest.fixture(autouse=True)
def figures_are_closed() -> Iterator[None]:
    """A figure of pyplot lives until it is closed, and Matplotlib warns of many."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
