"""`python -m bench cluster`: what a round costs on more and more worker processes of this machine.

gpustump by `gpustump.dask.fit`, with each kind of votes, beside those of XGBoost and
LightGBM on the same clusters, and beside gpustump in one process with all threads. All train on the
same rows; the Dask arrays lie in the workers' memory, in twelve uneven chunks. The workers of a
cluster have the threads together, at least one each. The models of all long fits are compared:
gpustump's must be the same everywhere, else the command fails. A message without content to all
workers is timed before every turn. All of it takes about 10 minutes on two cores.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.benchmarks import UsageError, whole
from bench.cluster_contenders import CONTENDERS, Leader
from bench.cluster_places import Place, Workers, cut
from bench.cluster_records import LOCAL, Case, ClusterRun, ClusterTurn, RoundTrips, Said
from bench.contenders import VOTES, Contender, chosen, is_ours
from bench.data import GENERATED, Stored, load, require, store
from bench.machine import usable_cores
from bench.play import Taken, take_turns
from bench.servant import Servant, WithdrawnError
from bench.worker import NOT_YET
from gpustump.arrays.extras import how_to_install

_SIZES = [(1_000_000, 50), (10_000, 30)]
_FEWEST_SAMPLES = 300  # so that each chunk has some

Found = Callable[[tuple[Case, ...]], None]
"""Called with the cases as far as they have been measured."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """What can be chosen on the command line."""
    add = parser.add_argument
    usual = ["synthetic", "noise"]
    add("--data", nargs="+", choices=list(GENERATED), default=usual, help="default: both of these")
    about = f"samples and features (default: {' '.join(f'{m}x{d}' for m, d in _SIZES)})"
    add("--sizes", nargs="+", type=_size, default=_SIZES, metavar="MxD", help=about)
    about = "worker processes of each cluster (default: 1 2 4)"
    add("--workers", nargs="+", type=whole(1), default=[1, 2, 4], metavar="N", help=about)
    about = "of a cluster's workers together, and of a fit in one process (default: every core)"
    add("--threads", type=whole(1), default=usable_cores(), metavar="N", help=about)
    about, metavar = "rounds of the two fits of a turn (default: 10 100)", ("SHORT", "LONG")
    add("--rounds", type=whole(1), nargs=2, default=(10, 100), metavar=metavar, help=about)
    add("--turns", type=whole(1), default=2, metavar="N", help="default: 2")
    about = "messages to each cluster before every turn (default: 20)"
    add("--messages", type=whole(1), default=20, metavar="N", help=about)
    about = (
        "a contender that takes longer for its first turn gets no second one (default: %(default)s)"
    )
    add("--patience", type=whole(0), default=10, metavar="SECONDS", help=about)
    about = "a contender that takes longer for one fit withdraws (default: %(default)s)"
    add("--limit", type=whole(1), default=300, metavar="SECONDS", help=about)
    names = [each.name for each in CONTENDERS]
    about = f"who takes part (default: all), of: {', '.join(names)}"
    add("--only", nargs="+", choices=names, metavar="NAME", help=about)


def measure(options: argparse.Namespace, found: Found) -> tuple[Case, ...]:
    """Measure every case; `found` gets what has been measured so far, after every step.

    Raises
    ------
    UsageError
        If the options contradict each other, or if Dask is not installed.
    MissingDataError
        If one of the data sets cannot be had here.
    """
    _check(options)
    done: tuple[Case, ...] = ()
    with contextlib.ExitStack() as ending:
        made = TemporaryDirectory(prefix="gpustump-bench-", ignore_cleanup_errors=True)
        folder = Path(ending.enter_context(made))
        clusters = []
        for n_workers in sorted(set(options.workers)):
            log = folder / f"workers-{n_workers}.log"
            clusters.append(Workers(n_workers, max(1, options.threads // n_workers), log))
            ending.callback(clusters[-1].close)
        players = _players(options, clusters, folder)
        for player in players:
            ending.callback(player.process.close)
        for size in options.sizes:
            for name in options.data:
                stored = store(load(name, *size), folder / f"{name}-{size[0]}x{size[1]}")

                def hand_on(case: Case, before: tuple[Case, ...] = done) -> None:
                    found((*before, case))

                done += (_Turns(stored, clusters, players, options).play(hand_on),)
    return done


def disagreement(cases: Sequence[Case]) -> str | None:
    """A message if gpustump made different models of the same rows; None if it did not."""
    for case in cases:
        models: dict[str, set[str]] = defaultdict(set)
        for run in case.runs:
            if is_ours(run.contender):
                models[run.contender] |= {turn.model for turn in run.turns}
        for name, digests in models.items():
            if len(digests) > 1:
                shown = ", ".join(digest[:12] for digest in sorted(digests))
                return f"{name} made different models of {case.data}: {shown}"
    return None


class Player:
    """One contender on so many workers; see `play.Player`.

    Parameters
    ----------
    contender : Contender
    process : LeadingProcess
        Shared with the same contender on other clusters.
    cluster : Workers or None
        None for a fit in the process itself.
    threads : int
    rounds : tuple of int
    """

    def __init__(
        self,
        contender: Contender,
        process: LeadingProcess,
        cluster: Workers | None,
        threads: int,
        rounds: tuple[int, int],
    ) -> None:
        self.contender, self.process, self.cluster = contender, process, cluster
        self.threads, self.rounds = threads, rounds
        self.n_workers = cluster.n_workers if cluster else LOCAL
        where = "local" if cluster is None else f"workers: {cluster.n_workers}"
        self.name = f"{contender.name}, {where}"
        self._place: Place | None = None
        self._first_fit: float | None = None

    def move(self, stored: Stored) -> None:
        """Go on to the next data set."""
        self._place = self.cluster.place(stored) if self.cluster else Place(stored)
        self._first_fit = None

    def warm_up(self) -> None:
        """Start the process if it does not run, and fit once."""
        if reason := self.contender.absent():
            raise WithdrawnError(reason)
        self._first_fit = self.process.ask("fit", self._place, self.rounds[0]).seconds

    def turn(self) -> ClusterTurn:
        """A short fit and a long one, and what the latter made."""
        short, long = (self.process.ask("fit", self._place, rounds) for rounds in self.rounds)
        said = Said((short.messages, long.messages), long.round_bytes) if long.messages else None
        passed = short.passed, long.passed
        model, predictions = self.process.ask("judge")
        return ClusterTurn(short.seconds, long.seconds, passed, model, predictions, said)

    def judge(self) -> None:
        """Nothing: the model of every turn is looked at."""

    def converse(self, times: int) -> list[float]:
        """Seconds of messages to all workers; see `Leader.converse`."""
        return list(self.process.ask("converse", self._place, times))

    def run(self, turns: Sequence[ClusterTurn], reason: str | None) -> ClusterRun:
        """The record of what was measured so far."""
        return ClusterRun(
            contender=self.contender.name,
            parameters=dict(self.contender.parameters),
            workers=self.n_workers,
            threads=self.threads,
            rounds=self.rounds,
            reason=reason or (None if turns else NOT_YET),
            first_fit=self._first_fit,
            turns=tuple(turns),
        )


class LeadingProcess(Servant):
    """The process of one contender. It is started when it is needed, and again if it has ended."""

    def __init__(self, contender: Contender, log: Path, threads: int, limit: float) -> None:
        super().__init__(log, limit)
        self._contender, self._threads = contender, threads

    def ask(self, order: str, *arguments: Any) -> Any:
        """What a method of `Leader` returns."""
        if not self.is_running:
            self.start(self._threads, Leader, self._contender, self._threads)
            super().ask("load")
        return super().ask(order, *arguments)


class _Turns:
    """The turns on one data set."""

    def __init__(
        self,
        stored: Stored,
        clusters: Sequence[Workers],
        players: Sequence[Player],
        options: argparse.Namespace,
    ) -> None:
        self._stored, self._clusters, self._players = stored, clusters, players
        self._options = options
        self._chunks = cut(stored.shape[0])
        self._trips: dict[int, list[float]] = {each.n_workers: [] for each in clusters}

    def play(self, found: Callable[[Case], None]) -> Case:
        """Have all players take their turns."""
        for cluster in self._clusters:
            cluster.hold(self._stored, self._chunks)
        for player in self._players:
            player.move(self._stored)
        taken = take_turns(
            self._players,
            self._options.turns,
            patience=self._options.patience,
            before_turn=self._send_messages,
            after_step=lambda taken: found(self._case(taken)),
        )
        for process in {player.process for player in self._players}:
            if process.is_running:
                process.ask("leave")
        for cluster in self._clusters:
            cluster.drop()
        return self._case(taken)

    def _send_messages(self) -> None:
        """Time messages to each cluster, from a process that leads fits of ours there."""
        ours = {p.n_workers: p for p in reversed(self._players) if is_ours(p.contender.name)}
        for n_workers, trips in self._trips.items():
            if n_workers in ours:
                with contextlib.suppress(WithdrawnError):
                    trips += ours[n_workers].converse(self._options.messages)

    def _case(self, taken: Taken[ClusterTurn]) -> Case:
        samples, features = self._stored.shape
        pairs = zip(self._players, taken, strict=True)
        return Case(
            data=self._stored.name,
            data_sha256=self._stored.sha256,
            samples=samples,
            features=features,
            chunks=self._chunks,
            runs=tuple(player.run(*own) for player, own in pairs),
            trips=tuple(RoundTrips(n, tuple(own)) for n, own in self._trips.items() if own),
        )


def _players(
    options: argparse.Namespace, clusters: Sequence[Workers], folder: Path
) -> list[Player]:
    """Each contender on each cluster, then those of ours in one process."""
    players = []
    local = [(each, None) for each in chosen(VOTES, options.only)]
    everywhere = [(each, clusters) for each in chosen(CONTENDERS, options.only)]
    for number, (contender, where) in enumerate([*everywhere, *local]):
        process = LeadingProcess(
            contender, folder / f"{number}.log", options.threads, options.limit
        )
        for cluster in [None] if where is None else where:
            threads = cluster.threads if cluster else options.threads
            players.append(Player(contender, process, cluster, threads, tuple(options.rounds)))
    return players


def _check(options: argparse.Namespace) -> None:
    """Check that all of this can be measured here, before anything is."""
    short, long = options.rounds
    if short >= long:
        raise UsageError(f"--rounds {short} {long}: the second fit must have more rounds")
    if options.threads > usable_cores():
        raise UsageError(
            f"{options.threads} threads were asked for; there are only {usable_cores()} cores"
        )
    for name in options.data:
        for _, n_features in options.sizes:
            require(name, n_features)
    for module in ("dask", "distributed"):
        if importlib.util.find_spec(module) is None:
            raise UsageError(f"{module} is not installed: {how_to_install('dask')}")


def _size(text: str) -> tuple[int, int]:
    """Samples and features, written 10000x30."""
    found = re.fullmatch(r"(\d+)x(\d+)", text)
    if not found or int(found[1]) < _FEWEST_SAMPLES or int(found[2]) < 3:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not samples x features, {_FEWEST_SAMPLES}x3 at least"
        )
    return int(found[1]), int(found[2])
