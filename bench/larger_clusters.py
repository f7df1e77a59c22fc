"""How long a round would take on clusters that were not measured: a calculation.

    a round = compute share + messages x latency + bytes x workers / bandwidth of the leader

All on the right, but the bandwidth, was measured on one machine: the round of a fit in one process,
the number of messages in a round, the bytes that each worker sends and is sent in it, and the time
of an empty message to all workers. A straight line over the number of workers is fitted to that
time.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from bench.cluster_records import LOCAL, Case, ClusterRun, RoundTrips
from bench.summary import per_round

WORKERS = (8, 32, 128)
GBITS = (1, 10, 25)
"""Bandwidths of the leader's network, in 1e9 bits a second."""


class Latency(NamedTuple):
    """Seconds of an empty message to all workers and back: a line over their number."""

    fixed: float
    each: float

    def of(self, n_workers: int) -> float:
        """Of so many workers."""
        return self.fixed + self.each * n_workers

    @classmethod
    def through(cls, trips: Sequence[RoundTrips]) -> Latency:
        """By least squares through the medians; constant if one number of workers was measured.

        Noise may make a part negative; it is then 0.
        """
        x = [float(own.workers) for own in trips]
        y = [statistics.median(own.seconds) for own in trips]
        if len(set(x)) == 1:
            return cls(y[0], 0.0)
        line = statistics.linear_regression(x, y)
        return cls(max(line.intercept, 0.0), max(line.slope, 0.0))


class Costs(NamedTuple):
    """What a round costs, as measured.

    Attributes
    ----------
    compute : float
        Seconds of a round in one process, with all threads of the machine.
    messages : float
        One after the other, each to all workers.
    n_bytes : float
        That each worker sends and is sent.
    latency : Latency
    """

    compute: float
    messages: float
    n_bytes: float
    latency: Latency

    def waiting(self, n_workers: int) -> float:
        """Seconds of a round in which messages are under way."""
        return self.messages * self.latency.of(n_workers)

    def sending(self, n_workers: int, gbits: float) -> float:
        """Seconds of a round in which all bytes pass the leader."""
        return self.n_bytes * n_workers * 8 / (gbits * 1e9)

    def same_table(self, n_workers: int, gbits: float) -> float:
        """Seconds of a round if the table is dealt out: each worker has a share of the rows."""
        compute = self.compute / n_workers
        return compute + self.waiting(n_workers) + self.sending(n_workers, gbits)

    def same_share(self, n_workers: int, gbits: float) -> float:
        """Seconds of a round if each worker has as many rows as the measured table."""
        return self.compute + self.waiting(n_workers) + self.sending(n_workers, gbits)


def costs(case: Case, contender: str) -> Costs | None:
    """What a contender's rounds cost, on the most workers that were measured; None if unknown."""
    own = [run for run in case.runs if run.contender == contender and run.turns]
    local = [run for run in own if run.workers == LOCAL]
    spread = [run for run in own if run.turns[0].said is not None]
    if not (local and spread and case.trips):
        return None
    most = max(spread, key=lambda run: run.workers)
    sizes = [turn.said.round_bytes for turn in most.turns if turn.said]
    return Costs(
        max(statistics.median(per_round(local[0])), 0.0),  # noise can make it negative
        statistics.median(messages_per_round(most)),
        statistics.median(sizes),
        Latency.through(case.trips),
    )


def messages_per_round(run: ClusterRun) -> list[float]:
    """Messages to each worker that one more round takes, of each turn; none if not counted."""
    short, long = run.rounds
    counted = [turn.said.messages for turn in run.turns if turn.said]
    return [(b - a) / (long - short) / run.workers for a, b in counted]


def bytes_passed(run: ClusterRun) -> list[float]:
    """Bytes through the loopback that one more round takes, for each worker."""
    short, long = run.rounds
    if run.workers == LOCAL:
        return []
    pairs = (turn.passed for turn in run.turns)
    return [(b - a) / (long - short) / run.workers for a, b in pairs]
