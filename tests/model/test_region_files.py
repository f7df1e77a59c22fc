"""Files of models whose regions have votes of their own (version 3): exact, and strictly checked.

The files are edited as a forger or a faulty writer would: see `forged`.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forged_files import forged
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up_models import region_model, rows

from gpustump import Member, ModelFileError, RegionMember, Split, Stump, StumpEnsemble
from gpustump.learners.step_table import VOTE_UNIT

Document = dict[str, Any]

TWO = StumpEnsemble(
    (
        RegionMember(
            (Split(0, 0.5), Split(2, math.inf), Split(2, -math.inf)),
            [[[0.5], [-0.25], [0.0]], [[1.0], [0.0], [VOTE_UNIT]], [[2.0], [3.0], [-4.0]]],
            [-0.75],
        ),
    ),
    3,
    classes=("no", "yes"),
    feature_names=("a", "b", "c"),
    missing_learnt=(True, False, False),
    details={"seed": 7},
)
REST = region_model(np.random.default_rng(0), 4, 3, 3, link="softmax")
SHARED = region_model(np.random.default_rng(1), 4, 3, 3, shared=True)
MODELS = {"two": TWO, "rest": REST, "shared": SHARED}
ONE_FIELDS = ["feature", "threshold", "left", "right", "missing"]
SHARED_FIELDS = ["feature", "threshold", "left 0", "left 1", "left 2", "right 0", "right 1",
                 "right 2", "missing 0", "missing 1", "missing 2"]  # fmt: skip
ABSENT = object()


def document_of(model: StumpEnsemble, folder: Path) -> Document:
    model.save(folder / "original.json")
    document: Document = json.loads((folder / "original.json").read_text())
    return document


def changed(document: Document, **parts: Any) -> Document:
    """The document with other parts in its model, or without those that are ABSENT."""
    found = copy.deepcopy(document)
    found["model"].update(parts)
    found["model"] = {key: value for key, value in found["model"].items() if value is not ABSENT}
    return found


def refusal_of(document: Document, folder: Path) -> str:
    path = folder / "model.json"
    path.write_text(forged(document))
    with pytest.raises(ModelFileError) as caught:
        StumpEnsemble.load(path)
    message = str(caught.value)
    assert len(message) - len(str(path)) < 600
    return message


@pytest.mark.parametrize("name", MODELS)
def test_a_saved_model_comes_back_bit_for_bit(name, tmp_path):
    model, path = MODELS[name], tmp_path / "model.json"
    model.save(path)
    found = StumpEnsemble.load(path)
    assert found == model
    assert (found.link, found.feature_names) == (model.link, model.feature_names)
    assert (found.missing_learnt, found.details) == (model.missing_learnt, model.details)
    for one, own in zip(found.members, model.members, strict=True):
        assert repr(one.splits) == repr(own.splits)
        assert one.votes.tobytes() == own.votes.tobytes()
        assert one.constant.tobytes() == own.constant.tobytes()
    before = path.read_bytes()
    found.save(path)
    assert path.read_bytes() == before
    X = rows(np.random.default_rng(0), 30, 3, "float64")
    expected = dataclasses.replace(model, missing_learnt=None).decision_function(X)
    again = dataclasses.replace(found, missing_learnt=None).decision_function(X)
    assert (again == expected).all()


@pytest.mark.parametrize("name", MODELS)
def test_the_file_and_its_digest_are_as_described(name, tmp_path):
    model = MODELS[name]
    document = document_of(model, tmp_path)
    members = [
        [
            [s.feature, s.threshold if math.isfinite(s.threshold) else str(s.threshold),
             *(float(vote) for region in votes for vote in region)]
            for s, votes in zip(one.splits, one.votes, strict=True)
        ]
        for one in model.members
    ]  # fmt: skip
    part = {
        "n_features": 3,
        "classes": list(model.classes),
        "link": model.link,
        "constants": [one.constant.tolist() for one in model.members],
        "stump_fields": SHARED_FIELDS if name == "shared" else ONE_FIELDS,
        "members": members,
    }
    assert document["version"] == 3
    assert document["model"] == part
    text = json.dumps(part, sort_keys=True, separators=(",", ":"))
    assert model.digest() == document["digest"] == hashlib.sha256(text.encode()).hexdigest()


WRONG_VOTES = [
    0.1, 2**-37, -(2.0**-40), 131072.5, 1e308, 1, 0, True, None, -0.0, "0.5", "inf", [], {}, 10**400
]  # fmt: skip


@pytest.mark.parametrize("field", ["left", "right", "missing"])
@pytest.mark.parametrize("value", WRONG_VOTES, ids=lambda value: repr(value)[:20])
def test_a_wrong_vote_is_refused_by_its_place(field, value, tmp_path):
    document = document_of(TWO, tmp_path)
    document["model"]["members"][0][1][ONE_FIELDS.index(field)] = value
    message = refusal_of(document, tmp_path)
    assert f"members[0]: stump 1: {field} must be a float that is a whole multiple" in message


@pytest.mark.parametrize("value", WRONG_VOTES, ids=lambda value: repr(value)[:20])
def test_a_wrong_constant_is_refused_by_its_place(value, tmp_path):
    document = document_of(SHARED, tmp_path)
    document["model"]["constants"][0][1] = value
    message = refusal_of(document, tmp_path)
    assert "members[0]: its constant 1 must be a float that is a whole multiple" in message


@pytest.mark.parametrize(
    ("column", "value"),
    [
        *(("feature", value) for value in (3, -1, 1.0, True, "1", None, 10**400)),
        *(("threshold", value) for value in (1, None, True, "nan", "Infinity", "0.5", [])),
    ],
    ids=str,
)
def test_a_wrong_split_is_refused_by_its_place(column, value, tmp_path):
    document = document_of(REST, tmp_path)
    document["model"]["members"][2][3][ONE_FIELDS.index(column)] = value
    assert f"members[2]: stump 3: {column} must be" in refusal_of(document, tmp_path)


WRONG_PARTS = [
    ("two", {"link": "softmax"}, "link must be 'logistic' for 2 classes; got 'softmax'"),
    ("two", {"link": None}, "link must be 'logistic' for 2 classes; got None"),
    ("rest", {"link": "probit"}, "link must be 'logistic' or 'softmax' for 3 classes; got 'probit"),
    ("rest", {"link": ["softmax"]}, "link must be"),
    ("rest", {"link": ABSENT}, "model must be an object of classes, constants, link, members, n_f"),
    ("rest", {"constants": ABSENT}, "model must be an object of classes, constants, link"),
    ("rest", {"more": 1}, "model must be an object of classes, constants, link"),
    ("rest", {"constants": None}, "constants must be a list of 3, one for each member; got None"),
    ("rest", {"constants": [[0.0]]}, "constants must be a list of 3, one for .*; got 1 values"),
    ("two", {"constants": [[0.0, 0.0]]}, "its constant must be a list of 1 numbers; got 2 values"),
    ("two", {"constants": [0.0]}, "its constant must be a list of 1 numbers; got 0.0"),
    ("shared", {"constants": [[0.0]]}, "its constant must be a list of 3 numbers; got 1 values"),
    ("two", {"stump_fields": ONE_FIELDS[::-1]}, "stump_fields must be feature, threshold, left"),
    ("two", {"stump_fields": SHARED_FIELDS}, "stump_fields must be feature, threshold, left"),
    ("rest", {"stump_fields": SHARED_FIELDS}, "members must be a list of 1 for 3 classes; got 3"),
    ("shared", {"stump_fields": ONE_FIELDS}, "members must be a list of 3 for 3 classes; got 1"),
    ("shared", {"stump_fields": SHARED_FIELDS[:-1]}, 'or have "left 0" to "missing 2" in place'),
    ("shared", {"stump_fields": None}, "stump_fields must be feature, threshold, left"),
    ("shared", {"members": [None]}, r"members\[0\]: it must be a list with a row for each stump"),
    ("shared", {"members": [[[0, 0.5, 1.0]]]}, "the row must be a list of 11 values"),
    ("shared", {"members": []}, "members must be a list of 1 for 3 classes; got 0 values"),
    ("two", {"members": [[], []]}, "members must be a list of 1 for 2 classes; got 2 values"),
    ("two", {"members": None}, "members must be a list of 1 for 2 classes; got None"),
    ("rest", {"classes": [0, 1, 2, 3]}, "members must be a list of 4 for 4 classes; got 3 values"),
]


@pytest.mark.parametrize(("name", "parts", "said"), WRONG_PARTS)
def test_a_wrong_part_is_refused_by_its_name(name, parts, said, tmp_path):
    message = refusal_of(changed(document_of(MODELS[name], tmp_path), **parts), tmp_path)
    assert re.search(said, message), message


@pytest.mark.parametrize("version", [1, 2])
def test_other_versions_do_not_hold_regions_votes(version, tmp_path):
    document = document_of(TWO, tmp_path) | {"version": version}
    assert "model must be an object of classes, members" in refusal_of(document, tmp_path)
    document = changed(document, link=ABSENT, constants=ABSENT)
    assert "stump_fields must be feature, " in refusal_of(document, tmp_path)


def test_version_3_does_not_hold_discrete_votes(tmp_path):
    discrete = StumpEnsemble((Member((Stump(0, 0.5, 1, -1, 0.25),), (0.5,)),), 3)
    document = document_of(discrete, tmp_path) | {"version": 3}
    assert "model must be an object of classes, constants, link" in refusal_of(document, tmp_path)
    document = changed(document, link="logistic", constants=[[0.0]])
    assert "stump_fields must be feature, threshold, left" in refusal_of(document, tmp_path)


LIMIT = 131072.0


@pytest.mark.parametrize(
    ("constant", "regions"),
    [
        (0.0, [(LIMIT, 0.0, 0.0), (VOTE_UNIT, 0.0, 0.0)]),
        (VOTE_UNIT, [(0.0, LIMIT, 0.0)]),
        (-VOTE_UNIT, [(0.0, 0.0, -LIMIT)]),
        (0.0, [(LIMIT / 2, -LIMIT / 2 - VOTE_UNIT, 0.0)]),
        (1.0, [(LIMIT / 4, -LIMIT / 4, 0.0), (LIMIT / 2, LIMIT / 2, LIMIT / 2)]),
    ],
)
def test_votes_whose_sums_could_be_rounded_are_refused_and_not_saved(constant, regions, tmp_path):
    document = document_of(TWO, tmp_path)
    members = [[[0, 0.5, *votes] for votes in regions]]
    wrong = changed(document, members=members, constants=[[constant]])
    message = refusal_of(wrong, tmp_path)
    assert "members[0]: the votes of output 0 must add up to 131072 at most" in message
    splits = tuple(Split(0, 0.5) for _ in regions)
    one = RegionMember(splits, np.asarray(regions)[:, :, np.newaxis], [constant])
    with pytest.raises(ValueError, match=r"cannot be saved: members\[0\]: the votes of output 0"):
        StumpEnsemble((one,), 3).save(tmp_path / "new.json")
    assert not (tmp_path / "new.json").exists()


@pytest.mark.parametrize(
    ("constant", "regions"),
    [
        (0.0, [(LIMIT - VOTE_UNIT, 0.0, 0.0), (VOTE_UNIT, 0.0, 0.0)]),
        (-VOTE_UNIT, [(0.0, 0.0, VOTE_UNIT - LIMIT)]),
        (0.0, [(LIMIT / 2, -LIMIT / 2, LIMIT)]),
    ],
)
def test_votes_up_to_the_largest_exact_sum_are_loaded(constant, regions, tmp_path):
    members = [[[0, 0.5, *votes] for votes in regions]]
    document = changed(document_of(TWO, tmp_path), members=members, constants=[[constant]])
    (tmp_path / "model.json").write_text(forged(document))
    (one,) = StumpEnsemble.load(tmp_path / "model.json").members
    assert one.votes[:, :, 0].tolist() == [list(votes) for votes in regions]
    assert one.constant.tolist() == [constant]


def test_the_sum_of_each_output_is_checked(tmp_path):
    document = document_of(SHARED, tmp_path)
    row = [0, 0.5, *([0.0] * 9)]
    row[SHARED_FIELDS.index("missing 2")] = LIMIT
    wrong = changed(document, members=[[row]], constants=[[LIMIT, LIMIT, VOTE_UNIT]])
    assert "the votes of output 2 must add up to 131072 at most" in refusal_of(wrong, tmp_path)
    (tmp_path / "model.json").write_text(
        forged(changed(document, members=[[row]], constants=[[LIMIT, LIMIT, 0.0]]))
    )
    assert StumpEnsemble.load(tmp_path / "model.json").intercepts == (LIMIT, LIMIT, 0.0)


@pytest.mark.parametrize("part", ["votes", "constant"])
def test_numbers_that_are_no_multiples_of_the_unit_are_not_saved(part, tmp_path):
    one = dataclasses.replace(TWO.members[0], **{part: getattr(TWO.members[0], part) / 7})
    with pytest.raises(ValueError, match=r"cannot be saved: members\[0\]: .* whole multiple"):
        dataclasses.replace(TWO, members=(one,)).save(tmp_path / "model.json")
    assert not list(tmp_path.iterdir())


def test_models_without_rounds_come_back(tmp_path):
    for name, model in MODELS.items():
        path = tmp_path / f"{name}.json"
        model.truncated(0).save(path)
        assert StumpEnsemble.load(path) == model.truncated(0)


NUMBERS = st.sampled_from([0.0, -0.0, 0.5, VOTE_UNIT, 0.1, 1e-300, 65536.0, -131072.0, 1e300])


@settings(max_examples=150)
@given(
    st.lists(st.tuples(st.sampled_from([0.5, -0.0, math.inf, 5e-324]), NUMBERS, NUMBERS, NUMBERS)),
    NUMBERS,
)
def test_a_model_made_by_hand_comes_back_or_is_not_saved(tmp_path_factory, splits, constant):
    votes = np.asarray([own for _, *own in splits]).reshape(-1, 3, 1)
    one = RegionMember(tuple(Split(0, at) for at, *_ in splits), votes, [constant])
    model = StumpEnsemble((one,), 1)
    path = tmp_path_factory.mktemp("models") / "model.json"
    try:
        model.save(path)
    except ValueError:
        assert not path.exists()
    else:
        found = StumpEnsemble.load(path)
        assert found == model
        assert found.digest() == model.digest()


def test_a_large_model_comes_back(tmp_path):
    model = region_model(np.random.default_rng(2), 3000, 9, 5, shared=True, link="softmax")
    model.save(tmp_path / "model.json")
    assert StumpEnsemble.load(tmp_path / "model.json") == model
