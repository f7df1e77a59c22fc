"""What the fields of text files are taken for: numbers, dates, booleans, words."""

from __future__ import annotations

import datetime
import itertools
import json
import random
from pathlib import Path

import numpy as np
import pytest
from command import command_fixture  # noqa: F401

from gpustump.cli.errors import InputError
from gpustump.cli.read.files import read_table
from gpustump.cli.read.table import NUMBER, TEXT, Request, Wanted

pl = pytest.importorskip("polars")

from gpustump.cli.read.fields import Rules, typed  # noqa: E402


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def read(text: str | bytes, name: str = "table.csv", request: Request | None = None):
    Path(name).write_bytes(text.encode() if isinstance(text, str) else text)
    return read_table(name, request)


def column(fields: list[str], **options):
    """The column that holds these fields, beside another one."""
    rows = [f"{field}\t{k}" for k, field in enumerate(fields)]
    kinds = {0: options.pop("kind")} if "kind" in options else {}
    request = Request(lambda header: Wanted(kinds=kinds), **options)
    return read("\n".join(["x\tk", *rows]) + "\n", "table.tsv", request).columns[0]


def number_texts(n: int) -> list[str]:
    r = random.Random(0)
    kinds = [
        lambda: repr(r.gauss(0, 1)),
        lambda: f"{r.uniform(-1, 1):.30f}",
        lambda: f"{r.gauss(0, 1) * 10.0 ** r.randint(-300, 300):.17E}",
        lambda: str(r.randint(-(2**63), 2**63 - 1)),
        lambda: str(r.randint(2**64, 2**70)),
        lambda: repr(5e-324 * r.randint(1, 2**52)),
        lambda: f"{r.randint(0, 2**53) * 2 + 1}e{r.randint(-20, 20)}",
        lambda: r.choice(["inf", "-inf", "Infinity", "1.", ".5", "+3", "-0", "1e400"]),
    ]
    return [r.choice(kinds)() for _ in range(n)]


def test_numbers_are_the_floats_that_python_reads():
    fields = number_texts(20_000)
    found = column(fields)
    assert found.kind == "number"
    assert np.array_equal(found.numbers(), np.asarray(list(map(float, fields))))


START = datetime.datetime(2020, 2, 28, 22, 0)
DAYS = [START + datetime.timedelta(hours=7 * k, seconds=k) for k in range(30)]
EPOCH, SECOND = datetime.datetime(1970, 1, 1), datetime.timedelta(seconds=1)


@pytest.mark.parametrize(
    ("kind", "write", "value"),
    [
        ("date", "%Y-%m-%d", lambda d: (d - EPOCH).days),
        ("date", "%d/%m/%Y", lambda d: (d - EPOCH).days),
        ("datetime", "%Y-%m-%d %H:%M:%S", lambda d: (d - EPOCH) / SECOND),
        ("datetime", "%Y-%m-%dT%H:%M:%S.250", lambda d: (d - EPOCH) / SECOND + 0.25),
        ("datetime", "%Y-%m-%dT%H:%M:%SZ", lambda d: (d - EPOCH) / SECOND),
        ("datetime", "%Y-%m-%dT%H:%M:%S+02:00", lambda d: (d - EPOCH) / SECOND - 7200),
        ("time", "%H:%M:%S", lambda d: (d.hour * 60 + d.minute) * 60 + d.second),
    ],
)
def test_dates_and_times_are_known_among_missing_values(kind, write, value):
    fields = [day.strftime(write) for day in DAYS]
    fields[5] = f'"{fields[5]}"'
    fields[6] = f" {fields[6]} "
    expected = [np.nan if k == 3 else value(day) for k, day in enumerate(DAYS)]
    for fields[3] in ("", "NA", " - ", "unknown", '""'):
        found = column(fields)
        assert found.kind == kind
        assert np.array_equal(found.numbers(), np.asarray(expected, dtype=float), equal_nan=True)


