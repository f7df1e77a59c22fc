"""A model as the document in its file, and back, with every part checked.

A file may have been edited with its digest and its checksum computed anew, or be the work of some
other program. So nothing in it is taken on trust: a file that loads is one that `write` could have
written, and the model has the digest that the file says. `write` makes the same checks, so that no
file is written that cannot be read.
"""

from __future__ import annotations

import contextlib
import gc
import os
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, NamedTuple

from gpustump.data.readable import is_text, shown
from gpustump.learners.interval import Interval
from gpustump.model import model_file
from gpustump.model.class_labels import Label, check_classes
from gpustump.model.model_file import ModelFileError, ModelText
from gpustump.model.stump_rows import (
    INTERVAL_FIELDS,
    STUMP_FIELDS,
    Columns,
    Stumps,
    Votes,
    checked_columns,
    rows_of,
    stumps_of,
)

MOST_UNLISTED_FEATURES = 1_000_000
"""Features that a file may claim without a name, or an entry of `missing_learnt`, for each.

A number in a few bytes decides how much memory explanations and tables of features take. This many
take a gigabyte at worst. With a list, the file grows with the number of its features, so any
number is believed.
"""

DEEPEST_DETAILS = 100
"""Levels of nesting in `details`: far below those at which Python's JSON reader gives up."""


class Contents(NamedTuple):
    """What a file holds; see `StumpEnsemble`. A member is its stumps and their votes."""

    members: Sequence[tuple[Stumps, Votes]]
    n_features: int
    classes: tuple[Label, ...]
    feature_names: tuple[str, ...] | None
    missing_learnt: tuple[bool, ...] | None
    details: Mapping[str, Any]


@contextlib.contextmanager
def _collector_paused() -> Iterator[None]:
    """Keep Python's cyclic garbage collector from searching millions of new rows again and again.

    They are in no cycles. This saves a third of the time that a large file takes.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@_collector_paused()
def digest_of(contents: Contents) -> str:
    """SHA-256 of the canonical bytes of the document's part "model", hexadecimal."""
    return model_file.digest_of(_model_text(_model(contents)))


@_collector_paused()
def write(contents: Contents, path: str | PathLike[str]) -> None:
    """Write a model to a file, whole or not at all.

    Raises
    ------
    ValueError
        If `read` would refuse the file: it says which part, and what is wanted.
    TypeError
        If JSON has no type for some part.
    OSError
        If the file cannot be written.
    """
    model = _model(contents)
    parts = {
        "feature_names": contents.feature_names,
        "missing_learnt": contents.missing_learnt,
        "details": dict(contents.details),
    }
    if contents.missing_learnt is None:
        del parts["missing_learnt"]
    version = _version(contents)
    try:
        head = {key: value for key, value in model.items() if key != "members"}
        model |= model_file.as_read(head)
        parts = model_file.as_read(parts)
        _check({**parts, "version": version, "model": model})
    except ValueError as error:
        raise ValueError(f"this model cannot be saved: {error}") from error
    model_file.write(parts, _model_text(model), path, version)


@_collector_paused()
def read(path: str | PathLike[str]) -> Contents:
    """Read a model that `write` wrote.

    Raises
    ------
    ModelFileError
        If the file is not an intact model.
    OSError
        If it cannot be read.
    """
    document = model_file.read(path)
    try:
        members = _check(document)
    except ValueError as error:
        raise ModelFileError(
            f"{os.fspath(path)} does not hold a model that gpustump can have written: {error}"
        ) from error
    names, learnt = document["feature_names"], document.get("missing_learnt")
    return Contents(
        members=[(stumps_of(columns), tuple(columns.vote)) for columns in members],
        n_features=document["model"]["n_features"],
        classes=tuple(document["model"]["classes"]),
        feature_names=None if names is None else tuple(names),
        missing_learnt=None if learnt is None else tuple(learnt),
        details=document["details"],
    )


def _version(contents: Contents) -> int:
    has_intervals = any(isinstance(s, Interval) for stumps, _ in contents.members for s in stumps)
    return 2 if has_intervals else 1


def _model(contents: Contents) -> dict[str, Any]:
    """The part that the digest covers."""
    has_intervals = _version(contents) == 2
    return {
        "n_features": contents.n_features,
        "classes": list(contents.classes),
        "stump_fields": INTERVAL_FIELDS if has_intervals else STUMP_FIELDS,
        "members": [
            rows_of(stumps, votes, with_low=has_intervals) for stumps, votes in contents.members
        ],
    }


