"""`python -m bench` as people run it: every sub-command, its files, its refusals."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmark_runs import whole_run, whole_runs
from made_up import absent, report, run

from bench import machine, records
from bench.__main__ import _missed, _parser, main
from bench.benchmarks import planned
from bench.contenders import BACKENDS, PEERS, VOTES, is_ours, on_host
from bench.data import FAMILIES
from bench.machine import source_sha256
from bench.records import Report, Section
from bench.summary import disagreement, measured
from bench.tables import page
from bench.worker import NOT_YET

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "bench" / "results"
TINY = ["--turns", "2", "--rounds", "1", "40", "--threads", "1"]
SMALL = ["--samples", "300", "--features", "4"]
SUB_COMMANDS = {
    "backends": [*SMALL, "--only", "gpustump numba", "gpustump numpy"],
    "peers": ["--data", "breast_cancer", "--only", "gpustump", "gpustump cuda", "LightGBM"],
    "limit": [*SMALL, "--copy-bytes", "65536", "--only", "gpustump numpy"],
    "growth": [
        *["--samples", "200", "400", "--features", "3", "--only", "gpustump numpy"],
        *["--axes", "samples"],
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*map(whole_runs("backends", "limit"), SUB_COMMANDS)])
def test_a_run_leaves_json_with_every_timing_a_figure_and_its_tables(name, tmp_path, capsys):
    target = tmp_path / f"{name}.json"
    assert main([name, *SUB_COMMANDS[name], *TINY, "-o", str(target)]) == 0
    found = records.read(target)
    assert found.benchmark == name
    assert shlex.split(found.command) == ["python", "-m", "bench", name, *SUB_COMMANDS[name], *TINY]
    assert found.machine.source_sha256 == source_sha256()
    assert target.with_suffix(".svg").read_text().rstrip().endswith("</svg>")
    assert capsys.readouterr().out == page(found) + "\n"
    (section,) = found.sections
    runs = measured(section)
    assert runs
    assert all(len(each.turns) == 2 for each in runs)
    assert {turn.predict is None for each in runs for turn in each.turns} == {name != "peers"}
    {"backends": one_model, "peers": whole, "growth": exponent, "limit": speeds}[name](found)


def one_model(found: Report) -> None:
    """Both backends train the same."""
    (section,) = found.sections
    assert len(measured(section)) == 2
    assert len({each.digest for each in section.runs}) == 1


def whole(found: Report) -> None:
    """Memory is measured, and whoever is not here has a reason."""
    (section,) = found.sections
    assert (section.name, section.runs[0].samples) == ("breast_cancer", 427)
    ours, cuda, light = section.runs
    assert (ours.contender, ours.reason, ours.host_memory is None) == ("gpustump", None, False)
    assert cuda.reason or cuda.device.startswith("cuda")
    assert light.reason in (None, "lightgbm is not installed")


def exponent(found: Report) -> None:
    """The axis has two points and ends with an exponent."""
    assert [(r.samples, r.features) for r in found.sections[0].runs] == [(200, 3), (400, 3)]
    assert page(found).count("exponent") == 1


def speeds(found: Report) -> None:
    """The memory is measured in every turn, and rounds are compared with it."""
    host = found.speeds[0]
    assert (host.device, host.threads, host.copied) == ("cpu", 1, 2 * 65536)
    assert len(host.copy) == len(host.gather) == 2
    assert re.search(r"gpustump numpy .* \d[.\d]*% .* \d[.\d]*% ", page(found))


@whole_run
def test_the_panel_measures_its_cases_shrunk_also_of_ten_classes(tmp_path, capsys):
    target = tmp_path / "panel.json"
    chosen = ["--cases", "classes", "--shrink", "1000", "--only", "gpustump LogitBoost"]
    assert main(["panel", *chosen, "--turns", "1", "--threads", "1", "-o", str(target)]) == 0
    (section,) = records.read(target).sections
    (ours,) = measured(section)
    assert (section.name, ours.data, ours.samples) == ("classes ten_classes", "ten_classes", 500)
    assert (ours.estimator, ours.rounds) == ("LogitBoostClassifier", (10, 100))
    assert ours.accuracy > 0.2 > 0.1  # as good as guessing
    assert "| ten_classes | 500 x 30 |" in capsys.readouterr().out
    assert target.with_suffix(".svg").exists()


def test_the_panel_has_every_family_at_two_sizes_early_and_late():
    plans = planned(_parser().parse_args(["panel", "--shrink", "10000"]))
    found = {
        (entry.data.args[0], entry.rounds, plan.name.partition(" ")[0])
        for plan in plans
        for entry in plan.entries
    }
    for name in ("large", "small"):
        for family in FAMILIES:
            assert {(family, (10, 100), name), (family, (100, 1000), f"{name}-late")} <= found
    for plan in plans:
        names = [entry.contender.name for entry in plan.entries]
        assert any(map(is_ours, names))
        assert not all(map(is_ours, names))


def test_the_panel_measures_regressions(tmp_path, capsys):
    target = tmp_path / "panel.json"
    chosen = ["--cases", "squared-small", "--data", "mixed-quantity", "--shrink", "400"]
    assert main(["panel", *chosen, "--turns", "1", "--threads", "1", "-o", str(target)]) == 0
    (section,) = records.read(target).sections
    found = {run.contender: run for run in measured(section)}
    ours = found["gpustump squared"]
    assert (ours.estimator, ours.accuracy, ours.auc) == ("StumpBoostingRegressor", None, None)
    for each in found.values():
        assert each.estimator.endswith("Regressor")
        assert 0.2 < each.r2 < 0.9
    assert "R2 |" in capsys.readouterr().out


def test_the_panel_has_cases_on_a_gpu_that_take_part_if_they_are_named():
    named = ["--cases", "cuda-large", "cuda", "cuda-late", "--shrink", "10000"]
    plans = planned(_parser().parse_args(["panel", *named]))
    assert [plan.name for plan in plans] == [
        "cuda-large synthetic",
        "cuda noise",
        "cuda-late noise",
    ]
    assert plans[0].entries[0].data.args == ("synthetic", 1000, 100)
    who = ["gpustump cuda", "gpustump cuda real", "gpustump cuda LogitBoost", "XGBoost cuda"]
    who += [f"{name}, CuPy arrays" for name in who]
    for plan in plans:
        assert [entry.contender.name for entry in plan.entries] == who
    usual = {plan.name for plan in planned(_parser().parse_args(["panel"]))}
    assert not usual & {plan.name for plan in plans}


@whole_run
def test_an_end_in_the_middle_leaves_what_was_found(tmp_path, monkeypatch, capsys):
    target = tmp_path / "x.json"
    written = records.write

    def end_once_it_is_written(found: Report, path: Path) -> None:
        written(found, path)
        raise KeyboardInterrupt

    monkeypatch.setattr(records, "write", end_once_it_is_written)
    arguments = [*SMALL, *TINY, "--only", "gpustump numpy", "gpustump numba", "-o", str(target)]
    assert main(["backends", *arguments]) == 130
    numba, numpy = records.read(target).sections[0].runs
    found = {run.contender: (len(run.turns), run.reason) for run in (numba, numpy)}
    assert found == {"gpustump numba": (1, None), "gpustump numpy": (0, NOT_YET)}
    assert f"Not measured: gpustump numpy ({NOT_YET})." in page(records.read(target))


@whole_run
def test_backends_are_compared_for_each_kind_of_votes(tmp_path):
    target, ours = tmp_path / "x.json", ["gpustump numpy", "gpustump numba"]
    arguments = [*SMALL, "--rounds", "1", "4", "--turns", "1", "--votes", "real", "newton"]
    arguments += ["--only", *ours, "--need", ours[0], "--threads", "1", "-o", str(target)]
    assert main(["backends", *arguments]) == 0
    runs = measured(records.read(target).sections[0])
    names = [f"{name}{kind}" for kind in (" real", " LogitBoost") for name in ours]
    assert sorted(run.contender for run in runs) == sorted(names)
    assert len({run.digest for run in runs}) == 2


TRIAL = """\
import warnings
import numpy as np
from bench.contenders import PEERS, rounds_made
from bench.data import synthetic