def test_a_column_is_of_the_kind_that_all_of_its_fields_are():
    for fields, kind in (
        (["true", "FALSE", "True", "", "?"], "boolean"),
        (['"1"', " 2 ", "NaN", "-3"], "number"),
        (["", "", ""], "empty"),
        (["?", "?", "-"], "text"),
        (["yes", "no", "unknown"], "text"),
        (["2020-01-05", "2020-13-45"], "text"),
        (["10.0.0.1", "10.0.0.2"], "text"),
        (["01234", "98765", "00501"], "text"),
        (["1234", "98765", "00501"], "number"),
        (["01", "02", "12"], "number"),
        (["00.5", "01.5"], "number"),
        (["1_000", "2_000"], "text"),
    ):
        assert column(fields).kind == kind


MARKS = "? - . -- * n/a N/A #N/A <NA> NA nan NULL none None Unknown missing -1.#IND #DIV/0!"


def test_the_usual_marks_of_missing_values_do_not_make_numbers_text():
    for mark in MARKS.split():
        found = column(["1.5", mark, "3", f" {mark} "])
        assert found.kind == "number"
        assert np.array_equal(found.numbers(), [1.5, np.nan, 3, np.nan], equal_nan=True)


def test_words_are_no_missing_values_among_words():
    found = column(["red", "unknown", "-", "none", "None", "NA", ""])
    assert found.distinct() == ["-", "none", "red", "unknown"]
    assert found.missing().tolist() == [False] * 4 + [True] * 3


def test_a_column_known_to_hold_numbers_may_hold_marks_alone_or_leading_zeros():
    assert column(["?", "-"], kind=NUMBER).kind == "empty"
    assert column(["01234", "98765"], kind=NUMBER).numbers().tolist() == [1234, 98765]
    assert column(["1", "2"], kind=TEXT).distinct() == ["1", "2"]


def test_decimal_commas_are_known_between_tabs_where_no_number_has_a_point():
    assert column(["1,5", "-2", ",25", "?", "3,"]).numbers()[:3].tolist() == [1.5, -2.0, 0.25]
    assert column(["1,5", "2.5"]).kind == "text"
    assert column(["1,5,6", "2"]).kind == "text"
    assert column(["1,5", "2"], decimals=".").kind == "text"
    assert column(["1.234", "5.67"], decimals=",").kind == "text"
    assert column(["1234", "5,5e3"], decimals=",").numbers().tolist() == [1234, 5500]


def test_a_late_field_decides_as_an_early_one_does():
    for late, wanted in (("$1,234.5", 1234.5), ("5", 5.0)):
        found = column([*["$7"] * 200, late], decimals=".")
        assert found.numbers().tolist() == [7.0] * 200 + [wanted]
    assert column([*["$7"] * 200, "€8"], decimals=".").kind == "text"
    assert column([*["00501"] * 200, "7"]).numbers()[-1] == 7
    assert column([*["1,5"] * 200, "0001"]).numbers()[-1] == 1


def test_blank_lines_are_no_rows_unless_there_is_one_column():
    assert read("a,b\n\n1,2\n\n\n3,4\n\n\n").n_rows == 2
    quoted = 'a;b\r\n\r\n"x ""1""; \n\ny";2\r\n\r\n3;4\r\n\r\n'
    assert read(quoted).columns[0].distinct() == ["3", 'x "1"; \n\ny']
    for text in ("a\n1\n\n2\n\n", 'a\n1\n\n2"\n\n'):
        assert read(text).columns[0].missing().tolist() == [False, True, False]


def test_a_lone_quote_within_a_field_is_a_part_of_it():
    for other in ("x", '6" x'):
        assert read(f'a,b\n1,5" pipe\n2,{other}\n').columns[1].distinct() == ['5" pipe', other]
    for more in ("", '7",x\n'):
        table = read(f'size ("),b\n5",x\n6,y\n{more}')
        assert table.names == ['size (")', "b"]
        assert table.columns[0].distinct()[:2] == ['5"', "6"]


