"""`gpustump train --dask`: one machine's model, from many files, on workers that end with it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from command import command_fixture, process, refusal, run_process  # noqa: F401

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
pytest.importorskip("pyarrow")
pl = pytest.importorskip("polars")

from clusters import client_of, closed  # noqa: E402

from gpustump.arrays.extras import how_to_install  # noqa: E402
from gpustump.cli.errors import InputError  # noqa: E402
from gpustump.cli.on_dask.files import files_of, parts_of  # noqa: E402

N_FILES = 3
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of a scheduler with two worker processes."""
    client = client_of(is_current=False, n_workers=2, processes=True)
    yield client.cluster.scheduler_address
    closed(client)


def frame(n_rows: int = 600, n_classes: int = 2) -> pl.DataFrame:
    """Numbers with gaps, words, weights, and labels that a few targets lack."""
    random = np.random.default_rng(n_classes)
    X = np.round(random.normal(size=(n_rows, 3)) * 16) / 16
    score = X[:, 0] - X[:, 1] + random.normal(scale=0.5, size=n_rows)
    classes = np.digitize(score, np.linspace(-1, 1, n_classes + 1)[1:-1])
    X[random.random((n_rows, 3)) < 0.1] = np.nan
    return pl.DataFrame(X, schema=["a", "b", "c"]).with_columns(
        pl.col("b").fill_nan(None),
        colour=pl.Series(random.choice(["red", "green", "blue"], n_rows)),
        day=pl.Series(np.arange(n_rows).astype("datetime64[D]")),
        w=pl.Series(random.integers(0, 4, n_rows)),
        label=pl.Series(np.array(["no", "yes", "perhaps"])[classes]),
    )


def write(table: pl.DataFrame, ending: str = "parquet") -> str:
    """The table as a whole, and in files part-1, part-2, part-10; the pattern of these."""
    n_rows = len(table)
    cuts = np.linspace(0, n_rows, N_FILES + 1).astype(int)
    names = [f"part-{k}.{ending}" for k in (1, 2, 10)]
    save = {"parquet": pl.DataFrame.write_parquet, "csv": pl.DataFrame.write_csv}[ending]
    save(table, f"whole.{ending}")
    for name, start, end in zip(names, cuts, cuts[1:], strict=False):
        more = {"row_group_size": 50} if ending == "parquet" else {}
        save(table[int(start) : int(end)], name, **more)
    return f"part-*.{ending}"


@pytest.mark.parametrize(
    ("ending", "n_classes", "options"),
    [
        ("parquet", 2, ("--weight", "w", "--monotone", "a=1,day=-1")),
        ("parquet", 3, ("--loss", "logistic", "--test-size", "0", "--drop", "w")),
        ("parquet", 2, ("--glass-box", "--bags", "2", "--drop", "a,w", "--categories", "sets")),
        ("csv", 3, ("--votes", "real", "--test-size", "0.4", "--seed", "3", "--drop", "a,w")),
    ],
)
def test_many_files_give_the_model_file_and_the_summary_of_one(
    command, scheduler, ending, n_classes, options
):
    table = frame(n_classes=n_classes)
    table = table.with_columns(
        label=pl.when(pl.int_range(len(table)) % 97 == 5).then(None).otherwise(pl.col("label"))
    )
    pattern = write(table, ending)
    if ending == "parquet":  # some writers leave empty files
        table[:0].write_parquet("part-3.parquet")
    options = (*("--target", "label", "--drop-missing-target", "--rounds", 8), *options)
    here = command.succeeds("train", f"whole.{ending}", *options)
    there = command.succeeds("train", pattern, *options, "--dask", scheduler, "-o", "there.json")
    assert Path("there.json").read_bytes() == Path("model.json").read_bytes()
    own = {"data", "workers", "traffic", "workers lost", "time", "written"}
    summaries = [
        [line for line in outcome.out.splitlines() if line[:19].strip() not in own]
        for outcome in (here, there)
    ]
    added = [line for line in summaries[1] if line not in summaries[0]]
    assert [line.strip() for line in added[:1]] == [there_parts(ending)]
    assert [line for line in summaries[1] if line not in added] == summaries[0]
    assert there.row("workers") in ("1", "2")  # as Dask places the parts
    assert there.row("workers lost") == "0"
    assert there.row("traffic").endswith("B per worker and round")


def there_parts(ending: str) -> str:
    return "4 files, in 7 parts" if ending == "parquet" else "3 files, in 3 parts"


