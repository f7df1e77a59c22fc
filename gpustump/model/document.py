"""A model as the document in its file, and back, with every part checked.

A file may have been edited with its digest and its checksum computed anew, or be the work of some
other program. So nothing in it is taken on trust: a file that loads is one that `write` could have
written, and the model has the digest that the file says. `write` makes the same checks, so that no
file is written that cannot be read.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

from gpustump.data.collector import collector_paused
from gpustump.data.parameters import QUANTITY_LINKS
from gpustump.data.readable import is_text, shown
from gpustump.learners.interval import Interval
from gpustump.learners.kinds import OfCategories
from gpustump.learners.pair_table import PairTable
from gpustump.model import model_file
from gpustump.model import pairs as model_pairs
from gpustump.model.bags import Bags
from gpustump.model.classes import check_classes
from gpustump.model.edits import checked_edits
from gpustump.model.members import Member, Members, RegionMember
from gpustump.model.model_file import ModelFileError, ModelText
from gpustump.model.rows import (
    QUANTITY,
    VOTE,
    ValueRule,
    checked_member,
    checked_region_member,
    fields_of,
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
    return model_file.digest_of(_model_text(_model(model)))


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
    parts: dict[str, Any] = {
        "feature_names": model.feature_names,
        "missing_learnt": model.missing_learnt,
        "details": dict(model.details),
    }
    if model.missing_learnt is None:
        del parts["missing_learnt"]
    if model.bags is not None:
        parts["bags"] = {"sizes": model.bags.sizes, "constants": model.bags.constants}
    if model.pairs or model.moved:
        parts["seen"] = model_pairs.seen_of(model.pairs)
    if model.edits is not None:
        names = model.term_names
        made = [edit.as_part(names) for edit in model.edits.made]
        parts["edits"] = {"of": model.edits.of, "made": made}
    own, version = _model(model), _version(model)
    try:
        own |= model_file.as_read({key: part for key, part in own.items() if key != "members"})
        parts = model_file.as_read(parts)
        _checked({**parts, "version": version, "model": own})
    except ValueError as error:
        raise ValueError(f"this model cannot be saved: {error}") from error
    model_file.write(parts, _model_text(own), path, version)


@collector_paused()
def read(path: str | PathLike[str]) -> dict[str, Any]:
    """What `StumpEnsemble` is made of, from a file that `write` wrote.

    Raises
    ------
    ModelFileError
        If the file is not an intact model.
    OSError
        If it cannot be read.
    """
    document = model_file.read(path)
    try:
        return _checked(document)
    except ValueError as error:
        raise ModelFileError(
            f"{os.fspath(path)} does not hold a model that gpustump can have written: {error}"
        ) from error


def _version(model: StumpEnsemble) -> int:
    if model.pairs or model.moved:
        return 5
    kinds = [type(one) for member in model.members for one in member.hypotheses]
    if any(issubclass(kind, OfCategories) for kind in kinds):
        return 4
    if isinstance(model.members[0], RegionMember):
        return 3
    return 2 if Interval in kinds else 1


def _fields(version: int, n_outputs: int | None) -> list[str]:
    """The columns of a row: of stumps with signs, or of splits that vote for so many outputs."""
    return fields_of(n_outputs, low=n_outputs is None and version > 1, sets=version >= 4)


def _model(model: StumpEnsemble) -> dict[str, Any]:
    """The part that the digest covers."""
    version, first = _version(model), model.members[0]
    is_of_regions = isinstance(first, RegionMember)
    fields = _fields(version, first.n_outputs if is_of_regions else None)
    found: dict[str, Any] = {
        "n_features": model.n_features,
        "classes": list(model.classes),
        "stump_fields": fields,
        "members": [rows_of(member, fields) for member in model.members],
    }
    if is_of_regions:
        found["link"] = model.link
        found["constants"] = [member.constant.tolist() for member in model.members]
    if version == 5:
        found["pairs"] = model_pairs.parts_of(model.pairs)
        found["moved"] = [rows_of(own, fields) for own in model.moved]
    order = ("n_features", "classes", "pairs", "moved", "link", "constants", "stump_fields")
    return {key: found[key] for key in (*order, "members") if key in found}


def _model_text(model: Mapping[str, Any]) -> ModelText:
    head = {key: value for key, value in model.items() if key != "members"}
    return ModelText(head, tuple(map(model_file.rows_text, model["members"])))


def _checked(document: Mapping[str, Any]) -> dict[str, Any]:
    """What a document holds, after checking every part of the model.

    Unknown parts besides the model are ignored, as later versions may add some.

    Raises
    ------
    ValueError
        If a part is wrong; the message names it, what was found and what is wanted.
    """
    for part in ("feature_names", "details", "model"):
        if part not in document:
            raise ValueError(f"it has no part {part!r}.")
    model, names = document["model"], document["feature_names"]
    learnt = document.get("missing_learnt")
    _check_parts(model, document["version"])
    _check_n_features(document)
    if model.get("link") not in QUANTITY_LINKS:
        check_classes(model["classes"])
    elif model["classes"] != []:
        raise ValueError(
            f"classes must be empty where link is {model['link']!r}; got {shown(model['classes'])}."
        )
    n_features = model["n_features"]
    if names is not None:
        wanted = f"null or a list of {n_features} names"
        _check_listed(document, "feature_names", wanted, ValueRule("text", is_text))
    if "missing_learnt" in document:
        wanted = f"left out or a list with true or false for each of {n_features} features"
        is_truth = ValueRule("true or false", lambda value: type(value) is bool)
        _check_listed(document, "missing_learnt", wanted, is_truth)
    _check_details(document["details"])
    members = _members_of(model, document["version"])
    bags = _bags_of(document)
    if bags is not None:
        bags.check(members)
    pairs, moved = _pairs_of(document, members, bags)
    return {
        "members": members,
        "n_features": n_features,
        "classes": tuple(model["classes"]),
        "feature_names": None if names is None else tuple(names),
        "link": model.get("link", "logistic"),
        "missing_learnt": None if learnt is None else tuple(learnt),
        "details": document["details"],
        "bags": bags,
        "pairs": pairs,
        "moved": moved,
        "edits": checked_edits(document["edits"], n_features) if "edits" in document else None,
    }


def _pairs_of(
    document: Mapping[str, Any], members: Members, bags: Bags | None
) -> tuple[tuple[PairTable, ...], tuple[RegionMember, ...]]:
    """The pairs in a document, and what was moved from them."""
    model = document["model"]
    if document["version"] != 5:
        return (), ()
    outputs, vote = [own.n_outputs for own in members], _vote_rule(model)
    n_bags = 1 if bags is None else bags.n_bags
    pairs = model_pairs.checked_pairs(
        model["pairs"], document.get("seen"), sum(outputs), n_bags, vote
    )
    rows, fields, n_features = model["moved"], model["stump_fields"], model["n_features"]
    if type(rows) is not list or len(rows) != len(members):
        raise ValueError(f"moved must be a list of {len(members)}; got {_length_of(rows)}.")
    moved = tuple(
        checked_region_member(own, [0.0] * n_outputs, fields, n_features, vote)
        for own, n_outputs in zip(rows, outputs, strict=True)
    )
    model_pairs.check_pairs(pairs, moved, members, n_features)
    return pairs, moved


def _bags_of(document: Mapping[str, Any]) -> Bags | None:
    """The bags in a document, or None. Whether they fit the members is not checked here.

    Raises
    ------
    ValueError
        If the part is not what `write` writes.
    """
    if "bags" not in document:
        return None
    found = document["bags"]
    if type(found) is not dict or set(found) != {"sizes", "constants"}:
        raise ValueError(f"bags must be an object of constants, sizes; got {shown(found)}.")
    sizes = _nested(found["sizes"], 2, "bags: sizes", _BAG_SIZE)
    rule = _vote_rule(document["model"])
    constants = _nested(found["constants"], 3, "bags: constants", rule)
    return Bags(sizes, constants)


def _vote_rule(model: Mapping[str, Any]) -> ValueRule:
    """What votes and constants must be."""
    return QUANTITY if model.get("link") == "identity" else VOTE


_BAG_SIZE = ValueRule("a whole number, 0 or more", lambda value: type(value) is int and value >= 0)


def _nested(value: Any, depth: int, name: str, rule: ValueRule) -> Any:
    """Nested lists as tuples, after checking every value in them."""
    if depth == 0:
        if not rule.is_right(value):
            raise ValueError(f"{name} must be {rule.wanted}; got {shown(value)}.")
        return value
    if type(value) is not list:
        raise ValueError(f"{name} must be lists of lists; got {shown(value)}.")
    return tuple(_nested(inner, depth - 1, name, rule) for inner in value)


def _has_regions(model: Any, version: int) -> bool:
    """Whether the regions of splits have votes of their own in a document."""
    return version in (3, 5) or (version == 4 and type(model) is dict and "link" in model)


def _check_parts(model: Any, version: int) -> None:
    wanted = {"n_features", "classes", "stump_fields", "members"}
    wanted |= {"link", "constants"} if _has_regions(model, version) else set()
    wanted |= {"pairs", "moved"} if version == 5 else set()
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


def _check_listed(document: Mapping[str, Any], part: str, wanted: str, entry: ValueRule) -> None:
    """Check a part that lists something for each feature."""
    values, n_features = document[part], document["model"]["n_features"]
    if type(values) is not list or len(values) != n_features:
        raise ValueError(f"{part} must be {wanted}; got {_length_of(values)}.")
    for place, value in enumerate(values):
        if not entry.is_right(value):
            raise ValueError(f"{part}[{place}] must be {entry.wanted}; got {shown(value)}.")


def _length_of(value: Any) -> str:
    return f"{len(value)} values" if type(value) is list else shown(value)


def _check_details(details: Any) -> None:
    """Check that details is an object with text that can be written, and not nested too deeply."""
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


def _members_of(model: Mapping[str, Any], version: int) -> Members:
    """The members, after checking that the version is the lowest that can hold them."""
    n_classes, fields = len(model["classes"]), model["stump_fields"]
    n_outputs = 1 if n_classes in (0, 2) else n_classes
    found: list[Member | RegionMember] = []
    if _has_regions(model, version):
        if model["link"] not in QUANTITY_LINKS:
            _check_link(model["link"], n_outputs)
        own = _outputs_of_a_member(fields, n_outputs, version)
        _check_n_members(model, n_outputs // own)
        members, constants = model["members"], model["constants"]
        if type(constants) is not list or len(constants) != len(members):
            raise ValueError(
                f"constants must be a list of {len(members)}, one for each member; got "
                f"{_length_of(constants)}."
            )
        vote = _vote_rule(model)
        for place, (rows, constant) in enumerate(zip(members, constants, strict=True)):
            with _naming_member(place):
                found.append(
                    checked_region_member(rows, constant, fields, model["n_features"], vote)
                )
    else:
        if fields != _fields(version, None):
            raise ValueError(
                f"stump_fields must be {', '.join(_fields(version, None))} in version {version}; "
                f"got {shown(fields)}."
            )
        _check_n_members(model, n_outputs)
        for place, rows in enumerate(model["members"]):
            with _naming_member(place):
                found.append(checked_member(rows, fields, model["n_features"]))
    kinds = {type(one) for member in found for one in member.hypotheses}
    if version == 2 and Interval not in kinds:
        raise ValueError("members must hold an interval in version 2; all are stumps.")
    if version == 4 and not any(issubclass(kind, OfCategories) for kind in kinds):
        raise ValueError("members must hold a split of categories in version 4; they hold none.")
    return tuple(found)


def _outputs_of_a_member(fields: Any, n_outputs: int, version: int) -> int:
    """The number of outputs that the rows of version 3 to 5 vote for: one, or all."""
    for own in (1, n_outputs):
        if fields == _fields(version, own):
            return own
    more = f', or have "left 0" to "missing {n_outputs - 1}" in place of left, right and missing'
    raise ValueError(
        f"stump_fields must be {', '.join(_fields(version, 1))} in version {version}"
        f"{more if n_outputs > 1 else ''}; got {shown(fields)}."
    )


def _check_link(link: Any, n_outputs: int) -> None:
    allowed = ("logistic", "softmax") if n_outputs > 1 else ("logistic",)
    if type(link) is not str or link not in allowed:
        raise ValueError(
            f"link must be {' or '.join(map(repr, allowed))} for {max(2, n_outputs)} classes; got "
            f"{shown(link)}."
        )


def _check_n_members(model: Mapping[str, Any], wanted: int) -> None:
    members = model["members"]
    if type(members) is not list or len(members) != wanted:
        raise ValueError(
            f"members must be a list of {wanted} for {len(model['classes'])} classes; got "
            f"{_length_of(members)}."
        )


@contextlib.contextmanager
def _naming_member(place: int) -> Iterator[None]:
    """Let errors say which member they are about."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"members[{place}]: {error}") from error
