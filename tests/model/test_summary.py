"""What printing a model shows: one short line, and in a notebook a small table."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from gpustump import AdaBoostClassifier, Member, Stump, StumpEnsemble

NASTY = "<script>'&\"</script>\n\u202e\ud800"


def model_of(n_stumps: int, n_features: int, **others) -> StumpEnsemble:
    """Feature j is used by every n_features-th stump, with the vote 1 / 2**j."""
    stumps = tuple(Stump(k % n_features, float(k), 1, 1, 0.25) for k in range(n_stumps))
    votes = tuple(0.5 ** (k % n_features) for k in range(n_stumps))
    members = (Member(stumps, votes),) * others.pop("n_members", 1)
    return StumpEnsemble(members, n_features, **others)


def cells(model: StumpEnsemble) -> list[list[list[str]]]:
    """The text in the tables of a model's HTML, which must be well-formed."""
    page = ElementTree.fromstring(model._repr_html_())
    tables = page.iter("table")
    return [[["".join(c.itertext()).strip() for c in row] for row in table] for table in tables]


def test_a_model_a_member_and_their_parts_print_as_one_short_line():
    model = model_of(200, 3)
    _, (table, *_) = model.members[0].tables
    assert repr(model) == str(model)
    assert repr(model) == (
        f"StumpEnsemble of 200 stumps on 3 features for classes -1, 1; digest {model.digest()[:12]}"
    )
    assert repr(model.members) == "(Member of 200 stumps,)"
    assert repr(model.additive) == "AdditiveModel of 200 terms, n_outputs=1"
    assert repr(table) == "StepTable of feature 0 with 68 steps"


@pytest.mark.parametrize("n_classes", [2, 3, 10, 11, 1000])
@pytest.mark.parametrize("text", ["class ", "x" * 10_000, NASTY])
def test_the_line_is_short_whatever_the_classes_are(n_classes, text):
    classes = tuple(f"{number} {text}" for number in range(n_classes))
    model = model_of(2, 3, n_members=1 if n_classes == 2 else n_classes, classes=classes)
    for shown in (repr(model), str(model)):
        assert len(shown) < 650
        assert len(shown.splitlines()) == 1
        assert shown.isprintable()
    assert len(model._repr_html_()) < 4000


def test_many_members_are_counted():
    model = model_of(2, 3, n_members=12, classes=tuple(range(12)))
    assert repr(model).startswith(
        "StumpEnsemble of 24 stumps on 3 features for classes 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... "
        "(12 in all); digest "
    )


def test_one_stump_and_one_feature_are_singular():
    assert repr(model_of(1, 1)).startswith("StumpEnsemble of 1 stump on 1 feature for classes ")


def test_a_model_without_a_digest_can_be_printed():
    model = StumpEnsemble((Member((), ()),), 2, classes=(np.int64(0), math.nan))
    with pytest.raises((TypeError, ValueError)):
        model.digest()
    assert repr(model) == "StumpEnsemble of 0 stumps on 2 features for classes 0, nan; digest none"
    assert "none" in model._repr_html_()


def test_the_table_tells_the_size_the_digest_and_the_most_important_features():
    model = model_of(30, 3, feature_names=("age", "height", "weight"), n_members=3, classes="abc")
    assert cells(model) == [
        [
            ["rounds", "30"],
            ["stumps", "90"],
            ["classes", "a, b, c"],
            ["features", "3 used of 3"],
            ["digest", model.digest()],
        ],
        [
            ["feature", "share of the votes"],
            ["age", "57.1%"],
            ["height", "28.6%"],
            ["weight", "14.3%"],
        ],
    ]
    widths = re.findall(r"width:([\d.]+)em", model._repr_html_())
    assert [float(width) for width in widths] == [6.0, 3.0, 1.5]


def test_the_table_names_ten_features_and_counts_the_others():
    _, features = cells(model_of(25, 25))
    assert [name for name, _ in features[1:]] == [*(f"feature {j}" for j in range(10)), "15 more"]
    assert len(cells(model_of(10, 25))[1]) == 11


def test_a_model_of_constants_has_no_table_of_features():
    constant = Member((Stump(0, math.inf, 1, 1, 0.25),), (1.0,))
    for member in (constant, Member((), ())):
        (table,) = cells(StumpEnsemble((member,), 4))
        assert ["features", "0 used of 4"] in table


def test_text_of_the_user_is_shown_and_never_read_as_html():
    model = model_of(3, 3, feature_names=(NASTY, "a&b", "<b>"), classes=("<i>", NASTY))
    page = model._repr_html_()
    assert "<script" not in page
    assert "<i>" not in page
    page.encode()
    size, features = cells(model)
    assert ["classes", "<i>, <script>'&\"</script>\\n\\u202e\\ud800"] in size
    assert [name for name, _ in features[1:]] == [
        "<script>'&\"</script>\\n\\u202e\\ud800",
        "a&b",
        "<b>",
    ]


def test_the_table_needs_nothing_from_elsewhere_and_fits_light_and_dark_pages():
    """Text has the colour of the page: only bars have a colour, of medium lightness."""
    page = model_of(30, 12)._repr_html_()
    assert not re.search(r"script|http|src=|<style|class=|[^-]color:", page)
    (colour,) = set(re.findall(r"#[0-9a-f]{6}", page))
    red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    assert 90 < 0.2126 * red + 0.7152 * green + 0.0722 * blue < 165


def test_a_fitted_classifier_shows_its_model_in_a_line():
    X = np.arange(20.0).reshape(10, 2)
    classifier = AdaBoostClassifier(n_estimators=3).fit(X, X[:, 0] > 7)
    assert len(repr(classifier.model_)) < 150
    assert "False, True" in repr(classifier.model_)
