"""Every room imports only lower ones: the contracts in pyproject.toml hold, and notice if not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from fault_counts import count

pytest.importorskip("importlinter")

ROOT = Path(__file__).resolve().parent.parent
LINT = (
    "import sys; from importlinter.cli import lint_imports;"
    "sys.exit(lint_imports(no_cache=True, config_filename=sys.argv[1]))"
)


def linted(folder: Path, path: Path) -> subprocess.CompletedProcess[str]:
    """import-linter in a process of its own: it disables the loggers of the one that it runs in."""
    return subprocess.run(
        [sys.executable, "-c", LINT, str(ROOT / "pyproject.toml")],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(path)},
        capture_output=True,
        text=True,
    )


def test_every_import_keeps_to_the_contracts():
    done = linted(ROOT, ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


FORBIDDEN = [
    ("arrays/order_keys.py", "import gpustump.learners.stump"),
    ("learners/stump.py", "from gpustump.engines import contract"),
    ("boosting/votes.py", "from gpustump.estimators import AdaBoostClassifier"),
    ("theory/margins.py", "from gpustump import plots"),
    ("model/ensemble.py", "from gpustump import StumpEnsemble"),  # through the root
    (
        "model/explanation.py",
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from gpustump.boosting.rounds import Boosting",
    ),
    ("engines/cpu/sorted.py", "import gpustump.engines.reference.table"),
    ("engines/contract.py", "import gpustump.engines.cuda.engine"),
    ("engines/cuda/engine.py", "import gpustump.engines.route"),
    ("data/labels.py", "def late():\n    import numba"),
    ("learners/interval.py", "import cupy"),
    ("new_room.py", ""),
]
"""Files, and a line in each that breaks a contract."""


@pytest.mark.parametrize(("file", "line"), FORBIDDEN[: count(2, len(FORBIDDEN))])
def test_an_import_against_the_direction_or_a_room_without_a_place_is_found(tmp_path, file, line):
    package = tmp_path / "gpustump"
    shutil.copytree(ROOT / "gpustump", package, ignore=shutil.ignore_patterns("__pycache__"))
    with (package / file).open("a") as source:
        source.write(f"\n{line}\n")
    done = linted(tmp_path, tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "gpustump." + file.removesuffix(".py").replace("/", ".") in done.stdout or (
        file.removesuffix(".py") in done.stdout
    )
