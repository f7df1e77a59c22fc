"""NVRTC, the compiler that CuPy uses, from its packages on PyPI: it needs no GPU and no driver.

Two versions may be installed side by side, because CUDA 13 no longer compiles for the oldest
devices. The usual bindings load one only, so this file loads the libraries itself.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
from pathlib import Path


class CompileError(Exception):
    """Source code that does not compile; the message is the compiler's."""


class Nvrtc:
    """One installed version.

    Parameters
    ----------
    library : Path

    Attributes
    ----------
    version : tuple of int
    architectures : list of int
        Compute capabilities that it compiles for: 70 for 7.0.
    """

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._do("Version", ctypes.byref(major), ctypes.byref(minor))
        self.version = (major.value, minor.value)
        count = ctypes.c_int()
        self._do("GetNumSupportedArchs", ctypes.byref(count))
        found = (ctypes.c_int * count.value)()
        self._do("GetSupportedArchs", found)
        self.architectures = list(found)

    def compiled(self, source: str, architecture: str, *options: str) -> tuple[bytes, str]:
        """PTX for "compute_70" or machine code for "sm_70", and the compiler's log."""
        program = ctypes.c_void_p()
        self._do(
            "CreateProgram", ctypes.byref(program), source.encode(), b"kernels.cu", 0, None, None
        )
        try:
            given = [option.encode() for option in (f"--gpu-architecture={architecture}", *options)]
            status = self._library.nvrtcCompileProgram(
                program, len(given), (ctypes.c_char_p * len(given))(*given)
            )
            log = self._text(program, "ProgramLog").decode().rstrip("\0")
            if status != 0:
                raise CompileError(log)
            kind = "CUBIN" if architecture.startswith("sm_") else "PTX"
            return self._text(program, kind), log
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def _text(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        self._do(f"Get{what}Size", program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        self._do(f"Get{what}", program, text)
        return text.raw

    def _do(self, function: str, *arguments: object) -> None:
        status = getattr(self._library, f"nvrtc{function}")(*arguments)
        if status != 0:
            raise RuntimeError(f"nvrtc{function} failed with status {status}")


@functools.cache
def installed() -> tuple[Nvrtc, ...]:
    """Every version that is installed as a package."""
    spec = importlib.util.find_spec("nvidia")
    folders = [] if spec is None else list(spec.submodule_search_locations or [])
    patterns = ("cuda_nvrtc/lib/libnvrtc.so.*", "cu*/lib/libnvrtc.so.*")
    libraries = {path for f in folders for p in patterns for path in Path(f).glob(p)}
    found = (Nvrtc(path) for path in sorted(libraries) if ".alt." not in path.name)
    return tuple(sorted(found, key=lambda nvrtc: nvrtc.version))
