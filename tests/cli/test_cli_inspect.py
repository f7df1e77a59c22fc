"""`gpustump inspect` and `gpustump devices`: what a reader sees."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from command import command_fixture  # noqa: F401

from gpustump import (
    AdaBoostClassifier,
    Interval,
    LogitBoostClassifier,
    Member,
    Stump,
    StumpEnsemble,
)
from gpustump.arrays.devices import Device
from gpustump.model.encoding import Encoding, InputColumn


def saved(stumps: list[Stump], **options) -> StumpEnsemble:
    votes = tuple(round(2**36 / (k + 1)) / 2**36 for k in range(len(stumps)))
    model = StumpEnsemble((Member(tuple(stumps), votes),), **{"n_features": 3} | options)
    model.save("model.json")
    return model


def test_stumps_read_as_rules_in_the_models_own_names(command):
    stumps = [
        Stump(0, 16.8, 1, -1, 0.077),
        Stump(1, -0.25, -1, 1, 0.3),
        Stump(0, math.inf, 1, 1, 0.4),
        Stump(1, math.inf, 1, -1, 0.1),
        Interval(2, 1.0, 3.0, 1, -1, 0.1),
    ]
    model = saved(
        stumps,
        classes=("benign", "malignant"),
        feature_names=("mean radius", "\x1b[31mred\n", "age"),  # nothing of it reaches the terminal
        missing_learnt=(True, True, False),
    )
    lines = command.lines("inspect", "model.json")
    assert lines[6:] == [
        "rule missing vote error",
        "1. mean radius <= 16.8 -> malignant, else benign benign 1.000 0.077",
        r"2. \x1b[31mred\n <= -0.25 -> benign, else malignant malignant 0.500 0.300",
        "3. always malignant malignant 0.333 0.400",
        r"4. \x1b[31mred\n is present -> malignant benign 0.250 0.100",
        "5. 1 < age <= 3 -> malignant, else benign - 0.200 0.100",
        "",
        "feature votes stumps",
        "mean radius 51.3% 1",
        r"\x1b[31mred\n 38.5% 2",
        "age 10.3% 1",
    ]
    assert lines[1] == "classes benign, malignant"
    assert lines[4] == f"digest {model.digest()}"


def test_as_many_rules_are_shown_as_asked_for(command):
    saved([Stump(0, float(k), 1, -1, 0.1) for k in range(3)])
    inspect = ("inspect", "model.json")
    assert "and 1 rule more: --rounds 3" in command.lines(*inspect, "--rounds", 2)
    assert "rule" not in command.succeeds(*inspect, "--rounds", 0).out
    saved([])
    assert "no stumps: the score is the same for every row" in command.lines(*inspect)


def test_long_categories_are_cut_and_a_midnight_is_a_date(command):
    values = (f"{'x' * 20}1{'y' * 20}", f"{'x' * 20}2{'y' * 20}", "z" * 90)
    columns = (
        InputColumn("kind", 0, "category", values),
        InputColumn("at", 1, "datetime"),
        InputColumn("flag", 2, "boolean"),
    )
    encoding = Encoding(columns, 3, named=True)
    midnight = 86400.0 * 365
    stumps = [Stump(j, 0.5, 1, -1, 0.1) for j in range(3)]
    stumps += [Stump(3, midnight, 1, -1, 0.1), Stump(3, midnight + 60.0, 1, -1, 0.1)]
    stumps.append(Stump(4, 0.5, 1, -1, 0.1))
    details = {"encoding": encoding.as_details()}
    saved(stumps, n_features=5, feature_names=encoding.feature_names, details=details)
    lines = command.lines("inspect", "model.json")
    rules = [line.split(" -> ")[0].partition(". ")[2] for line in lines if " -> " in line]
    assert len({*rules}) == 6
    assert re.fullmatch(r"kind is not z+\.\.\.z+", rules[2])
    assert len(rules[2]) < 80
    assert rules[3:] == ["at <= 1971-01-01", "at <= 1971-01-01 00:01:00", "flag is false"]


@pytest.mark.filterwarnings("ignore:y holds one class only")
@pytest.mark.parametrize("cls", [AdaBoostClassifier, LogitBoostClassifier])
def test_a_model_of_one_class_is_described_and_predicts(command, cls):
    cls().fit(np.zeros((9, 2)), ["yes"] * 9).model_.save("model.json")
    assert "classes yes" in command.lines("inspect", "model.json")
    np.save("x.npy", np.zeros((2, 2)))
    lines = command.succeeds("predict", "model.json", "x.npy", "--output", "-").out.splitlines()
    assert lines[1:] == ["1,yes,1.0", "2,yes,1.0"]


@pytest.mark.parametrize("problem", [None, "CuPy is not installed", "no kernels for it"])
def test_every_engine_is_listed_with_what_keeps_it_from_training(command, monkeypatch, problem):
    of_this_machine = (  # in their place, as they take seconds to try
        Device("cpu", "numpy", "2.1", True, "trains host data"),
        Device("cuda", "cupy", None, False, "CuPy is not installed"),
    )
    monkeypatch.setattr("gpustump.cli.commands.devices.devices", lambda: of_this_machine)
    monkeypatch.setattr("gpustump.engines.route.why_not_on_gpu", lambda task: problem)
    parts = command.succeeds("devices").out.split("\n\n")
    header, *lines = parts[0].splitlines()
    assert header.split() == ["device", "library", "version", "usable"]
    assert [line.split()[:2] for line in lines] == [["cpu", "numpy"], ["cuda", "cupy"]]
    header, *lines = parts[1].splitlines()
    assert header.split() == ["engine", "device", "usable"]
    assert [line.split()[0] for line in lines] == ["reference", "sorted", "coded", "cuda"]
    assert lines[0].split()[2] == "yes"
    assert lines[3].split()[1:3] == ["cuda", "yes" if problem is None else "no"]
    if problem == "CuPy is not installed":  # as the list of devices says already
        assert lines[3].endswith("no usable GPU; the list of devices says why")
    elif problem is not None:
        assert lines[3].endswith(problem)
    assert " ".join(parts[2].split()).startswith(
        "--device auto: for 100 rounds, tables of 13 million or more values (rows x columns) train"
        if problem is None
        else "--device auto: all tables train on the CPU here."
    )
