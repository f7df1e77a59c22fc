"""Who takes part: gpustump on every array library, and the libraries people come from.

Each is a scikit-learn estimator, used as its users use it: its class, what it is given, and how
its rounds and threads are called there. Learning rates are left as each library sets them, since
they do not change what a round costs. Nothing is imported until a worker process asks for it.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bench.machine import gpus


def same(x: np.ndarray) -> Any:
    """The array as it is."""
    return x


def always() -> str | None:
    """No reason against taking part."""
    return None


@dataclass(frozen=True)
class Contender:
    """Something to fit, and how.

    Attributes
    ----------
    name : str
    needs : tuple of str
        Modules that must be importable; the first holds the estimator.
    estimator : str
        Its class.
    parameters : mapping
        What it is given beside rounds and threads.
    exact : bool
        Whether it looks at every threshold, rather than at a histogram's.
    rounds, threads : str or None
        The parameters for those; None if it has none (a worker's threads are limited anyway).
    place : callable
        NumPy's arrays to the library and device that it is measured on, outside the timing.
    unfit : callable
        Why it cannot take part, found out in its own process; None if it can.
    """

    name: str
    needs: tuple[str, ...]
    estimator: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    exact: bool = True
    rounds: str = "n_estimators"
    threads: str | None = None
    place: Callable[[np.ndarray], Any] = same
    unfit: Callable[[], str | None] = always

    def absent(self) -> str | None:
        """Which module is not installed, if one is not."""
        for module in self.needs:
            if importlib.util.find_spec(module.partition(".")[0]) is None:
                return f"{module} is not installed"
        return None

    def make(self, rounds: int, threads: int) -> Any:
        """A new estimator."""
        chosen = {**self.parameters, self.rounds: rounds}
        if self.threads:
            chosen[self.threads] = threads
        return getattr(importlib.import_module(self.needs[0]), self.estimator)(**chosen)


def finished(result: Any) -> Any:
    """A result once the device has finished computing it: GPUs answer before they are done."""
    library = type(result).__module__.partition(".")[0]
    if hasattr(result, "block_until_ready"):  # JAX
        result.block_until_ready()
    elif library == "torch" and result.is_cuda:
        importlib.import_module("torch").cuda.synchronize()
    elif library == "cupy":
        importlib.import_module("cupy").cuda.Device().synchronize()
    return result


def on_host(result: Any) -> np.ndarray:
    """A result as a NumPy array."""
    if hasattr(result, "cpu"):
        result = result.cpu()
    elif type(result).__module__.startswith("cupy"):
        result = result.get()
    return np.asarray(result)


def _torch_cpu(x: np.ndarray) -> Any:
    return importlib.import_module("torch").asarray(x)


def _torch_cuda(x: np.ndarray) -> Any:
    return importlib.import_module("torch").asarray(x, device="cuda")


def _jax(x: np.ndarray) -> Any:
    return importlib.import_module("jax.numpy").asarray(x)


def _cupy(x: np.ndarray) -> Any:
    return importlib.import_module("cupy").asarray(x)


def _no_gpu() -> str | None:
    return None if gpus() else "no CUDA GPU here"


def _no_cupy() -> str | None:
    import gpustump

    found = [device for device in gpustump.devices() if device.name.startswith("cuda")]
    return None if any(device.usable for device in found) else found[0].detail


def _no_torch_cuda() -> str | None:
    found = importlib.import_module("torch").cuda.is_available()
    return None if found else "PyTorch finds no CUDA GPU"


def _no_xgboost_cuda() -> str | None:
    # XGBoost without CUDA, or without a GPU, would train on the CPU and only print a warning.
    built = importlib.import_module("xgboost").build_info().get("USE_CUDA")
    return _no_gpu() or (None if built else "this XGBoost was built without CUDA")


def _gpustump(name: str, *needs: str, device: str, **options: Any) -> Contender:
    return Contender(
        name,
        ("gpustump", *needs),
        "AdaBoostClassifier",
        {"device": device},
        **options,
    )


BACKENDS = (
    _gpustump("gpustump numpy", device="cpu"),
    _gpustump("gpustump torch", "torch", device="cpu", place=_torch_cpu),
    _gpustump("gpustump jax", "jax", device="auto", place=_jax),
    _gpustump("gpustump cupy", "cupy", device="auto", place=_cupy, unfit=_no_cupy),
    _gpustump(
        "gpustump torch cuda", "torch", device="auto", place=_torch_cuda, unfit=_no_torch_cuda
    ),
)
"""gpustump on each array library, the data there already."""

PEERS = (
    _gpustump("gpustump", device="cpu"),
    _gpustump("gpustump cuda", "cupy", device="cuda:0", unfit=_no_cupy),
    Contender("scikit-learn AdaBoost", ("sklearn.ensemble",), "AdaBoostClassifier"),
    Contender(
        "XGBoost hist",
        ("xgboost",),
        "XGBClassifier",
        {"max_depth": 1, "tree_method": "hist"},
        exact=False,
        threads="n_jobs",
    ),
    Contender(
        "XGBoost exact",
        ("xgboost",),
        "XGBClassifier",
        {"max_depth": 1, "tree_method": "exact"},
        threads="n_jobs",
    ),
    Contender(
        "XGBoost cuda",
        ("xgboost",),
        "XGBClassifier",
        {"max_depth": 1, "tree_method": "hist", "device": "cuda"},
        exact=False,
        threads="n_jobs",
        unfit=_no_xgboost_cuda,
    ),
    Contender(
        "LightGBM",
        ("lightgbm",),
        "LGBMClassifier",
        {"num_leaves": 2, "verbosity": -1},
        exact=False,
        threads="n_jobs",
    ),
    Contender(
        "CatBoost",
        ("catboost",),
        "CatBoostClassifier",
        {"depth": 1, "verbose": False, "allow_writing_files": False},
        exact=False,
        rounds="iterations",
        threads="thread_count",
    ),
    Contender(
        "CatBoost cuda",
        ("catboost",),
        "CatBoostClassifier",
        {"depth": 1, "verbose": False, "allow_writing_files": False, "task_type": "GPU"},
        exact=False,
        rounds="iterations",
        threads="thread_count",
        unfit=_no_gpu,
    ),
)
"""Host arrays to a model, as each library does it. Only scikit-learn's is an exact AdaBoost too."""
