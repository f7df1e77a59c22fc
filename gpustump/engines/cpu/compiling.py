"""Compiling: every kernel for its declared types when its file is imported, kept on disk.

Declared types mean that nothing is compiled later, in the middle of a fit, and that an array of
another type or layout is an error rather than one more version. A first import on a machine takes
seconds, which is announced. Where no folder can be written, kernels are compiled anew in each
process.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from typing import Any

import numba

from gpustump.engines.announcements import announce

STAGES = (
    "codes", "bundles", "bins", "sweep", "search", "intervals", "state", "direct",
    "prediction",
)  # fmt: skip
"""What a fit or a prediction imports, kernels and all."""

_seconds: dict[str, float] = {}
_has_compiled = False


def kernel(*signatures: str) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function for these types; it runs without Python's lock.

    Indices are never checked: what a kernel is given must fit.
    """

    def compiled(function: Callable[..., Any]) -> Any:
        try:
            return _compiled(function, signatures, cache=True)
        except (RuntimeError, OSError):  # no folder to keep it in, or a full one
            return _compiled(function, signatures, cache=False)

    return compiled


def load(*stages: str) -> None:
    """Import kernels, compiling them if this machine has not done so yet."""
    for stage in stages or STAGES:
        if stage not in _seconds:
            started = time.perf_counter()
            importlib.import_module(f"gpustump.engines.cpu.{stage}")
            _seconds[stage] = time.perf_counter() - started


def seconds_compiling() -> float:
    """How long loading the kernels took in this process if some were compiled; otherwise 0."""
    return sum(_seconds.values()) if _has_compiled else 0.0


def _compiled(function: Callable[..., Any], signatures: tuple[str, ...], *, cache: bool) -> Any:
    make = numba.njit(cache=cache, nogil=True, boundscheck=False, error_model="numpy")
    dispatcher = make(function)
    if hasattr(dispatcher, "compile"):  # otherwise a plain function: Numba is switched off
        for signature in signatures:
            dispatcher.compile(signature)
            _notice(dispatcher)
        dispatcher.disable_compile()
    return dispatcher


def _notice(dispatcher: Any) -> None:
    """Announce the compiler the first time that something does not come from disk."""
    global _has_compiled
    if not _has_compiled and (dispatcher.stats.cache_misses or not dispatcher.stats.cache_path):
        _has_compiled = True
        announce("compiling the CPU kernels, once on this machine: some seconds ...")
