"""The README and the site tell the truth: examples run, outputs are today's, links lead somewhere.

`ci/package` runs their commands, where the package is installed from its wheel.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from backends import Backend

import gpustump
from bench.front import page as front
from gpustump import fit_stump

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
README, START = ROOT / "README.md", ROOT / "docs" / "start.md"
LINKED = [*ROOT.glob("[A-Z]*.md"), *(ROOT / "docs").glob("*.md")]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.S)


def commands(page: Path) -> list[str]:
    lines = "".join(blocks(page, "bash")).splitlines()
    return [line.partition("   #")[0].strip() for line in lines]


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, shell=True, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True
    )


@pytest.mark.parametrize("page", [README, START], ids=lambda page: page.name)
def test_the_python_examples_run_in_order(tmp_path, monkeypatch, capsys, page):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks(page, "python"):
        exec(compile(block, page.name, "exec"), names)
    assert float(capsys.readouterr().out.split()[0]) > 0.9


def test_the_landing_page_has_the_install_line_and_the_code_of_the_readme():
    index = ROOT / "docs" / "index.md"
    assert sorted(blocks(index, "python")) == sorted(blocks(README, "python"))
    (install,) = commands(index)
    assert install in README.read_text()


def test_no_page_installs_gpustump_from_an_index_that_does_not_have_it():
    """`pip install 'gpustump[cpu]'` finds nothing; an address behind the @ does."""
    pages = [*LINKED, *(ROOT / "docs").glob("[gh]*/*.py"), *(ROOT / "docs").glob("[gh]*/*.rst")]
    assert len(pages) > 20
    found = [
        f"{page.name}: {line}"
        for page in pages
        for line in re.findall(r"pip install '?gpustump(?![^'`]* @ ).*", page.read_text())
    ]
    assert found == []


def test_an_output_on_the_start_page_stands_below_the_command_that_prints_it():
    text = START.read_text()
    shown = re.findall(r"<!-- output of: (.*?) -->", text)
    assert shown
    for command in shown:
        assert f"```bash\n{command}\n```\n\n<!-- output of: {command} -->" in text


def test_ci_first_runs_the_two_commands_that_set_everything_up(tmp_path):
    ran, project = tmp_path / "ran", tmp_path / "project"
    for name in ("train", "test", "docs", "package"):  # they write down how they are run
        (project / "ci").mkdir(parents=True, exist_ok=True)
        (project / "ci" / name).write_text(f'echo "bash ci/{name}${{*:+ $*}}" >> "{ran}"\npwd -P\n')
    shutil.copytree(ROOT / ".ci", project / ".ci")
    author = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    for command in (["init", "-q"], ["add", "."], [*author, "commit", "-q", "-m", "Stand-ins"]):
        subprocess.run(["git", *command], cwd=project, check=True)
    environment = {key: value for key, value in os.environ.items() if key != "VIRTUAL_ENV"}
    program = ["bash", ".ci/run"]
    places = subprocess.check_output(program, cwd=project, env=environment, text=True).splitlines()
    set_up = [command for command in commands(README) if command.startswith("bash ci/")][:2]
    steps = ran.read_text().splitlines()
    assert set_up == steps[:2] == ["bash ci/train", "bash ci/test"]
    assert len(steps) == len(places) == 5
    assert len({project.resolve(), *map(Path, places[:2])}) == 3  # each in a clone of its own


def test_the_citation_names_the_version():
    assert f"\nversion: {gpustump.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_the_scan_of_the_readme_finds_the_best_stump(backend: Backend):
    code: dict[str, Any] = {}
    exec(blocks(README, "python")[0], code)
    draw = np.random.default_rng(0)
    X, y, weights = draw.normal(size=(90, 7)), draw.choice([-1, 1], 90), draw.integers(1, 9, 90)
    there = [backend.asarray(own) for own in (X, y, weights)]
    best = int(backend.to_numpy(code["agreements"](*there)).max())
    wrong = (weights.sum() - best) / 2
    assert fit_stump(*there).error == wrong / weights.sum()


@pytest.mark.parametrize("page", [README, START], ids=lambda page: page.name)
def test_the_extras_it_names_exist(page):
    found = re.findall(r"\.\[([\w,-]+)\]", page.read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert found
    assert {name for names in found for name in names.split(",")} <= {
        *project["optional-dependencies"]
    }


@pytest.mark.parametrize("page", [README, ROOT / "docs" / "index.md"], ids=lambda page: page.name)
def test_the_figures_are_those_of_the_committed_results(page):
    text = page.read_text()
    (shown,) = re.findall(r"<!-- output of: python -m bench front -->\n\n(.*?)\n\n<!--", text, re.S)
    assert shown == front()


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.name)
def test_links_lead_to_files(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    targets = re.findall(r"\]\((?!http|#)([^)#]+)[^)]*\)", text)
    if page == README:
        assert len(targets) >= 20
    assert [each for each in targets if not (page.parent / each).exists()] == []


@pytest.mark.slow
def test_the_pictures_shown_are_those_that_the_example_draws(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    done = run(f"{sys.executable} {ROOT / 'examples' / 'pictures.py'} .", tmp_path)
    assert done.returncode == 0, done.stderr
    drawn = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert set(drawn) == {path.name for path in (ROOT / "docs").glob("*.svg")}
    for place in (README, START, ROOT / "docs" / "pictures.md"):
        shown = re.findall(r"\]\((?:docs/)?(\w+\.svg)\)", place.read_text())
        assert len(shown) >= 1
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
    """Without those that other tests compare. Pages that show the same are compared once."""
    pages = script(ROOT / "ci" / "pages.py")
    found = {
        match[0]: match["command"]
        for page in pages.PAGES
        for block in (pages.TEXT, pages.MARKDOWN)
        for match in block.finditer(page.read_text())
    }
    here = {text: command for text, command in found.items() if "-m bench" not in command}
    assert list(here.values()) == ["gpustump train"]
    for text, command in here.items():
        assert pages.differences(text) == "", command
