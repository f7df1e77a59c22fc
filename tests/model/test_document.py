"""A file with a right digest and checksum is still refused if `save` could not have written it.

The files are edited as a forger or a faulty writer would: see `forged`. What loads has the digest
that the file says, and predicts.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import gc
import hashlib
import io
import json
import math
import pickle
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from forged_files import forged
from hypothesis import given, settings
from hypothesis import strategies as st

from gpustump import Interval, Member, ModelFileError, Stump, StumpEnsemble
from gpustump.learners.step_table import VOTE_UNIT
from gpustump.model.document import DEEPEST_DETAILS, MOST_UNLISTED_FEATURES

Document = dict[str, Any]
Place = tuple[str | int, ...]

STUMPS = StumpEnsemble(
    (Member((Stump(0, 0.5, 1, -1, 0.25), Stump(2, math.inf, -1, 1, 0.125)), (0.5, -0.25)),),
    3,
    classes=("no", "yes"),
    feature_names=("a", "b", "b"),
    missing_learnt=(True, False, False),
    details={"seed": 7, "nested": [None, {"é": 0.5}]},
)
INTERVALS = StumpEnsemble(
    (
        Member((Interval(1, -math.inf, 0.5, 1, -1, 0.25), Stump(0, -1.5, 1, 1, 0.0)), (1.0, 0.5)),
        Member((), ()),
        Member((Interval(0, 0.5, 1.5, -1, 1, 1.0),), (VOTE_UNIT,)),
    ),
    2,
    classes=(0, 1, 2),
)
ROW: Place = ("model", "members", 0, 0)
NAN_TEXTS = ("nan", "NaN", "Infinity", "+inf", "1e999", "-Inf", " inf", "")
HUGE = 10**400
ABSENT = object()
LONG = "x" * 1_000_000


def document_of(model: StumpEnsemble, folder: Path) -> Document:
    model.save(folder / "original.json")
    document: Document = json.loads((folder / "original.json").read_text())
    return document


def with_value(document: Document, place: Place, value: Any) -> Document:
    """The document with another value at a place, or without it if the value is ABSENT."""
    changed = copy.deepcopy(document)
    inner: Any = changed
    for key in place[:-1]:
        inner = inner[key]
    if isinstance(inner, dict) != isinstance(place[-1], str):
        raise TypeError("there is no such place")
    if value is ABSENT:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    return changed


def refusal_of(text: str, folder: Path) -> str:
    path = folder / "model.json"
    path.write_text(text)
    with pytest.raises(ModelFileError) as caught:
        StumpEnsemble.load(path)
    message = str(caught.value)
    assert str(path) in message
    assert len(message) - len(str(path)) < 500
    return message


COLUMN = {"feature": 0, "threshold": 1, "polarity": 2, "missing": 3, "error": 4, "vote": 5}
WRONG_IN_ROWS = {
    "feature": [1.0, 1.9, "1", True, None, -1, 3, 2**63, 2**64, HUGE, [], {}, LONG],
    "threshold": [0, 1, True, None, HUGE, -HUGE, [], {}, LONG, *NAN_TEXTS],
    "polarity": [0, 2, -2, 1.0, True, "1", None, HUGE, []],
    "missing": [0, 2, -2, 1.0, True, "1", None, HUGE, {}],
    "error": [-1e-9, 1.0000000000000002, 1e308, 0, 1, True, "0.5", None, HUGE, [], *NAN_TEXTS],
    "vote": [0.1, 2**-37, 1e-17, 131072.5, 1e308, -1e308, 1, True, None, HUGE, [], *NAN_TEXTS],
}


def short(value: object) -> str:
    """A value in the name of a test: the same in every process, so without an address."""
    return re.sub(r" at 0x\w+", "", repr(value))[:30]


@pytest.mark.parametrize(
    ("column", "value"),
    [(column, value) for column, values in WRONG_IN_ROWS.items() for value in values],
    ids=short,
)
def test_a_wrong_value_of_a_stump_is_refused_by_its_place(column, value, tmp_path):
    document = document_of(STUMPS, tmp_path)
    place = ("model", "members", 0, 1, COLUMN[column])
    message = refusal_of(forged(with_value(document, place, value)), tmp_path)
    assert f"members[0]: stump 1: {column} must be " in message


@pytest.mark.parametrize(
    ("low", "high"),
    [(0.5, 0.5), (1.0, 0.5), (0.0, "inf"), ("-inf", "-inf"), ("inf", 0.5), (0, 0.5), ("nan", 0.5)],
)
def test_an_interval_of_no_values_is_refused(low, high, tmp_path):
    document = document_of(INTERVALS, tmp_path)
    document["model"]["members"][0][0][1:3] = [low, high]
    assert "members[0]: stump 0: low must be " in refusal_of(forged(document), tmp_path)


@pytest.mark.parametrize(
    "row", [[], [0, 0.5, 1, -1, 0.25], [0, 0.5, 1, -1, 0.25, 0.5, 0.5], {}, 5, LONG]
)
def test_a_row_of_another_length_is_refused(row, tmp_path):
    document = with_value(document_of(STUMPS, tmp_path), ROW, row)
    message = refusal_of(forged(document), tmp_path)
    assert "members[0]: stump 0: the row must be a list of 6 values" in message


@pytest.mark.parametrize("votes", [[1e308] * 3, [131072.0, VOTE_UNIT], [65536.0, 65536.0, -0.5]])
def test_votes_whose_sums_would_be_rounded_are_refused(votes, tmp_path):
    document = document_of(STUMPS, tmp_path)
    document["model"]["members"][0] = [[0, 0.5, 1, -1, 0.25, vote] for vote in votes]
    assert "vote" in refusal_of(forged(document), tmp_path)


def test_votes_up_to_the_largest_exact_sum_are_loaded(tmp_path):
    document = document_of(STUMPS, tmp_path)
    document["model"]["members"][0] = [[0, 0.5, 1, -1, 0.25, v] for v in (131071.5, 0.5)]
    (tmp_path / "model.json").write_text(forged(document))
    assert StumpEnsemble.load(tmp_path / "model.json").members[0].votes == (131071.5, 0.5)


FIELDS = ["feature", "threshold", "polarity", "missing", "error", "vote"]
WRONG_ELSEWHERE: list[tuple[Place, Any, str]] = [
    *((("model", "n_features"), value, "n_features must be a whole number from 1 to")
      for value in (-1, 0, 2.0, 3.0, True, "3", None, [])),
    (("model", "n_features"), 10**9, "feature_names must be null or a list of 1000000000 names"),
    (("model", "n_features"), 2**63, r"n_features must be a whole number from 1 to 2\*\*63 - 1"),
    (("model", "n_features"), HUGE, r"n_features must be a whole number from 1 to 2\*\*63 - 1"),
    (("model", "n_features"), 1, "missing_learnt|feature_names"),
    (("model", "classes"), None, "classes must be a list of labels"),
    (("model", "classes"), "ny", "classes must be a list of labels"),
    (("model", "classes"), {"no": 1, "yes": 2}, "classes must be a list of labels"),
    (("model", "classes"), [], "classes must be a list of labels"),
    (("model", "classes"), ["no", "yes", "perhaps"], "members must be a list of 3 for 3 classes"),
    (("model", "classes"), ["no", None], r"classes\[1\] must be text, true, false or a number"),
    (("model", "classes"), [[], "yes"], r"classes\[0\] must be text, true, false or a number"),
    (("model", "classes"), [0, 2**64], r"classes\[1\] must be .* a number of at most 64 bits"),
    (("model", "classes"), [-(2**63) - 1, 0], r"classes\[0\] must be .* of at most 64 bits"),
    (("model", "classes"), [HUGE, 0], r"classes\[0\] must be .* of at most 64 bits"),
    (("model", "classes"), ["no", "no"], r"classes\[0\] and classes\[1\] are 'no'"),
    (("model", "classes"), [1, 1.0], r"classes\[0\] and classes\[1\] are 1.0"),
    (("model", "classes"), [0.0, -0.0], r"classes\[0\] and classes\[1\] are -0.0"),
    (("model", "classes"), [1, True], r"classes must be of one kind; .*classes\[1\] is true or"),
    (("model", "classes"), [0, True], "classes must be of one kind"),
    (("model", "classes"), ["1", 1], r"classes\[0\] is text, classes\[1\] is a number"),
    (("model", "classes"), [2**53 + 1, 0.5], r"changes classes\[0\], 9007199254740993, into"),
    (("model", "classes"), ["a\0", "b"], r"changes classes\[0\], 'a\\x00', into 'a'"),
    (("model", "classes"), ["a", "\ud800"], r"classes\[1\] must be text.*got '\\ud800'"),
    (("model", "stump_fields"), [*FIELDS, "vote"], "stump_fields must be feature, threshold, po"),
    (("model", "stump_fields"), ["vote"] * 6, "stump_fields must be feature, threshold, polarity"),
    (("model", "stump_fields"), FIELDS[::-1], "stump_fields must be feature, threshold, polarity"),
    (("model", "stump_fields"), [LONG], "stump_fields must be feature, threshold, polarity"),
    (("model", "stump_fields"), None, "stump_fields must be feature, threshold, polarity"),
    (("model", "members"), None, "members must be a list of 1 for 2 classes"),
    (("model", "members"), [], "members must be a list of 1 for 2 classes; got 0 values"),
    (("model", "members"), [[], []], "members must be a list of 1 for 2 classes; got 2 values"),
    (("model", "members"), {}, "members must be a list of 1 for 2 classes"),
    (("model", "members"), [None], r"members\[0\]: it must be a list with a row for each stump"),
    (("model", "members"), [LONG], r"members\[0\]: it must be a list with a row for each stump"),
    (("model", "members"), ABSENT, "model must be an object of classes, members, n_features, st"),
    (("model", "more"), 5, "model must be an object of classes, members, n_features, stump_field"),
    (("model",), [], "model must be an object"),
    (("model",), None, "model must be an object"),
    (("model",), ABSENT, "digest does not match|no part 'model'"),
    (("feature_names",), ABSENT, "no part 'feature_names'"),
    (("feature_names",), "abc", "feature_names must be null or a list of 3 names"),
    (("feature_names",), ["a"], "feature_names must be null or a list of 3 names; got 1 values"),
    (("feature_names",), {"a": 1, "b": 2, "c": 3}, "feature_names must be null or a list of 3"),
    (("feature_names",), ["a", 1, "c"], r"feature_names\[1\] must be text; got 1"),
    (("feature_names",), ["a", None, "c"], r"feature_names\[1\] must be text; got None"),
    (("feature_names",), ["a", "b", "\udfff"], r"feature_names\[2\] must be text; got '\\udfff'"),
    (("missing_learnt",), None, "missing_learnt must be left out or a list with true or false"),
    (("missing_learnt",), [True], "missing_learnt must be left out .* 3 features; got 1 values"),
    (("missing_learnt",), [True, 1, False], r"missing_learnt\[1\] must be true or false; got 1"),
    (("missing_learnt",), "abc", "missing_learnt must be left out or a list with true or false"),
    (("details",), ABSENT, "no part 'details'"),
    (("details",), None, "details must be an object; got None"),
    (("details",), [], "details must be an object"),
    (("details",), LONG, "details must be an object"),
    (("details", "x"), ["\udc00"], r"details must hold text without .* got '\\udc00'"),
    (("details", "\ud83c"), 1, r"details must hold text without .* got '\\ud83c'"),
    (("version",), 2, "stump_fields must be feature, low, threshold"),
    (("version",), True, "has format version True"),
    (("version",), 1.0, r"has format version 1\.0"),
    (("version",), 0, "has format version 0"),
    (("version",), HUGE, "has format version 1000"),
    (("version",), LONG, "has format version 'xxx"),
    (("version",), ABSENT, "has format version None"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("place", "value", "said"),
    WRONG_ELSEWHERE,
    ids=short,
)
def test_a_wrong_part_is_refused_by_its_name(place, value, said, tmp_path):
    message = refusal_of(forged(with_value(document_of(STUMPS, tmp_path), place, value)), tmp_path)
    assert re.search(said, message), message


def test_a_part_of_the_wrong_size_is_refused_whatever_its_text(tmp_path):
    """No message repeats what a file holds at length."""
    document = document_of(STUMPS, tmp_path)
    wide = [LONG, *(str(number) for number in range(300))]
    changes: list[tuple[Place, Any]] = [
        (("model", "classes"), wide),
        (("model", "members"), [[wide]]),
        (("model", "n_features"), wide),
        (("model", LONG), 0),
        (("format",), LONG),
        (("details",), wide),
    ]
    for place, value in changes:
        refusal_of(forged(with_value(document, place, value)), tmp_path)
    refusal_of(LONG, tmp_path)
    refusal_of(f'{{"{LONG}": 1, "{LONG}": 2}}', tmp_path)


def test_class_names_that_would_fill_the_memory_are_refused(tmp_path):
    """NumPy gives every label as much memory as the longest one."""
    document = document_of(INTERVALS, tmp_path)
    document["model"]["classes"] = [LONG, *(str(number) for number in range(2, 300))]
    document["model"]["members"] += [[] for _ in range(296)]
    assert "must fit into an array of 1 GiB" in refusal_of(forged(document), tmp_path)


@pytest.mark.parametrize("version", [1, 2])
def test_a_file_holds_intervals_if_and_only_if_its_version_is_2(version, tmp_path):
    model = INTERVALS if version == 1 else STUMPS
    document = document_of(model, tmp_path) | {"version": version}
    assert "stump_fields must be" in refusal_of(forged(document), tmp_path)
    if version == 2:
        document["model"]["stump_fields"] = ["feature", "low", *FIELDS[1:]]
        for row in document["model"]["members"][0]:
            row.insert(1, None)
        assert "must hold an interval in version 2" in refusal_of(forged(document), tmp_path)


def test_a_number_of_features_that_nothing_lists_is_bounded(tmp_path):
    document = document_of(dataclasses.replace(STUMPS, feature_names=None), tmp_path)
    del document["missing_learnt"]
    for n_features in (MOST_UNLISTED_FEATURES + 1, 10**9, 2**63 - 1):
        message = refusal_of(
            forged(with_value(document, ("model", "n_features"), n_features)), tmp_path
        )
        assert f"n_features must be at most {MOST_UNLISTED_FEATURES} unless" in message
    path = tmp_path / "model.json"
    path.write_text(forged(with_value(document, ("model", "n_features"), MOST_UNLISTED_FEATURES)))
    assert StumpEnsemble.load(path).n_features == MOST_UNLISTED_FEATURES


def test_a_number_of_features_that_a_list_proves_is_not_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr("gpustump.model.document.MOST_UNLISTED_FEATURES", 2)
    path = tmp_path / "model.json"
    for listed in ({"missing_learnt": None}, {"feature_names": None}):
        model = dataclasses.replace(STUMPS, **listed)
        model.save(path)
        assert StumpEnsemble.load(path) == model
    with pytest.raises(ValueError, match="cannot be saved: n_features must be at most 2 unless"):
        dataclasses.replace(STUMPS, feature_names=None, missing_learnt=None).save(path)


def nested(depth: int) -> Any:
    value: Any = 1
    for number in range(depth):
        value = [value] if number % 2 else {"a": value}
    return value


def test_nesting_is_bounded_with_a_fitting_checksum_and_without(tmp_path):
    document = document_of(STUMPS, tmp_path)
    for depth in (DEEPEST_DETAILS - 1, 300):
        message = refusal_of(
            forged(with_value(document, ("details", "x"), nested(depth))), tmp_path
        )
        assert "details must be nested in at most 100 levels" in message
    for depth in (500, 900, 990, 5000):
        text = json.dumps(document).replace('"seed": 7', '"seed": ' + "[" * depth + "]" * depth)
        assert re.search("nested too deeply|was changed", refusal_of(text, tmp_path))
    path = tmp_path / "model.json"
    model = dataclasses.replace(STUMPS, details={"x": nested(DEEPEST_DETAILS - 2)})
    model.save(path)
    assert StumpEnsemble.load(path).details == model.details
    with pytest.raises(ValueError, match="cannot be saved: details must be nested in at most 100"):
        dataclasses.replace(STUMPS, details={"x": nested(DEEPEST_DETAILS)}).save(path)


@pytest.mark.parametrize("key", ["seed", "n_features", "version", "checksum", "details"])
def test_a_key_that_stands_twice_is_refused(key, tmp_path):
    """Readers differ in which of the two they take."""
    text = json.dumps(document_of(STUMPS, tmp_path))
    for value in ("1", json.dumps(LONG)):
        twice = text.replace(f'"{key}": ', f'"{key}": {value}, "{key}": ', 1)
        assert f"the key '{key}' stands twice" in refusal_of(twice, tmp_path)


def test_half_of_a_surrogate_pair_in_the_bytes_is_refused(tmp_path):
    text = json.dumps(document_of(STUMPS, tmp_path)).replace('"no"', '"\ud800"')
    path = tmp_path / "model.json"
    path.write_bytes(text.encode(errors="surrogatepass"))
    with pytest.raises(ModelFileError, match="it is not JSON text"):
        StumpEnsemble.load(path)


def test_parts_that_a_later_version_may_add_are_left_alone(tmp_path):
    path = tmp_path / "model.json"
    path.write_text(forged(document_of(STUMPS, tmp_path) | {"more": {"of": ["it"]}}))
    assert StumpEnsemble.load(path) == STUMPS


def test_a_file_without_learnt_missing_values_has_no_such_part(tmp_path):
    document = document_of(dataclasses.replace(STUMPS, missing_learnt=None), tmp_path)
    assert "missing_learnt" not in document
    assert document_of(STUMPS, tmp_path)["missing_learnt"] == [True, False, False]


JUNK = [
    *(None, True, False, 0, 1, -1, 2, 3, 5, 2**31, 2**63, 2**64, HUGE, -HUGE),
    *(0.0, -0.0, 1.0, 0.5, 0.1, -0.25, 1.5, 1e308, 5e-324, 131072.0),
    *("", "inf", "-inf", "nan", "1", "a", "é", "\ud800", LONG[:10_000]),
    *([], [0], [[]], [0, 0.5, 1, -1, 0.25, 0.5], ["a", "b", "c"], [True, False, True], [0, 1]),
    *({}, {"a": 1}, nested(20), nested(200)),
]  # fmt: skip


def places_in(value: Any, place: Place = ()) -> Iterator[Place]:
    """Where the values of a document stand, containers included."""
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield (*place, key)
            yield from places_in(value[key], (*place, key))


def mutations(document: Document) -> Iterator[Document]:
    """The document with every value replaced by every kind of junk, left out, or doubled."""
    for place in places_in(document):
        if place in (("checksum",), ("digest",)):
            continue
        for value in (*JUNK, ABSENT):
            yield with_value(document, place, value)
        *above, key = place
        if isinstance(key, int):
            changed = copy.deepcopy(document)
            inner: Any = changed
            for step in above:
                inner = inner[step]
            inner.insert(key, copy.deepcopy(inner[key]))
            yield changed


def double_mutations(document: Document, count: int) -> Iterator[Document]:
    """Two values replaced at once, drawn from a seed."""
    draw = random.Random(0)
    places = [p for p in places_in(document) if p[0] not in ("checksum", "digest")]
    for _ in range(count):
        changed = document
        for place in draw.sample(places, 2):
            try:
                changed = with_value(changed, place, draw.choice(JUNK))
            except (KeyError, IndexError, TypeError):  # the first one took its place away
                continue
        yield changed


@pytest.fixture
def files(monkeypatch) -> dict[str, bytes]:
    """Model files in memory: thousands on a busy disk take long."""
    kept: dict[str, bytes] = {}

    @contextlib.contextmanager
    def whole_file(path: str) -> Iterator[io.BytesIO]:
        with io.BytesIO() as file:
            yield file
            kept[path] = file.getvalue()

    def in_memory(path: str) -> SimpleNamespace:
        return SimpleNamespace(read_bytes=lambda: kept[path])

    monkeypatch.setattr("gpustump.model.model_file.whole_file", whole_file)
    monkeypatch.setattr("gpustump.model.model_file.Path", in_memory)
    return kept


def check_that_it_works(model: StumpEnsemble, text: str) -> None:
    """A model that was loaded has the file's digest, predicts exactly, and can be saved."""
    assert model.digest() == json.loads(text)["digest"]
    bare = dataclasses.replace(model, missing_learnt=None, details={})  # what predicting needs
    X = np.asarray([[-2.0] * 5, [0.5] * 5, [1.0] * 5, [np.nan] * 5])[:, : model.n_features]
    if X.shape[1] == bare.n_features:
        scores = bare.decision_function(X)
        assert np.isfinite(scores).all()
        assert set(bare.predict(X).tolist()) <= set(bare.classes)
        stages = list(bare.staged_decision_function(X))
        assert not stages or (stages[-1] == scores).all()
        assert (np.asarray(bare.explain(X)).sum(axis=-1) == scores).all()
    shares = model.feature_importances().sum()
    assert shares == 0.0 or np.isclose(shares, 1.0)
    model.save("again.json")
    again = StumpEnsemble.load("again.json")
    assert again == model
    assert (again.details, again.missing_learnt) == (model.details, model.missing_learnt)
    assert (repr(model), model._repr_html_()) == (repr(again), again._repr_html_())


