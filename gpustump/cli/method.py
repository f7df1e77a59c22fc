"""How `gpustump train` boosts: which estimator its options make, with which parameters.

The defaults stand here, and not in the parser, because they depend on the loss. Combinations that
are not defined are refused before anything is read.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, NoReturn, get_args

from gpustump.cli.errors import InputError
from gpustump.cli.wording import percent
from gpustump.data.parameters import (
    GLASS_BOX,
    GLASS_BOX_OF_QUANTITY,
    Learner,
    MultiClass,
    Preset,
    QuantityLoss,
    VoteKind,
    check_count,
    check_quantity_loss,
    check_real,
)
from gpustump.data.readable import counted, listed, shown

if TYPE_CHECKING:
    from gpustump.estimators.boosters import BoostedEstimator

ClassLoss = Literal["exponential", "logistic"]

Loss = ClassLoss | QuantityLoss

_QUANTITY_LOSSES = get_args(QuantityLoss)

LOSSES = (*get_args(ClassLoss), *_QUANTITY_LOSSES)


@dataclass(frozen=True)
class Method:
    """An estimator and its parameters; the defaults are what `train` uses without options.

    Attributes
    ----------
    loss : str
        `AdaBoostClassifier` minimises "exponential", `LogitBoostClassifier` "logistic", and
        `StumpBoostingRegressor` the others, which are for quantities.
    votes : "discrete", "real" or "newton"
        Discrete or real ones with the exponential loss, and only there.
    multi_class : "one_vs_rest" or "shared"
    rounds : int or None
        The most rounds: in all, or for each class against the rest. None: the estimator's default
        for the number of classes.
    learning_rate : float
    l2 : float or None
        For Newton votes. None: the estimator's default for the number of classes.
    weak_learner : "stump" or "interval"
        "interval" only with discrete votes and one class against the rest.
    bags : int
        Number of models on different shares of the rows; their average is the result.
    patience : int or None
        A run stops after this many rounds without a better score of the rows set aside.
    set_aside : float
        The share of the training rows that early stopping watches, or that each bag leaves out.
    tol : float
        By how much a score must improve to count as better.
    smoothing_rounds : int
        With the logistic loss; see `LogitBoostClassifier`.
    class_weight : "balanced" or None
        See `AdaBoostClassifier`.
    interactions : int or str
        How many pairs of features are learnt after the rounds: a number, a number for each feature
        such as "3x", or "auto". Not with the exponential loss.
    """

    loss: Loss = "exponential"
    votes: VoteKind = "discrete"
    multi_class: MultiClass = "one_vs_rest"
    rounds: int | None = 100
    learning_rate: float = 1.0
    l2: float | None = 0.0
    weak_learner: Learner = "stump"
    bags: int | None = 1
    patience: int | None = None
    set_aside: float = 0.1
    tol: float = 0.0
    smoothing_rounds: int = 0
    class_weight: Literal["balanced"] | None = None
    interactions: int | str = 0

    @property
    def is_of_quantity(self) -> bool:
        """Whether a quantity is predicted."""
        return self.loss in _QUANTITY_LOSSES


ADABOOST = Method()
LOGITBOOST = Method("logistic", "newton", "shared", rounds=None, learning_rate=0.2, l2=3.0)
QUANTITY = Method("squared_error", "newton", "one_vs_rest", rounds=200, learning_rate=0.1, l2=0.0)
"""The defaults for each loss; for all those of quantities they are the same."""


def _glass(start: Method, preset: Preset, l2: float | None) -> Method:
    return replace(
        start,
        rounds=preset.n_estimators,
        learning_rate=preset.learning_rate,
        l2=l2,
        bags=None,
        patience=preset.n_iter_no_change,
        set_aside=preset.validation_fraction,
        tol=preset.tol,
        smoothing_rounds=preset.smoothing_rounds,
        interactions="auto",
    )


GLASS = _glass(LOGITBOOST, GLASS_BOX, None)
GLASS_OF_QUANTITY = _glass(QUANTITY, GLASS_BOX_OF_QUANTITY, 1.0)
"""The settings of --glass-box, for classes and for quantities."""

_ALWAYS_IN_FILES = ("rounds", "learning_rate", "weak_learner")
"""Settings that are written even if they are the defaults of `Method`."""


def usual(loss: Loss) -> Method:
    """The defaults for a loss."""
    if loss in _QUANTITY_LOSSES:
        return replace(QUANTITY, loss=loss)
    return LOGITBOOST if loss == "logistic" else ADABOOST


def asks_for_quantity(arguments: argparse.Namespace) -> bool | None:
    """Whether options ask for a quantity; None if the target decides."""
    if arguments.loss is not None:
        return arguments.loss in _QUANTITY_LOSSES
    if any(getattr(arguments, name) is not None for name in _OF_CLASSES):
        return False
    return True if arguments.exposure is not None else None


_OF_CLASSES = ("votes", "multi_class", "class_weight")
"""Options that only models of classes have."""


def method_of(arguments: argparse.Namespace, *, is_quantity: bool | None = None) -> Method:
    """What the options of `train` ask for.

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
    loss = _loss(arguments, is_quantity=is_quantity or bool(asks_for_quantity(arguments)))
    _refuse_undefined(arguments, loss)
    names = (
        *("multi_class", "rounds", "learning_rate", "l2", "votes"),
        *("bags", "patience", "smoothing_rounds", "class_weight", "interactions"),
    )
    given = {name: getattr(arguments, name) for name in names}
    start = usual(loss)
    if arguments.glass_box:
        start = replace(GLASS_OF_QUANTITY, loss=loss) if loss in _QUANTITY_LOSSES else GLASS
    return replace(start, **{n: value for n, value in given.items() if value is not None})


