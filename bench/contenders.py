"""Who takes part: gpustump on every array library, and the libraries people come from.

Each is a scikit-learn estimator, used as its users use it: its class, what it is given, and how
its rounds and threads are called there. Learning rates are left as each library sets them, since
they do not change what a round costs. Nothing is imported until a worker process asks for it.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bench.machine import gpus


def as_it_is(x: np.ndarray) -> Any:
    """A host array where it is."""
    return x


def nothing_against(_: Any = None) -> str | None:
    """No reason against taking part; no device known."""
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
    made : callable or None
        How many rounds a fitted model holds; None if that is not known. A fit that ends early
        would make the others look cheap.
    device : callable
        Where a fitted model says that it was trained; None if it does not say.
    rounds : str
        The parameter for their number.
    threads : str or None
        The parameter for theirs; None if it has none (a worker's are limited anyway).
    place : callable
        NumPy's arrays to the library and device that it is measured on, outside the timing.
    variables : mapping
        Environment variables that hold in its process.
    large : tuple of str
        Modules that only a large fit imports: they are loaded before memory is weighed.
    unfit : callable
        Why it cannot take part, found out in its own process; None if it can.
    """

    name: str
    needs: tuple[str, ...]
    estimator: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    exact: bool = True
    made: Callable[[Any], int] | None = None
    device: Callable[[Any], str | None] = nothing_against
    rounds: str = "n_estimators"
    threads: str | None = None
    place: Callable[[np.ndarray], Any] = as_it_is
    variables: Mapping[str, str] = field(default_factory=dict)
    large: tuple[str, ...] = ()
    unfit: Callable[[], str | None] = nothing_against

    def absent(self) -> str | None:
        """Which module is not installed, if one is not."""
        for module in self.needs:
            if importlib.util.find_spec(module.partition(".")[0]) is None:
                return f"{module} is not installed"
        return None

    def load(self) -> None:
        """Import all that it needs."""
        os.environ.update(self.variables)
        for module in reversed(self.needs):
            importlib.import_module(module)
        self._class()

    def make(self, rounds: int, threads: int) -> Any:
        """A new estimator."""
        chosen = {**self.parameters, self.rounds: rounds}
        if self.threads:
            chosen[self.threads] = threads
        return self._class()(**chosen)

    def disqualified(self, model: Any, rounds: int) -> str | None:
        """Why the time of this fit cannot count: it stopped early, or ran on another device."""
        if self.made is not None and (made := self.made(model)) != rounds:
            return f"it stopped after {made} of {rounds} rounds"
        wanted, used = self.parameters.get("device"), self.device(model)
        if wanted and used and not used.startswith(wanted.partition(":")[0]):
            return f"it trained on {used}, not on {wanted}"
        return None

    def _class(self) -> Any:
        return getattr(importlib.import_module(self.needs[0]), self.estimator)


def synchronise() -> None:
    """Wait for the GPUs that this process uses: they answer before they are done."""
    torch, cupy, jax = (sys.modules.get(name) for name in ("torch", "cupy", "jax"))
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()
    if cupy is not None:
        cupy.cuda.Device().synchronize()
    if jax is not None:
        jax.block_until_ready(jax.live_arrays())


def release() -> None:
    """Give back the GPU memory that libraries keep for later: others share the GPU.

    JAX keeps what it has taken; it takes only what it needs (see `worker`).
    """
    torch, cupy = sys.modules.get("torch"), sys.modules.get("cupy")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    if cupy is not None:
        cupy.get_default_memory_pool().free_all_blocks()


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


def _jax_cpu(x: np.ndarray) -> Any:
    jax = importlib.import_module("jax")
    return jax.device_put(x, jax.devices("cpu")[0])


def _jax_cuda(x: np.ndarray) -> Any:
    jax = importlib.import_module("jax")
    return jax.device_put(x, jax.devices("cuda")[0])


def _cupy(x: np.ndarray) -> Any:
    return importlib.import_module("cupy").asarray(x)


def _no_cupy() -> str | None:
    import gpustump

    found = [device for device in gpustump.devices() if device.name.startswith("cuda")]
    return None if found[0].usable else found[0].detail


def _no_kernels() -> str | None:
    from gpustump.engines.cuda.device import device_named

    return _no_cupy() or (None if device_named("cuda") else "the GPU is too old for the kernels")


def _no_torch_cuda() -> str | None:
    found = importlib.import_module("torch").cuda.is_available()
    return None if found else "PyTorch finds no CUDA GPU"


def _no_jax_cuda() -> str | None:
    try:
        importlib.import_module("jax").devices("cuda")
    except RuntimeError:
        return "JAX finds no CUDA GPU"
    return None


