"""What printing a model shows: one short line, and in a notebook a small table."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree

from forged_files import FILED

from gpustump import Member, Stump, StumpEnsemble

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


def test_a_model_a_member_and_a_table_print_as_one_line():
    model = model_of(200, 3)
    assert repr(model) == (
        f"StumpEnsemble of 200 stumps on 3 features for classes -1, 1; digest {model.digest()[:12]}"
    )
    assert repr(model.members) == "(Member of 200 stumps,)"
    assert repr(model.output_tables(0)[1][0]) == "StepTable of feature 0 with 68 steps"
    assert repr(model_of(1, 1)).startswith("StumpEnsemble of 1 stump on 1 feature for classes ")
    assert repr(FILED["intervals"]).startswith("StumpEnsemble of 2+0+1 stumps on 2 features for")
    assert repr(FILED["quantity"]).startswith("StumpEnsemble of 1 stump on 2 features for a quan")
    assert repr(model_of(2, 3, n_members=12, classes=tuple(range(12)))).startswith(
        "StumpEnsemble of 24 stumps on 3 features for classes 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... "
        "(12 in all); digest "
    )
    pairs = FILED["pairs"]
    assert " stumps and 1 pair on 3 features" in repr(pairs)
    assert ["pairs", "x0 x x1"] in cells(pairs)[0]
    assert "pair" not in repr(pairs.truncated(1))


def test_the_table_tells_the_size_the_digest_and_the_most_important_features():
    model = model_of(30, 3, feature_names=("age", "height", "weight"), n_members=3, classes="abc")
    size, features = cells(model)
    assert size == [
        ["rounds", "30"],
        ["stumps", "90"],
        ["classes", "a, b, c"],
        ["features", "3 used of 3"],
        ["digest", model.digest()],
    ]
    assert features == [
        ["feature", "share of the votes"],
        ["age", "57.1%"],
        ["height", "28.6%"],
        ["weight", "14.3%"],
    ]
    assert re.search(r"stumps.*4, shared by all classes", FILED["shared"]._repr_html_())
    _, features = cells(model_of(25, 25))
    assert [name for name, _ in features[1:]] == [*(f"feature {j}" for j in range(10)), "15 more"]
    assert len(cells(model_of(10, 25))[1]) == 11
    (table,) = cells(StumpEnsemble((Member((Stump(0, math.inf, 1, 1, 0.25),), (1.0,)),), 4))
    assert ["features", "0 used of 4"] in table


def test_text_of_the_user_is_shown_and_never_read_as_html():
    model = model_of(3, 3, feature_names=(NASTY, "a&b", "<b>"), classes=("<i>", NASTY))
    page = model._repr_html_()
    assert "<script" not in page
    assert "<i>" not in page
    page.encode()
    size, features = cells(model)
    assert ["classes", "<i>, <script>'&\"</script>\\n\\u202e\\ud800"] in size
    names = ["<script>'&\"</script>\\n\\u202e\\ud800", "a&b", "<b>"]
    assert [name for name, _ in features[1:]] == names
    assert not re.search(r"script>|http|src=|<style|[^-]color:", model_of(30, 12)._repr_html_())
