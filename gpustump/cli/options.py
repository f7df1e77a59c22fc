"""The commands and their options.

A wrong option is refused in one line that points to the command's --help. Numbers are checked here,
before anything is read, so that a wrong --test-size is not reported after an hour of training.
"""

from __future__ import annotations

import argparse
import codecs
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn, get_args

from gpustump import __version__
from gpustump.cli import method
from gpustump.cli.errors import InputError
from gpustump.data.parameters import (
    DATE_ORDERS,
    FEW_BAGS,
    FEW_SAMPLES,
    L2_OF_ONE_OUTPUT,
    L2_OF_SHARED_OUTPUTS,
    MANY_BAGS,
    MOST_BAGS,
    MOST_CATEGORIES,
    MOST_CODES,
    MOST_USUAL,
    MULTI_CLASS,
    ROUNDS_OF_AN_OUTPUT,
    USUAL_SHARE,
    QuantityLossName,
    check_form,
)
from gpustump.data.readable import is_text, quoted, suggestion

DATA_HELP = "a table: .csv, .tsv, .jsonl, .parquet, .feather, .npy or .npz; - for standard input"
MODEL_HELP = "a model file; - for standard input"

TRAIN_TEXT = """\
Train boosted decision stumps on a table, judge the model on held-out rows, and write it. Without
DATA, scikit-learn's breast-cancer data is used, so this command works at once:

  gpustump train
"""

BOOSTING_TEXT = """\
boosting:
  --loss exponential  AdaBoost, the estimator AdaBoostClassifier. --votes discrete: each stump says
                      one class or the other, with one vote. --votes real: each side of a stump has
                      a vote of its own, and so have missing values.
  --loss logistic     LogitBoost, the estimator LogitBoostClassifier: each side of a stump votes a
                      Newton step of the logistic loss, so that probabilities are learnt directly.
  --loss squared_error, poisson, gamma
                      The target is a quantity: StumpBoostingRegressor. poisson is for counts, 0 or
                      more, gamma for costs, above 0; both predict with a logarithmic link.
                      --exposure names what counts were counted over. --init-score names what is
                      known of the score beforehand. predict reads these columns, too.
  more than two classes
                      --multi-class one-vs-rest: a model for each class against the rest.
                      --multi-class shared: one model; each of its stumps votes for all classes.
  Without options: {default}.
"""

TABLES_TEXT = """\
tables:
  .csv .tsv           text. The separator is the most frequent of comma, tab, semicolon and | in
                      the first line; in .tsv a tab. Also compressed: .csv.gz, .bz2, .xz, .zst.
  .jsonl .ndjson      a JSON object in each line, compressed or not
  .parquet .pq
  .feather .arrow .ipc
                      All of these are read with polars, which the extra 'cli' brings.
  .npy                one two-dimensional array, memory-mapped. Columns are named by their index
                      from 0; in train, --target -1 is the last one (several: --drop=-1,-2).
  .npz                --target names the array of labels. The table is the array X, or the only
                      two-dimensional one; an array 'names' or 'feature_names' gives the columns'
                      names. The table is loaded as a whole; save one that is larger than the
                      memory as .npy.
  -                   standard input, or a pipe, is copied to a temporary file first; its first
                      bytes tell the format.
  Do not write to a .npy file while it is used: the command refuses a change that it sees, and ends
  at once if the file becomes shorter.
"""

CHECKPOINT_TEXT = """\
training that may be interrupted:
  gpustump train table.csv --target label --checkpoint run.json
  gpustump train table.csv --target label --checkpoint run.json --resume

  --checkpoint        keeps the rounds in a small file: every minute, at Ctrl-C and at SIGTERM.
  --resume            makes these rounds again without a search, and goes on to the model of an
                      uninterrupted run, byte for byte. The options and the table must be the same
                      as before; --device, --jobs and --max-memory may change.
"""

TEXT_TEXT = """\
text files:
  missing values      empty fields, NA, N/A, NaN, null and None; in columns whose other values are
                      numbers, booleans, dates or times also ? - . n/a #N/A <NA> unknown and the
                      like, in lower or upper case. --missing names others.
  numbers             If the separator is not a comma, 1,5 is a number in columns without decimal
                      points; --decimal , makes it one in any file. So are $1,234.50, 74.4% (as
                      74.4) and 1 234, if a column has one sign; where both marks may be decimal
                      ones, --decimal says which, and the other may stand between thousands.
                      Whole numbers of {width} digits or more, all of the same width and some
                      beginning with 0, such as 01234, are codes and stay text; --numeric makes
                      them numbers.
  dates, times        2024-12-31, 31/12/2024, 12/31/2024, 31.12.2024, with or without a time;
                      23:59:59. All dates of a column begin alike: with the day if no value says
                      what they begin with, and --date-order does not.
"""

