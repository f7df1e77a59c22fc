"""Columns: missing markers, codes, numbers among words, a saved index, sets of categories, monotone
constraints. What `train` decides, and what it asks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas
import pytest
from classifiers import drawn
from command import command_fixture, mixed_table, parts  # noqa: F401

from gpustump import AdaBoostClassifier, LogitBoostClassifier, StumpEnsemble

polars = pytest.importorskip("polars")


def write(marks: dict[int, str], name: str = "table.csv") -> None:
    """A table whose column x holds so many numbers, and some words in place of numbers."""
    r = np.random.default_rng(0)
    x, other, noise = r.integers(0, 300, 400), r.normal(size=400), r.normal(size=400)
    label = (x + noise > 150).astype(int)
    rows = [f"{marks.get(k, x[k])},{other[k]:.3f},{label[k]}" for k in range(400)]
    Path(name).write_text("\n".join(["x,other,label", *rows]) + "\n")


def train(command, *options):
    return command.succeeds("train", "table.csv", "--target", "label", "--rounds", 20, *options)


def test_known_markers_are_missing_values_and_an_unknown_word_is_asked_about(command):
    write({7: "", 90: ""})
    expected = train(command).row("digest")
    for mark in ("?", "<NA>"):  # every other one stands in the tests of text files
        write({7: mark, 90: f" {mark}"})
        outcome = train(command)
        assert (outcome.row("digest"), outcome.row("features")) == (expected, "2")
    write({7: "x", 90: "x"})
    assert command.refuses("train", "table.csv", "--target", "label") == (
        "table.csv: column 'x' cannot be used: all its values are numbers except 'x'. Give "
        "--missing x for missing values, --categorical for text, or leave it out with --drop x."
    )
    assert train(command, "--missing", "x").row("digest") == expected
    message = command.refuses("train", "table.csv", "--target", "label", "--numeric", "x")
    assert "--numeric names it, but it holds 'x'" in message


def test_the_words_for_missing_values_are_known_to_predict_explain_and_inspect(command):
    write({7: "x", 90: "-999"})
    train(command, "--missing", "x", "--missing=-999", "--quiet")
    details = json.loads(Path("model.json").read_text())["details"]
    assert details["encoding"]["missing"] == ["-999", "x"]
    write({7: "", 90: ""}, name="empty.csv")
    write({7: "x", 90: "-999.0"}, name="other.csv")
    for do in ("predict", "explain"):
        for name in ("table.csv", "empty.csv", "other.csv"):
            command.succeeds(do, "model.json", name, "-o", f"{do}_{name}")
        found = {Path(f"{do}_{n}.csv").read_bytes() for n in ("table", "empty", "other")}
        assert len(found) == 1
    command.succeeds("inspect", "model.json", "--data", "table.csv")
    numbers = pandas.read_csv("table.csv", na_values=["x"])[["x", "other"]]
    assert (numbers["x"] == -999).sum() == 1
    np.savez("table.npz", X=numbers.to_numpy(), names=["x", "other"])
    command.succeeds("predict", "model.json", "table.npz", "-o", "arrays.csv")
    assert Path("arrays.csv").read_bytes() == Path("predict_empty.csv").read_bytes()


def test_codes_stay_text_and_can_be_made_numbers(command):
    r = np.random.default_rng(0)
    zips = r.choice(["01234", "98765", "00501", "10001"], 100)
    y = [int(z == "00501") ^ int(r.random() < 0.1) for z in zips]
    rows = [f"{z},{r.normal():.3f},{label}" for z, label in zip(zips, y, strict=True)]
    Path("table.csv").write_text("\n".join(["zip,x,label", *rows]) + "\n")
    outcome = train(command)
    assert outcome.row("encoded") == "zip: text, 4 features: 00501, 01234, 10001, 98765"
    assert train(command, "--numeric", "zip").row("features") == "2"
    command.succeeds("predict", "model.json", "table.csv", "-o", "out.csv")
    many = [f"{k:05},{k % 2}" for k in range(99)]
    Path("many.csv").write_text("\n".join(["zip,label", *many]) + "\n")
    message = command.refuses("train", "many.csv", "--target", "label")
    assert "such as '00000', '00001'." in message
    assert message.endswith("Read it as numbers with --numeric, or leave it out with --drop zip.")
    polars.read_csv("many.csv", infer_schema=False).write_parquet("many.parquet")
    options = ("--target", "label", "--numeric", "zip")
    message = command.refuses("train", "many.parquet", *options)
    assert "it holds '00000', '00001', '00002' and 96 more. Turn it into numbers, or" in message


def test_a_column_of_numbers_can_be_categories_in_every_format(command):
    r = np.random.default_rng(0)
    kind, x = r.integers(1, 4, 150), r.normal(size=150)
    y = (kind == 2).astype(np.int64) ^ (r.random(150) < 0.1)
    frame = polars.DataFrame({"kind": kind, "x": x, "label": y.astype(np.int64)})
    frame.write_csv("table.csv")
    frame.write_parquet("table.parquet")
    np.savez("table.npz", X=frame["kind", "x"].to_numpy(), label=y.astype(int), names=["kind", "x"])
    digests, outputs = set(), set()
    options = ("--target", "label", "--rounds", 10, "--categorical", "kind")
    for ending in ("csv", "parquet", "npz"):
        outcome = command.succeeds("train", f"table.{ending}", *options)
        assert outcome.row("encoded") == "kind: text, 3 features: 1, 2, 3"
        digests.add(outcome.row("digest"))
        for other in ("csv", "parquet", "npz"):
            command.succeeds("predict", "model.json", f"table.{other}", "-o", "out.csv")
            outputs.add(Path("out.csv").read_bytes())
    assert len(digests) == len(outputs) == 1
    model = StumpEnsemble.load("model.json")
    labels = model.predict(frame.select("kind", "x").to_pandas())
    written = Path("out.csv").read_text().splitlines()[1:]
    assert [line.split(",")[1] for line in written] == list(map(str, labels))


def test_a_model_reads_later_tables_with_the_marks_of_its_own(command):
    r = np.random.default_rng(0)
    values = np.round(r.normal(0, 5000, 300), 2)
    labels = (values > 700).astype(int)

    def write(name: str, texts: list[str], separator: str) -> None:
        quoted = [f'"{text}"{separator}{label}' for text, label in zip(texts, labels, strict=True)]
        Path(name).write_text("\n".join([f"x{separator}label", *quoted]) + "\n")

    write("plain.csv", [repr(own) for own in values.tolist()], ",")
    write("us.csv", [f"{own:,.2f}" for own in values], ",")
    german = [f"{own:,.2f}".translate(str.maketrans(",.", ".,")) for own in values]
    write("german.csv", german, ";")
    options = ("--target", "label", "--rounds", 5, "--quiet", "--force")
    digests, predictions = set(), set()
    for name, more in (("plain.csv", ()), ("us.csv", ()), ("german.csv", ("--decimal", ","))):
        command.succeeds("train", name, *options, *more)
        digests.add(StumpEnsemble.load("model.json").digest())
        predictions.add(command.succeeds("predict", "model.json", name).out)
        if name == "us.csv":  # alone, these texts could have decimal commas
            Path("few.tsv").write_text("x\n1,234\n-2,000\n")
            found = command.succeeds("explain", "model.json", "few.tsv", "--row", 1).out
            assert "1,234" in found or "1234" in found
    assert len(digests) == len(predictions) == 1


def test_numbers_whose_decimal_mark_is_open_are_told_with_the_option(command):
    rows = [f"1.{k:03},50;{k % 2}" for k in range(99)]
    Path("table.csv").write_text("\n".join(["price;label", *rows, "5,5;0"]) + "\n")
    message = command.refuses("train", "table.csv", "--target", "label")
    assert "such as '1.000,50', '1.001,50'. Say which mark is the decimal one with --decimal" in (
        message
    )
    command.succeeds("train", "table.csv", "--target", "label", "--decimal", ",")


def test_all_columns_with_problems_are_named_in_one_message(command):
    rows = [f"w{k};{'x' if k == 7 else k};{k}.5 m;{k % 2}" for k in range(1, 99)]
    Path("table.csv").write_text("\n".join(["word;x;length;label", *rows]) + "\n")
    message = command.refuses("train", "table.csv", "--target", "label")
    assert "column 'word' cannot be used: it is text with 98 distinct values" in message
    assert "The same is true of 'length'. Turn it into numbers, or leave it out with " in message
    assert "--drop word,length" in message
    assert "column 'x' cannot be used: all its values are numbers except 'x'." in message
    assert len(message) < 900


def indexed() -> pandas.DataFrame:
    X, y = drawn()
    frame = pandas.DataFrame({"x": X[:, 0], "z": X[:, 1], "label": y})
    return frame.sort_values("label", ignore_index=True)


def told(command, *options):
    return command("train", "table.csv", "--target", "label", "--rounds", 10, *options)


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("name", [None, "Unnamed: 0", "row_number"])
def test_a_first_column_that_numbers_the_rows_is_left_out(command, name, first):
    table = indexed()
    table.to_csv("table.csv", index=False)
    expected = told(command).row("digest")
    table.index = table.index + first
    table.to_csv("table.csv", index_label=name)
    outcome = told(command)
    assert outcome.err == (
        f"gpustump: column {name or ''!r} is left out: it numbers the rows from {first}\n"
    )
    assert outcome.row("digest") == expected
    table.to_csv("new.csv", index=False)
    command.succeeds("predict", "model.json", "new.csv", "-o", "out.csv")


def test_rows_without_a_target_do_not_hide_an_index(command):
    table = indexed().astype({"label": "Int64"})
    table.loc[::7, "label"] = pandas.NA
    table.to_csv("table.csv")
    outcome = told(command, "--drop-missing-target")
    assert "is left out: it numbers the rows from 0" in outcome.err
    assert outcome.row("features") == "2"


def test_a_shuffled_index_is_used_with_a_warning_and_can_be_dropped(command):
    indexed().sample(frac=1, random_state=0).to_csv("table.csv")
    outcome = told(command)
    assert outcome.err == (
        "gpustump: column '' is used as a feature, but looks like an index: its values are all "
        "different; --drop '' leaves it out\n"
    )
    assert outcome.row("features") == "3"
    assert "''  " in outcome.out[outcome.out.index("most votes") :]
    assert "'' <= " in command.succeeds("inspect", "model.json").out
    dropped = told(command, "--drop", "")
    assert dropped.err == ""
    assert dropped.row("features") == "2"


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_nothing_is_told_of_columns_that_are_not_used(command, ending):
    table = indexed().sample(frac=1, random_state=0).reset_index(names="id")
    options = ("--target", "label", "--rounds", 3, "--drop")
    table["day"] = "01/02/2019"  # the first of February, or the second of January
    if ending == "csv":
        table.to_csv("table.csv", index=False)
    else:
        table.to_json("table.jsonl", orient="records", lines=True)
    command.succeeds("train", f"table.{ending}", *options, "id,day")
    command.succeeds("predict", "model.json", f"table.{ending}")


def test_an_index_that_pandas_keeps_in_parquet_is_left_out(command):
    table = indexed()
    table["__index_level_0__"] = np.arange(len(table))
    table.to_parquet("table.parquet")
    outcome = command("train", "table.parquet", "--target", "label", "--rounds", 3)
    assert "'__index_level_0__' is left out" in outcome.err


def test_a_column_without_name_and_values_is_left_out(command):
    table = indexed()
    lines = table.to_csv(index=False).splitlines()
    Path("table.csv").write_text("".join(f"{line},\n" for line in lines))
    outcome = told(command)
    assert outcome.err == "gpustump: column '' is left out: it has neither a name nor values\n"
    assert outcome.row("features") == "2"


@pytest.mark.parametrize(("target", "other"), [("label", "kind"), ("kind", "label")])
@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_the_model_is_that_of_the_estimator_on_the_frame(command, loss, target, other):
    frame = mixed_table().to_pandas()
    frame.to_csv("table.csv", index=False)
    cls = {"exponential": AdaBoostClassifier, "logistic": LogitBoostClassifier}[loss]
    columns = ("--target", target, "--drop", f"{other},weight", "--categories", "sets")
    outcome = command.succeeds("train", "table.csv", *columns, "--loss", loss, "--rounds", "20")
    rows, _ = parts(len(frame), frame[target])
    X = frame[["age", "size", "colour"]]
    own = cls(n_estimators=20, categorical_features="from_dtype", device="cpu")
    own.fit(X.iloc[rows], frame[target][rows])
    assert own.model_.digest() == outcome.row("digest")
    assert outcome.row("features") == "3"
    assert outcome.row("encoded").endswith("text, 3 categories: blue, green, red")
    command.succeeds("predict", "model.json", "table.csv", "-o", "out.csv")
    assert pandas.read_csv("out.csv").prediction.tolist() == own.predict(X).tolist()
    command.succeeds("explain", "model.json", "table.csv", "-o", "parts.csv")
    assert "colour" in pandas.read_csv("parts.csv").columns[2]
    model = StumpEnsemble.load("model.json")
    assert np.array_equal(model.decision_function(frame), own.decision_function(X))


@pytest.mark.filterwarnings("ignore:.* made no round")
def test_up_to_1000_values_are_taken_as_sets(command):
    for n in (1000, 1001):
        values = np.tile([f"v{k}" for k in range(n)], 4)
        label = np.where(np.arange(4 * n) % n % 2 == 0, "even", "odd")
        pandas.DataFrame({"v": values, "w": 1.5, "label": label}).to_csv("many.csv", index=False)
        arguments = ("train", "many.csv", "--target", "label", "--rounds", "2")
        if n == 1001:
            said = command.refuses(*arguments, "--categories", "sets")
            assert "text with 1001 distinct values, more than 1000" in said
        else:
            command.succeeds(*arguments, "--categories", "sets")
            assert "more than 64" in command.refuses(*arguments)


@pytest.mark.filterwarnings("default:.* has values that were not in training")
def test_codes_that_are_no_categories_are_told_of_once(command):
    random = np.random.default_rng(0)
    X = pandas.DataFrame({"code": random.choice([0, 1, 3], 40), "size": random.normal(size=40)})
    model = LogitBoostClassifier(n_estimators=5, categorical_features=["code"])
    model.fit(X, (X["code"] == 1) ^ (X["size"] > 1)).model_.save("model.json")
    X.assign(code=[2, 0.5, *X["code"][2:]]).to_csv("table.csv", index=False)
    told = "'code' has values that were not in training in 2 rows, such as '2'"
    for name in ("predict", "explain"):
        outcome = command(name, "model.json", "table.csv", "-o", f"{name}.csv")
        assert outcome.err.splitlines() == [f"gpustump: {told}; they count as missing"]
    parts = pandas.read_csv("explain.csv")["code"]
    assert parts[0] == parts[1] == model.shape_function("code").missing
    outcome = command("explain", "model.json", "table.csv", "--row", "2")
    assert outcome.err.count("such as '0.5'") == 1


@pytest.fixture
def ordered(command):
    """A table whose second column has a name that holds a comma and an equals sign."""
    X, y = drawn()
    colours = np.where(X[:, 2] > 0, "red", "blue")
    frame = pandas.DataFrame({"age": X[:, 0], "size,a=b": X[:, 1], "colour": colours})
    frame.assign(y=y, three=drawn(3)[1]).to_csv("table.csv", index=False)


@pytest.mark.usefixtures("ordered")
@pytest.mark.parametrize(
    ("options", "shown", "constraints"),
    [
        (["--monotone", "age=1", "--monotone", "size,a=b=-1"], "age=1, size,a=b=-1",
         [1, -1, 0, 0, 0]),
        (["--monotone", "age=+1, three=0"], "age=1", [1, 0, 0, 0, 0]),
        (["--monotone", "age=0"], None, None),
    ],
)  # fmt: skip
def test_constraints_by_column_are_those_of_the_features(command, options, shown, constraints):
    outcome = command.succeeds("train", "table.csv", "--target", "y", "--rounds", 3, *options)
    details = StumpEnsemble.load("model.json").details
    assert details["estimator"]["parameters"].get("monotonic_cst") == constraints
    assert ("monotone  " in outcome.out) == (shown is not None)
    assert shown is None or outcome.row("monotone") == shown


CONSTRAINTS_REFUSED = [
    (["--monotone", "age"], "not of the form COL=1"),
    (["--monotone", "agee=1"], "Did you mean 'age'?"),
    (["--monotone", "y=1"], "not a feature"),
    (["--monotone", "age=1,age=-1"], "twice"),
    (["--monotone", "colour=1"], "a column of text"),
    (["--monotone", "age=1", "--target", "three", "--votes", "real"], "is for two classes"),
]


@pytest.mark.usefixtures("ordered")
def test_other_constraints_are_refused_before_anything_is_trained(command):
    for options, problem in CONSTRAINTS_REFUSED:
        target = [] if "--target" in options else ["--target", "y"]
        assert problem in command.refuses("train", "table.csv", *target, *options)
