"""A file is refused, by the part that is wrong, if `save` could not have written it.

Files are cut off, edited, and forged: edited with their digest and checksum computed anew.
`bash ci/test --all-faults` makes 10 000 of each kind of fault.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import pickle
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fault_counts import count
from forged_files import ABSENT, FILED, document_of, forged, refusal_of, with_value
from golden_models import FOLDER
from mutations import peak_bytes, with_other_bytes, with_other_parts

from gpustump import ModelFileError, RegionMember, Split, StumpEnsemble
from gpustump.learners.category_split import CategorySplit
from gpustump.learners.step_table import VOTE_UNIT
from gpustump.model.document import DEEPEST_DETAILS, MOST_UNLISTED_FEATURES

pytestmark = [
    pytest.mark.filterwarnings("ignore:values are missing:UserWarning"),
    pytest.mark.filterwarnings("ignore:.* has values that were not in training"),
]
STUMPS = FILED["stumps"]
HUGE, LONG, LIMIT = 10**400, "x" * 1_000_000, 131072.0
NANS = ("nan", "NaN", "Infinity", "+inf", "1e999", "-Inf", " inf", "")
NOT_SIGNS = [0, 2, -2, 1.0, True, "1", None, HUGE, []]
NOT_VOTES = [0.1, 2**-37, 131072.5, 1e308, -1e308, 1, 0, True, None, "0.5", HUGE, [], *NANS]
NOT_FEATURES = [1.0, 1.9, "1", True, None, -1, 3, 2**63, HUGE, [], {}, LONG]
NOT_SETS = ["", "3 0", "0 0", "0  3", " 0", "0 ", "-1", "1000", "00", "1.0", "0,3", [0], 0, True,
            "٣", "9" * 5000]  # fmt: skip
FIELDS = ["feature", "threshold", "polarity", "missing", "error", "vote"]
GOOD_BAGS = {"sizes": [[2, 3]], "constants": [[[0.5], [0.25]]]}
VOTES_OF_TWO = {
    "n_features": 3, "classes": [0, 1], "link": "logistic",
    "stump_fields": ["feature", "threshold", "left", "right", "missing"],
}  # fmt: skip
EVERY = "model must be an object of "
IN_ROW_1 = "members[0]: row 1 | members[0][1]["

WRONG: list[tuple[str, str, list[Any], str]] = [
    # the rows of stumps
    ("stumps", "model.members.0.1.0", NOT_FEATURES, IN_ROW_1 + " | stumps use features"),
    ("stumps", "model.members.0.1.1", [0, True, None, HUGE, -HUGE, [], LONG, *NANS],
     IN_ROW_1),
    ("stumps", "model.members.0.1.2", NOT_SIGNS, IN_ROW_1),
    ("stumps", "model.members.0.1.4", [-1e-9, 1.0000000000000002, 0, 1, True, "0.5", None, *NANS],
     IN_ROW_1),
    ("stumps", "model.members.0.1.5", NOT_VOTES,
     IN_ROW_1 + " | members[0]: votes[1] | votes must be finite"),
    ("stumps", "model.members.0.0", [[], [0, 0.5, 1, -1, 0.25], [0] * 7, {}, 5, LONG],
     "members[0]: row 0 must be a list of 6 values"),
    ("stumps", "model.members.0", [[[0, 0.5, 1, -1, 0.25, vote] for vote in votes] for votes in
     ([LIMIT, VOTE_UNIT], [65536.0, 65536.0, -0.5])], "votes of output 0 must add up to 131072"),
    *(("intervals", "model.members.0.0", [[1, low, high, 1, -1, 0.25, 1.0]],
       "low must be below high, and high finite | members[0][0][1] must be 0.0")
      for low, high in ((0.5, 0.5), (1.0, 0.5), (0.0, "inf"), ("-inf", "-inf"), ("inf", 0.5),
                        (0, 0.5), ("nan", 0.5))),
    # the other parts
    ("stumps", "model.n_features", [-1, 0, 2.0, True, "3", None, [], 2**63, HUGE],
     "n_features must be a whole number from 1 to 2**63 - 1"),
    ("stumps", "model.n_features", [10**9], "feature_names must name 1000000000"),
    ("stumps", "model.classes", [None, "ny", {"no": 1}, []], "classes must be a list of labels"),
    ("stumps", "model.classes", [["no", None], ["a", "\ud800"], [0, 2**64]],
     "classes[1] must be text, true, false or a number of at most 64 bits"),
    ("stumps", "model.classes", [[[], "yes"], [-(2**63) - 1, 0], [HUGE, 0]], "classes[0] must be"),
    ("stumps", "model.classes", [["no", "no"], [1, 1.0], [0.0, -0.0]],
     "classes[0] and classes[1] are"),
    ("stumps", "model.classes", [[1, True], [0, True], ["1", 1]], "classes must be of one kind"),
    ("stumps", "model.classes", [[2**53 + 1, 0.5], ["a\0", "b"]], "it changes classes[0]"),
    ("stumps", "model.stump_fields", [[*FIELDS, "vote"], ["vote"] * 6, FIELDS[::-1], [LONG], None],
     "as the fields say | row 1: error must be | NoneType"),
    ("stumps", "model.members", [None, [], [[], []], {}],
     "members must be 1 for 2 classes | NoneType"),
    ("stumps", "model.members", [ABSENT], "it lacks 'members'"),
    ("stumps", "model.more", [5], EVERY + "classes, members, n_features, stump_fields"),
    ("stumps", "model", [[], None, LONG], "NoneType | indices must be integers"),
    ("stumps", "model", [ABSENT], "digest does not match"),
    ("stumps", "feature_names", [ABSENT], "it lacks 'feature_names'"),
    ("stumps", "feature_names", ["abc", ["a"], {"a": 1, "b": 2, "c": 3}],
     "feature_names must be a list of 3 | feature_names must name 3"),
    ("stumps", "feature_names", [["a", 1, "c"], ["a", None, "c"], ["a", "\udfff", "c"]],
     "feature_names[1] must be text"),
    ("stumps", "missing_learnt", [None, [True], "abc"], "missing_learnt"),
    ("stumps", "missing_learnt", [[True, 1, False]], "missing_learnt[1] must be True; got 1"),
    ("stumps", "details", [ABSENT], "it lacks 'details'"),
    ("stumps", "details", [None, [], LONG], "details must be an object"),
    ("stumps", "details.x", [["\udc00"], {"\ud83c": 1}], "details must hold text without"),
    ("stumps", "version", [True, 1.0, 0, 2, HUGE, LONG, ABSENT], "has format version"),
    ("stumps", "format", [LONG, None], "is not a gpustump model"),
    # splits whose regions have votes of their own
    *(("two", f"model.members.0.1.{at}", [*NOT_VOTES, -0.0],
       f"{IN_ROW_1} | members[0]: votes[1, {at - 2}, 0] | votes must be finite")
      for at in (2, 3, 4)),
    ("shared", "model.constants.0.1", [*NOT_VOTES, -0.0],
     "members[0]: | model.constants[0][1] must be"),
    ("two", "model.link", ["softmax", None], "link must be 'logistic'"),
    ("rest", "model.link", ["probit", ["softmax"]], "link must be 'logistic', 'softmax'"),
    ("rest", "model.link", [ABSENT], "it lacks 'polarity'"),
    ("rest", "model.constants", [ABSENT], "it lacks 'constants'"),
    ("rest", "model.constants", [None, [[0.0]]], "NoneType | zip"),
    ("two", "model.constants", [[[0.0, 0.0]], [0.0]], "members[0]: "),
    ("two", "model.stump_fields", [FIELDS, ["missing", "right", "left", "threshold", "feature"]],
     "members[0]: row 0 | members[0]: votes must be finite"),
    ("shared", "model.members", [[[[0, 0.5, 1.0]]]], "row 0 must be a list of 11 values"),
    *(("two", "model", [VOTES_OF_TWO | {
        "constants": [[constant]], "members": [[[0, 0.5, *votes] for votes in regions]]}],
       "the votes of output 0 must add up to 131072")
      for constant, regions in (
          (0.0, [(LIMIT, 0.0, 0.0), (VOTE_UNIT, 0.0, 0.0)]),
          (VOTE_UNIT, [(0.0, LIMIT, 0.0)]),
          (-VOTE_UNIT, [(0.0, 0.0, -LIMIT)]),
          (0.0, [(LIMIT / 2, -LIMIT / 2 - VOTE_UNIT, 0.0)]),
          (1.0, [(LIMIT / 4, -LIMIT / 4, 0.0), (LIMIT / 2, LIMIT / 2, LIMIT / 2)]))),
    ("quantity", "model.members.0.0.2", [None, 1, -0.0, *NANS],
     "members[0]: row 0 | members[0][0][2] | votes must be finite"),
    ("quantity", "model.members.0.0.2", [1e300], "the votes of output 0 must add up to"),
    ("quantity", "model.classes", [[0, 1]], "for a quantity, which has no classes"),
    ("count", "model.members.0.0.2", [0.1], "votes[0, 0, 0] must be a whole multiple"),
    # sets of categories
    *((name, f"model.members.0.1.{at}", NOT_SETS[other:], IN_ROW_1)
      for name in ("sets", "shared sets") for at, other in ((-2, 0), (-1, 1))),
    *((name, f"model.members.0.1.{at}", [None if at < 0 else 1.5], IN_ROW_1)
      for name, own in (("sets", 2), ("shared sets", 1)) for at in (-1, -2, own)),
    ("sets", "model.members.0.0.2", [None], "members[0]: row 0"),
    ("sets", "model.members.0.1.-1", ["0 5"], "no category may be in left and in right"),
    ("sets", "model.members.0.1.1", [0.5], "members[0][1][1] must be None"),
    ("sets", "model.members.0", [[[0, None, 0.5, 1, 1, 0.25, 0.5, None, None]]],
     "model.stump_fields must be a list of 6"),
    # bags
    ("bags", "bags", [None, [], {"sizes": [[2, 3]]}, GOOD_BAGS | {"more": 1}],
     "bags: | bags must be an object of constants, sizes"),
    ("bags", "bags.sizes", [[[2, 3.0]], [[2, True]], [[-1, 6]]],
     "must add up to 5 | bags.sizes[0][1] must be 3; got 3.0"),
    ("bags", "bags.sizes", [[[2, 4]], [[2, 10**30]]], "must add up to 5, the terms of their mem"),
    ("bags", "bags.sizes", [[[5]], [], [[2, 3, 0]]], "must give sizes and constants for every"),
    ("bags", "bags", [{"sizes": [[5]], "constants": [[[0.0]]]}], "the same two bags or more"),
    ("bags", "bags", [{key: value * 2 for key, value in GOOD_BAGS.items()}], "be of 1 members"),
    ("bags", "bags", [{"sizes": [[9] * 5000], "constants": [[[0.0]] * 5000]}], "must add up to 5"),
    ("bags", "bags.constants", [[[[0.5], []]]], "must be 1, one for each output"),
    ("bags", "bags.constants", [[[[0.5], [0.1]]]], "a whole multiple of 2**-36"),
    ("bags", "bags.constants", [[[[0.5], [-0.0]]], [[[0.5], ["1"]]]], "constants[0][1][0] must"),
    # pairs
    ("pairs", "model.pairs.0.features", [[0, 0], [1, 0], [0, 9], [-1, 1]],
     "must pair two of 3 features"),
    ("pairs", "model.pairs.0.features", [["a", 1], [True, 1]], "pairs: | must pair two"),
    ("pairs", "model.pairs.0.bins.0", [[2.0, 1.0], [1.0, 1.0]], "thresholds must be increasing"),
    ("pairs", "model.pairs.0.bins.0", [[1], ["inf"], [None]], "pairs"),
    ("pairs", "model.pairs.0.bins.0", [[float(at) for at in range(33)]], "pairs[0]"),
    ("pairs", "model.pairs.0.bins.1", [[[1], [1]], [[0, 1000]], [[0], []], [[0.0]]],
     "groups must hold different | pairs[0]"),
    ("pairs", "model.pairs.0.values.0", [[0.0], 5], "pairs: "),
    ("pairs", "model.pairs.0.values.0.0.0", [0.1, 1, None],
     "values[0, 0, 0] must be | values[0][0][0] must be 1.0 | finite values"),
    ("pairs", "model.pairs.0.values.0.0.0", [-0.0], "values[0][0][0] must be 0.0; got -0.0"),
    ("pairs", "model.pairs.0.extra", [1], "pairs[0] must be an object of bins, features, values"),
    ("pairs", "model.pairs", [3, []], "pairs: "),
    ("pairs", "model.moved", [[], None], "zip | NoneType"),
    ("pairs", "seen.0.weights", ["AAAA", 7, "é"], "pairs: "),
    ("pairs", "seen.0.steps", [ABSENT, "AAAA"], "pairs: it lacks 'bags' | pairs: "),
    ("pairs", "seen", [[], ABSENT], "seen"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_a_wrong_value_is_refused_by_its_place(number, tmp_path):
    name, place, values, said = WRONG[number]
    document = document_of(FILED[name], tmp_path)
    for value in values:
        message = refusal_of(with_value(document, place, value), tmp_path)
        assert any(each in message for each in said.split(" | ")), (place, value, message)


def test_votes_up_to_the_largest_exact_sum_are_loaded(tmp_path):
    path, document = tmp_path / "model.json", document_of(FILED["two"], tmp_path)
    for constant, regions in (
        (0.0, [(LIMIT - VOTE_UNIT, 0.0, 0.0), (VOTE_UNIT, 0.0, 0.0)]),
        (-VOTE_UNIT, [(0.0, 0.0, VOTE_UNIT - LIMIT)]),
        (0.0, [(LIMIT / 2, -LIMIT / 2, LIMIT)]),
    ):
        rows = [[0, 0.5, *votes] for votes in regions]
        document["model"] |= {"members": [rows], "constants": [[constant]]}
        path.write_text(forged(document))
        (one,) = StumpEnsemble.load(path).members
        assert one.votes[:, :, 0].tolist() == [list(votes) for votes in regions]
    document = document_of(STUMPS, tmp_path)
    document["model"]["members"][0] = [[0, 0.5, 1, -1, 0.25, v] for v in (131071.5, 0.5)]
    path.write_text(forged(document))
    assert StumpEnsemble.load(path).members[0].votes == (131071.5, 0.5)


def test_sums_are_checked_for_each_output_and_for_missing_values_beside_categories(tmp_path):
    document = document_of(FILED["shared"], tmp_path)
    row = [0, 0.5, *([0.0] * 8), LIMIT]  # the last one is "missing 2"
    for start, is_right in ((VOTE_UNIT, False), (0.0, True)):
        model = document["model"] | {"members": [[row]], "constants": [[LIMIT, LIMIT, start]]}
        wrong = document | {"model": model}
        if is_right:
            (tmp_path / "model.json").write_text(forged(wrong))
            StumpEnsemble.load(tmp_path / "model.json")
        else:
            assert "votes of output 2 must add up to 131072" in refusal_of(wrong, tmp_path)
    votes = np.round(np.asarray([[[0.6], [0.0], [-0.6]]]) * LIMIT)
    plain = StumpEnsemble((RegionMember((Split(0, 1.0),), votes, [0.0]),), 1)
    plain.save(tmp_path / "model.json")
    sets = StumpEnsemble((RegionMember((CategorySplit(0, (1,), (2,)),), votes, [0.0]),), 1)
    with pytest.raises(ValueError, match="the votes of output 0 must add up to"):
        sets.save(tmp_path / "model.json")


def test_fields_of_intervals_are_refused_where_there_is_none(tmp_path):
    document = document_of(STUMPS, tmp_path)
    document["model"]["stump_fields"] = ["feature", "low", *FIELDS[1:]]
    for row in document["model"]["members"][0]:
        row.insert(1, None)
    assert "model.stump_fields must be a list of 6" in refusal_of(document, tmp_path)


def test_class_names_that_would_fill_the_memory_are_refused(tmp_path):
    """NumPy gives every label as much memory as the longest one."""
    document = document_of(FILED["intervals"], tmp_path)
    document["model"]["classes"] = [LONG, *(str(number) for number in range(2, 300))]
    document["model"]["members"] += [[] for _ in range(296)]
    assert "must fit into an array of 1 GiB" in refusal_of(document, tmp_path)


def test_a_number_of_features_is_bounded_unless_a_list_proves_it(tmp_path, monkeypatch):
    document = document_of(dataclasses.replace(STUMPS, feature_names=None), tmp_path)
    del document["missing_learnt"]
    for n_features in (MOST_UNLISTED_FEATURES + 1, 2**63 - 1):
        message = refusal_of(with_value(document, "model.n_features", n_features), tmp_path)
        assert f"n_features must be at most {MOST_UNLISTED_FEATURES} unless" in message
    path = tmp_path / "model.json"
    path.write_text(forged(with_value(document, "model.n_features", MOST_UNLISTED_FEATURES)))
    assert StumpEnsemble.load(path).n_features == MOST_UNLISTED_FEATURES
    monkeypatch.setattr("gpustump.model.document.MOST_UNLISTED_FEATURES", 2)
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
        message = refusal_of(with_value(document, "details.x", nested(depth)), tmp_path)
        assert "details must be nested in at most 100 levels" in message
    for depth in (500, 990, 5000):
        text = json.dumps(document).replace('"seed": 7', '"seed": ' + "[" * depth + "]" * depth)
        assert re.search("nested too deeply|was changed", refusal_of(text, tmp_path))
    path = tmp_path / "model.json"
    model = dataclasses.replace(STUMPS, details={"x": nested(DEEPEST_DETAILS - 2)})
    model.save(path)
    assert StumpEnsemble.load(path).details == model.details


def test_keys_that_stand_twice_and_half_surrogates_are_refused(tmp_path):
    text = json.dumps(document_of(STUMPS, tmp_path))
    for key in ("seed", "n_features", "version", "checksum", "details"):
        twice = text.replace(f'"{key}": ', f'"{key}": {json.dumps(LONG)}, "{key}": ', 1)
        assert f"the key '{key}' stands twice" in refusal_of(twice, tmp_path)
    refusal_of(f'{{"{LONG}": 1, "{LONG}": 2}}', tmp_path)
    path = tmp_path / "model.json"
    path.write_bytes(text.replace('"no"', '"\ud800"').encode(errors="surrogatepass"))
    with pytest.raises(ModelFileError, match="it is not JSON text"):
        StumpEnsemble.load(path)


def test_an_edited_file_is_refused(tmp_path):
    document_of(STUMPS, tmp_path)
    content = (tmp_path / "original.json").read_text()
    for old, new in (
        *(('"seed": 7', new) for new in ('"seed": 8', '"seed": 7, "more": 1')),
        *(('"inf"', new) for new in ('"-inf"', "NaN", "Infinity", "1e999")),
        *(('"a"', '"z"'), ('"n_features": 3', '"n_features": 4'), ('"checksum"', '"check"')),
        *(('"checksum": "', '"checksum": "0'), ('"digest": "', '"digest": "0')),
    ):
        assert old in content
        said = refusal_of(content.replace(old, new, 1), tmp_path)
        assert "model.json was changed after it was written" in said


def test_a_truncated_file_is_refused(tmp_path):
    document_of(STUMPS, tmp_path)
    content = (tmp_path / "original.json").read_text().rstrip()
    for length in range(0, len(content), 11):
        said = refusal_of(content[:length], tmp_path)
        assert re.search("truncated|not a gpustump model", said)
    assert re.search(r"is damaged or truncated: .* line \d+", said)


FOREIGN = {
    "empty": b"",
    "text": b"once upon a time",
    "list": b"[1, 2]",
    "xgboost": b'{"learner": {"attributes": {}}, "version": [2, 0, 3]}',
    "pickle": pickle.dumps({"format": "gpustump model"}),
    "gzip": gzip.compress(b'{"format": "gpustump model"}'),
    "zeros": bytes(1000),
    "latin-1": '{"format": "é"}'.encode("latin-1"),
    "deep": b"[" * 100_000,
    "long number inside": b'{"format": "other", "n": ' + b"1" * 5000 + b"}",
    **{f"repeated {byte!r}": byte * 5_000_000 for byte in (b"[", b"{", b'"', b"9", b" ", b"\0")},
}


def test_a_foreign_file_is_refused_by_name_and_takes_little_memory(tmp_path):
    before = peak_bytes()
    for content in FOREIGN.values():
        (tmp_path / "model.json").write_bytes(content)
        with pytest.raises(ModelFileError, match=r"model\.json is not a gpustump model"):
            StumpEnsemble.load(tmp_path / "model.json")
    assert peak_bytes() - before < 200e6


FILES = {path.stem: path.read_bytes() for path in sorted(FOLDER.glob("*.json"))}
DOCUMENTS = [json.loads(content) for content in FILES.values()]


def other_bytes(draw: random.Random) -> bytes:
    return with_other_bytes(draw, draw.choice(list(FILES.values())))


def other_bytes_with_their_checksum(draw: random.Random) -> bytes:
    """The bytes are changed until they are still a JSON object."""
    while True:
        try:
            document = json.loads(other_bytes(draw))
        except (ValueError, RecursionError):
            continue
        if isinstance(document, dict) and "model" in document:
            return forged(document).encode()


def other_parts(draw: random.Random) -> bytes:
    """Other values and parts, under a checksum and a digest that fit them."""
    return forged(with_other_parts(draw, DOCUMENTS)).encode()


def other_parts_of_a_small_model(draw: random.Random) -> bytes:
    """The same, of a document in which every value is likely to be hit."""
    name = draw.choice(list(FILED))
    return forged(with_other_parts(draw, [SMALL[name]])).encode()


SMALL: dict[str, Any] = {}


@pytest.mark.parametrize(
    ("make", "usual"),
    [
        (other_bytes, 50),
        (other_bytes_with_their_checksum, 20),
        (other_parts, 60),
        (other_parts_of_a_small_model, 250),
    ],
)
def test_a_file_with_a_fault_is_refused_or_predicts(
    make: Callable[[random.Random], bytes], usual: int, tmp_path: Path
) -> None:
    SMALL.update((name, document_of(model, tmp_path)) for name, model in FILED.items())
    before = peak_bytes()
    n_loaded = 0
    for number in range(count(usual, 10_000)):
        content = make(random.Random(f"{make.__name__} {number}"))
        try:
            n_loaded += loads(content, tmp_path)
        except Exception as error:
            raise AssertionError(f"{make.__name__} {number}: {error!r}") from error
    assert n_loaded < count(usual, 10_000)
    assert peak_bytes() - before < 500e6


def loads(content: bytes, folder: Path) -> bool:
    """Whether a file is a model that works; if it is not, its refusal is in order."""
    path = folder / "model.json"
    path.write_bytes(content)
    try:
        model = StumpEnsemble.load(path)
    except ModelFileError as error:
        message = str(error)
    else:
        document = json.loads(content.decode(json.detect_encoding(content)))
        assert model.digest() == document["digest"]
        model.save(folder / "again.json")
        again = StumpEnsemble.load(folder / "again.json")
        assert again == model
        assert (again.details, again.missing_learnt) == (model.details, model.missing_learnt)
        answers(model)
        return True
    assert str(path) in message
    assert len(message) < 1000
    return False


def answers(model: StumpEnsemble) -> None:
    """Check everything that a model predicts for some rows."""
    assert repr(model).isprintable()
    if model.n_features > 1000:  # a number in the file, without a name for each
        return
    values = [np.nan, 0.0, 1.0, -1e308, np.inf]
    X = np.asarray([[value] * model.n_features for value in values])
    scores = model.decision_function(X)
    assert np.isfinite(scores).all()
    if model.is_regression:
        with np.errstate(over="ignore"):
            assert np.array_equal(model.predict(X), model.quantities_of(scores))
    else:
        assert set(model.predict(X).tolist()) <= set(model.classes)
        assert np.allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert np.array_equal(model.explain(X).sum(axis=-1), scores)
    stages = list(model.staged_decision_function(X))
    assert not stages or np.array_equal(stages[-1], scores)
    shares = model.feature_importances().sum()
    assert shares == 0.0 or np.isclose(shares, 1.0)
    for bag in model.bag_models:
        assert np.isfinite(bag.decision_function(X)).all()
    assert len(model.encoding.shown_names) == model.n_features
