"""What a model's details say of the fit that made it, so that an audit needs nothing else.

The record names the estimator, the parameters that decide the model, and the seeds that were drawn.
It is not part of the digest, and it may come from a file, so every value is checked before it is
used.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gpustump.data.class_weights import check_class_weight
from gpustump.data.readable import listed, shown
from gpustump.estimators.deciding import deciding_parameters
from gpustump.estimators.held_out_split import Provided, Split
from gpustump.estimators.validation_data import Note
from gpustump.model import model_file

KEY = "estimator"
"""Where the record stands in a model's details."""

FINGERPRINT = "fingerprint"
"""Where the fingerprint of the training table stands, if it is known."""

_MOST_SEED = 2**31 - 2


class Recorded(NamedTuple):
    """What is known of a fit.

    Attributes
    ----------
    estimator : StumpClassifier
        Unfitted, with the parameters that decide the model.
    seeds : tuple of int, or None
        Those of the split of each bag, or of the only training; None if nothing was drawn, or if
        the estimator's `random_state` gives them.
    passed : bool
        Whether rows to watch were passed as X_val and y_val.
    went_on : bool
        Whether the fit went on from an earlier one.
    by_callback : bool
        Whether a callback ended a run.
    dtype : str or None
        The float dtype in which the values were compared, on which thresholds depend; None if it
        is not known.
    """

    estimator: Any
    seeds: tuple[int, ...] | None = None
    passed: bool = False
    went_on: bool = False
    by_callback: bool = False
    dtype: str | None = None


def record_of(estimator: Any, notes: Sequence[Note] = (), reasons: Sequence[str] = ()) -> Any:
    """The record of a fit for a model's details; None if a parameter cannot be written to a file.

    Parameters
    ----------
    estimator : StumpClassifier
        As it was before the fit, except for `_dtype`, which is that of the table.
    notes : sequence of Split, Provided or None
        How watched samples were chosen, for each bag.
    reasons : sequence of str
        Why each run ended.
    """
    cls = _recorded_class(type(estimator))
    if cls is None:
        return None
    record: dict[str, Any] = {
        "name": cls.__name__,
        "parameters": _parameters(estimator, cls),
    }
    dtype = getattr(estimator, "_dtype", None)
    if dtype is not None:
        record["dtype"] = dtype
    seeds = [split.seed for split in map(_split_of, notes) if split is not None]
    if seeds:
        record["seeds"] = seeds
    flags = {
        "passed": any(isinstance(note, Provided) for note in notes),
        "went_on": getattr(estimator, "warm_start", False) and hasattr(estimator, "model_"),
        "by_callback": "callback" in reasons,
    }
    try:
        found = model_file.as_read(record | {name: True for name, is_so in flags.items() if is_so})
    except (TypeError, ValueError):  # a parameter that the fit did not use may be anything
        return None
    return found


def recorded(details: Mapping[str, Any]) -> Recorded | None:
    """What the details of a model say of its fit; None if they hold no record.

    Raises
    ------
    ValueError
        If they hold something else than `record_of` returns.
    """
    if KEY not in details:
        return None
    record = details[KEY]
    if not isinstance(record, Mapping):
        raise _wrong(f"it must be an object; got {shown(record)}")
    flags = {name: record.get(name, False) for name in ("passed", "went_on", "by_callback")}
    for name, value in flags.items():
        if type(value) is not bool:
            raise _wrong(f"{name} must be true or false; got {shown(value)}")
    estimator = estimator_named(record.get("name"), record.get("parameters"))
    dtype = checked_dtype(record.get("dtype"))
    return Recorded(estimator, _seeds(record.get("seeds")), **flags, dtype=dtype)


def of_estimator(estimator: Any) -> Any:
    """An estimator of this package with the parameters of another one that decide the model.

    Raises
    ------
    TypeError
        If it is no estimator of this package, or has a parameter that no file can hold.
    ValueError
        If a parameter is out of its range.
    """
    record = record_of(estimator)
    if record is None:
        raise TypeError(
            "estimator must be a classifier or regressor of gpustump with parameters that a file "
            f"can hold; got {estimator!r}."
        )
    return estimator_named(record["name"], record["parameters"])