def settings(method: Method, n_rounds: int) -> dict[str, object]:
    """A method and its most rounds, as the details of a model file hold them."""
    found: dict[str, object] = {name: getattr(method, name) for name in _ALWAYS_IN_FILES}
    found["rounds"] = n_rounds
    for own in fields(Method):
        value = getattr(method, own.name)
        if own.name not in found and value != own.default:
            found[own.name] = value
    return found


class Recipe(NamedTuple):
    """How `gpustump train` made a model, as the details of its file hold it.

    Attributes
    ----------
    method : Method
    test_size : float
        The share of the rows that was held out.
    seed : int
    monotone : mapping of str to int
        The constraints of columns.
    """

    method: Method
    test_size: float
    seed: int
    monotone: Mapping[str, int]


def recipe_of(details: Mapping[str, Any]) -> Recipe | None:
    """How a model was trained; None if `gpustump train` did not make it.

    What the estimator checks, when it is made, is not checked here.

    Raises
    ------
    ValueError
        If the details hold something that `train` does not write.
    """
    if "training" not in details:
        return None
    found = details["training"]
    where = "the settings of the training in the model's details"
    if not isinstance(found, Mapping):
        raise ValueError(f"{where} must be an object; got {shown(found)}.")
    lacking = [n for n in ("rounds", "learning_rate", "test_size", "seed") if n not in found]
    if lacking:
        raise ValueError(f"{where} lack {listed(lacking)}.")
    if (loss := found.get("loss", ADABOOST.loss)) not in LOSSES:
        raise ValueError(f"{where} must have a loss, one of {listed(LOSSES)}; got {shown(loss)}.")
    try:
        share = check_real(found["test_size"], "test_size", least=0.0)
        seed = check_count(found["seed"], "seed", least=0)
    except TypeError as error:
        raise ValueError(f"{where}: {error}") from error
    if share >= 1.0 or seed >= 2**32:
        raise ValueError(
            f"{where} must have a test_size below 1 and a seed below 2**32; got {share!r} and "
            f"{seed!r}."
        )
    names = {own.name for own in fields(Method)}
    method = Method(**{name: own for name, own in found.items() if name in names})
    return Recipe(method, share, seed, _constraints(found.get("monotone", {}), where))


def _constraints(found: Any, where: str) -> Mapping[str, int]:
    is_one = isinstance(found, Mapping)
    if not is_one or not all(type(own) is int and own in (-1, 1) for own in found.values()):
        raise ValueError(f"{where} must map columns to 1 or -1 in monotone; got {shown(found)}.")
    return dict(found)


def described(method: Method, n_classes: int) -> tuple[str, str] | None:
    """Loss or votes as a row of the summary; None for what `train` does without options.

    `n_classes` is 0 for a quantity.
    """
    if method.is_of_quantity:
        return "loss", f"{_NAMES[method.loss]}, {', '.join(_words(method, n_classes))}"
    usual_of_learner = ("loss", "votes", "learning_rate", "weak_learner", "class_weight")
    names = usual_of_learner if n_classes == 2 else (*usual_of_learner, "multi_class")
    if all(getattr(method, name) == getattr(ADABOOST, name) for name in names):
        return None
    words = ", ".join(_words(method, n_classes))
    if method.loss == "logistic":
        return "loss", f"logistic: LogitBoost, {words}"
    return "votes", f"{method.votes}: AdaBoost, {words}"


