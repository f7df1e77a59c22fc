"""A saved model comes back bit for bit, and its file is written whole or not at all."""

from __future__ import annotations

import contextlib
import dataclasses
import gc
import json
import math
import os
import pickle
import sys

import numpy as np
import pytest
from forged_files import FILED, document_of, forged
from hypothesis import given, settings
from hypothesis import strategies as st

from gpustump import Member, ModelFileError, RegionMember, Split, Stump, StumpEnsemble
from gpustump.learners.pair_table import PairAxis, PairTable
from gpustump.learners.step_table import VOTE_UNIT
from gpustump.model.bags import Bags
from gpustump.model.edits import Edit
from gpustump.model.whole_file import whole_file

STUMPS = FILED["stumps"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.json"


def every_value(model: StumpEnsemble) -> str:
    """All fields as text, which tells 1 from True and 0.0 from -0.0."""
    members = [(m.hypotheses, m.region_votes.tolist(), m.constant.tolist()) for m in model.members]
    others = (model.classes, model.feature_names, model.missing_learnt, model.link, model.bags)
    pairs = [(own, own.weights.tolist(), np.asarray(own.bags).tolist()) for own in model.pairs]
    return repr((members, *others, pairs, model.moved, dict(model.details)))


def comes_back(model: StumpEnsemble, path) -> StumpEnsemble:
    """The model that its file holds, after checking that it is the same to the last bit."""
    model.save(path)
    content = path.read_bytes()
    found = StumpEnsemble.load(path)
    assert found == model
    assert every_value(found) == every_value(model)
    for one, own in zip(found.pairs, model.pairs, strict=True):
        assert np.array_equal(one.weights, own.weights)
        assert one.bags.tobytes() == own.bags.tobytes()
    assert found.digest() == model.digest()
    found.save(path)
    assert path.read_bytes() == content
    return found


@pytest.mark.parametrize("name", FILED)
def test_a_model_of_every_layout_comes_back_bit_for_bit(name, path):
    model = FILED[name]
    found = comes_back(model, path)
    document = json.loads(path.read_text())
    assert json.loads(forged(document)) == document  # the digest and the checksum are as described
    for member, own in zip(found.members, model.members, strict=True):
        for one, other in zip(member.hypotheses, own.hypotheses, strict=True):
            assert list(vars(one).items()) == list(vars(other).items())
            assert (hash(one), pickle.loads(pickle.dumps(one))) == (hash(other), other)
    comes_back(model.truncated(0), path)


def test_whatever_a_model_may_hold_comes_back(path):
    for changes in (
        *({"classes": own} for own in (
            (False, True), ('ä\n"', "\U0001f333"), (0.1, 2), (-(2**62), 2**62), (0, 2**64 - 1)
        )),
        {"feature_names": ("@members", 'b"', "ö\x00"), "classes": ("model", '"@members"')},
        {"feature_names": None, "missing_learnt": None},
        {"details": {"rate": 1e-300, "text": "é", "list": [1, 2.5, None, True]}},
        {"members": (STUMPS.members[0], Member((), ()), STUMPS.members[0]), "classes": (0, 1, 2)},
    ):  # fmt: skip
        comes_back(dataclasses.replace(STUMPS, **changes), path)


def test_the_parts_of_a_file_are_those_that_are_needed(tmp_path, path):
    assert "missing_learnt" not in document_of(FILED["rest"], tmp_path)
    document = document_of(STUMPS, tmp_path) | {"more": {"of": ["it"]}}
    path.write_text(forged(document))  # parts that a later version may add are left alone
    assert StumpEnsemble.load(path) == STUMPS
    document = document_of(FILED["bags"], tmp_path)
    del document["bags"]
    path.write_text(forged(document))
    assert StumpEnsemble.load(path).bags is None
    dataclasses.replace(STUMPS, details={2: "two", 10: "ten"}).save(path)
    assert StumpEnsemble.load(path).details == {"2": "two", "10": "ten"}


NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 0.5, VOTE_UNIT, 65536.0, -131072.0]),
    st.integers(-(2**50), 2**50).map(lambda units: units * VOTE_UNIT),
)
LABELS = st.one_of(st.text(max_size=3), st.booleans(), st.integers(), st.floats())


@settings(max_examples=150)
@given(
    st.lists(st.tuples(st.floats(allow_nan=False), st.floats(), *[NUMBERS] * 3), max_size=4),
    NUMBERS,
    st.tuples(LABELS, LABELS) | st.just((0, 1)),
    st.dictionaries(st.text(max_size=2), LABELS, max_size=2),
    st.booleans(),
)
def test_a_model_made_by_hand_comes_back_or_is_not_saved(
    tmp_path_factory, rows, constant, classes, details, discrete
):
    if discrete:
        stumps = tuple(Stump(0, at, 1, -1, error) for at, error, *_ in rows)
        member = Member(stumps, tuple(vote for *_, vote in rows))
    else:
        votes = np.asarray([own for _, _, *own in rows]).reshape(-1, 3, 1)
        member = RegionMember(tuple(Split(0, at) for at, *_ in rows), votes, [constant])
    model = StumpEnsemble((member,), 1, classes=classes, details=details)
    path = tmp_path_factory.mktemp("models") / "model.json"
    try:
        model.save(path)
    except ValueError:
        assert not path.exists()
    else:
        comes_back(model, path)


def test_the_file_can_be_read_and_indented_anew(path):
    STUMPS.save(path)
    document = json.loads(path.read_text())
    assert document["model"]["members"][0][0][0] == STUMPS.members[0].stumps[0].feature
    for layout in ({"indent": 8}, {"separators": (",", ":")}, {"sort_keys": True}):
        path.write_text(json.dumps(document, **layout))
        found = StumpEnsemble.load(path)
        assert (found, found.digest(), found.details) == (STUMPS, STUMPS.digest(), STUMPS.details)
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(document).encode())  # as editors on Windows do
    assert every_value(StumpEnsemble.load(path)) == every_value(STUMPS)


