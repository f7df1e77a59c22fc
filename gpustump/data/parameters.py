"""Single parameters, checked: counts, real numbers, sizes in bytes, choices, features.

Every function raises a TypeError or ValueError that names the parameter, what was found and what is
wanted.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar, get_args

from gpustump.data.readable import either, shown, suggestion

DateOrderName = Literal["dmy", "mdy", "ymd"]
"""What a date such as 03/04/24 begins with: day, month or year, and what comes next."""

DATE_ORDERS: tuple[DateOrderName, ...] = get_args(DateOrderName)

Learner = Literal["stump", "interval"]
"""What a round of boosting may choose from: stumps only, or intervals as well."""

LEARNERS: tuple[Learner, ...] = get_args(Learner)

VoteKind = Literal["discrete", "real", "newton"]
"""What regions vote: one number with a sign for each, a number each, or Newton steps."""

VOTE_KINDS: tuple[VoteKind, ...] = get_args(VoteKind)

MultiClass = Literal["one_vs_rest", "shared"]
"""With more than two classes: a run for each class, or one run whose stumps vote for all."""

MULTI_CLASS: tuple[MultiClass, ...] = get_args(MultiClass)

QuantityLoss = Literal["squared_error", "quantile", "poisson", "gamma"]
"""The losses of a target that is a quantity."""

RATIO_LOSSES: tuple[QuantityLoss, ...] = ("poisson", "gamma")
"""Those of amounts, whose scores are logarithms; the others have residuals."""

ClassScoring = Literal["loss", "accuracy", "neg_log_loss", "roc_auc", "balanced_accuracy"]
QuantityScoring = Literal[
    "neg_mean_squared_error",
    "neg_mean_pinball_loss",
    "neg_mean_poisson_deviance",
    "neg_mean_gamma_deviance",
]
Scoring = ClassScoring | QuantityScoring
"""What early stopping watches; see `boosting.held_out.scores`. The last ones are for quantities."""

SCORINGS: tuple[ClassScoring, ...] = get_args(ClassScoring)

Link = Literal["logistic", "softmax", "identity", "log"]
"""What the scores F of a model mean: probabilities 1 / (1 + exp(-2 F)) for each output, or
exp(2 F_l) / (the sum of exp(2 F_m)) over K outputs; or a quantity, in its own unit, or its
logarithm."""

LINKS: tuple[Link, ...] = get_args(Link)
QUANTITY_LINKS: tuple[Link, ...] = ("identity", "log")

MOST_CATEGORIES = 1000
"""The most categories of a feature; they are numbered from 0."""

MOST_CODES = 100
"""A column of a file with up to this many distinct whole numbers may hold codes of classes, counts
or another quantity: users must say which."""

MOST_BAGS = 1_000_000
"""More bags than this are surely a mistake: each is a training of its own."""

ROUNDS_OF_AN_OUTPUT = 200
"""The default number of rounds for each output of a run. It gives as many stumps as other libraries
make for each class in 200 rounds."""


class Preset(NamedTuple):
    """Parameters that suit most tables; see `GlassBoxClassifier`."""

    n_estimators: int
    learning_rate: float
    n_iter_no_change: int
    validation_fraction: float
    tol: float
    smoothing_rounds: int


GLASS_BOX = Preset(
    2000,
    0.3,
    n_iter_no_change=50,
    validation_fraction=0.2,
    tol=1e-4,
    smoothing_rounds=200,
)
"""Chosen by measurement on 26 tables of two classes and 16 of more; see bench/NOTES.md."""

GLASS_BOX_OF_QUANTITY = Preset(
    4000,
    0.2,
    n_iter_no_change=100,
    validation_fraction=0.2,
    tol=1e-5,
    smoothing_rounds=500,
)
"""The same on 23 tables of quantities, 7 of counts and 5 of costs."""

MANY_BAGS, FEW_BAGS = 12, 6
"""What n_bags=None may stand for."""

FEW_SAMPLES = 100_000


def usual_bags(n_samples: int, n_classes: int) -> int:
    """What n_bags=None stands for: 12 for two classes and up to 100,000 samples, otherwise 6.

    On small tables bags differ more and cost less, so more of them are worth their time. A bag of
    more than two classes takes longer. See bench/NOTES.md.
    """
    return MANY_BAGS if n_classes <= 2 and n_samples <= FEW_SAMPLES else FEW_BAGS


L2_OF_ONE_OUTPUT, L2_OF_SHARED_OUTPUTS = 1.0, 0.1
"""What l2_regularization=None stands for: numbers that suit bags with early stopping. With several
outputs, B, the sum of weight * p * (1 - p), is smaller for each of them, and so is the number."""

L2_OF_QUANTILES = 10.0
"""The same for the quantile loss, under which it keeps cuts from the few samples at the end of a
feature; chosen by measurement, see bench/NOTES.md."""


def check_learner(weak_learner: Any) -> Learner:
    """A weak learner by its name."""
    return _one_of(LEARNERS, weak_learner, "weak_learner")


def check_vote_kind(votes: Any, choices: tuple[VoteKind, ...] = VOTE_KINDS) -> VoteKind:
    """What regions vote, by its name."""
    return _one_of(choices, votes, "votes")


def check_quantity_loss(loss: Any) -> QuantityLoss:
    """The loss of a quantity, by its name."""
    return _one_of(get_args(QuantityLoss), loss, "loss")


def check_multi_class(multi_class: Any) -> MultiClass:
    """How more than two classes are boosted, by its name."""
    return _one_of(MULTI_CLASS, multi_class, "multi_class")


def check_scoring(scoring: Any) -> ClassScoring:
    """What early stopping watches, by its name."""
    if callable(scoring):
        raise TypeError(
            f"scoring must be one of {either(map(repr, SCORINGS))}, and not a callable; got "
            f"{scoring!r}. Early stopping computes these scores itself while rounds are made, so "
            "that they are the same on every device; a callable would need a finished classifier."
        )
    return _one_of(SCORINGS, scoring, "scoring")


_Choice = TypeVar("_Choice", bound=str)


def _one_of(choices: tuple[_Choice, ...], value: Any, name: str) -> _Choice:
    for choice in choices:
        if isinstance(value, str) and value == choice:
            return choice
    raise ValueError(f"{name} must be {either(map(repr, choices))}; got {value!r}.")


def check_jobs(n_jobs: Any) -> int | None:
    """A number of threads; None, also for -1, means all that the process may use."""
    if n_jobs is None or n_jobs == -1:
        return None
    return check_count(n_jobs, "n_jobs, unless it is None or -1 for all cores,")


_UNITS = {
    "b": 1,
    **{f"{letter}b": 1000.0**power for power, letter in enumerate("kmgt", start=1)},
    **{f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", start=1)},
}


def check_bytes(value: Any, name: str) -> int:
    """A number of bytes: a whole number, or text such as "500 MB", "2GB" or "1.5 GiB"."""
    if not isinstance(value, str):
        return check_count(value, name)
    number = value.strip().rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    unit = value.strip()[len(number) :].lower() or "b"
    with contextlib.suppress(ValueError):
        found = float(number) * _UNITS.get(unit, math.nan)
        if math.isfinite(found) and found >= 1:
            return int(found)
    raise ValueError(
        f'{name} must be a number of bytes, such as 2000000000, "500 MB" or "2 GiB"; got {value!r}.'
    )


def check_count(value: Any, name: str, *, least: int = 1, most: float = math.inf) -> int:
    """A whole number that is not below `least`, nor above `most`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} must be a whole number of at least {least}; got {value!r}.")
    if value < least:
        raise ValueError(f"{name} must be at least {least}; got {value!r}.")
    if int(value) > most:
        raise ValueError(f"{name} must be at most {most}; got {value!r}.")
    return int(value)


