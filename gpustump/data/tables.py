"""A table X of samples and features, checked.

An array stays in its own library and on its own device; anything else is converted by NumPy. Some
messages contain, word for word, phrases that scikit-learn's estimator checks look for.
"""

from __future__ import annotations

from typing import Any

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.data.input_arrays import as_array


def check_table(X: Any, *, min_features: int = 1, name: str = "X") -> Array:
    """A two-dimensional table of real numbers, as an array.

    Parameters
    ----------
    X : array (n_samples, n_features), or anything that NumPy converts to one
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
        sparse tensor.
    ValueError
        If X is not two-dimensional, is empty, has too few columns, or holds complex numbers.
    """
    if "sparse" in str(getattr(X, "layout", "")):
        raise TypeError(f"{name} is a sparse tensor; pass a dense one: {name}.to_dense().")
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
