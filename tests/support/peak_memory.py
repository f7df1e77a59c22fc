"""The most memory that this process has had."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

try:
    import resource
except ImportError:  # Windows has none
    resource = None  # type: ignore[assignment]


def peak_bytes() -> int:
    """Its largest resident set so far; 0 where the system does not tell.

    Linux says so of the program that runs; what `getrusage` knows begins with the set of the
    process that started it.
    """
    if resource is None:
        return 0
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    found = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return found if sys.platform == "darwin" else 1024 * found


def limit_bytes(most: int) -> None:
    """Let this process ask for no more; does nothing where the system does not keep to it."""
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
