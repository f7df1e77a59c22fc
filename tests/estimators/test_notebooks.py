"""A real notebook shows the progress bar and the lines that say where a table trains."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import gpustump

pytest.importorskip("ipykernel")
pytest.importorskip("nbclient")

CELL = """
import sys
sys.path.insert(0, {folder!r})
from sklearn.datasets import load_breast_cancer
from gpustump import AdaBoostClassifier
options = {{"n_estimators": 40, "verbose": {verbose}, "callback": {callback}}}
AdaBoostClassifier(**options).fit(*load_breast_cancer(return_X_y=True)).n_iter_
"""

PROGRAM = """
import json, sys
import nbclient, nbformat
cells = [nbformat.v4.new_code_cell(source) for source in json.load(sys.stdin)]
notebook = nbformat.v4.new_notebook(cells=cells)
nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
print(json.dumps([cell.outputs for cell in notebook.cells]))
"""


@pytest.mark.slow
def test_a_notebook_shows_the_bar_and_the_route_without_a_warning():
    folder = str(Path(gpustump.__file__).parents[1])
    stop = "lambda record: record.number == 30"
    sources = [
        CELL.format(folder=folder, verbose=verbose, callback=stop if verbose == 2 else None)
        for verbose in range(3)
    ]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=json.dumps(sources), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    silent, bar, both = json.loads(done.stdout.splitlines()[-1])
    assert [one["output_type"] for one in silent] == ["execute_result"]
    for cell, n_rounds in ((bar, 40), (both, 30)):
        *shown, result = cell
        assert {one["name"] for one in shown if "name" in one} <= {"stderr"}
        said = "".join(str(one.get("text") or one["data"]) for one in shown)
        assert f"{n_rounds}/{n_rounds}" in said or "widget" in said
        assert "Warning" not in said
        assert result["data"] == {"text/plain": str(n_rounds)}
        assert ("gpustump: trains on cpu" in said) == (cell is both)
