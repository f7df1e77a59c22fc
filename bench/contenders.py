"""Who takes part: gpustump on every array library, and the libraries that people come from.

Each is a scikit-learn estimator, used as its users use it. Learning rates are left as each library
sets them, since they do not change what a round costs. Nothing is imported until a worker process
asks for it.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Contender:
    """Something to fit, and how."""

    name: str
    needs: tuple[str, ...]
    """Modules that must be importable; the first holds the estimator."""
    estimator: str
    """Its class."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """What it is given beside rounds and threads."""
    exact: bool = True
    """Whether it looks at every threshold, rather than at a histogram's."""
    rounds: str = "n_estimators"
    """The parameter for their number."""
    threads: str | None = None
    """The parameter for theirs; None if it has none (a worker's are limited anyway)."""
    arrays: str = "numpy"
    """Whose arrays it is given, and on which device: "torch cuda"."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that hold in its process."""
    large: tuple[str, ...] = ()
    """Modules that only a large fit imports: they are loaded before memory is measured."""
    cuda: str = ""
    """The library that must find a CUDA GPU (see `no_cuda`); empty if none must."""

    def absent(self) -> str | None:
        """Which module is not installed, if one is not."""
        for module in self.needs:
            if importlib.util.find_spec(module.partition(".")[0]) is None:
                return f"{module} is not installed"
        return None

    def obstacle(self) -> str | None:
        """Why it cannot take part, or None. For workers' processes only: it imports libraries."""
        return no_cuda(self.cuda) if self.cuda else None

    def load(self) -> None:
        """Import all modules that it needs."""
        os.environ.update(self.variables)
        for module in reversed(self.needs):
            importlib.import_module(module)
        self._class()

    def make(self, rounds: int | None, threads: int) -> Any:
        """A new estimator; without a number of rounds, it makes those of `parameters`."""
        chosen: dict[str, Any] = {self.threads: threads} if self.threads else {}
        if rounds is not None:
            chosen[self.rounds] = rounds
        return self._class()(**{**self.parameters, **chosen})

    def placed(self, x: np.ndarray) -> Any:
        """An array of NumPy's as one of the library and device that are measured."""
        library, _, device = self.arrays.partition(" ")
        if library == "numpy":
            return x
        module = importlib.import_module(library)
        if library == "jax":
            return module.device_put(x, module.devices(device)[0])
        return module.asarray(x, device=device) if device else module.asarray(x)

    def disqualified(self, model: Any, rounds: int) -> str | None:
        """Why the time of this fit cannot count: it stopped early, or ran on another device."""
        made = rounds_made(model)
        if made is not None and made != rounds:
            return f"it stopped after {made} of {rounds} rounds"
        wanted, used = self.parameters.get("device"), device_used(model)
        if wanted and used and not used.startswith(wanted.partition(":")[0]):
            return f"it trained on {used}, not on {wanted}"
        return None

    def _class(self) -> Any:
        return getattr(importlib.import_module(self.needs[0]), self.estimator)


_ROUNDS: Mapping[str, Callable[[Any], int]] = {
    "rounds_": lambda rounds: len(rounds[0]),  # gpustump
    "estimators_": len,  # scikit-learn
    "get_booster": lambda booster: booster().num_boosted_rounds(),  # XGBoost, hessboost
    "booster_": lambda booster: (
        booster.num_trees() // booster.num_model_per_iteration()
    ),  # LightGBM
    "tree_count_": int,  # CatBoost
}
"""The attribute that tells how many rounds a fitted model holds."""


def rounds_made(model: Any) -> int | None:
    """How many rounds a fitted model holds; None if that is not known."""
    for name, count in _ROUNDS.items():
        if hasattr(model, name):
            return int(count(getattr(model, name)))
    return None


def device_used(model: Any) -> str | None:
    """The device that a fitted model was trained on; None if that is not known."""
    booster: Any = model.get_booster() if hasattr(model, "get_booster") else None
    if hasattr(booster, "save_config"):  # without a GPU, XGBoost warns and takes the CPU
        config = json.loads(booster.save_config())
        return str(config["learner"]["generic_param"]["device"])
    return getattr(model, "device_", None)


def no_cuda(library: str) -> str | None:
    """Why a library, or gpustump's CUDA kernels, cannot use a CUDA GPU here; None if they can."""
    if library == "kernels":
        from gpustump.engines.cuda.device import device_named

        too_old = "the GPU is too old for the kernels"
        return no_cuda("gpustump") or (None if device_named("cuda") else too_old)
    module = importlib.import_module(library)
    if library == "gpustump":  # with CuPy
        gpu = next(device for device in module.devices() if device.name.startswith("cuda"))
        return None if gpu.usable else str(gpu.detail)
    if library == "torch":
        return None if module.cuda.is_available() else "PyTorch finds no CUDA GPU"
    if library == "jax":
        try:
            module.devices("cuda")
        except RuntimeError:
            return "JAX finds no CUDA GPU"
        return None
    if library == "xgboost":
        from bench.machine import gpus  # not earlier: loading is timed without what it imports

        built = module.build_info().get("USE_CUDA")
        return None if built and gpus() else "no CUDA GPU here, or XGBoost is built without CUDA"
    return None if module.get_gpu_device_count() else "CatBoost finds no CUDA GPU"


def synchronise() -> None:
    """Wait for the GPUs that this process uses: calls return before the work is done."""
    torch, cupy, jax = (sys.modules.get(name) for name in ("torch", "cupy", "jax"))
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()
    if cupy is not None:
        cupy.cuda.Device().synchronize()
    if jax is not None:
        jax.block_until_ready(jax.live_arrays())