def check_real(
    value: Any, name: str, *, above: float = -math.inf, least: float = -math.inf
) -> float:
    """A finite real number above `above` and not below `least`."""
    wanted = "a finite number"
    if above > -math.inf:
        wanted += f" above {above:g}"
    if least > -math.inf:
        wanted += f" of at least {least:g}"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be {wanted}; got {value!r}.")
    with contextlib.suppress(OverflowError):  # from an int larger than every float
        if math.isfinite(value) and float(value) > above and float(value) >= least:
            return float(value)
    raise ValueError(f"{name} must be {wanted}; got {value!r}.")


MONOTONE = "monotonic_cst"
"""The name of the argument."""

Constraints = tuple[int, ...]
"""For each feature 1 (the score must not fall as the feature rises), -1 (not rise), or 0 (free)."""


def check_monotone(
    value: Any, n_features: int, feature_names: Sequence[str] | None
) -> Constraints | None:
    """Constraints as users give them.

    Parameters
    ----------
    value : array-like (n_features,), dict from names or indices, or None
        Of -1, 0 and 1.
    n_features : int
    feature_names : sequence of str, or None
        None if the features have no names.

    Returns
    -------
    tuple (n_features,) of int, or None
        None if nothing is constrained.

    Raises
    ------
    ValueError
        If a value is not -1, 0 or 1, if there are too few or too many values, or if a key is no
        feature.
    TypeError
        If it is neither a sequence of numbers nor a dict.
    """
    if value is None:
        return None
    if isinstance(value, Mapping):
        by_feature = [0] * n_features
        places = places_of_names(feature_names)
        for given, own in value.items():
            feature = feature_index(given, n_features, places, MONOTONE)
            by_feature[feature] = _direction(own, f"{MONOTONE}[{given!r}]")
        found = tuple(by_feature)
    else:
        found = _by_place(value, n_features)
    return found if any(found) else None


