"""Square roots that are correctly rounded, as IEEE 754 asks, in every library.

PyTorch takes the square roots of CPU tensors from MKL, which is wrong in the last bit for about one
number in a hundred. NumPy's are right, and the two share memory there.
"""

from __future__ import annotations

import sys

import array_api_compat
import numpy as np

from gpustump.arrays.libraries import Array, namespace_of, on_host, to_host


def square_root(x: Array) -> Array:
    """The square root of each number, float64 of any shape, rounded once."""
    if array_api_compat.is_torch_array(x) and on_host(x):
        return sys.modules["torch"].from_numpy(np.asarray(np.sqrt(to_host(x))))
    return namespace_of(x).sqrt(x)
