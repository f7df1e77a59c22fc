"""Peak memory of a stretch of work in this process, on the host and on a GPU.

The host's peak is the kernel's own high-water mark where it can be set back (Linux), so no
allocation is missed between two looks. A GPU has no such mark: the memory in use on it is read
every few milliseconds, through NVIDIA's management library, which needs no context on the device.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

_STATUS = Path("/proc/self/status")
_SECONDS_BETWEEN_LOOKS = 0.002


@dataclass
class Peak:
    """Bytes beyond what was held at the start; None where it cannot be measured."""

    host: int | None = None
    device: int | None = None


@contextlib.contextmanager
def peak_memory() -> Iterator[Peak]:
    """Watch the memory of what is done inside the `with`; the values stand after it."""
    peak = Peak()
    gpu_memory = _gpu_memory()  # first, since loading that takes memory too
    marked = _reset_mark()
    before = _kilobytes("VmRSS")
    with _watched_gpu(peak, gpu_memory):
        yield peak
    if marked and before is not None:
        peak.host = max(((_kilobytes("VmHWM") or before) - before) * 1024, 0)


def _reset_mark() -> bool:
    """Set the kernel's high-water mark back to what is in use now; whether that worked."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def _kilobytes(name: str) -> int | None:
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{name}:")), None)


@contextlib.contextmanager
def _watched_gpu(peak: Peak, in_use: Callable[[], int] | None) -> Iterator[None]:
    """Keep the most memory in use on the GPU in `peak.device`, if there is one, and only one."""
    if in_use is None:
        yield
        return
    before = in_use()
    seen = [before]
    done = threading.Event()

    def look() -> None:
        while not done.wait(_SECONDS_BETWEEN_LOOKS):
            seen.append(max(seen.pop(), in_use()))

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    try:
        yield
    finally:
        done.set()
        looking.join()
        peak.device = max(*seen, in_use()) - before if seen else None  # none: looking failed


def _gpu_memory() -> Callable[[], int] | None:
    """How to read the bytes in use on the only GPU; None without one, or where that fails."""
    try:
        import pynvml

        pynvml.nvmlInit()
        if pynvml.nvmlDeviceGetCount() != 1:  # which of them is used is not told
            return None
        gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
        pynvml.nvmlDeviceGetMemoryInfo(gpu)
    except Exception:  # not installed, broken, or no driver
        return None
    return lambda: int(pynvml.nvmlDeviceGetMemoryInfo(gpu).used)
