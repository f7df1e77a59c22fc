"""What a result needs beside it to mean anything: the machine and the versions."""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parent.parent
_LIBRARIES = [
    *("numpy", "array-api-compat", "scikit-learn", "scipy", "numba", "torch", "jax", "jaxlib"),
    *("cupy", "cupy-cuda12x", "cupy-cuda13x", "xgboost", "xgboost-cpu", "lightgbm", "catboost"),
]


def describe() -> dict[str, Any]:
    """Processor, cores, memory, GPUs and versions, as JSON knows them."""
    return {
        "processor": _processor(),
        "cores": usable_cores(),
        "memory": _memory(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "gpustump": importlib.import_module("gpustump").__version__,
        "commit": _commit(),
        "source_sha256": source_sha256(),
        "versions": {name: v for name in _LIBRARIES if (v := _version(name))},
        "gpus": list(gpus()),
    }


def usable_cores() -> int:
    """Cores that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@functools.cache
def gpus() -> tuple[str, ...]:
    """Name, memory and driver of every CUDA GPU, as the driver's own tool tells them."""
    command = [
        "nvidia-smi",
        "--query-gpu=name,memory.total,driver_version",
        "--format=csv,noheader",
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return tuple(done.stdout.strip().splitlines()) if done.returncode == 0 else ()


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None


def source_sha256() -> str:
    """SHA-256 of the sources that were measured and that measured, wherever they came from."""
    content = hashlib.sha256()
    for folder in ("gpustump", "bench"):
        for path in sorted((_ROOT / folder).rglob("*.py")):
            content.update(path.read_bytes())
    return content.hexdigest()


def _commit() -> str | None:
    """The checkout's commit, with a plus sign if there are changes on top; None outside git."""
    try:
        commit = _git("rev-parse", "--short=12", "HEAD").strip()
        return commit + (
            "+" if _git("status", "--porcelain", "gpustump", "bench", ":!bench/results") else ""
        )
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(_ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None