def test_a_quote_that_is_never_closed_is_named_by_its_line():
    with pytest.raises(InputError, match=r"a quote .* in the row that begins in line 3 "):
        read('a,b\n1,2\n3,"x\n5,6\n')


def test_ends_of_lines_and_a_byte_order_mark_change_nothing():
    for end, mark in itertools.product(("\n", "\r\n", "\r"), ("", "\ufeff")):
        table = read(mark + end.join(["a,b", "x,1", "y,2"]) + end)
        assert table.names == ["a", "b"]
        assert [column.distinct() for column in table.columns] == [["x", "y"], [1, 2]]


def test_the_commonest_mark_in_the_first_line_separates():
    assert read('"a, b";c;d,e\n1;2;3\n').names == ["a, b", "c", "d,e"]
    assert read("a\n1\n").names == ["a"]


def test_only_line_feeds_end_lines_in_files_with_lone_quotes():
    table = read('a,b\n1,5" x\u2028y\x0cz\n2,w\n')
    assert table.columns[1].distinct() == ['5" x\u2028y\x0cz', "w"]
    with pytest.raises(InputError, match=r"carriage return is out of place in .* line 3"):
        read('a,b\n1,5" x\n2,u\rv\n')


def test_very_long_names_and_fields_are_read():
    name, field = "n" * 200_000, "f" * 300_000
    table = read(f'{name},b\n{field},5" x\n1,2\n')
    assert table.names == [name, "b"]
    assert table.columns[0].distinct() == ["1", field]


WRITTEN = {
    "comma between thousands": (["102,858.51", "7", "-1,000,000"], ".", [102858.51, 7, -1e6]),
    "point between thousands": (["102.789,30", "1.234", "-5,5"], ",", [102789.3, 1234, -5.5]),
    "blanks": (["1 234,5", "2\u202f000\u00a0000", "3"], None, [1234.5, 2e6, 3]),
    "apostrophes": (["1'234.5", "2’000", "3"], None, [1234.5, 2000, 3]),
    "dollars": (["$102,858.51", "-$5", "$-7.5", "$ 1"], ".", [102858.51, -5, -7.5, 1]),
    "euros": (["12,50 €", "-3 €", "1000€", "n/a"], None, [12.5, -3, 1000, np.nan]),
    "percent": (["74.4%", "-3 %", "0%"], None, [74.4, -3, 0]),
    "whole": (["£1,234", "£5", ""], ".", [1234, 5, np.nan]),
}


def test_numbers_are_read_as_people_write_them():
    for fields, decimals, wanted in WRITTEN.values():
        np.testing.assert_array_equal(column(fields, decimals=decimals).numbers(), wanted)


def test_what_could_be_two_numbers_or_none_stays_text():
    for fields, decimals in (
        (["$5", "€6"], None),  # amounts that do not compare
        (["5%", "6"], None),
        (["$5", "5%"], None),
        (["1,23,456", "2"], "."),
        (["1,2345", "2"], "."),
        (["1,234.5,6", "2"], "."),
        (["1 23", "2"], None),
        (["1,234", "1.234,5"], "."),
        (["102.789,30", "1.234"], None),  # 1.234 could be either
        (["1$2", "3"], None),
        (["$", "3"], None),
        (["$$5", "3"], None),
        (["１２", "3"], None),  # digits of other scripts
        (["٣٫٥", "$٣"], "."),
        (["３１.１２.２０２４", "01.02.2024"], None),
    ):
        assert column(fields, decimals=decimals).kind == "text"


def test_commas_that_may_stand_between_thousands_are_told_of(command):
    options = ("train", "t.csv", "--target", "y", "--rounds", 1)
    for given, is_doubtful in (
        (["1,234", "1,5"], False),
        (["0,123", "1,234"], False),
        (["1.234", "5"], False),
        (["$1,234", "$5"], True),
        (["999", "1,234", "12,345"], True),
    ):
        rows = "".join(f"{text};{int(text == given[0])}\n" for text in given * 9)
        Path("t.csv").write_text(f"x;y\n{rows}")
        outcome = command(*options)
        assert outcome.code == 0
        assert ("the commas of 'x', such as '1,234', may be" in outcome.err) is is_doubtful
    for mark in (".", ","):
        command.succeeds(*options, "--decimal", mark)


