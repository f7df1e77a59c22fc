"""`python -m bench` as people run it: every sub-command, its files, its refusals."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from made_up import absent, report, run

from bench import records
from bench.__main__ import _missed, main
from bench.contenders import PEERS
from bench.records import Section
from bench.summary import disagreement
from bench.tables import page

ROOT = Path(__file__).resolve().parent.parent
TINY = ["--turns", "2", "--rounds", "1", "40", "--threads", "1"]
SUB_COMMANDS = {
    "backends": ["--samples", "300", "--features", "4"],
    "peers": ["--data", "breast_cancer"],
    "limit": [
        *["--samples", "300", "--features", "4", "--copy-bytes", "65536"],
        *["--only", "gpustump numpy"],
    ],
    "growth": [
        *["--samples", "200", "400", "--features", "3", "6", "--round-counts", "30", "60"],
        *["--distinct", "16", "--thread-counts", "1", "--only", "gpustump numpy"],
    ],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of every sub-command, at a tiny size, each run by a process of its own."""
    folder = tmp_path_factory.mktemp("results")
    for name, sizes in SUB_COMMANDS.items():
        command = [sys.executable, "-m", "bench", name, *sizes, *TINY]
        done = subprocess.run(
            [*command, "-o", str(folder / f"{name}.json")], cwd=ROOT, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        (folder / f"{name}.txt").write_text(done.stdout)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", SUB_COMMANDS)
def test_a_run_leaves_json_that_follows_the_schema_and_figures_and_a_table(folder, name):
    content = json.loads((folder / f"{name}.json").read_text())
    assert records.mistake(content) is None
    assert content["benchmark"] == name
    assert content["command"] == " ".join(
        ["python -m bench", name, *SUB_COMMANDS[name], *TINY]
    ).replace("gpustump numpy", "'gpustump numpy'")
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / f"{name}.svg").read_text().rstrip().endswith("</svg>")
    printed = (folder / f"{name}.txt").read_text()
    assert printed == page(records.read(folder / f"{name}.json")) + "\n"


@pytest.mark.slow
def test_every_single_timing_is_kept(folder):
    for name in SUB_COMMANDS:
        for section in records.read(folder / f"{name}.json").sections:
            measured = [run for run in section.runs if run.reason is None]
            assert measured
            assert all(len(run.turns) == 2 for run in measured)
            assert all(
                (turn.predict is None) == (name != "peers")
                for run in measured
                for turn in run.turns
            )


@pytest.mark.slow
def test_backends_all_train_the_same_model(folder):
    (section,) = records.read(folder / "backends.json").sections
    digests = {run.digest for run in section.runs if run.reason is None}
    assert len(digests) == 1
    assert sum(run.reason is None for run in section.runs) >= 2


@pytest.mark.slow
def test_every_peer_is_there_measured_or_with_a_reason(folder):
    found = records.read(folder / "peers.json")
    (section,) = found.sections
    assert (section.name, section.runs[0].samples) == ("breast_cancer", 427)
    assert [each.contender for each in section.runs] == [contender.name for contender in PEERS]
    assert all(each.reason or each.turns for each in section.runs)
    ours = section.runs[0]
    assert (ours.contender, ours.reason, ours.host_memory is None) == ("gpustump", None, False)


def test_a_peer_that_is_missing_is_a_row_that_says_so():
    peers = Section("drawn", (run((1, 2, 3), contender="here"), absent()))
    lines = page(report("peers", peers)).splitlines()
    assert "| absent | not installed |" in lines
    assert page(report("backends", peers)).count("| absent ") == 1


@pytest.mark.slow
def test_growth_has_a_section_and_an_exponent_for_each_axis(folder):
    found = records.read(folder / "growth.json")
    names = ["samples", "features", "rounds", "distinct", "threads"]
    assert [section.name for section in found.sections] == names
    by_name = {section.name: section.runs for section in found.sections}
    assert [(r.samples, r.features) for r in by_name["samples"]] == [(200, 3), (400, 3)]
    assert [(r.samples, r.features) for r in by_name["features"]] == [(200, 3), (200, 6)]
    assert [r.rounds for r in by_name["rounds"]] == [(1, 30), (1, 60)]
    assert [r.distinct for r in by_name["distinct"]] == [16, None]
    assert page(found).count("exponent") == 4  # there is one thread count only


