"""Pages in a real browser: their scores are the model's, and what they offer works."""

from __future__ import annotations

import csv
import warnings

import numpy as np
import polars
import pytest
from golden_models import COMMANDS, TABLE, loaded, recorded
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.metrics import accuracy_score, log_loss, mean_absolute_error, root_mean_squared_error

from gpustump import (
    AdaBoostClassifier,
    GlassBoxClassifier,
    LogitBoostClassifier,
    StumpBoostingRegressor,
    StumpEnsemble,
)
from gpustump.cli.columns.model import read_features
from gpustump.plots import page

pytestmark = pytest.mark.filterwarnings("ignore:values are missing:UserWarning")

SCORES = """
const found = [];
for (let k = 0; k < gpustump.rows.n; k++) found.push(Array.from(gpustump.scores(gpustump.row(k))));
return [Array.from(numbers(gpustump.rows, "numbers")), found];
"""
EVERY_TAB = "for (const own of document.querySelectorAll('[role=tab]')) own.click()"
SHOWN = "return JSON.parse(document.querySelector('.score').dataset.scores)"


@pytest.fixture(scope="module")
def cancer():
    """A glass box with pairs and bags, and rows that it was not trained on."""
    data = load_breast_cancer()
    X = polars.DataFrame(data.data[:, :8], schema=data.feature_names[:8].tolist())
    y = data.target_names[data.target]
    glass = GlassBoxClassifier(random_state=0, n_bags=3, n_estimators=60, device="cpu")
    return glass.fit(X[:400], y[:400]), X[400:], y[400:]


