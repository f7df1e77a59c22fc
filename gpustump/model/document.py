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
from collections.abc import Iterator, Mapping
from os import PathLike
from typing import Any, NamedTuple

from gpustump.data.parameters import QUANTITY_LINKS, Link
from gpustump.data.readable import is_text, shown
from gpustump.learners.interval import Interval
from gpustump.learners.pair_table import PairTable
from gpustump.model import category_rows, model_file, region_rows, stump_rows
from gpustump.model import pairs as model_pairs
from gpustump.model.bags import Bags
from gpustump.model.class_labels import Label, check_classes
from gpustump.model.members import Member, Members, RegionMember
from gpustump.model.model_file import ModelFileError, ModelText
from gpustump.model.row_rules import UNSIGNED_ZERO_NUMBER, UNSIGNED_ZERO_VOTE, Rule
from gpustump.model.stump_rows import INTERVAL_FIELDS, STUMP_FIELDS

MOST_UNLISTED_FEATURES = 1_000_000
"""The most features of a file that holds neither their names nor `missing_learnt`.

A number in a few bytes decides how much memory explanations and tables of features take: at most a
gigabyte with this limit. A list makes the file grow with the number of features, so with a list
any number is accepted.
"""

DEEPEST_DETAILS = 100
"""The most levels of nesting in `details`, far below those at which Python's JSON reader fails."""


class Contents(NamedTuple):
    """What a file holds; see `StumpEnsemble`."""

    members: Members
    n_features: int
    classes: tuple[Label, ...]
    feature_names: tuple[str, ...] | None
    link: Link
    missing_learnt: tuple[bool, ...] | None
    details: Mapping[str, Any]
    bags: Bags | None = None
    pairs: tuple[PairTable, ...] = ()
    moved: tuple[RegionMember, ...] = ()


@contextlib.contextmanager
def _collector_paused() -> Iterator[None]:
    """Keep Python's cyclic garbage collector from searching millions of new rows again and again.

    No row is in a cycle. Without the search, a large file takes a third less time.
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
        If `read` would refuse the file; the message names the part and what is wanted.
    TypeError
        If JSON has no type for some part.
    OSError
        If the file cannot be written.
    """
    model = _model(contents)
    parts: dict[str, Any] = {
        "feature_names": contents.feature_names,
        "missing_learnt": contents.missing_learnt,
        "details": dict(contents.details),
    }
    if contents.missing_learnt is None:
        del parts["missing_learnt"]
    if contents.bags is not None:
        parts["bags"] = {"sizes": contents.bags.sizes, "constants": contents.bags.constants}
    if contents.pairs:
        parts["seen"] = model_pairs.seen_of(contents.pairs)
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
        pairs, moved = _pairs_of(document, members)
    except ValueError as error:
        raise ModelFileError(
            f"{os.fspath(path)} does not hold a model that gpustump can have written: {error}"
        ) from error
    names, learnt = document["feature_names"], document.get("missing_learnt")
    return Contents(
        members=members,
        n_features=document["model"]["n_features"],
        classes=tuple(document["model"]["classes"]),
        feature_names=None if names is None else tuple(names),
        link=document["model"].get("link", "logistic"),
        missing_learnt=None if learnt is None else tuple(learnt),
        details=document["details"],
        bags=_bags_of(document),
        pairs=pairs,
        moved=moved,
    )


def _pairs_of(
    document: Mapping[str, Any], members: Members
) -> tuple[tuple[PairTable, ...], tuple[RegionMember, ...]]:
    """The pairs in a document, and what was moved from them.

    Raises
    ------
    ValueError
        If a part is wrong.
    """
    model = document["model"]
    if document["version"] != 5:
        return (), ()
    outputs = [own.n_outputs for own in members]
    bags, vote = _bags_of(document), _vote_rule(model)
    n_bags = 1 if bags is None else bags.n_bags
    pairs = model_pairs.checked_pairs(
        model["pairs"], document.get("seen"), sum(outputs), n_bags, vote
    )
    rows = model["moved"]
    if type(rows) is not list or len(rows) != len(members):
        raise ValueError(f"moved must be a list of {len(members)}; got {_length_of(rows)}.")
    moved = tuple(
        category_rows.checked_region_member(
            own, [0.0] * n_outputs, n_outputs, model["n_features"], vote
        )
        for own, n_outputs in zip(rows, outputs, strict=True)
    )
    model_pairs.check_pairs(pairs, moved, members, model["n_features"])
    return pairs, moved


