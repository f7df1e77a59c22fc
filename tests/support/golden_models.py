"""Model files of every kind, kept in `tests/golden/models`, and rows to judge them on.

A later version must load each of them, give it the recorded digest, and give the rows of `rows_for`
the recorded scores, to the last bit. `tests/golden/models.json` holds what was recorded: scores as
whole numbers of votes' units, so it does not matter how a float is written.

`python tests/support/golden_models.py NAME FILE` adds a model's file, and records its answers.
Those of a name that begins with "command" were trained by the command line on `TABLE`. Nothing
recorded is ever changed: give a kind that has changed a new name.
"""

from __future__ import annotations

import json
import math
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from gpustump import StumpEnsemble
from gpustump.learners.step_table import VOTE_UNIT

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "models"
RECORD = FOLDER.with_suffix(".json")
TABLE = FOLDER / "table.csv"
"""What the models of the command line are trained on, and judged on."""

N_FEATURES = 4
MOST_THRESHOLDS = 12

ODD_ROWS = [
    [math.nan, math.nan, math.nan, math.nan],
    [math.inf, math.inf, math.inf, math.inf],
    [-math.inf, -math.inf, -math.inf, -math.inf],
    [0.0, 0.0, 0.0, 0.0],
    [-0.0, -0.0, -0.0, -0.0],
    [5e-324, -5e-324, 1e308, -1e308],
    [1.0, 2.0, 3.0, 1.0],
    [0.5, math.nan, 2.5, 2.0],
    [-0.25, math.inf, 0.0, 3.0],
    [-1.5, 0.75, math.nan, 7.0],
    [1e-9, -math.inf, 1.0, math.nan],
    [3.0, 1.0, 2.0, 0.0],
]


def rows_for(document: dict[str, Any]) -> np.ndarray:
    """Rows (n_rows, 4) that a model is judged on.

    They are `ODD_ROWS`, and for the first thresholds of the file rows of the threshold itself and
    of the floats beside it.
    """
    fields = document["model"]["stump_fields"]
    cuts = [
        row[fields.index(name)]
        for member in document["model"]["members"]
        for row in member
        for name in ("low", "threshold")
        if name in fields
    ]
    floats = [float(cut) for cut in cuts if cut is not None][:MOST_THRESHOLDS]
    near = [[cut, math.nextafter(cut, -math.inf), math.nextafter(cut, math.inf)] for cut in floats]
    ties = [[value] * N_FEATURES for values in near for value in values]
    return np.asarray([*ODD_ROWS, *ties])


def units(scores: np.ndarray) -> list[Any]:
    """Scores as whole numbers of votes' units, which must be what they are."""
    found = scores / VOTE_UNIT
    assert (found == np.rint(found)).all()
    return np.asarray(found.tolist(), dtype=object).astype(int).tolist()


def recorded() -> dict[str, dict[str, Any]]:
    """What was recorded of each model."""
    found: dict[str, dict[str, Any]] = json.loads(RECORD.read_text())
    return found


COMMANDS = {name for name in recorded() if name.startswith("command")}
"""Models that take `TABLE` as it is."""

KINDS = set(recorded()) - COMMANDS
"""Models that take rows of numbers."""


def answers(model: StumpEnsemble, table: Any) -> dict[str, Any]:
    """What is recorded of a model's answers to a table, which has values that are no categories."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        scores = model.decision_function(table)
    if model.is_regression:
        return {"predictions": [float(score).hex() for score in scores]}
    return {"units": units(scores), "labels": model.labels_of(scores).tolist()}


def loaded(name: str) -> tuple[StumpEnsemble, np.ndarray]:
    """A model, and the features that it is judged on: rows for it, or those of `TABLE`."""
    path = FOLDER / f"{name}.json"
    model = StumpEnsemble.load(path)
    if not name.startswith("command"):
        return model, rows_for(json.loads(path.read_text()))

    from gpustump.cli.columns.model import read_features

    return model, read_features(str(TABLE), model)


def add(name: str, file: str) -> None:
    """Add a model's file, and record its answers."""
    known, path = recorded(), FOLDER / f"{name}.json"
    if name in known or path.exists():
        raise FileExistsError(f"{name} is recorded; choose another name.")
    shutil.copyfile(file, path)
    model, rows = loaded(name)
    known[name] = {"digest": model.digest(), **answers(model, rows)}
    lines = [f"{json.dumps(name)}: {json.dumps(found)}" for name, found in known.items()]
    RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    add(*sys.argv[1:])
