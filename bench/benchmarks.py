"""The benchmarks of speed: what each measures, and what can be chosen on the command line.

A benchmark is a function from the options to plans; its docstring is its help.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bench import panel as panel_cases
from bench.contenders import BACKENDS, PEERS, VOTE_KINDS, VOTES, Contender, chosen, voting
from bench.data import GENERATED, NAMES, DataSet, load, require, synthetic
from bench.machine import usable_cores
from bench.play import Plan
from bench.speed import COPY_BYTES
from bench.summary import AXES
from bench.worker import Entry


class UsageError(Exception):
    """What the caller asked for and cannot have; the message says why."""


def backends(options: argparse.Namespace) -> list[Plan]:
    """the same training job on every array library that works here.

    The data are in the library, and on its device, before the clock starts. All must train the
    same model for each kind of votes: the digests are compared, and the command fails if they
    differ.
    """
    return _plans_over_data(options, _with_votes(options), whole=False)


def peers(options: argparse.Namespace) -> list[Plan]:
    """gpustump beside the libraries that people come from.

    All train on the same host arrays, with the same number of rounds and threads, through the API
    that their users use. Each keeps its own defaults otherwise, its learning rate included: what a
    round costs does not depend on it, only how much a round improves the model. gpustump takes part
    with each kind
    of votes: scikit-learn's AdaBoost minimises the loss of discrete and real votes, the others
    minimise that of LogitBoost. Only gpustump, scikit-learn and XGBoost's exact method look at
    every threshold. They predict host arrays, too: gpustump on the CPU wherever it trained, XGBoost
    cuda on the GPU.
    """
    return _plans_over_data(options, chosen(PEERS, options.only), whole=True)


def panel(options: argparse.Namespace) -> list[Plan]:
    """each kind of votes as a share of the fastest peer's time, on every family of data.

    A round and a whole fit: of 100 rounds, in which votes are strong at first, and of 1000, in
    which they have become weak. The cases: `large` and `large-late`, 1 000 000 x 50; `small` and
    `small-late`, 200 000 x 30; `tiny`, breast cancer with 200 rounds; `classes`, ten classes. All
    of them take 15 to 20 minutes on two cores. On a GPU: `cuda-large`, 10 000 000 x 100; `cuda` and
    `cuda-late`, 2 000 000 x 100.
    """
    plans = panel_cases.plans(options)
    if not plans:
        raise UsageError("nobody who was chosen takes part in these cases, on these data")
    return plans


def growth(options: argparse.Namespace) -> list[Plan]:
    """how the cost of a round, and of preparing, grows with the problem.

    One number grows at a time and the others are fixed: samples at the middle one of their sizes,
    features at the smallest. On a perfect machine the exponent in samples and in features is 1, in
    rounds and in distinct values 0, in threads -1. By default gpustump takes part with each kind of
    votes.
    """
    middle, least = options.samples[(len(options.samples) - 1) // 2], options.features[0]
    short, count = options.rounds[0], min(options.round_counts)
    if count <= short:
        raise UsageError(f"--round-counts {count}: more than the short fit's {short} are needed")
    threads = options.thread_counts or _doubled_up_to(options.threads)
    if options.data != "synthetic" and "distinct" in options.axes:
        raise UsageError(f"--data {options.data}: choose --axes without distinct")
    for n_features in options.features:
        require(options.data, n_features)
    drawn = functools.partial(_drawn, options.data)
    data, *held = drawn(middle, least), options.rounds, options.threads
    points: dict[str, list[tuple[Any, ...]]] = {
        "samples": [(drawn(m, least), *held) for m in options.samples],
        "features": [(drawn(middle, d), *held) for d in options.features],
        "rounds": [(data, (short, long), options.threads) for long in options.round_counts],
        "distinct": [(_cut(middle, least, k), *held) for k in [*options.distinct, None]],
        "threads": [(data, options.rounds, count) for count in threads],
    }
    who = chosen((*BACKENDS, *PEERS), options.only)
    return [
        Plan(
            axis,
            tuple(Entry(each, *point) for each in who for point in points[axis]),
            options.turns,
        )
        for axis in options.axes
    ]


def limit(options: argparse.Namespace) -> list[Plan]:
    """what part of the memory's speed each backend reaches.

    Before every turn the memory is measured: how fast it copies, and how fast it gathers in random
    order. Two yardsticks follow: the time of a round that moves one byte for each element and 16
    for each sample, as fast as a copy; and that of a round that gathers once for each element, as a
    scan in sorted order does. Neither is a lower bound: a scan over histograms may beat the second,
    and one that skips elements or packs codes may beat the first.
    """
    options.data = ["synthetic"]
    (plan,) = _plans_over_data(options, _with_votes(options), whole=False)
    return [plan._replace(name="limit")]


BENCHMARKS: Mapping[str, Callable[[argparse.Namespace], list[Plan]]] = {
    "backends": backends,
    "peers": peers,
    "panel": panel,
    "growth": growth,
    "limit": limit,
}

_VOTES = [contender.name for contender in VOTES]
_WHO: Mapping[str, tuple[Sequence[Contender], list[str] | None]] = {
    "backends": (BACKENDS, None),
    "peers": (PEERS, None),
    "panel": (panel_cases.WHO, None),
    "growth": ((*BACKENDS, *PEERS), _VOTES),
    "limit": (BACKENDS, None),
}
"""Who can take part, and who does by default (None for all)."""

_ROUNDS = {"backends": (2, 42), "peers": (10, 100), "growth": (10, 50), "limit": (2, 42)}
"""Of the two fits of a turn. Each case of the panel has its own."""


def add_options(parser: argparse.ArgumentParser, name: str) -> None:
    """What can be chosen on the command line of a benchmark."""
    add = parser.add_argument
    if name == "panel":
        _add_cases(parser)
    elif name == "growth":
        _add_axes(parser)
    elif name == "limit":
        about = "size of the buffer that is copied (default: %(default)s)"
        add("--copy-bytes", type=whole(1 << 16), default=COPY_BYTES, metavar="N", help=about)
        add_shape(parser, 1_000_000, 20)
    else:
        add("--data", nargs="+", choices=NAMES, default=["synthetic"], help="data sets")
        add_shape(parser, 200_000, 30)
    if name != "panel":
        rounds, metavar = _ROUNDS[name], ("SHORT", "LONG")
        about = f"rounds of the two fits of a turn (default: {rounds[0]} {rounds[1]})"
        add("--rounds", type=whole(1), nargs=2, default=rounds, metavar=metavar, help=about)
        add("--turns", type=whole(1), default=5, metavar="N", help="default: 5")
    if name in ("backends", "limit"):
        add_votes(parser)
    about = "default: every core"
    add("--threads", type=whole(1), default=usable_cores(), metavar="N", help=about)
    patience, longest = (10, 120) if name == "panel" else (60, 600)
    about = (
        "a contender that takes longer for its first turn gets no second one (default: %(default)s)"
    )
    add("--patience", type=whole(0), default=patience, metavar="SECONDS", help=about)
    about = "a contender that takes longer for one fit withdraws (default: %(default)s)"
    add("--limit", type=whole(1), default=longest, metavar="SECONDS", help=about)
    contenders, only = _WHO[name]
    names = [each.name for each in contenders]
    about = f"who takes part (default: {', '.join(only or ['all'])}), of: {', '.join(names)}"
    add("--only", nargs="+", choices=names, default=only, metavar="NAME", help=about)
    about = "the command fails unless these were measured"
    add("--need", nargs="+", choices=names, default=[], metavar="NAME", help=about)


def _add_cases(parser: argparse.ArgumentParser) -> None:
    """Which of the panel's cases are measured, and how thoroughly."""
    add = parser.add_argument
    cases, usual = panel_cases.CASES, panel_cases.ON_THE_CPU
    about = f"default: {' '.join(usual)}"
    add("--cases", nargs="+", choices=list(cases), default=usual, metavar="CASE", help=about)
    sets = panel_cases.DATA
    add("--data", nargs="+", choices=sets, default=sets, help="of these cases (default: all)")
    about = "divide the numbers of samples by this, down to 500, for a trial (default: %(default)s)"
    add("--shrink", type=whole(1), default=1, metavar="N", help=about)
    about = "at most this many turns in each case (default: the number of the case, 1 to 15)"
    most = max(case.turns for case in cases.values())
    add("--turns", type=whole(1), default=most, metavar="N", help=about)