def _model_text(model: Mapping[str, Any]) -> ModelText:
    head = {key: value for key, value in model.items() if key != "members"}
    return ModelText(head, tuple(map(model_file.rows_text, model["members"])))


def _check(document: Mapping[str, Any]) -> list[Columns]:
    """The members of a document, after checking all that a model is made from.

    Unknown parts beside the model are left alone: later versions may add some.

    Raises
    ------
    ValueError
        That names the part, what was found and what is wanted.
    """
    for part in ("feature_names", "details", "model"):
        if part not in document:
            raise ValueError(f"it has no part {part!r}.")
    model = document["model"]
    _check_parts(model)
    _check_n_features(document)
    check_classes(model["classes"])
    _check_names(document["feature_names"], model["n_features"])
    if "missing_learnt" in document:
        _check_missing_learnt(document["missing_learnt"], model["n_features"])
    _check_details(document["details"])
    return _checked_members(model, document["version"])


def _check_parts(model: Any) -> None:
    wanted = {"n_features", "classes", "stump_fields", "members"}
    if type(model) is not dict or set(model) != wanted:
        found = sorted(model) if type(model) is dict else model
        raise ValueError(
            f"model must be an object of {', '.join(sorted(wanted))}; got {shown(found)}."
        )


def _check_n_features(document: Mapping[str, Any]) -> None:
    n_features = document["model"]["n_features"]
    if type(n_features) is not int or not 1 <= n_features < 2**63:
        raise ValueError(
            f"n_features must be a whole number from 1 to 2**63 - 1; got {shown(n_features)}."
        )
    is_listed = document["feature_names"] is not None or "missing_learnt" in document
    if n_features > MOST_UNLISTED_FEATURES and not is_listed:
        raise ValueError(
            f"n_features must be at most {MOST_UNLISTED_FEATURES} unless feature_names or "
            f"missing_learnt list every feature; got {n_features}. Give the model "
            "feature_names."
        )


def _check_names(names: Any, n_features: int) -> None:
    if names is None:
        return
    if type(names) is not list or len(names) != n_features:
        raise ValueError(
            f"feature_names must be null or a list of {n_features} names; got {_length_of(names)}."
        )
    for place, name in enumerate(names):
        if not is_text(name):
            raise ValueError(f"feature_names[{place}] must be text; got {shown(name)}.")


def _check_missing_learnt(learnt: Any, n_features: int) -> None:
    if type(learnt) is not list or len(learnt) != n_features:
        raise ValueError(
            f"missing_learnt must be left out or a list with true or false for each of {n_features}"
            f" features; got {_length_of(learnt)}."
        )
    for place, value in enumerate(learnt):
        if type(value) is not bool:
            raise ValueError(f"missing_learnt[{place}] must be true or false; got {shown(value)}.")


def _length_of(value: Any) -> str:
    return f"{len(value)} values" if type(value) is list else shown(value)


def _check_details(details: Any) -> None:
    """Refuse all but an object whose text can be written, and that is not nested too deeply."""
    if type(details) is not dict:
        raise ValueError(f"details must be an object; got {shown(details)}.")
    values: list[Any] = [details]
    for _ in range(DEEPEST_DETAILS):
        for value in values:
            if isinstance(value, str) and not is_text(value):
                raise ValueError(
                    f"details must hold text without unpaired surrogates; got {shown(value)}."
                )
        values = [inner for value in values for inner in _inside(value)]
        if not values:
            return
    raise ValueError(f"details must be nested in at most {DEEPEST_DETAILS} levels.")


def _inside(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*value, *value.values()]
    return value if isinstance(value, list) else []


def _checked_members(model: Mapping[str, Any], version: int) -> list[Columns]:
    fields = STUMP_FIELDS if version == 1 else INTERVAL_FIELDS
    if model["stump_fields"] != fields:
        raise ValueError(
            f"stump_fields must be {', '.join(fields)} in version {version}; got "
            f"{shown(model['stump_fields'])}."
        )
    members, n_classes = model["members"], len(model["classes"])
    wanted = 1 if n_classes == 2 else n_classes
    if type(members) is not list or len(members) != wanted:
        raise ValueError(
            f"members must be a list of {wanted} for {n_classes} classes; got "
            f"{_length_of(members)}."
        )
    found = []
    for place, rows in enumerate(members):
        try:
            found.append(checked_columns(rows, fields, model["n_features"]))
        except ValueError as error:
            raise ValueError(f"members[{place}]: {error}") from error
    if version == 2 and all(low is None for columns in found for low in columns.low):
        raise ValueError("members must hold an interval in version 2; all are stumps.")
    return found
