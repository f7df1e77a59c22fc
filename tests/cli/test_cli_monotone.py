"""`gpustump train --monotone`: columns by name, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
from command import command_fixture  # noqa: F401
from sklearn.model_selection import train_test_split

from gpustump import AdaBoostClassifier, LogitBoostClassifier, StumpEnsemble

RANDOM = np.random.default_rng(5)
X = RANDOM.normal(size=(200, 3))
Y = (np.abs(X[:, 0]) + X[:, 1] + RANDOM.normal(size=200) > 0.8).astype(int)
COLOURS = np.where(X[:, 2] > 0, "red", "blue")


@pytest.fixture
def table(command):
    """A table whose second column has a name that holds a comma and an equals sign."""
    columns = (*X[:, :2].T, COLOURS, Y, np.digitize(X[:, 1], [-0.5, 0.5]))
    rows = zip(*(column.tolist() for column in columns), strict=True)
    lines = ['age,"size,a=b",colour,y,three', *(",".join(map(str, row)) for row in rows)]
    (command.folder / "table.csv").write_text("\n".join(lines))


def train(command, *options: str) -> dict[str, str]:
    outcome = command.succeeds("train", "table.csv", "--target", "y", "--force", *options)
    with open("model.json") as file:
        details = json.load(file)["details"]["training"]
    return {"shown": outcome.out, "monotone": details.get("monotone")}


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
@pytest.mark.usefixtures("table")
def test_the_model_is_that_of_the_estimator_with_the_same_constraints(command, loss):
    constraints = ("--monotone", "age=1", "--monotone", "size,a=b=-1")
    found = train(command, "--drop", "three", "--loss", loss, "--rounds", "20", *constraints)
    assert found["monotone"] == {"age": 1, "size,a=b": -1}
    assert "monotone" in found["shown"]
    assert "age=1, size,a=b=-1" in found["shown"]
    kind = AdaBoostClassifier if loss == "exponential" else LogitBoostClassifier
    table = np.stack([*X[:, :2].T, COLOURS == "blue", COLOURS == "red"], axis=1)
    rows, _ = train_test_split(np.arange(200), test_size=0.2, random_state=0, stratify=Y)
    rows.sort()
    expected = kind(n_estimators=20, monotonic_cst=[1, -1, 0, 0], device="cpu")
    expected.fit(table[rows], Y[rows])
    model = StumpEnsemble.load("model.json")
    assert np.array_equal(model.decision_function(table), expected.decision_function(table))


@pytest.mark.usefixtures("table")
def test_several_constraints_stand_in_one_option_and_zeros_are_no_constraints(command):
    found = train(command, "--rounds", "3", "--monotone", "age=+1, three=0")
    assert found["monotone"] == {"age": 1}
    unconstrained = train(command, "--rounds", "3", "--monotone", "age=0")
    assert unconstrained["monotone"] is None
    assert "monotone" not in unconstrained["shown"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--monotone", "age"], "not of the form COL=1"),
        (["--monotone", "age=2"], "not of the form COL=1"),
        (["--monotone", "agee=1"], "Did you mean 'age'?"),
        (["--monotone", "y=1"], "not a feature"),
        (["--monotone", "age=1,age=-1"], "twice"),
        (["--monotone", "colour=1"], "a column of text"),
        (["--monotone", "age=1", "--target", "three", "--votes", "real"], "is for two classes"),
    ],
    ids=lambda value: value[1] if isinstance(value, list) else "",
)
@pytest.mark.usefixtures("table")
def test_other_constraints_are_refused_before_anything_is_trained(command, options, problem):
    target = [] if "--target" in options else ["--target", "y"]
    assert problem in command.refuses("train", "table.csv", *target, *options)
