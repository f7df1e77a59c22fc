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

    On Linux it is read from /proc: what `getrusage` returns includes the resident set of the
    process that started this one.
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
    """Limit the memory of this process; does nothing on systems that do not enforce the limit."""
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
