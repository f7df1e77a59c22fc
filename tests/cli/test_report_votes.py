"""The page of `--report` for every kind of votes: its pictures, and what it says of them."""

from __future__ import annotations

import functools
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_wine
from sklearn.metrics import log_loss

from gpustump import AdaBoostClassifier, LogitBoostClassifier
from gpustump.cli.columns.targets import Offsets
from gpustump.cli.columns.training import Part
from gpustump.model.encoding import plain_encoding

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from drawn import legend

from gpustump.cli.write import report as html_report

PNG = b"\x89PNG\r\n\x1a\n"
HELD_OUT = np.arange(178) % 3 == 0


def adaboost(**how):
    return AdaBoostClassifier(n_estimators=6, device="cpu", **how)


def logitboost(**how):
    return LogitBoostClassifier(n_estimators=6, device="cpu", **how)


KINDS = {
    "discrete": (2, adaboost()),
    "real": (2, adaboost(votes="real")),
    "logistic": (2, logitboost()),
    "real shared": (3, adaboost(votes="real", multi_class="shared")),
    "discrete shared": (3, adaboost(multi_class="shared")),
    "softmax": (3, logitboost()),
    "real against the rest": (3, adaboost(votes="real")),
    "logistic against the rest": (3, logitboost(multi_class="one_vs_rest")),
}
SHARED = ("real shared", "discrete shared", "softmax")
LOGISTIC = ("logistic", "softmax", "logistic against the rest")


class Drawn:
    """A page and the figures in it, which are not rendered."""

    def __init__(self, name: str, has_held_out: bool) -> None:
        with pytest.MonkeyPatch.context() as monkeypatch:
            self._draw(name, monkeypatch, has_held_out)

    def _draw(self, name: str, monkeypatch: pytest.MonkeyPatch, has_held_out: bool) -> None:
        n_classes, clf = KINDS[name]
        X, y = load_wine(return_X_y=True)
        X, y = X[:, :5], np.minimum(y, n_classes - 1)
        self.X, self.y = X[HELD_OUT], y[HELD_OUT]
        rows = np.flatnonzero(~HELD_OUT) if has_held_out else np.arange(len(y))
        self.clf = clone(clf).fit(X[rows], y[rows])
        self.figures: dict[str, list] = {}
        monkeypatch.setattr(html_report, "_picture", self._keep)
        n_members = len(self.clf.model_.members)
        # The rules have tests of their own.
        rules = [[f"rules of member {k}"] for k in range(n_members)]
        monkeypatch.setattr(html_report, "rules", lambda loaded, limit: rules)
        held_out = Part(X, np.flatnonzero(HELD_OUT), self.y, None)
        training = SimpleNamespace(
            estimator=self.clf,
            model=replace(self.clf.model_, details={"training": {"rounds": 6}}),
            data=SimpleNamespace(
                target="kind",
                source="wine",
                encoding=plain_encoding(5, None),
                y=y,
                X=X,
                offsets=Offsets(),
            ),
            trained=Part(X, rows, y[rows], None),
            held_out=held_out if has_held_out else None,
            method=SimpleNamespace(
                votes=getattr(self.clf, "votes", "newton"), is_of_quantity=False
            ),
        )
        page = html_report.page(training, [("rows", "178")]).decode()
        self.text = " ".join(page.split())

    def _keep(self, figure, title: str) -> html_report.Picture:
        assert title not in self.figures
        self.figures[title] = figure.axes
        return html_report.Picture(title, "")


@pytest.fixture(scope="module")
def drawn():
    """A page of every name, drawn once."""
    return functools.cache(lambda name, has_held_out=True: Drawn(name, has_held_out))


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_votes_has_its_page(drawn, name):
    found = drawn(name)
    rest = [] if name in SHARED or len(found.clf.classes_) == 2 else [0, 1, 2]
    titles = list(found.figures)
    losses = "Errors and log-loss by round" if name in LOGISTIC else "Errors by round"
    runs = [f": {label} against the rest" for label in rest] or [""]
    assert [title for title in titles if title.startswith("Errors")] == [
        losses + ending for ending in runs
    ]
    margins = "Margins of the rows trained on"
    assert [title for title in titles if title.startswith(margins)] == [
        margins + ending for ending in runs
    ]
    assert ("Held-out error of the whole model by round" in titles) == bool(rest)
    assert ("LogitBoost" in found.text) == (name in LOGISTIC)
    assert found.text.count("rules of member") == len(runs)


