"""The README tells the truth: its commands work, its examples run, its outputs are today's."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpustump
from bench.__main__ import main as bench
from bench.report import page_of

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "README.md").read_text()
ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}

PROBABILITIES = "python examples/probabilities.py"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.S)


def commands() -> list[str]:
    lines = "".join(blocks("bash")).splitlines()
    return [line.partition("   #")[0].strip() for line in lines]


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, shell=True, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True
    )


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # of Dask's sockets
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_the_python_examples_run_in_order(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), names)
    assert float(capsys.readouterr().out.split()[0]) > 0.9


@pytest.mark.slow
def test_the_commands_run_in_order(tmp_path):
    pytest.importorskip("polars")
    seen = 0
    for command in commands():
        if command.startswith(("bash ci/", "pip install")):
            continue
        done = run(command, tmp_path)
        seen += 1
        if "--device cuda" in command and not any(
            device.usable for device in gpustump.devices() if device.name.startswith("cuda")
        ):
            assert done.returncode == 2
            assert done.stderr.count("\n") == 1
        else:
            assert done.returncode == 0, f"{command}: {done.stderr}"
    assert seen >= 6
    lines = (tmp_path / "predictions.csv").read_text().splitlines()
    assert len(lines) == 179
    assert lines[0] == "prediction,P(0),P(1),P(2)"


def test_ci_runs_the_two_commands_that_set_everything_up():
    ci = (ROOT / ".ci" / "run").read_text()
    set_up = [command for command in commands() if command.startswith("bash ci/")]
    assert set_up[:2] == ["bash ci/train", "bash ci/test"]
    assert all(command in ci for command in set_up[:2])


def test_the_benchmarks_it_names_can_be_run(capsys):
    named = [command for command in commands() if command.startswith("bash ci/bench ")]
    assert len(named) >= 3
    for command in named:
        with pytest.raises(SystemExit) as leaving:
            bench([*command.removeprefix("bash ci/bench ").split(), "--help"])
        assert leaving.value.code == 0, command
        assert "usage: " in capsys.readouterr().out


def test_the_extras_it_names_exist():
    named = set(re.findall(r"\.\[([\w-]+)\]", TEXT))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert named
    assert named <= set(project["optional-dependencies"])


def test_its_tables_are_those_of_the_committed_results():
    shown = re.findall(
        r"<!-- output of: python -m bench show (--means )?(\S+) -->\n\n(.*?)\n\n<!-- end",
        TEXT,
        re.S,
    )
    assert {Path(file).stem for _, file, _ in shown} >= {"peers", "accuracy"}
    for means, file, table in shown:
        assert table == page_of(ROOT / file, only_means=bool(means))


def test_its_links_lead_somewhere():
    for place in (ROOT / "README.md", ROOT / "docs" / "pictures.md"):
        targets = re.findall(r"\]\((?!http)([^)#]+)\)", place.read_text())
        assert len(targets) >= 4
        assert all((place.parent / target).exists() for target in targets)


@pytest.mark.slow
def test_the_pictures_shown_are_those_that_the_example_draws(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    done = run(f"{sys.executable} {ROOT / 'examples' / 'pictures.py'} .", tmp_path)
    assert done.returncode == 0, done.stderr
    drawn = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert set(drawn) == {path.name for path in (ROOT / "docs").glob("*.svg")}
    for place in (TEXT, (ROOT / "docs" / "pictures.md").read_text()):
        shown = re.findall(r"\]\((?:docs/)?(\w+\.svg)\)", place)
        assert len(shown) >= 2
        assert set(shown) <= set(drawn)
    for name, picture in drawn.items():
        committed = (ROOT / "docs" / name).read_text()
        if f"Matplotlib v{matplotlib.__version__}," in committed:  # others draw other shapes
            words, numbers = in_parts(picture)
            expected_words, expected_numbers = in_parts(committed)
            assert words == expected_words, name
            # The layout's solver does not end on the same last digits every time.
            assert numbers == pytest.approx(expected_numbers, abs=0.1), name


def in_parts(svg: str) -> tuple[list[str], list[float]]:
    """A picture's text without names made up for its parts, and its numbers."""
    parts = re.split(r"(-?\d+(?:\.\d+)?)", re.sub(r'(id="|href="#|url\(#)[^")]*', "", svg))
    return parts[::2], [float(number) for number in parts[1::2]]


def script(path: Path) -> Any:
    """A Python file as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_outputs_shown_are_what_the_commands_print():
    """Without those that other tests compare."""
    readme = script(ROOT / "ci" / "readme.py")
    found = {
        m["command"]: m for block in (readme.TEXT, readme.MARKDOWN) for m in block.finditer(TEXT)
    }
    here = {c for c in found if not c.startswith("python -m bench show")}
    assert here >= {"gpustump train", PROBABILITIES}
    for command in here - {PROBABILITIES}:
        match = found[command][0]
        assert readme.differences(match) == "", command


@pytest.mark.slow
def test_the_probabilities_shown_are_as_good_as_is_said():
    """Two rows of the table, and the means of what stands in it; all of it takes 15 seconds."""
    (shown,) = re.findall(rf"<!-- output of: {PROBABILITIES} -->\n\n(.*?)\n\n<!-- end", TEXT, re.S)
    _, _, *lines, mean = shown.splitlines()
    example = script(ROOT / "examples" / "probabilities.py")
    tables = example.tables()
    assert [line.split(" | ")[0] for line in lines] == [f"| {name}" for name in tables]
    for name in ("breast cancer", "diabetes, upper half"):
        row = [example.scores_of(make(), tables[name]) for make in example.contenders().values()]
        assert example._line(name, row) in lines
    rows = np.asarray([[float(n) for n in re.findall(r"\d\.\d{3}", line)] for line in lines])
    means = [float(n) for n in re.findall(r"\d\.\d{3}", mean)]
    assert rows.shape == (len(tables), len(means)) == (7, 8)
    assert np.abs(rows.mean(axis=0) - means).max() < 0.0011