COLUMNS_TEXT = """\
columns that are not numbers:
  boolean             0 and 1
  date, datetime      days, or seconds, since 1970-01-01
  time, duration      seconds
  text, categories    up to {limit} distinct values: one feature for each value, named
                      column=value, 1 in rows with this value, 0 in others. A column with more
                      values, or of another type, is refused; leave it out with --drop. A column
                      of numbers and a few unknown words is refused, too, unless --missing or
                      --categorical says what these are. With --categories sets, a column of up
                      to {sets} values is one feature, and a stump divides its values into sets.
  missing values      NaN. A stump has a vote of its own for them.

  an exported index   is left out: a first column without a name, or called index, id, row or the
                      like, that numbers the rows 0, 1, 2, ... or 1, 2, 3, ... Rename it to use it.

the target:
  classes: text, booleans, or two numbers. A quantity: other numbers. Of up to {codes} distinct
  whole numbers, --loss must say which they are. A table with rows that have no target is refused,
  unless --drop-missing-target leaves them out.
"""

PREDICT_TEXT = """\
Predict the rows of a table with a model that `gpustump train` wrote. Columns are found by name, or
by position if there are no names; other columns, such as the target, are ignored. Text is read as
in training: the same columns are text, and the same words are missing values. The columns of OUT
are `prediction` and, for each class, `P(label)`. A model that was trained with --exposure or
--init-score looks for the column of that name; without it, all are 1, or 0.
"""

EXPLAIN_TEXT = """\
Write the contribution of each feature to the model's score of each row of a table. The columns of
OUT are the features, pairs of features such as `age x income` if the model has learnt any,
`(intercept)` and `(score)`, which is exactly their sum. The score is positive if the second class
is predicted. With more than two classes there is a set of columns for each
class, named `label: column`. In .npz, the array `contributions` holds all columns but the score.

With --row, print instead how the score of one row comes about: what each feature adds, the largest
first, beside the row's values. A text column counts as one feature. For several rows:

  gpustump explain model.json table.csv --row 7 --row 12
"""

INSPECT_TEXT = """\
Show a model's stumps as rules, in the order of the rounds, each feature's share of the votes, and
the pairs of features. With --plot, draw the model on one page: what each feature adds to the score,
what the most important pairs add, and the rounds.
"""

AUDIT_TEXT = """\
Train a model again on the table that it was trained on, and compare both round by round: the best
stump, its votes, and where the rounds end. The command prints that both are the same, with the
digest; or the first round that differs: what the file says, and what the data say. The exit code is
0 if they are the same, 1 if they differ, 2 for an error.

  gpustump train table.csv --target label
  gpustump audit model.json table.csv

The table may be in another file format than in training. The model's file says how it was trained:
the settings, the columns, the rows that were held out. It also holds a fingerprint of the table, so
that the audit can say which columns differ. Models that estimators save also say how they were
trained, but hold no fingerprint and do not name the target: give --target. Without DATA,
scikit-learn's breast-cancer data is used, as in train.

An audit takes about as long as training.
"""

EXPORT_TEXT = """\
Write a model in another language. It predicts what `gpustump predict` does: scores are sums of
whole multiples of 2**-36, so scores and labels are exact; probabilities may differ in the last
bits. The columns are those of the table that the model was trained on, text and dates as they are.

  --to onnx    a graph for any ONNX runtime (.onnx); text is a separate input
  --to c       one header of C99 without dependencies (.h)
  --to sql     one SELECT (.sql), for --dialect sqlite, duckdb or postgresql

Without --to, the ending of OUT decides.
"""

TOP = 20
"""How many features of a row are shown one by one, unless --top gives another number."""

LANGUAGES = ("onnx", "c", "sql")
"""What a model can be exported to."""

CATEGORY_LIMIT = 64
"""A text column with more distinct values is refused."""

