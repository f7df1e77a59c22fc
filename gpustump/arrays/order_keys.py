"""Integers that sort as floats do: how values are compared everywhere.

Values are compared as integers (`order_keys`), never as floats. XLA on the CPU flushes subnormal
numbers to zero in comparisons, so JAX would otherwise find fewer distinct values than NumPy in the
same data, and NaN would need care in every sort.
"""

from __future__ import annotations

import numpy as np

from gpustump.arrays.libraries import Array, device_of, dtype_name, namespace_of, to_host

_MINIMUM = {"int16": -(2**15), "int32": -(2**31), "int64": -(2**63)}


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
