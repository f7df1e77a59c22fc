"""A table X of samples and features, checked.

An array stays in its own library and on its own device. A frame whose columns all hold numbers
becomes an array, and a sparse matrix of SciPy an `arrays.SparseTable`; NumPy converts anything
else. Some messages contain, word for word, phrases that scikit-learn's estimator checks look for.
"""

from __future__ import annotations

from typing import Any

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.arrays.sparse import from_scipy
from gpustump.data.frames import columns_of, numbers_of
from gpustump.data.input_arrays import as_array


def check_table(X: Any, *, min_features: int = 1, name: str = "X") -> Array:
    """A two-dimensional table of real numbers, as an array.

    Parameters
    ----------
    X : array, frame or sparse matrix (n_samples, n_features), or anything that NumPy converts
    min_features : int
        The smallest number of columns that is accepted.
    name : str
        What the argument is called in messages.

    Returns
    -------
    array (n_samples, n_features)
        Or an `arrays.SparseTable`.

    Raises
    ------
    TypeError
        If X holds something other than booleans, integers or floats of up to 64 bits, or is sparse
        in a way that is not SciPy's.
    ValueError
        If X is not two-dimensional, is empty, has too few columns, or holds complex numbers; or if
        a column of a frame does not hold numbers.
    """
    X = _sparse_matrix(X, name) if (is_sparse := is_sparse_matrix(X)) else X
    if not is_sparse and not arrays.is_sparse(X):
        frame = columns_of(X, name)
        X = as_array(X, name) if frame is None else numbers_of(frame)
    dtype = arrays.dtype_name(X)
    if is_sparse and dtype == "float16":
        raise TypeError(
            f"{name} is a sparse matrix of float16, which SciPy does not compute with; "
            f"pass {name}.astype('float32')."
        )
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
    if n_samples == 0 or n_features == 0:
        what = "feature(s)" if n_samples else "sample(s)"
        raise ValueError(
            f"{name} has 0 {what} (shape={tuple(X.shape)}) while a minimum of 1 is required."
        )
    if n_features < min_features:
        raise ValueError(
            f"{name} has {n_features} features, but at least {min_features} are needed here."
        )
    return from_scipy(X) if is_sparse else X


def is_sparse_matrix(X: Any) -> bool:
    """Whether X is sparse as SciPy, CuPy or PyTorch has it, or a frame of sparse columns."""
    of_frame = getattr(X, "sparse", None)  # pandas has it where no column is dense
    is_frame = hasattr(of_frame, "to_coo") and X.shape[-1] > 0
    return _is_sparse_tensor(X) or hasattr(X, "tocsc") or is_frame


def _is_sparse_tensor(X: Any) -> bool:
    layout = getattr(X, "layout", None)  # a frame may have a column of this name
    return type(layout).__module__ == "torch" and "sparse" in str(layout)


def _sparse_matrix(X: Any, name: str) -> Any:
    """A matrix or array of SciPy with the values of what is sparse.

    Raises
    ------
    TypeError
        If it is sparse in a way that is not supported.
    ValueError
        If it lists a row or a column that it does not have: SciPy would write beyond its arrays.
    """
    if _is_sparse_tensor(X):
        raise TypeError(
            f"{name} is a sparse tensor of PyTorch; pass a dense one, {name}.to_dense(), or a "
            "sparse matrix of SciPy."
        )
    if type(X).__module__.startswith("cupyx"):
        raise TypeError(
            f"{name} is a sparse matrix of CuPy, and sparse tables are trained on the host: pass "
            f"{name}.get()."
        )
    if getattr(X, "format", None) in ("csr", "csc") and len(X.indices):
        what, n = ("column", X.shape[1]) if X.format == "csr" else ("row", X.shape[0])
        for own in (int(X.indices.min()), int(X.indices.max())):
            if not 0 <= own < n:
                raise ValueError(
                    f"{name} has {n} {what}s, but its indices list {what} {own}; they count from 0."
                )
    if hasattr(X, "tocsc"):
        return X
    if any(dtype.fill_value != 0 for dtype in X.dtypes):  # a frame of pandas
        raise TypeError(
            f"{name} has sparse columns that leave out other values than 0; make them dense: "
            f"{name}.sparse.to_dense()."
        )
    return X.sparse.to_coo()


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
