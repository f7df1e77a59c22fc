"""Splits of categories as values, and files of models that hold them (version 4).

The files are edited as a forger or a faulty writer would: see `forged`.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from forged_files import forged
from hypothesis import given
from hypothesis import strategies as st

from gpustump import Interval, Member, ModelFileError, RegionMember, Split, Stump, StumpEnsemble
from gpustump.learners.category_split import CategorySplit, CategoryStump
from gpustump.learners.conditions import condition
from gpustump.learners.hypothesis import by_region, regions
from gpustump.learners.step_table import VOTES_LIMIT

Document = dict[str, Any]

DISCRETE = StumpEnsemble(
    (
        Member(
            (
                Stump(0, 0.5, 1, -1, 0.25),
                CategoryStump(1, (0, 3), (1, 200), -1, 1, 0.125),
                Interval(2, -math.inf, 2.0, 1, 1, 0.25),
                CategoryStump(1, (7,), (), 1, -1, 0.375),
            ),
            (0.5, 0.25, 0.125, 1.0),
        ),
    ),
    3,
    classes=("no", "yes"),
    feature_names=("a", "colour", "c"),
)
SPLITS = (Split(0, 0.5), CategorySplit(1, (0, 253), (2,)), CategorySplit(2, (4,), ()))
VOTES = np.arange(18).reshape(3, 3, 2) / 8
SHARED = StumpEnsemble(
    (RegionMember(SPLITS, np.concatenate([VOTES, VOTES[:, :, :1] - 2], axis=2), [0.5, 0.0, -1.0]),),
    3,
    classes=(0, 1, 2),
    link="softmax",
)
BINARY = StumpEnsemble((RegionMember(SPLITS, VOTES[:, :, :1], [0.5]),), 3)
MODELS = {"discrete": DISCRETE, "binary": BINARY, "shared": SHARED}
X = np.asarray([[a, b, c] for a in (0, 1) for b in (0, 1, 2, 5, 253, np.nan) for c in (3, 4, -1)])


@pytest.mark.filterwarnings("ignore:.* has values that were not in training")
@pytest.mark.parametrize("name", MODELS)
def test_a_saved_model_comes_back_with_the_same_digest_and_scores(name, tmp_path):
    model, path = MODELS[name], tmp_path / "model.json"
    model.save(path)
    found = StumpEnsemble.load(path)
    assert (found, found.digest()) == (model, model.digest())
    assert np.array_equal(found.decision_function(X), model.decision_function(X))
    before = path.read_bytes()
    found.save(path)
    assert path.read_bytes() == before


def test_the_rows_and_the_digest_of_a_file_are_as_described(tmp_path):
    document = document_of(DISCRETE, tmp_path)
    assert document["version"] == 4
    part = document["model"]
    fields = ["feature", "low", "threshold", "polarity", "missing", "error", "vote"]
    assert part["stump_fields"] == [*fields, "categories", "other categories"]
    assert part["members"] == [
        [
            [0, None, 0.5, 1, -1, 0.25, 0.5, None, None],
            [1, None, None, -1, 1, 0.125, 0.25, "0 3", "1 200"],
            [2, "-inf", 2.0, 1, 1, 0.25, 0.125, None, None],
            [1, None, None, 1, -1, 0.375, 1.0, "7", ""],
        ]
    ]
    text = json.dumps(part, sort_keys=True, separators=(",", ":"))
    assert DISCRETE.digest() == hashlib.sha256(text.encode()).hexdigest()
    region = document_of(BINARY, tmp_path)["model"]
    fields = ["feature", "threshold", "left", "right", "missing"]
    assert region["stump_fields"] == [*fields, "categories", "other categories"]
    assert region["members"][0][1] == [1, None, 0.75, 1.0, 1.25, "0 253", "2"]


WRONG_SETS = ["", "3 0", "0 0", "0  3", " 0", "0 ", "-1", "254", "00", "1.0", "0,3", [0], 0, True,
              "٣", "9" * 5000]  # fmt: skip


@pytest.mark.parametrize("name", ["discrete", "shared"])
@pytest.mark.parametrize("value", WRONG_SETS, ids=lambda value: repr(value)[:20])
def test_a_wrong_set_is_refused_by_its_place(name, value, tmp_path):
    message = refusal_of(edited(name, -2, value, tmp_path), tmp_path)
    assert "members[0]: stump 1: categories must be null or increasing whole numbers" in message
    if value != "":
        message = refusal_of(edited(name, -1, value, tmp_path), tmp_path)
        assert "members[0]: stump 1: other categories must be null or increasing" in message


@pytest.mark.parametrize("name", MODELS)
def test_a_row_has_either_a_threshold_or_two_sets_without_a_common_category(name, tmp_path):
    threshold = 2 if name == "discrete" else 1
    for at, value in ((-1, None), (-2, None), (threshold, 1.5)):
        message = refusal_of(edited(name, at, value, tmp_path), tmp_path)
        assert "stump 1: either threshold or both categories and other categories" in message
    message = refusal_of(edited(name, -1, "0 5", tmp_path), tmp_path)
    assert "stump 1: no category may be in both sets; got '0" in message
    document = document_of(MODELS[name], tmp_path)
    document["model"]["members"][0][0][threshold] = None
    message = refusal_of(document, tmp_path)
    assert "stump 0: either threshold or both" in message


def test_an_interval_has_no_sets(tmp_path):
    message = refusal_of(edited("discrete", 1, 0.5, tmp_path), tmp_path)
    assert "stump 1: low must be" in message


def test_files_of_version_4_hold_a_set_and_those_of_other_versions_none(tmp_path):
    document = document_of(DISCRETE, tmp_path)
    plain = copy.deepcopy(document)
    plain["model"]["members"][0] = plain["model"]["members"][0][:1]
    assert "must hold a split of categories in version 4" in refusal_of(plain, tmp_path)
    for version in (1, 2, 3):
        assert "version" in refusal_of(document | {"version": version}, tmp_path) or version == 3
    region = document_of(BINARY, tmp_path)
    assert "stump_fields must be" in refusal_of(region | {"version": 3}, tmp_path)
    region["model"]["stump_fields"].reverse()
    assert "in version 4" in refusal_of(region, tmp_path)


def test_votes_whose_sums_with_those_for_missing_values_could_be_rounded_are_refused(tmp_path):
    votes = np.asarray([[[0.6], [0.0], [-0.6]]]) * VOTES_LIMIT
    votes = np.round(votes)
    for split, is_right in ((Split(0, 1.0), True), (CategorySplit(0, (1,), (2,)), False)):
        model = StumpEnsemble((RegionMember((split,), votes, [0.0]),), 1)
        if is_right:
            model.save(tmp_path / "model.json")
        else:
            with pytest.raises(ValueError, match="the votes of output 0 must add up to"):
                model.save(tmp_path / "other.json")


@pytest.mark.parametrize("kind", [CategorySplit, CategoryStump])
@pytest.mark.parametrize(
    ("left", "right", "message"),
    [
        ((), (1,), "left must hold at least one category"),
        ((1, 0), (), "left must hold increasing"),
        ((0, 1), (1, 2), r"got \[1\] in both"),
        ((0,), (254,), "right must hold increasing"),
        ((-1,), (), "left must hold increasing"),
        ((0.5,), (), "left must hold increasing"),
    ],
)
def test_sets_that_are_none_are_refused(kind, left, right, message):
    rest = (1, 1, 0.0) if kind is CategoryStump else ()
    with pytest.raises(ValueError, match=message):
        kind(0, left, right, *rest)


@given(
    sides=st.dictionaries(st.integers(0, 253), st.booleans(), min_size=1).filter(
        lambda sides: any(sides.values())
    ),
    dtype=st.sampled_from(["float16", "float32", "float64"]),
)
def test_a_split_of_categories_is_the_partition_of_its_sets(sides, dtype):
    left, right = (tuple(sorted(c for c, own in sides.items() if own is s)) for s in (True, False))
    split = CategorySplit(0, left, right)
    values = np.asarray([*range(-1, 256), np.nan, np.inf, -np.inf], dtype=dtype)
    expected = [0 if v in left else 1 if v in right else 2 for v in values.tolist()]
    assert regions(split, values).tolist() == expected
    numbers = np.asarray([0.5, -0.25, 2.0])
    assert np.array_equal(by_region(split, values, numbers), numbers[expected])
    member = RegionMember((split, split), np.asarray([numbers[:, np.newaxis]] * 2), [1.0])
    _, (table,) = member.output_tables(0)
    assert np.array_equal(table.look_up(values), 2 * numbers[expected])
    stump = CategoryStump(0, left, right, 1, -1, 0.0)
    assert stump.predict(values[:, np.newaxis]).tolist() == [[1, -1, -1][r] for r in expected]


def test_the_condition_names_the_categories_on_the_left():
    def words(*left: int) -> str:
        return condition(CategorySplit(0, left, (253,)), "x", category="c{}".format)

    assert words(0, 2) == "x in {c0, c2}"
    assert words(*range(13)).endswith("c11, c12}")
    assert words(*range(14)).endswith("c10, c11, 2 more}")
    assert condition(CategorySplit(0, (0, 2), ()), "x") == "x is present"
    assert condition(CategoryStump(0, (4,), (5,), 1, 1, 0.1), "x") == "x in {4}"


def document_of(model: StumpEnsemble, folder: Path) -> Document:
    model.save(folder / "original.json")
    document: Document = json.loads((folder / "original.json").read_text())
    return document


def edited(name: str, at: int, value: Any, folder: Path) -> Document:
    """A document with another value in its second row, which has sets."""
    document = document_of(MODELS[name], folder)
    document["model"]["members"][0][1][at] = value
    return document


def refusal_of(document: Document, folder: Path) -> str:
    path = folder / "model.json"
    path.write_text(forged(document))
    with pytest.raises(ModelFileError) as caught:
        StumpEnsemble.load(path)
    message = str(caught.value)
    assert len(message) - len(str(path)) < 700
    return message
