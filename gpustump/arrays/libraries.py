"""The library, device and dtype of an array, and the few operations that the array API lacks.

The rest of the package is written against the array API standard and uses this file for what the
standard does not offer: 64-bit integers in JAX, copies to the host, running minima.

No array library is imported here that the user has not imported already: a library may be installed
and broken, and a program that does not use it should not spend time on it. (Only `devices` imports
CuPy by itself, to look for a GPU.)
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Iterator
from typing import Any, TypeAlias

import array_api_compat
import numpy as np

Array: TypeAlias = Any
"""An array of any library that the array API standard, or array-api-compat, covers."""

is_array = array_api_compat.is_array_api_obj


def namespace_of(x: Array) -> Any:
    """The functions of an array's library, as the array API standard has them."""
    if type(x) is np.ndarray:  # NumPy follows the standard itself, without wrappers
        return np
    return array_api_compat.array_namespace(x)


def device_of(x: Array) -> Any:
    """The device of an array, as its library names it."""
    return "cpu" if type(x) is np.ndarray else array_api_compat.device(x)


def computing_on(x: Array) -> contextlib.AbstractContextManager[Any]:
    """Set up an array's library for computing with it, until the end of the `with`.

    JAX has 64-bit types only if they are switched on, CuPy computes on its current device only, and
    NumPy may be set to raise errors at overflow and underflow, which are intended here.
    """
    if isinstance(x, np.ndarray):  # the fast case, in every round: without a generator
        return np.errstate(all="ignore")
    return _computing_elsewhere(x)


@contextlib.contextmanager
def _computing_elsewhere(x: Array) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        stack.enter_context(np.errstate(all="ignore"))
        if array_api_compat.is_jax_array(x):
            stack.enter_context(sys.modules["jax"].enable_x64(True))
        elif array_api_compat.is_cupy_array(x):
            stack.enter_context(x.device)
        yield


def device_name(x: Array) -> str:
    """The name of an array's device: "cpu", "cuda:0", ..., or else the library's own name."""
    device = device_of(x)
    if array_api_compat.is_cupy_array(x):
        return f"cuda:{device.id}"
    if array_api_compat.is_torch_array(x):
        return "cuda:0" if str(device) == "cuda" else str(device)
    if array_api_compat.is_jax_array(x):
        if not hasattr(device, "platform"):  # an array in parts on several devices
            device = min(device.device_set, key=lambda part: part.id)
        platform = device.platform
        return f"cuda:{device.id}" if platform in ("gpu", "cuda") else platform
    return "cpu" if "cpu" in str(device).lower() else str(device)


def on_host(x: Array) -> bool:
    """Whether the array's memory is the computer's own."""
    return device_name(x) == "cpu"


def library_name(x: Array) -> str:
    """The name under which users import the array's library: "numpy", "torch", ..."""
    return type(x).__module__.partition(".")[0].removesuffix("lib")


def to_host(x: Array) -> np.ndarray:
    """A NumPy array with the same values; it shares their memory where that is possible."""
    if array_api_compat.is_cupy_array(x):
        return np.asarray(x.get())
    if array_api_compat.is_torch_array(x):
        return np.asarray(x.detach().cpu())
    if array_api_compat.is_numpy_array(x) or array_api_compat.is_jax_array(x):
        return np.asarray(x)
    return np.asarray(np.from_dlpack(x, device="cpu"))


def dtype_name(x: Array) -> str:
    """The name of an array's dtype without its library: "float32", "int64", "bool"."""
    if isinstance(x.dtype, np.dtype):
        return _numpy_name(x.dtype)
    return str(x.dtype).rpartition(".")[2]


@functools.cache  # NumPy builds the name in every call, and it is needed often
def _numpy_name(dtype: np.dtype) -> str:
    return str(dtype)


def plain(x: Array) -> Array:
    """The same values without gradients, lazy negation (PyTorch) or foreign byte order (NumPy)."""
    if array_api_compat.is_torch_array(x):
        return x.detach().resolve_neg()
    if array_api_compat.is_numpy_array(x) and not x.dtype.isnative:
        return x.astype(x.dtype.newbyteorder("="))
    return x


def picked(x: Array, rows: Array | None) -> Array:
    """The rows with these numbers, (n_rows,) of int; all rows for None."""
    if rows is not None and hasattr(x, "with_rows"):  # of an `arrays.SparseTable`
        return x.with_rows(to_host(rows))
    return x if rows is None else namespace_of(x).take(x, rows, axis=0)


def scalar(value: float, like: Array) -> Array:
    """A number as an array without dimensions, with the dtype and device of another array."""
    return namespace_of(like).asarray(value, dtype=like.dtype, device=device_of(like))


def integers(x: Array) -> list[int]:
    """A small one-dimensional integer array as Python ints."""
    return [int(value) for value in to_host(x)]


def running_minimum(x: Array) -> Array:
    """The minimum of each element and those before it in its row, for an array (b, n).

    The standard has no cumulative minimum. If the library has none either, each step compares
    windows of twice the length of the step before [Hillis and Steele 1986].
    """
    if array_api_compat.is_numpy_array(x):
        return np.minimum.accumulate(x, axis=1)
    if array_api_compat.is_torch_array(x):
        return namespace_of(x).cummin(x, dim=1).values
    if array_api_compat.is_jax_array(x):
        return sys.modules["jax"].lax.cummin(x, axis=1)
    xp, length = namespace_of(x), 1
    while length < x.shape[1]:
        x = xp.concat([x[:, :length], xp.minimum(x[:, length:], x[:, :-length])], axis=1)
        length *= 2
    return x


def square_root(x: Array) -> Array:
    """The square root of each number, float64 of any shape, correctly rounded as IEEE 754 asks.

    PyTorch takes the square roots of CPU tensors from MKL, which is wrong in the last bit for about
    one number in a hundred. NumPy's are right, and the two share memory there.
    """
    if array_api_compat.is_torch_array(x) and on_host(x):
        return sys.modules["torch"].from_numpy(np.asarray(np.sqrt(to_host(x))))
    return namespace_of(x).sqrt(x)
