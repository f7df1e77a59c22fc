"""Model files of every version and kind, kept in `tests/golden/models`, and how each was made.

A later version must load each of them, give it the recorded digest, and give the rows of `rows_for`
the recorded scores, to the last bit. `tests/golden/models.json` holds what was recorded: scores as
whole numbers of votes' units, so it does not matter how a float is written.

`python tests/support/golden_models.py` adds the files of kinds that are not recorded yet. It never
changes a file, nor what was recorded of it: give a kind that has changed a new name.
"""

from __future__ import annotations

import csv
import datetime
import json
import math
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from golden_tables import _bells, _few, _missing

from gpustump import (
    AdaBoostClassifier,
    GlassBoxClassifier,
    GlassBoxRegressor,
    LogitBoostClassifier,
    Member,
    RegionMember,
    Split,
    Stump,
    StumpBoostingRegressor,
    StumpEnsemble,
)
from gpustump.cli import main
from gpustump.learners.category_split import CategoryStump
from gpustump.learners.interval import Interval
from gpustump.learners.step_table import VOTE_UNIT

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "models"
RECORD = FOLDER.with_suffix(".json")
TABLE = FOLDER / "table.csv"
"""What the models of the command line are trained on, and judged on."""

N_FEATURES = 4
N_SAMPLES = 90
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


def _training_table(name: str) -> tuple[np.ndarray, np.ndarray]:
    """X (90, 4), with ties and missing values in two columns, and a score to make labels of."""
    draw = random.Random(name)
    few = _few(draw, N_SAMPLES, 2)
    X = np.column_stack([_bells(draw, N_SAMPLES), _missing(draw, N_SAMPLES), few])
    score = X[:, 0] + np.nan_to_num(X[:, 1]) / 2 + (X[:, 2] == 1) + _bells(draw, N_SAMPLES) / 2
    return X, score


