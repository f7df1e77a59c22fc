"""Which benchmarks the tests run from end to end: each of them starts processes for its contenders.

The usual run has one of each kind, with GPUSTUMP_TESTED_BENCHMARKS=all there are all.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

ALL = os.environ.get("GPUSTUMP_TESTED_BENCHMARKS") == "all"

whole_run = pytest.mark.skipif(not ALL, reason="a whole benchmark; see --all-benchmarks")


def whole_runs(*usual: Any) -> Any:
    """A function that marks the values of a parameter: others than these make whole runs."""
    return lambda value: value if value in usual else pytest.param(value, marks=whole_run)