@pytest.mark.parametrize("model", [STUMPS, INTERVALS], ids=["stumps", "intervals"])
@pytest.mark.parametrize(
    "changed", [mutations, lambda document: double_mutations(document, 600)], ids=["one", "two"]
)
def test_every_edited_file_is_refused_or_is_a_model_that_works(
    model: StumpEnsemble,
    changed: Callable[[Document], Iterator[Document]],
    files: dict[str, bytes],
) -> None:
    model.save("original.json")
    works, messages = 0, []
    for edited in changed(json.loads(files["original.json"])):
        text = forged(edited)
        files["model.json"] = text.encode()
        try:
            found = StumpEnsemble.load("model.json")
        except ModelFileError as error:
            messages.append(str(error))
        else:
            works += 1
            check_that_it_works(found, text)
    assert works > 0
    assert len(messages) > 300
    assert max(map(len, messages)) < 500


BY_HAND = {
    "vote that is no multiple": (
        {"members": (Member((Stump(0, 0.5, 1, 1, 0.1),), (0.1,)),)},
        r"members\[0\]: stump 0: vote must be .* multiple of 2\*\*-36, as round\(vote \* 2\*\*36\)",
    ),
    "votes beyond the limit": (
        {"members": (Member((Stump(0, 0.5, 1, 1, 0.1),) * 3, (65536.0,) * 3),)},
        "absolute votes must add up to 131072 at most",
    ),
    "error above 1": (
        {"members": (Member((Stump(0, 0.5, 1, 1, 1.5),), (0.5,)),)},
        "stump 0: error must be a float from 0.0 to 1.0; got 1.5",
    ),
    "error that is NaN": (
        {"members": (Member((Stump(0, 0.5, 1, 1, math.nan),), (0.5,)),)},
        "stump 0: error must be a float from 0.0 to 1.0; got nan",
    ),
    "surrogate in a name": ({"feature_names": ("a", "b", "\ud800")}, r"feature_names\[2\] must be"),
    "number as name": ({"feature_names": ("a", "b", 3)}, r"feature_names\[2\] must be text; got 3"),
    "surrogate in details": ({"details": {"a": ["\ud800"]}}, "details must hold text without"),
    "keys that are equal as text": ({"details": {1: "a", "1": "b"}}, "the key '1' stands twice"),
    "equal classes": ({"classes": (1, 1.0)}, "classes must all be different"),
    "mixed classes": ({"classes": ("1", 1)}, "classes must be of one kind"),
    "no features": ({"n_features": 0, "feature_names": None, "missing_learnt": None,
                     "members": (Member((), ()),)}, "n_features must be a whole number from 1 to"),
}  # fmt: skip


