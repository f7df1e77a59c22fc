"""Which files a command replaces: its own and empty ones; any other only with --force."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command import command_fixture  # noqa: F401


@pytest.fixture
def table(command):
    random = np.random.default_rng(3)
    X = random.normal(size=(100, 3))
    np.savez("t.npz", X=X, y=(X[:, 0] + random.normal(size=100) > 0).astype(int))
    command.succeeds("train", "t.npz", "--target", "y", "--rounds", 3, "--quiet")
    return X


@pytest.mark.parametrize("name", ["predict", "explain"])
@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
def test_a_result_replaces_only_a_result_with_the_same_columns(command, table, name, ending):
    if ending == "parquet":
        pytest.importorskip("polars")
    output, other = f"out.{ending}", {"predict": "explain", "explain": "predict"}[name]
    arguments = (name, "model.json", "t.npz", "-o", output)
    command.succeeds(*arguments)
    first = Path(output).read_bytes()
    command.succeeds(*arguments)  # its own
    assert Path(output).read_bytes() == first
    Path(output).write_bytes(b"")
    command.succeeds(*arguments)  # an empty one
    Path(output).unlink()
    command.succeeds(other, "model.json", "t.npz", "-o", output)
    message = command.refuses(*arguments)
    assert message == (
        f"--output: {output} exists and is not a result of this command with this model; give "
        "another name, or --force."
    )
    Path(output).write_bytes(b"my own notes\n" * 20)
    assert "--force" in command.refuses(*arguments)
    command.succeeds(*arguments, "--force")
    assert Path(output).read_bytes() == first


def test_a_table_with_more_columns_than_the_result_is_not_replaced(command, table):
    command.succeeds("predict", "model.json", "t.npz", "-o", "out.csv", "--no-proba")
    for header in ("prediction,mine\n", "prediction;\n", "predictions\n", "predict"):
        Path("out.csv").write_text(f"{header}1,2\n")
        assert "--force" in command.refuses(
            *("predict", "model.json", "t.npz", "-o", "out.csv", "--no-proba")
        )
