"""A table X of samples and features, checked.

An array stays in its own library and on its own device. A frame whose columns all hold numbers
becomes an array; NumPy converts anything else. Some messages contain, word for word, phrases that
scikit-learn's estimator checks look for.
"""

from __future__ import annotations

from typing import Any

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.data.frames import columns_of, numbers_of
from gpustump.data.input_arrays import as_array


def check_table(X: Any, *, min_features: int = 1, name: str = "X") -> Array:
    """A two-dimensional table of real numbers, as an array.

    Parameters
    ----------
    X : array or frame (n_samples, n_features), or anything that NumPy converts to an array
    min_features : int
        The smallest number of columns that is accepted.
    name : str
        What the argument is called in messages.

    Returns
    -------
    array (n_samples, n_features)

    Raises
    ------
    TypeError
        If X holds something other than booleans, integers or floats of up to 64 bits, or is a
        sparse tensor or matrix.
    ValueError
        If X is not two-dimensional, is empty, has too few columns, or holds complex numbers; or if
        a column of a frame does not hold numbers.
    """
    if "sparse" in str(getattr(X, "layout", "")):
        raise TypeError(f"{name} is a sparse tensor; pass a dense one: {name}.to_dense().")
    if hasattr(X, "toarray"):  # of SciPy
        raise TypeError(
            f"{name} is a sparse {type(X).__name__}; pass a dense one: {name}.toarray()."
        )
    frame = columns_of(X, name)
    X = as_array(X, name) if frame is None else numbers_of(frame)
    dtype = arrays.dtype_name(X)
    if "complex" in dtype:
        raise ValueError(
            f"Complex data not supported: {name} has dtype {dtype}. Pass real numbers, for "
            "example its real and imaginary parts as columns of their own."
        )
    if arrays.working_dtype(dtype) is None:
        raise TypeError(
            f"{name} has dtype {dtype}, but must hold booleans, integers, float16, float32 or "
            f"float64. {_remedy(dtype)}"
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


def _remedy(dtype: str) -> str:
    """How to turn a table of this dtype into one of numbers."""
    if "float" in dtype:  # bfloat16, float8_e4m3fn, float128
        narrow = "float64" if "128" in dtype or "longdouble" in dtype else "float32"
        return f"Convert it to {narrow} first."
    if "time" in dtype:
        return "Turn dates and durations into numbers first, such as days."
    if "[(" in dtype:
        return "Pass a plain array: numpy.lib.recfunctions.structured_to_unstructured makes one."
    return "Encode text and categories as numbers first."