def test_arrays_are_cut_into_parts_and_indices_are_left_out(command, scheduler):
    random = np.random.default_rng(0)
    X = random.normal(size=(500, 3)).astype(np.float32)
    y = (X[:, 0] > 0.3).astype(np.float32)
    y[::9] = 1
    np.save("table.npy", np.column_stack([X, y]))
    options = ("--target", "-1", "--rounds", 5)
    command.succeeds("train", "table.npy", *options)
    command.succeeds("train", "table.npy", *options, "--dask", scheduler, "-o", "there.json")
    assert Path("there.json").read_bytes() == Path("model.json").read_bytes()
    for k, start in enumerate((0, 200)):
        rows = slice(start, start + 200)
        own = pl.DataFrame(X[rows], schema=["a", "b", "c"]).with_columns(y=y[rows])
        own.with_row_index("index").write_csv(f"{k}.csv")
    outcome = command("train", "?.csv", "--target", "y", "--rounds", 5, "--dask", scheduler)
    assert outcome.code == 0
    assert outcome.err == (
        "gpustump: column 'index' is left out: it numbers the rows from 0, as an index does\n"
    )
    assert outcome.row("features") == "3"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            lambda t: t.drop("a"),
            "other.parquet has other columns than part-1.parquet: it lacks 'a'",
        ),
        (lambda t: t.rename({"a": "z"}), "it lacks 'a', and it also has 'z'."),
        (lambda t: t.select(t.columns[::-1]), "has other columns than part-1.parquet: they are in"),
        (
            lambda t: t.with_columns(a=pl.lit("x")),
            "column 'a' holds numbers in part-1.parquet and text in other.parquet. Leave it out "
            "with --drop a;",
        ),
        (
            lambda t: t.with_columns(label=pl.lit(1)),
            "column 'label' holds text in part-1.parquet and numbers in other.parquet.",
        ),
        (
            lambda t: t.with_columns(label=pl.lit(None, pl.String)),
            "part-1.parquet and 1 more: the target is missing in 20 rows of 220, first in row "
            "201; leave them out with --drop-missing-target.",
        ),
    ],
)
def test_files_that_are_no_one_table_are_refused(command, scheduler, changes, said):
    write(frame())
    changes(frame()[:20]).write_parquet("other.parquet")
    arguments = ("part-1.parquet", "other.parquet", "--target", "label", "--dask", scheduler)
    paths = command.refuses("train", *arguments).replace(f"{command.folder.resolve()}/", "")
    assert said in paths


def test_what_a_worker_refuses_is_told_in_one_line(command, scheduler):
    pattern = write(frame())
    Path("part-2.parquet").write_bytes(b"PAR1 and no more")
    said = command.refuses("train", pattern, "--target", "label", "--dask", scheduler)
    assert "part-2.parquet cannot be read as Parquet: " in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--dask",), "--dask needs DATA, the names of files."),
        (("part-*.csv", "--dask"), "DATA: no file matches 'part-*.csv'."),
        (("part-1.csv", "--dask"), "DATA: part-1.csv: no such file."),
        (("x.npy", "x.n*", "--dask"), "DATA: x.npy is given twice; its rows would count twice."),
        (
            ("x.npy", "--dask", "--weight", "2"),
            "--weight: x.npy has no column 2; its 2 columns are",
        ),
        ((".", "--dask"), "DATA: . is a folder; name its files, such as './*.parquet'."),
        (("-", "--dask"), "DATA: standard input is for one machine"),
        (("--dask", "x.npy"), "argument --dask: must be the address of a scheduler, such as tcp:"),
        (("x.npy", "--dask", "--device", "cuda:1"), "--device cuda:1 is for one machine; with --"),
        (("x.npy", "--dask", "--weak-learner", "interval"), "--weak-learner interval is for one"),
        (("x.npy", "--dask", "--report", "r.html"), "--report draws rows, which with --dask are"),
        (("x.npy", "--dask", "tcp://h:1", "--jobs", "2"), "--jobs is the number of workers that"),
        (("x.npy", "--dask", "-o", "x.npy"), "--output: x.npy would replace the file that is read"),
        (("x.npy", "--dask", "a://b:1"), "--dask a://b:1: no scheduler is there: unknown address"),
    ],
)
def test_what_makes_no_sense_with_dask_is_refused(command, arguments, said):
    np.save("x.npy", np.zeros((4, 2)))
    assert command.refuses("train", *arguments, "--target", "1").startswith(said)


