"""What the caller gave, as an array: arrays of any library, and anything that NumPy can convert."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.arrays.moving import as_cupy_array, is_on_cuda_device, moved_to_device_of


def check_vector(values: Any, name: str, X: Array) -> Array:
    """One real number for each row of X, in X's library and on its device.

    Host data of another library (a list, a NumPy array beside a CPU tensor) is converted. Data on
    another device is refused, not moved.

    Parameters
    ----------
    values : array (n_samples,), or anything that `as_array` takes
    name : str
        What the argument is called in messages.
    X : array (n_samples, ...)

    Returns
    -------
    array (n_samples,)

    Raises
    ------
    TypeError
        If the values are not real numbers.
    ValueError
        If they are not one-dimensional, or have another length or device than X.
    """
    given_as_array = arrays.is_array(values)
    values = as_array(values, name)
    dtype = arrays.dtype_name(values)
    if arrays.working_dtype(dtype) is None:
        raise TypeError(f"{name} has dtype {dtype}, but must hold real numbers.")
    if values.ndim != 1:
        hint = f" Try {name}.reshape(-1)." if math.prod(values.shape) == X.shape[0] else ""
        raise ValueError(
            f"{name} must have one dimension, (n_samples,), but its shape is "
            f"{tuple(values.shape)}.{hint}"
        )
    if values.shape[0] != X.shape[0]:
        raise ValueError(
            f"X and {name} have inconsistent numbers of samples: {X.shape[0]} and "
            f"{values.shape[0]}."
        )
    if given_as_array:
        check_same_device(values, name, X)
    return moved_to_device_of(values, X)


def check_same_device(values: Array, name: str, X: Array) -> None:
    """Refuse an array that is on another device than X."""
    here, there = arrays.device_name(X), arrays.device_name(values)
    if here != there:
        raise ValueError(
            f"X is on {here} but {name} is on {there}; move one of them so that both are on the "
            "same device."
        )


def as_array(values: Any, name: str, *, keeps_objects: bool = False) -> Array:
    """An array of any library, without gradients or foreign byte order; NumPy converts the rest.

    Objects that offer memory of a GPU, but belong to no array library, are read with CuPy. Python
    objects become numbers if all of them are, unless `keeps_objects`.

    Raises
    ------
    TypeError
        For NumPy's masked arrays, whose masked values would count as values, and for lazy arrays of
        Dask, which hold no values yet.
    ValueError
        If NumPy cannot convert the object.
    DeviceError
        If an object is on a GPU and CuPy does not work here.
    """
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(
            f"{name} is a masked array, and masks are not supported; pass {name}.filled(numpy.nan) "
            "to make the masked values missing."
        )
    refuse_plan(values, name)
    if arrays.is_array(values):
        plain = arrays.plain(values)
        is_of_objects = isinstance(plain, np.ndarray) and plain.dtype == object and plain.ndim
        return _as_numbers(plain) if is_of_objects and not keeps_objects else plain
    if is_on_cuda_device(values):
        return as_cupy_array(values, name)
    if hasattr(values, "__dlpack__") and not hasattr(values, "__array__"):
        return np.from_dlpack(values)
    try:
        found = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} cannot be made into an array: {error}") from error
    is_of_objects = found.dtype == object and found.ndim and not keeps_objects
    return _as_numbers(found) if is_of_objects else found


_PLANS = {"LazyFrame": "collect()", "dask": "compute()"}
"""How users turn a plan into data, by the name of its type or of its library."""

_ON_DASK = " Or take gpustump.dask, whose functions take such collections."


def refuse_plan(values: Any, name: str) -> None:
    """Refuse a frame or array that is a plan of how to compute its rows.

    Raises
    ------
    TypeError
    """
    library, kind = type(values).__module__.partition(".")[0], type(values).__name__
    how = _PLANS.get(kind) or _PLANS.get(library)
    if how is not None:
        more = _ON_DASK if library == "dask" else ""
        raise TypeError(
            f"{name} ({kind} of {library}) is a plan that holds no rows yet; pass {name}.{how}."
            f"{more}"
        )


def first_where(condition: Array) -> int | None:
    """The index of the first true value of (n,), or None if there is none."""
    xp = arrays.namespace_of(condition)
    return int(xp.argmax(xp.astype(condition, xp.int8))) if bool(xp.any(condition)) else None


def refuse_problems(problems: Mapping[str, Array], name: str, wanted: str = "") -> None:
    """Refuse an argument with a problem, which is true somewhere in an array of booleans (n,)."""
    for problem, where in problems.items():
        if (at := first_where(where)) is not None:
            raise ValueError(f"{name} contains {problem}, the first at index {at}{wanted}.")


def refuse_values(where: Array, values: Array, wanted: str) -> None:
    """Refuse an argument if some of its values (n,) are wrong; the message shows the first one."""
    if (at := first_where(where)) is not None:
        raise ValueError(f"{wanted}; got {float(values[at])!r} at index {at}.")


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, or one of pandas' missing values."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def _as_numbers(objects: np.ndarray) -> np.ndarray:
    """Objects as float64 if each is a number or missing; unchanged otherwise, or if any is text."""
    if any(isinstance(value, str | bytes) for value in objects.flat):
        return objects
    with contextlib.suppress(TypeError, ValueError):
        missing = np.vectorize(is_missing, otypes=[bool])(objects)
        return np.where(missing, np.nan, objects).astype(np.float64)
    return objects