def _no_xgboost_cuda() -> str | None:
    built = importlib.import_module("xgboost").build_info().get("USE_CUDA")
    return None if built and gpus() else "no CUDA GPU here, or XGBoost is built without CUDA"


def _no_catboost_cuda() -> str | None:
    count = importlib.import_module("catboost.utils").get_gpu_device_count()
    return None if count else "CatBoost finds no CUDA GPU"


# Functions, not lambdas: a contender is sent to its process.


def _gpustump_rounds(model: Any) -> int:
    return len(model.rounds_[0])


def _gpustump_device(model: Any) -> str:
    return str(model.device_)


def _scikit_learn_rounds(model: Any) -> int:
    return len(model.estimators_)


def _xgboost_rounds(model: Any) -> int:
    return int(model.get_booster().num_boosted_rounds())


def _lightgbm_rounds(model: Any) -> int:
    return int(model.booster_.num_trees())


def _catboost_rounds(model: Any) -> int:
    return int(model.tree_count_)


def _xgboost_device(model: Any) -> str | None:
    """Where it trained in the end: without a GPU, XGBoost only warns and takes the CPU."""
    config = json.loads(model.get_booster().save_config())
    return str(config["learner"]["generic_param"]["device"])


_KERNELS = tuple(
    f"gpustump.engines.cpu.{stage}" for stage in ("distribution", "direct", "prediction")
)


def _gpustump(name: str, *needs: str, device: str, **options: Any) -> Contender:
    return Contender(
        name,
        ("gpustump", *needs),
        "AdaBoostClassifier",
        {"device": device},
        made=_gpustump_rounds,
        device=_gpustump_device,
        large=_KERNELS if device == "cpu" else (),
        **options,
    )


def _xgboost(name: str, *, exact: bool = False, **parameters: Any) -> Contender:
    return Contender(
        name,
        ("xgboost",),
        "XGBClassifier",
        {"max_depth": 1, "tree_method": "exact" if exact else "hist", **parameters},
        exact=exact,
        made=_xgboost_rounds,
        device=_xgboost_device,
        threads="n_jobs",
        unfit=_no_xgboost_cuda if "device" in parameters else nothing_against,
    )


def _catboost(name: str, **parameters: Any) -> Contender:
    return Contender(
        name,
        ("catboost",),
        "CatBoostClassifier",
        {"depth": 1, "verbose": False, "allow_writing_files": False, **parameters},
        exact=False,
        made=_catboost_rounds,
        rounds="iterations",
        threads="thread_count",
        unfit=_no_catboost_cuda if "task_type" in parameters else nothing_against,
    )


_REFERENCE = {"GPUSTUMP_KERNELS": "reference"}

BACKENDS = (
    _gpustump("gpustump numba", "numba", *_KERNELS, device="cpu"),
    _gpustump("gpustump numpy", device="cpu", variables=_REFERENCE),
    _gpustump("gpustump torch", "torch", device="cpu", place=_torch_cpu, variables=_REFERENCE),
    _gpustump("gpustump jax", "jax", device="cpu", place=_jax_cpu),
    _gpustump("gpustump cuda kernels", "cupy", device="cuda", place=_cupy, unfit=_no_kernels),
    _gpustump(
        "gpustump cupy",
        "cupy",
        device="cuda",
        place=_cupy,
        unfit=_no_cupy,
        variables=_REFERENCE,
    ),
    _gpustump(
        "gpustump torch cuda",
        "torch",
        device="cuda",
        place=_torch_cuda,
        unfit=_no_torch_cuda,
        variables=_REFERENCE,
    ),
    _gpustump(
        "gpustump jax cuda",
        "jax",
        device="cuda",
        place=_jax_cuda,
        unfit=_no_jax_cuda,
        variables=_REFERENCE,
    ),
)
"""gpustump's kernels for CPUs and for CUDA, and its reference on each array library; the data are
there already."""

PEERS = (
    _gpustump("gpustump", device="cpu"),
    _gpustump("gpustump cuda", "cupy", device="cuda:0", unfit=_no_cupy),
    Contender(
        "scikit-learn AdaBoost",
        ("sklearn.ensemble",),
        "AdaBoostClassifier",
        made=_scikit_learn_rounds,
    ),
    _xgboost("XGBoost hist"),
    _xgboost("XGBoost exact", exact=True),
    _xgboost("XGBoost cuda", device="cuda"),
    Contender(
        "LightGBM",
        ("lightgbm",),
        "LGBMClassifier",
        {"num_leaves": 2, "verbosity": -1},
        exact=False,
        made=_lightgbm_rounds,
        threads="n_jobs",
    ),
    _catboost("CatBoost"),
    _catboost("CatBoost cuda", task_type="GPU", devices="0"),
)
"""Host arrays to a model, as each library does it. Only scikit-learn's is an exact AdaBoost too."""
