"""A saved model comes back bit for bit, or is refused with the reason; there is nothing in between.

Files are cut off, edited, replaced by others of every kind, and written under failing conditions.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import math
import os
import pickle
import re

import numpy as np
import pytest
from forged_files import forged
from hypothesis import given, settings
from hypothesis import strategies as st

from gpustump import Member, ModelFileError, Stump, StumpEnsemble, boost
from gpustump.learners.step_table import VOTE_UNIT
from gpustump.model.whole_file import whole_file


def trained() -> StumpEnsemble:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    X[rng.random(X.shape) < 0.2] = np.nan
    y = np.where(np.nan_to_num(X[:, 0]) + rng.normal(size=80) > 0, 1, -1)
    records = list(boost(X, y, rng.uniform(size=80), n_rounds=6))
    constant, extreme = Stump(0, math.inf, 1, 1, 0.4), Stump(1, -math.inf, -1, 1, 1 / 3)
    member = Member(
        (*(r.stump for r in records), constant, extreme, Stump(2, 5e-324, 1, -1, 5e-324)),
        (*(r.vote for r in records), -0.5, VOTE_UNIT, 2.0**16),
    )
    return StumpEnsemble((member,), 3, details={"seed": 7, "rate": 0.1, "nested": {"a": [None]}})


MODEL = trained()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.json"


@pytest.fixture
def saved(path):
    MODEL.save(path)
    return path


def same(a: StumpEnsemble, b: StumpEnsemble) -> bool:
    return a == b and every_value(a) == every_value(b) and a.digest() == b.digest()


def every_value(model: StumpEnsemble) -> str:
    """All fields as text, which tells 1 from True and 0.0 from -0.0."""
    members = [(member.stumps, member.votes) for member in model.members]
    return repr(
        (members, model.classes, model.feature_names, model.missing_learnt, dict(model.details))
    )


def test_a_saved_model_comes_back_bit_for_bit(saved):
    assert same(StumpEnsemble.load(saved), MODEL)
    assert same(StumpEnsemble.load(str(saved)), MODEL)


@pytest.mark.parametrize(
    "changes",
    [
        {"classes": (False, True)},
        {"classes": ('ä\n"', "\U0001f333")},
        {"classes": (0.1, 2)},
        {"classes": (-(2**62), 2**62)},
        {"classes": (0, 2**64 - 1)},
        {"feature_names": ("a", 'b"', "ö\x00")},
        {"feature_names": ("a", "a", "")},
        {"missing_learnt": (True, False, True)},
        {"details": {}},
        {"details": {"rate": 1e-300, "text": "é", "list": [1, 2.5, None, True]}},
        {"members": (Member((), ()),)},
        {"members": (MODEL.members[0], Member((), ()), MODEL.members[0]), "classes": (0, 1, 2)},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_whatever_a_model_may_hold_comes_back(path, changes):
    model = dataclasses.replace(MODEL, **changes)
    model.save(path)
    assert same(StumpEnsemble.load(path), model)


def test_no_text_in_a_model_can_disturb_its_file(path):
    """Whatever marks the places where the stumps are put must not be found in the user's text."""
    for text in ("@members", '"@members"', "model", "checksum"):
        model = dataclasses.replace(MODEL, feature_names=(text, "b", "c"), classes=(text, "z"))
        model.save(path)
        assert same(StumpEnsemble.load(path), model), text


def test_details_with_numbers_as_keys_can_be_read_again(path):
    """JSON turns the keys into text, and text sorts otherwise: "10" before "2"."""
    dataclasses.replace(MODEL, details={2: "two", 10: "ten"}).save(path)
    assert StumpEnsemble.load(path).digest() == MODEL.digest()


THRESHOLDS = st.floats(allow_nan=False)
ERRORS = st.floats(0.0, 1.0)
VOTES = st.integers(-(2**50), 2**50).map(lambda units: units * VOTE_UNIT)