CODE_WIDTH = 3
"""Whole numbers of one width, at least this wide, are codes if some begin with 0: 01234, 98765."""


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message} (see {self.prog} --help)")


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """The options of one command, checked.

    Raises
    ------
    InputError
        If they are wrong.
    SystemExit
        After --help or --version.
    """
    parser, commands = _parsers()
    if not argv:
        parser.print_help()
        parser.exit()
    for text in argv:
        if "\0" in text:  # only callers in Python can; no system takes it in a name
            parser.error(f"an argument holds a zero byte: {quoted(text)}")
    if argv[0] not in commands and not argv[0].startswith("-"):
        known = ", ".join(commands)
        hint = suggestion(argv[0], [*commands])
        parser.error(
            f"unknown command {quoted(argv[0])}; the commands are {known}{hint and '.' + hint}"
        )
    arguments, unknown = parser.parse_known_args(argv)
    command: argparse.ArgumentParser = commands[arguments.command]
    if unknown:
        options = [text for action in command._actions for text in action.option_strings]
        name = unknown[0].partition("=")[0]
        hint = suggestion(name, options) if name.startswith("-") else ""
        command.error(f"unexpected argument {quoted(unknown[0])}{hint and '.' + hint}")
    _refuse_two_dashes(arguments, command)
    return arguments


def _refuse_two_dashes(arguments: argparse.Namespace, command: argparse.ArgumentParser) -> None:
    """Refuse `--` as a value: before Python 3.13, argparse turns it into an empty list."""
    for action in command._actions:
        value = getattr(arguments, action.dest, None)
        is_lost = value == [] != action.default or (isinstance(value, list) and [] in value)
        if action.nargs is None and is_lost:
            name = action.option_strings[-1] if action.option_strings else action.metavar
            command.error(f"argument {name}: -- is not a value")