@pytest.mark.parametrize("case", BY_HAND)
def test_what_could_not_be_loaded_is_not_saved(case, tmp_path):
    changes, said = BY_HAND[case]
    path = tmp_path / "model.json"
    STUMPS.save(path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=f"^this model cannot be saved: .*{said}"):
        dataclasses.replace(STUMPS, **changes).save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.json"]


LABELS = st.one_of(st.text(max_size=3), st.booleans(), st.integers(), st.floats())
NUMBERS = st.floats() | st.integers(-5, 5).map(lambda units: units / 4)


@settings(max_examples=200)
@given(
    st.tuples(LABELS, LABELS),
    st.lists(st.tuples(NUMBERS, NUMBERS), max_size=2),
    st.dictionaries(st.text(max_size=2), LABELS, max_size=2),
)
def test_a_model_made_by_hand_comes_back_or_is_not_saved(tmp_path_factory, classes, rows, details):
    rows = [(error, vote) for error, vote in rows if math.isfinite(vote)]
    stumps = tuple(Stump(0, 0.5, 1, 1, error) for error, _ in rows)
    member = Member(stumps, tuple(vote for _, vote in rows))
    model = StumpEnsemble((member,), 1, classes=classes, details=details)
    path = tmp_path_factory.mktemp("models") / "model.json"
    try:
        model.save(path)
    except ValueError:
        assert not path.exists()
    else:
        found = StumpEnsemble.load(path)
        assert found == model
        assert found.details == details


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_is_left_as_it_was(enabled, tmp_path):
    path, wrong = tmp_path / "model.json", tmp_path / "wrong.json"
    wrong.write_text("{}")
    before = gc.isenabled()
    try:
        gc.enable() if enabled else gc.disable()
        STUMPS.save(path)
        StumpEnsemble.load(path).digest()
        with pytest.raises(ModelFileError):
            StumpEnsemble.load(wrong)
        assert gc.isenabled() == enabled
    finally:
        gc.enable() if before else gc.disable()