ROUNDED = np.asarray([0.1, 1e308, -1e308, 3.0, 1e-300, 0.7, 0.1, 0.2] * 2)
"""Differences of these are rounded, or infinite."""


def test_a_model_built_of_other_numbers_is_saved_as_plain_ones(path):
    stump = Stump(np.int64(0), 1, np.int8(1), -1.0, np.float32(0.25))
    comes_back(StumpEnsemble((Member([stump], [np.float64(0.5)]),), 1), path)
    assert (stump.feature, stump.threshold, stump.missing) == (0, 1.0, -1)
    axes = PairAxis(np.int64(0), np.asarray([1, 2, np.inf])), PairAxis(1, groups=((2,),))
    pair = PairTable(
        axes, np.ones((4, 2, 1), dtype=np.int64), np.ones((4, 2)) / 8, ROUNDED.reshape(2, 4, 2, 1)
    )
    member = RegionMember((Split(0, 1), Split(1, 2)), np.zeros((2, 3, 1)), [0])
    empty = RegionMember((), np.zeros((0, 3, 1)), [0])
    bags = Bags([[np.int64(1), 1.0]], [[[np.float32(0.5)], [-0.0]]])
    model = StumpEnsemble((member,), 3, pairs=(pair,), moved=(empty,), bags=bags)
    comes_back(model.edited([Edit((np.int64(0),), like=5, above=1, upto=9)]), path)


NOT_SAVED = {
    "vote that is no multiple": (
        {"members": (Member((Stump(0, 0.5, 1, 1, 0.1),), (0.1,)),)},
        r"members\[0\]: votes\[0\] must be .* multiple of 2\*\*-36, as round\(vote \* 2\*\*36\)",
    ),
    "split vote": (
        {"members": (RegionMember((Split(0, 1.0),), [[[0.1], [0.0], [0.0]]], [0.0]),)},
        r"members\[0\]: .* whole multiple",
    ),
    "constant": ({"members": (RegionMember((), np.zeros((0, 3, 1)), [0.1]),)}, "whole multiple"),
    "keys that are equal as text": ({"details": {1: "a", "1": "b"}}, "the key '1' stands twice"),
    "NaN in details": ({"details": {"nan": math.nan}}, "JSON"),
    "no features": ({"n_features": 0, "feature_names": None, "missing_learnt": None,
                     "members": (Member((), ()),)}, "n_features must be a whole number from 1 to"),
}  # fmt: skip


@pytest.mark.parametrize("case", NOT_SAVED)
def test_what_could_not_be_loaded_is_not_saved(case, tmp_path, path):
    changes, said = NOT_SAVED[case]
    STUMPS.save(path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=f"^this model cannot be saved: .*{said}"):
        dataclasses.replace(STUMPS, **changes).save(path)
    with pytest.raises(TypeError):
        dataclasses.replace(STUMPS, details={"array": np.zeros(2)}).save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.json"]


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_is_left_as_it_was(enabled, path):
    path.write_text("{}")
    before = gc.isenabled()
    try:
        gc.enable() if enabled else gc.disable()
        with pytest.raises(ModelFileError):
            StumpEnsemble.load(path)
        assert gc.isenabled() == enabled
    finally:
        gc.enable() if before else gc.disable()


def test_folders_are_no_files_and_a_missing_one_is_named_as_given(tmp_path):
    wanted = tmp_path / "none" / "model.json"
    for use in (StumpEnsemble.load, STUMPS.save):
        with pytest.raises(IsADirectoryError):
            use(tmp_path)
        with pytest.raises(FileNotFoundError) as error:
            use(wanted)
        assert error.value.filename == str(wanted)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # open files are closed a moment later
def test_an_interruption_at_any_call_leaves_the_old_file_or_the_new_one_and_nothing_else(tmp_path):
    path, n_calls, found = tmp_path / "file", 0, set()
    with whole_file(path):  # what is imported and compiled once is ready: all runs make these calls
        pass
    while b"new" not in found:
        path.write_bytes(b"old")
        calls = iter(range(n_calls))

        def interrupt(frame, event, argument, calls=calls):
            if event != "return" and next(calls, None) is None:  # none comes at the end of a frame
                sys.setprofile(None)
                raise KeyboardInterrupt

        with contextlib.suppress(KeyboardInterrupt):
            sys.setprofile(interrupt)  # functions written in C included, before and after
            with whole_file(path) as file:
                file.write(b"new")
        sys.setprofile(None)
        assert [each.name for each in tmp_path.iterdir()] == ["file"], n_calls
        found.add(path.read_bytes())
        n_calls += 1
    assert found == {b"old", b"new"}
    assert n_calls > 20


def test_a_full_disk_leaves_the_old_file(path, monkeypatch):
    def fails(*arguments):
        raise OSError(28, "No space left on device")

    STUMPS.save(path)
    before = path.read_bytes()
    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, fails)
            with pytest.raises(OSError, match="No space left"):
                STUMPS.truncated(1).save(path)
        assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == ["model.json"]


@pytest.mark.skipif(os.name != "posix", reason="about POSIX permissions, links and devices")
def test_permissions_and_links_are_kept_and_devices_written_to(path, tmp_path):
    before = os.umask(0o027)
    try:
        STUMPS.save(path)
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640
    path.chmod(0o604)
    link = tmp_path / "link.json"
    link.symlink_to(path)
    STUMPS.truncated(1).save(link)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o604
    assert StumpEnsemble.load(path) == STUMPS.truncated(1)
    STUMPS.save(os.devnull)
