"""How many faults a test injects: some in the usual run, all with GPUSTUMP_TESTED_FAULTS=all."""

from __future__ import annotations

import os


def count(usual: int, full: int) -> int:
    """How many faults to inject: `usual`, or `full` where all are wanted."""
    return full if os.environ.get("GPUSTUMP_TESTED_FAULTS") == "all" else usual