def test_an_address_where_no_scheduler_answers_is_refused(command):
    np.save("x.npy", np.zeros((4, 2)))
    server = subprocess.Popen(  # it answers, but not as a scheduler does
        [sys.executable, "-c", "import socket\ns = socket.create_server(('127.0.0.1', 0))\n"
         "print(s.getsockname()[1], flush=True)\nc = s.accept()[0]\nimport time\ntime.sleep(60)"],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with server, dask.config.set({"distributed.comm.timeouts.connect": "0.5s"}):
        silent = f"tcp://127.0.0.1:{server.stdout.readline().strip()}"
        for address in ("tcp://127.0.0.1:1", silent):
            said = command.refuses("train", "x.npy", "--target", "1", "--dask", address)
            assert said.startswith(f"--dask {address}: no scheduler answers there within 0.5 s.")
        server.kill()


def test_without_an_address_workers_are_started_and_ended(command):
    pattern = write(frame())
    more = ("--target", "label", "--rounds", 5, "--quiet")
    command.succeeds("train", pattern, *more, "--dask", "--jobs", 1, "-o", "there.json")
    assert not sessions_of(os.getpid())
    command.succeeds("train", "whole.parquet", *more)
    assert Path("there.json").read_bytes() == Path("model.json").read_bytes()


@pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")
def test_ctrl_c_leaves_no_workers_behind(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pattern = write(frame())
    arguments = ("train", pattern, "--target", "label", "--rounds", 10**6, "--dask", "--jobs", 2)
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    with process(*arguments, folder=tmp_path, env=env, start_new_session=True) as running:
        sessions = watched_sessions(running)
        wait_until(lambda: len(processes_of(sessions)) > 3)  # with a tracker of resources
        os.killpg(running.pid, signal.SIGINT)
        out, err = running.communicate(timeout=60)
    assert (running.returncode, out, err) == (130, "", "gpustump: interrupted\n")
    assert not processes_of(sessions)


def watched_sessions(running: subprocess.Popen[str]) -> set[int]:
    """The sessions that a process has started, once there is one."""
    wait_until(lambda: sessions_of(running.pid) or running.poll() is not None)
    return sessions_of(running.pid)


def sessions_of(parent: int) -> set[int]:
    """The sessions that a process has started, and that are there."""
    table = process_table().items()
    return {child for child, (own, session) in table if own == parent and session == child}


def processes_of(sessions: set[int]) -> list[int]:
    return [child for child, (_, session) in process_table().items() if session in sessions]


def process_table() -> dict[int, tuple[int, int]]:
    """The parent and the session of each process that is not a zombie."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent, _, session = path.read_text().rpartition(")")[2].split()[:4]
        except OSError:  # it has ended meanwhile
            continue
        if state != "Z":
            found[int(path.parent.name)] = (int(parent), int(session))
    return found


def wait_until(condition, seconds: float = 60.0) -> None:
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.05)


def test_without_distributed_the_extra_is_named(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((4, 2)))
    arguments = ("train", "x.npy", "--target", "1", "--dask")
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    outcome = run_process(*arguments, folder=tmp_path, without=("distributed",), env=env)
    assert refusal(outcome) == f"--dask needs distributed; {how_to_install('dask')}"


def test_dask_is_not_imported_unless_it_is_asked_for(tmp_path):
    program = (
        "import sys, gpustump.cli as cli; assert cli.main(['train', '--rounds', '1']) == 0; "
        "print(sorted({'dask', 'distributed'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "[]", done.stderr


def test_files_of_a_pattern_come_in_the_order_of_their_numbers(command):
    write(frame(60))
    assert files_of(["part-*.parquet"]) == [f"part-{k}.parquet" for k in (1, 2, 10)]
    assert files_of(["part-10.parquet", "part-?.parquet"])[0] == "part-10.parquet"
    Path("[a].csv").write_text("x\n1\n")
    assert files_of(["[a].csv"]) == ["[a].csv"]
    with pytest.raises(InputError, match="twice"):
        files_of(["part-1.parquet", "./part-1.parquet"])


def test_parts_hold_whole_groups_of_rows_and_every_row_once(command):
    write(frame(900))
    parts = parts_of(files_of(["part-*.parquet"]), 2)
    assert [part.rows for part in parts] == [(0, 200), (200, 300)] * 3
    assert [part.rows for part in parts_of(["part-1.parquet"], 1)] == [(0, 150), (150, 300)]
    assert [part.rows for part in parts_of(["whole.parquet"], 8)] == [(0, 900)]
    np.save("x.npy", np.zeros((1000, 3)))
    rows = [part.rows for part in parts_of(["x.npy"], 3)]
    assert [start for start, _ in rows] == [0, *(end for _, end in rows[:-1])]
    assert rows[-1][1] == 1000
    assert len(rows) >= 6
    frame(30).write_csv("x.csv")
    assert [part.rows for part in parts_of(["x.csv"], 3)] == [None]