@settings(max_examples=100)
@given(st.lists(st.tuples(THRESHOLDS, ERRORS, VOTES), min_size=1, max_size=5))
def test_every_float_comes_back(tmp_path_factory, numbers):
    path = tmp_path_factory.mktemp("models") / "model.json"
    stumps = tuple(Stump(0, threshold, 1, -1, error) for threshold, error, _ in numbers)
    model = StumpEnsemble((Member(stumps, tuple(vote for _, _, vote in numbers)),), 1)
    model.save(path)
    assert same(StumpEnsemble.load(path), model)


def test_files_of_equal_models_are_equal(path, tmp_path):
    MODEL.save(path)
    first = path.read_bytes()
    StumpEnsemble.load(path).save(path)
    assert path.read_bytes() == first


def test_the_file_can_be_read_and_indented_anew(saved):
    document = json.loads(saved.read_text())
    assert document["digest"] == MODEL.digest()
    assert document["model"]["members"][0][0][0] == MODEL.members[0].stumps[0].feature
    for layout in ({"indent": 8}, {"separators": (",", ":")}, {"sort_keys": True}):
        saved.write_text(json.dumps(document, **layout))
        assert StumpEnsemble.load(saved).digest() == MODEL.digest()
        assert StumpEnsemble.load(saved).details == MODEL.details
    saved.write_bytes(b"\xef\xbb\xbf" + json.dumps(document).encode())  # as editors on Windows do
    assert same(StumpEnsemble.load(saved), MODEL)


def test_a_truncated_file_is_refused_wherever_it_ends(saved):
    content = saved.read_bytes().rstrip()
    for length in {*range(60), *range(60, len(content), 7), len(content) - 1}:
        saved.write_bytes(content[:length])
        with pytest.raises(ModelFileError, match=r"truncated|not a gpustump model"):
            StumpEnsemble.load(saved)
    saved.write_bytes(content[: len(content) // 2])
    with pytest.raises(ModelFileError, match=r"model\.json is damaged or truncated: .* line \d+"):
        StumpEnsemble.load(saved)


def test_an_edited_digit_is_refused_unless_it_reads_as_the_same_number(saved):
    content = saved.read_text()
    refused = 0
    places = [match.start() for match in re.finditer(r"\d", content)]
    for place in places[::3]:
        digit = (int(content[place]) + 1) % 10
        saved.write_text(content[:place] + str(digit) + content[place + 1 :])
        try:
            assert same(StumpEnsemble.load(saved), MODEL)  # a 17th digit that does not matter
        except ModelFileError:
            refused += 1
    assert refused > 0.95 * len(places[::3])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"rate": 0.1', '"rate": 0.2'),
        ('"feature_names": null', '"feature_names": ["a", "b", "c"]'),
        ('"n_features": 3', '"n_features": 4'),
        ('"inf"', '"-inf"'),
        ('"inf"', "NaN"),
        ('"inf"', "Infinity"),
        ('"inf"', "1e999"),
        ('"seed": 7', '"seed": 7, "more": 1'),
        ('"checksum": "', '"checksum": "0'),
        ('"checksum"', '"check"'),
        ('"digest": "', '"digest": "0'),
    ],
)
def test_an_edited_file_is_refused(saved, old, new):
    content = saved.read_text()
    assert old in content
    saved.write_text(content.replace(old, new, 1))
    with pytest.raises(ModelFileError, match=r"model\.json was changed after it was written"):
        StumpEnsemble.load(saved)


def test_a_newer_version_is_refused_by_its_number(saved):
    saved.write_text(forged(json.loads(saved.read_text()) | {"version": 6}))
    with pytest.raises(ModelFileError, match="format version 6; this gpustump reads"):
        StumpEnsemble.load(saved)


