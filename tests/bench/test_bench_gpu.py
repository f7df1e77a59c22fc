"""`ci/gpu` can run as it stands: every command in it exists, with the options that it is given."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from benchmark_runs import whole_run

from bench import records
from bench.__main__ import _parser
from bench.benchmarks import planned

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "ci" / "gpu"
PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
SECONDS = re.search(r"^seconds_of=\(([^)]*)\)$", SCRIPT.read_text(), re.M)[1].split()
STEPS = [step.partition(":")[0] for step in SECONDS]
REHEARSAL = """\
import json, os, sys
if "-m" in sys.orig_argv:  # note the command instead of running it
    with open(os.environ["REHEARSAL"], "a") as file:
        print(json.dumps(sys.orig_argv[sys.orig_argv.index("-m") + 1 :]), file=file)
    os._exit(0)
"""


def gpu(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", str(SCRIPT), *map(str, arguments)],
        cwd="/",
        env={**os.environ, "PATH": PATH, **variables},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("options", [["--tiny"], []], ids=["tiny", "full"])
def test_every_step_runs_commands_that_exist_with_options_that_they_take(options, tmp_path):
    folder, noted = tmp_path / "new" / "results", tmp_path / "noted"
    (tmp_path / "sitecustomize.py").write_text(REHEARSAL)
    done = gpu(*options, folder, PYTHONPATH=str(tmp_path), REHEARSAL=str(noted))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("exit status 0") == len(STEPS)
    assert {path.name for path in folder.iterdir()} == {f"{step}.txt" for step in STEPS}
    commands = [json.loads(line) for line in noted.read_text().splitlines()]
    written = set()
    for module, *arguments in commands:
        if module == "bench":
            chosen = _parser().parse_args(arguments)
            if "output" in chosen:
                assert planned(chosen)
                written.add(chosen.output)
        elif module == "pytest":
            wanted = re.search(r"--junitxml=(\S+)", " ".join(arguments))[1]
            assert Path(wanted) in (folder / "tests.xml", folder / "jax.xml")
            assert all((ROOT / word).exists() for word in arguments if word.startswith("tests/"))
        else:
            assert [module, *arguments] == ["gpustump", "devices"]
    names = {"digest", "small", "limit", "peers", "backends", "growth"}
    needing_more = {folder / f"{name}.json" for name in ("flights", "panel", "noise", "late")}
    assert written - needing_more == {folder / f"{name}.json" for name in names}
    assert needing_more <= written or "--tiny" not in options
    assert ["bench", "report", str(folder)] in commands


def test_a_step_without_enough_time_is_left_out_by_name(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(REHEARSAL)
    noted = {"PYTHONPATH": str(tmp_path), "REHEARSAL": str(tmp_path / "noted")}
    done = gpu("--tiny", "--seconds", 110, tmp_path / "x", "growth", "small", **noted)
    assert done.returncode == 0
    assert "== growth: left out, since less than half of its 240 s is left" in done.stdout
    assert "== small: exit status 0" in done.stdout


@whole_run
def test_a_step_is_ended_when_the_time_is_up(tmp_path):
    endless = "import sys, time\nif '-m' in sys.orig_argv: time.sleep(60)"
    (tmp_path / "sitecustomize.py").write_text(endless)
    variables = {"PYTHONPATH": str(tmp_path)}
    done = gpu("--tiny", "--seconds", 13, tmp_path / "x", "devices", "small", **variables)
    assert re.findall(r"^== (\w+): (exit status|left out)", done.stdout, re.M) == [
        ("devices", "exit status"),
        ("small", "left out"),
    ]
    assert done.returncode == 124


@whole_run
def test_a_failed_step_stops_no_other_and_wheels_are_used_without_network(tmp_path):
    wheels, results = tmp_path / "wheels", tmp_path / "results"
    wheels.mkdir()
    with zipfile.ZipFile(wheels / "carried-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("sitecustomize.py", "import os; open(os.environ['CARRIED'], 'w')")
        about = "Metadata-Version: 2.1\nName: carried\nVersion: 1.0\n"
        wheel.writestr("carried-1.0.dist-info/METADATA", about)
        wheel.writestr("carried-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr("carried-1.0.dist-info/RECORD", "")
    steps = ["report", "limit", "report"]  # the first finds nothing to report
    elsewhere = {"PIP_INDEX_URL": "http://localhost:9/", "CARRIED": str(tmp_path / "carried")}
    done = gpu("--wheels", wheels, "--tiny", results, *steps, **elsewhere)
    assert re.findall(r"^== (\w+): exit status (\d)", done.stdout, re.M) == [
        *[("report", "2"), ("limit", "0"), ("report", "0")]
    ]
    assert done.returncode == 2
    assert records.read(results / "limit.json").benchmark == "limit"
    assert "(limit.svg)" in (results / "report.md").read_text()
    assert (results / "limit.svg").exists()
    assert (tmp_path / "carried").exists()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "name the folder"),
        (["--fast", "x"], "--fast is no option"),
        (["--seconds", "soon", "x"], "--seconds needs a whole number"),
        (["x", "dance"], "dance is no step; there are devices tests"),
    ],
)
def test_nonsense_is_refused_by_name(arguments, complaint, tmp_path):
    done = gpu(*(str(tmp_path / a) if a == "x" else a for a in arguments))
    assert done.returncode == 2
    assert complaint in done.stderr
    assert done.stdout == ""
