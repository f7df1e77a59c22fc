"""The page on exports shows what works: its commands and programs are run."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import exported
import numpy as np
import pytest
from command import Command, command_fixture  # noqa: F401
from exported_columns import MODELS
from exported_models import case

from gpustump.exports import to_c

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


@pytest.mark.parametrize(("model", "n_calls"), [("two classes", 5), ("quantity", 2)])
def test_the_usage_at_the_top_of_a_header_is_c(model: str, n_calls: int, tmp_path: Path) -> None:
    header = to_c(case(model).model if model == "quantity" else MODELS[model])
    usage = header.partition("\n//\n// double row")[2].partition("\n\n")[0]
    lines = [
        line.removeprefix("// ").partition("  ")[0] for line in f"double row{usage}".split("\n")
    ]
    code = "\n".join(lines).replace("{...}", "{0}")
    assert code.count("gpustump_") == n_calls
    (tmp_path / "model.h").write_text(header)
    used = "index + !label" if n_calls == 5 else "prediction > 0"
    source = f'#include "model.h"\nint main(void)\n{{\n{code}\nreturn {used};\n}}\n'
    built = [exported.compiler("c"), "-std=c99", *exported.FLAGS, "-x", "c", "-", "-lm"]
    subprocess.run(built, input=source, text=True, check=True, cwd=tmp_path)
