"""Where compiled kernels are kept: in a folder for each version of what they depend on.

A compiled kernel contains the kernels that it calls and the constants that it uses, which may be
defined in other files. Numba checks only whether the kernel's own file has changed, so after an
edit elsewhere it would load a mixture of old and new code. Here the folder's name is a hash of all
the sources, of Numba's version, and of Python and the CPU for which code is made. That is not this
very CPU, but a level that it reaches, so a folder serves many machines.

A wheel may bring a folder that has everything (`SHIPPED`). Otherwise the folder lies in
GPUSTUMP_CACHE_DIR if that is set, or else beside the sources, or in the user's cache, or, where
neither can be written to, in a temporary folder of this process. Beside the sources, folders of
other sources are removed as soon as something is written. Those of other versions of Numba, and of
other CPUs, stay: environments and machines may share one installation. Elsewhere installations may
share a place, so folders stay there that were used lately.

When all kernels of a stage are there, a file says so.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import importlib.metadata
import importlib.resources
import math
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.resources.abc import Traversable
from pathlib import Path

import numpy as np

SETTING = "GPUSTUMP_CACHE_DIR"
TARGET_SETTINGS = ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES")

STAGES = (
    "scanned",
    "loss.exponential_loss",
    "loss.logistic_loss",
    "loss.softmax_loss",
    "loss.squared_loss",
    "loss.quantile_loss",
    "loss.ratio_loss",
    "coded",
    "histogram.update_pass",
    "histogram.residual_sums",
    "histogram.quantile_sums",
    "histogram.amount_sums",
    "histogram.row_sums",
    "split.sums_of_rows",
    "split.discrete_cells",
    "split.real_cells",
    "split.newton_cells",
    "split.compiled_refine",
    "sorted",
    "sparse",
    "pairs.odds",
    "pairs.probabilities",
    "pairs.residuals",
    "pairs.amounts",
    "predict.prediction",
    "predict.pair_scores",
    "predict.running_scores",
    "predict.held_out_sums",
    "cluster.key_ranges",
)
"""The files that a fit or a prediction imports; these import all other files with kernels."""


def module_of(stage: str) -> str:
    """The name of a stage's module."""
    return f"gpustump.engines.{'' if stage.startswith('cluster.') else 'cpu.'}{stage}"


_ROOMS, _WITHOUT_KERNELS = ("engines", "learners"), ("cuda", "reference")
"""Folders in the package with all that is compiled into kernels, and folders in these that have
nothing of that kind."""

_FOLDER = "kernels-"
"""What the names of the folders begin with."""

SHIPPED = Path(__file__).parent.parent / "kernels"
"""Where the folders are that a wheel brings."""

LEVELS = {
    "x86-64-v4": ({"X86_V4"}, {"AVX512_SKX"}),
    "x86-64-v3": ({"X86_V3"}, {"AVX2", "FMA3"}),
    "x86-64": (set[str](),),
}
"""Levels of x86-64 CPUs by LLVM's names, the best first. A CPU is of a level if NumPy finds all
features of one of these sets; NumPy 2.4 has names for the levels."""

_KEPT_SECONDS = 30 * 24 * 60 * 60
"""So long folders stay in a shared place after they were used."""


@functools.cache
def kernel_folder() -> Path | None:
    """The folder, which exists; None if none can be made.

    Kernels can be added to it, unless all are there.
    """
    name = f"{_FOLDER}{sources_hash()}-numba-{importlib.metadata.version('numba')}-{target_hash()}"
    if _is_full(SHIPPED / name):
        return SHIPPED / name
    for place in _places():
        folder = place / name
        with contextlib.suppress(OSError):
            os.utime(folder)
        if _is_full(folder):
            return folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                pass
        except OSError:
            continue
        _remove_other_sources(place)
        return folder
    return None


def _note(folder: Path, stage: str) -> Path:
    return folder / f"{stage}.done"


