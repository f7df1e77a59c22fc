"""Moving arrays between libraries and devices.

A table is moved only if `engines.route` decides that it trains on another device. Labels, sample
weights and row numbers are moved to the library and device of their table.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpustump import arrays
from gpustump.arrays.devices import DeviceError, cupy_device, explained_errors, working_cupy
from gpustump.arrays.libraries import Array

_DLPACK_CUDA = 2
"""DLPack's number for memory of CUDA devices."""


def moved_to_device(x: Array, place: str) -> Array:
    """The same values on "cpu", "cuda" (CuPy's current device) or "cuda:N".

    Data that is on the device already is returned unchanged, in its own library.

    Raises
    ------
    DeviceError
        If the device cannot be used, or its memory is too small.
    """
    if arrays.device_name(x) == place:
        return x
    if place == "cpu":
        return x.cpu() if arrays.library_name(x) == "torch" else arrays.to_host(x)
    cupy, index = cupy_device(place)
    with cupy.cuda.Device(index), explained_errors(f"cuda:{index}"):
        return cupy.asarray(x if arrays.library_name(x) == "cupy" else arrays.to_host(x))


def is_on_cuda_device(x: Any) -> bool:
    """Whether an object offers memory of a CUDA device: by CUDA's array interface or by DLPack."""
    if hasattr(x, "__cuda_array_interface__"):
        return True
    return hasattr(x, "__dlpack_device__") and int(x.__dlpack_device__()[0]) == _DLPACK_CUDA


def as_cupy_array(x: Any, name: str) -> Array:
    """A CuPy array that shares the memory of an object; `name` is the argument's, for messages.

    Raises
    ------
    DeviceError
        If CuPy does not work here.
    """
    try:
        cupy = working_cupy()
    except DeviceError as error:
        raise DeviceError(
            f"{name} ({type(x).__name__}) is on a GPU, and CuPy is needed to read it there: {error}"
        ) from error
    by_interface = hasattr(x, "__cuda_array_interface__")
    return cupy.asarray(x) if by_interface else cupy.from_dlpack(x)


def moved_to_device_of(values: Array, X: Array) -> Array:
    """The same values in the library and on the device of X."""
    if type(values) is type(X) is np.ndarray:
        return values
    xp, device = arrays.namespace_of(X), arrays.device_of(X)
    if arrays.namespace_of(values) is xp and arrays.device_of(values) == device:
        return values
    with arrays.computing_on(X), arrays.computing_on(values):
        if arrays.device_name(values) == arrays.device_name(X) != "cpu":
            return xp.from_dlpack(values)  # another library's array, on the same device
        return xp.asarray(np.array(arrays.to_host(values)), device=device)
