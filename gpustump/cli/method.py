"""How `gpustump train` boosts: which estimator its options make.

Combinations that are not defined are refused before anything is read. A parameter that no option
sets has the estimator's own default.
"""

from __future__ import annotations

import argparse
import importlib.util
from typing import TYPE_CHECKING, Any, Literal, NoReturn, get_args

from gpustump.cli.errors import InputError
from gpustump.data.parameters import QuantityLoss

if TYPE_CHECKING:
    from gpustump.estimators.boosters import BoostedEstimator

ClassLoss = Literal["exponential", "logistic"]

Loss = ClassLoss | QuantityLoss

QUANTITY_LOSSES = get_args(QuantityLoss)

LOSSES = (*get_args(ClassLoss), *QUANTITY_LOSSES)

ROUNDS_OF_ADABOOST = 100

_PARAMETERS = {
    "rounds": "n_estimators",
    "learning_rate": "learning_rate",
    "votes": "votes",
    "multi_class": "multi_class",
    "l2": "l2_regularization",
    "smoothing_rounds": "smoothing_rounds",
    "interactions": "interactions",
    "bags": "n_bags",
    "quantile": "quantile",
    "patience": "n_iter_no_change",
    "class_weight": "class_weight",
}
"""Options, and the parameters of the estimators that they set."""


def asks_for_quantity(arguments: argparse.Namespace) -> bool | None:
    """Whether options ask for a quantity; None if the target decides."""
    if arguments.loss is not None:
        return arguments.loss in QUANTITY_LOSSES
    if any(getattr(arguments, name) is not None for name in _OF_CLASSES):
        return False
    is_given = arguments.exposure is not None or arguments.quantile is not None
    return True if is_given else None


_OF_CLASSES = ("votes", "multi_class", "class_weight")
"""Options that only models of classes have."""


def loss_of(arguments: argparse.Namespace, *, is_quantity: bool | None = None) -> Loss:
    """The loss that the options of `train` ask for, or the one that they and the target need.

    Parameters
    ----------
    arguments : argparse.Namespace
    is_quantity : bool, optional
        Whether the target is one. Before it is known, options decide, or else it is not.

    Raises
    ------
    InputError
        If they ask for a combination that is not defined.
    """
    loss: Loss | None = arguments.loss
    if loss is None and (is_quantity or asks_for_quantity(arguments)):
        loss = "squared_error" if arguments.exposure is None else "poisson"
        loss = loss if arguments.quantile is None else "quantile"
    if arguments.exposure is not None and loss != "poisson":
        _refuse("--exposure is for counts, --loss poisson")
    if loss == "quantile" and (
        arguments.monotone or arguments.interactions not in (None, 0, "0x", "auto")
    ):
        _refuse("--loss quantile takes no --monotone and no --interactions")
    if arguments.glass_box and (loss == "exponential" or arguments.votes is not None):
        _refuse("--glass-box takes no --loss exponential and no --votes")
    if loss is None:
        loss = "logistic" if arguments.glass_box else "exponential"
    if arguments.quantile is not None and loss != "quantile":
        _refuse(f"--quantile is for --loss quantile, not for --loss {loss}")
    for name in _OF_CLASSES:
        if loss in QUANTITY_LOSSES and getattr(arguments, name) is not None:
            option = "balanced" if name == "class_weight" else name.replace("_", "-")
            _refuse(f"--{option} is for classes, not for --loss {loss}")
    if loss == "logistic" and arguments.votes is not None:
        _refuse(
            "--votes is for --loss exponential; with --loss logistic, regions vote Newton steps"
        )
    for name in ("l2", "smoothing_rounds", "interactions"):
        if loss == "exponential" and getattr(arguments, name) is not None:
            _refuse(f"--{name.replace('_', '-')} is for --loss logistic, and for quantities")
    return loss


def estimator_of(arguments: argparse.Namespace, loss: Loss, **more: Any) -> BoostedEstimator:
    """The estimator that the options of `train` ask for; `more` are its other parameters."""
    from gpustump import estimators

    for option, parameter in _PARAMETERS.items():
        if getattr(arguments, option) is not None:
            more[parameter] = getattr(arguments, option)
    if loss == "exponential":
        return estimators.AdaBoostClassifier(**{"n_estimators": ROUNDS_OF_ADABOOST, **more})
    if loss == "logistic":
        is_glass = arguments.glass_box
        cls = estimators.GlassBoxClassifier if is_glass else estimators.LogitBoostClassifier
        return cls(**more)
    if arguments.glass_box:
        return estimators.GlassBoxRegressor(loss=loss, **more)
    return estimators.StumpBoostingRegressor(loss=loss, **more)


def resources(arguments: argparse.Namespace) -> dict[str, Any]:
    """Parameters that do not decide a model, as the options of `train` and `audit` give them."""
    has_bar = not arguments.quiet and importlib.util.find_spec("tqdm") is not None
    return {
        "device": arguments.device,
        "n_jobs": arguments.jobs,
        "max_memory": arguments.max_memory,
        "verbose": int(has_bar),
    }


def check_device_option(name: str) -> None:
    """Refuse a GPU that cannot be used, before a table is read.

    Raises
    ------
    DeviceError
    """
    from gpustump.arrays.devices import DeviceError, check_usable

    try:
        check_usable(name)
    except DeviceError as error:
        raise DeviceError(f"--device {name}: {error}") from error


def _refuse(message: str) -> NoReturn:
    raise InputError(f"{message} (see gpustump train --help)")