warnings.simplefilter("ignore")
data = synthetic(100, 3)
for contender in PEERS:
    if contender.absent() is None and contender.obstacle() is None:
        contender.load()
        model = contender.make(3, 1).fit(data.X, data.y)
        assert contender.disqualified(model, 3) is None, contender.name
        assert rounds_made(model) == 3, contender.name
        assert np.mean(model.predict(data.X_test) == data.y_test) > 0.5, contender.name
        print(contender.name)
"""


@pytest.mark.slow
def test_every_peer_that_is_here_trains_as_many_rounds_as_it_is_told():
    done = subprocess.run([sys.executable, "-c", TRIAL], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    here = {peer.name for peer in PEERS if peer.absent() is None and "cuda" not in peer.name}
    assert here <= {*done.stdout.splitlines()}


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_data_are_placed_in_the_library_that_is_measured(library):
    module = pytest.importorskip(library)
    (contender,) = (each for each in BACKENDS if each.name == f"gpustump {library}")
    x = np.arange(3, dtype=np.float32)
    placed = contender.placed(x)
    assert isinstance(placed, module.Tensor if library == "torch" else module.Array)
    assert np.array_equal(on_host(placed), x)


def test_a_peer_that_is_missing_is_named_with_the_reason():
    peers = Section("drawn", (run((1, 2, 3), contender="here"), absent()))
    for benchmark in ("peers", "backends", "growth"):
        section = Section("samples", peers.runs) if benchmark == "growth" else peers
        text = page(report(benchmark, section))
        assert text.count("absent") == text.count("Not measured: absent (not installed).") == 1


def test_the_panel_compares_with_the_fastest_peer_of_each_case():
    early = (
        run((0.1, 1.1), (0.1, 1.1), contender="gpustump", rounds=(10, 110)),
        run((1.0, 5.0), (1.0, 5.0), contender="quick to prepare", rounds=(10, 110)),
        run((4.0, 6.0), (4.0, 6.0), contender="quick to train", rounds=(10, 110)),
        run((9.0, 8.9), (9.9, 9.5), contender="made negative by noise", rounds=(10, 110)),
    )
    text = page(report("panel", Section("early", early), Section("late", (early[0], absent()))))
    lines = [line for line in text.splitlines() if line.startswith("| drawn")]
    assert [[cell.strip() for cell in line.split("|")[2:-1]] for line in lines] == [
        ["1000 x 8", "10 to 110", "quick to train", "20.0", "0.500 (0.500..0.500)"],
        ["1000 x 8", "10 to 110", "-", "-", "-"],
        ["1000 x 8", "110", "quick to prepare", "5.00", "0.220 (0.220..0.220)"],
        ["1000 x 8", "110", "-", "-", "-"],
    ]
    assert "Not measured: absent (not installed)." in text


def test_growth_has_a_plan_for_each_axis():
    sizes = "--samples 200 400 800 --features 3 6 --round-counts 30 60 --distinct 16"
    more = ["--thread-counts", "1", "--rounds", "5", "25", "--only", "gpustump", "gpustump real"]
    options = _parser().parse_args(["growth", *sizes.split(), *more])
    plans = {plan.name: plan.entries for plan in planned(options) if plan.entries}
    assert list(plans) == ["samples", "features", "rounds", "distinct", "threads"]
    made = {
        axis: [entry.data() for entry in entries[: len(entries) // 2]]
        for axis, entries in plans.items()
    }
    assert [data.X.shape for data in made["samples"]] == [(200, 3), (400, 3), (800, 3)]
    assert [data.X.shape for data in made["features"]] == [(400, 3), (400, 6)]
    assert [entry.rounds for entry in plans["rounds"]] == [(5, 30), (5, 60)] * 2
    assert [data.distinct for data in made["distinct"]] == [16, None]
    assert [entry.threads for entry in plans["threads"]] == [1, 1]


def test_growth_is_of_every_kind_of_votes_on_the_data_that_are_asked_for():
    sizes = "--samples 200 400 --features 4 --axes samples --data noise"
    (plan,) = planned(_parser().parse_args(["growth", *sizes.split()]))
    assert {entry.contender.name for entry in plan.entries} == {vote.name for vote in VOTES}
    assert [entry.data().name for entry in plan.entries] == ["noise"] * 6


def test_report_is_one_page_of_everything_in_the_folder(tmp_path, capsys):
    for name in SUB_COMMANDS:
        shutil.copy(RESULTS / f"{name}.json", tmp_path)
    assert main(["report", str(tmp_path)]) == 0
    target = tmp_path / "report.md"
    assert capsys.readouterr().out == f"{target}\n"
    text = target.read_text()
    for name in SUB_COMMANDS:
        assert page(records.read(tmp_path / f"{name}.json")) in text
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", text)
    assert len(pictures) == 4
    assert all((tmp_path / picture).exists() for picture in pictures)


def test_show_prints_the_tables_of_files(capsys):
    files = [RESULTS / "limit.json", RESULTS / "peers.json"]
    assert main(["show", *map(str, files)]) == 0
    assert capsys.readouterr().out == "\n\n".join(page(records.read(f)) for f in files) + "\n"


def test_the_hash_of_the_sources_covers_every_kind_of_source(tmp_path, monkeypatch):
    listed = subprocess.run(
        ["git", "ls-files", "gpustump", "bench", ":!bench/results"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listed.returncode == 0:  # not a checkout otherwise
        assert {ROOT / name for name in listed.stdout.splitlines()} <= {*machine.sources()}
    monkeypatch.setattr(machine, "ROOT", tmp_path)
    (tmp_path / "gpustump" / "cuda" / "__pycache__").mkdir(parents=True)
    seen = {machine.source_sha256()}
    for name in ("scan.py", "scan.cu", "common.cuh", "scan.hpp", "page.html"):
        (tmp_path / "gpustump" / "cuda" / name).write_text("same")
        seen.add(machine.source_sha256())
    assert len(seen) == 6
    (tmp_path / "gpustump" / "cuda" / "__pycache__" / "scan.pyc").write_text("compiled")
    assert machine.source_sha256() in seen


def test_different_models_of_the_same_job_are_a_failure():
    same = (run(contender="a", digest="0" * 64), run(contender="b", digest="0" * 64))
    other = run(contender="a", digest="1" * 64)
    elsewhere = run(contender="a", digest="2" * 64, data_sha256="e" * 64)
    longer = run(contender="a", digest="3" * 64, rounds=(2, 13))
    assert disagreement((Section("s", same), Section("t", (elsewhere, longer)))) is None
    votes = run(contender="a", digest="4" * 64, parameters={"votes": "real", "device": "cpu"})
    loss = run(contender="a", digest="5" * 64, estimator="LogitBoostClassifier")
    assert disagreement((Section("s", same), Section("t", (votes, loss)))) is None
    on_gpu = run(contender="b", digest="6" * 64, parameters={"votes": "real", "device": "cuda"})
    assert disagreement((Section("s", (votes, on_gpu)),)) is not None
    complaint = disagreement((Section("s", same), Section("t", (other,))))
    assert complaint.endswith("a: 000000000000; b: 000000000000; a: 111111111111")


def test_who_is_needed_and_cannot_be_measured_fails_the_run(tmp_path, monkeypatch, capsys):
    find = importlib.util.find_spec
    missing = lambda name: None if name == "torch" else find(name)  # noqa: E731
    monkeypatch.setattr("importlib.util.find_spec", missing)
    sizes = ["--samples", "300", "--features", "3", "--rounds", "1", "20", "--turns", "1"]
    name = ["gpustump torch"]
    arguments = [*sizes, "--only", *name, "--need", *name, "-o", str(tmp_path / "x.json")]
    assert main(["backends", *arguments]) == 1
    complaint = "gpustump torch was not measured on synthetic: torch is not installed"
    assert complaint in capsys.readouterr().err


def test_who_is_needed_and_does_not_take_part_is_missed():
    sections = [Section("drawn", (run((1, 2), contender="here"), absent()))]
    assert _missed(["here", "absent", "elsewhere"], sections) == [
        "absent was not measured on drawn: not installed",
        "elsewhere was not measured on drawn: it did not take part",
    ]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ("backends --samples 3", "argument --samples: '3' is not a whole number of at least 16"),
        ("backends --samples many", "'many' is not a whole number"),
        ("backends --features 2", "argument --features: '2' is not a whole number of at least 3"),
        ("backends --rounds 12 2", "--rounds 12 2: the second fit must have more rounds"),
        ("backends --turns 0", "argument --turns: '0'"),
        ("backends --threads 9999", "9999 threads were asked for; there are only"),
        ("backends --only everyone", "invalid choice: 'everyone'"),
        ("backends --data nonsense", "invalid choice: 'nonsense'"),
        ("backends --data noise --features 3", "noise needs 4 features; 3 were asked for"),
        ("peers --limit inf", "'inf' is not a whole number of at least 1"),
        ("peers --patience soon", "'soon' is not a whole number of at least 0"),
        ("growth --axes sideways", "invalid choice: 'sideways'"),
        ("growth --data noise", "--data noise: choose --axes without distinct"),
        ("growth --data noise --axes samples --features 3", "noise needs 4 features"),
        ("panel --cases nonsense", "invalid choice: 'nonsense'"),
        ("panel --cases large --only CatBoost", "nobody who was chosen takes part"),
        ("panel --cases tiny --data noise", "nobody who was chosen takes part"),
        ("panel --shrink 0", "argument --shrink: '0'"),
        ("growth --round-counts 2", "argument --round-counts: '2'"),
        (
            "growth --rounds 5 9 --round-counts 4",
            "--round-counts 4: more than the short fit's 5 are needed",
        ),
        ("limit --copy-bytes 1", "argument --copy-bytes: '1'"),
        ("backends -o results.txt", "--output results.txt: the name must end in .json"),
        ("backends -o .", "--output .: the name must end in .json"),
        ("show nowhere.json", "No such file"),
        ("report .", "there is no JSON file of a benchmark in ."),
        ("report nowhere", "there is no folder nowhere"),
        ("nonsense", "invalid choice: 'nonsense'"),
        ("", "required: COMMAND"),
    ],
)
def test_nonsense_is_refused_before_anything_is_measured(
    arguments, complaint, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    try:
        status = main(arguments.split())
    except SystemExit as leaving:
        status = leaving.code
    out, err = capsys.readouterr()
    assert (status, out) == (2, "")
    assert complaint in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_to_is_found_out_first(tmp_path, capsys):
    tmp_path.chmod(0o500)
    assert main(["backends", "-o", str(tmp_path / "x.json")]) == 2
    assert "Permission denied" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"benchmark": "other"}, "at `$.benchmark`"),
        ({"speeds": [{}]}, "at `$.speeds[0]`"),
        ({"sections": []}, "at `$.sections`"),
        ({"machine": {}}, "at `$.machine`"),
        ({"seconds": 0}, "at `$.seconds`"),
        ({"more": 1}, "unknown field `more`"),
        ({"schema": 2}, "at `$.schema`"),
    ],
)
def test_a_file_that_departs_from_the_schema_is_refused_with_the_place(change, where, tmp_path):
    made = report("backends", Section("drawn", (run((1, 2)),)))
    path = tmp_path / "file.json"
    records.write(made, path)
    assert records.read(path) == made
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ValueError, match="not the JSON of a benchmark") as refusal:
        records.read(path)
    assert where in str(refusal.value)


def test_a_run_without_results_and_without_a_reason_is_refused(tmp_path):
    records.write(report("backends", Section("drawn", (run(),))), tmp_path / "x.json")
    with pytest.raises(records.FormatError, match="someone on drawn has neither results nor a rea"):
        records.read(tmp_path / "x.json")


def test_what_is_not_json_is_refused(tmp_path):
    (tmp_path / "x.json").write_text("{")
    with pytest.raises(ValueError, match=r"x\.json is not the JSON of a benchmark: "):
        records.read(tmp_path / "x.json")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=lambda x: str(x)
)
def test_whatever_ends_it_leaves_no_file_and_no_process(number, status, tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    command = ["backends", "--only", "gpustump numpy", "--turns", "1000", "--samples", "20000"]
    process = _in_own_group(
        *("-m", "bench", *command, "-o", str(tmp_path / "x.json")), scratch=scratch
    )
    while not list(scratch.rglob("*.log")):  # a worker is at work
        assert process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, number)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (status, "")
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == [scratch]
    assert list(scratch.iterdir()) == []
    for _ in range(100):  # what watches over the workers' resources ends a little later
        if not _group_is_alive(process.pid):
            break
        time.sleep(0.1)
    assert not _group_is_alive(process.pid)


def _group_is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def _in_own_group(*arguments: Any, scratch: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(scratch)},
    )
