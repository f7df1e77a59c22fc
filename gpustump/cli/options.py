"""The commands and their options.

A wrong option is refused in one line that points to the command's --help. Numbers are checked here,
before anything is read, so that a wrong --test-size is not reported after an hour of training.

The help of a command fits a screen. What is said once and needed rarely (formats, rules of text
files and columns) is printed by `gpustump help TOPIC`; --help-all shows the options of `train` that
few need.
"""

from __future__ import annotations

import argparse
import codecs
import contextlib
import inspect
import math
import re
from collections.abc import Callable, Sequence
from importlib import resources
from typing import Any, NoReturn, get_args

from gpustump import __version__
from gpustump.cli.errors import InputError
from gpustump.cli.method import LOSSES, QUANTITY_LOSSES, ClassLoss
from gpustump.data.parameters import (
    DATE_ORDERS,
    MOST_BAGS,
    MOST_CATEGORIES,
    MOST_CODES,
    MOST_USUAL,
    USUAL_SHARE,
    check_bytes,
    check_form,
)
from gpustump.data.readable import either, is_text, quoted, suggestion

TOP = 20
"""How many features of a row are shown one by one, unless --top gives another number."""

LANGUAGES = ("onnx", "c", "sql")
"""What a model can be exported to."""

CATEGORY_LIMIT = 64
"""A text column with more distinct values is refused."""

CODE_WIDTH = 3
"""Whole numbers of one width, at least this wide, are codes if some begin with 0: 01234, 98765."""

DATA_HELP = "a table; - for standard input: help tables"
MODEL_HELP = "a model file; - for standard input"

TOPICS = ("tables", "text", "columns", "boosting")
"""What `gpustump help` explains, by the texts in the folder `topics`."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line, and to which one line adds an option."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message} (see {self.prog} --help)")

    def add(
        self,
        name: str,
        metavar: str | None,
        type: Callable[[str], Any] | None,
        help: str,
        **how: Any,
    ) -> argparse.Action:
        """Add an argument with a value."""
        return self.add_argument(*name.split(), metavar=metavar, type=type or str, help=help, **how)

    def flag(self, name: str, help: str) -> argparse.Action:
        """Add an option without a value."""
        return self.add_argument(name, action="store_true", help=help)

    def many(
        self, name: str, metavar: str, help: str, type: Callable[[str], Any] | None = None
    ) -> argparse.Action:
        """Add an option that may be given several times."""
        return self.add(name, metavar, type, help, default=[], action="append")


class _HelpAll(argparse.Action):
    """--help-all: the help with the options that few need."""

    def __call__(self, parser: argparse.ArgumentParser, *given: object) -> NoReturn:
        for action in parser._actions:
            action.help = getattr(action, "full_help", action.help)
        parser.print_help()
        parser.exit()


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The options of one command, checked.

    Raises
    ------
    InputError
        If they are wrong.
    SystemExit
        After --help, --help-all and --version.
    """
    parser, commands = _parsers()
    if not argv:
        parser.print_help()
        parser.exit()
    if argv[0] == "help" and (len(argv) == 1 or argv[1] in commands):
        argv = [*argv[1:], "--help"]
    if argv[0] not in commands and not argv[0].startswith("-"):
        known = ", ".join(commands)
        hint = suggestion(argv[0], [*commands])
        parser.error(
            f"unknown command {quoted(argv[0])}; the commands are {known}{hint and '.' + hint}"
        )
    for text in argv:
        if text.endswith("=--"):  # before Python 3.13, argparse makes an empty list of it
            parser.error(f"{quoted(text)}: -- is not a value")
    arguments, unknown = parser.parse_known_args(argv)
    command: argparse.ArgumentParser = commands[arguments.command]
    if unknown:
        name = unknown[0].partition("=")[0]
        hint = suggestion(name, [*command._option_string_actions]) if name.startswith("-") else ""
        command.error(f"unexpected argument {quoted(unknown[0])}{hint and '.' + hint}")
    return arguments


