"""`ci/gpu` is ready to run as it stands: tried here at a tiny size, on the CPU if need be."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from bench import records

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = ROOT / "ci" / "gpu"
PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"


def gpu(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", str(SCRIPT), *map(str, arguments)],
        cwd="/",
        env={**os.environ, "PATH": PATH, **variables},
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
def test_one_command_leaves_tests_json_figures_and_a_report_in_a_folder(tmp_path):
    folder = tmp_path / "new" / "results"
    done = gpu("--tiny", folder)
    assert done.returncode == 0, done.stdout + done.stderr
    files = {file.name for file in folder.iterdir()}
    made = ("backends", "large", "digest", "small", "peers", "limit", "growth")
    for name in made:
        assert {f"{name}.json", f"{name}.png", f"{name}.svg"} <= files
        records.read(folder / f"{name}.json")
    steps = re.search(r"^all_steps=\((.*)\)$", SCRIPT.read_text(), re.M)[1].split()
    assert {f"{step}.txt" for step in steps} | {"tests.xml", "report.md"} <= files
    assert " passed" in (folder / "tests.txt").read_text()
    assert done.stdout.count("exit status 0") == len(steps)


@pytest.mark.slow
def test_a_step_that_fails_is_told_and_stops_no_other(tmp_path):
    (tmp_path / "broken.json").write_text("{")
    done = gpu("--tiny", tmp_path, "report", "devices")
    assert done.returncode == 2
    assert "== report: exit status 2" in done.stdout
    assert "== devices: exit status 0" in done.stdout
    assert "numpy" in (tmp_path / "devices.txt").read_text()


@pytest.mark.slow
def test_wheels_in_a_folder_are_used_without_network(tmp_path):
    wheels, results = tmp_path / "wheels", tmp_path / "results"
    wheels.mkdir()
    with zipfile.ZipFile(wheels / "carried-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("carried.py", "")
        wheel.writestr("sitecustomize.py", "print('carried is here')")
        about = "Metadata-Version: 2.1\nName: carried\nVersion: 1.0\n"
        wheel.writestr("carried-1.0.dist-info/METADATA", about)
        wheel.writestr("carried-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr("carried-1.0.dist-info/RECORD", "")
    done = gpu("--wheels", wheels, results, "devices", PIP_INDEX_URL="http://localhost:9/")
    assert done.returncode == 0, done.stderr
    assert "carried is here" in (results / "devices.txt").read_text()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "name the folder"),
        (["--fast", "x"], "--fast is no option"),
        (["x", "dance"], "dance is no step; there are devices profile"),
    ],
)
def test_nonsense_is_refused_by_name(arguments, complaint, tmp_path):
    done = gpu(*(str(tmp_path / a) if a == "x" else a for a in arguments))
    assert done.returncode == 2
    assert complaint in done.stderr
    assert done.stdout == ""
