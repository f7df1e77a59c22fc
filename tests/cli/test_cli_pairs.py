"""Pairs of features on the command line: learnt, named in every output, and drawn."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from command import command_fixture, read_csv  # noqa: F401

from gpustump import GlassBoxClassifier, StumpEnsemble
from gpustump.model.pairs import shares_of_pairs

GLASS = ("--glass-box", "--bags", 2, "--device", "cpu")


@pytest.fixture
def crossed(command):
    """A table whose classes need a pair of features, as a CSV file and a frame."""
    random = np.random.default_rng(0)
    x, z, w = np.round(random.uniform(-1, 1, (3, 400)), 3)
    label = np.where((x > 0) == (z > 0), "yes", "no")
    frame = pandas.DataFrame({"x": x, "z": z, "w": w, "label": label})
    frame.to_csv("crossed.csv", index=False)
    return frame


def model() -> StumpEnsemble:
    return StumpEnsemble.load("model.json")


def of_label(command, *options):
    return command.succeeds("train", "crossed.csv", "--target", "label", *options)


def test_the_model_is_the_one_that_the_estimator_makes(command, crossed):
    of_label(command, *GLASS, "--test-size", 0, "--interactions", 2)
    clf = GlassBoxClassifier(n_bags=2, interactions=2, random_state=0, device="cpu")
    clf.fit(crossed[["x", "z", "w"]], crossed["label"])
    assert model().digest() == clf.model_.digest()


@pytest.mark.parametrize(
    ("options", "n_pairs"),
    [
        ((*GLASS, "--interactions", 0), 0),
        ((*GLASS, "--interactions", 1), 1),
        ((*GLASS, "--interactions", "0.5x"), 2),
        ((*GLASS, "--interactions", "auto"), 3),
        (("--loss", "logistic"), 0),
        (("--loss", "logistic", "--interactions", "1x"), 3),
    ],
)
def test_interactions_says_how_many_pairs_are_learnt(command, crossed, options, n_pairs):
    outcome = of_label(command, *options)
    found = model()
    assert len(found.pairs) == n_pairs
    assert ("\npairs " in outcome.out) == (n_pairs > 0)
    asked = found.details["estimator"]["parameters"].get("interactions", options[-1])
    assert asked == options[-1] or "--interactions" not in options


def test_every_command_names_the_pairs(command, crossed):
    pytest.importorskip("matplotlib")
    outcome = of_label(command, *GLASS)
    found = model()
    names = found.term_names
    assert names[:3] == ("x", "z", "w")
    assert {*names[3:]} == {"x x z", "x x w", "z x w"}
    shares = dict(zip(names[3:], shares_of_pairs(found.pairs), strict=True))
    assert shares["x x z"] > 0.5
    assert outcome.row("pairs") == "3, with these shares of what they add:"
    line = next(line for line in outcome.out.splitlines() if "x x z" in line)
    assert line.split()[-1] == f"{100 * shares['x x z']:.1f}%"
    assert float(outcome.row("held-out accuracy").split()[0]) > 0.85

    outcome = command.succeeds("inspect", "model.json", "--rounds", 0)
    assert outcome.row("pairs") == "3"
    head, *lines = outcome.out.split("\n\n")[-1].splitlines()
    assert head.split() == ["pair", "of", "pairs", "cells"]
    assert [line.split("  ")[0] for line in lines] == sorted(shares, key=lambda own: -shares[own])
    for line in lines:
        assert f"{100 * shares[line.split('  ')[0]]:.1f}%" in line
    asked = ("inspect", "model.json", "--rounds", 0, "--data", "crossed.csv", "--plot", "all.png")
    features, pairs = command.succeeds(*asked).out.split("\n\n")[-2:]
    read = {}
    for line in features.splitlines()[1:] + pairs.splitlines()[1:]:
        name, *_, share = [part for part in line.split("  ") if part]
        read[name] = share.strip()
    contributions = found.contribution_importances(crossed)
    assert read == {
        name: f"{100 * share:.1f}%" for name, share in zip(names, contributions, strict=True)
    }
    assert (command.folder / "all.png").read_bytes().startswith(b"\x89PNG")

    head, rows = read_csv(command.succeeds("explain", "model.json", "crossed.csv").out)
    assert head == [*names, "(intercept)", "(score)"]
    expected = np.column_stack([found.explain(crossed), found.decision_function(crossed)])
    assert np.asarray(rows, dtype=float).tolist() == expected.tolist()
    asked = ("explain", "model.json", "crossed.csv", "--row", 7, "--plot", "row.svg")
    lines = command.succeeds(*asked).out.splitlines()
    line = next(line for line in lines if line.startswith("x x z "))
    assert f"{crossed['x'][6]:.6g}, {crossed['z'][6]:.6g}" in line
    assert f"{expected[6, names.index('x x z')]:+.3f}" in line
    score = next(line for line in lines if line.startswith("score  "))
    assert float(score.split()[1]) == pytest.approx(expected[6, -1], abs=0.0005)
    assert "<svg" in (command.folder / "row.svg").read_text()