@pytest.mark.parametrize("name", KINDS)
def test_reliability_is_that_of_the_held_out_probabilities(drawn, name):
    found = drawn(name)
    ax = found.figures["Reliability of the probabilities of the held-out rows"][0]
    probabilities = found.clf.predict_proba(found.X)
    classes = [1] if len(found.clf.classes_) == 2 else [0, 1, 2]
    lines = {line.get_label(): line for line in ax.get_lines()}
    for k in classes:
        shares, means = calibration_curve(found.y == k, probabilities[:, k], n_bins=10)
        np.testing.assert_allclose(lines[str(k)].get_xydata(), np.column_stack([means, shares]))


@pytest.mark.parametrize("name", LOGISTIC)
def test_the_held_out_log_loss_by_round_is_in_the_page_of_logitboost(drawn, name):
    found = drawn(name)
    whole = "Held-out error of the whole model by round"
    ax = found.figures.get(whole, found.figures.get("Errors and log-loss by round"))[0]
    losses = [log_loss(found.y, p) for p in found.clf.staged_predict_proba(found.X)]
    lowest = int(np.argmin(losses))
    text = f"last {losses[-1]:.3g}, lowest {losses[lowest]:.3g} in round {lowest + 1}"
    assert legend(ax)[-1] == f"held-out log-loss: {text}"
    assert "shows the <b>log-loss</b> of the held-out rows" in found.text
    assert "never exceeds" not in found.text


def test_the_page_says_what_holds_for_its_votes_only(drawn):
    for name, said, unsaid in (
        ("discrete", ["the <b>edge</b> g", "votes that are right minus"], ["1 &minus; Z"]),
        ("real", ["never exceeds &prod;", "1 &minus; Z: the share"], ["<b>edge</b>", "half the"]),
        ("real shared", ["never exceeds half the number of classes times &prod;"], ["rest"]),
        ("discrete shared", ["larger vote", "for each of the 3 classes."], ["rest"]),
        ("softmax", ["exp(2&nbsp;score), divided by the sum"], ["&prod;", "<b>edge</b>"]),
        ("real against the rest", ["3 classes against the rest"], ["exp(2"]),
    ):
        text = drawn(name).text
        text = text.partition('id="quality"')[0] + text.partition('id="errors"')[2]
        for part in said:
            assert part in text, (name, part)
        for part in unsaid:
            assert part not in text.partition("<footer>")[0], (name, part)


def test_without_held_out_rows_the_worth_of_each_split_stands_below_the_errors(drawn):
    found = drawn("softmax", has_held_out=False)
    strip = found.figures["Errors by round"][-1]
    assert strip.get_ylabel() == "score of\nthe split"
    assert "what the question of each round is <b>worth</b>" in found.text
    assert "No held-out rows are drawn" in found.text


def test_the_page_of_a_bagged_model_says_what_bands_are_and_bounds_nothing(drawn, monkeypatch):
    monkeypatch.setitem(KINDS, "bagged", (2, adaboost(n_bags=3, random_state=0)))
    found, without = drawn("bagged"), drawn("bagged", has_held_out=False)
    for one in (found, without):
        assert "the average of 3 such models, its <b>bags</b>" in one.text
        assert "reach one standard deviation over the 3 bags to both sides" in one.text
        assert "The dotted line is a bound" not in one.text
        panel = one.figures["What the features add to the score"][0]
        assert any(band.get_gid() == "band" for band in panel.collections)
    assert "The rounds of the 3 bags are taken in turns." in found.text
    assert "Errors by round" in found.figures
    assert "Errors by round" not in without.figures
    assert 'href="#errors"' not in without.text
