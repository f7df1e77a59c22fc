"""A model as the document in its file, and back, with every part checked.

A file may have been edited with its digest and its checksum computed anew, or be the work of some
other program. So nothing in it is taken on trust: a file that loads is one that `write` could have
written, and the model has the digest that the file says. To see that, the model is made of the
parts of the document, and its own parts are compared with them. What a model made by hand may hold,
and no file, is checked both before writing and in reading.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

from gpustump.data.collector import collector_paused
from gpustump.data.parameters import QUANTITY_LINKS
from gpustump.data.readable import is_text, shortened, shown
from gpustump.learners.interval import Interval
from gpustump.learners.kinds import OfCategories
from gpustump.model import model_file
from gpustump.model import pairs as model_pairs
from gpustump.model.bags import Bags
from gpustump.model.classes import check_classes
from gpustump.model.edits import edits_of
from gpustump.model.encoding import stored_encoding
from gpustump.model.members import RegionMember
from gpustump.model.model_file import ModelFileError, ModelText, refuse_others, sha256
from gpustump.model.rows import (
    WRONG,
    check_member,
    check_votes,
    fields_of,
    member_of_rows,
    reason_of,
    rows_of,
)

if TYPE_CHECKING:
    from gpustump.model.ensemble import StumpEnsemble

MOST_UNLISTED_FEATURES = 1_000_000
"""The most features of a file that holds neither their names nor `missing_learnt`.

A number in a few bytes decides how much memory explanations and tables of features take: at most a
gigabyte with this limit. A list makes the file grow with the number of features, so with a list
any number is accepted.
"""

DEEPEST_DETAILS = 100
"""The most levels of nesting in `details`, far below those at which Python's JSON reader fails."""


@collector_paused()  # no row is in a cycle; a large file takes a third less time
def digest_of(model: StumpEnsemble) -> str:
    """SHA-256 of the canonical bytes of the document's part "model", hexadecimal."""
    return sha256(_model_text(_model(model)).canonical())


@collector_paused()
def write(model: StumpEnsemble, path: str | PathLike[str]) -> None:
    """Write a model to a file, whole or not at all.

    Raises
    ------
    ValueError
        If `read` would refuse the file; the message names the part and what is wanted.
    TypeError
        If JSON has no type for some part.
    OSError
        If the file cannot be written.
    """
    own = _model(model)
    try:
        own |= model_file.as_read({key: part for key, part in own.items() if key != "members"})
        parts = model_file.as_read(_other_parts(model, model_pairs.seen_of(model.pairs)))
        _check_parts({**parts, "model": own})
        _check_numbers(model)
    except ValueError as error:
        raise ValueError(f"this model cannot be saved: {error}") from error
    model_file.write(parts, _model_text(own), path)


@collector_paused()
def read(path: str | PathLike[str], make: Callable[..., StumpEnsemble]) -> StumpEnsemble:
    """The model in a file that `write` wrote; `make` is `StumpEnsemble`.

    Raises
    ------
    ModelFileError
        If the file is not an intact model.
    OSError
        If it cannot be read.
    """
    document = model_file.read(path)
    try:
        _check_parts(document)
        model = make(**_fields_of(document))
        _check_numbers(model)
        _check_as_written(document, model)
        stored_encoding(model.details, model.n_features, model.feature_names)
    except WRONG as error:
        raise ModelFileError(
            f"{os.fspath(path)} does not hold a model that gpustump can have written: "
            f"{shortened(reason_of(error), 400)}"
        ) from error
    return model


def _model(model: StumpEnsemble) -> dict[str, Any]:
    """The part that the digest covers; rows have those fields that the hypotheses need."""
    first, has_pairs = model.members[0], bool(model.pairs or model.moved)
    is_of_regions = isinstance(first, RegionMember)
    kinds = {type(one) for member in model.members for one in member.hypotheses}
    sets = has_pairs or any(issubclass(kind, OfCategories) for kind in kinds)
    low = not is_of_regions and (sets or Interval in kinds)
    fields = fields_of(first.n_outputs if is_of_regions else None, low=low, sets=sets)
    found: dict[str, Any] = {
        "n_features": model.n_features,
        "classes": list(model.classes),
    }
    if has_pairs:
        found["pairs"] = model_pairs.parts_of(model.pairs)
        found["moved"] = [rows_of(own, fields) for own in model.moved]
    if is_of_regions:
        found["link"] = model.link
        found["constants"] = [member.constant.tolist() for member in model.members]
    rows = [rows_of(member, fields) for member in model.members]
    return {**found, "stump_fields": fields, "members": rows}


def _model_text(model: Mapping[str, Any]) -> ModelText:
    head = {key: value for key, value in model.items() if key != "members"}
    return ModelText(head, tuple(map(model_file.rows_text, model["members"])))


