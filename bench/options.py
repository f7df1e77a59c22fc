"""What several sub-commands let their users choose, checked before anything is measured."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from bench.contenders import Contender
from bench.data import NAMES
from bench.machine import usable_cores


class UsageError(Exception):
    """What the caller asked for and cannot have; the message says why."""


def whole(least: int) -> Callable[[str], int]:
    """A parser of whole numbers no smaller than this."""

    def parse(text: str) -> int:
        try:
            number = int(text.replace("_", ""))
        except ValueError:
            number = least - 1
        if number < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")
        return number

    return parse


def seconds(text: str) -> float:
    """A parser of times."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1e6:  # more than any wait can be told
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return number


def cores(text: str) -> int:
    """A parser of thread counts."""
    count, most = whole(1)(text), usable_cores()
    if count > most:
        raise argparse.ArgumentTypeError(f"{count} threads; there are {most} cores to run them")
    return count


class _TwoRounds(argparse.Action):
    """Two numbers of rounds, the second greater."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        assert isinstance(values, list)
        short, long = values
        if short >= long:
            parser.error(f"--rounds {short} {long}: the second fit must have more rounds")
        setattr(namespace, self.dest, (short, long))


def add_data(
    parser: argparse.ArgumentParser, default: list[str], *, samples: int, features: int
) -> None:
    """Which data, and the size of what is drawn."""
    parser.add_argument("--data", nargs="+", choices=NAMES, default=default, help="data sets")
    add_shape(parser, samples=samples, features=features)


def add_shape(parser: argparse.ArgumentParser, *, samples: int, features: int) -> None:
    """The size of the data that are drawn."""
    for flag, letter, default, least in (
        ("--samples", "M", samples, 16),
        ("--features", "D", features, 3),
    ):
        parser.add_argument(
            flag,
            type=whole(least),
            default=default,
            metavar=letter,
            help="of synthetic data (default: %(default)s)",
        )


def add_axis(
    parser: argparse.ArgumentParser, flag: str, default: list[int], *, least: int, what: str = ""
) -> None:
    """Points on an axis of growth."""
    parse = cores if flag == "--thread-counts" else whole(least)
    shown = " ".join(map(str, default))
    parser.add_argument(
        flag,
        type=parse,
        nargs="+",
        default=default,
        metavar="N",
        help="; ".join(filter(None, [what, shown and f"default: {shown}"])),
    )


def add_turns(
    parser: argparse.ArgumentParser,
    contenders: Sequence[Contender],
    *,
    rounds: tuple[int, int],
    only: list[str] | None = None,
) -> None:
    """How often, how long, with how many threads, and who."""
    parser.add_argument(
        "--rounds",
        type=whole(1),
        nargs=2,
        action=_TwoRounds,
        default=rounds,
        metavar=("SHORT", "LONG"),
        help=f"rounds of the two fits that a turn times (default: {rounds[0]} {rounds[1]})",
    )
    parser.add_argument("--turns", type=whole(1), default=5, metavar="N", help="default: 5")
    parser.add_argument(
        "--threads", type=cores, default=usable_cores(), metavar="N", help="default: every core"
    )
    parser.add_argument(
        "--patience",
        type=seconds,
        default=60.0,
        metavar="SECONDS",
        help="whoever takes longer for its first turn gets no second (default: 60)",
    )
    parser.add_argument(
        "--limit",
        type=seconds,
        default=600.0,
        metavar="SECONDS",
        help="whoever takes longer for one fit withdraws (default: 600)",
    )
    names = sorted({contender.name for contender in contenders})
    parser.add_argument(
        "--only",
        nargs="+",
        choices=names,
        default=only,
        metavar="NAME",
        help=f"who takes part (default: {', '.join(only or ['all'])}), of: {', '.join(names)}",
    )
    parser.add_argument(
        "--need",
        nargs="+",
        choices=names,
        default=[],
        metavar="NAME",
        help="who must have been measured, or the command fails",
    )
