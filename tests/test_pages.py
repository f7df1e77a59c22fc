"""The README and the site tell the truth: examples run, links lead somewhere, and the reference
lists every public name.

`ci/package` runs their commands, where the package is installed from its wheel, and `ci/pages.py`
brings their outputs up to date.
"""

from __future__ import annotations

import importlib
import re
import subprocess
from pathlib import Path
from typing import Any

import exported
import numpy as np
import pytest
from backends import Backend
from command import Command, command_fixture  # noqa: F401

from gpustump import fit_stump

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
ROOMS = ("gpustump", *map("gpustump.{}".format, ("exports", "plots", "theory", "dask")))
LINKED = [*ROOT.glob("[A-Z]*.md"), *(ROOT / "docs").glob("*.md")]


def blocks(page: Path, language: str = "python") -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def test_the_readme_and_the_first_page_of_the_site_have_the_same_examples():
    assert {*blocks(README)} == {*blocks(ROOT / "docs" / "index.md")}


@pytest.mark.parametrize("page", ["README.md", "docs/start.md"])
def test_the_python_examples_run_in_order(tmp_path, monkeypatch, capsys, page):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks(ROOT / page):
        exec(compile(block, page, "exec"), names)
    assert float(capsys.readouterr().out.split()[0]) > 0.9


def test_the_scan_of_the_readme_finds_the_best_stump(backend: Backend):
    code: dict[str, Any] = {}
    exec(blocks(README)[0], code)
    draw = np.random.default_rng(0)
    X, y, weights = draw.normal(size=(90, 7)), draw.choice([-1, 1], 90), draw.integers(1, 9, 90)
    there = [backend.asarray(own) for own in (X, y, weights)]
    best = int(backend.to_numpy(code["agreements"](*there)).max())
    wrong = (weights.sum() - best) / 2
    assert fit_stump(*there).error == wrong / weights.sum()


@pytest.mark.filterwarnings("ignore:.*unclosed database:ResourceWarning")
def test_the_commands_and_programs_of_the_page_on_exports_work(command: Command) -> None:
    page = ROOT / "docs" / "exports.md"
    for needed in ("onnx", "onnxruntime"):
        pytest.importorskip(needed)
    commands = [line for block in blocks(page, "bash") for line in block.splitlines()]
    assert len(commands) == 4
    for line in commands:
        assert command(*line.removeprefix("gpustump ").split()).code == 0
    program = "\n".join(blocks(page, "python"))
    names: dict[str, object] = {}
    exec(compile(program, page, "exec"), names)
    assert len(names["labels"]) == 569
    (source,) = blocks(page, "c")
    Path("main.c").write_text(source)
    built = [exported.compiler("c"), "-std=c99", *exported.FLAGS, "main.c", "-o", "main", "-lm"]
    subprocess.run(built, check=True)
    said = subprocess.run(["./main"], check=True, capture_output=True, text=True).stdout
    names["row"] = row = np.full((1, 30), np.nan)
    row[0, 20] = 17.5
    with pytest.warns(UserWarning, match="values are missing"):
        label, share = eval("model.predict(row)[0], model.predict_proba(row)[0, 1]", names)
    assert said == f"{label} {share:.3f}\n"
    names["database"].close()


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.name)
def test_links_lead_to_files(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    targets = re.findall(r"\]\((?!http|#)([^)#]+)[^)]*\)", text)
    assert [each for each in targets if not (page.parent / each).exists()] == []


def names_of(room: str) -> list[str]:
    """The public names of a room, each with the room in front."""
    if room == "gpustump.dask":
        pytest.importorskip("distributed")
    return [f"{room}.{name}" for name in importlib.import_module(room).__all__]


def names_in_reference() -> list[str]:
    """The names that the page lists, each with the room of its block in front."""
    found, room = [], ""
    for line in (ROOT / "docs" / "api.md").read_text().splitlines():
        if match := re.fullmatch(r"\.\. currentmodule:: ([\w.]+)", line):
            room = match[1]
        elif match := re.fullmatch(r"   (\w+)", line):
            found.append(f"{room}.{match[1]}")
    return found


def test_the_reference_lists_public_names_only_and_each_once():
    listed = names_in_reference()
    assert len(listed) > 60
    public = [name for room in ROOMS for name in names_of(room)]
    assert sorted(listed) == sorted(public)
