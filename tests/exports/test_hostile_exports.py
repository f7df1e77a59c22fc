"""Names and labels come from a model file: whatever they hold, an export is code of ours alone."""

from __future__ import annotations

import math
import re
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import exported
import numpy as np
import pytest
from exported import Answers, assert_same, expected
from hypothesis import given, settings
from hypothesis import strategies as st

from gpustump import AdaBoostClassifier, Member, RegionMember, Split, Stump, StumpEnsemble
from gpustump.exports import to_c, to_onnx, to_sql
from gpustump.learners.step_table import VOTE_UNIT
from gpustump.model.encoding import Encoding, InputColumn

HOSTILE = (
    "*/ int evil; /*",
    "// \\",
    "ends in a backslash \\",
    "??/",
    '"; DROP TABLE data; --',
    "'); DELETE FROM data; --",
    "'''\"\"\"",
    "a\nb\r\nc\td\x0b\x0c\x1b[2J\x7f\x85\u2028\u2029",
    "\u202e right to left",
    "@name@ %s {0} ${HOME} `id` \\u0041 \\x41 \\N{BEL}",
    "☃ é 漢字 \U0001f600",
    "x" * 1000,
    "é" * 1000,
    "../../etc/passwd",
    "<script>alert(1)</script>",
    "SELECT",
    "",
    " ",
)


def hostile_model(texts: tuple[str, ...] = HOSTILE) -> StumpEnsemble:
    """The texts are names of columns, values of a column and labels."""
    names = [f"{text}1" for text in texts]
    numbers = [InputColumn(name, place, "number") for place, name in enumerate(names)]
    values = tuple(sorted(texts))
    columns = (*numbers, InputColumn("text", len(names), "numbered", values))
    encoding = Encoding(columns, len(columns), True)
    stumps = [Stump(j, float(j), 1, -1, 0.25) for j in range(len(columns))]
    votes = tuple(float(2**j) for j in range(len(stumps)))
    scale = 2.0**-10
    members = tuple(
        Member(tuple(stumps[k:]), tuple(vote * scale for vote in votes[k:]))
        for k in range(len(texts) if len(texts) > 2 else 1)
    )
    return StumpEnsemble(
        members, len(columns), tuple(texts), encoding.feature_names,
        details={"encoding": encoding.as_details()},
    )  # fmt: skip


MODEL = hostile_model()


def table() -> list[list[Any]]:
    random = np.random.default_rng(3)
    numbers = random.integers(-5, 25, size=(60, len(HOSTILE))).astype(float).tolist()
    text = [[*HOSTILE, "other"][k] for k in random.integers(len(HOSTILE) + 1, size=60)]
    return [[*row, own] for row, own in zip(numbers, text, strict=True)]


@pytest.fixture(scope="module")
def wanted() -> Answers:
    pl = pytest.importorskip("polars")
    names = [column.name for column in MODEL.encoding.columns]
    frame = pl.DataFrame(table(), schema=names, orient="row")
    return expected(MODEL, frame)


def test_c_holds_only_ascii_and_answers(wanted: Answers, tmp_path: Path) -> None:
    source = to_c(MODEL)
    assert source.isascii()
    assert {character for character in source if not character.isprintable()} == {"\n"}
    code = [line for line in source.splitlines() if not line.startswith("//")]
    strings = r'"(?:[^"\\]|\\.)*"'
    assert "evil" in source
    assert "evil" not in re.sub(strings, "", "\n".join(code))
    library = exported.Compiled([MODEL], tmp_path)
    X = [[*row[:-1], library.code(0, len(HOSTILE), row[-1])] for row in table()]
    assert_same(library.answers(0, MODEL, np.asarray(X)), wanted)


