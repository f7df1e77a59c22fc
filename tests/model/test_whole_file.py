"""Files that appear whole or not at all, and temporary files of processes that were killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpustump.model import temporary_files
from gpustump.model.temporary_files import (
    ABANDONED_AFTER,
    remove_abandoned_files,
    temporary_path,
)
from gpustump.model.whole_file import whole_file

posix = pytest.mark.skipif(os.name != "posix", reason="only there can a process be asked for")
OLD = time.time() - ABANDONED_AFTER - 60


def left_by(process: int, folder: Path, *, changed: float = OLD, host: str | None = None) -> Path:
    """A temporary file of a process, last changed at that time."""
    name = f".gpustump.{host or temporary_files._host()}.{process}.abcd1234"
    (folder / name).write_text("half")
    os.utime(folder / name, (changed, changed))
    return folder / name


@pytest.fixture
def dead() -> int:
    """The number of a process that has ended."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait(60)
    return process.pid


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")

    def write_half() -> None:
        with whole_file(path) as file:
            file.write(b"new")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_half()
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
    assert path.read_text() == "old"


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # open files are closed a moment later
def test_an_interruption_at_any_call_leaves_the_old_file_or_the_new_one_and_nothing_else(tmp_path):
    path, n_calls, found = tmp_path / "file", 0, set()
    with whole_file(path):  # what is imported and compiled once is ready: all runs make these calls
        pass
    while b"new" not in found:
        path.write_bytes(b"old")
        calls = iter(range(n_calls))

        def interrupt(frame, event, argument, calls=calls):
            if event != "return" and next(calls, None) is None:  # none comes at the end of a frame
                sys.setprofile(None)
                raise KeyboardInterrupt

        with contextlib.suppress(KeyboardInterrupt):
            sys.setprofile(interrupt)  # functions written in C included, before and after
            with whole_file(path) as file:
                file.write(b"new")
        sys.setprofile(None)
        assert [each.name for each in tmp_path.iterdir()] == ["file"], n_calls
        found.add(path.read_bytes())
        n_calls += 1
    assert found == {b"old", b"new"}
    assert n_calls > 50


def test_the_temporary_file_names_its_process(tmp_path):
    with whole_file(tmp_path / "file") as file:
        (temporary,) = tmp_path.iterdir()
        assert temporary.name.split(".")[:4] == [
            *("", "gpustump"),
            *(temporary_files._host(), str(os.getpid())),
        ]
        file.write(b"x")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@posix
def test_an_old_file_of_a_dead_process_is_removed_by_the_next_writer(tmp_path, dead):
    left = left_by(dead, tmp_path)
    with whole_file(tmp_path / "file"):
        assert not left.exists()
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@posix
def test_files_that_somebody_may_use_are_left_alone(tmp_path, dead):
    kept = {
        left_by(os.getpid(), tmp_path),  # it lives
        left_by(os.getppid(), tmp_path),
        left_by(1, tmp_path),  # of another user, if this is not root
        left_by(dead, tmp_path, host="elsewhere"),
        left_by(0, tmp_path),  # 0 would be this process's group
    }
    others = [".gpustump.abcd1234", f".gpustump.{dead}.abcd1234", f"x.gpustump.h.{dead}.a", "mine"]
    for name in others:
        (tmp_path / name).write_text("mine")
        os.utime(tmp_path / name, (OLD, OLD))
        kept.add(tmp_path / name)
    remove_abandoned_files(tmp_path)
    assert set(tmp_path.iterdir()) == kept


@posix
def test_a_new_file_is_left_alone_though_its_process_seems_dead(tmp_path, dead):
    left = left_by(dead, tmp_path, changed=time.time() - 60)
    remove_abandoned_files(tmp_path)
    assert left.exists()


@posix
def test_links_and_folders_of_such_names_are_left_alone(tmp_path, dead):
    folder, link = tmp_path / f".gpustump.{temporary_files._host()}.{dead}.d", tmp_path / "mine"
    folder.mkdir()
    link.write_text("mine")
    os.utime(link, (OLD, OLD))
    (tmp_path / f".gpustump.{temporary_files._host()}.{dead}.l").symlink_to(link)
    before = set(tmp_path.iterdir())
    remove_abandoned_files(tmp_path)
    assert set(tmp_path.iterdir()) == before


def test_a_folder_that_is_not_there_is_no_error(tmp_path):
    remove_abandoned_files(tmp_path / "absent")


@pytest.mark.parametrize("host", ["", "a.b/c d", "x" * 300, "é"])
def test_any_name_of_a_machine_makes_a_name_of_a_file(tmp_path, monkeypatch, host):
    monkeypatch.setattr(temporary_files.socket, "gethostname", lambda: host)
    path = temporary_path(tmp_path, ".csv")
    path.write_bytes(b"")
    assert temporary_files._NAME.match(path.name)
    assert path.suffix == ".csv"


@posix
def test_what_a_killed_process_leaves_goes_a_day_later(tmp_path):
    program = (
        "import sys, time\n"
        "from gpustump.model.whole_file import whole_file\n"
        "with whole_file(sys.argv[1]) as file:\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(60)\n"
    )
    arguments = [sys.executable, "-c", program, str(tmp_path / "file")]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        (left,) = tmp_path.iterdir()
        os.utime(left, (OLD, OLD))
        remove_abandoned_files(tmp_path)
        assert left.exists()
        process.send_signal(signal.SIGKILL)
        process.wait(60)
    remove_abandoned_files(tmp_path)
    assert not left.exists()


def test_a_missing_folder_is_reported_under_the_name_that_was_given(tmp_path):
    path = tmp_path / "absent" / "model.json"
    with pytest.raises(FileNotFoundError) as error, whole_file(path):
        pass
    assert error.value.filename == str(path)