def _by_place(value: Any, n_features: int) -> Constraints:
    import numpy as np  # here: the help of the command line needs neither

    from gpustump import arrays

    if arrays.is_array(value):
        value = arrays.to_host(value)
    try:
        each = np.asarray(value)
    except ValueError:
        each = np.asarray(None)
    if each.ndim != 1 or each.dtype.kind not in "biufO":
        raise TypeError(
            f"{MONOTONE} must be a sequence of -1, 0 or 1, one for each feature, or a dict from "
            f"feature names to them; got {shown(value)}."
        )
    if len(each) != n_features:
        raise ValueError(
            f"{MONOTONE} has {len(each)} values, but X has {n_features} features. Pass one for "
            "each feature, 0 for those without a constraint."
        )
    return tuple(_direction(own, f"{MONOTONE}[{k}]") for k, own in enumerate(each.tolist()))


def _direction(value: Any, name: str) -> int:
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not is_number or value not in (-1, 0, 1):
        raise ValueError(f"{name} must be -1, 0 or 1; got {shown(value)}.")
    return int(value)


_PAIRS = "interactions"
"""The name of the argument."""

USUAL_SHARE, MOST_USUAL = 3.0, 100
"""What "auto" stands for: so many pairs a feature, but at most the second number."""

_WANTED_PAIRS = (
    f'{_PAIRS} must be a whole number of pairs, 0 or more; a number a feature such as "3x"; '
    '"auto"; or a list of pairs of features, by index or name'
)


class Interactions(NamedTuple):
    """Which pairs a fit is to learn.

    Attributes
    ----------
    number : int
        The most pairs.
    chosen : tuple of (int, int), or None
        Pairs of features, the lower one first; None if the fit chooses them.
    """

    number: int
    chosen: tuple[tuple[int, int], ...] | None = None


def check_form(value: Any) -> None:
    """Check what can be checked before the features are known.

    Raises
    ------
    ValueError, TypeError
        If the value is none of the forms that `check_interactions` takes.
    """
    if isinstance(value, str):
        _share_of(value)
    elif isinstance(value, bool) or not isinstance(value, numbers.Integral | Sequence):
        raise TypeError(f"{_WANTED_PAIRS}; got {shown(value)}.")
    elif isinstance(value, numbers.Integral) and value < 0:
        raise ValueError(f"{_WANTED_PAIRS}; got {shown(value)}.")


