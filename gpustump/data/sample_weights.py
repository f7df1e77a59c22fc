"""Sample weights, checked: finite, not negative, and not all zero.

A sample of weight zero takes no part in training, as if it were not in the data.
"""

from __future__ import annotations

import numbers
from typing import Any

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.data.input_arrays import check_vector

SMALLEST = {"float64": 2.0**-1022, "float32": 2.0**-126}
"""The smallest normal number of a dtype. Smaller weights count as zero on every device, because
XLA, and CuPy's float32 kernels, flush them to zero."""


def check_weights(
    sample_weight: Any, X: Array, name: str = "sample_weight"
) -> tuple[Array, Array | None]:
    """The positive weights, and the rows that have one.

    Parameters
    ----------
    sample_weight : array (n_samples,), float, or None
        None and a single number give every sample the same weight.
    X : array (n_samples, ...)
        Its library and device are those of the results.
    name : str
        What the weights are called in messages.

    Returns
    -------
    weights : array (n_rows,) of float64
    rows : array (n_rows,) of int64, or None
        None if every sample has a positive weight.

    Raises
    ------
    TypeError
        If sample_weight does not hold real numbers.
    ValueError
        If it is not one-dimensional, has another length or device than X, holds NaN, infinite or
        negative weights, or holds only zeros.
    """
    xp, device = arrays.namespace_of(X), arrays.device_of(X)
    if sample_weight is None:
        return xp.ones(X.shape[0], dtype=xp.float64, device=device), None
    if isinstance(sample_weight, numbers.Real):
        sample_weight = xp.full(X.shape[0], float(sample_weight), dtype=xp.float64, device=device)
    weights = check_vector(sample_weight, name, X)
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
                f"{name} contains {problem}, the first at index {at}; weights must be "
                "finite and not negative."
            )
    counts = weights >= smallest
    if bool(xp.all(counts)):
        return weights, None
    if not bool(xp.any(counts)):
        raise ValueError(f"{name} is zero for every sample; at least one must be positive.")
    rows = xp.nonzero(counts)[0]
    return xp.take(weights, rows, axis=0), rows