def test_loaded_stumps_are_like_any_others(tmp_path):
    """They are made without their constructor."""
    INTERVALS.save(tmp_path / "model.json")
    found = StumpEnsemble.load(tmp_path / "model.json")
    for part, own in zip(found.members, INTERVALS.members, strict=True):
        for stump, other in zip(part.stumps, own.stumps, strict=True):
            assert type(stump) is type(other)
            assert list(vars(stump).items()) == list(vars(other).items())
            assert (hash(stump), repr(stump)) == (hash(other), repr(other))
            assert pickle.loads(pickle.dumps(stump)) == other
            with pytest.raises(dataclasses.FrozenInstanceError):
                stump.feature = 1


def test_a_large_model_comes_back_with_the_digest_of_its_description(tmp_path):
    """Rows are written and checked many at a time; the digest is worked out here value by value."""
    draw = random.Random(0)
    stumps = tuple(
        Stump(draw.randrange(9), draw.gauss(0, 1), draw.choice((-1, 1)), 1, draw.random())
        for _ in range(3000)
    )
    votes = tuple(draw.randrange(1, 2**36) * VOTE_UNIT for _ in stumps)
    model = StumpEnsemble((Member(stumps, votes),), 9)
    rows = [
        [s.feature, s.threshold, s.polarity, s.missing, s.error, vote]
        for s, vote in zip(stumps, votes, strict=True)
    ]
    part = {"classes": [-1, 1], "members": [rows], "n_features": 9, "stump_fields": FIELDS}
    text = json.dumps(part, sort_keys=True, separators=(",", ":"))
    assert model.digest() == hashlib.sha256(text.encode()).hexdigest()
    model.save(tmp_path / "model.json")
    assert StumpEnsemble.load(tmp_path / "model.json") == model