FOREIGN = {
    "empty": b"",
    "spaces": b"  \n",
    "text": b"once upon a time",
    "number": b"12",
    "null": b"null",
    "list": b"[1, 2]",
    "object": b'{"format": "other"}',
    "csv": b"a,b\n1,2\n",
    "xgboost": b'{"learner": {"attributes": {}}, "version": [2, 0, 3]}',
    "pickle": pickle.dumps({"format": "gpustump model"}),
    "gzip": gzip.compress(b'{"format": "gpustump model"}'),
    "random": np.random.default_rng(0).bytes(4096),
    "zeros": bytes(1000),
    "utf-16": '{"format": "other"}'.encode("utf-16"),
    "latin-1": '{"format": "é"}'.encode("latin-1"),
    "deep": b"[" * 100_000,
    "deep object": b'{"a":' * 100_000,
    "long number": b"1" * 5000,
    "long number inside": b'{"format": "other", "n": ' + b"1" * 5000 + b"}",
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_foreign_file_is_refused_by_name(path, kind):
    path.write_bytes(FOREIGN[kind])
    with pytest.raises(ModelFileError, match=r"model\.json is not a gpustump model"):
        StumpEnsemble.load(path)


@settings(max_examples=200)
@given(st.binary(max_size=200))
def test_no_junk_gets_past_the_reader(tmp_path_factory, junk):
    path = tmp_path_factory.mktemp("junk") / "model.json"
    path.write_bytes(junk)
    with pytest.raises(ModelFileError, match=r"model\.json"):
        StumpEnsemble.load(path)


def test_a_folder_is_no_model(tmp_path):
    with pytest.raises(IsADirectoryError):
        StumpEnsemble.load(tmp_path)
    with pytest.raises(IsADirectoryError, match="is a folder; give the name of a file"):
        MODEL.save(tmp_path)


def test_a_missing_file_or_folder_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        StumpEnsemble.load(tmp_path / "none.json")
    with pytest.raises(FileNotFoundError):
        MODEL.save(tmp_path / "none" / "model.json")
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_write_leaves_the_old_file(saved, monkeypatch):
    before = saved.read_bytes()

    def interrupted():
        with whole_file(saved) as file:
            file.write(b"half of it")
            file.flush()
            raise KeyboardInterrupt

    def fails(*arguments):
        raise OSError(28, "No space left on device")

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert saved.read_bytes() == before
    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, fails)
            with pytest.raises(OSError, match="No space left"):
                MODEL.truncated(1).save(saved)
        assert saved.read_bytes() == before
    assert [entry.name for entry in saved.parent.iterdir()] == ["model.json"]


def test_a_model_that_cannot_be_written_leaves_the_old_file(saved):
    before = saved.read_bytes()
    for details in ({"nan": math.nan}, {"array": np.zeros(2)}):
        with pytest.raises((TypeError, ValueError)):
            dataclasses.replace(MODEL, details=details).save(saved)
        assert saved.read_bytes() == before
    assert [entry.name for entry in saved.parent.iterdir()] == ["model.json"]


@pytest.mark.skipif(os.name != "posix", reason="about POSIX permissions and links")
def test_permissions_and_links_are_kept(saved, tmp_path):
    saved.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to(saved)
    MODEL.truncated(1).save(link)
    assert link.is_symlink()
    assert saved.stat().st_mode & 0o777 == 0o640
    assert same(StumpEnsemble.load(saved), MODEL.truncated(1))


@pytest.mark.skipif(os.name != "posix", reason="about POSIX permissions")
def test_a_new_file_gets_the_usual_permissions(path):
    before = os.umask(0o027)
    try:
        MODEL.save(path)
        assert os.umask(0o027) == 0o027
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_model_built_of_other_numbers_is_saved_as_plain_ones(path):
    stump = Stump(np.int64(0), 1, np.int8(1), -1.0, np.float32(0.25))
    model = StumpEnsemble((Member([stump], [np.float64(0.5)]),), 1)
    model.save(path)
    assert StumpEnsemble.load(path) == model
    assert (stump.feature, stump.threshold, stump.missing) == (0, 1.0, -1)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ((0, float("nan"), 1, 1, 0.1), "threshold must be a number or infinite; got NaN"),
        ((0, 0.0, 0, 1, 0.1), r"polarity must be \+1 or -1; got 0"),
        ((0, 0.0, 1, 2, 0.1), r"missing must be \+1 or -1; got 2"),
    ],
)
def test_a_stump_that_could_not_predict_cannot_be_made(fields, message):
    with pytest.raises(ValueError, match=message):
        Stump(*fields)