def _is_full(folder: Path) -> bool:
    return all(_note(folder, stage).exists() for stage in STAGES)


def are_compiled(*stages: str) -> bool:
    """Whether all kernels of some stages are in the folder."""
    folder = kernel_folder()
    return folder is not None and all(_note(folder, stage).exists() for stage in stages)


def note_compiled(stage: str) -> None:
    """Note that all kernels of a stage are in the folder."""
    folder = kernel_folder()
    if folder is not None:
        _note(folder, stage).touch()


@functools.cache
def sources_hash() -> str:
    """A hash of everything that the kernels' code depends on, 16 hexadecimal digits."""
    found = hashlib.sha256()
    for name, content in _sources():
        found.update(f"{name} {len(content)}\n".encode() + content)
    return found.hexdigest()[:16]


@functools.cache
def target() -> tuple[str, str]:
    """The name and the features of the CPU that kernels are compiled for, as Numba takes them.

    NUMBA_CPU_NAME and NUMBA_CPU_FEATURES together stand for another CPU.
    """
    name, features = (os.environ.get(variable) for variable in TARGET_SETTINGS)
    if name is not None and features is not None:
        return name, features
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return "generic", ""
    known = np.show_config(mode="dicts").get("SIMD Extensions", {})  # it leaves out what is empty
    here = {*known.get("baseline", ()), *known.get("found", ())}
    return next(level for level, of in LEVELS.items() if any(own <= here for own in of)), ""


def target_hash() -> str:
    """A hash of what Numba makes code for, 8 hexadecimal digits: Python, the system, the CPU.

    Nothing of Numba is imported, so that a fork or Ctrl-C cannot leave half of it.
    """
    python = sys.implementation.cache_tag, platform.system(), platform.machine()
    return hashlib.sha256(repr((python, target())).encode()).hexdigest()[:8]


def n_kernels() -> int:
    """How many kernels all stages declare, without inner functions."""
    marks = b"\n@kernel(", b"\n@parallel(", b"\ntake_turns = turns_by(", b"\nrefine = kernel("
    return sum(text.count(mark) for _, text in _sources() for mark in marks)


def _beside_sources() -> Path:
    return Path(__file__).parent.parent / "__pycache__"


def _places() -> Iterator[Path]:
    wanted = os.environ.get(SETTING)
    if wanted:
        yield Path(wanted)
        return
    yield _beside_sources()
    with contextlib.suppress(ImportError):  # Numba may be here without it
        import platformdirs

        yield Path(platformdirs.user_cache_dir("gpustump", appauthor=False))
    try:
        temporary = tempfile.mkdtemp(prefix="gpustump-")
    except OSError:
        return
    atexit.register(_remove_own, temporary, os.getpid())
    yield Path(temporary)


def _remove_own(folder: str, process: int) -> None:
    if os.getpid() == process:  # not in a fork
        shutil.rmtree(folder, ignore_errors=True)


def _sources() -> Iterator[tuple[str, bytes]]:
    """Names and contents of all files in these folders."""
    package = importlib.resources.files(__package__.partition(".")[0])
    for room in _ROOMS:
        yield from _sources_in(package.joinpath(room), room)


def _sources_in(folder: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    for own in sorted(folder.iterdir(), key=lambda own: own.name):
        if own.name.endswith(".py"):
            yield f"{name}/{own.name}", own.read_bytes()
        elif own.is_dir() and own.name not in _WITHOUT_KERNELS:
            yield from _sources_in(own, f"{name}/{own.name}")


def _remove_other_sources(place: Path) -> None:
    used_lately = math.inf if place == _beside_sources() else time.time() - _KEPT_SECONDS
    for other in place.glob(f"{_FOLDER}*"):
        is_of_others = not other.name.startswith(f"{_FOLDER}{sources_hash()}-")
        with contextlib.suppress(OSError):  # its own process may have removed it
            if is_of_others and other.stat().st_mtime < used_lately:
                shutil.rmtree(other, ignore_errors=True)