def _other_parts(model: StumpEnsemble, seen: Any = None) -> dict[str, Any]:
    """What a document holds beside the part "model"; without `seen` all but that part."""
    parts: dict[str, Any] = {"feature_names": model.feature_names}
    if model.missing_learnt is not None:
        parts["missing_learnt"] = model.missing_learnt
    parts["details"] = dict(model.details)
    if model.bags is not None:
        parts["bags"] = {"sizes": model.bags.sizes, "constants": model.bags.constants}
    if seen is not None and (model.pairs or model.moved):
        parts["seen"] = seen
    if model.edits is not None:
        made = [edit.as_part(model.term_names) for edit in model.edits.made]
        parts["edits"] = {"of": model.edits.of, "made": made}
    return parts


def _fields_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """What the model in a document is made of, as `StumpEnsemble` names it."""
    model, names = document["model"], document["feature_names"]
    rows, fields = model["members"], model["stump_fields"]
    constants = model["constants"] if "link" in model else [None] * len(rows)
    members = _members_of("members", rows, constants, fields)
    found: dict[str, Any] = {
        "members": members,
        "n_features": model["n_features"],
        "classes": tuple(model["classes"]),
        "feature_names": None if names is None else tuple(names),
        "link": model.get("link", "logistic"),
        "details": document["details"],
    }
    if "missing_learnt" in document:
        with _naming("missing_learnt"):
            found["missing_learnt"] = tuple(document["missing_learnt"])
    if "bags" in document:
        with _naming("bags"):
            found["bags"] = Bags(document["bags"]["sizes"], document["bags"]["constants"])
    if "pairs" in model:
        with _naming("pairs"):
            n_bags = found["bags"].n_bags if "bags" in found else 1
            found["pairs"] = model_pairs.pairs_of(model["pairs"], document["seen"], n_bags)
        zeros = [[0.0] * member.n_outputs for member in members]
        found["moved"] = _members_of("moved", model["moved"], zeros, fields)
    if "edits" in document:
        with _naming("edits"):
            found["edits"] = edits_of(document["edits"], model["n_features"])
    return found


def _members_of(name: str, rows: Any, constants: Any, fields: Any) -> tuple[Any, ...]:
    found = []
    for place, (own, constant) in enumerate(zip(rows, constants, strict=True)):
        with _naming(f"{name}[{place}]"):
            found.append(member_of_rows(own, constant, fields))
    return tuple(found)


def _check_parts(document: Mapping[str, Any]) -> None:
    """Check those parts that a model does not check: numbers, labels, names and details."""
    model, n_features = document["model"], document["model"]["n_features"]
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
    if model.get("link") not in QUANTITY_LINKS:
        check_classes(model["classes"])
    for place, name in enumerate(document["feature_names"] or ()):
        if not is_text(name):
            raise ValueError(f"feature_names[{place}] must be text; got {shown(name)}.")
    if type(document["details"]) is not dict:
        raise ValueError(f"details must be an object; got {shown(document['details'])}.")
    _check_details(document["details"])


def _check_details(value: Any, levels: int = DEEPEST_DETAILS) -> None:
    """Check that details hold text that can be written, and are not nested too deeply."""
    if levels == 0:
        raise ValueError(f"details must be nested in at most {DEEPEST_DETAILS} levels.")
    if isinstance(value, str) and not is_text(value):
        raise ValueError(f"details must hold text without unpaired surrogates; got {shown(value)}.")
    if isinstance(value, dict):
        value = [*value, *value.values()]
    for inner in value if isinstance(value, list) else ():
        _check_details(inner, levels - 1)


def _check_numbers(model: StumpEnsemble) -> None:
    """Check that scores are exact, and that pairs have the bins and numbers that they need."""
    is_quantity = model.link == "identity"
    for name, members in (("members", model.members), ("moved", model.moved)):
        for place, member in enumerate(members):
            with _naming(f"{name}[{place}]"):
                check_member(member, is_quantity=is_quantity)
    if model.bags is not None and not is_quantity:
        check_votes("bags: constants", model.bags.constants)
    for place, pair in enumerate(model.pairs):
        with _naming(f"pairs[{place}]"):
            model_pairs.check_pair(pair, model.n_bags)
            if not is_quantity:
                check_votes("values", pair.values)


def _check_as_written(document: Mapping[str, Any], model: StumpEnsemble) -> None:
    """Refuse a document that is not what `write` makes of the model in it.

    Unknown parts besides the model are ignored, as later versions may add some. Packed numbers are
    not compared: other builds of zlib may pack them in another way.
    """
    own = _model(model)
    if sha256(_model_text(own).canonical()) != document["digest"]:
        refuse_others("model", document["model"], own)
    for name, part in model_file.as_read(_other_parts(model)).items():
        refuse_others(name, document[name], part)


@contextlib.contextmanager
def _naming(part: str) -> Iterator[None]:
    """Let errors say which part of a document they are about."""
    try:
        yield
    except WRONG as error:
        raise ValueError(f"{part}: {reason_of(error)}") from error