@pytest.mark.slow
def test_limit_measures_the_memory_in_every_turn(folder):
    found = records.read(folder / "limit.json")
    host = found.speeds[0]
    assert (host.device, host.threads, host.copied) == ("cpu", 1, 2 * 65536)
    assert len(host.copy) == len(host.gather) == 2
    assert re.search(r"gpustump numpy .* \d[.\d]*% .* \d[.\d]*% ", page(found))


@pytest.mark.slow
def test_report_is_one_page_of_everything_in_the_folder(folder, capsys):
    assert main(["report", str(folder)]) == 0
    target = folder / "report.md"
    assert capsys.readouterr().out == f"{target}\n"
    text = target.read_text()
    for name in SUB_COMMANDS:
        assert page(records.read(folder / f"{name}.json")) in text
    pictures = re.findall(r"!\[.*?\]\((.*?)\)", text)
    assert len(pictures) == 4
    assert all((folder / picture).exists() for picture in pictures)


@pytest.mark.slow
def test_show_prints_the_table_of_a_file(folder, capsys):
    assert main(["show", str(folder / "limit.json")]) == 0
    assert capsys.readouterr().out == (folder / "limit.txt").read_text()


def test_different_models_of_the_same_job_are_a_failure():
    same = (run(contender="a", digest="0" * 64), run(contender="b", digest="0" * 64))
    other = run(contender="a", digest="1" * 64)
    elsewhere = run(contender="a", digest="2" * 64, data_sha256="e" * 64)
    longer = run(contender="a", digest="3" * 64, rounds=(2, 13))
    assert disagreement((Section("s", same), Section("t", (elsewhere, longer)))) is None
    complaint = disagreement((Section("s", same), Section("t", (other,))))
    assert complaint.endswith("a: 000000000000; b: 000000000000; a: 111111111111")


@pytest.mark.slow
def test_who_is_needed_and_cannot_be_measured_fails_the_run(tmp_path, capsys):
    names = ["gpustump torch cuda", "gpustump jax cuda"]  # one of them is not here, or both work
    sizes = ["--samples", "300", "--features", "3", "--rounds", "1", "20", "--turns", "1"]
    target = tmp_path / "x.json"
    status = main(["backends", *sizes, "--only", *names, "--need", *names, "-o", str(target)])
    reasons = [each.reason for each in records.read(target).sections[0].runs if each.reason]
    assert status == bool(reasons)
    complaints = capsys.readouterr().err
    assert all(f"was not measured on synthetic: {reason}" in complaints for reason in reasons)


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
        ("backends --threads 9999", "9999 threads; there are"),
        ("backends --only everyone", "invalid choice: 'everyone'"),
        ("backends --data nonsense", "invalid choice: 'nonsense'"),
        ("peers --limit inf", "'inf' is not a number of seconds"),
        ("peers --patience soon", "'soon' is not a number of seconds"),
        ("growth --axes sideways", "invalid choice: 'sideways'"),
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
        ({"benchmark": "other"}, "at $.benchmark"),
        ({"speeds": [{}]}, "at $.speeds"),
        ({"sections": []}, "at $.sections"),
        ({"machine": {}}, "at $.machine"),
        ({"seconds": 0}, "at $.seconds"),
        ({"more": 1}, "'more' was unexpected"),
        ({"schema": 2}, "at $.schema"),
    ],
)
def test_a_file_that_departs_from_the_schema_is_refused_with_the_place(change, where, tmp_path):
    pytest.importorskip("jsonschema")
    made = report("backends", Section("drawn", (run((1, 2)),)))
    path = tmp_path / "file.json"
    records.write(made, path)
    assert records.read(path) == made
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ValueError, match="not the JSON of a benchmark") as refusal:
        records.read(path)
    assert where in str(refusal.value)


def test_without_jsonschema_a_wrong_file_is_still_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    path = tmp_path / "file.json"
    for content in ([], {"schema": 2}, {"schema": 1}, {"schema": 1, "sections": [{"name": "s"}]}):
        path.write_text(json.dumps(content))
        with pytest.raises(ValueError, match="is not the JSON of a benchmark"):
            records.read(path)


def test_what_is_not_json_is_refused(tmp_path):
    (tmp_path / "x.json").write_text("{")
    with pytest.raises(ValueError, match=r"x\.json is not JSON"):
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
