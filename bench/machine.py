"""What a result needs beside it to mean anything: the machine and the versions."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path
from typing import Any

import gpustump

_LIBRARIES = ["numpy", "scikit-learn", "torch", "jax", "cupy-cuda12x", "cupy-cuda13x"]


def describe() -> dict[str, Any]:
    """Processor, cores, memory, devices and library versions, as JSON knows them."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "gpustump": gpustump.__version__,
        "versions": {name: v for name in _LIBRARIES if (v := _version(name))},
        "gpus": [d.detail for d in gpustump.devices() if d.name.startswith("cuda") and d.usable],
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