FORMATS = {"dmy": "%d/%m/%Y", "mdy": "%m/%d/%Y", "ymd": "%Y/%m/%d"}


def moments(n: int, latest_day: int = 28) -> list[datetime.datetime]:
    r = random.Random(n)
    return [
        datetime.datetime(
            r.randint(1970, 2040), r.randint(1, 12), r.randint(1, latest_day),
            r.randint(0, 23), r.randint(0, 59), r.randint(0, 59),
        )
        for _ in range(n)
    ]  # fmt: skip


def dates(texts: list[str], order: str | None = None):
    return typed(pl.Series("x", texts), Rules(date_order=order))


@pytest.mark.parametrize("order", FORMATS)
def test_dates_of_a_known_order_are_those_of_python(order):
    times = ("", " %H:%M", "T%H:%M:%S", "  %I:%M %p", " %I:%M:%S %p")
    for mark, year, time in itertools.product("/-.", ("%Y", "%y"), times):
        form = FORMATS[order].replace("/", mark).replace("%Y", year) + time
        texts = [own.strftime(form) for own in moments(60)]
        bare = [text.replace(f"{mark}0", mark).removeprefix("0") for text in texts]
        wanted = [datetime.datetime.strptime(text, form) for text in texts]
        for given in texts, bare if year == "%Y" else texts:
            found = dates([*given, "n/a"], order)
            assert found.doubt is None
            days = found.values.cast(pl.Datetime).to_list()
            assert days == [*wanted, None]


@pytest.mark.parametrize("order", ["dmy", "mdy"])
@pytest.mark.parametrize("at", [0, 57])
def test_one_value_above_12_anywhere_settles_what_all_begin_with(order, at):
    texts = [own.strftime(FORMATS[order]) for own in moments(60, latest_day=12)]
    texts.insert(at, datetime.datetime(2001, 5, 13).strftime(FORMATS[order]))
    found = dates(texts)
    assert found[1:] == (order, None)
    wanted = [datetime.datetime.strptime(text, FORMATS[order]).date() for text in texts]
    assert found.values.to_list() == wanted


def test_where_values_leave_the_order_open_the_day_comes_first_and_points_make_it_sure():
    for texts, order, is_sure in (
        (["01/02/2019", "12/11/2020"], "dmy", False),
        (["01-02-2019", "12-11-2020"], "dmy", False),
        (["01.02.2019", "12.11.2020"], "dmy", True),
        (["24-03-15", "25-04-16"], "dmy", False),
        (["24-03-15", "25-04-98"], "dmy", True),
        (["24-03-15", "99-04-16"], "ymd", True),
        (["24.03.15", "25.04.16"], "dmy", True),
        (["03/15/24", "04/16/25"], "mdy", True),
        (["03/10/24", "04/11/05"], "dmy", False),
        (["65-8-1", "06-5-19"], "ymd", True),  # no year has one digit
        (["65-8-1", "99-12-31", "00-1-2"], "ymd", True),
    ):
        found = dates(texts)
        assert found[1:] == (order, None if is_sure else texts[0])
        year = "%Y" if len(texts[0]) == 10 else "%y"
        form = FORMATS[order].replace("/", texts[0][2]).replace("%Y", year)
        wanted = [datetime.datetime.strptime(text, form).date() for text in texts]
        assert found.values.to_list() == wanted


def test_what_is_no_date_in_any_order_stays_text():
    for texts in (
        ["16:9", "4:3"],  # a ratio, and no time of day
        ["10.4.1", "9.2.3"],  # versions, and no days of the years 1 and 3
        ["10.4.1", "11.2.3"],
        ["13/01/2019", "01/13/2019"],  # no order fits both
        ["31/02/2019", "01/02/2019"],  # no such day
        ["01/02/2019", "soon"],
        ["01/02/2019 25:00", "01/02/2019 12:00"],
    ):
        found = dates(texts)
        assert found.values.to_list() == texts
        assert found.date_order is None


