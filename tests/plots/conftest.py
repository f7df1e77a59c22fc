"""Without Matplotlib, tests of pictures are skipped. Figures are closed for all tests alike."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def pictures_can_be_drawn():
    pytest.importorskip("matplotlib")
