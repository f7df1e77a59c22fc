"""Who takes part: gpustump on every array library, and the libraries that people come from.

Each is a scikit-learn estimator, used as its users use it: with its defaults, but for trees of one
split; contenders.toml is the registry. Nothing is imported until a contender is loaded, which the
benchmarks of speed do in a process of its own.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

SHARE, PATIENCE = 0.15, 50
"""Of early stopping: the share of the training samples that is held out, interpret's default, too,
and rounds without a better loss."""


@dataclass(frozen=True)
class Contender:
    """Something to fit, and how."""

    name: str
    needs: Sequence[str]
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
    regressor: str = ""
    """Its class for quantities; empty if it takes part in tables of classes only."""
    losses: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """What the regressor is given for a loss: of quantities, counts, costs and quantiles."""
    level: str = ""
    """The parameter for which quantile."""
    watches: str = ""
    """How it is handed samples for early stopping, "eval_set" or "callbacks"; empty if it holds
    them out by itself, or does not stop early."""
    tables: Sequence[str] = ("two", "more")
    """The tables of classes that it takes part in: those with two classes, those with more."""
    rounds_per_class: bool = False
    """Whether it makes the given rounds for each class, where there are more than two."""
    takes_missing: bool = True
    """If not, NaN becomes the median of the feature in the training samples."""

    def absent(self) -> str | None:
        """Which module is not installed, if one is not."""
        for module in self.needs:
            if importlib.util.find_spec(module.partition(".")[0]) is None:
                return f"{module} is not installed"
        return None

    def load(self) -> None:
        """Import all modules that it needs."""
        os.environ.update(self.variables)
        for module in reversed(self.needs):
            importlib.import_module(module)

    def make(
        self, rounds: int | None, threads: int, loss: str = "", level: float | None = None
    ) -> Any:
        """A new estimator: a regressor if there is a loss; `level` is for the quantile loss.

        Without a number of rounds it makes those of `parameters`.
        """
        given = {**self.parameters, **self.losses.get(loss, {})}
        if level is not None:
            given[self.level] = level
        if self.threads:
            given[self.threads] = threads
        if rounds is not None:
            given[self.rounds] = rounds
        kind = getattr(
            importlib.import_module(self.needs[0]), self.regressor if loss else self.estimator
        )
        return kind(**given)

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
        has_bags = getattr(model, "n_bags", 1) != 1  # a glass box: held-out samples end each bag
        if made is not None and made != rounds and not has_bags:
            return f"it stopped after {made} of {rounds} rounds"
        wanted, used = self.parameters.get("device"), device_used(model)
        if wanted and used and not used.startswith(wanted.partition(":")[0]):
            return f"it trained on {used}, not on {wanted}"
        return None


_ROUNDS: Mapping[str, Callable[[Any], int]] = {
    "rounds_": lambda model: len(model.rounds_[0]),  # gpustump
    "estimators_": lambda model: len(model.estimators_),  # scikit-learn
    "get_booster": lambda model: model.get_booster().num_boosted_rounds(),  # XGBoost, hessboost
    "booster_": lambda model: (
        model.booster_.num_trees() // model.booster_.num_model_per_iteration()
    ),
    "tree_count_": lambda model: model.tree_count_,  # CatBoost
    "n_iter_": lambda model: model.n_iter_,  # HistGradientBoosting
}
"""How rounds are counted: by an attribute of a library's models."""


def rounds_made(model: Any) -> int | None:
    """How many rounds a fitted model holds; None if that is not known."""
    known = (count for name, count in _ROUNDS.items() if hasattr(model, name))
    return next((int(count(model)) for count in known), None)


def device_used(model: Any) -> str | None:
    """The device that a fitted model was trained on; None if that is not known."""
    booster: Any = model.get_booster() if hasattr(model, "get_booster") else None
    if hasattr(booster, "save_config"):  # without a GPU, XGBoost warns and takes the CPU
        config = json.loads(booster.save_config())
        return str(config["learner"]["generic_param"]["device"])
    return getattr(model, "device_", None)


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
    """Give back the GPU memory that libraries keep for later, since others share the GPU."""
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


def is_ours(name: str) -> bool:
    """Whether a contender of this name is gpustump, rather than a peer."""
    return name.startswith("gpustump")


def chosen(contenders: Sequence[Contender], only: Collection[str] | None) -> list[Contender]:
    """The contenders named in `only`, in their own order; all if none is named."""
    return [contender for contender in contenders if not only or contender.name in only]


def voting(contender: Contender, kind: str) -> Contender:
    """One of gpustump's contenders, of discrete votes, with a kind of votes."""
    if kind == "discrete":
        return contender
    if kind == "newton":
        name = f"{contender.name} LogitBoost"
        return replace(contender, name=name, estimator="LogitBoostClassifier")
    given = {**contender.parameters, "votes": kind}
    return replace(contender, name=f"{contender.name} {kind}", parameters=given)


def _read() -> dict[str, tuple[Contender, ...]]:
    """The groups in contenders.toml."""
    found = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())

    def made(own: dict[str, Any]) -> Contender:
        kind = found["kinds"].get(own.pop("like", ""), {})
        for name in ("parameters", "losses"):
            own[name] = {**kind.get(name, {}), **own.get(name, {})}
        return Contender(**{**kind, **own})

    return {name: tuple(map(made, group)) for name, group in found["groups"].items()}


_GROUPS = _read()
VOTES = _GROUPS["peers"][:3]
"""gpustump on the CPU with each kind of votes: discrete, real and Newton votes."""

GROUPS: Mapping[str, tuple[Contender, ...]] = {
    **_GROUPS,
    "panel": (*_GROUPS["peers"], *_GROUPS["panel"]),
    "growth": (*_GROUPS["backends"], *_GROUPS["peers"]),
}
"""Who can take part in which benchmark; `rounds`, `glassbox` and `quantiles` are groups of
`accuracy`."""

EBM = "interpret EBM"
"""Whose times the glass box's are compared with."""
