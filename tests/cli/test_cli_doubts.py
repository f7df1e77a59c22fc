"""The summary of a training warns of what beginners overlook, and of nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command import command_fixture  # noqa: F401

N_ROWS = 1200
_R = np.random.default_rng(0)
X = _R.normal(size=(N_ROWS, 3))
NOISE = _R.normal(size=N_ROWS)
Y = (X[:, 0] + 0.7 * NOISE > 0.3).astype(int)
IDS = _R.choice(10**9, N_ROWS, replace=False)
IS_ODD = np.arange(N_ROWS) % 400 == 7


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(names: str, *columns: object) -> None:
    rows = zip(*columns, strict=True)
    text = "\n".join(",".join(map(str, row)) for row in rows)
    Path("table.csv").write_text(f"{names}\n{text}\n")


def warnings(outcome) -> str:
    """All warnings of a summary, as one text."""
    found, is_warning = [], False
    for line in outcome.out.splitlines():
        is_warning = line.startswith("warning") or (is_warning and line.startswith(" "))
        if is_warning:
            found.append(line.removeprefix("warning").strip())
    return " ".join(found)


def train(command, *options: object):
    return command.succeeds("train", "table.csv", "--target", "y", *options)


def test_an_honest_table_gives_no_warning(command):
    write("a,b,c,y", *X.T.round(4), Y)
    assert warnings(train(command, "--loss", "logistic")) == ""
    write("a,b,c,y", *X.T.round(4), X[:, 0] + NOISE)
    assert warnings(train(command, "--force")) == ""


def test_a_column_of_ids_is_told_of_if_it_has_votes(command):
    write("account,a,y", IDS, X[:, 0].round(4), Y)
    found = warnings(train(command, "--rounds", 300))
    assert "'account' holds another whole number in each row, as an ID does" in found
    assert "leave it out with --drop 'account'" in found
    name = "account-number-of-the-customer"  # to be copied in one piece
    write(f"{name},a,y", IDS, X[:, 0].round(4), Y)
    assert f"'{name}'." in train(command, "--rounds", 300).out
    write("visits,a,y", IDS % 500, X[:, 0].round(4), Y)  # some are equal
    assert "as an ID does" not in warnings(train(command, "--rounds", 300))


def test_a_column_that_nearly_gives_the_answer_is_told_of(command):
    answer = np.where(IS_ODD, 1 - Y, Y) * 10 + NOISE
    write("leak,a,y", answer.round(4), X[:, 1].round(4), Y)
    found = warnings(train(command))
    assert "'leak' alone predicts" in found
    assert "--drop 'leak'" in found
    words = np.where(IS_ODD ^ (Y > 0), "paid", "open")
    write("state,a,y", words, X[:, 1].round(4), Y)
    assert "'state' alone predicts" in warnings(train(command, "--loss", "logistic", "--force"))


def test_a_column_that_nearly_is_the_quantity_is_told_of(command):
    target = X[:, 0] * 3 + 0.1 * NOISE
    write("other_unit,a,y", X[:, 0].round(4), X[:, 1].round(4), target)
    assert "'other_unit' alone explains nearly all" in warnings(train(command, "--rounds", 500))


def test_probabilities_that_are_worse_than_shares_are_told_of(command):
    write("a,b,c,y", *X.T.round(4), (NOISE > 0).astype(int))
    outcome = train(command, "--rounds", 1000, "--learning-rate", 1)
    log_loss, shares = outcome.row("held-out log-loss").split(";")
    assert float(log_loss) > float(shares.split()[-1])
    assert "worse than the classes' shares" in warnings(outcome)
    assert "--glass-box" in warnings(outcome)
    assert "worse than" not in warnings(train(command, "--glass-box", "--force"))


def test_a_class_that_is_never_predicted_is_told_of(command):
    labels = np.where(IDS % 33 == 0, "rare", np.where(Y > 0, "yes", "no"))
    write("a,b,y", X[:, 0].round(4), X[:, 1].round(4), labels)
    outcome = train(command, "--loss", "logistic", "--rounds", 5)
    assert "never predicted for rows held out: 'rare'" in warnings(outcome)
    assert any(
        line.split() == ["rare", "recall", "0.0000", "never", "predicted"]
        for line in outcome.out.splitlines()
    )
