"""The array libraries, and the compiled kernels, on which every behaviour is tested, in one list.

A behaviour test takes the `backend` fixture (see conftest.py) and so runs once for each of
`TESTED`. One that cannot be used here is skipped, and the skip says why. Without an NVIDIA driver
those on a GPU are left out.
Arrays go in from NumPy by `asarray` and come back by `to_numpy`; neither uses the package's own
conversions, which are under test.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cuda_on_cpu
import numpy as np


@dataclass(frozen=True)
class Backend:
    """An array library: how to give it an array, how to take one back, why it cannot be used.

    `problem` is asked when a test wants the library, as asking may import it or run a compiler.
    `kernels` says which scan its arrays go to, as GPUSTUMP_KERNELS does. `device` makes what stands
    in for the CUDA device that its arrays are on.
    """

    name: str
    asarray: Callable[[np.ndarray], Any]
    to_numpy: Callable[[Any], np.ndarray]
    problem: Callable[[], str | None] = lambda: None
    kernels: str = "reference"
    device: Callable[[], Any] | None = None
    lacks: frozenset[str] = frozenset()

    @functools.cached_property
    def reason(self) -> str | None:
        """Why it cannot be used here; None if it can."""
        return self.problem()

    @property
    def is_required(self) -> bool:
        """Whether GPUSTUMP_REQUIRED_BACKENDS names it: then it must not be skipped."""
        return self.name in os.environ.get("GPUSTUMP_REQUIRED_BACKENDS", "").split()

    @property
    def on_gpu(self) -> bool:
        return self.name.startswith(("cupy", "torch-cuda", "jax-cuda"))

    def owns(self, x: Any) -> bool:
        """Whether an array is this library's."""
        other = self.asarray(np.zeros(1, dtype=np.float32))
        return type(x) is type(other) and getattr(x, "device", 0) == getattr(other, "device", 0)

    def dtype_of(self, x: Any) -> str:
        return str(x.dtype).rpartition(".")[2]

    def __str__(self) -> str:
        return self.name


def _missing(module: str) -> Callable[[], str | None]:
    return lambda: None if importlib.util.find_spec(module) else f"{module} is not installed"


def _first_of(*problems: Callable[[], str | None]) -> Callable[[], str | None]:
    return lambda: next(filter(None, (problem() for problem in problems)), None)


@functools.cache
def has_nvidia_driver() -> bool:
    """Whether the library by which all programs reach an NVIDIA GPU can be loaded."""
    try:
        ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        return False
    return True


@functools.cache
def _no_cupy() -> str | None:
    if importlib.util.find_spec("cupy") is None:
        return "cupy is not installed"
    try:
        import cupy

        if int(cupy.arange(3).sum()) != 3:
            return "cupy computes wrongly here"
    except Exception as error:
        return f"cupy does not work here: {type(error).__name__}: {error}"
    return None


def _no_torch_cuda() -> str | None:
    import torch

    return None if torch.cuda.is_available() else "torch finds no CUDA device"


def _to_strict(x: np.ndarray) -> Any:
    import array_api_strict

    return array_api_strict.asarray(np.array(x))


def _to_torch(x: np.ndarray) -> Any:
    import torch

    return torch.tensor(np.array(x))


def _to_jax(x: np.ndarray, device: str = "cpu") -> Any:
    import jax

    with jax.enable_x64(True):  # without it, JAX has no 64-bit types
        return jax.device_put(jax.numpy.asarray(x), jax.devices(device)[0])


def _to_torch_cuda(x: np.ndarray) -> Any:
    return _to_torch(x).cuda()


_to_jax_cuda = functools.partial(_to_jax, device="cuda")


def _no_jax_cuda() -> str | None:
    import jax

    try:
        jax.devices("cuda")
    except RuntimeError:
        return "jax finds no CUDA device"
    return None


def _to_cupy(x: np.ndarray) -> Any:
    import cupy

    return cupy.asarray(x)


BACKENDS = (
    Backend("numpy", np.array, np.asarray),
    Backend("numpy-sorted", np.array, np.asarray, _missing("numba"), kernels="sorted"),
    Backend("numpy-coded", np.array, np.asarray, _missing("numba"), kernels="coded"),
    Backend(
        "numpy-cuda",
        np.array,
        np.asarray,
        cuda_on_cpu.unusable,
        kernels="cuda",
        device=functools.cache(cuda_on_cpu.OnCpu),
    ),
    Backend(
        "array-api-strict",
        _to_strict,
        np.asarray,
        _missing("array_api_strict"),
        lacks=frozenset({"float16"}),  # as the standard does
    ),
    Backend("torch", _to_torch, lambda x: x.numpy(), _missing("torch")),
    Backend(
        "torch-cuda",
        _to_torch_cuda,
        lambda x: x.cpu().numpy(),
        _first_of(_missing("torch"), _no_torch_cuda),
    ),
    Backend("jax", _to_jax, np.asarray, _missing("jax")),
    Backend("jax-cuda", _to_jax_cuda, np.asarray, _first_of(_missing("jax"), _no_jax_cuda)),
    Backend(
        "jax-cuda-kernels",
        _to_jax_cuda,
        np.asarray,
        _first_of(_missing("jax"), _no_jax_cuda, _no_cupy),
        kernels="cuda",
    ),
    Backend("cupy", _to_cupy, lambda x: x.get(), _no_cupy),
    Backend("cupy-kernels", _to_cupy, lambda x: x.get(), _no_cupy, kernels="cuda"),
    Backend(
        "torch-cuda-kernels",
        _to_torch_cuda,
        lambda x: x.cpu().numpy(),
        _first_of(_missing("torch"), _no_torch_cuda, _no_cupy),
        kernels="cuda",
    ),
)

NUMPY = BACKENDS[0]

TESTED = tuple(b for b in BACKENDS if not b.on_gpu or b.is_required or has_nvidia_driver())
