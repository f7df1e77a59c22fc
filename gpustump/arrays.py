"""Which array library an array belongs to, where it lives, and the few things the array API lacks.

The rest of the package is written against the array API standard and asks this file for what the
standard does not offer: integers that sort as floats do, full-width integers in JAX, copies to the
host. Two rules hold here:

* No array library is imported that the user has not imported already. A library may be installed
  and broken, and a program that never touches it must not pay for it. (Only `placement` imports
  CuPy of its own accord, to look for a GPU.)
* Values are compared as integers that sort as they do (`order_keys`), never as floats. XLA on the
  CPU flushes subnormal numbers to zero in comparisons, so JAX would otherwise find fewer distinct
  values than NumPy in the same data, and NaN would need care in every sort.
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
namespace_of = array_api_compat.array_namespace
device_of = array_api_compat.device

_MINIMUM = {"int16": -(2**15), "int32": -(2**31), "int64": -(2**63)}


@contextlib.contextmanager
def computing_on(x: Array) -> Iterator[None]:
    """What an array's library needs before one computes with it.

    JAX has its 64-bit types only where they are switched on, CuPy computes on the current device
    only, and NumPy may have been told to raise at an overflow or underflow, both of which are meant
    where they happen here. All is put back at the end of the `with`.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(np.errstate(all="ignore"))
        if array_api_compat.is_jax_array(x):
            stack.enter_context(sys.modules["jax"].enable_x64(True))
        elif array_api_compat.is_cupy_array(x):
            stack.enter_context(x.device)
        yield


def device_name(x: Array) -> str:
    """Where an array lives, in this package's words: "cpu", "cuda:0", ... or the library's own."""
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
    """The name of the array's library as its users write it: "numpy", "torch", ..."""
    return type(x).__module__.partition(".")[0].removesuffix("lib")


def to_host(x: Array) -> np.ndarray:
    """A NumPy array with the same values: the same memory where that is possible."""
    if array_api_compat.is_cupy_array(x):
        return np.asarray(x.get())
    if array_api_compat.is_torch_array(x):
        return np.asarray(x.detach().cpu())
    if array_api_compat.is_numpy_array(x) or array_api_compat.is_jax_array(x):
        return np.asarray(x)
    return np.asarray(np.from_dlpack(x, device="cpu"))


def dtype_name(x: Array) -> str:
    """The dtype's bare name: "float32", "int64", "bool"."""
    if isinstance(x.dtype, np.dtype):
        return _numpy_name(x.dtype)
    return str(x.dtype).rpartition(".")[2]


@functools.cache  # NumPy puts the name together anew each time, and it is asked for often
def _numpy_name(dtype: np.dtype) -> str:
    return str(dtype)


def plain(x: Array) -> Array:
    """The same values without what only their library knows: gradients, lazy signs, byte order."""
    if array_api_compat.is_torch_array(x):
        return x.detach().resolve_neg()
    if array_api_compat.is_numpy_array(x) and not x.dtype.isnative:
        return x.astype(x.dtype.newbyteorder("="))
    return x


def picked(x: Array, rows: Array | None) -> Array:
    """Some rows of an array; all of them for None."""
    return x if rows is None else namespace_of(x).take(x, rows, axis=0)


def scalar(value: float, like: Array) -> Array:
    """A number as an array without dimensions, of the dtype and on the device of another array."""
    return namespace_of(like).asarray(value, dtype=like.dtype, device=device_of(like))


def integers(x: Array) -> list[int]:
    """A small one-dimensional integer array as Python ints."""
    return [int(value) for value in to_host(x)]


_WORKING = {"bool": "float32", "int8": "float32", "uint8": "float32", "int16": "float32"}
_WORKING |= {"uint16": "float32", "int32": "float64", "uint32": "float64", "int64": "float64"}
_WORKING |= {"uint64": "float64", "float16": "float16", "float32": "float32", "float64": "float64"}


def working_dtype(dtype: str) -> str | None:
    """The float dtype in which values of a dtype are compared and cut; None if there is none.

    Floats keep their own. Booleans and integers of up to 16 bits are exact in float32, those of 32
    bits in float64; 64-bit integers beyond 2**53 count as the float64 they round to.
    """
    return _WORKING.get(dtype)


def as_working(x: Array) -> Array:
    """The values in their `working_dtype`, without a copy where they have it already."""
    xp = namespace_of(x)
    wanted = _WORKING[dtype_name(x)]
    return x if dtype_name(x) == wanted else xp.astype(x, getattr(xp, wanted))


def _bits(x: Array) -> Array:
    """The bit patterns of floats as signed integers of the same width."""
    name = "int" + dtype_name(x).removeprefix("float")
    xp = namespace_of(x)
    if hasattr(x, "view"):
        return x.view(getattr(xp, name))
    return xp.asarray(to_host(x).view(name), device=device_of(x))


def missing_key(dtype: str) -> int:
    """The `order_keys` of NaN in a float dtype: the largest integer, so that NaN sorts last."""
    return -_MINIMUM["int" + dtype.removeprefix("float")] - 1


def order_keys(x: Array) -> Array:
    """Integers that compare exactly as the floats do, with NaN above all of them.

    The bit pattern of a float is its sign and a magnitude that grows with the value; turning that
    into two's complement gives integers in the floats' own order, and one key for both zeros.

    Parameters
    ----------
    x : array of float16, float32 or float64

    Returns
    -------
    array of int16, int32 or int64, same shape, library and device
    """
    xp = namespace_of(x)
    bits = _bits(x)
    keys = xp.where(bits < 0, _MINIMUM[dtype_name(bits)] - bits, bits)
    infinity = int(np.asarray(np.inf, dtype_name(x)).view(dtype_name(bits)))
    return xp.where(xp.abs(keys) > infinity, missing_key(dtype_name(x)), keys)


def running_minimum(x: Array) -> Array:
    """The least of each element and those before it in its row, for an array (b, n).

    The standard has no cumulative minimum. Where the library has none either, windows of twice the
    length are compared in every step [Hillis and Steele 1986].
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