def _add_axes(parser: argparse.ArgumentParser) -> None:
    """What grows, and on which data."""
    add = parser.add_argument
    for flag, least, sizes in (
        ("--samples", 16, [25_000, 100_000, 400_000, 1_600_000, 4_000_000]),
        ("--features", 3, [30, 60, 120, 240]),
        ("--round-counts", 3, [50, 200, 800]),
        ("--distinct", 2, [2, 16, 256, 4096]),
        ("--thread-counts", 1, []),
    ):
        shown = " ".join(map(str, sizes)) or "1 2 4 ... and all cores"
        about = f"default: {shown}"
        add(flag, type=whole(least), nargs="+", default=sizes, metavar="N", help=about)
    add("--axes", nargs="+", choices=list(AXES), default=list(AXES), help="default: all")
    about = "what is drawn (default: %(default)s)"
    add("--data", choices=list(GENERATED), default="synthetic", help=about)


def add_shape(parser: argparse.ArgumentParser, samples: int, features: int) -> None:
    """The size of generated data."""
    for flag, least, size in (("--samples", 16, samples), ("--features", 3, features)):
        about = "of generated data (default: %(default)s)"
        parser.add_argument(flag, type=whole(least), default=size, metavar="N", help=about)


def add_votes(parser: argparse.ArgumentParser, *more: str) -> None:
    """Which kinds of votes are made; `more` are those of this benchmark alone."""
    about, kinds = "what regions vote (default: discrete)", (*VOTE_KINDS, *more)
    parser.add_argument("--votes", nargs="+", choices=kinds, default=["discrete"], help=about)