def estimator_named(name: Any, parameters: Any) -> Any:
    """An estimator from the name of its class and its parameters as a file holds them.

    Raises
    ------
    ValueError
        If there is no such class or parameter, or if a value is out of its range.
    """
    classes = {cls.__name__: cls for cls in _classes()}
    if not isinstance(name, str) or name not in classes:
        raise _wrong(f"its estimator must be one of {listed(classes)}; got {shown(name)}")
    if not isinstance(parameters, Mapping):
        raise _wrong(f"its parameters must be an object; got {shown(parameters)}")
    known = _names_of(classes[name])
    unknown = [key for key in parameters if key not in known]
    if unknown:
        raise _wrong(f"{name} has no parameter {shown(unknown[0])}")
    found = classes[name](**{key: _given(key, value) for key, value in parameters.items()})
    try:
        found._settings()
        check_class_weight(getattr(found, "class_weight", None))
    except (TypeError, ValueError, OverflowError) as error:
        raise _wrong(str(error).rstrip(".")) from error
    return found


def checked_dtype(found: Any) -> str | None:
    """The dtype in a record; None if it has none.

    Raises
    ------
    ValueError
    """
    if found is not None and found not in ("float16", "float32", "float64"):
        raise _wrong(f"its dtype must be float16, float32 or float64; got {shown(found)}")
    return None if found is None else str(found)


def _wrong(problem: str) -> ValueError:
    return ValueError(
        f"the model's record of its training cannot be used: {problem}. Pass the estimator with "
        "the parameters of the fit: audit(..., estimator=...)."
    )


def _classes() -> tuple[type, ...]:
    from gpustump.estimators import (
        AdaBoostClassifier,
        DecisionStumpClassifier,
        GlassBoxClassifier,
        GlassBoxRegressor,
        LogitBoostClassifier,
        StumpBoostingRegressor,
    )

    return (
        AdaBoostClassifier, DecisionStumpClassifier, GlassBoxClassifier, LogitBoostClassifier,
        GlassBoxRegressor, StumpBoostingRegressor,
    )  # fmt: skip


def _recorded_class(own: type) -> type | None:
    """The class of this package that an estimator's class is, or derives from."""
    classes = _classes()
    return next((cls for cls in own.__mro__ if cls in classes), None)


def _parameters(estimator: Any, cls: type) -> dict[str, Any]:
    if not hasattr(estimator, "n_bags"):  # no parameter decides a single stump
        return {}
    known = _names_of(cls)
    return {key: own for key, own in deciding_parameters(estimator).items() if key in known}


@functools.cache
def _names_of(cls: Any) -> frozenset[str]:
    """The parameters that a record may hold."""
    example = cls()
    return frozenset(deciding_parameters(example)) if hasattr(example, "n_bags") else frozenset()


def _split_of(note: Note) -> Split | None:
    return note.share if isinstance(note, Provided) else note


def _seeds(found: Any) -> tuple[int, ...] | None:
    if found is None:
        return None
    if type(found) is not list or not all(
        type(seed) is int and 0 <= seed <= _MOST_SEED for seed in found
    ):
        raise _wrong(f"its seeds must be whole numbers from 0 to {_MOST_SEED}; got {shown(found)}")
    return tuple(found)


def _given(name: str, value: Any) -> Any:
    """A parameter as `fit` takes it, from what a file holds."""
    if name == "class_weight" and isinstance(value, list):
        return _from_pairs(name, value)
    if name == "monotonic_cst" and value is not None:
        return _constraints(name, value)
    if name == "interactions" and isinstance(value, list):
        pairs = [tuple(own) if _is_list(own) else own for own in value]
        if not all(isinstance(own, tuple) and all(map(_is_plain, own)) for own in pairs):
            raise _wrong(f"{name} must be a list of pairs; got {shown(value)}")
        return pairs
    is_list = isinstance(value, list) and name == "categorical_features"
    if not all(map(_is_plain, value if is_list else [value])):
        raise _wrong(f"{name} has a value of a wrong type: {shown(value)}")
    return value


def _constraints(name: str, value: Any) -> Any:
    """Constraints: a list of numbers, or a mapping from names to them."""
    if not isinstance(value, list):
        raise _wrong(f"{name} must be a list; got {shown(value)}")
    found = _from_pairs(name, value) if any(map(_is_list, value)) else value
    numbers = found.values() if isinstance(found, dict) else found
    if not all(isinstance(own, (int, float)) and own in (-1, 0, 1) for own in numbers):
        raise _wrong(f"{name} must hold -1, 0 and 1 only; got {shown(value)}")
    return found


def _from_pairs(name: str, value: list[Any]) -> dict[Any, Any]:
    if not all(_is_list(own) and len(own) == 2 and all(map(_is_plain, own)) for own in value):
        raise _wrong(f"{name} must be a list of pairs; got {shown(value)}")
    return dict(value)


def _is_list(value: Any) -> bool:
    return isinstance(value, list)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))