@pytest.mark.parametrize(
    ("language", "flags"),
    [("c", ("-std=c99",)), ("c", ("-m64", "-O2", "-std=gnu17")), ("c++", ("-std=c++11",))],
)
def test_c_compiles_without_warnings_and_is_c_plus_plus(language, flags, tmp_path: Path) -> None:
    (tmp_path / "model.h").write_text(to_c(MODEL))
    code = '#include "model.h"\n#include "model.h"\nint main(void) { return 0; }\n'
    command = [exported.compiler(language), *exported.FLAGS, *flags, "-x", language]
    done = subprocess.run(
        [*command, "-c", "-", "-o", "model.o"],
        input=code, text=True, capture_output=True, cwd=tmp_path,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("flag", ["-ffast-math", "-ffinite-math-only"])
def test_c_refuses_a_compiler_that_takes_nan_for_impossible(flag: str, tmp_path: Path) -> None:
    (tmp_path / "model.h").write_text(to_c(MODEL))
    done = subprocess.run(
        [exported.compiler("c"), "-x", "c", flag, "-fsyntax-only", "model.h"],
        text=True, capture_output=True, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode != 0
    assert "-ffast-math assumes that no value is missing" in done.stderr


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
def test_sql_is_one_select_and_answers(dialect: str, wanted: Answers) -> None:
    table_name = 'my "table"; --\n'
    library = sqlite3 if dialect == "sqlite" else pytest.importorskip("duckdb")
    connection = library.connect(":memory:")
    names = [column.name for column in MODEL.encoding.columns]
    types = ["DOUBLE"] * len(HOSTILE) + ["VARCHAR"]
    exported.fill(connection, names, types, table(), table_name)
    assert_same(
        exported.sql_answers(connection, MODEL, dialect, table_name, probabilities=False), wanted
    )
    quoted = exported.quoted_name(table_name)
    assert connection.execute(f"SELECT count(*) FROM {quoted}").fetchone() == (60,)
    connection.close()


def test_onnx_answers(wanted: Answers) -> None:
    session = exported.session(MODEL, "float32")
    X = np.asarray([row[:-1] for row in table()], dtype=np.float32)
    text = np.asarray([[row[-1]] for row in table()], dtype=object)
    labels, probabilities, scores = session.run(None, {"X": X, "text": text})
    assert_same(Answers(labels.tolist(), scores, probabilities), wanted)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30).filter(
    lambda text: not text.endswith("\0")  # NumPy drops it, so no model has such a label
)


@settings(max_examples=40, deadline=None)
@given(st.lists(TEXT, min_size=2, max_size=4, unique=True))
def test_no_text_escapes_from_sqlite(texts: list[str]) -> None:
    pl = pytest.importorskip("polars")
    model = hostile_model(tuple(texts))
    rows = [[float(k)] * len(texts) + [text] for k, text in enumerate([*texts, "other"])]
    if any("\0" in text for text in texts):
        with pytest.raises(ValueError, match="can be called"):
            to_sql(model, "sqlite")
        return
    folded = {text.lower() for text in texts}
    if len(folded) < len(texts) or any(own.startswith("gpustump_") for own in folded):
        return  # SQLite takes names for one, or could take a column for one that the export adds
    connection = sqlite3.connect(":memory:")
    names = ", ".join(exported.quoted_name(own.name) for own in model.encoding.columns)
    connection.execute(f"CREATE TABLE data ({names})")
    for row in rows:
        connection.execute(f"INSERT INTO data VALUES ({', '.join('?' * len(row))})", row)
    found = connection.execute(to_sql(model, "sqlite")).fetchall()
    connection.close()
    frame = pl.DataFrame(rows, schema=[own.name for own in model.encoding.columns], orient="row")
    wanted = expected(model, frame).scores.reshape(len(rows), -1)
    assert [list(row[-1 - model.n_outputs : -1]) for row in found] == wanted.tolist()
    assert all(row[-1] in texts for row in found)


def test_what_a_language_cannot_hold_is_refused() -> None:
    with_nul = hostile_model(("a\0b", "c"))
    with pytest.raises(ValueError, match="the character NUL, which 'a\\\\x00b' holds"):
        to_c(with_nul)
    with pytest.raises(ValueError, match=r"can be called 'a\\x00b1'; rename it"):
        to_sql(with_nul)
    labelled = StumpEnsemble((Member((Stump(0, 0.0, 1, 1, 0.25),), (1.0,)),), 1, ("a\0c", "b"))
    with pytest.raises(ValueError, match="DuckDB has no text with the character NUL"):
        to_sql(labelled, "duckdb")
    wide = StumpEnsemble(labelled.members, 1, (0, 2**64 - 1))
    assert exported.by_onnx(wide, np.asarray([[-1.0]])).labels == [2**64 - 1]
    with pytest.raises(ValueError, match="the label 18446744073709551615 is no BIGINT"):
        to_sql(wide)


@pytest.mark.parametrize("export", [to_c, to_onnx, to_sql])
def test_what_is_no_model_or_none_that_a_file_holds_is_refused(export: Any) -> None:
    if export is to_onnx:
        pytest.importorskip("onnx")
    with pytest.raises(TypeError, match="model must be a StumpEnsemble or a fitted estimator"):
        export("model.json")
    stump = Stump(0, 0.0, 1, 1, 0.25)
    with pytest.raises(ValueError, match=r"votes must be whole multiples of 2\*\*-36"):
        export(StumpEnsemble((Member((stump,), (0.1,)),), 1))
    with pytest.raises(ValueError, match=r"classes\[1\] must be .* that is finite; got inf"):
        export(StumpEnsemble((Member((stump,), (1.0,)),), 1, (0.5, math.inf)))
    stumps = (stump, Stump(1, 0.0, 1, 1, 0.25))
    with pytest.raises(ValueError, match="the largest that every export holds exactly is 131072"):
        export(StumpEnsemble((Member(stumps, (2.0**17, VOTE_UNIT)),), 2))
    votes = np.asarray([[[2.0**60], [1.0], [0.0]]])
    wide = RegionMember((Split(0, 0.0),), votes, np.zeros(1))
    with pytest.raises(ValueError, match=r"reach 1.15\d*e\+18; .* multiples of 1\. Scale"):
        export(StumpEnsemble((wide,), 1, (), link="identity"))
    classifier = AdaBoostClassifier(n_estimators=2).fit([[0.0], [1.0]], [0, 1])
    assert str(export(classifier)) == str(export(classifier.model_))


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (("a", "A"), {}, "SQLite takes 'a' and 'A' for one column"),
        (("a", "a"), {"dialect": "postgresql"}, "takes 'a' and 'a' for one column"),
        (("a", "b"), {"dialect": "oracle"}, "dialect must be sqlite, duckdb, postgresql"),
        (("a", "b"), {"dialect": ["data"]}, "dialect must be sqlite, duckdb, postgresql; got "),
        (("a", "b"), {"name": ["data"]}, "name must be a str; got "),
        (("a", "b"), {"table": ["data"]}, "table must be a str; got "),
        (("p_a", "b"), {"name": "P"}, "name must not begin the name of a column"),
        (("a", "b"), {"table": "a\0"}, "no column or table in SQL can be called"),
        (("é" * 32, "é" * 31), {"dialect": "postgresql"}, "PostgreSQL takes 'é+' and 'é+' for one"),
        (("a", "b"), {"dialect": "postgresql", "name": "n" * 50}, "name is too long: PostgreSQL"),
    ],
)
def test_names_that_a_database_does_not_have_or_cannot_tell_apart_are_refused(
    columns: tuple[str, str], options: dict[str, Any], message: str
) -> None:
    stumps = (Stump(0, 0.0, 1, 1, 0.25), Stump(1, 0.0, 1, 1, 0.25))
    model = StumpEnsemble((Member(stumps, (1.0, 0.5)),), 2, feature_names=columns)
    with pytest.raises((ValueError, TypeError), match=message):
        to_sql(model, **options)


