"""`gpustump inspect` and `gpustump devices`: what a reader sees."""

from __future__ import annotations

import datetime
import math

import numpy as np
import pytest
from command import command_fixture  # noqa: F401

from gpustump import Member, Stump, StumpEnsemble, devices


def saved(stumps: list[Stump], **options) -> StumpEnsemble:
    votes = tuple(1.0 / (k + 1) for k in range(len(stumps)))
    members = (Member(tuple(stumps), votes),) * options.pop("n_members", 1)
    model = StumpEnsemble(members, options.pop("n_features", 3), **options)
    model.save("model.json")
    return model


def test_stumps_read_as_rules_in_the_models_own_names(command):
    model = saved(
        [Stump(0, 16.8, 1, -1, 0.077), Stump(2, -0.25, -1, 1, 0.3), Stump(0, math.inf, 1, 1, 0.4)],
        classes=("benign", "malignant"),
        feature_names=("mean radius", "area", "age"),
    )
    lines = command.succeeds("inspect", "model.json").out.splitlines()
    assert [line.split() for line in lines[6:10]] == [
        ["rule", "missing", "vote", "error"],
        [
            "1.",
            "mean",
            "radius",
            "<=",
            "16.8",
            "->",
            "malignant,",
            "else",
            "benign",
            "benign",
            "1.000",
            "0.077",
        ],
        [
            "2.",
            "age",
            "<=",
            "-0.25",
            "->",
            "benign,",
            "else",
            "malignant",
            "malignant",
            "0.500",
            "0.300",
        ],
        ["3.", "always", "malignant", "malignant", "0.333", "0.400"],
    ]
    assert [line.split() for line in lines[11:]] == [
        ["feature", "votes", "stumps"],
        ["mean", "radius", "66.7%", "1"],
        ["age", "33.3%", "1"],
    ]
    assert lines[1].split() == ["classes", "benign,", "malignant"]
    assert lines[4].split() == ["digest", model.digest()]


def test_a_stump_on_missing_values_alone_says_so(command):
    saved([Stump(1, math.inf, 1, -1, 0.1)], feature_names=("a", "b", "c"))
    assert "b is there -> 1 " in command.succeeds("inspect", "model.json").out


def test_features_without_names_are_columns(command):
    saved([Stump(1, 0.5, 1, -1, 0.1)])
    assert "column 1 <= 0.5 -> 1, else -1" in command.succeeds("inspect", "model.json").out


def test_as_many_rules_as_asked_for(command):
    saved([Stump(0, float(k), 1, 1, 0.1) for k in range(30)])
    assert "and 10 rules more: --rounds 30" in command.succeeds("inspect", "model.json").out
    assert "rules more" not in command.succeeds("inspect", "model.json", "--rounds", 30).out
    assert "rule" not in command.succeeds("inspect", "model.json", "--rounds", 0).out


def test_every_class_has_its_rules_against_the_rest(command):
    saved([Stump(0, 1.0, 1, -1, 0.1)], classes=("a", "b", "c"), n_members=3)
    out = command.succeeds("inspect", "model.json").out
    for label in "abc":
        assert f"{label} against the rest" in out
        assert f"column 0 <= 1 -> {label}, else not {label}" in out


def test_a_model_without_stumps_says_so(command):
    saved([])
    assert "no stump is better than chance" in command.succeeds("inspect", "model.json").out


def test_control_characters_do_not_reach_the_terminal(command):
    saved([Stump(0, 1.0, 1, -1, 0.1)], feature_names=("\x1b[31mred\n", "b", "c"))
    out = command.succeeds("inspect", "model.json").out
    assert r"\x1b[31mred\n <= 1" in out
    assert all(line.isprintable() for line in out.splitlines())


def test_encoded_columns_read_as_they_were_written(command):
    polars = pytest.importorskip("polars")
    random = np.random.default_rng(0)
    n_rows = 60
    frame = polars.DataFrame(
        {
            "colour": [["red", "blue"][k] for k in random.integers(0, 2, n_rows)],
            "flag": random.random(n_rows) < 0.5,
            "day": polars.Series(random.integers(18_000, 19_000, n_rows)).cast(polars.Date),
        }
    )
    days = sorted(frame["day"].to_list())
    rules = {
        "colour is not blue -> a, else b": frame["colour"] == "blue",
        "flag is false -> a, else b": frame["flag"],
        "day <= ": frame["day"] > days[29],
    }
    for rule, is_b in rules.items():
        labels = ["b" if b else "a" for b in is_b]
        labels[0] = "a" if labels[0] == "b" else "b"  # or one stump would say it all
        frame.with_columns(label=polars.Series(labels)).write_parquet("table.parquet")
        command.succeeds(
            *("train", "table.parquet", "--target", "label", "--test-size", 0, "--quiet")
        )
        first = command.succeeds("inspect", "model.json").out.splitlines()[8]
        assert rule in first
    day = datetime.date.fromisoformat(first.split()[3])
    assert days[29] <= day < days[30]


def test_devices_are_those_of_the_library(command):
    header, *lines = command.succeeds("devices").out.splitlines()
    assert header.split() == ["device", "library", "version", "usable"]
    assert len(lines) == len(devices())
    for line, device in zip(lines, devices(), strict=True):
        assert line.split()[:2] == [device.name, device.library]
        assert line.split()[3] == ("yes" if device.usable else "no")
