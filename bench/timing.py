"""The benchmarks of speed: each makes plans, which are played.

Turns go A B C, A B C, ..., so a slow spell of the machine meets all contenders, and ratios can be
formed within a turn. Before the first turn all contenders warm up. What was measured so far is
handed on after every step, so that nothing is lost if the run is ended.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from bench.contenders import GROUPS, VOTES, Contender, chosen, voting
from bench.data import DataSet, Stored, load, require, store
from bench.machine import usable_cores
from bench.records import Result
from bench.worker import Entry, WithdrawnError, Worker, timed

Found = Callable[[tuple[Result, ...]], None]
"""Gets what was measured so far."""

AXES = ("samples", "features", "rounds", "threads")
"""What can grow."""
PANEL: Mapping[str, Any] = tomllib.loads(Path(__file__).with_name("panel.toml").read_text())
_FEWEST = 500  # samples of a case that was shrunk: enough that all ten classes have some


class UsageError(Exception):
    """What the caller asked for and cannot have; the message says why."""


class Plan(NamedTuple):
    """Entries that take turns with each other, under a name."""

    name: str
    entries: tuple[Entry, ...]
    turns: int = 5


# ---- what each benchmark measures ----


def backends(options: argparse.Namespace) -> list[Plan]:
    """the same training job on every array library that works here.

    The data are in the library, and on its device, before the clock starts. All must train the
    same model for each kind of votes: the digests are compared, and the command fails if they
    differ.
    """
    who = chosen(GROUPS["backends"], options.only)
    return _over_data(options, [voting(each, kind) for kind in options.votes for each in who])


def peers(options: argparse.Namespace) -> list[Plan]:
    """gpustump beside the libraries that people come from.

    All train on the same host arrays, with the same number of rounds and threads, through the API
    that their users use. Predicting is measured, too. Only gpustump, scikit-learn's AdaBoost and
    XGBoost's exact method look at every threshold.
    """
    return _over_data(options, chosen(GROUPS["peers"], options.only), whole=True)


def panel(options: argparse.Namespace) -> list[Plan]:
    """each kind of votes as a share of the fastest peer's time, on every family of data.

    A round and a whole fit: of 100 rounds, in which votes are strong at first, and of 1000, in
    which they have become weak. The cases are in panel.toml; those on a GPU are measured only if
    they are named.
    """
    plans = []
    for name, case in PANEL["cases"].items():
        names = {who for group in case["who"] for who in PANEL["contenders"][group]}
        who = [each for each in chosen(GROUPS["panel"], options.only) if each.name in names]
        for data in PANEL["data"][case["data"]] if name in options.cases and who else ():
            if not options.data or data in options.data:
                n_samples, n_features = case["shape"]
                made = _drawn(data, max(n_samples // options.shrink, _FEWEST), n_features)
                rounds = tuple(case["rounds"])
                entries = tuple(Entry(each, made, rounds, options.threads) for each in who)
                turns = min(case["turns"], options.turns)
                plans.append(Plan(f"{name} {data}", entries, turns))
    if not plans:
        raise UsageError("nobody who was chosen takes part in these cases, on these data")
    return plans


def growth(options: argparse.Namespace) -> list[Plan]:
    """how the cost of a round, and of preparing, grows with the problem.

    One number grows at a time and the others are fixed: samples at the middle one of their sizes,
    features at the smallest. On a perfect machine the exponent in samples and in features is 1, in
    rounds 0, in threads -1. By default gpustump takes part with each kind of votes.
    """
    name, held = options.data[0], (options.rounds, options.threads)
    middle, least = options.samples[(len(options.samples) - 1) // 2], options.features[0]
    short, count = options.rounds[0], min(options.round_counts)
    if count <= short:
        raise UsageError(f"--round-counts {count}: more than the short fit's {short} are needed")
    require(name)
    data = _drawn(name, middle, least)
    points: dict[str, list[tuple[Any, ...]]] = {
        "samples": [(_drawn(name, m, least), *held) for m in options.samples],
        "features": [(_drawn(name, middle, d), *held) for d in options.features],
        "rounds": [(data, (short, n), options.threads) for n in options.round_counts],
        "threads": [(data, options.rounds, count) for count in options.thread_counts],
    }
    who = chosen(GROUPS["growth"], options.only or [each.name for each in VOTES])
    return [
        Plan(axis, tuple(Entry(each, *at) for each in who for at in points[axis]), options.turns)
        for axis in options.axes
    ]


BENCHMARKS: Mapping[str, Callable[[argparse.Namespace], list[Plan]]] = {
    made.__name__: made for made in (backends, peers, panel, growth)
}


def _over_data(
    options: argparse.Namespace, who: Sequence[Contender], *, whole: bool = False
) -> list[Plan]:
    """A plan for each data set that was asked for."""
    plans = []
    for name in options.data:
        require(name)
        data = _drawn(name, options.samples, options.features)
        entries = (Entry(each, data, options.rounds, options.threads, whole) for each in who)
        plans.append(Plan(name, tuple(entries), options.turns))
    return plans


@functools.cache  # so that equal points share their data
def _drawn(name: str, n_samples: int, n_features: int) -> Callable[[], DataSet]:
    return functools.partial(load, name, n_samples, n_features)


# ---- what can be chosen ----


def add_options(parser: argparse.ArgumentParser, name: str) -> None:
    """What can be chosen on the command line of a benchmark."""
    add = functools.partial(add_option, parser)
    add("--data", str, [] if name == "panel" else ["synthetic"], "data sets", nargs="+")
    if name == "panel":
        cases = list(PANEL["cases"])
        usual = [case for case in cases if not case.startswith("cuda")]
        add("--cases", str, usual, "what is compared", nargs="+", choices=cases)
        add("--shrink", whole(1), 1, "divide the numbers of samples by this, for a trial")
    elif name == "growth":
        doubled = {1 << k for k in range(usable_cores().bit_length())}
        samples = [25_000, 100_000, 400_000, 1_600_000, 4_000_000]
        add("--samples", whole(16), samples, "sizes", nargs="+")
        add("--features", whole(4), [30, 60, 120, 240], "sizes", nargs="+")
        add("--round-counts", whole(3), [50, 200, 800], "sizes", nargs="+")
        add("--thread-counts", whole(1), sorted({*doubled, usable_cores()}), "sizes", nargs="+")
        add("--axes", str, list(AXES), "what grows", nargs="+", choices=AXES)
    else:
        add("--samples", whole(16), 200_000, "of generated data")
        add("--features", whole(4), 30, "of generated data")
    if name != "panel":
        rounds = {"peers": (10, 100), "growth": (10, 50)}.get(name, (2, 42))
        add("--rounds", whole(1), rounds, "of the short and the long fit of a turn", nargs=2)
    if name == "backends":
        kinds = ("discrete", "real", "newton")
        add("--votes", str, ["discrete"], "what regions vote", nargs="+", choices=kinds)
    add("--turns", whole(1), 15 if name == "panel" else 5, "at most")
    add_shared(parser, name, *((10, 120) if name == "panel" else (60, 600)))
    names = [each.name for each in GROUPS[name]]
    add("--need", str, [], "fail unless these were measured", nargs="+", choices=names)


def add_option(
    parser: argparse.ArgumentParser, flag: str, kind: Any, default: Any, about: str, **how: Any
) -> None:
    """An option, whose help names its default and what can be chosen."""
    shown = " ".join(map(str, default)) if isinstance(default, (list, tuple)) else default
    about = f"{about} (default: {shown or 'all'})"
    if "choices" in how:
        about += f", of: {'; '.join(how['choices'])}"
        how["metavar"] = flag.strip("-").upper()
    parser.add_argument(flag, type=kind, default=default, help=about.replace("%", "%%"), **how)


def add_shared(parser: argparse.ArgumentParser, group: str, patience: int, longest: int) -> None:
    """Who takes part, on how many cores, and how long somebody may take."""
    add = functools.partial(add_option, parser)
    names = [each.name for each in GROUPS[group]]
    add("--only", str, None, "who takes part", nargs="+", choices=names)
    add("--threads", whole(1), usable_cores(), "of a contender")
    about = "who takes longer for the first turn gets no other, in seconds"
    add("--patience", whole(0), patience, about)
    add("--limit", whole(1), longest, "who takes longer for one fit withdraws, in seconds")


def whole(least: int) -> Callable[[str], int]:
    """A parser of whole numbers no smaller than this."""

    def parse(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")
        return int(text)

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
    check(options)
    if getattr(options, "votes", None):
        needed = chosen(GROUPS["backends"], options.need) if options.need else []
        options.need = [voting(each, kind).name for kind in options.votes for each in needed]
    return BENCHMARKS[options.benchmark](options)


def check(options: argparse.Namespace) -> None:
    """Check the numbers of rounds and of threads, before anything is measured."""
    if "rounds" in options:
        short, long = options.rounds = tuple(options.rounds)
        if short >= long:
            raise UsageError(f"--rounds {short} {long}: the second fit must have more rounds")
    most, cores = max([options.threads, *getattr(options, "thread_counts", [])]), usable_cores()
    if most > cores:
        raise UsageError(f"{most} threads were asked for; there are only {cores} cores")


# ---- playing ----


def measure(options: argparse.Namespace, found: Found) -> tuple[Result, ...]:
    """Measure every plan; `found` gets what was measured so far, after every step of a turn."""
    done: tuple[Result, ...] = ()
    plans = planned(options)
    for plan in plans:
        tell(f"measuring {plan.name}, {len(plan.entries)} entries ...")
        with scratch_folder() as folder:
            players = _workers(plan, folder, options.limit)
            done = play(players, plan.turns, options.patience, found, done)
    return done


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """A folder for data and logs, removed in the end."""
    with TemporaryDirectory(prefix="gpustump-bench-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def play(
    players: Sequence[Worker],
    turns: int,
    patience: float,
    found: Found,
    done: tuple[Result, ...],
) -> tuple[Result, ...]:
    """Let players take turns, and end their processes; what was done before, and their results."""
    with contextlib.ExitStack() as ending:
        for player in players:
            ending.callback(player.close)
        return done + take_turns(players, turns, patience, lambda results: found(done + results))


def _workers(plan: Plan, folder: Path, limit: float) -> list[Worker]:
    """A worker for each entry; each data set is made and written once."""
    stored: dict[Callable[[], DataSet], Stored] = {}
    for make in dict.fromkeys(entry.data for entry in plan.entries):
        stored[make] = store(make(), folder / str(len(stored)))
    return [Worker(plan.name, entry, stored[entry.data], limit) for entry in plan.entries]


def take_turns(
    players: Sequence[Worker],
    turns: int,
    patience: float,
    found: Found = lambda results: None,
) -> tuple[Result, ...]:
    """Let all players warm up, then take turns.

    A player that takes longer than `patience` for its first turn gets no other. `found` gets the
    results after every step of a turn.
    """
    taken: list[list[dict[str, Any]]] = [[] for _ in players]
    reasons: list[str | None] = [None for _ in players]
    slow: set[int] = set()

    def results() -> tuple[Result, ...]:
        each = zip(players, taken, reasons, strict=True)
        return tuple(player.result(turns, reason) for player, turns, reason in each)

    for number in range(turns + 1):
        for index, player in enumerate(players):
            if reasons[index] is not None or index in slow:
                continue
            try:
                seconds, took = timed(player.turn if number else player.warm_up)
                tell(f"  {player.name}: turn {number}, {seconds:.1f} s")
                if number:
                    taken[index].append(took or {})
                if number == 1:
                    player.judge()
                    slow |= {index} if seconds > patience else set()
            except WithdrawnError as withdrawal:
                reasons[index] = str(withdrawal)
                tell(f"  {player.name}: {withdrawal}")
            if any(taken):
                found(results())
    return results()


def tell(words: str) -> None:
    """Print the progress."""
    print(words, file=sys.stderr, flush=True)
