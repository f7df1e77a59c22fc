"""Wrong input gives one clear line, exit code 2, and no file; a bug keeps its traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command import command_fixture, process, refusal, run_process  # noqa: F401

import gpustump
from gpustump import AdaBoostClassifier, LogitBoostClassifier, StumpBoostingRegressor
from gpustump.arrays.devices import how_to_install
from gpustump.cli import main
from gpustump.cli.method import LOSSES, estimator_of
from gpustump.cli.options import TOPICS, parse
from gpustump.data.parameters import L2_OF_QUANTILES, ROUNDS_OF_AN_OUTPUT


def write_arrays() -> None:
    random = np.random.default_rng(0)
    X = np.column_stack([random.normal(size=(60, 3)), random.integers(0, 2, 60)])
    np.save("table.npy", X)
    np.save("vector.npy", X[:, 0])
    np.save("objects.npy", np.asarray([[1, "a"]], dtype=object))
    np.save("no_rows.npy", X[:0])
    np.save("complex.npy", X + 1j)
    np.save("constant.npy", np.ones((20, 3)))
    np.savez("table.npz", X=X[:, :3], y=X[:, 3], short=X[:5, 3], negative=-np.ones(60))
    np.savez("two.npz", A=X, B=X, y=X[:, 3])
    np.savez("objects.npz", X=X, y=np.full(60, None))
    np.savez("names.npz", X=X, y=X[:, 3], names=["a"])
    np.savez("twice.npz", X=X, y=X[:, 3], names=["u", "a\nb", "\x1b[2J", "u"])
    whole = Path("table.npy").read_bytes()
    Path("cut.npy").write_bytes(whole[:500])


ARRAY_REFUSALS = {
    ("absent.npy", "0"): "absent.npy: No such file or directory",
    ("absent", "0"): "absent: no such file.",
    (".", "0"): ". is a folder",
    ("table.npy", "label"): "has no column 'label'; its 4 columns are named by their index",
    ("table.npy", "4"): "has no column 4; its 4 columns are named by their index, 0 to 3 or -1",
    ("constant.npy", "0"): "the target '0' is 1 in every row that has one; two classes or",
    ("vector.npy", "0"): "shape is (60,); a table has two dimensions",
    ("objects.npy", "0"): "holds Python objects, which are not read",
    ("no_rows.npy", "0"): "no_rows.npy has columns but no rows",
    ("complex.npy", "0"): "dtype is complex128",
    ("cut.npy", "0"): "cut.npy is not an intact NumPy file",
    ("table.npz", "Y"): "no array 'Y' beside its table; it has 'y', 'short', 'negative'. Did you",
    ("table.npz", "short"): "array 'short' of table.npz has 5 values, but the table has 60 rows",
    ("two.npz", "y"): "which array is the table? Of 'A', 'B', 'y', 2 have two dimensions",
    ("objects.npz", "y"): "holds Python objects, which are not read",
    ("names.npz", "y"): "the array 'names' has shape (1,)",
    ("twice.npz", "y"): "two columns named 'u'",
}


def test_arrays_that_are_no_table_are_refused(command):
    write_arrays()
    for (data, target), said in ARRAY_REFUSALS.items():
        assert said in command.refuses("train", data, "--target", target)


TEXTS = {
    "empty.csv": b"",
    "header.csv": b"x,label\n",
    "binary.csv": bytes(range(256)) * 20,
    "high.csv": bytes(range(128, 256)) * 20,
    "utf16.csv": b"\xff\xfe" + "x,label\n1,2\n".encode("utf-16-le") + b"\x00\xd8",
    "ragged.csv": b"x,label\n1,a\n2,b,c\n",
    "table.txt": b"x,label\n1,0\n",
    "plain.parquet": b"x,label\n1,0\n",
    "objects.jsonl": b"{}\n{}\n",
    "table.csv": b"x,label,same,part\n" + b"".join(b"%d,%d,k,\n" % (i, i % 2) for i in range(20)),
    "words.csv": b"x,w,label\n" + b"".join(b"%d,w%d,%d\n" % (i, i, i % 2) for i in range(99)),
    "rare.csv": b"x,label\n" + b"".join(b"%d,%d\n" % (i, i > 0) for i in range(9)),
}
TEXT_REFUSALS = {
    ("empty.csv", "label"): "empty.csv is empty.",
    ("header.csv", "label"): "header.csv has columns but no rows.",
    ("binary.csv", "label"): "binary.csv is not text: it holds zero bytes",
    ("high.csv", "label"): "high.csv is not UTF-8 text",
    ("utf16.csv", "label"): "utf16.csv is not utf-16 text: ",
    ("ragged.csv", "label"): "ragged.csv has 3 fields in line 3, but 2 names",
    ("table.txt", "label"): "the name must end in that of its format, such as .csv",
    ("objects.jsonl", "label"): "objects.jsonl has no columns.",
    ("plain.parquet", "label"): "plain.parquet cannot be read as Parquet: ",
    ("table.csv", "lable"): "no column 'lable'; it has 'x', 'label', 'same', 'part'. Did you mean "
    "'label'?",
    ("table.csv", "x"): "'x' holds 20 distinct whole numbers, 0 to 19. Say what they are",
    ("table.csv", "part"): "the target 'part' is empty",
    ("words.csv", "label"): "column 'w' cannot be used: it is text with 99 distinct values, more "
    "than 64, such as 'w0', 'w1'. Turn it into numbers, or leave it out with --drop w.",
    ("rare.csv", "label"): "the rows cannot be split by --test-size 0.2: ",
}


def test_text_that_is_no_table_is_refused(command):
    pytest.importorskip("polars")
    for name, text in TEXTS.items():
        Path(name).write_bytes(text)
    for (data, target), said in TEXT_REFUSALS.items():
        assert said in command.refuses("train", data, "--target", target)


OPTION_REFUSALS = {
    ("--rounds", "0"): "--rounds: must be a whole number of at least 1; got '0'",
    ("--rounds",): "--rounds: expected one argument",
    ("--learning-rate", "0"): "--learning-rate: must be a number above 0; got '0'",
    ("--test-size", "1.5"): "--test-size: must be a share of the rows, at least 0 and below 1",
    ("--test-size", "0.999"): "the rows cannot be split by --test-size 0.999: ",
    ("--device", "gpu"): "device must be 'auto', 'cpu', 'cuda' or 'cuda:N'; got 'gpu'",
    ("--lerning-rate", "1"): "'--lerning-rate'. Did you mean '--learning-rate'?",
    ("--target", "y"): "--target needs DATA",
    ("--feature-names", "names.txt"): "--feature-names needs DATA",
    ("--drop", "mean radus"): "no column 'mean radus'",
    ("-o", ""): "--output needs the name of a file",
    ("-o", "."): ". is a folder",
    ("-o", "absent/model.json"): "does not exist; make it first",
    ("-o", "absent/../model.json"): "--output: the folder absent/.. does not exist; make it first",
    ("-o", "notes.json"): "not a gpustump model; give another name, or --force",
    ("-o", "model.pkl"): "'model.pkl' must end in .json, as the model is JSON text; --force",
}


COMMAND_REFUSALS = {
    "trian": "unknown command 'trian'; the commands are train, predict, explain, inspect, audit, "
    "export, devices, kernels, help. Did you mean 'train'?",
    "train --xyz": "unexpected argument '--xyz' (see gpustump train --help)",
    "train a.npy b.npy": "unexpected argument 'b.npy'",
    "train table.npy": "--target COLUMN is needed: which column is to be predicted? Columns count",
    "train table.npz": "--target COLUMN is needed: which column is to be predicted? table.npz has",
    "train table.npz --target y --weight y": "both name 'y'",
    "train table.npz --target y --weight negative": "not negative",
    "train table.npz --target y --drop 0,1,2": "no column is left",
    "train table.npz --target y -o table.npz": "would replace the file",
    "predict m.json t.csv --expose e": "unexpected argument '--expose'. Did you mean '--exposure'?",
    "train table.npz --target y --test 5": "'--test'. Did you mean '--test-size'?",
    "predict": "required: MODEL, DATA (see gpustump predict --help)",
    "predict absent.json table.npy -o o.csv": "absent.json: No such file",
    "predict table.npy table.npy -o o.csv": "is not a gpustump model",
    "predict absent.json table.npy -o o.xlsx": "must end in .csv, .parquet",
    "inspect .": "Is a directory",
    "inspect absent.json --rounds -1": "--rounds: must be a whole number",
}


def test_options_and_commands_that_make_no_sense_are_refused(command):
    write_arrays()
    Path("notes.json").write_text("mine")
    for options, said in OPTION_REFUSALS.items():
        assert said in command.refuses("train", *options)
    for arguments, said in COMMAND_REFUSALS.items():
        assert said in command.refuses(*arguments.split())


def test_a_gpu_that_cannot_be_had_is_refused_before_the_data_are_read(command):
    if any(d.usable and d.name.startswith("cuda") for d in gpustump.devices()):
        pytest.skip("has a GPU")
    message = command.refuses("train", "absent.csv", "--target", "y", "--device", "cuda")
    assert message.startswith("--device cuda: CuPy ")


def test_without_polars_the_message_says_how_to_install_it(command, monkeypatch):
    Path("table.csv").write_text("x,label\n1,0\n2,1\n")
    monkeypatch.setitem(sys.modules, "polars", None)
    message = command.refuses("train", "table.csv", "--target", "label")
    assert message == f"reading table.csv needs polars; {how_to_install('cli')}"


def test_the_bundled_data_need_neither_polars_nor_tqdm(command):
    without = ("polars", "tqdm", "pandas")
    outcome = run_process("train", "--rounds", 3, folder=command.folder, without=without)
    assert (outcome.code, outcome.err) == (0, "")
    assert Path("model.json").exists()


def test_help_loads_no_numpy(command):
    program = (
        "import sys, gpustump.cli as cli; code = cli.main(['train', '--help']); "
        "sys.exit(code or 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0
    assert "--target COLUMN" in done.stdout


def test_the_help_of_a_command_and_of_a_topic_fits_a_screen(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("train", "predict", "explain", "inspect", "audit", "export"):
        lines = command.succeeds(name, "--help").out.splitlines()
        assert len(lines) <= 40
        assert max(map(len, lines)) <= 80
    assert "--l2" not in command.succeeds("train", "--help").out
    assert "--l2" in command.succeeds("train", "--help-all").out
    for name in TOPICS:
        text = command.succeeds("help", name).out
        assert "{" not in text
        assert max(map(len, text.splitlines())) <= 80
    assert command.succeeds("--version").out == f"gpustump {gpustump.__version__}\n"
    assert "COMMAND" in command.succeeds().out == command.succeeds("help").out
    assert command.succeeds("help", "predict").out == command.succeeds("predict", "--help").out


def test_the_help_tells_the_defaults_of_the_estimators(command):
    """They stand in its text, as estimators take a second to import."""
    text = " ".join(command.succeeds("train", "--help-all").out.split())
    kinds = AdaBoostClassifier, LogitBoostClassifier, StumpBoostingRegressor
    ada, logit, regressor = (estimator_of(parse(["train"]), loss) for loss in LOSSES[:3])
    assert [type(own) for own in (ada, logit, regressor)] == [*kinds]
    assert logit.n_estimators is None
    for told in (
        f"{ada.n_estimators}, logistic {ROUNDS_OF_AN_OUTPUT} a class, of quantities "
        f"{regressor.n_estimators}",
        f"{ada.learning_rate}, logistic {logit.learning_rate}, of quantities "
        f"{regressor.learning_rate}",
        f"{ada.multi_class.replace('_', '-')}, logistic {logit.multi_class}",
        f"{regressor._votes(0.1).l2_regularization:g}, logistic {logit.l2_regularization:g}, "
        f"quantiles {L2_OF_QUANTILES:g}",
        f"{logit.smoothing_rounds}",
        f"{logit.n_bags}",
    ):
        assert f"(default: {told})" in text


def test_a_reader_that_leaves_is_no_error(command):
    random = np.random.default_rng(0)
    np.savez("table.npz", X=random.normal(size=(50_000, 2)), y=random.integers(0, 2, 50_000))
    command.succeeds("train", "table.npz", "--target", "y", "--rounds", 2, "--quiet")
    running = process("predict", "model.json", "table.npz", "-o", "-", folder=command.folder)
    with running:
        assert running.stdout.readline() == "row,prediction,P(0),P(1)\n"
        running.stdout.close()
        assert running.stderr.read() == ""
        assert running.wait(60) == 141


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_one_line(command):
    with open("/dev/full", "w") as full:
        outcome = run_process("--help", folder=command.folder, stdout=full)
    assert refusal(outcome) == "No space left on device; make room, or write elsewhere"


@pytest.mark.skipif(os.name != "posix" or os.getuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_to_is_found_before_training(command):
    folder = command.folder / "closed"
    folder.mkdir(mode=0o500)
    message = command.refuses("train", "-o", folder / "model.json")
    assert "no file can be made in" in message


def test_a_bug_keeps_its_traceback(command, monkeypatch):
    def broken(*arguments, **options):
        raise ValueError("a mistake of ours")

    monkeypatch.setattr("gpustump.cli.columns.training.learn_encoding", broken)
    with pytest.raises(ValueError, match="a mistake of ours"):
        main(["train"])


def test_without_stderr_a_model_is_still_written(command, monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)  # as `2>&-` leaves it
    assert main(["train", "--rounds", "3", "-o", "alone.json"]) == 0
    sys.stderr.close()  # what was opened in its place
    assert Path("alone.json").exists()


@pytest.mark.parametrize(
    "made",
    [
        RuntimeError("Error calling __set_name__"),  # while a class is made, in Python 3.11
        KeyboardInterrupt("decoding with 'cp437' codec failed (KeyboardInterrupt: )"),
    ],
)
def test_ctrl_c_is_one_line_even_where_python_makes_another_error_of_it(command, monkeypatch, made):
    def interrupted(arguments: object) -> None:
        raise made from KeyboardInterrupt()

    monkeypatch.setattr("gpustump.cli.commands.devices.run", interrupted)
    outcome = command("devices")
    assert (outcome.code, outcome.out, outcome.err) == (130, "", "gpustump: interrupted\n")