@pytest.mark.parametrize("kind", ["date", "datetime", "time"])
@pytest.mark.parametrize("threshold", [-1e300, 1e12, -1e12])
def test_sql_refuses_times_that_no_calendar_has(kind: str, threshold: float) -> None:
    encoding = Encoding((InputColumn("at", 0, kind),), 1, True)
    model = StumpEnsemble(
        (Member((Stump(0, threshold, 1, 1, 0.25),), (1.0,)),), 1, (0, 1), ("at",),
        details={"encoding": encoding.as_details()},
    )  # fmt: skip
    with pytest.raises(ValueError, match=f"column 'at': SQL has no {kind} for the threshold"):
        to_sql(model)


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
@pytest.mark.parametrize("taken", ["score", "LABEL", "probability_1"])
def test_a_table_that_has_a_column_of_the_result_is_an_error(dialect: str, taken: str) -> None:
    """Otherwise an older model's score, which the table holds, would be taken for this model's."""
    model = StumpEnsemble((Member((Stump(0, 0.0, 1, 1, 0.25),), (1.0,)),), 1, (0, 1), ("a",))
    library: Any = sqlite3 if dialect == "sqlite" else pytest.importorskip("duckdb")
    connection = library.connect(":memory:")
    connection.execute(f"CREATE TABLE data (a REAL, gpustump_{taken} INTEGER)")
    connection.execute("INSERT INTO data VALUES (-1.0, -5)")
    with pytest.raises(library.Error, match="mbiguous"):
        connection.execute(to_sql(model, dialect, probabilities=True))
    (row,) = connection.execute(to_sql(model, dialect, name="new", probabilities=True)).fetchall()
    assert row[:4] == (-1.0, -5, 2**36, 1)
    connection.close()


def test_sqlite_gives_no_answer_for_text_in_a_column_of_numbers() -> None:
    model = StumpEnsemble((Member((Stump(0, 0.0, 1, 1, 0.25),), (1.0,)),), 1, (0, 1), ("a",))
    connection = sqlite3.connect(":memory:")
    connection.execute('CREATE TABLE data (a, "true" DEFAULT 7)')
    values = [[-1], [1.5], ["1"], [b"1"], [None], [2**62]]
    connection.executemany("INSERT INTO data (a) VALUES (?)", values)
    found = connection.execute(to_sql(model, probabilities=True)).fetchall()
    connection.close()
    labels = [row[3] for row in found]
    assert labels == [1, 0, None, None, 1, 0]
    assert [row[2] is None for row in found] == [label is None for label in labels]
    assert [row[5] is None for row in found] == [label is None for label in labels]
