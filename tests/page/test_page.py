"""What a page holds, and what it refuses; no browser is needed."""

from __future__ import annotations

import json
import re

import numpy as np
import polars
import pytest

from gpustump import AdaBoostClassifier, LogitBoostClassifier, StumpBoostingRegressor, plots
from gpustump.page import payload


@pytest.fixture(scope="module")
def model():
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 3))
    return LogitBoostClassifier(n_estimators=20, device="cpu").fit(X, X[:, 0] > X[:, 1])


def data_of(page: plots.page) -> dict:
    (text,) = re.findall(r'<script type="application/json" id="model">(.*?)</script>', page.html)
    assert not set("<>&\u2028") & set(text)
    return json.loads(text)


def test_a_page_is_small_beside_its_model_and_ends_where_it_should(model):
    page = plots.page(model)
    assert len(page.html) < 100_000
    assert page.html.count("<script") == page.html.count("</script>") == 2
    assert "http" not in page.html.replace("http://www.w3.org/2000/svg", "").replace(
        "http-equiv", ""
    )
    assert data_of(page)["digest"] == model.model_.digest()


def test_of_many_rows_and_of_wide_tables_some_are_in_the_page(model, monkeypatch):
    X = np.random.default_rng(1).normal(size=(6000, 3))
    rows = data_of(plots.page(model, X))["rows"]
    assert rows["given"] == 6000
    monkeypatch.setattr(payload, "MOST_VALUES", 300)
    small = data_of(plots.page(model, X, X[:, 0] > 0))
    n_columns = len(small["columns"])
    assert len(small["rows"]["columns"]) == n_columns
    assert small["rows"]["numbers"] != rows["numbers"]
    assert len(str(small["rows"])) < len(str(rows)) / 10


def test_to_html_writes_the_page_and_takes_frames_like_fit(tmp_path):
    frame = polars.DataFrame({"size": [1.0, 2, 3, 4, 5, 6], "name": list("aabbab")})
    clf = AdaBoostClassifier(n_estimators=3, categorical_features="from_dtype", device="cpu")
    clf.fit(frame, [0, 0, 1, 0, 1, 1])
    text = clf.to_html(tmp_path / "page.html", frame, [0, 0, 1, 0, 1, 1])
    assert (tmp_path / "page.html").read_text("utf-8") == text
    assert clf.model_.to_html(X=frame, y=[0, 0, 1, 0, 1, 1]) == text
    assert {"size", "name"} >= {own["name"] for own in data_of(plots.page(clf))["columns"]}


def test_what_is_no_rows_or_targets_is_refused(model, tmp_path):
    X = np.zeros((2, 3))
    with pytest.raises(ValueError, match="y is given without X"):
        plots.page(model, y=[True, False])
    with pytest.raises(ValueError, match="known_scores is given without X"):
        plots.page(model, known_scores=[0.0, 0.0])
    for known, message in (([0.0], r"shape \(2, 1\); got \(1,\)"), ([0.0, np.nan], "finite")):
        with pytest.raises(ValueError, match=f"known_scores must .*{message}"):
            plots.page(model, X, known_scores=known)
    with pytest.raises(ValueError, match="3 features"):
        plots.page(model, X[:, :2])
    with pytest.raises(ValueError, match="y"):
        plots.page(model, X, [True])
    reg = StumpBoostingRegressor(n_estimators=2, device="cpu").fit(np.eye(3), [1.5, 2.5, 3.5])
    with pytest.raises(ValueError, match="NaN"):
        plots.page(reg, X, [1.0, np.nan])
    with pytest.raises(ValueError, match="init_score is given without X"):
        reg.to_html(init_score=[0.5])
    with pytest.raises(OSError, match="missing"):
        model.to_html(tmp_path / "missing" / "page.html")
    with pytest.raises(TypeError, match="StumpEnsemble"):
        plots.page("model.json")
