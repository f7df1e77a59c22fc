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
    assert [" ".join(line.split()) for line in lines[6:]] == [
        "rule missing vote error",
        "1. mean radius <= 16.8 -> malignant, else benign benign 1.000 0.077",
        "2. age <= -0.25 -> benign, else malignant malignant 0.500 0.300",
        "3. always malignant malignant 0.333 0.400",
        "",
        "feature votes stumps",
        "mean radius 66.7% 1",
        "age 33.3% 1",
    ]
    assert lines[1].split() == ["classes", "benign,", "malignant"]
    assert lines[4].split() == ["digest", model.digest()]


def test_rules_of_every_kind_and_as_many_as_asked_for(command):
    names = {"feature_names": ("\x1b[31mred\n", "b", "c")}  # nothing of it reaches the terminal
    stumps = [
        Stump(0, 1.0, 1, -1, 0.1),
        Stump(1, math.inf, 1, -1, 0.1),
        Interval(2, 1.0, 3.0, 1, -1, 0.1),
    ]
    saved(stumps, missing_learnt=(True, True, False), **names)
    out = command.succeeds("inspect", "model.json").out
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert r"1. \x1b[31mred\n <= 1 -> 1, else -1 -1 1.000 0.100" in lines
    assert "2. b is present -> 1 -1 0.500 0.100" in lines
    assert "3. 1 < c <= 3 -> 1, else -1 - 0.333 0.100" in lines  # it was missing in no sample
    assert all(line.isprintable() for line in out.splitlines())
    assert (
        "and 1 rule more: --rounds 3"
        in command.succeeds("inspect", "model.json", "--rounds", 2).out
    )
    assert "rule" not in command.succeeds("inspect", "model.json", "--rounds", 0).out
    saved([])
    assert (
        "no stumps: the score is the same for every row"
        in command.succeeds("inspect", "model.json").out
    )


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
    lines = command.succeeds("inspect", "model.json").out.splitlines()
    rules = [line.split(" -> ")[0].split("  ")[-1] for line in lines if " -> " in line]
    assert len({*rules}) == 6
    assert re.fullmatch(r"kind is not z+\.\.\.z+", rules[2])
    assert len(rules[2]) < 80
    assert rules[3:] == ["at <= 1971-01-01", "at <= 1971-01-01 00:01:00", "flag is false"]


@pytest.mark.filterwarnings("ignore:y holds one class only")
@pytest.mark.parametrize("cls", [AdaBoostClassifier, LogitBoostClassifier])
def test_a_model_of_one_class_is_described_and_predicts(command, cls):
    cls().fit(np.zeros((9, 2)), ["yes"] * 9).model_.save("model.json")
    assert re.search(r"classes +yes\n", command.succeeds("inspect", "model.json").out)
    np.save("x.npy", np.zeros((2, 2)))
    lines = command.succeeds("predict", "model.json", "x.npy", "--output", "-").out.splitlines()
    assert lines[1:] == ["1,yes,1.0", "2,yes,1.0"]


def blocks(command) -> list[list[str]]:
    """The parts of what `gpustump devices` prints: devices, engines, the automatic choice, more."""
    return [part.splitlines() for part in command.succeeds("devices").out.split("\n\n")]


@pytest.fixture
def few_devices(monkeypatch):
    """Two devices in place of this machine's, which take seconds to try."""
    found = (
        Device("cpu", "numpy", "2.1", True, "trains host data"),
        Device("cuda", "cupy", None, False, "CuPy is not installed"),
    )
    monkeypatch.setattr("gpustump.cli.commands.devices.devices", lambda: found)
    return found


@pytest.mark.parametrize("problem", [None, "CuPy is not installed", "no kernels for it"])
def test_every_engine_is_listed_with_what_keeps_it_from_training(
    command, few_devices, monkeypatch, problem
):
    monkeypatch.setattr("gpustump.engines.route.why_not_on_gpu", lambda task: problem)
    header, *lines = blocks(command)[0]
    assert header.split() == ["device", "library", "version", "usable"]
    assert [line.split()[:2] for line in lines] == [[d.name, d.library] for d in few_devices]
    header, *lines = blocks(command)[1]
    assert header.split() == ["engine", "device", "usable"]
    assert [line.split()[0] for line in lines] == ["reference", "sorted", "coded", "cuda"]
    assert lines[0].split()[2] == "yes"
    cuda = lines[3]
    assert cuda.split()[1:3] == ["cuda", "yes" if problem is None else "no"]
    if problem == "CuPy is not installed":  # as the list of devices says already
        assert cuda.endswith("no usable GPU; the list of devices says why")
    elif problem is not None:
        assert cuda.endswith(problem)
    text = " ".join(blocks(command)[2])
    assert text.startswith(
        "--device auto: for 100 rounds, tables of 13 million or more values (rows x columns) train"
        if problem is None
        else "--device auto: all tables train on the CPU here."
    )