_NAMES = {
    "squared_error": "squared error",
    "poisson": "Poisson deviance, for counts",
    "gamma": "gamma deviance, for costs",
}


def described_rows(method: Method) -> list[tuple[str, str]]:
    """Smoothing rounds, and how rows are set aside in training, as rows of the summary."""
    rows = []
    if method.smoothing_rounds:
        rounds = counted(method.smoothing_rounds, "round")
        rows.append(("smoothing", f"the first {rounds} of each run"))
    if method.bags == 1 and method.patience is None:
        return rows
    aside = percent(method.set_aside)
    if method.bags == 1:
        ended = f"after {counted(method.patience or 0, 'round')} without a better score of {aside}"
        return [*rows, ("stops early", f"{ended} of rows")]
    text = f"{method.bags}, each trained without {aside} of the rows"
    if method.patience is None:
        return [*rows, ("bags", text)]
    ended = f"and stopped after {counted(method.patience, 'round')} without a better score of those"
    return [*rows, ("bags", f"{text},"), ("", ended)]


def estimator(method: Method, **more: Any) -> BoostedEstimator:
    """The estimator for a method; `more` are its other parameters."""
    from gpustump.estimators.adaboost import AdaBoostClassifier
    from gpustump.estimators.logitboost import LogitBoostClassifier
    from gpustump.estimators.regressors import StumpBoostingRegressor

    more |= {
        "n_estimators": method.rounds,
        "learning_rate": method.learning_rate,
        "n_bags": method.bags,
        "n_iter_no_change": method.patience,
        "validation_fraction": method.set_aside,
        "tol": method.tol,
    }
    if not method.is_of_quantity:
        more["class_weight"] = method.class_weight
    if method.loss == "exponential":
        more |= {"votes": method.votes, "weak_learner": method.weak_learner}
        return AdaBoostClassifier(multi_class=method.multi_class, **more)
    more |= {"l2_regularization": method.l2, "smoothing_rounds": method.smoothing_rounds}
    more["interactions"] = method.interactions
    if method.loss == "logistic":
        return LogitBoostClassifier(multi_class=method.multi_class, **more)
    return StumpBoostingRegressor(loss=check_quantity_loss(method.loss), **more)


def _words(method: Method, n_classes: int) -> Iterator[str]:
    if n_classes > 2:
        yield "shared stumps" if method.multi_class == "shared" else "one-vs-rest"
    if method.weak_learner != "stump":
        yield "stumps and intervals"
    yield f"learning rate {method.learning_rate:g}"
    if method.class_weight == "balanced":
        yield "classes of equal weight"
    if method.loss != "exponential" and method.l2 not in (None, usual(method.loss).l2):
        yield f"l2 {method.l2:g}"


def _loss(arguments: argparse.Namespace, *, is_quantity: bool) -> Loss:
    """The loss that --loss names, or the one that other options and the target need."""
    loss: Loss | None = arguments.loss
    if loss is None and is_quantity:
        loss = "squared_error" if arguments.exposure is None else "poisson"
    if arguments.exposure is not None and loss != "poisson":
        _refuse("--exposure is for counts, --loss poisson")
    if arguments.glass_box and (loss == "exponential" or arguments.votes is not None):
        _refuse("--glass-box takes no --loss exponential and no --votes")
    if loss is not None or arguments.glass_box:
        return loss or "logistic"
    return ADABOOST.loss


def _refuse_undefined(arguments: argparse.Namespace, loss: Loss) -> None:
    for name in _OF_CLASSES:
        if loss in _QUANTITY_LOSSES and getattr(arguments, name) is not None:
            option = "balanced" if name == "class_weight" else name.replace("_", "-")
            _refuse(f"--{option} is for classes, not for --loss {loss}")
    if loss == "logistic" and arguments.votes is not None:
        _refuse(
            "--votes is for --loss exponential; with --loss logistic, regions vote Newton steps"
        )
    for option in ("l2", "smoothing_rounds", "interactions"):
        if loss == "exponential" and getattr(arguments, option) is not None:
            _refuse(f"--{option.replace('_', '-')} is for --loss logistic, and for quantities")


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