def release() -> None:
    """Give back the GPU memory that libraries keep for later, since others share the GPU.

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


_KERNELS = tuple(
    f"gpustump.engines.cpu.{stage}" for stage in ("coded", "sorted", "predict.prediction")
)


def _gpustump(
    name: str,
    *needs: str,
    device: str = "cpu",
    reference: bool = False,
    **options: Any,
) -> Contender:
    return Contender(
        name,
        ("gpustump", *needs),
        "AdaBoostClassifier",
        {"device": device},
        large=_KERNELS if device == "cpu" else (),
        variables={"GPUSTUMP_KERNELS": "reference"} if reference else {},
        **options,
    )


def _xgboost(name: str, method: str, **parameters: Any) -> Contender:
    return Contender(
        name,
        ("xgboost",),
        "XGBClassifier",
        {"max_depth": 1, "tree_method": method, **parameters},
        exact=method == "exact",
        threads="n_jobs",
        cuda="xgboost" if "device" in parameters else "",
    )


def _catboost(name: str, **parameters: Any) -> Contender:
    return Contender(
        name,
        ("catboost",),
        "CatBoostClassifier",
        {"depth": 1, "verbose": False, "allow_writing_files": False, **parameters},
        exact=False,
        rounds="iterations",
        threads="thread_count",
        cuda="catboost.utils" if parameters else "",
    )


_ON_CUDA: Any = {"device": "cuda", "reference": True}

BACKENDS = (
    _gpustump("gpustump numba", "numba", *_KERNELS),
    _gpustump("gpustump numpy", reference=True),
    _gpustump("gpustump torch", "torch", arrays="torch cpu", reference=True),
    _gpustump("gpustump jax", "jax", arrays="jax cpu"),
    _gpustump("gpustump cuda kernels", "cupy", device="cuda", arrays="cupy", cuda="kernels"),
    _gpustump("gpustump cupy", "cupy", arrays="cupy", cuda="gpustump", **_ON_CUDA),
    _gpustump("gpustump torch cuda", "torch", arrays="torch cuda", cuda="torch", **_ON_CUDA),
    _gpustump("gpustump jax cuda", "jax", arrays="jax cuda", cuda="jax", **_ON_CUDA),
)
"""gpustump's kernels for CPUs and for CUDA, and its reference on each array library. The data are
on the library's device before the clock starts."""

_BY_VOTES: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    "discrete": ("", "AdaBoostClassifier", {}),
    "real": (" real", "AdaBoostClassifier", {"votes": "real"}),
    "newton": (" LogitBoost", "LogitBoostClassifier", {}),
}
"""For each kind of votes: what is added to the name, the estimator, and its parameters."""

VOTE_KINDS = tuple(_BY_VOTES)


def voting(contender: Contender, kind: str) -> Contender:
    """One of gpustump's contenders, of discrete votes, with a kind of votes."""
    suffix, estimator, parameters = _BY_VOTES[kind]
    given = {**contender.parameters, **parameters}
    return replace(contender, name=contender.name + suffix, estimator=estimator, parameters=given)


VOTES = tuple(voting(_gpustump("gpustump"), kind) for kind in VOTE_KINDS)
"""gpustump on the CPU with each kind of votes: discrete, real and Newton votes."""

VOTES_ON_CUDA = tuple(
    voting(_gpustump("gpustump cuda", "cupy", device="cuda:0", cuda="gpustump"), kind)
    for kind in VOTE_KINDS
)
"""The same on a GPU, from arrays on the host."""

HESSBOOST = Contender(
    "hessboost",
    ("hessboost.sklearn",),
    "HessboostClassifier",
    {"max_depth": 1},
    exact=False,
    threads="n_jobs",
)

LIGHTGBM = Contender(
    "LightGBM",
    ("lightgbm",),
    "LGBMClassifier",
    {"num_leaves": 2, "verbosity": -1},
    exact=False,
    threads="n_jobs",
)

PEERS = (
    *VOTES,
    *VOTES_ON_CUDA,
    Contender("scikit-learn AdaBoost", ("sklearn.ensemble",), "AdaBoostClassifier"),
    _xgboost("XGBoost hist", "hist"),
    _xgboost("XGBoost exact", "exact"),
    _xgboost("XGBoost cuda", "hist", device="cuda"),
    LIGHTGBM,
    _catboost("CatBoost"),
    HESSBOOST,
    _catboost("CatBoost cuda", task_type="GPU", devices="0"),
)
"""From host arrays to a model, as each library does it. Only scikit-learn's is an exact AdaBoost,
too."""


SQUARED = tuple(
    replace(
        each,
        name=f"{each.name} squared",
        estimator=estimator,
        parameters={**each.parameters, "learning_rate": 0.1},
    )
    for each, estimator in (
        (_gpustump("gpustump"), "StumpBoostingRegressor"),
        (_xgboost("XGBoost hist", "hist"), "XGBRegressor"),
        (LIGHTGBM, "LGBMRegressor"),
        (HESSBOOST, "HessboostRegressor"),
    )
)
"""Those that are fast on the CPU, with squared loss and one learning rate."""


def _from_cupy(contender: Contender) -> Contender:
    name, needs = f"{contender.name}, CuPy arrays", (*contender.needs, "cupy")
    return replace(contender, name=name, needs=needs, arrays="cupy")


FROM_CUPY = tuple(_from_cupy(peer) for peer in PEERS if peer.cuda in ("gpustump", "xgboost"))
"""Those that train on a GPU and take CuPy's arrays, given a table that is there before the clock
starts."""


def chosen(contenders: Sequence[Contender], only: Collection[str] | None) -> list[Contender]:
    """The contenders named in `only`, in their own order; all if none is named."""
    return [contender for contender in contenders if not only or contender.name in only]


def is_ours(name: str) -> bool:
    """Whether a contender of this name is gpustump, rather than a peer."""
    return name.startswith("gpustump")
