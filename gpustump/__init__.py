"""Boosted decision stumps: exact, fast, and the same model on every machine.

Importing this package is cheap: each public name is imported from its module when it is first used.
So only programs that use the estimators load scikit-learn.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from gpustump import exports as exports
    from gpustump import plots as plots
    from gpustump import theory as theory
    from gpustump.arrays.devices import Device as Device
    from gpustump.arrays.devices import DeviceError as DeviceError
    from gpustump.arrays.devices import devices as devices
    from gpustump.boosting.checkpoints.writing import Checkpoint as Checkpoint
    from gpustump.boosting.rounds.boosting import Boosting as Boosting
    from gpustump.boosting.rounds.boosting import boost as boost
    from gpustump.boosting.rounds.one_hypothesis import VotedSplit as VotedSplit
    from gpustump.boosting.rounds.one_hypothesis import fit_interval as fit_interval
    from gpustump.boosting.rounds.one_hypothesis import fit_stump as fit_stump
    from gpustump.boosting.votes.votes import RegionRound as RegionRound
    from gpustump.boosting.votes.votes import Round as Round
    from gpustump.estimators import AdaBoostClassifier as AdaBoostClassifier
    from gpustump.estimators import DecisionStumpClassifier as DecisionStumpClassifier
    from gpustump.estimators import GlassBoxClassifier as GlassBoxClassifier
    from gpustump.estimators import GlassBoxRegressor as GlassBoxRegressor
    from gpustump.estimators import LogitBoostClassifier as LogitBoostClassifier
    from gpustump.estimators import StumpBoostingRegressor as StumpBoostingRegressor
    from gpustump.estimators.audit import Audit as Audit
    from gpustump.estimators.audit import audit as audit
    from gpustump.learners.category_split import CategorySplit as CategorySplit
    from gpustump.learners.category_split import CategoryStump as CategoryStump
    from gpustump.learners.interval import Interval as Interval
    from gpustump.learners.pair_table import PairAxis as PairAxis
    from gpustump.learners.pair_table import PairTable as PairTable
    from gpustump.learners.split import Split as Split
    from gpustump.learners.step_table import CategoryTable as CategoryTable
    from gpustump.learners.step_table import StepTable as StepTable
    from gpustump.learners.stump import Stump as Stump
    from gpustump.model.ensemble import StumpEnsemble as StumpEnsemble
    from gpustump.model.members import Member as Member
    from gpustump.model.members import RegionMember as RegionMember
    from gpustump.model.model_file import ModelFileError as ModelFileError

_NAMES = {
    "arrays.devices": ("Device", "DeviceError", "devices"),
    "boosting.checkpoints.writing": ("Checkpoint",),
    "boosting.rounds.boosting": ("Boosting", "boost"),
    "boosting.rounds.one_hypothesis": ("VotedSplit", "fit_interval", "fit_stump"),
    "boosting.votes.votes": ("RegionRound", "Round"),
    "estimators": (
        "AdaBoostClassifier",
        "DecisionStumpClassifier",
        "GlassBoxClassifier",
        "GlassBoxRegressor",
        "LogitBoostClassifier",
        "StumpBoostingRegressor",
    ),
    "estimators.audit": ("Audit", "audit"),
    "learners.category_split": ("CategorySplit", "CategoryStump"),
    "learners.interval": ("Interval",),
    "learners.pair_table": ("PairAxis", "PairTable"),
    "learners.split": ("Split",),
    "learners.step_table": ("CategoryTable", "StepTable"),
    "learners.stump": ("Stump",),
    "model.ensemble": ("StumpEnsemble",),
    "model.members": ("Member", "RegionMember"),
    "model.model_file": ("ModelFileError",),
}
"""The public names, by the module that defines them."""

_HOMES = {name: home for home, names in _NAMES.items() for name in names}

_MODULES = ("exports", "plots", "theory")
"""Modules with public names of their own, such as `gpustump.plots.overview`."""

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return importlib.import_module(f"gpustump.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'gpustump' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"gpustump.{_HOMES[name]}"), name)
    globals()[name] = value  # from now on found without this function
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES, "__version__"])
