"""The SELECT for PostgreSQL, run by a server of its own where PostgreSQL is installed."""

from __future__ import annotations

import csv
import io
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import exported
import exported_columns as columns
import exported_models as numbers
import numpy as np
import pytest
from exported import Answers, assert_same, expected

from gpustump import StumpEnsemble
from gpustump.exports import to_sql
from gpustump.model.classes import label_array

pytestmark = pytest.mark.slow

_OPTIONS = ["-Xqt", "--csv", "-v", "ON_ERROR_STOP=1", "-U", "tester", "-d", "postgres", "-f", "-"]


class Server:
    """A server that listens in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def lines(self, script: str) -> list[list[str]]:
        """What a script of psql prints, as CSV."""
        done = subprocess.run(
            [_found("psql"), *_OPTIONS, "-h", self._folder],
            input=script.encode(),
            capture_output=True,
        )
        assert (done.stderr, done.returncode) == (b"", 0)
        return list(csv.reader(io.StringIO(done.stdout.decode(), newline="")))

    def answers(self, model: StumpEnsemble, table: str, rows: Sequence[Sequence[Any]]) -> Answers:
        """The answers for rows that are copied into a table of these columns."""
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([place, *map(_field, row)] for place, row in enumerate(rows))
        query = to_sql(model, "postgresql")
        found = self.lines(
            "SET client_min_messages = warning; DROP TABLE IF EXISTS data;\n"
            f"CREATE TABLE data (place_ INTEGER, {table});\n"
            f"COPY data FROM STDIN WITH (FORMAT csv, NULL '\\N');\n{text.getvalue()}\\.\n"
            f"{query} ORDER BY place_;\n"
        )
        if model.is_regression:
            units = np.asarray([row[-2] for row in found]).astype(np.int64)
            return exported.predicted(model, units, [float(row[-1]) for row in found])
        width = len(found[0]) - len(model.classes)
        scores = np.asarray([row[width - 1 - model.n_outputs : width - 1] for row in found])
        kinds = {"True": "t", "False": "f"}
        classes = label_array(model.classes).tolist()
        texts = {kinds.get(str(label), str(label)): label for label in classes}
        texts |= {str(label).removesuffix(".0"): label for label in classes if type(label) is float}
        units = scores.astype(np.int64)
        return Answers(
            [texts[row[width - 1]] for row in found],
            units[:, 0] if model.is_binary else units,
            np.asarray([row[width:] for row in found], dtype=np.float64),
        )


def _field(value: Any) -> Any:
    return "\\N" if value is None else value


def _found(program: str) -> str:
    places = [*Path("/usr/lib/postgresql").glob("*/bin"), *os.get_exec_path()]
    found = shutil.which(program, path=os.pathsep.join(map(str, places)))
    if found is None:
        pytest.skip(f"there is no {program}")
    return found


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    # Folders of pytest are closed to other users.
    folder = Path(subprocess.run(["mktemp", "-d"], capture_output=True, text=True).stdout.strip())
    who: dict[str, Any] = {"user": "nobody"} if os.geteuid() == 0 else {}  # it refuses to be root
    if who:
        shutil.chown(folder, "nobody")
    try:
        subprocess.run(
            [_found("initdb"), "-D", folder / "db", "-U", "tester", "-A", "trust", "-E", "UTF8"],
            check=True, capture_output=True, cwd=folder, **who,
        )  # fmt: skip
        running = subprocess.Popen(
            [_found("postgres"), "-D", folder / "db", "-k", folder, "-h", "", "-F"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder, **who,
        )  # fmt: skip
        try:
            _wait_for(folder)
            yield Server(folder)
        finally:
            running.terminate()
            running.wait(timeout=60)
    finally:
        shutil.rmtree(folder)


def _wait_for(folder: Path) -> None:
    ready = [_found("pg_isready"), "-q", "-h", folder]
    for _ in range(300):
        if subprocess.run(ready).returncode == 0:
            return
        time.sleep(0.1)
    pytest.fail("the server did not start")


def test_postgresql_answers_as_the_model_does(server: Server) -> None:
    for name in numbers.CASES:
        _answers_as_the_model(server, numbers.edges(name))


def test_postgresql_answers_as_a_model_with_pairs_does(
    server: Server, paired: numbers.Case, paired_edges: numbers.Case
) -> None:
    for case in (paired, paired_edges):
        _answers_as_the_model(server, case)


def _answers_as_the_model(server: Server, case: numbers.Case) -> None:
    model, X = case
    names = model.feature_names or [f"x{j}" for j in range(model.n_features)]
    table = exported.columns_of(names, ["DOUBLE PRECISION"] * len(names))
    found = server.answers(model, table, X.astype(np.float64).tolist())
    assert_same(found, expected(model, X))


@pytest.mark.filterwarnings("ignore:X. .* has values that were not in training")
def test_postgresql_reads_the_columns_as_they_are(
    server: Server, column_models: dict[str, StumpEnsemble]
) -> None:
    types = ["DOUBLE PRECISION", "TEXT", "TEXT", "BOOLEAN", "DATE", "TIMESTAMP", "TIME", "TEXT"]
    table = exported.columns_of(columns.NAMES, types)
    for model in column_models.values():
        found = server.answers(model, table, columns.rows())
        assert_same(found, expected(model, columns.frame()))