def topic(name: str) -> str:
    """The text of `gpustump help`."""
    text = resources.files("gpustump.cli").joinpath(f"topics/{name}.txt").read_text("utf-8")
    return text.format(
        limit=CATEGORY_LIMIT, sets=MOST_CATEGORIES, codes=MOST_CODES, width=CODE_WIDTH
    )


def _parsers() -> tuple[Parser, dict[str, Parser]]:
    parser = Parser(
        prog="gpustump",
        description="Boosted decision stumps: exact, fast, and the same model on every machine.",
        epilog="Every command has its own --help. Start with: gpustump train",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"gpustump {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    parsers: dict[str, Parser] = {}
    for name, (summary, add_options) in _COMMANDS.items():
        parsers[name] = commands.add_parser(
            name,
            help=summary,
            description=inspect.cleandoc(str(add_options.__doc__)),
            allow_abbrev=False,
            formatter_class=_formatter,
        )
        add_options(parsers[name])
    return parser, parsers


def _formatter(prog: str) -> argparse.HelpFormatter:
    return argparse.RawDescriptionHelpFormatter(prog, max_help_position=24)


def _only_in_full_help(*actions: argparse.Action) -> None:
    for action in actions:
        action.full_help, action.help = action.help, argparse.SUPPRESS  # type: ignore[attr-defined]


def _add_train(parser: Parser) -> None:
    """Train boosted decision stumps on a table, judge the model on held-out rows, and
    write it. Without DATA, scikit-learn's breast-cancer data is used.
    """
    parser.usage = "gpustump train [DATA --target COLUMN] [options] [-o OUT]"
    add = parser.add
    add("data", "DATA", None, DATA_HELP, nargs="?")
    add("--target", "COLUMN", None, "the column to predict: labels, or a quantity")
    add("--weight", "COLUMN", None, "a column of sample weights")
    columns = "COL[,COL]"
    parser.many("--drop", columns, "columns to leave out")
    parser.many("--categorical", columns, "columns to read as text")
    parser.many("--missing", "WORD", "a word or number that means missing", _word)
    add("--decimal", "MARK", _one_of((".", ",")), "the decimal mark of numbers, . or ,")
    add("--date-order", "ORDER", _one_of(DATE_ORDERS), "03/04/24 begins with dmy, mdy or ymd")
    _add_boosting(parser)
    share = _checked(
        "a share of the rows, at least 0 and below 1", float, lambda own: 0.0 <= own < 1.0
    )
    add("--test-size", "SHARE", share, "share of the rows held out (default: 0.2)", default=0.2)
    seed = _whole(0, 2**32 - 1)
    add("--seed", "N", seed, "for the random choice of rows (default: 0)", default=0)
    add("--checkpoint", "FILE", None, "keep the rounds in this file while they are made")
    parser.flag("--resume", "go on from the checkpoint, to the same model")
    parser.flag("--quiet", "print errors only")
    model = "model file, .json; - for standard output"
    add("-o --output", "OUT", None, model, default="model.json")
    kinds = "text columns as one-hot features, or as sets of values (default: one-hot)"
    every = "how often, such as 30s, 5min, 1h or '100 rounds' (default: 60s)"
    encoding = "encoding of a text file, such as latin-1 (default: UTF-8)"
    names = "the names of the features in a .svm file, one a line"
    _only_in_full_help(
        add("--categories", "AS", _one_of(("one-hot", "sets")), kinds, default="one-hot"),
        parser.many("--numeric", columns, "columns to read as numbers, even codes such as 01234"),
        parser.flag("--drop-missing-target", "leave out rows without a target"),
        add("--encoding", "NAME", _encoding, encoding),
        add("--feature-names", "FILE", None, names),
        *_add_offsets(parser),
        add("--checkpoint-every", "WHEN", _how_often, every),
        *_add_resources(parser),
        _add_force(parser, "OUT"),
    )
    all_options = "this help with all options"
    parser.add_argument("--help-all", action=_HelpAll, nargs=0, help=all_options)


def _add_boosting(parser: Parser) -> None:
    """Options that choose the estimator and its parameters; without them its own defaults hold."""
    add = parser.add
    parser.flag("--glass-box", "settings that suit most tables: help boosting")
    losses = f"{', '.join(get_args(ClassLoss))}; of quantities {', '.join(QUANTITY_LOSSES)}"
    add("--loss", "LOSS", _one_of(LOSSES), losses)
    share = _checked("a number between 0 and 1", float, lambda value: 0.0 < value < 1.0)
    add("--quantile", "Q", share, "predict a quantile of the target, such as 0.9")
    votes = _one_of(("discrete", "real"))
    add("--votes", "KIND", votes, "discrete or real, for --loss exponential")
    balanced = "give all classes the same weight in training"
    parser.add_argument(
        "--balanced", dest="class_weight", action="store_const", const="balanced", help=balanced
    )
    rounds = "the most rounds (default: 100, logistic 200 a class, of quantities 200)"
    add("--rounds", "N", _whole(1), rounds)
    rate = "multiplies votes (default: 1.0, logistic 0.2, of quantities 0.1)"
    positive = _checked("a number above 0", float, lambda value: 0.0 < value < math.inf)
    add("--learning-rate", "R", positive, rate)
    pairs = f"pairs of features to learn: 10, 3x, auto ({USUAL_SHARE:g}x to {MOST_USUAL})"
    add("--interactions", "N", _interactions, pairs)
    add("--patience", "N", _whole(1), "stop after N rounds without a better score")
    parser.many("--monotone", "COL=1,..", "1: the score never falls as the column rises; -1: rises")
    classes = "one-vs-rest, or shared stumps (default: one-vs-rest, logistic shared)"
    l2 = "shrinks votes that rest on few rows (default: 0, logistic 3, quantiles 10)"
    smooth = "the first N rounds choose among a few random cuts (default: 0)"
    bags = "average N models, each of a random share of the rows (default: 1)"
    least_0 = _checked("a number of at least 0", float, lambda value: 0.0 <= value < math.inf)
    _only_in_full_help(
        add("--multi-class", "HOW", _multi_class, classes),
        add("--l2", "L", least_0, l2),
        add("--smoothing-rounds", "N", _whole(0), smooth),
        add("--bags", "N", _whole(1, MOST_BAGS), bags),
    )


def _add_offsets(parser: Parser) -> list[argparse.Action]:
    """Columns of what is known of the rows beforehand."""
    over = "what counts were counted over; multiplies predictions"
    known = "what is known of each row, and added to its score: a log-odds, or a quantity"
    return [
        parser.add("--exposure", "COLUMN", None, over),
        parser.add("--init-score", "COLUMN", None, known),
    ]


def _add_resources(parser: Parser) -> list[argparse.Action]:
    device = "auto, cpu, cuda or cuda:N (default: auto)"
    memory = "memory for training, such as 500MB or 2GiB (default: no limit)"
    return [
        parser.add("--device", None, _device, device, default="auto"),
        parser.add("--jobs", "N", _whole(1), "threads on the CPU (default: one for each core)"),
        parser.add("--max-memory", "SIZE", _size, memory),
    ]


def _add_force(parser: Parser, names: str) -> argparse.Action:
    return parser.flag("--force", f"replace {names} of another kind, too")


def _add_predict(parser: Parser) -> None:
    """Predict the rows of a table. Columns are found by name, or by position if there
    are no names; others are ignored. OUT holds `prediction` and, for each class,
    `P(label)`. Text, exposures and initial scores are read as in training.
    """
    add = parser.add
    _add_table_to_table(parser)
    add("--id", "COLUMN", _word, "carry this column; without it, rows are numbered from 1")
    _add_offsets(parser)
    _add_proba(parser, "with or without the probabilities (default: with)", default=True)
    _add_force(parser, "OUT")


def _add_explain(parser: Parser) -> None:
    """Write the contribution of each feature, and pair of features, to the score of
    each row. The columns of OUT are the features, `(intercept)` and `(score)`,
    which is exactly their sum; of several classes, a set of columns for each.
    With --row, print instead how the score of one row comes about.
    """
    parser.usage = "gpustump explain MODEL DATA [options] [-o OUT]"
    add = parser.add
    _add_table_to_table(parser)
    one = "explain this row in words and bars; rows are counted from 1"
    parser.many("--row", "N", one, _whole(1))
    label = "with --row: the class whose score is explained (default: the predicted one)"
    add("--class", "LABEL", None, label, dest="label")
    top = f"with --row: how many features to show one by one (default: {TOP})"
    add("--top", "N", _whole(1), top)
    add("--plot", "FILE", None, "with --row: draw it; FILE ends in .png, .svg or .pdf")
    _add_offsets(parser)
    _add_force(parser, "OUT or FILE")


def _add_table_to_table(parser: Parser) -> None:
    parser.add("model", "MODEL", None, MODEL_HELP)
    parser.add("data", "DATA", None, DATA_HELP)
    output = ".csv, .parquet or .npz; - for CSV on standard output (default: -)"
    parser.add("-o --output", "OUT", None, output, default="-")


def _add_proba(parser: Parser, text: str, *, default: bool | None) -> None:
    both = argparse.BooleanOptionalAction
    parser.add_argument("--proba", action=both, default=default, help=text)


def _add_inspect(parser: Parser) -> None:
    """Show a model's stumps as rules, in the order of the rounds, each feature's share
    of the votes, and the pairs of features.
    """
    add = parser.add
    add("model", "MODEL", None, MODEL_HELP)
    add("--rounds", "N", _whole(0), "how many rules to show (default: 20)", default=20)
    add("--plot", "FILE", None, "draw the model on one page; FILE ends in .png, .svg or .pdf")
    page = "write a page to explore the model in a browser, with the rows of --data"
    add("--page", "FILE.html", None, page)
    data = "a table: show each feature's share of the contributions to its rows' scores and, with "
    add("--data", "DATA", None, f"{data}--plot or --page, where its values lie")
    add("--edits", "FILE", None, "edit the model: the file that its page saved")
    add("-o --output", "OUT", None, "write the edited model to this file, .json")
    _add_force(parser, "FILE or OUT")


def _add_audit(parser: Parser) -> None:
    """Train a model again on its training table, and compare. The exit code is 0 if
    both are the same, 1 if they differ, 2 for an error. The model's file says how
    it was trained; DATA may be in another file format than in training.
    """
    parser.usage = "gpustump audit MODEL [DATA] [options]"
    add = parser.add
    add("model", "MODEL", None, MODEL_HELP)
    add("data", "DATA", None, DATA_HELP, nargs="?")
    of_model = "(default: the one that the model names)"
    add("--target", "COLUMN", None, f"the column that is predicted {of_model}")
    add("--weight", "COLUMN", None, f"the column of sample weights {of_model}")
    _add_offsets(parser)
    _add_resources(parser)
    parser.flag("--quiet", "print errors only; the exit code tells the outcome")


def _add_export(parser: Parser) -> None:
    """Write a model in another language. Scores and labels are exact; probabilities
    may differ in the last bits. The columns are those of the training table, text
    and dates as they are.
    """
    parser.usage = "gpustump export MODEL [options] [-o OUT]"
    add = parser.add
    add("model", "MODEL", None, MODEL_HELP)
    languages = "onnx, c (a header) or sql (a SELECT); by default the ending of OUT decides: "
    add("--to", "LANGUAGE", _one_of(LANGUAGES), f"{languages}.onnx, .h, .sql")
    add("-o --output", "OUT", None, "file to write; - for standard output", default="-")
    names = "c, sql: what the names of functions or new columns begin with (default: gpustump)"
    add("--name", "NAME", None, names)
    dtypes = _one_of(("float32", "float64"))
    add("--dtype", None, dtypes, "onnx: the dtype of the input's numbers (default: float64)")
    dialects = ("sqlite", "duckdb", "postgresql")
    add("--dialect", None, _one_of(dialects), f"sql: {', '.join(dialects)} (default: sqlite)")
    add("--table", "NAME", None, "sql: the table's name (default: data)")
    text = "sql: with or without probabilities (default: without for sqlite, which may lack exp)"
    _add_proba(parser, text, default=None)
    _add_force(parser, "OUT")


def _add_devices(parser: Parser) -> None:
    """List devices, libraries and engines, and why some cannot be used."""


def _add_kernels(parser: Parser) -> None:
    """Show where compiled CPU kernels are kept, and which are there. Without --build
    they are compiled in the background when a fit first needs them, once, in a
    minute or two. GPUSTUMP_CACHE_DIR names another folder, for instance to copy it
    into an image. It serves machines with the same Python, Numba and gpustump, and
    a CPU of the same level (with AVX-512, with AVX2, or without both). A wheel may
    have brought the kernels; then nothing is compiled.
    """
    parser.flag("--build", "compile those that are missing")


def _add_help(parser: Parser) -> None:
    """Explain a topic: tables, text, columns or boosting."""
    parser.add("topic", "TOPIC", _one_of(TOPICS), "what about")


_COMMANDS: dict[str, tuple[str, Callable[[Parser], None]]] = {
    "train": ("train a model on a table", _add_train),
    "predict": ("predict the rows of a table", _add_predict),
    "explain": ("write each feature's contribution to each row's score", _add_explain),
    "inspect": ("show a model as rules, as a picture, and as a page", _add_inspect),
    "audit": ("train a model again, and compare", _add_audit),
    "export": ("write a model as ONNX, C or SQL", _add_export),
    "devices": ("list devices, libraries and engines, and why some cannot be used", _add_devices),
    "kernels": ("show the compiled CPU kernels, or compile them ahead", _add_kernels),
    "help": ("explain tables, text, columns or boosting", _add_help),
}
"""What each command does, and what adds its options."""


def _checked(
    wanted: str, convert: Callable[[str], Any], is_right: Callable[[Any], bool] = lambda value: True
) -> Callable[[str], Any]:
    """A parser of values that can be converted, and then are right."""

    def parsed(text: str) -> Any:
        with contextlib.suppress(ValueError, LookupError):
            value = convert(text)
            if is_right(value):
                return value
        _wrong(wanted, text)

    return parsed


def _wrong(wanted: str, text: str) -> NoReturn:
    raise argparse.ArgumentTypeError(f"must be {wanted}; got {quoted(text)}")


def _whole(least: int, most: float = math.inf) -> Callable[[str], int]:
    at_most = "" if most == math.inf else f" and at most {most}"
    wanted = f"a whole number of at least {least}{at_most}"
    return _checked(wanted, int, lambda value: least <= value <= most)


_word = _checked("text", str, is_text)  # bytes of the command line may not be UTF-8


def _pairs_of_features(text: str) -> int | str:
    given = int(text) if re.fullmatch("[0-9]+", text) else text
    check_form(given)
    return given


_interactions = _checked(
    "a whole number of at least 0, a number for each feature such as 3x, or auto",
    _pairs_of_features,
)

_size = _checked("a number of bytes, such as 500MB or 2GiB", lambda text: check_bytes(text, "it"))


def _known_encoding(text: str) -> str:
    "a".encode(text)
    return codecs.lookup(text).name


_encoding = _checked("an encoding that Python knows, such as latin-1", _known_encoding)


_SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0}


def _how_often(text: str) -> tuple[int | None, float | None]:
    """Rounds or seconds between two checkpoints."""
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(s|min|h|rounds?)\s*", text)
    if found is not None and 0.0 < (number := float(found[1])) < 1e9:
        if found[2] in _SECONDS:
            return None, number * _SECONDS[found[2]]
        if number.is_integer():
            return int(number), None
    _wrong("a time or a number of rounds, such as 30s, 5min, 1h or '100 rounds'", text)


def _one_of(choices: Sequence[str]) -> Callable[[str], str]:
    """A parser for one of some words."""
    return _checked(either(choices), str, lambda text: text in choices)


def _multi_class(text: str) -> str:
    """A name as the estimators have it."""
    return _one_of(("one-vs-rest", "shared"))(text.replace("_", "-")).replace("-", "_")


def _device(text: str) -> str:
    from gpustump.arrays.devices import check_device

    try:
        return check_device(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).rstrip(".")) from error