def whole(least: int) -> Callable[[str], int]:
    """A parser of whole numbers no smaller than this."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")
        return number

    return parse


def planned(options: argparse.Namespace) -> list[Plan]:
    """The plans of the benchmark that was chosen.

    Raises
    ------
    UsageError
        If the options contradict each other.
    MissingDataError
        If one of the data sets cannot be had here.
    """
    if options.benchmark in _ROUNDS:
        short, long = options.rounds = tuple(options.rounds)
        if short >= long:
            raise UsageError(f"--rounds {short} {long}: the second fit must have more rounds")
    if needed := getattr(options, "votes", None) and options.need:
        who = chosen(BACKENDS, needed)
        options.need = [voting(each, kind).name for kind in options.votes for each in who]
    most, cores = max([options.threads, *getattr(options, "thread_counts", [])]), usable_cores()
    if most > cores:
        raise UsageError(f"{most} threads were asked for; there are only {cores} cores")
    return BENCHMARKS[options.benchmark](options)


def _plans_over_data(
    options: argparse.Namespace, contenders: Sequence[Contender], *, whole: bool
) -> list[Plan]:
    """A plan for each data set that was asked for."""
    for name in options.data:  # before anything is measured
        require(name, options.features)
    return [
        Plan(
            name,
            tuple(
                Entry(contender, data, options.rounds, options.threads, whole)
                for contender in contenders
            ),
            options.turns,
        )
        for name in options.data
        for data in [functools.partial(load, name, options.samples, options.features)]
    ]


def _with_votes(options: argparse.Namespace) -> list[Contender]:
    """The backends that were asked for, each with each kind of votes that was asked for."""
    who = chosen(BACKENDS, options.only)
    return [voting(contender, kind) for kind in options.votes for contender in who]


@functools.cache  # so that equal points share their data
def _drawn(name: str, n_samples: int, n_features: int) -> Callable[[], DataSet]:
    return functools.partial(load, name, n_samples, n_features)


def _cut(n_samples: int, n_features: int, distinct: int | None) -> Callable[[], DataSet]:
    if distinct is None:
        return _drawn("synthetic", n_samples, n_features)
    return functools.partial(synthetic, n_samples, n_features, distinct)


def _doubled_up_to(most: int) -> list[int]:
    """1, 2, 4, ... and the most."""
    return sorted({*(1 << k for k in range(most.bit_length())), most})