def _version(contents: Contents) -> int:
    if contents.pairs:
        return 5
    if category_rows.has_categories(contents.members):
        return 4
    if _has_regions(contents):
        return 3
    has_intervals = any(isinstance(s, Interval) for m in contents.members for s in m.hypotheses)
    return 2 if has_intervals else 1


def _has_regions(contents: Contents) -> bool:
    return any(isinstance(member, RegionMember) for member in contents.members)


def _model(contents: Contents) -> dict[str, Any]:
    """The part that the digest covers."""
    head = {"n_features": contents.n_features, "classes": list(contents.classes)}
    version = _version(contents)
    if _has_regions(contents):
        parts = _region_parts(contents)
    else:
        with_low = version != 1
        parts = {
            "stump_fields": INTERVAL_FIELDS if with_low else STUMP_FIELDS,
            "members": [
                stump_rows.rows_of(member.stumps, member.votes, with_low=with_low)
                for member in contents.members
                if isinstance(member, Member)
            ],
        }
    if version >= 4:
        parts["stump_fields"] = [*parts["stump_fields"], *category_rows.SET_FIELDS]
        pairs = zip(parts["members"], contents.members, strict=True)
        parts["members"] = [category_rows.with_sets(rows, own.hypotheses) for rows, own in pairs]
    if version == 5:
        moved = [(region_rows.rows_of(own), own.hypotheses) for own in contents.moved]
        head["pairs"] = model_pairs.parts_of(contents.pairs)
        head["moved"] = [category_rows.with_sets(*own) for own in moved]
    return head | parts


def _region_parts(contents: Contents) -> dict[str, Any]:
    """The part "model" of a model of region members, without its classes and number of features."""
    members = [member for member in contents.members if isinstance(member, RegionMember)]
    return {
        "link": contents.link,
        "constants": [member.constant.tolist() for member in members],
        "stump_fields": region_rows.fields_of(members[0].n_outputs),
        "members": list(map(region_rows.rows_of, members)),
    }


def _model_text(model: Mapping[str, Any]) -> ModelText:
    head = {key: value for key, value in model.items() if key != "members"}
    return ModelText(head, tuple(map(model_file.rows_text, model["members"])))


def _check(document: Mapping[str, Any]) -> Members:
    """The members of a document, after checking every part of the model.

    Unknown parts besides the model are ignored, as later versions may add some.

    Raises
    ------
    ValueError
        If a part is wrong; the message names it, what was found and what is wanted.
    """
    for part in ("feature_names", "details", "model"):
        if part not in document:
            raise ValueError(f"it has no part {part!r}.")
    model = document["model"]
    _check_parts(model, document["version"])
    _check_n_features(document)
    if model.get("link") not in QUANTITY_LINKS:
        check_classes(model["classes"])
    elif model["classes"] != []:
        raise ValueError(
            f"classes must be empty where link is {model['link']!r}; got {shown(model['classes'])}."
        )
    _check_names(document["feature_names"], model["n_features"])
    if "missing_learnt" in document:
        _check_missing_learnt(document["missing_learnt"], model["n_features"])
    _check_details(document["details"])
    version = document["version"]
    if version in (3, 5) or (version == 4 and "link" in model):
        members: Members = _checked_region_members(model, version)
    else:
        members = _checked_members(model, version)
    if version == 4 and not category_rows.has_categories(members):
        raise ValueError("members must hold a split of categories in version 4; they hold none.")
    bags = _bags_of(document)
    if bags is not None:
        bags.check(members)
    return members


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


def _vote_rule(model: Mapping[str, Any]) -> Rule:
    """What votes and constants must be."""
    of_quantity = model.get("link") == "identity"
    return UNSIGNED_ZERO_NUMBER if of_quantity else UNSIGNED_ZERO_VOTE


