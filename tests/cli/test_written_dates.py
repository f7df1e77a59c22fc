"""Dates that begin with a day, a month or a year are the days that they name, or a question."""

from __future__ import annotations

import datetime
import json
import random
from pathlib import Path

import pytest
from command import command_fixture  # noqa: F401

pl = pytest.importorskip("polars")

from gpustump.cli.read.fields import Rules, typed  # noqa: E402

FORMATS = {"dmy": "%d/%m/%Y", "mdy": "%m/%d/%Y", "ymd": "%Y/%m/%d"}


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def moments(n: int, latest_day: int = 28) -> list[datetime.datetime]:
    r = random.Random(n)
    return [
        datetime.datetime(
            r.randint(1970, 2040), r.randint(1, 12), r.randint(1, latest_day),
            r.randint(0, 23), r.randint(0, 59), r.randint(0, 59),
        )
        for _ in range(n)
    ]  # fmt: skip


def read(texts: list[str], order: str | None = None):
    return typed(pl.Series("x", texts), Rules(date_order=order))


@pytest.mark.parametrize("order", FORMATS)
@pytest.mark.parametrize("mark", "/-.")
@pytest.mark.parametrize("year", ["%Y", "%y"])
@pytest.mark.parametrize("time", ["", " %H:%M", "T%H:%M:%S", "  %I:%M %p", " %I:%M:%S %p"])
def test_dates_of_a_known_order_are_those_of_python(order, mark, year, time):
    form = FORMATS[order].replace("/", mark).replace("%Y", year) + time
    texts = [own.strftime(form) for own in moments(60)]
    bare = [text.replace(f"{mark}0", mark).removeprefix("0") for text in texts]
    wanted = [datetime.datetime.strptime(text, form) for text in texts]
    for given in texts, bare if year == "%Y" else texts:
        found = read([*given, "n/a"], order)
        assert found.date_order.is_sure
        days = found.values.cast(pl.Datetime).to_list()
        assert days == [*wanted, None]


@pytest.mark.parametrize("order", ["dmy", "mdy"])
@pytest.mark.parametrize("at", [0, 57])
def test_one_value_above_12_anywhere_settles_what_all_begin_with(order, at):
    texts = [own.strftime(FORMATS[order]) for own in moments(60, latest_day=12)]
    texts.insert(at, datetime.datetime(2001, 5, 13).strftime(FORMATS[order]))
    found = read(texts)
    assert found.date_order[:2] == (order, True)
    wanted = [datetime.datetime.strptime(text, FORMATS[order]).date() for text in texts]
    assert found.values.to_list() == wanted


def test_where_no_value_is_above_12_the_day_comes_first_and_only_points_make_it_sure():
    for mark, is_sure in ("/", False), ("-", False), (".", True):
        found = read([f"01{mark}02{mark}2019", f"12{mark}11{mark}2020"])
        assert found.date_order == ("dmy", is_sure, f"01{mark}02{mark}2019")
        assert found.values.to_list() == [datetime.date(2019, 2, 1), datetime.date(2020, 11, 12)]


@pytest.mark.parametrize(
    "texts",
    [
        ["13/01/2019", "01/13/2019"],  # no order fits both
        ["31/02/2019", "01/02/2019"],  # no such day
        ["01/02/2019", "soon"],
        ["01/02/2019 25:00", "01/02/2019 12:00"],
    ],
)
def test_what_is_no_date_in_any_order_stays_text(texts):
    found = read(texts)
    assert found.values.to_list() == texts
    assert found.date_order is None


@pytest.mark.parametrize("order", ["dmy", "mdy"])
@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_a_model_of_written_dates_is_that_of_iso_dates_and_remembers_their_order(
    command, order, ending
):
    days = [own.date() for own in moments(80)]

    def write(name: str, form: str, rows: list[datetime.date]) -> str:
        frame = pl.DataFrame(
            {
                "day": [own.strftime(form) for own in rows],
                "label": ["late" if own.month > 6 else "early" for own in rows],
            }
        )
        if ending == ".csv":
            frame.write_csv(name + ending)
        else:
            frame.write_ndjson(name + ending)
        return name + ending

    models = {}
    for name, form in (("iso", "%Y-%m-%d"), ("own", FORMATS[order])):
        outcome = command.succeeds(
            "train", write(name, form, days), "--target", "label", "-o", f"{name}.json"
        )
        assert outcome.row("encoded") == "day: date, in days since 1970-01-01"
        models[name] = json.loads(Path(f"{name}.json").read_text())
    assert models["own"]["model"] == models["iso"]["model"]
    assert models["own"]["details"]["encoding"]["columns"][0]["date_order"] == order
    assert "date_order" not in models["iso"]["details"]["encoding"]["columns"][0]

    early = [own for own in days if own.day <= 12]  # their text alone does not say it
    plain = command.succeeds("predict", "iso.json", write("few_iso", "%Y-%m-%d", early))
    written = command.succeeds("predict", "own.json", write("few_own", FORMATS[order], early))
    assert written.out == plain.out

    other = FORMATS["mdy" if order == "dmy" else "dmy"]
    name = write("other", other, [datetime.date(2020, 1, 2), datetime.date(2020, 10, 25)])
    message = command.refuses("predict", "own.json", name)
    first = {"dmy": "day", "mdy": "month"}[order]
    value = datetime.date(2020, 10, 25).strftime(other)
    assert f"{value!r} in column 'day' is no date that begins with the {first}" in message


def test_dates_that_may_be_read_in_two_ways_are_told_and_the_option_settles_them(command):
    rows = [f"{m:02}/01/{y},{int(m > 5)}" for y in range(2010, 2016) for m in range(1, 13)]
    Path("table.csv").write_text("\n".join(["day,label", *rows]))
    options = ("train", "table.csv", "--target", "label", "--force")
    (warning,) = command(*options).err.splitlines()
    assert "the dates of 'day', such as '01/01/2010', may begin with the day" in warning
    assert "--date-order" in warning
    command.succeeds(*options, "--quiet")
    model = json.loads(Path("model.json").read_text())
    assert model["details"]["encoding"]["columns"][0]["date_order"] == "dmy"
    command.succeeds(*options, "--date-order", "mdy")
    model = json.loads(Path("model.json").read_text())
    assert model["details"]["encoding"]["columns"][0]["date_order"] == "mdy"
    command.succeeds("audit", "model.json", "table.csv")


def test_an_order_that_a_value_contradicts_is_refused(command):
    Path("table.csv").write_text("day,label\n01/02/2019,0\n13/02/2019,1\n")
    message = command.refuses("train", "table.csv", "--target", "label", "--date-order", "mdy")
    assert "'13/02/2019' in column 'day' is no date that begins with the month" in message
    assert "must be dmy, mdy or ymd" in command.refuses(
        "train", "table.csv", "--target", "label", "--date-order", "us"
    )
