"""`gpustump inspect` with --plot, --page and --edits: its files are whole, or not there."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path

import numpy as np
import pytest
from command import command_fixture, run_process  # noqa: F401
from sklearn.datasets import load_breast_cancer

from gpustump import StumpEnsemble
from gpustump.arrays.devices import how_to_install

pytest.importorskip("matplotlib")

PNG = b"\x89PNG\r\n\x1a\n"


def test_a_users_matplotlib_settings_do_not_reach_the_pictures(command):
    command.succeeds("train", "--rounds", 3, "--quiet")
    command.succeeds("inspect", "model.json", "--plot", "plain.png")
    text = "text.usetex: True\naxes.facecolor: black\nfont.size: 30\n"
    (command.folder / "matplotlibrc").write_text(text)
    outcome = run_process(
        *("inspect", "model.json", "--plot", "odd.png"),
        folder=command.folder,
        env={**os.environ, "MPLBACKEND": "nonsense", "MPLCONFIGDIR": "/proc/1/none"},
    )
    assert (outcome.code, outcome.err) == (0, "")
    files = command.files()
    assert files["odd.png"] == files["plain.png"]


REFUSED = [
    ("--plot page.gif", "--plot: 'page.gif' must end in .png, .svg or .pdf"),
    ("--plot no/page.png", "does not exist"),
    ("--data none.csv", "No such file"),
    ("--plot table.png", "table.png exists and is not a png picture"),
    ("--page page.txt", "--page: 'page.txt' must end in .html or .htm"),
    ("--page no/page.html", "does not exist"),
    ("--page mine.html", "mine.html exists and is not a page of gpustump"),
    ("--page new.html --data none.csv", "No such file"),
    ("--page new.html --data table.png", "table.png"),
    ("-o edited.json", "--output is for the edited model; add --edits FILE"),
    ("--edits none.json -o edited.json", "No such file"),
    ("--edits table.png -o edited.json", "is not JSON text"),
    ("--edits other.json -o edited.json", "these edits are of the model 'f00'"),
    ("--edits model.json -o edited.json", "edits must be a file that says 'gpustump edits'"),
]


def test_a_page_a_picture_or_a_model_that_cannot_be_made_is_refused(command, monkeypatch):
    Path("mine.html").write_text("<html>my own page</html>")
    Path("table.png").write_text("a,b\n1,2\n")
    Path("other.json").write_text('{"format": "gpustump edits", "model": "f00", "edits": []}')
    command.succeeds("train", "--rounds", 3, "--quiet")
    for options, message in REFUSED:
        assert message in command.refuses("inspect", "model.json", *options.split())
    whole = importlib.util.find_spec
    without = lambda name, *a: None if name == "matplotlib" else whole(name, *a)  # noqa: E731
    monkeypatch.setattr(importlib.util, "find_spec", without)
    assert how_to_install("plots") in command.refuses("inspect", "model.json", "--plot", "a.png")
    command.succeeds("inspect", "model.json", "--page", "page.html")  # needs nothing


def test_edits_give_another_model_that_says_what_was_edited(command):
    command.succeeds("train", "--rounds", 30, "--quiet")
    trained = StumpEnsemble.load("model.json").digest()
    made = [
        {"term": [20], "edit": "without"},
        {"term": [1], "edit": "flatten", "above": "-inf", "upto": 20, "like": 15},
    ]
    edits = {"format": "gpustump edits", "model": trained, "edits": made}
    Path("edits.json").write_text(json.dumps(edits))
    asked = ("inspect", "model.json", "--edits", "edits.json", "-o", "edited.json")
    out = command.succeeds(*asked).out
    edited = StumpEnsemble.load("edited.json")
    for said in (edited.digest(), trained, "worst radius switched off"):
        assert said in out
    assert edited.edits.of == trained
    assert 20 not in edited.used_features
    again = command("audit", "edited.json")
    assert again.code == 2
    assert "was edited after training" in again.err
    command.succeeds("inspect", "edited.json", "--page", "edited.html")
    assert "mean texture flat for" in Path("edited.html").read_text()


def test_inspect_draws_a_model_in_the_format_of_the_name_and_without_the_date(command):
    command.succeeds("train", "--rounds", 5, "--quiet")
    plain = command.succeeds("inspect", "model.json")
    for ending, start, date in (
        ("png", PNG, b"date:"),
        ("svg", b"<svg", b"<dc:date>"),
        ("pdf", b"%PDF", b"CreationDate"),
    ):
        drawn = command.succeeds("inspect", "model.json", "--plot", f"page.{ending}")
        assert drawn.out == plain.out
        content = Path(f"page.{ending}").read_bytes()
        assert content.startswith((start, b"<?xml"))
        assert start in content
        assert date not in content


def test_the_shares_of_contributions_are_those_of_all_rows_with_a_page_too(command):
    X, y = load_breast_cancer(return_X_y=True)
    np.savez("table.npz", X=X, y=y)
    command.succeeds("train", "table.npz", "--target", "y", "--rounds", 20, "--quiet")
    shown = ("inspect", "model.json", "--data", "table.npz")
    assert command.succeeds(*shown, "--page", "page.html").out == command.succeeds(*shown).out