_BAG_SIZE = Rule("a whole number, 0 or more", lambda value: type(value) is int and value >= 0)


def _nested(value: Any, depth: int, name: str, rule: Rule) -> Any:
    """Nested lists as tuples, after checking every value in them."""
    if depth == 0:
        if not rule.is_right(value):
            raise ValueError(f"{name} must be {rule.wanted}; got {shown(value)}.")
        return value
    if type(value) is not list:
        raise ValueError(f"{name} must be lists of lists; got {shown(value)}.")
    return tuple(_nested(inner, depth - 1, name, rule) for inner in value)


def _check_parts(model: Any, version: int) -> None:
    wanted = {"n_features", "classes", "stump_fields", "members"}
    if version in (3, 5) or (version == 4 and type(model) is dict and "link" in model):
        wanted |= {"link", "constants"}
    if version == 5:
        wanted |= {"pairs", "moved"}
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


def _checked_members(model: Mapping[str, Any], version: int) -> tuple[Member, ...]:
    """The members of a model with discrete votes.

    The version is 4 if the model holds a split of categories, 2 if it holds an interval, else 1.
    """
    fields = STUMP_FIELDS if version == 1 else INTERVAL_FIELDS
    fields = [*fields, *category_rows.SET_FIELDS] if version == 4 else fields
    if model["stump_fields"] != fields:
        raise ValueError(
            f"stump_fields must be {', '.join(fields)} in version {version}; got "
            f"{shown(model['stump_fields'])}."
        )
    _check_n_members(model, _n_outputs(model))
    if version == 4:
        return _members_with_categories(model, fields)
    found = []
    for place, rows in enumerate(model["members"]):
        with _naming_member(place):
            found.append(stump_rows.checked_columns(rows, fields, model["n_features"]))
    if version == 2 and all(low is None for columns in found for low in columns.low):
        raise ValueError("members must hold an interval in version 2; all are stumps.")
    return tuple(Member(stump_rows.stumps_of(columns), tuple(columns.vote)) for columns in found)


def _members_with_categories(model: Mapping[str, Any], fields: list[str]) -> tuple[Member, ...]:
    found = []
    for place, rows in enumerate(model["members"]):
        with _naming_member(place):
            found.append(category_rows.checked_member(rows, fields, model["n_features"]))
    return tuple(found)


def _checked_region_members(model: Mapping[str, Any], version: int) -> tuple[RegionMember, ...]:
    """The members of a model whose regions have votes of their own: versions 3 to 5."""
    n_outputs = _n_outputs(model)
    if model["link"] not in QUANTITY_LINKS:
        _check_link(model["link"], n_outputs)
    outputs = _outputs_of_a_member(model["stump_fields"], n_outputs, version)
    checked = region_rows.checked_member
    checked = category_rows.checked_region_member if version >= 4 else checked
    _check_n_members(model, n_outputs // outputs)
    members, constants = model["members"], model["constants"]
    if type(constants) is not list or len(constants) != len(members):
        raise ValueError(
            f"constants must be a list of {len(members)}, one for each member; got "
            f"{_length_of(constants)}."
        )
    found = []
    for place, (rows, constant) in enumerate(zip(members, constants, strict=True)):
        with _naming_member(place):
            rule = _vote_rule(model)
            found.append(checked(rows, constant, outputs, model["n_features"], rule))
    return tuple(found)


def _n_outputs(model: Mapping[str, Any]) -> int:
    n_classes = len(model["classes"])
    return 1 if n_classes in (0, 2) else n_classes


def _outputs_of_a_member(fields: Any, n_outputs: int, version: int) -> int:
    """The number of outputs that the rows of version 3 to 5 vote for: one, or all."""
    sets = category_rows.SET_FIELDS if version >= 4 else []
    for outputs in (1, n_outputs):
        if fields == [*region_rows.fields_of(outputs), *sets]:
            return outputs
    more = f', or have "left 0" to "missing {n_outputs - 1}" in place of left, right and missing'
    raise ValueError(
        f"stump_fields must be {', '.join([*region_rows.fields_of(1), *sets])} in version {version}"
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
