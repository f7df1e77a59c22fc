"""`gpustump train --report` and `inspect --plot`: pages and pictures, whole or not there."""

from __future__ import annotations

import base64
import importlib.util
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from command import command_fixture, run_process  # noqa: F401
from sklearn.base import clone
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_wine
from sklearn.metrics import average_precision_score, confusion_matrix, log_loss, roc_auc_score
from sklearn.model_selection import train_test_split

from gpustump import AdaBoostClassifier, LogitBoostClassifier, StumpEnsemble
from gpustump.arrays.devices import how_to_install

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

from drawn import bars, legend

from gpustump.cli.write import report as html_report

PNG = b"\x89PNG\r\n\x1a\n"


HELD_OUT = [
    "Confusion matrix of the held-out rows",
    "ROC curve of the held-out rows",
    "Precision and recall of the held-out rows",
    "Reliability of the probabilities of the held-out rows",
]


class Page(HTMLParser):
    """What a page of HTML holds: pictures, links, scripts, text; and whether tags match."""

    VOID = frozenset({"meta", "link", "img", "br", "hr", "input"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.images: list[dict[str, str | None]] = []
        self.targets: list[str] = []
        self.ids: set[str] = set()
        self.tags: list[str] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.tags.append(tag)
        self.ids |= {found["id"]} if "id" in found else set()
        self.targets += [found[name] for name in ("src", "href") if name in found]
        if tag == "img":
            self.images.append(found)
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.fixture
def drawn_axes(monkeypatch):
    """The axes of all figures, in order; they are not rendered, which would take most time."""
    seen: list[list] = []

    def keep(figure, kind, dpi):
        seen.append(figure.axes)
        return PNG

    monkeypatch.setattr("gpustump.cli.write.report.as_bytes", keep)
    monkeypatch.setattr("gpustump.cli.write.pictures.as_bytes", keep)
    return seen


def page(path: str = "report.html") -> Page:
    return Page(Path(path).read_text())


def test_the_page_holds_the_report_and_its_pictures_and_needs_no_network(command):
    outcome = command.succeeds("train", "--rounds", 60, "--report", "report.html")
    found = page()
    for line in outcome.out.splitlines():
        if not line.startswith(("written", " ")):
            name, value = re.split(r"  +", line, maxsplit=1)
            assert name in found.text
            assert " ".join(value.split()) in found.text
    assert [image["alt"] for image in found.images] == [
        *HELD_OUT,
        "Errors by round",
        "What the features add to the score",
        "Shares of the features in the contributions and in the votes",
        "Margins of the rows trained on",
    ]
    for image in found.images:
        kind, _, data = image["src"].partition(",")
        assert kind == "data:image/png;base64"
        assert base64.b64decode(data, validate=True).startswith(PNG)
    assert "script" not in found.tags
    inside = {target[1:] for target in found.targets if target.startswith("#")}
    assert inside <= found.ids
    assert all(target.startswith(("#", "data:")) for target in found.targets)
    assert "http" not in re.sub(r"base64,[^\"]*", "", Path("report.html").read_text())
    assert "report.html, " in outcome.out


def test_the_pictures_of_quality_are_of_the_rows_held_out(command, drawn_axes):
    X, y = load_wine(return_X_y=True)
    labels = np.asarray(["red", "white", "pink"])[y]
    weights = np.random.default_rng(0).integers(0, 3, size=len(y)).astype(float)
    np.savez("wine.npz", X=X[:, :2], y=labels, w=weights)
    arguments = ("train", "wine.npz", "--target", "y", "--rounds", 5, "--report", "wine.html")
    command.succeeds(*arguments, "--weight", "w", "--test-size", 0.4, "--quiet")
    _, rows = train_test_split(np.arange(len(y)), test_size=0.4, random_state=0, stratify=labels)
    model = StumpEnsemble.load("model.json")
    predicted = model.predict(X[rows, :2])
    matrix = confusion_matrix(labels[rows], predicted, sample_weight=weights[rows])
    confusion, roc, recall = (axes[0] for axes in drawn_axes[:3])
    np.testing.assert_allclose(confusion.images[0].get_array(), matrix)
    probabilities = model.predict_proba(X[rows, :2])
    for k, label in enumerate(model.classes):
        given = (labels[rows] == label, probabilities[:, k])
        for ax, figure in ((roc, roc_auc_score), (recall, average_precision_score)):
            (text,) = [t for t in legend(ax) if t.startswith(f"{label} ")]
            assert text.endswith(f"= {figure(*given, sample_weight=weights[rows]):.2f})")
    found = page("wine.html")
    assert "for which the rows would need equal weights, is left out" in found.text
    assert "quality" in page("wine.html").ids


def test_a_column_of_text_is_one_panel_with_a_bar_for_each_value(command, drawn_axes):
    polars = pytest.importorskip("polars")
    random = np.random.default_rng(0)
    colours = random.choice(["red", "green", "blue"], size=120)
    x = random.normal(size=120)
    y = (colours == "red") + x + random.normal(scale=0.3, size=120) > 0.5
    frame = polars.DataFrame({"x": x, "paint colour": colours, "y": y.astype(int)})
    frame.write_csv("t.csv")
    command.succeeds("train", "t.csv", "--target", "y", "--report", "page.html", "--quiet")
    shapes = drawn_axes[5]
    assert [ax.get_xlabel() for ax in shapes if ax.get_xlabel()] == ["x", "paint colour"]
    command.succeeds("inspect", "model.json", "--data", "t.csv", "--plot", "page.png")
    command.succeeds("explain", "model.json", "t.csv", "-o", "parts.csv")
    parts = polars.read_csv("parts.csv")
    sums = sum(parts[f"paint colour={value}"] for value in ("blue", "green", "red")).to_numpy()
    for axes in (shapes, drawn_axes[-1]):
        (panel,) = [ax for ax in axes if bars(ax, "bars")]
        strip = next(ax for ax in axes if ax.get_xlabel() == "paint colour")
        names = [label.get_text() for label in strip.get_xticklabels()]
        for name, bar in zip(names, bars(panel, "bars"), strict=True):
            assert set(sums[colours == name]) == {bar.get_height()}
    importances = drawn_axes[-1][-2]
    assert {tick.get_text() for tick in importances.get_yticklabels()} == {"x", "paint colour"}


def test_of_many_classes_and_rows_some_are_drawn_and_the_page_says_so(
    command, drawn_axes, monkeypatch
):
    monkeypatch.setattr("gpustump.cli.write.report.MOST_ROWS", 100)
    random = np.random.default_rng(1)
    y = np.repeat([f"kind {k}" for k in range(6)], [20, 20, 60, 20, 50, 40])
    X = random.normal(size=(len(y), 2)) + np.arange(len(y))[:, np.newaxis] / 30
    np.savez("kinds.npz", X=X, y=y)
    command.succeeds(
        *("train", "kinds.npz", "--target", "y", "--rounds", 4, "--report", "page.html", "--quiet")
    )
    found = page("page.html")
    assert "the most frequent have pictures of their own: kind 2, kind 4, kind 5." in found.text
    assert "show at most 100 of the rows trained on, and of those held out" in found.text
    titles = [image["alt"] for image in found.images]
    assert titles[:5] == [*HELD_OUT, "Held-out error of the whole model by round"]
    drawn = {title.partition(": ")[2] for title in titles} - {""}
    assert drawn == {f"kind {k} against the rest" for k in (2, 4, 5)}
    rules = re.findall(r"<pre>(kind \d) against the rest", Path("page.html").read_text())
    assert rules == ["kind 2", "kind 4", "kind 5"]


def test_what_is_known_is_printed_though_the_page_cannot_be_written(
    command, drawn_axes, monkeypatch
):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("gpustump.cli.write.files.whole_file", full)
    outcome = command("train", "--rounds", 3, "--report", "report.html")
    assert outcome.code == 2
    assert "held-out accuracy" in outcome.out
    assert outcome.row("written").startswith("model.json, ")
    assert outcome.err.startswith("gpustump: error: --report report.html: No space left on device")
    assert outcome.err.count("\n") == 1


def test_a_users_matplotlib_settings_do_not_reach_the_pictures(command):
    command.succeeds("train", "--rounds", 3, "--quiet")
    command.succeeds("inspect", "model.json", "--plot", "plain.png")
    text = "text.usetex: True\naxes.facecolor: black\nfont.size: 30\n"
    (command.folder / "matplotlibrc").write_text(text)
    outcome = run_process(
        *("inspect", "model.json", "--plot", "odd.png"),
        folder=command.folder,
        env={**os.environ, "MPLBACKEND": "nonsense", "MPLCONFIGDIR": "/proc/1/none"},
    )
    assert (outcome.code, outcome.err) == (0, "")
    files = command.files()
    assert files["odd.png"] == files["plain.png"]


@pytest.mark.filterwarnings("ignore:.* made no round")
def test_weights_missing_values_and_a_model_without_stumps_are_drawn_too(command):
    random = np.random.default_rng(0)
    X, y = random.normal(size=(80, 3)), np.arange(80) % 2
    X[random.random(X.shape) < 0.2] = np.nan
    weight = random.integers(0, 3, size=80)
    np.savez("some.npz", X=X, y=y, w=weight)
    arguments = ("--target", "y", "--report", "page.html", "--quiet", "--force")
    command.succeeds("train", "some.npz", "--weight", "w", "--rounds", 12, *arguments)
    assert len(page("page.html").images) == 7
    np.savez("none.npz", X=np.zeros((80, 3)), y=y)
    command.succeeds("train", "none.npz", *arguments)
    found = page("page.html")
    assert "no stump is better than chance" in found.text
    assert found.images == []
    assert "Margins" not in found.text


REFUSED = [
    ("--report report.txt", "--report: 'report.txt' must end in .html or .htm"),
    ("--report no/report.html", "does not exist"),
    ("--report both.html -o both.html --force", "--report and --output both name both.html"),
    ("--report mine.html", "mine.html exists and is not a report of gpustump"),
]
PLOTS_REFUSED = [
    ("--plot page.gif", "--plot: 'page.gif' must end in .png, .svg or .pdf"),
    ("--plot no/page.png", "does not exist"),
    ("--data none.csv", "No such file"),
    ("--plot table.png", "table.png exists and is not a png picture"),
]


def test_a_page_or_a_picture_that_cannot_be_made_is_refused(command, monkeypatch):
    Path("mine.html").write_text("<html>my own page</html>")
    Path("table.png").write_text("a,b\n1,2\n")
    for options, message in REFUSED:
        assert message in command.refuses("train", *options.split())
    command.succeeds("train", "--rounds", 3, "--quiet")
    for options, message in PLOTS_REFUSED:
        assert message in command.refuses("inspect", "model.json", *options.split())
    whole = importlib.util.find_spec
    for library in ("matplotlib", "jinja2"):
        without = lambda name, *a, left=library: None if name == left else whole(name, *a)  # noqa: E731
        monkeypatch.setattr(importlib.util, "find_spec", without)
        said = command.refuses("train", "--report", "report.html")
        assert how_to_install("plots") in said
        assert library in said.lower()


def test_inspect_draws_a_model_in_the_format_of_the_name_and_without_the_date(command):
    command.succeeds("train", "--rounds", 5, "--quiet")
    plain = command.succeeds("inspect", "model.json")
    for ending, start, date in (
        ("png", PNG, b"date:"),
        ("svg", b"<svg", b"<dc:date>"),
        ("pdf", b"%PDF", b"CreationDate"),
    ):
        drawn = command.succeeds("inspect", "model.json", "--plot", f"page.{ending}")
        assert drawn.out == plain.out
        content = Path(f"page.{ending}").read_bytes()
        assert content.startswith((start, b"<?xml"))
        assert start in content
        assert date not in content


def ada(**how) -> AdaBoostClassifier:
    return AdaBoostClassifier(n_estimators=6, device="cpu", **how)


def logit(**how) -> LogitBoostClassifier:
    return LogitBoostClassifier(n_estimators=6, device="cpu", **how)


LOSS = ["shows the <b>log-loss</b> of the held-out rows"]
KINDS = {
    "--votes discrete": (
        2,
        ada(),
        ["the <b>edge</b> g", "votes that are right minus"],
        ["1 &minus; Z"],
    ),
    "--votes real": (
        *(2, ada(votes="real")),
        ["never exceeds &prod;", "1 &minus; Z: the share"],
        ["<b>edge</b>", "half the"],
    ),
    "--loss logistic": (2, logit(), LOSS, ["never exceeds"]),
    "--votes real --multi-class shared": (
        *(3, ada(votes="real", multi_class="shared")),
        ["never exceeds half the number of classes times &prod;"],
        ["rest"],
    ),
    "--votes discrete --multi-class shared": (
        *(3, ada(multi_class="shared"), ["larger vote", "for each of the 3 classes."], ["rest"]),
    ),
    "--loss logistic --multi-class shared": (
        *(3, logit(), [*LOSS, "exp(2&nbsp;score), divided by the sum"]),
        ["&prod;", "<b>edge</b>", "never exceeds"],
    ),
    "--votes real --multi-class one-vs-rest": (
        *(3, ada(votes="real"), ["3 classes against the rest"], ["exp(2"]),
    ),
    "--loss logistic --multi-class one-vs-rest": (
        *(3, logit(multi_class="one_vs_rest"), LOSS, ["never exceeds"]),
    ),
}
"""Options; the number of classes, the estimator, and what its page says and does not say."""


@pytest.fixture
def drawn(command, monkeypatch):
    """Makes a page of wine: its text, and the axes of each figure by the title."""
    figures: dict[str, list] = {}

    def keep(figure, title: str) -> html_report.Picture:
        assert title not in figures
        figures[title] = figure.axes
        return html_report.Picture(title, "")

    monkeypatch.setattr(html_report, "_picture", keep)

    def page(n_classes: int, *options: object) -> tuple[str, dict[str, list]]:
        X, y = load_wine(return_X_y=True)
        figures.clear()
        np.savez("wine.npz", X=X[:, :5], y=np.minimum(y, n_classes - 1))
        asked = ("train", "wine.npz", "--target", "y", "--rounds", 6, "--quiet", *options)
        command.succeeds(*asked, "--report", "page.html")
        return " ".join(Path("page.html").read_text().split()), figures

    return page


@pytest.mark.parametrize("options", KINDS)
def test_every_kind_of_votes_has_its_page(drawn, options):
    n_classes, clf, said, unsaid = KINDS[options]
    text, figures = drawn(n_classes, *options.split(), "--test-size", 0.4)
    is_logistic, is_shared = "logistic" in options, "shared" in options or n_classes == 2
    runs = [""] if is_shared else [f": {label} against the rest" for label in range(3)]
    losses = "Errors and log-loss by round" if is_logistic else "Errors by round"
    whole = "Held-out error of the whole model by round"
    for start, wanted in (("Errors", losses), ("Margins", "Margins of the rows trained on")):
        titles = [title for title in figures if title.startswith(start)]
        assert titles == [wanted + ending for ending in runs]
    assert (whole in figures) == (not is_shared)
    assert ("LogitBoost" in text) == is_logistic
    text = text.replace("one class against the rest", "")  # in the summary
    about = text.partition('id="quality"')[0] + text.partition('id="errors"')[2]
    assert [part for part in said if part not in about] == []
    assert [part for part in unsaid if part in about.partition("<footer>")[0]] == []
    arrays = np.load("wine.npz")
    X, y = arrays["X"], arrays["y"]
    rows, held_out = train_test_split(np.arange(len(y)), test_size=0.4, random_state=0, stratify=y)
    rows, held_out = np.sort(rows), np.sort(held_out)
    clf = clone(clf).fit(X[rows], y[rows])
    (ax, *_) = figures["Reliability of the probabilities of the held-out rows"]
    probabilities = clf.predict_proba(X[held_out])
    lines = {line.get_label(): line for line in ax.get_lines()}
    for k in [1] if n_classes == 2 else [0, 1, 2]:
        shares, means = calibration_curve(y[held_out] == k, probabilities[:, k], n_bins=10)
        np.testing.assert_allclose(lines[str(k)].get_xydata(), np.column_stack([means, shares]))
    if is_logistic:
        (ax, *_) = figures.get(whole) or figures[losses]
        found = [log_loss(y[held_out], p) for p in clf.staged_predict_proba(X[held_out])]
        best = int(np.argmin(found))
        wanted = f"last {found[-1]:.3g}, lowest {found[best]:.3g} in round {best + 1}"
        assert legend(ax)[-1] == f"held-out log-loss: {wanted}"


def test_without_held_out_rows_the_worth_of_each_split_stands_below_the_errors(drawn):
    text, figures = drawn(3, "--loss", "logistic", "--test-size", 0)
    assert figures["Errors by round"][-1].get_ylabel() == "score of\nthe split"
    assert "what the question of each round is <b>worth</b>" in text
    assert "No held-out rows are drawn" in text


def test_the_page_of_a_bagged_model_says_what_bands_are_and_bounds_nothing(drawn):
    for share in (0.4, 0):
        text, figures = drawn(2, "--bags", 3, "--test-size", share)
        assert "the average of 3 such models, its <b>bags</b>" in text
        assert "reach one standard deviation over the 3 bags to both sides" in text
        assert "The dotted line is a bound" not in text
        panel = figures["What the features add to the score"][0]
        assert any(band.get_gid() == "band" for band in panel.collections)
        assert ("The rounds of the 3 bags are taken in turns." in text) == (share > 0)
        assert ("Errors by round" in figures) == ('href="#errors"' in text) == (share > 0)
