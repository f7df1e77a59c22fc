"""Figures are closed after each test, and are never shown."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def figures_are_closed():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("agg")
    from matplotlib import pyplot

    yield
    pyplot.close("all")