def _parsers() -> tuple[Parser, dict[str, Parser]]:
    parser = Parser(
        prog="gpustump",
        description="Boosted decision stumps: exact, fast, and the same model on every machine.",
        epilog="Every command has its own --help. Start with: gpustump train",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"gpustump {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    texts = {
        "train": (
            "train a model on a table",
            TRAIN_TEXT,
            "\n".join([BOOSTING_TEXT, TABLES_TEXT, CHECKPOINT_TEXT, TEXT_TEXT, COLUMNS_TEXT]),
        ),
        "predict": ("predict the rows of a table", PREDICT_TEXT, TABLES_TEXT),
        "explain": (
            "write each feature's contribution to each row's score",
            EXPLAIN_TEXT,
            TABLES_TEXT,
        ),
        "inspect": ("show a model as rules, and as a picture", INSPECT_TEXT, None),
        "audit": ("derive a model again from its training table", AUDIT_TEXT, TABLES_TEXT),
        "export": ("write a model as ONNX, C or SQL", EXPORT_TEXT, None),
        "devices": ("list devices, libraries and engines, and why some cannot be used", None, None),
    }
    parsers = {
        name: commands.add_parser(
            name,
            help=short,
            description=text or short[0].upper() + short[1:] + ".",
            epilog=more
            and more.format(
                limit=CATEGORY_LIMIT,
                sets=MOST_CATEGORIES,
                codes=MOST_CODES,
                width=CODE_WIDTH,
                default=_described_default(),
            ),
            allow_abbrev=False,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        for name, (short, text, more) in texts.items()
    }
    _add_train(parsers["train"])
    _add_predict(parsers["predict"])
    _add_explain(parsers["explain"])
    _add_inspect(parsers["inspect"])
    _add_audit(parsers["audit"])
    _add_export(parsers["export"])
    return parser, parsers


def _add_train(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("data", metavar="DATA", nargs="?", help=DATA_HELP)
    add("--target", metavar="COLUMN", help="the column to predict: labels, or a quantity")
    add("--weight", metavar="COLUMN", help="a column of sample weights; not used as a feature")
    _add_offsets(parser)
    add(
        "--drop",
        metavar="COL[,COL]",
        action="append",
        default=[],
        help="columns to leave out; may be given several times",
    )
    _add_reading(parser)
    add("--drop-missing-target", action="store_true", help="leave out rows without a target")
    _add_boosting(parser)
    add(
        "--test-size",
        metavar="SHARE",
        type=_share,
        default=0.2,
        help="share of the rows held out to judge the model, classes stratified; 0 for none "
        "(default: 0.2)",
    )
    add(
        "--seed",
        metavar="N",
        type=_whole(0, 2**32 - 1),
        default=0,
        help="for the random choice of the rows that are held out, set aside, or left out of a bag "
        "(default: 0)",
    )
    _add_device(parser)
    _add_resources(parser)
    how_much = parser.add_mutually_exclusive_group()
    how_much.add_argument("--quiet", action="store_true", help="print errors only")
    how_much.add_argument(
        "--verbose", action="store_true", help="also print which engine trained the model, and why"
    )
    _add_force(parser, "OUT or FILE.html")
    _add_checkpoint(parser)
    add(
        "-o",
        "--output",
        metavar="OUT",
        default="model.json",
        help="model file, .json; - for standard output, with the summary on standard error "
        "(default: model.json)",
    )
    add(
        "--report",
        metavar="FILE.html",
        help="also write a page with the summary, and pictures of the model",
    )


def _add_offsets(parser: argparse.ArgumentParser, when: str = "") -> None:
    """Columns of what is known of the rows beforehand."""
    parser.add_argument(
        "--exposure",
        metavar="COLUMN",
        help=f"{when}for counts: what each was counted over, such as years; predictions are "
        "multiplied by it",
    )
    parser.add_argument(
        "--init-score",
        metavar="COLUMN",
        help=f"{when}what is known of each row, and added to its score: log-odds of the second of "
        "two classes; of a quantity a number in its unit, or with poisson and gamma a logarithm",
    )


def _add_checkpoint(parser: argparse.ArgumentParser) -> None:
    """Options for training that may be interrupted."""
    add = parser.add_argument
    add(
        "--checkpoint",
        metavar="FILE",
        help="keep the rounds in this file while they are made, also on Ctrl-C and SIGTERM; it is "
        "removed once the model is written; if it exists, add --resume or --force",
    )
    add(
        "--resume",
        action="store_true",
        help="go on from the checkpoint, to the same model; if there is none, start from "
        "the first round",
    )
    add(
        "--checkpoint-every",
        metavar="WHEN",
        type=_how_often,
        help="how often to write the checkpoint, such as 30s, 5min, 1h or '100 rounds' "
        "(default: 60s)",
    )


def _add_boosting(parser: argparse.ArgumentParser) -> None:
    """Options that choose the estimator and its parameters; their defaults are in `method`."""
    add = parser.add_argument
    add(
        "--glass-box",
        action="store_true",
        help="settings that suit most tables, those of the estimators GlassBoxClassifier and, for "
        "quantities, GlassBoxRegressor: --loss logistic or squared_error "
        f"--rounds {method.GLASS.rounds} --learning-rate {method.GLASS.learning_rate:g} "
        f"--smoothing-rounds {method.GLASS.smoothing_rounds} "
        f"--patience {method.GLASS.patience} --set-aside {method.GLASS.set_aside:g} "
        f"--interactions {method.GLASS.interactions} "
        f"--bags {MANY_BAGS}, or {FEW_BAGS} for more than two classes or {FEW_SAMPLES} rows, "
        f"--l2 {L2_OF_ONE_OUTPUT:g}, or {L2_OF_SHARED_OUTPUTS:g} for more than two classes; each "
        "can be changed by its own option",
    )
    add(
        "--loss",
        metavar="LOSS",
        type=_one_of(method.LOSSES),
        help=f"for classes {' or '.join(get_args(method.ClassLoss))}, for quantities "
        f"{', '.join(get_args(QuantityLossName))} (default: {method.DEFAULT.loss}, or "
        f"{method.QUANTITY.loss} if the target is a quantity)",
    )
    add(
        "--votes",
        metavar="KIND",
        type=_one_of(
            ("discrete", "real"), {"newton": "Newton votes are what --loss logistic makes"}
        ),
        help="for --loss exponential, discrete: a stump has one vote; real: each side has its own "
        f"(default: {method.usual('exponential').votes})",
    )
    add(
        "--multi-class",
        metavar="HOW",
        type=_multi_class,
        help="with more than two classes, one-vs-rest: a model for each class; shared: all classes "
        f"share the stumps (default: {_by_loss('multi_class')})",
    )
    add(
        "--balanced",
        dest="class_weight",
        action="store_const",
        const="balanced",
        help="give all classes the same weight in training, so that rare ones are predicted more "
        "often; probabilities are then those of equally frequent classes",
    )
    add(
        "--rounds",
        metavar="N",
        type=_whole(1),
        help="the most rounds to make: for each class, or in all if the classes share the stumps "
        f"(default: {_by_loss('rounds')})",
    )
    add(
        "--learning-rate",
        metavar="R",
        type=_positive,
        help=f"all votes are multiplied by R (default: {_by_loss('learning_rate')})",
    )
    add(
        "--l2",
        metavar="L",
        type=_not_negative,
        help="not for --loss exponential: shrinks votes that rest on few rows; in units of the "
        f"weights (default: {_by_loss('l2')})",
    )
    add(
        "--smoothing-rounds",
        metavar="N",
        type=_whole(0),
        help="not for --loss exponential: the first N rounds choose among a few cuts at random "
        "places, which improves probabilities if there are few rows (default: 0)",
    )
    add(
        "--interactions",
        metavar="N",
        type=_interactions,
        help="not for --loss exponential: how many pairs of features to learn after the rounds, "
        "for what both add together; 3x means 3 for each feature, and auto "
        f"{USUAL_SHARE:g}x, but at most {MOST_USUAL} (default: 0)",
    )
    add(
        "--bags",
        metavar="N",
        type=_whole(1, MOST_BAGS),
        help="train N models, each on a random share of the rows, and take their average; "
        "inspect --plot then shows how much they differ (default: 1)",
    )
    add(
        "--patience",
        metavar="N",
        type=_whole(1),
        help="stop early: set rows aside, and end when N rounds in a row have not improved their "
        "score (default: never)",
    )
    add(
        "--set-aside",
        metavar="SHARE",
        type=_positive_share,
        help="the share of the training rows that --patience watches, or that each bag leaves out "
        f"(default: {method.DEFAULT.set_aside:g})",
    )
    add(
        "--weak-learner",
        metavar="KIND",
        type=_weak_learner,
        help="stump: one threshold; interval: one or two, for discrete votes and one-vs-rest "
        f"(default: {method.DEFAULT.weak_learner})",
    )
    add(
        "--monotone",
        metavar="COL=1[,COL=-1]",
        action="append",
        default=[],
        help="not with more classes than two, 1: the score must not fall as the column rises; -1: "
        "it must not "
        "rise; may be given several times",
    )


def _by_loss(name: str) -> str:
    """A parameter's defaults, where they depend on the loss."""
    cases = {"with --loss logistic": method.LOGITBOOST, "for quantities": method.QUANTITY}
    default = _option_value(getattr(method.DEFAULT, name))
    values = {case: _option_value(getattr(own, name)) for case, own in cases.items()}
    others = [f"{case}: {value}" for case, value in values.items() if value != default]
    return "; ".join([default, *others])


def _described_default() -> str:
    """What `train` does without options, as options."""
    default = method.DEFAULT
    names = ("multi_class",) if default.loss == "logistic" else ("votes", "multi_class")
    values = [
        f"--{name.replace('_', '-')} {_option_value(getattr(default, name))}" for name in names
    ]
    return ", ".join([f"--loss {default.loss}", *values])


def _option_value(value: object) -> str:
    if value is None:
        return f"{ROUNDS_OF_AN_OUTPUT} times the number of classes that share the stumps"
    return str(value).replace("_", "-")


def _add_reading(parser: argparse.ArgumentParser) -> None:
    """Options that say how to read the columns and the text of DATA."""
    kinds = {"--categorical": "text", "--numeric": "numbers, even codes such as 01234"}
    for option, what in kinds.items():
        parser.add_argument(
            option,
            metavar="COL[,COL]",
            action="append",
            default=[],
            help=f"columns to read as {what}; may be given several times",
        )
    parser.add_argument(
        "--categories",
        metavar="AS",
        type=_one_of(("one-hot", "sets")),
        default="one-hot",
        help="what a text column becomes: one-hot: a feature for each value; sets: one feature, "
        "and a stump divides its values into sets (default: one-hot)",
    )
    parser.add_argument(
        "--missing",
        metavar="WORD",
        type=_word,
        action="append",
        default=[],
        help="a word or number that stands for a missing value; may be given several times",
    )
    parser.add_argument(
        "--decimal",
        metavar="MARK",
        type=_decimal,
        help="the decimal mark of numbers, . or , (default: see text files)",
    )
    parser.add_argument(
        "--date-order",
        metavar="ORDER",
        type=_one_of(DATE_ORDERS),
        help="what dates such as 03/04/24 begin with: dmy (day), mdy (month) or ymd (year) "
        "(default: see text files)",
    )
    parser.add_argument(
        "--encoding",
        metavar="NAME",
        type=_encoding,
        help="encoding of a text file, such as latin-1, cp1252 or utf-16 (default: UTF-8)",
    )


def _add_predict(parser: argparse.ArgumentParser) -> None:
    _add_table_to_table(parser)
    _add_offsets(parser)
    _add_force(parser, "OUT")
    parser.add_argument(
        "--proba",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="with or without the probabilities (default: with)",
    )


def _add_explain(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    _add_table_to_table(parser)
    add(
        "--row",
        metavar="N",
        type=_whole(1),
        action="append",
        default=[],
        help="explain this row in words and bars; rows are counted from 1, without the line of "
        "names; may be given several times",
    )
    add(
        "--class",
        metavar="LABEL",
        dest="label",
        help="with --row and more than two classes, the class whose score is explained (default: "
        "the one predicted)",
    )
    add(
        "--top",
        metavar="N",
        type=_whole(1),
        help="with --row, how many features to show one by one; the others are added up "
        f"(default: {TOP})",
    )
    add("--plot", metavar="FILE", help="with --row, draw it; FILE ends in .png, .svg or .pdf")
    _add_offsets(parser, "with --row ")
    _add_force(parser, "OUT or FILE")


def _add_table_to_table(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("model", metavar="MODEL", help=MODEL_HELP)
    add("data", metavar="DATA", help=DATA_HELP)
    add(
        "-o",
        "--output",
        metavar="OUT",
        default="-",
        help=".csv, .parquet or .npz; - for CSV on standard output (default: -)",
    )


def _add_force(parser: argparse.ArgumentParser, names: str) -> None:
    parser.add_argument(
        "--force",
        action="store_true",
        help=f"replace an existing {names} even if this command does not recognise it as its own",
    )


def _add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device",
        type=_device,
        default="auto",
        help="auto, cpu, cuda or cuda:N; `gpustump devices` says what auto does (default: auto)",
    )


def _add_resources(parser: argparse.ArgumentParser) -> None:
    help_of_jobs = "threads on the CPU (default: one for each core)"
    parser.add_argument("--jobs", metavar="N", type=_whole(1), help=help_of_jobs)
    parser.add_argument(
        "--max-memory",
        metavar="SIZE",
        type=_size,
        help="memory for training, beside the table, such as 500MB or 2GiB (default: no limit)",
    )


def _add_inspect(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help=MODEL_HELP)
    parser.add_argument(
        "--rounds",
        metavar="N",
        type=_whole(0),
        default=20,
        help="how many rules to show (default: 20)",
    )
    parser.add_argument(
        "--plot", metavar="FILE", help="draw the model; FILE ends in .png, .svg or .pdf"
    )
    parser.add_argument(
        "--data",
        metavar="DATA",
        help="a table: show each feature's share of the contributions to its rows' scores and, "
        "with --plot, where its values lie",
    )
    _add_force(parser, "FILE")


def _add_audit(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("model", metavar="MODEL", help=MODEL_HELP)
    add("data", metavar="DATA", nargs="?", help=DATA_HELP)
    add(
        "--target",
        metavar="COLUMN",
        help="the column that is predicted (default: the one that the model names)",
    )
    add(
        "--weight",
        metavar="COLUMN",
        help="the column of sample weights (default: the one that the model names, if any)",
    )
    _add_offsets(parser)
    _add_device(parser)
    _add_resources(parser)
    add("--quiet", action="store_true", help="print errors only; the exit code tells the outcome")


def _add_export(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("model", metavar="MODEL", help=MODEL_HELP)
    add(
        "--to",
        metavar="LANGUAGE",
        type=_one_of(LANGUAGES),
        help="onnx, c or sql (default: as the ending of OUT says)",
    )
    add(
        "-o",
        "--output",
        metavar="OUT",
        default="-",
        help="file to write; - for standard output (default: -)",
    )
    add(
        "--name",
        metavar="NAME",
        help="with --to c or sql, what the names of functions or of new columns begin with "
        "(default: gpustump)",
    )
    add(
        "--dtype",
        type=_one_of(("float32", "float64")),
        help="with --to onnx, the dtype of the input's numbers (default: float64)",
    )
    add(
        "--dialect",
        type=_one_of(("sqlite", "duckdb", "postgresql")),
        help="with --to sql, the database (default: sqlite)",
    )
    add("--table", metavar="NAME", help="with --to sql, the table's name (default: data)")
    add(
        "--proba",
        action=argparse.BooleanOptionalAction,
        help="with --to sql, with or without the probabilities, or predictions that need an "
        "exponential (default: without for sqlite, which may lack the function exp)",
    )
    _add_force(parser, "OUT")


def _whole(least: int, most: float = math.inf) -> Callable[[str], int]:
    def parsed(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = None
        if value is None or not least <= value <= most:
            at_most = "" if most == math.inf else f" and at most {most}"
            raise argparse.ArgumentTypeError(
                f"must be a whole number of at least {least}{at_most}; got {quoted(text)}"
            )
        return value

    return parsed


def _interactions(text: str) -> int | str:
    given = int(text) if re.fullmatch("[0-9]+", text) else text
    try:
        check_form(given)
    except ValueError:
        raise argparse.ArgumentTypeError(
            "must be a whole number of at least 0, a number for each feature such as 3x, or auto; "
            f"got {quoted(text)}"
        ) from None
    return given


def _word(text: str) -> str:
    if not is_text(text):  # bytes of the command line that are not UTF-8
        raise argparse.ArgumentTypeError(f"must be text; got {quoted(text)}")
    return text


def _size(text: str) -> int:
    from gpustump.data.parameters import check_bytes

    try:
        return check_bytes(text, "it")
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be a number of bytes, such as 500MB or 2GiB; got {quoted(text)}"
        ) from None


def _real(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _positive(text: str) -> float:
    value = _real(text)
    if not 0.0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number above 0; got {quoted(text)}")
    return value


def _not_negative(text: str) -> float:
    value = _real(text)
    if not 0.0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number of at least 0; got {quoted(text)}")
    return value


_SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0}


def _how_often(text: str) -> tuple[int | None, float | None]:
    """Rounds or seconds between two checkpoints."""
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(s|min|h|rounds?)\s*", text)
    if found is not None and 0.0 < (number := float(found[1])) < 1e9:
        if found[2] in _SECONDS:
            return None, number * _SECONDS[found[2]]
        if number.is_integer():
            return int(number), None
    raise argparse.ArgumentTypeError(
        f"must be a time or a number of rounds, such as 30s, 5min, 1h or '100 rounds'; got "
        f"{quoted(text)}"
    )


def _share(text: str) -> float:
    value = _real(text)
    if not 0.0 <= value < 1.0:
        raise argparse.ArgumentTypeError(
            f"must be a share of the rows, at least 0 and below 1; got {quoted(text)}"
        )
    return value


def _positive_share(text: str) -> float:
    value = _share(text)
    if value == 0.0:
        raise argparse.ArgumentTypeError(
            f"must be a share of the rows, above 0 and below 1; got {quoted(text)}"
        )
    return value


def _decimal(text: str) -> str:
    if text not in (".", ","):
        raise argparse.ArgumentTypeError(f"must be . or ,; got {quoted(text)}")
    return text


def _encoding(text: str) -> str:
    try:
        "a".encode(text)
        return codecs.lookup(text).name
    except (LookupError, UnicodeError, ValueError):
        raise argparse.ArgumentTypeError(
            f"must be an encoding that Python knows, such as latin-1; got {quoted(text)}"
        ) from None


def _one_of(choices: Sequence[str], hints: Mapping[str, str] | None = None) -> Callable[[str], str]:
    """A parser for one of some words; `hints` are for other words that users may give."""

    def parsed(text: str) -> str:
        if text in choices:
            return text
        hint = f"; {hints[text]}" if hints and text in hints else ""
        raise argparse.ArgumentTypeError(
            f"must be {', '.join(choices[:-1])} or {choices[-1]}; got {quoted(text)}{hint}"
        )

    return parsed


def _multi_class(text: str) -> str:
    """A name as the estimators have it."""
    choices = tuple(_option_value(choice) for choice in MULTI_CLASS)
    return _one_of(choices)(_option_value(text)).replace("-", "_")


def _weak_learner(text: str) -> str:
    from gpustump.data.parameters import check_learner

    try:
        return check_learner(text)
    except ValueError as error:
        message = str(error).removeprefix("weak_learner ").rstrip(".")
        raise argparse.ArgumentTypeError(message) from error


def _device(text: str) -> str:
    from gpustump.arrays.devices import check_device

    try:
        return check_device(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error).rstrip(".")) from error
