"""Tables full of everything that engines, libraries and dtypes may disagree about.

Every table has a name; `made(name)` draws it, the same one every time. Nearly all have the same
shape, because JAX compiles anew for every shape.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Data:
    X: np.ndarray
    y: np.ndarray
    sample_weight: np.ndarray | None = None
    learning_rate: float = 1.0


DATA: dict[str, Callable[[np.random.Generator], Data]] = {}


def data(make: Callable[[np.random.Generator], Data]) -> Callable[[np.random.Generator], Data]:
    DATA[make.__name__] = make
    return make


def table(rng: np.random.Generator, shape: tuple[int, int] = (96, 5)) -> np.ndarray:
    return rng.normal(size=shape)


def labels(X: np.ndarray, rng: np.random.Generator, noise: float = 0.5) -> np.ndarray:
    """Labels that depend on the first features, with noise."""
    with np.errstate(all="ignore"):
        score = np.nan_to_num(X[:, : min(3, X.shape[1])].astype(np.float64)).clip(-9, 9).sum(axis=1)
    y = np.where(score - np.median(score) + rng.normal(scale=noise, size=len(X)) > 0, 1, -1)
    y[:2] = [1, -1]
    return y


def noisy(X: np.ndarray, rng: np.random.Generator, **how: object) -> Data:
    return Data(X, labels(X, rng), **how)


def with_missing(X: np.ndarray, rng: np.random.Generator, share: float = 0.3) -> np.ndarray:
    return np.where(rng.random(X.shape) < share, X.dtype.type(np.nan), X)


@data
def float16_with_missing_and_infinite(rng):
    X = with_missing(table(rng).astype(np.float16), rng)
    return noisy(np.where(X > 1.5, np.float16(np.inf), X), rng)


@data
def booleans(rng):
    X = rng.random((96, 5)) < 0.4
    return Data(X, np.where(X[:, 0] ^ (rng.random(96) < 0.3), 1, -1))


@data
def constant_features(rng):
    X = table(rng)
    X[:, [0, 2, 4]] = [3.0, -0.0, np.inf]
    return noisy(X, rng)


@data
def duplicated_features(rng):
    X = table(rng)
    return noisy(np.concatenate([X, X, -X[:, ::-1]], axis=1)[:, [5, 0, 14, 9, 1]], rng)


@data
def sorted_down(rng):
    X = np.sort(table(rng), axis=0)[::-1]
    return Data(X, labels(X, rng, noise=3.0))


@data
def missing_says_it_all(rng):
    X = with_missing(table(rng), rng)
    return Data(X, np.where(np.isnan(X[:, 3]) ^ (rng.random(96) < 0.1), 1, -1))


@data
def present_or_missing_only(rng):
    X = with_missing(np.ones((96, 5), dtype=np.float32), rng, 0.5)
    return Data(X, np.where(np.isnan(X[:, 1]) ^ (rng.random(96) < 0.3), 1, -1))


@data
def a_feature_wholly_missing(rng):
    X = with_missing(table(rng), rng, 0.1)
    X[:, 0] = np.nan
    X[:, 3] = np.nan
    return noisy(X, rng)


@data
def infinities(rng):
    X = table(rng)
    X[X > 1.0], X[X < -1.0] = np.inf, -np.inf
    return noisy(X, rng)


@data
def subnormal_float32(rng):
    smallest = np.finfo(np.float32).smallest_subnormal
    return noisy(rng.integers(-6, 7, size=(96, 5)).astype(np.float32) * smallest, rng)


@data
def neighbouring_floats(rng):
    X = 1.0 + rng.integers(0, 9, size=(96, 5)) * 2.0**-52
    return Data(X, np.resize([1, -1, -1, 1, 1], 96))


@data
def both_zeros(rng):
    X = rng.choice([0.0, -0.0, 5e-324, -5e-324, 1.0], size=(96, 5))
    return noisy(X, rng)


@data
def weights_whose_scaled_values_are_subnormal(rng):
    weights = np.asarray([(2.0**53 - 1) * 2.0**16, 63 * 2.0**10, 2.0**-1022])
    return Data(np.asarray([[0.0], [1.0], [0.0]]), np.asarray([1, -1, -1]), weights)


@data
def zero_weights(rng):
    X = with_missing(table(rng), rng, 0.2)
    return noisy(X, rng, sample_weight=rng.uniform(size=96) * (rng.random(96) < 0.6))


@data
def subnormal_float32_weights(rng):
    """They count as zero, since some libraries flush them."""
    weights = rng.choice([1e-40, 1e-37, 3e-38], size=96).astype(np.float32)
    return noisy(table(rng), rng, sample_weight=weights)


@data
def separable(rng):
    X = table(rng)
    return Data(X, np.where(X[:, 2] > 0.1, 1, -1))


WEIGHTS: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "weights_over_12_orders_of_magnitude": lambda rng: 10.0 ** rng.uniform(-6, 6, size=96),
    "weights_over_600_orders_of_magnitude": lambda rng: 10.0 ** rng.uniform(-300, 300, size=96),
    "one_dominating_sample": lambda rng: np.where(np.arange(96) == 17, 1e15, 1.0),
    "weights_near_overflow": lambda rng: rng.uniform(1.0, 1.7, size=96) * 1e308,
    "weights_near_underflow": lambda rng: rng.uniform(0.0, 4.0, size=96) * 2.0**-1022,
    "float32_weights": lambda rng: rng.uniform(size=96).astype(np.float32),
    "integer_weights": lambda rng: rng.integers(0, 5, size=96),
}

DATA |= {
    name: lambda rng, weigh=weigh: noisy(table(rng), rng, sample_weight=weigh(rng))
    for name, weigh in WEIGHTS.items()
}

DATA |= {
    "float64": lambda rng: noisy(table(rng), rng),
    "float32": lambda rng: noisy(table(rng).astype(np.float32), rng),
    "int8": lambda rng: noisy(rng.integers(-128, 128, size=(96, 5), dtype=np.int8), rng),
    "uint8": lambda rng: noisy(rng.integers(0, 256, size=(96, 5), dtype=np.uint8), rng),
    "int16": lambda rng: noisy(rng.integers(-(2**15), 2**15, size=(96, 5), dtype=np.int16), rng),
    "int32": lambda rng: noisy(rng.integers(-(2**31), 2**31, size=(96, 5), dtype=np.int32), rng),
    "int64_beyond_2_to_53": lambda rng: noisy(
        2**53 + rng.integers(-20, 20, size=(96, 5), dtype=np.int64), rng
    ),
    "one_feature": lambda rng: noisy(table(rng, (96, 1)), rng),
    "two_samples": lambda rng: Data(table(rng, (2, 5)), np.asarray([1, -1])),
    "more_features_than_samples": lambda rng: Data(
        table(rng, (10, 70)), np.resize([1, 1, -1, 1, -1], 10)
    ),
    "full_of_ties": lambda rng: noisy(rng.integers(0, 3, size=(96, 5)).astype(np.float64), rng),
    "only_constant_features": lambda rng: Data(
        np.ones((96, 5)), np.where(np.arange(96) < 60, 1, -1)
    ),
    "missing": lambda rng: noisy(with_missing(table(rng), rng), rng),
    "subnormal": lambda rng: noisy(rng.integers(-6, 7, size=(96, 5)) * 5e-324, rng),
    "near_overflow": lambda rng: noisy(rng.uniform(-1.7, 1.7, size=(96, 5)) * 1e308, rng),
    "learning_rate_three": lambda rng: noisy(table(rng), rng, learning_rate=3.0),
    "no_edge_at_all": lambda rng: Data(
        np.tile([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], (8, 1)),
        np.resize([1, -1, -1, 1], 32),
    ),
}


@functools.cache
def made(name: str) -> Data:
    return DATA[name](np.random.default_rng(sorted(DATA).index(name)))


ABOUT_LIBRARIES = (
    "a_feature_wholly_missing",
    "booleans",
    "both_zeros",
    "float16_with_missing_and_infinite",
    "float32",
    "full_of_ties",
    "infinities",
    "int16",
    "int32",
    "int64_beyond_2_to_53",
    "int8",
    "missing",
    "near_overflow",
    "subnormal",
    "subnormal_float32",
    "subnormal_float32_weights",
    "uint8",
    "weights_near_overflow",
    "weights_near_underflow",
    "weights_over_600_orders_of_magnitude",
    "weights_whose_scaled_values_are_subnormal",
    "zero_weights",
)
"""Tables whose dtypes, values or weights a library may take differently from NumPy.

What is special about the others (labels, duplicates, learning rates, shapes) is decided on the
host, or by integers alone.
"""
