"""`gpustump kernels` shows compiled kernels, and compiles those that are missing."""

from __future__ import annotations

import pytest

pytest.importorskip("numba")

from gpustump.cli import main
from gpustump.engines.cpu.runtime import building, kernel_folder


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder for kernels, empty at first."""
    monkeypatch.setenv(kernel_folder.SETTING, str(tmp_path / "kernels"))
    kernel_folder.kernel_folder.cache_clear()
    yield kernel_folder.kernel_folder()
    kernel_folder.kernel_folder.cache_clear()


def test_an_empty_folder_is_shown_and_filled_if_asked(folder, monkeypatch, capsys):
    assert main(["kernels"]) == 0
    shown = capsys.readouterr().out
    assert str(folder) in shown
    assert "compiled  nothing" in shown
    assert "gpustump kernels --build" in shown
    (folder / "sparse.done").touch()
    assert main(["kernels"]) == 0
    shown = capsys.readouterr().out
    assert "compiled  sparse\n" in shown
    assert "missing   scanned, loss.exponential_loss," in shown

    def build(told):
        for stage in kernel_folder.STAGES:
            (folder / f"{stage}.kernel").write_bytes(bytes(1000))
            kernel_folder.note_compiled(stage)
            told()

    monkeypatch.setattr(building, "build", build)
    assert main(["kernels", "--build"]) == 0
    shown = capsys.readouterr().out
    assert f"in {len(kernel_folder.STAGES)} files" in shown
    assert "compiled  everything\n" in shown
    assert "missing" not in shown
    assert kernel_folder.are_compiled(*kernel_folder.STAGES)


def test_a_place_that_cannot_be_written_to_is_named(folder, tmp_path, monkeypatch, capsys):
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv(kernel_folder.SETTING, str(file / "folder"))
    kernel_folder.kernel_folder.cache_clear()
    assert main(["kernels", "--build"]) == 2
    assert f"cannot make a folder in {file / 'folder'}" in capsys.readouterr().err