def test_scores_of_all_recorded_models_are_those_of_predict_to_the_last_bit(browser):
    random, n_rows = np.random.default_rng(0), 0
    for name in recorded():
        model, X = loaded(name)
        if name in COMMANDS:
            X = X[random.integers(0, len(X), 120)]
        else:
            X = np.vstack([X, np.stack([random.choice(own, 100) for own in X.T], 1)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            browser.open(page(model, X))
            numbers, found = browser.run(SCORES)
            wanted = model.decision_function(X[numbers]).reshape(len(numbers), -1)
        assert np.array_equal(np.asarray(found, dtype=np.float64), wanted), name
        assert len(numbers) == len(X)
        n_rows += len(X)
        browser.run(EVERY_TAB)
        browser.check()
    assert n_rows > 4000


def test_exposures_and_initial_scores_count_as_in_predict(browser, tmp_path):
    random = np.random.default_rng(0)
    X, years = random.integers(0, 9, (300, 3)), random.uniform(0.1, 2.0, 300)
    counts, path = random.poisson(years * np.exp(X[:, 0] / 4)), tmp_path / "page.html"
    reg = StumpBoostingRegressor(loss="poisson", device="cpu").fit(X, counts, exposure=years)
    known = {"exposure": years, "init_score": random.normal(size=300)}
    reg.to_html(path, X, counts, **known)
    browser.driver.get(path.as_uri())
    predicted = reg.predict(X, **known)
    base = years * np.exp(known["init_score"])
    base *= counts.sum() / base.sum()
    measures = browser.run("return gpustump.measures(gpustump.rowScores())")
    wanted = [root_mean_squared_error(counts, own) for own in (predicted, base)]
    assert [measures[0]["value"], measures[0]["base"]] == pytest.approx(wanted)
    browser.tab("What if")
    browser.element("//button[@aria-label='Next row']").click()
    assert np.exp(browser.run(SHOWN)) == pytest.approx(predicted[1:2])
    browser.check()


def test_measures_are_those_of_scikit_learn(browser, cancer):
    glass, X, y = cancer
    browser.open(page(glass, X, y))
    measures = browser.run("return gpustump.measures(gpustump.rowScores())")
    wanted = [accuracy_score(y, glass.predict(X)), log_loss(y, glass.predict_proba(X))]
    assert [own["value"] for own in measures] == pytest.approx(wanted, rel=1e-12)
    shares = np.unique(y, return_counts=True)[1] / len(y)
    bases = [own["base"] for own in measures]
    assert bases == pytest.approx([shares.max(), -(shares * np.log(shares)).sum()])
    assert f"{100 * wanted[0]:.1f} %" in browser.element("//dl[@class='figures']").text
    cells = browser.driver.find_elements("css selector", ".confusion td.right, .confusion td.wrong")
    assert sum(int(own.text) for own in cells) == len(y)

    X, y = load_diabetes(return_X_y=True)
    reg = StumpBoostingRegressor(n_estimators=40, device="cpu").fit(X[:300], y[:300])
    browser.open(page(reg, X[300:], y[300:]))
    measures = browser.run("return gpustump.measures(gpustump.rowScores())")
    predicted = reg.predict(X[300:])
    wanted = [own(y[300:], predicted) for own in (root_mean_squared_error, mean_absolute_error)]
    assert [own["value"] for own in measures] == pytest.approx(wanted, rel=1e-12)


def test_pointing_at_a_shape_and_arrow_keys_tell_the_step(browser, cancer):
    glass, X, y = cancer
    browser.open(page(glass, X, y))
    browser.element("//input[@type='search']").send_keys("mean texture")
    browser.element("//ol[@class='terms']//button").click()  # it opens the shape
    chart = browser.element("//div[@class='chart']")
    chart.send_keys("\ue014")  # the right arrow
    table = glass.shape_function("mean texture")
    n_rows = int((X["mean texture"].to_numpy() <= table.thresholds[0]).sum())
    said = browser.element("//output[@class='readout']").text
    assert said.startswith(f"x ≤ {table.thresholds[0]:.4g}: ".replace(".0:", ":"))
    assert f"± {table.deviations[0]:.4g}"[:7] in said
    assert f"{n_rows} row" in said
    from selenium.webdriver import ActionChains

    ActionChains(browser.driver).move_to_element(chart).perform()
    assert browser.element("//output[@class='readout']").text not in ("", said)
    browser.check()


def test_typing_values_gives_the_scores_of_predict_and_flips_flip(browser, cancer):
    glass, X, y = cancer
    browser.open(page(glass, X, y), width=390)
    assert browser.run("return document.documentElement.scrollWidth") <= 390
    browser.tab("What if")
    row = X.row(0)
    assert browser.run(SHOWN) == [float(glass.decision_function(X[:1])[0])]
    for column, text in ((1, "17.25"), (3, "1e9"), (3, "-3"), (7, ""), (7, "0.0478")):
        field = browser.element(f"//div[@data-column='{column}']//input[not(@type='range')]")
        field.clear()
        field.send_keys(text)
        row = (*row[:column], float(text or "nan"), *row[column + 1 :])
        table = polars.DataFrame([row], schema=X.columns, orient="row")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            assert browser.run(SHOWN) == [float(glass.decision_function(table)[0])]
    model = glass.model_
    script = """
    const [number] = arguments;
    const row = gpustump.row(number);
    return smallestFlips(gpustump, row, gpustump.scores(row), null)
      .map((own) => [own.place, own.value, own.end ?? null, own.isAbove ?? null]);
    """
    rows, n_flips = X.to_numpy(), 0
    for number in range(30):
        for place, value, end, is_above in browser.run(script, number):
            changed = np.repeat(rows[number : number + 1], 3, axis=0)
            changed[:, place] = [value, end, rows[number, place]]
            after, at_end, before = model.predict(changed)
            assert after != before
            assert is_above is False or at_end == before  # no nearer value does
            n_flips += 1
    assert n_flips > 20
    script = """
    const [number] = arguments;
    const row = gpustump.row(number);
    const scores = gpustump.scores(row);
    if (smallestFlips(gpustump, row, scores, null).length) return null;
    return fewestFlips(gpustump, row, scores)?.map((own) => [own.place, own.value]) ?? null;
    """
    together = {number: browser.run(script, number) for number in range(60)}
    for number, changes in together.items():
        if changes is not None:
            changed = np.repeat(rows[number : number + 1], 2, axis=0)
            changed[0, [place for place, _ in changes]] = [value for _, value in changes]
            after, before = model.predict(changed)
            assert after != before
            assert len(changes) > 1
    assert any(together.values())
    browser.check()


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_dates_words_and_truths_can_be_chosen(browser, name, tmp_path):
    model, X = loaded(name)
    browser.open(page(model, X))
    browser.tab("What if")
    names, n_changed = browser.run("return gpustump.columns.map((own) => own.name)"), 0
    head, first, *_ = csv.reader(TABLE.read_text().splitlines())
    row = dict(zip(head, first, strict=True))
    for column, text in (
        *[("day", "2021-03-04"), ("day", ""), ("day", "1950-12-31"), ("place", "Köln")],
        *[("place", ""), ("is new", "true"), ("is new", "false"), ("count", "4"), ("amount", "")],
    ):
        if column not in names:
            continue
        set_value = """
        const [column, text] = arguments;
        const own = document.querySelector(`[data-column="${column}"] :is(select, input)`);
        if (own.tagName === "INPUT") own.value = text;
        else own.selectedIndex = [...own].findIndex((one) => one.text === (text || "missing"));
        own.dispatchEvent(new Event(own.tagName === "INPUT" ? "input" : "change"));
        """
        browser.run(set_value, names.index(column), text)
        row[column] = text
        with open(tmp_path / "row.csv", "w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([head, list(row.values())])
        X = read_features(str(tmp_path / "row.csv"), model)
        wanted = np.reshape(model.decision_function(X), -1).tolist()
        assert browser.run(SHOWN) == wanted, (column, text)
        n_changed += 1
    assert n_changed
    browser.check()


def test_edits_say_what_they_do_and_the_saved_file_gives_the_same_model(browser, cancer):
    from selenium.webdriver.support.wait import WebDriverWait

    glass, X, y = cancer
    browser.open(page(glass, X, y))
    browser.tab("Edit")
    panel = "//div[@role='tabpanel'][not(@hidden)]"
    browser.element(f"{panel}//button[.='Switch off']").click()
    browser.element(f"({panel}//ol[@class='terms']//button)[2]").click()
    browser.element("//input[@aria-label='Flatten above']").send_keys("18\n")
    browser.element("//input[@aria-label='Flatten up to']").send_keys("25.5\n")
    browser.element(f"{panel}//button[.='Flatten']").click()
    browser.element(f"({panel}//ol[@class='terms']//button)[3]").click()
    browser.element(f"{panel}//button[.='Make it fall']").click()
    said = browser.element("//table[@class='measures']").text
    browser.element(f"{panel}//button[.='Save the edits']").click()
    saved = browser.folder / "edits.json"
    WebDriverWait(browser.driver, 10).until(lambda _: saved.exists())
    edited = glass.model_.edited(saved)
    assert edited.digest() != glass.model_.digest()
    found = browser.run("return Array.from(gpustump.rowScores())")
    scores = edited.decision_function(X)
    assert np.array_equal(found, scores)
    after = accuracy_score(y, edited.labels_of(scores))
    assert f"{after:.4g}" in said
    assert "worse" in said or "better" in said
    falling = browser.run("return gpustump.edits.at(-1).term")
    assert falling == 2
    place = browser.run("return gpustump.terms[2].columns[0]")
    assert (np.diff(glass.shape_function(place).values) > 0).any()
    assert (np.diff(edited.shape_function(place).values) <= 0).all()
    browser.element(f"{panel}//button[.='Undo']").click()
    browser.check()


HOSTILE = ["</script><script>alert(1)</script>", "<!--", "\u2028\u202eabc", "'\"&<b>", "n" * 10_000]


def test_hostile_names_and_labels_stay_text(browser):
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 4))
    frame = polars.DataFrame(X, schema=HOSTILE[:3] + HOSTILE[4:])
    y = np.asarray(HOSTILE)[np.digitize(X @ [1, 2, -1, 1], [-2, -0.5, 0.5, 2])]
    clf = LogitBoostClassifier(n_estimators=30, device="cpu").fit(frame, y)
    browser.open(page(clf, frame, y, source=HOSTILE[0]))
    names = browser.run("return gpustump.columns.map((own) => own.name)")
    assert names == frame.columns
    browser.run(EVERY_TAB)
    assert browser.run("return document.scripts.length") == 2
    assert browser.driver.find_elements("css selector", "main b, main script") == []
    assert browser.run("return document.documentElement.scrollWidth") <= 1280
    browser.check()


def test_nothing_is_loaded_and_other_scripts_are_refused(browser, cancer):
    browser.open(page(*cancer))
    entries = "return performance.getEntriesByType('resource').map((own) => own.name)"
    assert browser.run(entries) == []
    browser.run("const own = document.createElement('script'); own.textContent = 'hacked = 1';"
                "document.body.append(own)")  # fmt: skip
    assert browser.run("return typeof hacked") == "undefined"
    (refused,) = browser.driver.get_log("browser")
    assert "Content Security Policy" in refused["message"]


def test_a_notebook_shows_the_page_in_a_frame(browser, cancer):
    frame = page(*cancer)._repr_html_()
    path = browser.folder / "notebook.html"
    path.write_text(f"<!doctype html><meta charset='utf-8'><h1>Cell</h1>{frame}")
    browser.driver.get(path.as_uri())
    browser.driver.switch_to.frame(0)
    browser.tab("Shapes")
    assert browser.element("//div[@class='chart']//*[name()='svg']")
    browser.driver.switch_to.default_content()
    browser.check()


def test_models_with_little_in_them_have_pages(browser):
    X, y = load_iris(return_X_y=True)
    one_round = AdaBoostClassifier(n_estimators=1, device="cpu").fit(X, y)
    constant = StumpEnsemble((one_round.model_.members[0].truncated(0),), 4)
    for model in (one_round, constant):
        for rows in ((), (X,), (X[:1],)):
            browser.open(page(model, *rows))
            browser.run(EVERY_TAB)
            browser.check()
