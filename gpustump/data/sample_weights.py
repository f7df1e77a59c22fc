"""Sample weights, checked: finite and not negative, with the rows that have one above zero."""

from __future__ import annotations

import numbers
from typing import Any

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.data.arrays_given import check_vector


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


SMALLEST = {"float64": 2.0**-1022, "float32": 2.0**-126}
"""Sample weights below the smallest normal number of their dtype count as zero, since they would be
one where subnormals are flushed: in XLA, and in all that CuPy compiles with float32."""