def check_interactions(
    value: Any,
    n_features: int,
    feature_names: Sequence[str] | None,
    monotone: Sequence[int] | None,
    *,
    quantity: QuantityLoss | None = None,
) -> Interactions:
    """Interactions as users give them.

    Parameters
    ----------
    value : int, str, or sequence of pairs
        A number of pairs; a number a feature, such as "3x" or "0.5x"; "auto" for what
        `USUAL_SHARE` and `MOST_USUAL` say; or pairs of indices or names.
    n_features : int
    feature_names : sequence of str, or None
    monotone : sequence of int, or None
        Each feature's constraint. Those that have one have no part in pairs.
    quantity : str or None
        The loss of a quantity. With "quantile" there are no pairs.

    Raises
    ------
    ValueError, TypeError
        If the value is none of these, or names no feature, or one twice, or a constrained one.
    """
    check_form(value)
    if quantity == "quantile":
        wanted = check_interactions(value, n_features, feature_names, monotone)
        if wanted.number and value != "auto":
            raise ValueError(
                f"{_PAIRS} must be 0 for loss='quantile', which has no pairs; got {shown(value)}."
            )
        return Interactions(0)
    most = n_features * (n_features - 1) // 2
    if isinstance(value, str):
        share = _share_of(value)
        number = math.ceil(n_features * (USUAL_SHARE if share is None else share))
        return Interactions(min(number, most, MOST_USUAL if share is None else most))
    if isinstance(value, numbers.Integral):
        return Interactions(min(int(value), most))
    places = places_of_names(feature_names)
    found = []
    for pair in value:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise ValueError(f"{_WANTED_PAIRS}; one of them is {shown(pair)}.")
        first, second = sorted(feature_index(own, n_features, places, _PAIRS) for own in pair)
        if first == second:
            raise ValueError(f"{_PAIRS} must pair two features; got {shown(pair)}.")
        if monotone is not None and (monotone[first] or monotone[second]):
            raise ValueError(
                f"{_PAIRS} has the pair {shown(pair)}, but features with a monotone constraint "
                "have no part in pairs. Leave it out, or drop the constraint."
            )
        found.append((first, second))
    found = [own for own, _ in itertools.groupby(sorted(found))]
    return Interactions(len(found), tuple(found))


def _share_of(value: str) -> float | None:
    """The number of pairs a feature that a text asks for; None for "auto"."""
    if value == "auto":
        return None
    try:
        share = float(value.removesuffix("x"))
    except ValueError:
        share = math.nan
    if not value.endswith("x") or not 0.0 <= share < math.inf:
        raise ValueError(f"{_WANTED_PAIRS}; got {value!r}.")
    return share


def places_of_names(feature_names: Sequence[str] | None) -> dict[str, int] | None:
    """The index of each name of a feature."""
    if feature_names is None:
        return None
    return {str(name): place for place, name in enumerate(feature_names)}


def feature_index(
    given: Any, n_features: int, places: Mapping[str, int] | None, argument: str
) -> int:
    """The index of a feature that an argument gives by its index or its name.

    `places` are those of the names; see `places_of_names`.
    """
    if isinstance(given, str):
        if places is None:
            raise ValueError(
                f"{argument} names {given!r}, but the features of X have no names. Pass indices, "
                "or a frame whose column names are text."
            )
        if given not in places:
            hint = suggestion(given, [*places])
            raise ValueError(f"{argument} names {given!r}, which X does not have.{hint}")
        return places[given]
    if isinstance(given, bool) or not isinstance(given, numbers.Integral):
        raise TypeError(f"{argument}: a feature must be an index or a name; got {shown(given)}.")
    if not -n_features <= int(given) < n_features:
        raise ValueError(
            f"{argument}: X has {n_features} features, 0 to {n_features - 1}; got {given}."
        )
    return int(given) % n_features
