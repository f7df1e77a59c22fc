"""The parameters that decide a model, and what a model's details say of the fit that made it.

A record names the estimator, the parameters that decide the model, and the seeds that were drawn,
so that an audit needs nothing else. It is not part of the digest. It may come from a file: the
estimator that is made from it checks its parameters as those of any caller.

The other parameters say where and how fast a model is trained, and what is shown or called
meanwhile. `random_state` is left out, too: it only decides the seed of each split, and these seeds
are known after the fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple

from gpustump import arrays
from gpustump.data.readable import listed, shown
from gpustump.data.weights import check_class_weight
from gpustump.estimators.held_out import Split
from gpustump.model import model_file

KEY = "estimator"
"""Where the record stands in a model's details."""

FINGERPRINT = "fingerprint"
"""Where the fingerprint of the training table stands, if it is known."""

_MOST_SEED = 2**31 - 2

_NOT_DECIDING = frozenset(
    {
        *("device", "n_jobs", "max_memory", "block_bytes", "verbose", "callback", "checkpoint"),
        *("random_state", "warm_start"),
        "estimator",  # it may only be a stump
    }
)


def deciding_parameters(estimator: Any) -> dict[str, Any]:
    """The parameters that decide the model, with values that JSON has.

    Parameters
    ----------
    estimator : BaseEstimator
        One of this package.

    Returns
    -------
    dict of str
        In the order of their names. A mapping becomes a list of pairs, sorted by type and value of
        the keys, since labels may be numbers; arrays of any library become lists, and NumPy's
        numbers Python's.
    """
    given = estimator.get_params(deep=False)
    return {name: plain(given[name]) for name in sorted(given) if name not in _NOT_DECIDING}


def plain(value: Any) -> Any:
    """A parameter's value as JSON has it."""
    if arrays.is_array(value):  # of any library, and NumPy's numbers
        return arrays.to_host(value).tolist()
    if isinstance(value, Mapping):
        pairs = [[plain(key), plain(own)] for key, own in value.items()]
        return sorted(pairs, key=lambda pair: (type(pair[0]).__name__, pair[0]))
    if isinstance(value, Iterable) and not isinstance(value, str):
        return [plain(own) for own in value]
    if isinstance(value, Real) and not isinstance(value, Integral):
        return float(value)  # as it is used; a fraction, for example
    return value


class Recorded(NamedTuple):
    """What is known of a fit.

    Attributes
    ----------
    estimator : StumpEstimator
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


def record_of(
    estimator: Any, splits: Sequence[Split | None] = (), reasons: Sequence[str] = ()
) -> Any:
    """The record of a fit for a model's details; None if a parameter cannot be written to a file.

    Parameters
    ----------
    estimator : StumpEstimator
        As it was before the fit, except for `_dtype`, which is that of the table.
    splits : sequence of Split or None
        How watched samples were chosen, for each bag.
    reasons : sequence of str
        Why each run ended.
    """
    classes = _classes()
    cls = next((own for own in type(estimator).__mro__ if own in classes), None)
    if cls is None:
        return None
    record: dict[str, Any] = {"name": cls.__name__, "parameters": _parameters(estimator, cls)}
    if estimator._dtype is not None:
        record["dtype"] = estimator._dtype
    seeds = [split.seed for split in splits if split is not None and split.seed is not None]
    if seeds:
        record["seeds"] = seeds
    flags = {
        "passed": any(split is not None and split.is_passed for split in splits),
        "went_on": estimator._goes_on,
        "by_callback": "callback" in reasons,
    }
    try:
        return model_file.as_read(record | {name: True for name, is_so in flags.items() if is_so})
    except (TypeError, ValueError):  # a parameter that the fit did not use may be anything
        return None


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
    estimator = _named(record.get("name"), record.get("parameters"))
    dtype, seeds = record.get("dtype"), record.get("seeds")
    if dtype not in (None, "float16", "float32", "float64"):
        raise _wrong(f"its dtype must be float16, float32 or float64; got {shown(dtype)}")
    if seeds is not None:
        is_list = type(seeds) is list
        if not is_list or not all(type(own) is int and 0 <= own <= _MOST_SEED for own in seeds):
            wanted = f"its seeds must be whole numbers from 0 to {_MOST_SEED}"
            raise _wrong(f"{wanted}; got {shown(seeds)}")
        seeds = tuple(seeds)
    return Recorded(estimator, seeds, **flags, dtype=dtype)


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
    return _named(record["name"], record["parameters"])


def _named(name: Any, parameters: Any) -> Any:
    """An estimator from the name of its class and its parameters as a file holds them."""
    classes = {cls.__name__: cls for cls in _classes()}
    if not isinstance(name, str) or name not in classes:
        raise _wrong(f"its estimator must be one of {listed(classes)}; got {shown(name)}")
    if not isinstance(parameters, Mapping):
        raise _wrong(f"its parameters must be an object; got {shown(parameters)}")
    known = _parameters(classes[name](), classes[name])
    unknown = [key for key in parameters if key not in known]
    if unknown:
        raise _wrong(f"{name} has no parameter {shown(unknown[0])}")
    try:
        found = classes[name](**{key: _given(key, value) for key, value in parameters.items()})
        found._settings()
        check_class_weight(found.class_weight)
    except (TypeError, ValueError, OverflowError) as error:
        raise _wrong(str(error).rstrip(".")) from error
    return found


def _given(name: str, value: Any) -> Any:
    """A parameter as `fit` takes it: JSON has lists of pairs for mappings and for tuples."""
    are_pairs = isinstance(value, list) and all(
        isinstance(own, list) and len(own) == 2 for own in value
    )
    if are_pairs and name in ("class_weight", "monotonic_cst"):
        return dict(value)
    if are_pairs and name == "interactions":
        return [tuple(own) for own in value]
    return value


def _wrong(problem: str) -> ValueError:
    return ValueError(
        f"the model's record of its training cannot be used: {problem}. Pass the estimator with "
        "the parameters of the fit: audit(..., estimator=...)."
    )


def _classes() -> tuple[type, ...]:
    from gpustump import estimators

    return tuple(getattr(estimators, name) for name in estimators.__all__)


def _parameters(estimator: Any, cls: type) -> dict[str, Any]:
    if not hasattr(estimator, "n_bags"):  # no parameter decides a single stump
        return {}
    known = cls().get_params(deep=False)
    return {key: own for key, own in deciding_parameters(estimator).items() if key in known}