def _fitted(classifier: Any, labels: Sequence[Any]) -> Callable[[str], StumpEnsemble]:
    """How to train a classifier on the table that has the model's name."""

    def made(name: str) -> StumpEnsemble:
        X, score = _training_table(name)
        rank = np.argsort(np.argsort(score, kind="stable"), kind="stable")
        y = np.asarray(labels)[rank * len(labels) // N_SAMPLES]
        found: StumpEnsemble = classifier.fit(X, y).model_
        return found

    return made


def _of_quantity(regressor: Any, by: float, shift: float) -> Callable[[str], StumpEnsemble]:
    """How to train a regressor on the score of the table that has the model's name."""

    def made(name: str) -> StumpEnsemble:
        X, score = _training_table(name)
        found: StumpEnsemble = regressor.fit(X, score * by + shift).model_
        return found

    return made


def _by_hand_with_signs(name: str) -> StumpEnsemble:
    """Numbers at the ends of their ranges, constants, and a class without a stump."""
    stumps = (
        Stump(0, math.inf, 1, 1, 0.4),
        Stump(1, -math.inf, -1, 1, 1 / 3),
        Stump(2, 5e-324, 1, -1, 5e-324),
        Stump(3, -0.0, -1, -1, 0.0),
        Stump(0, 1.7976931348623157e308, 1, 1, 0.5),
        Interval(1, -math.inf, 0.75, 1, -1, 0.25),
        Interval(2, 2.0, 2.5, -1, 1, 1.0),
    )
    votes = (-0.5, VOTE_UNIT, 2.0**16, -VOTE_UNIT, 0.0, 1.5, 0.25)
    members = (Member(stumps, votes), Member((), ()), Member(stumps[:1], (-1.0,)))
    details = {"nested": {"list": [1, 2.5, None, True, "ä\n\x1b[31m"]}, "large": 2**80}
    names = ("", "a b", 'quo"te', "</script>")
    return StumpEnsemble(members, N_FEATURES, ('ä"', "\U0001f333", ""), names, details=details)


def _by_hand_with_regions(name: str) -> StumpEnsemble:
    votes = np.asarray([[0.5, -VOTE_UNIT, 2.0**15], [0.0, 0.0, 0.0], [-1.0, 1.0, 0.0]])
    splits = (Split(0, math.inf), Split(1, -math.inf), Split(2, -0.0))
    member = RegionMember(splits, votes[:, :, None], np.asarray([-2.0]))
    return StumpEnsemble((member,), N_FEATURES, (-(2**62), 2**62 + 1))


def _by_hand_with_sets(name: str) -> StumpEnsemble:
    stumps = (
        CategoryStump(2, (0, 2), (1, 3), polarity=1, missing=-1, error=0.25),
        CategoryStump(3, (7,), (), polarity=-1, missing=1, error=0.5),
        Interval(0, -0.25, 0.5, 1, 1, 0.125),
    )
    return StumpEnsemble((Member(stumps, (1.0, 0.5, VOTE_UNIT)),), N_FEATURES, (0, 2**64 - 1))


def _of_command(*options: str) -> Callable[[str], StumpEnsemble]:
    """How to train with the command line on `TABLE`."""

    def made(name: str) -> StumpEnsemble:
        path = FOLDER / f"{name}.json"
        arguments = ["train", str(TABLE), "--quiet", "--force", "-o", str(path), *options]
        assert main(arguments) == 0
        return StumpEnsemble.load(path)

    return made


SHARED = {"multi_class": "shared", "n_estimators": 6}
TEXT = ("low", "middle", "high")

KINDS: dict[str, Callable[[str], StumpEnsemble]] = {
    "discrete": _fitted(AdaBoostClassifier(n_estimators=8), (-1, 1)),
    "discrete-text-rest": _fitted(AdaBoostClassifier(n_estimators=4), TEXT),
    "discrete-shared": _fitted(AdaBoostClassifier(**SHARED), (3, 1, 2)),
    "discrete-bags": _fitted(AdaBoostClassifier(n_estimators=4, n_bags=3), (False, True)),
    "interval-booleans": _fitted(
        AdaBoostClassifier(n_estimators=6, weak_learner="interval"), (True, False)
    ),
    "interval-rest": _fitted(
        AdaBoostClassifier(n_estimators=3, weak_learner="interval"), (0, 1, 2, 3)
    ),
    "real": _fitted(AdaBoostClassifier(n_estimators=8, votes="real"), (1.0, 2.0)),
    "real-rest": _fitted(AdaBoostClassifier(n_estimators=4, votes="real"), TEXT),
    "real-shared": _fitted(AdaBoostClassifier(votes="real", **SHARED), (0, 10**15, 2**62)),
    "newton": _fitted(LogitBoostClassifier(n_estimators=8), ("no", "yes")),
    "newton-rest": _fitted(
        LogitBoostClassifier(n_estimators=4, multi_class="one_vs_rest"), (5, 6, 7)
    ),
    "newton-softmax": _fitted(LogitBoostClassifier(n_estimators=6), TEXT),
    "newton-bags": _fitted(LogitBoostClassifier(n_estimators=4, n_bags=2), (0, 1, 2)),
    "newton-monotone": _fitted(
        LogitBoostClassifier(n_estimators=6, monotonic_cst=[1, 0, 0, -1]), (0, 1)
    ),
    "newton-smoothing": _fitted(LogitBoostClassifier(n_estimators=8, smoothing_rounds=5), TEXT),
    "glass-box": _fitted(GlassBoxClassifier(n_estimators=6, n_bags=3, smoothing_rounds=0), (0, 1)),
    "categories-discrete": _fitted(
        AdaBoostClassifier(n_estimators=6, categorical_features=[2, 3]), (0, 1)
    ),
    "categories-interval": _fitted(
        AdaBoostClassifier(n_estimators=6, weak_learner="interval", categorical_features=[2]),
        (0, 1),
    ),
    "categories-real-shared": _fitted(
        AdaBoostClassifier(votes="real", categorical_features=[2, 3], **SHARED), TEXT
    ),
    "categories-newton-bags": _fitted(
        LogitBoostClassifier(n_estimators=4, n_bags=2, categorical_features=[2]), (0, 1)
    ),
    "quantity": _of_quantity(StumpBoostingRegressor(n_estimators=8), 1000.0, 1e7),
    "quantity-bags": _of_quantity(
        GlassBoxRegressor(n_estimators=6, n_bags=2, smoothing_rounds=3, random_state=0), 1e-200, 0.0
    ),
    "quantity-categories": _of_quantity(
        StumpBoostingRegressor(n_estimators=6, categorical_features=[2]), 1.0, 0.0
    ),
    "counts-bags": _of_quantity(
        GlassBoxRegressor(loss="poisson", n_estimators=6, n_bags=2, random_state=0), 1.0, 5.0
    ),
    "costs": _of_quantity(StumpBoostingRegressor(loss="gamma", n_estimators=6), 1e-3, 5e-3),
    "pairs": _fitted(
        LogitBoostClassifier(n_estimators=6, interactions=[(2, 3), (0, 2)]), ("no", "yes")
    ),
    "pairs-bags": _fitted(
        GlassBoxClassifier(
            n_estimators=6,
            n_bags=2,
            smoothing_rounds=3,
            random_state=0,
            interactions=[(2, 3)],
            n_iter_no_change=None,
        ),
        TEXT,
    ),
    "pairs-quantity": _of_quantity(
        StumpBoostingRegressor(n_estimators=6, interactions=[(2, 3)], categorical_features=[2]),
        1000.0,
        5.0,
    ),
    "by-hand-signs": _by_hand_with_signs,
    "by-hand-regions": _by_hand_with_regions,
    "by-hand-sets": _by_hand_with_sets,
}
"""How each model is made that takes rows of numbers, by its name."""

COMMANDS: dict[str, Callable[[str], StumpEnsemble]] = {
    "command": _of_command("--target", "grade", "--rounds", "6"),
    "command-sets": _of_command("--target", "ok", "--categories", "sets", "--rounds", "8"),
    "command-missing": _of_command(
        *("--target", "ok", "--missing", "-9", "--missing", "nothing", "--drop", "grade"),
        *("--encoding", "utf-8", "--decimal", ".", "--rounds", "6", "--votes", "real"),
        *("--loss", "exponential"),
    ),
    "command-glass-box": _of_command(
        *("--target", "ok", "--glass-box", "--rounds", "6", "--bags", "2"),
        *("--monotone", "amount=1", "--smoothing-rounds", "0"),
    ),
}
"""How each model of the command line is made, which takes `TABLE` as it is."""


def _table_rows() -> Iterator[list[object]]:
    """A table of text, numbers, dates, booleans and missing values of several kinds."""
    draw = random.Random("golden table")
    yield ["amount", "place", "day", "is new", "count", "grade", "ok"]
    for number in range(60):
        amount, place = round(draw.random() * 8 - 4, 3), int(draw.random() * 5)
        day = datetime.date(2020, 1, 1) + datetime.timedelta(int(draw.random() * 900))
        score = amount + (place in (1, 3)) * 2 + (draw.random() - 0.5)
        yield [
            "" if number % 11 == 0 else amount,
            ["Köln", "<b>x</b>", "=1+1", "nothing", ""][place],
            "" if number % 13 == 0 else day,
            ["true", "false"][int(draw.random() * 2)],
            -9 if number % 7 == 0 else int(draw.random() * 4),
            ["a", "b", "c"][(score > -1) + (score > 2)],
            ["no", "yes"][score > 0.5],
        ]


def recorded() -> dict[str, dict[str, Any]]:
    """What was recorded of each model."""
    found: dict[str, dict[str, Any]] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    return found


def answers(model: StumpEnsemble, table: Any) -> dict[str, Any]:
    """What is recorded of a model's answers to a table, which has values that are no categories."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        scores = model.decision_function(table)
    if model.is_regression:
        return {"predictions": [float(score).hex() for score in scores]}
    return {"units": units(scores), "labels": model.labels_of(scores).tolist()}


def features_of_table(model: StumpEnsemble) -> np.ndarray:
    """The features of `TABLE`, as the command line reads them for a model."""
    from gpustump.cli.columns.model import read_features

    return read_features(str(TABLE), model.encoding)


def _add(name: str, make: Callable[[str], StumpEnsemble]) -> dict[str, Any]:
    path = FOLDER / f"{name}.json"
    model = make(name)
    if name in KINDS:
        model.save(path)
    rows = rows_for(json.loads(path.read_text())) if name in KINDS else features_of_table(model)
    return {"digest": model.digest(), **answers(model, rows)}


def add_missing() -> list[str]:
    """Make the files of kinds that are not recorded; return their names."""
    if not TABLE.exists():
        with TABLE.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(_table_rows())
    known = recorded()
    missing = {name: make for name, make in (KINDS | COMMANDS).items() if name not in known}
    for name in missing:
        if (FOLDER / f"{name}.json").exists():
            raise FileExistsError(f"{name}.json exists, but is not recorded; it is left alone.")
    known |= {name: _add(name, make) for name, make in missing.items()}
    if missing:
        lines = [f"{json.dumps(name)}: {json.dumps(found)}" for name, found in known.items()]
        RECORD.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return list(missing)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print("added:", ", ".join(add_missing()) or "nothing")
