"""Text columns as one categorical feature each: `gpustump train --categories sets`."""

from __future__ import annotations

import numpy as np
import pytest
from command import command_fixture  # noqa: F401
from sklearn.model_selection import train_test_split

from gpustump import AdaBoostClassifier, LogitBoostClassifier, StumpEnsemble

pd = pytest.importorskip("pandas")
pytest.importorskip("polars")


def frame_of(n_classes: int = 2) -> pd.DataFrame:
    """Colours, one of them missing at times, numbers, and labels that follow from both."""
    random = np.random.default_rng(0)
    colour = random.choice(["red", "green", "blue", "light blue", "pink"], 300)
    size = np.round(random.normal(size=300), 3)
    score = np.isin(colour, ["red", "light blue"]) + 0.5 * size + 0.2 * random.normal(size=300)
    words = np.asarray(["no", "perhaps", "yes"] if n_classes == 3 else ["no", "yes"])
    labels = words[np.argsort(np.argsort(score)) * n_classes // 300]
    frame = pd.DataFrame({"colour": colour.astype(object), "size": size, "label": labels})
    frame.loc[::17, "colour"] = None
    return frame


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_the_model_is_that_of_the_estimator_on_the_frame(command, loss, n_classes):
    frame = frame_of(n_classes)
    frame.to_csv("table.csv", index=False)
    cls = {"exponential": AdaBoostClassifier, "logistic": LogitBoostClassifier}[loss]
    options = ("--categories", "sets", "--loss", loss, "--rounds", "20")
    outcome = command.succeeds("train", "table.csv", "--target", "label", *options)
    rows = np.arange(len(frame))
    rows = np.sort(train_test_split(rows, test_size=0.2, random_state=0, stratify=frame.label)[0])
    X = frame[["colour", "size"]]
    own = cls(n_estimators=20, categorical_features="from_dtype", device="cpu")
    own.fit(X.iloc[rows], frame.label[rows])
    model = StumpEnsemble.load("model.json")
    assert model.digest() == own.model_.digest() == outcome.row("digest")
    assert outcome.row("features") == "2"
    assert outcome.row("encoded").endswith("text, 5 categories: blue, green, light blue, pink, red")
    command.succeeds("predict", "model.json", "table.csv", "-o", "out.csv")
    assert pd.read_csv("out.csv").prediction.tolist() == own.predict(X).tolist()
    command.succeeds("explain", "model.json", "table.csv", "-o", "parts.csv")
    parts = pd.read_csv("parts.csv")
    assert "colour" in parts.columns[0]
    assert np.array_equal(model.decision_function(frame), own.decision_function(X))


def test_rules_name_the_categories_on_the_left(command):
    frame_of().to_csv("table.csv", index=False)
    options = ("--categories", "sets", "--rounds", "3")
    command.succeeds("train", "table.csv", "--target", "label", *options)
    out = command.succeeds("inspect", "model.json").out
    first = StumpEnsemble.load("model.json").members[0].stumps[0]
    assert (first.left, first.right) == ((0, 1, 3), (2, 4))
    assert "1. " in out
    assert "colour in {blue, green, pink} -> no, else yes" in " ".join(out.split())
    command.succeeds("train", "table.csv", "--target", "label", *options, "--loss", "logistic")
    out = " ".join(command.succeeds("inspect", "model.json").out.split())
    assert "colour in {blue, green, pink} -> no +" in out


@pytest.mark.filterwarnings("ignore:.* made no round")
def test_up_to_254_values_are_taken_as_sets_and_the_report_is_written(command):
    pytest.importorskip("matplotlib")
    report = ("--report", "report.html")
    for n in (254, 255):
        values = np.tile([f"v{k}" for k in range(n)], 4)
        label = np.where(np.arange(4 * n) % n % 2 == 0, "even", "odd")
        pd.DataFrame({"v": values, "w": 1.5, "label": label}).to_csv("many.csv", index=False)
        arguments = ("train", "many.csv", "--target", "label", "--rounds", "2")
        if n == 255:
            said = command.refuses(*arguments, "--categories", "sets")
            assert "text with 255 distinct values, more than 254" in said
        else:
            command.succeeds(*arguments, "--categories", "sets", *report)
            assert "more than 64" in command.refuses(*arguments)


@pytest.mark.filterwarnings("default:.* has values that were not in training")
def test_codes_that_are_no_categories_are_told_of_once(command):
    random = np.random.default_rng(0)
    X = pd.DataFrame({"code": random.choice([0, 1, 3], 40), "size": random.normal(size=40)})
    model = LogitBoostClassifier(n_estimators=5, categorical_features=["code"])
    model.fit(X, (X["code"] == 1) ^ (X["size"] > 1)).model_.save("model.json")
    X.assign(code=[2, 0.5, *X["code"][2:]]).to_csv("table.csv", index=False)
    told = "'code' has values that were not in training in 2 rows, such as '2'"
    for arguments in (("predict",), ("explain",)):
        outcome = command(*arguments, "model.json", "table.csv", "-o", f"{arguments[0]}.csv")
        assert outcome.err.splitlines() == [f"gpustump: {told}; they count as missing"]
    parts = pd.read_csv("explain.csv")["code"]
    assert parts[0] == parts[1] == model.shape_function("code").missing
    outcome = command("explain", "model.json", "table.csv", "--row", "2")
    assert outcome.err.count("such as '0.5'") == 1
