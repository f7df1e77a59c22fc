"""What may come in: tables, labels in {-1, +1} and sample weights, checked before anything is done.

Every refusal names the argument, what was found in it and what is wanted. Arrays stay in their own
library and on their own device; anything that is not an array is taken as NumPy takes it. The
phrases that scikit-learn's own estimator checks look for are kept word for word.
"""

from __future__ import annotations

import contextlib
import math
import numbers
from typing import Any

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.placement import is_on_gpu, taken_by_cupy
from gpustump.weights import SMALLEST


def check_table(X: Any, *, min_features: int = 1, name: str = "X") -> Array:
    """A two-dimensional table of real numbers, as an array.

    Parameters
    ----------
    X : array (n_samples, n_features), or anything that NumPy turns into one
    min_features : int
        The fewest columns that will do.

    Raises
    ------
    TypeError
        If X holds something other than booleans, integers or floats of up to 64 bits.
    ValueError
        If X is not two-dimensional, empty, or has too few columns.
    """
    if "sparse" in str(getattr(X, "layout", "")):
        raise TypeError(f"{name} is a sparse tensor; only dense ones are taken: {name}.to_dense().")
    X = as_array(X, name)
    dtype = arrays.dtype_name(X)
    if "complex" in dtype:
        raise ValueError(
            f"Complex data not supported: {name} has dtype {dtype}. Pass real numbers, for "
            "example its real and imaginary parts as columns of their own."
        )
    if arrays.working_dtype(dtype) is None:
        raise TypeError(
            f"{name} has dtype {dtype}; booleans, integers and float16, float32 or float64 are "
            "wanted. Encode text and categories as numbers first."
        )
    if X.ndim != 2:
        raise ValueError(
            f"{name} must have two dimensions, (n_samples, n_features), but its shape is "
            f"{tuple(X.shape)}. Reshape your data either using X.reshape(-1, 1) if it has a "
            "single feature or X.reshape(1, -1) if it contains a single sample."
        )
    n_samples, n_features = X.shape
    if n_samples == 0:
        raise ValueError(
            f"{name} has 0 sample(s) (shape={tuple(X.shape)}) while a minimum of 1 is required."
        )
    if n_features == 0:
        raise ValueError(
            f"{name} has 0 feature(s) (shape={tuple(X.shape)}) while a minimum of 1 is required."
        )
    if n_features < min_features:
        raise ValueError(
            f"{name} has {n_features} features, but at least {min_features} are needed here."
        )
    return X


def check_signs(y: Any, X: Array) -> Array:
    """Labels in {-1, +1}, both present, as float64 beside X: its library, its device, its length.

    Raises
    ------
    TypeError
        If y does not hold real numbers.
    ValueError
        If y has another length or device than X, or other labels than -1 and +1, or only one.
    """
    y = check_vector(y, "y", X)
    xp = arrays.namespace_of(y)
    y = xp.astype(y, xp.float64)
    is_sign = (y == 1.0) | (y == -1.0)
    if not bool(xp.all(is_sign)):
        if bool(xp.any(xp.isnan(y))):
            raise ValueError("y contains NaN; every sample needs a label, -1 or +1.")
        found = float(y[int(xp.argmin(xp.astype(is_sign, xp.int8)))])
        raise ValueError(f"y must hold the labels -1 and +1 only, but it also holds {found:g}.")
    check_both_signs(y, "y")
    return y


def check_both_signs(y: Array, name: str) -> None:
    """Refuse labels that are all +1 or all -1."""
    xp = arrays.namespace_of(y)
    if not bool(xp.any(y > 0)) or not bool(xp.any(y < 0)):
        raise ValueError(
            f"{name} holds the label {int(y[0]):+d} only, but the classifier needs samples of two "
            "classes, -1 and +1."
        )


def check_weights(sample_weight: Any, X: Array) -> tuple[Array, Array | None]:
    """Positive float64 weights beside X, and the rows that have one (None if all do).

    A sample of weight zero takes no part at all: it is as if it were not there.

    Raises
    ------
    TypeError
        If sample_weight does not hold real numbers.
    ValueError
        If it has another length or device than X, or holds NaN, infinite or negative weights, or
        nothing but zeros.
    """
    xp, device = arrays.namespace_of(X), arrays.device_of(X)
    if sample_weight is None:
        return xp.ones(X.shape[0], dtype=xp.float64, device=device), None
    if isinstance(sample_weight, numbers.Real):
        sample_weight = xp.full(X.shape[0], float(sample_weight), dtype=xp.float64, device=device)
    weights = check_vector(sample_weight, "sample_weight", X)
    smallest = SMALLEST.get(arrays.dtype_name(weights), SMALLEST["float64"])
    weights = xp.astype(weights, xp.float64)
    for problem, where in (
        ("NaN", xp.isnan(weights)),
        ("infinite weights", xp.isinf(weights)),
        ("negative weights", weights <= -smallest),
    ):
        if bool(xp.any(where)):
            at = int(xp.argmax(xp.astype(where, xp.int8)))
            raise ValueError(
                f"sample_weight contains {problem}, the first at index {at}; weights must be "
                "finite and not negative."
            )
    counts = weights >= smallest
    if bool(xp.all(counts)):
        return weights, None
    if not bool(xp.any(counts)):
        raise ValueError("sample_weight is zero for every sample; at least one must be positive.")
    rows = xp.nonzero(counts)[0]
    return xp.take(weights, rows, axis=0), rows


