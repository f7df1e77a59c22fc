"""Boosted decision stumps: exact, fast, and the same model on every machine.

Importing this package is cheap: each public name is fetched from its file when first used, so that
scikit-learn is loaded only by those who use the estimators.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from gpustump import losses as losses
    from gpustump import plots as plots
    from gpustump import theory as theory
    from gpustump import weak_learnability as weak_learnability
    from gpustump.boosting import Boosting as Boosting
    from gpustump.boosting import Round as Round
    from gpustump.boosting import boost as boost
    from gpustump.boosting import fit_interval as fit_interval
    from gpustump.boosting import fit_stump as fit_stump
    from gpustump.ensemble import Member as Member
    from gpustump.ensemble import StumpEnsemble as StumpEnsemble
    from gpustump.estimators import AdaBoostClassifier as AdaBoostClassifier
    from gpustump.estimators import DecisionStumpClassifier as DecisionStumpClassifier
    from gpustump.interval import Interval as Interval
    from gpustump.model_file import ModelFileError as ModelFileError
    from gpustump.placement import Device as Device
    from gpustump.placement import DeviceError as DeviceError
    from gpustump.placement import devices as devices
    from gpustump.stump import Stump as Stump
    from gpustump.tables import StepTable as StepTable

_HOMES = {
    "AdaBoostClassifier": "estimators",
    "Boosting": "boosting",
    "DecisionStumpClassifier": "estimators",
    "Device": "placement",
    "DeviceError": "placement",
    "Interval": "interval",
    "Member": "ensemble",
    "ModelFileError": "model_file",
    "Round": "boosting",
    "StepTable": "tables",
    "Stump": "stump",
    "StumpEnsemble": "ensemble",
    "boost": "boosting",
    "devices": "placement",
    "fit_interval": "boosting",
    "fit_stump": "boosting",
}

_MODULES = ("losses", "plots", "theory", "weak_learnability")
"""Rooms for users that have names of their own: `gpustump.plots.overview`."""

__all__ = [
    "AdaBoostClassifier",
    "Boosting",
    "DecisionStumpClassifier",
    "Device",
    "DeviceError",
    "Interval",
    "Member",
    "ModelFileError",
    "Round",
    "StepTable",
    "Stump",
    "StumpEnsemble",
    "boost",
    "devices",
    "fit_interval",
    "fit_stump",
]


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return importlib.import_module(f"gpustump.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'gpustump' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"gpustump.{_HOMES[name]}"), name)
    globals()[name] = value  # from now on found without this function
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
