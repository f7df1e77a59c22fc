"""Who takes part: gpustump on every array library that works here, and scikit-learn's AdaBoost."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import gpustump
from bench.timing import Contender


def gpustump_on_backends(X: np.ndarray, y: np.ndarray) -> Iterator[Contender]:
    """gpustump's reference scan on NumPy, and on PyTorch, JAX and CuPy where they work."""
    yield Contender("gpustump numpy", _gpustump(X, y, "cpu"))
    if importlib.util.find_spec("torch"):
        import torch

        yield Contender("gpustump torch cpu", _gpustump(torch.asarray(X), torch.asarray(y), "cpu"))
    if importlib.util.find_spec("jax"):
        import jax.numpy as jnp

        yield Contender("gpustump jax", _gpustump(jnp.asarray(X), jnp.asarray(y), "auto"))
    if any(device.usable and device.name == "cuda:0" for device in gpustump.devices()):
        import cupy

        yield Contender("gpustump cupy", _gpustump(cupy.asarray(X), cupy.asarray(y), "cuda:0"))


def scikit_learn(X: np.ndarray, y: np.ndarray) -> Contender:
    """scikit-learn's AdaBoostClassifier as it comes."""
    from sklearn.ensemble import AdaBoostClassifier

    def fit(rounds: int) -> None:
        AdaBoostClassifier(n_estimators=rounds).fit(X, y)

    return Contender("scikit-learn AdaBoost", fit)


def _gpustump(X: Any, y: Any, device: str) -> Callable[[int], str]:
    def fit(rounds: int) -> str:
        model = gpustump.AdaBoostClassifier(n_estimators=rounds, device=device).fit(X, y)
        return model.model_.digest()

    return fit
