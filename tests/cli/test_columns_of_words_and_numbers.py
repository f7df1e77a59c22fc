"""Missing markers, codes, and numbers among words: what train decides, and what it asks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas
import pytest
from command import command_fixture  # noqa: F401

from gpustump import StumpEnsemble

polars = pytest.importorskip("polars")


def write(marks: dict[int, str], n_values: int, name: str = "table.csv") -> None:
    """A table whose column x holds so many numbers, and some words in place of numbers."""
    r = np.random.default_rng(0)
    n = 400
    x = r.integers(0, n_values, n)
    label = (x + r.normal(size=n) > n_values / 2).astype(int)
    other = r.normal(size=n)
    rows = [f"{marks.get(k, x[k])},{other[k]:.3f},{label[k]}" for k in range(n)]
    Path(name).write_text("\n".join(["x,other,label", *rows]) + "\n")


def train(command, *options):
    return command.succeeds("train", "table.csv", "--target", "label", "--rounds", 20, *options)


@pytest.mark.parametrize("n_values", [20, 300])
@pytest.mark.parametrize("mark", ["?", "-", ".", "n/a", "#N/A", "<NA>", "unknown", ""])
def test_a_known_marker_is_a_missing_value_however_many_numbers_there_are(command, mark, n_values):
    write({7: "", 90: ""}, n_values)
    expected = train(command).row("digest")
    write({7: mark, 90: f" {mark}"}, n_values)
    outcome = train(command)
    assert outcome.row("digest") == expected
    assert outcome.row("features") == "2"


@pytest.mark.parametrize("n_values", [20, 300])
def test_an_unknown_word_among_numbers_is_asked_about(command, n_values):
    write({7: "x", 90: "x"}, n_values)
    assert command.refuses("train", "table.csv", "--target", "label") == (
        "table.csv: column 'x' cannot be used: all its values are numbers except 'x'. Give "
        "--missing x if it stands for a missing value, --categorical x for text, or leave it "
        "out with --drop x."
    )
    named = train(command, "--missing", "x").row("digest")
    write({7: "", 90: ""}, n_values)
    assert train(command).row("digest") == named


def test_the_words_for_missing_values_are_known_to_predict_explain_inspect_and_frames(command):
    write({7: "x", 90: "-999"}, 300)
    train(command, "--missing", "x", "--missing=-999", "--quiet")
    details = json.loads(Path("model.json").read_text())["details"]
    assert details["encoding"]["missing"] == ["-999", "x"]
    write({7: "", 90: ""}, 300, "empty.csv")
    write({7: "x", 90: "-999.0"}, 300, "other.csv")
    for do in ("predict", "explain"):
        for name in ("table.csv", "empty.csv", "other.csv"):
            command.succeeds(do, "model.json", name, "-o", f"{do}_{name}")
        found = {Path(f"{do}_{n}.csv").read_bytes() for n in ("table", "empty", "other")}
        assert len(found) == 1
    command.succeeds("inspect", "model.json", "--data", "table.csv")
    model = StumpEnsemble.load("model.json")
    expected = model.predict_proba(pandas.read_csv("empty.csv")[["x", "other"]])
    frame = pandas.read_csv("table.csv")[["x", "other"]]
    assert not pandas.api.types.is_numeric_dtype(frame["x"])
    assert np.array_equal(model.predict_proba(frame), expected)
    numbers = pandas.read_csv("table.csv", na_values=["x"])[["x", "other"]]
    assert (numbers["x"] == -999).sum() == 1
    assert np.array_equal(model.predict_proba(numbers), expected)
    arrays = numbers.to_numpy()
    np.savez("table.npz", X=arrays, names=["x", "other"])
    command.succeeds("predict", "model.json", "table.npz", "-o", "arrays.csv")
    assert Path("arrays.csv").read_bytes() == Path("predict_empty.csv").read_bytes()


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
def test_a_number_can_stand_for_a_missing_value_in_every_format(command, ending):
    r = np.random.default_rng(0)
    X = r.integers(0, 50, size=(200, 2))
    y = (X[:, 0] + r.normal(size=200) > 25).astype(np.int64)
    with_gaps = X.astype(float)
    X[:9, 1], with_gaps[:9, 1] = -999, np.nan
    X[:3, 0], with_gaps[:3, 0] = -999, np.nan
    for name, table in (("marked", X), ("empty", with_gaps)):
        frame = polars.DataFrame(table, schema=["a", "b"]).with_columns(label=y)
        if name == "empty":
            frame = frame.with_columns(polars.col("a", "b").fill_nan(None))
        frame.write_csv(f"{name}.csv")
        frame.write_parquet(f"{name}.parquet")
        np.savez(f"{name}.npz", X=table, label=y, names=["a", "b"])
    options = ("--target", "label", "--rounds", 10)
    expected = command.succeeds("train", f"empty.{ending}", *options)
    found = command.succeeds("train", f"marked.{ending}", *options, "--missing=-999")
    assert found.row("digest") == expected.row("digest")


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
    assert "such as '00000', '00001': numbers that were read as text, as codes are" in message
    assert message.endswith("if the table is a text file, read it as numbers with --numeric zip.")
    polars.read_csv("many.csv", infer_schema=False).write_parquet("many.parquet")
    options = ("--target", "label", "--numeric", "zip")
    assert "fields of text files" in command.refuses("train", "many.parquet", *options)


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
def test_a_column_of_numbers_can_be_categories_in_every_format(command, ending):
    r = np.random.default_rng(0)
    kind, x = r.integers(1, 4, 150), r.normal(size=150)
    y = (kind == 2).astype(np.int64) ^ (r.random(150) < 0.1)
    frame = polars.DataFrame({"kind": kind, "x": x, "label": y.astype(np.int64)})
    frame.write_csv("table.csv")
    frame.write_parquet("table.parquet")
    np.savez("table.npz", X=frame["kind", "x"].to_numpy(), label=y.astype(int), names=["kind", "x"])
    outcome = command.succeeds(
        *("train", f"table.{ending}", "--target", "label", "--rounds", 10, "--categorical", "kind")
    )
    assert outcome.row("encoded") == "kind: text, 3 features: 1, 2, 3"
    outputs = set()
    for other in ("csv", "parquet", "npz"):
        command.succeeds("predict", "model.json", f"table.{other}", "-o", "out.csv")
        outputs.add(Path("out.csv").read_bytes())
    assert len(outputs) == 1
    model = StumpEnsemble.load("model.json")
    labels = model.predict(frame.select("kind", "x").to_pandas())
    written = Path("out.csv").read_text().splitlines()[1:]
    assert [line.split(",")[1] for line in written] == list(map(str, labels))


def test_numeric_names_the_words_that_it_finds(command):
    write({7: "abc", 8: "def"}, 300)
    message = command.refuses("train", "table.csv", "--target", "label", "--numeric", "x")
    assert "--numeric names it, but it holds 'abc', 'def'" in message


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


def test_all_columns_with_problems_are_named_in_one_message(command):
    rows = [
        f"{'call us' if k == 5 else f'${k},000'};w{k};{'x' if k == 7 else k};{k}.5 m;{k % 2}"
        for k in range(1, 99)
    ]
    Path("table.csv").write_text("\n".join(["price;word;x;length;label", *rows]) + "\n")
    message = command.refuses("train", "table.csv", "--target", "label", "--decimal", ".")
    assert "column 'price' cannot be used: all its values are numbers except 'call us'." in message
    assert "column 'word' cannot be used: it is text with 98 distinct values" in message
    assert "The same is true of 'length'." in message
    assert "column 'x' cannot be used: all its values are numbers except 'x'." in message
    assert len(message) < 900


def test_numbers_of_several_forms_are_told_of(command):
    rows = [f"{k}.{k % 1000:03},5;{k % 2}" for k in range(1, 99)]
    Path("table.csv").write_text("\n".join(["x;label", *rows]) + "\n")
    message = command.refuses("train", "table.csv", "--target", "label")
    assert "numbers with signs or marks, such as '1.001,5'. Say which mark is the" in message
    command.succeeds("train", "table.csv", "--target", "label", "--decimal", ",")
