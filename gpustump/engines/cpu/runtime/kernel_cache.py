"""Compiled kernels on disk, in a folder that belongs to one version of all kernel sources and of
Numba.

A compiled kernel contains the kernels that it calls and the constants that it uses, which may be
defined in other files. Numba checks only whether the kernel's own file has changed, so after an
edit elsewhere it would load a mixture of old and new code. Here the folder's name is a hash of all
the sources, and Numba's version. The folders of other sources are removed as soon as something is
written. Those of other versions of Numba stay: environments may share one installation.

Numba decides where caches are: in the folder NUMBA_CACHE_DIR if that is set, else in `__pycache__`
beside the sources, else in the user's own cache. If it finds no folder that can be written to, it
raises a RuntimeError.

Kernels that are missing on disk are compiled by one process at a time (`compile_turns`); the others
find them there when their turn comes.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.resources
import os
import shutil
from collections.abc import Callable, Iterator
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile

from gpustump.engines.cpu.runtime.compile_turns import TURNS
from gpustump.engines.cpu.runtime.host_memory import COMPILING_BYTES, has_room

_ROOMS, _WITHOUT_KERNELS = ("engines", "learners"), ("cuda", "reference")
"""Folders in the package with all that is compiled into kernels, and folders in these that have
nothing of that kind."""

_FOLDER = "gpustump-"
"""What the names of the folders begin with."""


class KernelCache(FunctionCache):
    """Numba's cache of one function, in the folder of this version.

    Parameters
    ----------
    function : callable
        Not compiled yet.

    Raises
    ------
    RuntimeError, OSError
        If no folder can be written to, or the sources cannot be read.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        version = sources_hash()
        self._all_versions = self._cache_path
        folder = f"{_FOLDER}{version}-numba-{numba.__version__}"
        self._cache_path = os.path.join(self._cache_path, folder)
        name = self._impl.filename_base
        self._cache_file = IndexDataCacheFile(self._cache_path, name, version)  # type: ignore[no-untyped-call]

    def load_overload(self, sig: object, target_context: object) -> object:
        """The kernel for these types from disk; None if this process must compile it.

        Raises
        ------
        MemoryError
            If it must, and there is not enough memory.
        """
        found = super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        if found is None and self._has_folder() and TURNS.take(Path(self._cache_path)):
            found = super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
            if found is not None:  # another process has compiled it meanwhile
                TURNS.leave()
        if found is None and not has_room(COMPILING_BYTES):
            raise MemoryError("There is not enough memory to compile the CPU kernels.")
        return found

    def _save_overload(self, sig: object, data: object) -> None:
        self._make_folder()
        super()._save_overload(sig, data)  # type: ignore[no-untyped-call]

    def _has_folder(self) -> bool:
        try:
            self._make_folder()
        except OSError:
            return False
        return True

    def _make_folder(self) -> None:
        if not os.path.isdir(self._cache_path):
            os.makedirs(self._cache_path, exist_ok=True)
            _remove_other_sources(Path(self._all_versions))


@functools.cache
def sources_hash() -> str:
    """A hash of everything that the kernels' code depends on, 16 hexadecimal digits."""
    found = hashlib.sha256()
    for name, content in _sources():
        found.update(f"{name} {len(content)}\n".encode() + content)
    return found.hexdigest()[:16]


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


def _remove_other_sources(folder: Path) -> None:
    for other in folder.glob(f"{_FOLDER}*"):
        if not other.name.startswith(f"{_FOLDER}{sources_hash()}-"):
            shutil.rmtree(other, ignore_errors=True)
