"""Checks of arguments that several functions of this package share."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.data.input_arrays import as_array
from gpustump.data.parameters import check_real
from gpustump.data.weights import check_weights
from gpustump.engines.integer_weights import IntegerWeights


def host_vector(values: Any, name: str) -> np.ndarray:
    """Real numbers in one dimension, as float64 on the host."""
    values = as_array(values, name)
    check_numbers(values, name, "pass one number a round")
    found: np.ndarray = arrays.to_host(values).astype(np.float64)
    return found


def weights_of(sample_weight: Any, X: Array) -> IntegerWeights:
    """The weight of each sample on the host, in the integers of training; 1 each for None."""
    if sample_weight is None:
        return IntegerWeights(np.ones(X.shape[0], dtype=np.int64), int(X.shape[0]))
    with arrays.computing_on(X):
        positive, rows = check_weights(sample_weight, X)
        found = IntegerWeights.of(arrays.to_host(positive))
    if rows is None:
        return found
    values = np.zeros(X.shape[0], dtype=np.int64)
    values[arrays.to_host(rows)] = found.values
    return IntegerWeights(values, found.total)


def check_numbers(values: Array, name: str, advice: str) -> None:
    """Refuse an array that does not hold real numbers in one dimension."""
    if arrays.working_dtype(arrays.dtype_name(values)) is None:
        raise TypeError(f"{name} has dtype {arrays.dtype_name(values)}; real numbers are wanted.")
    if values.ndim != 1:
        raise ValueError(
            f"{name} must have one dimension, but its shape is {tuple(values.shape)}; {advice}."
        )


def within(value: Any, name: str, interval: str) -> float:
    """A number in an interval with the ends 0 and 1, written as in mathematics: "(0, 1]"."""
    number = check_real(value, name)
    at_ends = (number == 0 and interval[0] == "[") or (number == 1 and interval[-1] == "]")
    if not (0 < number < 1 or at_ends):
        raise ValueError(f"{name} must be in {interval}; got {value!r}.")
    return number
