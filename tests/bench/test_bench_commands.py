"""`python -m bench` and `ci/gpu` as people run them: sub-commands, their files, their refusals."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from made_up import whole_runs

from bench import machine, records
from bench.__main__ import _parser, main
from bench.front import page as front
from bench.tables import measured, page
from bench.timing import planned
from bench.worker import NOT_YET

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"
SMALL = "--samples 300 --features 4 --turns 2 --rounds 1 40 --threads 1"
RUNS = {
    "backends": f"{SMALL} --votes discrete newton --only 'gpustump numba' 'gpustump numpy'",
    "peers": "--data breast_cancer --turns 2 --rounds 1 40 --threads 1 --only gpustump LightGBM",
    "growth": "--samples 200 400 --features 4 --axes samples --turns 2 --threads 1 --only gpustump",
    "panel": "--cases squared-small --data mixed-quantity --shrink 400 --turns 2 --threads 1",
    "accuracy": "--sets iris --only 'gpustump real' 'scikit-learn AdaBoost' --folds 2 --rounds 5",
    "cluster": "--sizes 600x4 --data noise --workers 2 --rounds 2 6 --threads 1 --only gpustump",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*map(whole_runs("backends", "accuracy"), RUNS)])
def test_a_run_leaves_json_with_every_value_and_prints_its_tables(name, tmp_path, capsys):
    target, given = tmp_path / f"{name}.json", shlex.split(RUNS[name])
    assert main([name, *given, "-o", str(target)]) == 0
    found = records.read(target)
    assert (found.benchmark, shlex.split(found.command)[3:]) == (name, [name, *given])
    assert found.machine.source_sha256 == machine.source_sha256()
    printed = capsys.readouterr().out
    assert printed == page(found) + "\n"
    (case,) = found.cases
    done = measured(found.cases[case])
    assert done
    assert {own.n_turns for own in done} == {2}
    models = {own.facts.get("digest") or own.values.get("model", "")[-1:] for own in done}
    if name in ("backends", "cluster"):  # two kinds of votes; two places
        assert len(done) == {"backends": 4, "cluster": 2}[name]
        assert len(models) == {"backends": 2, "cluster": 1}[name]
    assert main(["show", str(target)]) == 0
    assert capsys.readouterr().out == printed
    assert main(["report", str(tmp_path)]) == 0
    assert page(found) in (tmp_path / "report.md").read_text()


def test_an_end_in_the_middle_leaves_what_was_found(tmp_path, monkeypatch):
    written = records.write

    def end_once_it_is_written(found, path):
        written(found, path)
        raise KeyboardInterrupt

    monkeypatch.setattr(records, "write", end_once_it_is_written)
    given = shlex.split(f"{SMALL} --votes discrete real --only 'gpustump numpy'")
    assert main(["backends", *given, "-o", str(tmp_path / "x.json")]) == 130
    found = [(own.n_turns, own.reason) for own in records.read(tmp_path / "x.json").results]
    assert found == [(1, None), (0, NOT_YET)]


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        ("backends --data nonsense", "'nonsense' is no data set; there are synthetic, noise"),
        ("backends --features 3", "'3' is not a whole number of at least 4"),
        ("peers --only everyone", "invalid choice: 'everyone'"),
        ("peers --rounds 5 5", "--rounds 5 5: the second fit must have more rounds"),
        ("growth --round-counts 5", "more than the short fit's 10 are needed"),
        ("panel --cases tiny --only 'CatBoost cuda'", "nobody who was chosen takes part"),
        ("cluster --sizes 9x4", "'9x4' is not samples x features"),
        ("accuracy --folds 1", "'1' is not a whole number of at least 2"),
        ("accuracy -o x.txt", "--output x.txt: the name must end in .json"),
        ("show nothing.json", "No such file"),
        ("report nowhere", "there is no JSON file of a benchmark in nowhere"),
    ],
)
def test_nonsense_is_refused_before_anything_is_measured(
    command, complaint, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    try:
        status = main(shlex.split(command))
    except SystemExit as leaving:
        status = leaving.code
    assert status == 2
    assert complaint in capsys.readouterr().err


@pytest.mark.parametrize("file", sorted(RESULTS.glob("*.json")), ids=lambda file: file.stem)
def test_committed_results_are_read_their_commands_exist_and_the_report_shows_them(file):
    found = records.read(file)
    assert page(found) in (RESULTS / "report.md").read_text()
    options = _parser().parse_args(shlex.split(found.command)[3:])
    assert options.benchmark == found.benchmark


def test_the_readme_shows_the_front_table_of_the_committed_results():
    assert front() in (ROOT / "README.md").read_text()


def test_the_hash_of_the_sources_covers_every_kind_of_source(tmp_path, monkeypatch):
    monkeypatch.setattr(machine, "ROOT", tmp_path)
    (tmp_path / "gpustump" / "cuda" / "__pycache__").mkdir(parents=True)
    seen = {machine.source_sha256()}
    for name in ("scan.py", "scan.cu", "common.cuh", "page.html"):
        (tmp_path / "gpustump" / "cuda" / name).write_text("same")
        seen.add(machine.source_sha256())
    assert len(seen) == 5
    (tmp_path / "gpustump" / "cuda" / "__pycache__" / "scan.pyc").write_text("compiled")
    assert machine.source_sha256() in seen


# ---- ci/gpu ----

SCRIPT = ROOT / "ci" / "gpu"
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
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", str(SCRIPT), *map(str, arguments)],
        cwd="/",
        env={**os.environ, "PATH": path, **variables},
        capture_output=True,
        text=True,
    )


def test_every_step_runs_commands_that_exist_and_all_is_packed(tmp_path):
    folder, noted = tmp_path / "new" / "results", tmp_path / "noted"
    (tmp_path / "sitecustomize.py").write_text(REHEARSAL)
    done = gpu(folder, PYTHONPATH=str(tmp_path), REHEARSAL=str(noted))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("exit status 0") == len(STEPS)
    assert STEPS[:2] == ["devices", "tests"]
    written = {f"{step}.txt" for step in STEPS}
    assert {path.name for path in folder.iterdir()} == written
    with tarfile.open(f"{folder}.tar.gz") as archive:
        assert {Path(name).name for name in archive.getnames()} == {*written, "results"}
    commands = [json.loads(line) for line in noted.read_text().splitlines()]
    made = set()
    for module, *arguments in commands:
        if module == "bench":
            chosen = _parser().parse_args(arguments)
            if "output" in chosen:
                assert planned(chosen)
                made.add(chosen.output.name)
        elif module == "pytest":
            assert all((ROOT / word).exists() for word in arguments if word.startswith("tests/"))
        else:
            assert [module, *arguments] in (
                ["gpustump", "devices"],
                ["gpustump", "kernels", "--build"],
            )
    assert {f"{name}.json" for name in ("digest", "small", "peers", "growth")} <= made
    assert ["bench", "report", str(folder)] in commands


def test_nonsense_is_refused_by_name(tmp_path):
    for arguments, complaint in (
        ([], "name the folder"),
        (["--fast", tmp_path], "--fast is no option"),
        (["--seconds", "soon", tmp_path], "--seconds needs a whole number"),
        ([tmp_path, "dance"], "dance is no step; there are devices tests"),
    ):
        done = gpu(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert complaint in done.stderr