def check_vector(values: Any, name: str, X: Array) -> Array:
    """One real number per row of X, in X's library and on its device.

    Host data of another library (a list, a NumPy array beside a CPU tensor) is brought over;
    between devices nothing is moved unasked.
    """
    given_as_array = arrays.is_array(values)
    values = as_array(values, name)
    dtype = arrays.dtype_name(values)
    if arrays.working_dtype(dtype) is None:
        raise TypeError(f"{name} has dtype {dtype}; real numbers are wanted.")
    if values.ndim != 1:
        raise ValueError(
            f"{name} must have one dimension, (n_samples,), but its shape is "
            f"{tuple(values.shape)}. Try {name}.reshape(-1)."
        )
    if values.shape[0] != X.shape[0]:
        raise ValueError(
            f"X and {name} have inconsistent numbers of samples: {X.shape[0]} and "
            f"{values.shape[0]}."
        )
    if given_as_array:
        check_same_device(values, name, X)
    return brought_beside(values, X)


def check_same_device(values: Array, name: str, X: Array) -> None:
    """Refuse an array that lives on another device than X."""
    here, there = arrays.device_name(X), arrays.device_name(values)
    if here != there:
        raise ValueError(
            f"X is on {here} but {name} is on {there}; move one of them so that both are on the "
            "same device."
        )


def brought_beside(values: Array, X: Array) -> Array:
    """The same values in the library and on the device of X."""
    xp, device = arrays.namespace_of(X), arrays.device_of(X)
    if arrays.namespace_of(values) is xp and arrays.device_of(values) == device:
        return values
    with arrays.computing_on(X), arrays.computing_on(values):
        if arrays.device_name(values) == arrays.device_name(X) != "cpu":
            return xp.from_dlpack(values)  # another library's array, on the same device
        return xp.asarray(np.array(arrays.to_host(values)), device=device)


def as_array(values: Any, name: str) -> Array:
    """An array as it is, without gradients or a foreign byte order; anything else through NumPy.

    Raises
    ------
    TypeError
        For NumPy's masked arrays, whose hidden values would be taken for values.
    DeviceError
        For what lives on a GPU and belongs to no array library, if CuPy cannot take it.
    """
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(
            f"{name} is a masked array, and masks are not read here; pass {name}.filled(numpy.nan) "
            "to make the masked values missing."
        )
    if arrays.is_array(values):
        return arrays.plain(values)
    if is_on_gpu(values):
        return taken_by_cupy(values, name)
    if hasattr(values, "__dlpack__") and not hasattr(values, "__array__"):
        return np.from_dlpack(values)
    try:
        found = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} cannot be made into an array: {error}") from error
    return _as_numbers(found) if found.dtype == object and found.ndim else found


def stands_for_nothing(value: Any) -> bool:
    """None, NaN, or the missing value of pandas, which does not even compare with itself."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def _as_numbers(objects: np.ndarray) -> np.ndarray:
    """Objects as float64 if they are numbers or stand for nothing; otherwise as they are."""
    with contextlib.suppress(TypeError, ValueError):
        missing = np.vectorize(stands_for_nothing, otypes=[bool])(objects)
        return np.where(missing, np.nan, objects).astype(np.float64)
    return objects


def check_real(value: Any, name: str, *, above: float = -math.inf) -> float:
    """A finite real number above a bound."""
    wanted = "a finite number" + ("" if above == -math.inf else f" above {above:g}")
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be {wanted}; got {value!r}.")
    with contextlib.suppress(OverflowError):  # a whole number beyond all floats
        if math.isfinite(value) and float(value) > above:
            return float(value)
    raise ValueError(f"{name} must be {wanted}; got {value!r}.")


WEAK_LEARNERS = ("stump", "interval")


def check_weak_learner(weak_learner: Any) -> str:
    """What a round of boosting may choose from."""
    if weak_learner not in WEAK_LEARNERS:
        raise ValueError(
            f"weak_learner must be {' or '.join(map(repr, WEAK_LEARNERS))}; got {weak_learner!r}."
        )
    return str(weak_learner)


def check_jobs(n_jobs: Any) -> int | None:
    """A number of threads; None and -1 stand for all that there are."""
    return None if n_jobs is None or n_jobs == -1 else check_count(n_jobs, "n_jobs")


_UNITS = {"b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12}
_UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}


def check_bytes(value: Any, name: str) -> int:
    """A number of bytes: a whole number, or text such as "500 MB", "2GB" or "1.5 GiB"."""
    if not isinstance(value, str):
        return check_count(value, name)
    number = value.strip().rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    unit = value.strip()[len(number) :].lower() or "b"
    with contextlib.suppress(ValueError):
        found = float(number) * _UNITS.get(unit, math.nan)
        if math.isfinite(found) and found >= 1:
            return int(found)
    raise ValueError(
        f'{name} must be a number of bytes, such as 2000000000, "500 MB" or "2 GiB"; got {value!r}.'
    )


def check_count(value: Any, name: str, *, least: int = 1) -> int:
    """A whole number, at least `least`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be a whole number of at least {least}; got {value!r}.")
    if value < least:
        raise ValueError(f"{name} must be at least {least}; got {value!r}.")
    return int(value)
