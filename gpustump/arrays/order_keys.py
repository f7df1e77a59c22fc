"""Integers that sort as floats do: all values are compared by them.

Values are never compared as floats. XLA on the CPU flushes subnormal numbers to zero in
comparisons, so JAX would find fewer distinct values than NumPy in the same data; and NaN would need
special treatment in every sort.
"""

from __future__ import annotations

import numpy as np

from gpustump.arrays.libraries import Array, device_of, dtype_name, namespace_of, to_host

_MINIMUM = {"int16": -(2**15), "int32": -(2**31), "int64": -(2**63)}

_WORKING = {
    **dict.fromkeys(("bool", "int8", "uint8", "int16", "uint16"), "float32"),
    **dict.fromkeys(("int32", "uint32", "int64", "uint64"), "float64"),
    **{name: name for name in ("float16", "float32", "float64")},
}


def working_dtype(dtype: str) -> str | None:
    """The float dtype in which values of a dtype are compared; None for unsupported dtypes.

    Floats keep their dtype. Booleans and integers of up to 16 bits are exact in float32, integers
    of 32 bits in float64. Integers of 64 bits beyond 2**53 are rounded to the nearest float64.
    """
    return _WORKING.get(dtype)


def as_working(x: Array) -> Array:
    """The values in their `working_dtype`; not copied if that is their dtype already."""
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

    The bit pattern of a float is a sign and a magnitude that grows with the absolute value. The key
    is the integer with this sign and this magnitude, so keys have the order of the floats. Both
    zeros have the same key.

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


def floats_of(keys: np.ndarray) -> np.ndarray:
    """The floats, in the host's memory, that keys were made from; none of them may be NaN's."""
    bits = np.where(keys < 0, np.iinfo(keys.dtype).min - keys, keys)
    return bits.view(keys.dtype.str.replace("i", "f"))
