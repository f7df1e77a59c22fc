"""Peak memory of a stretch of work in this process, on the host and on a GPU.

On the host it is the kernel's own high-water mark, so no allocation between two looks is missed.
Linux alone can set this mark back, and no library does it. A GPU has no such mark: the memory in
use is read every few milliseconds through NVIDIA's management library.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

_SECONDS_BETWEEN_LOOKS = 0.002


@dataclass
class Peak:
    """Bytes beyond what was held at the start; None where it cannot be measured."""

    host: int | None = None
    device: int | None = None


@contextlib.contextmanager
def peak_memory() -> Iterator[Peak]:
    """Watch the memory of the work inside the `with`; the values can be read after it."""
    peak = Peak()
    gpu_memory = _gpu_memory()  # first, since loading the library takes memory, too
    before = None
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # sets the mark back
        before = _bytes("VmRSS")
    with _watched_gpu(peak, gpu_memory):
        yield peak
    if before is not None:
        peak.host = max(_bytes("VmHWM") - before, 0)


def _bytes(name: str) -> int:
    found = re.search(rf"^{name}:\s*(\d+) kB", Path("/proc/self/status").read_text(), re.M)
    if found is None:
        raise OSError(f"/proc/self/status has no {name}")
    return int(found[1]) * 1024


@contextlib.contextmanager
def _watched_gpu(peak: Peak, in_use: Callable[[], int] | None) -> Iterator[None]:
    if in_use is None:
        yield
        return
    before = highest = in_use()
    done = threading.Event()

    def watch() -> None:
        nonlocal highest
        while not done.wait(_SECONDS_BETWEEN_LOOKS):
            highest = max(highest, in_use())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
        peak.device = max(highest, in_use()) - before


def _gpu_memory() -> Callable[[], int] | None:
    """How to read the bytes in use on the only GPU; None without one, or where that fails."""
    try:
        import pynvml

        pynvml.nvmlInit()
        if pynvml.nvmlDeviceGetCount() != 1:  # it is not known which of several is used
            return None
        gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
        pynvml.nvmlDeviceGetMemoryInfo(gpu)
    except Exception:  # not installed, broken, or no driver
        return None
    return lambda: int(pynvml.nvmlDeviceGetMemoryInfo(gpu).used)
