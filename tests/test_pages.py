"""The README and the site tell the truth: examples run, and links lead somewhere.

`ci/package` runs their commands, where the package is installed from its wheel, and `ci/pages.py`
brings their outputs up to date.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from backends import Backend

from gpustump import fit_stump

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
LINKED = [*ROOT.glob("[A-Z]*.md"), *(ROOT / "docs").glob("*.md")]


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text(), re.S)


def test_the_readme_and_the_first_page_of_the_site_have_the_same_examples():
    assert {*python_blocks(README)} == {*python_blocks(ROOT / "docs" / "index.md")}


@pytest.mark.parametrize("page", ["README.md", "docs/start.md"])
def test_the_python_examples_run_in_order(tmp_path, monkeypatch, capsys, page):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in python_blocks(ROOT / page):
        exec(compile(block, page, "exec"), names)
    assert float(capsys.readouterr().out.split()[0]) > 0.9


def test_the_scan_of_the_readme_finds_the_best_stump(backend: Backend):
    code: dict[str, Any] = {}
    exec(python_blocks(README)[0], code)
    draw = np.random.default_rng(0)
    X, y, weights = draw.normal(size=(90, 7)), draw.choice([-1, 1], 90), draw.integers(1, 9, 90)
    there = [backend.asarray(own) for own in (X, y, weights)]
    best = int(backend.to_numpy(code["agreements"](*there)).max())
    wrong = (weights.sum() - best) / 2
    assert fit_stump(*there).error == wrong / weights.sum()


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.name)
def test_links_lead_to_files(page):
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
    targets = re.findall(r"\]\((?!http|#)([^)#]+)[^)]*\)", text)
    assert [each for each in targets if not (page.parent / each).exists()] == []
