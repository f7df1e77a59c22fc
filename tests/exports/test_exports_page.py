"""The page on exports shows what works: its commands and programs are run."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import exported
import numpy as np
import pytest
from command import Command, command_fixture  # noqa: F401

PAGE = Path(__file__).resolve().parents[2] / "docs" / "exports.md"


def _blocks(language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE
    )


@pytest.mark.filterwarnings("ignore:.*unclosed database:ResourceWarning")
def test_the_commands_and_programs_of_the_page_work(command: Command) -> None:
    for needed in ("onnx", "onnxruntime"):
        pytest.importorskip(needed)
    commands = [line for block in _blocks("bash") for line in block.splitlines()]
    assert len(commands) == 4
    for line in commands:
        assert command(*line.removeprefix("gpustump ").split()).code == 0
    program = "\n".join(_blocks("python"))
    names: dict[str, object] = {}
    exec(compile(program, PAGE, "exec"), names)
    assert len(names["labels"]) == 569
    (source,) = _blocks("c")
    Path("main.c").write_text(source)
    built = [exported.compiler("c"), "-std=c99", *exported.FLAGS, "main.c", "-o", "main", "-lm"]
    subprocess.run(built, check=True)
    said = subprocess.run(["./main"], check=True, capture_output=True, text=True).stdout
    names["row"] = row = np.full((1, 30), np.nan)
    row[0, 20] = 17.5
    with pytest.warns(UserWarning, match="values are missing"):
        label, share = eval("model.predict(row)[0], model.predict_proba(row)[0, 1]", names)
    assert said == f"{label} {share:.3f}\n"
    names["database"].close()