@pytest.mark.parametrize("order", ["dmy", "mdy"])
@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_a_model_of_written_dates_is_that_of_iso_dates_and_remembers_their_order(
    command, order, ending
):
    days = [own.date() for own in moments(80)]

    def write(name: str, form: str, rows: list[datetime.date]) -> str:
        labels = ["late" if own.month > 6 else "early" for own in rows]
        frame = pl.DataFrame({"day": [own.strftime(form) for own in rows], "label": labels})
        (frame.write_csv if ending == ".csv" else frame.write_ndjson)(name + ending)
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


def test_dates_that_may_be_read_in_two_ways_are_told_and_the_option_settles_them(command):
    rows = [f"{m:02}/01/{y},{int(m > 5)}" for y in range(2010, 2016) for m in range(1, 13)]
    Path("table.csv").write_text("\n".join(["day,label", *rows]))
    options = ("train", "table.csv", "--target", "label", "--force")
    (warning,) = command(*options).err.splitlines()
    assert "the dates of 'day', such as '01/01/2010', may be in another order" in warning
    assert "they were read with the day first" in warning
    assert "--date-order" in warning
    for more, order in (("--quiet", "dmy"), ("--date-order=mdy", "mdy")):
        command.succeeds(*options, more)
        model = json.loads(Path("model.json").read_text())
        assert model["details"]["encoding"]["columns"][0]["date_order"] == order
    command.succeeds("audit", "model.json", "table.csv")


def test_an_order_that_a_value_contradicts_is_refused(command):
    Path("table.csv").write_text("day,label\n01/02/2019,0\n13/02/2019,1\n")
    message = command.refuses("train", "table.csv", "--target", "label", "--date-order", "mdy")
    assert "'13/02/2019' in column 'day' is no date that begins with the month" in message
    assert "must be dmy, mdy or ymd" in command.refuses(
        "train", "table.csv", "--target", "label", "--date-order", "us"
    )


def test_the_reader_says_how_numbers_are_written_and_that_names_are_repeated():
    found = read('a,b,a,a_2\n"$1,200",1%,3,4\n$5,2%,6,7\n')
    assert found.names == ["a", "b", "a_3", "a_2"]
    assert found.notes == (
        "several columns are named 'a': one of them is 'a_3' here",
        "numbers with decimal commas, signs, or marks between thousands in 'a', 'b'",
    )
    assert found.columns[0].numbers().tolist() == [1200, 5]
    assert read("a;b\n1,5;2\n2;3\n").notes == (
        "numbers with decimal commas, signs, or marks between thousands in 'a'",
    )
    assert read("a;b\n1;2\n").notes == ()


def test_a_line_that_is_no_json_is_named():
    for broken in ('{"a":2,"label":', "{'a': 1}"):
        with pytest.raises(InputError, match=r"line 3 is no JSON \("):
            read('{"a":1}\n \n' + broken + '\n{"a":3}\n', "table.jsonl")


def test_a_name_that_several_columns_have_now_is_refused_if_the_model_needs_it(command):
    rows = [f"{'yn'[k % 2]},{k % 2},{k}" for k in range(20)]
    Path("table.csv").write_text("\n".join(["label,a,b", *rows]))
    command.succeeds("train", "table.csv", "--target", "label")
    Path("twice.csv").write_text("label,a,a,b,c,c\ny,1,0,3,4,5\n")
    message = command.refuses("predict", "model.json", "twice.csv")
    assert "twice.csv has several columns named 'a', which the model needs" in message
    Path("others.csv").write_text("label,a,b,c,c\ny,1,3,4,5\n")
    command.succeeds("predict", "model.json", "others.csv")
    Path("twice.csv").write_text("\n".join(["label,a,a", *rows]))
    command.succeeds("train", "twice.csv", "--target", "label", "--force")
    command.succeeds("predict", "model.json", "twice.csv")
