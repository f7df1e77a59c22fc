"""Tables of `python -m bench cluster`, from its JSON, as Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from bench import summary
from bench.cluster_records import LOCAL, Case, Cluster, ClusterRun
from bench.larger_clusters import GBITS, WORKERS, bytes_passed, costs, messages_per_round
from bench.tables import NOTHING, markdown, middle, number, origin, ranged

HOW_TO_READ = """\
Workers are processes of this machine; "local" is a fit in one process, without Dask. The threads of
all workers together are those of the local fit, but each worker has one at least. Bytes are those
that a worker sends and is sent in a round: as gpustump counts them, and as what passed the loopback
between any processes, which is all that is known of the peers. Each message goes to all workers at
once. Models are compared after every long fit; predictions on rows that were held out, bit by bit.
"2 in 3 turns" were two different models."""

CALCULATION = """\
**{title}, larger clusters: a calculation from measured latency and bytes, no measurement.** A round
= compute share + messages x latency + bytes x workers / bandwidth of the leader. Compute share: the
local round of {threads}, divided by the workers (same table), or all of it (each worker has as many
rows as the table). Latency of an empty message to n workers and back: {fixed} + {each} n ms, a line
through what was measured, on the loopback and so without a network's own. Messages and bytes: those
on {workers}."""


def page(found: Cluster) -> str:
    """All that a run says."""
    parts = [HOW_TO_READ]
    for case in found.cases:
        parts += [*_case(case), *_not_measured(case)]
    for case in found.cases:
        parts += _calculation(case, found.threads)
    return "\n\n".join([*parts, origin(found.machine, found.started, found.command)])


def _case(case: Case) -> list[str]:
    turns = max(len(run.turns) for run in case.runs)
    short, long = case.runs[0].rounds
    heading = f"**{_title(case)}**, {short} and {long} rounds, {_plural(turns, 'turn')}"
    tables = [heading, _costs(case), _models(case)]
    if case.trips:
        tables.append(_trips(case))
    return tables


def _costs(case: Case) -> str:
    long = case.runs[0].rounds[1]
    fewest = _plural(min(run.workers for run in case.runs if run.workers != LOCAL), "worker")
    columns = [
        *("", "workers", "threads each", "ms per round", f"x {fewest}", "prepare, s"),
        *(f"{long} rounds, s", "messages a round", "bytes a worker and round", "on the loopback"),
    ]
    rows = []
    for run in _measured(case):
        said = [turn.said.round_bytes for turn in run.turns if turn.said]
        rows.append(
            [
                run.contender,
                _where(run),
                str(run.threads),
                ranged(summary.per_round(run), 1e3),
                middle(_of_fewest(run, case)),
                ranged(summary.preparation(run)),
                ranged(summary.whole_fit(run)),
                middle(messages_per_round(run)),
                middle(said),
                middle(bytes_passed(run)),
            ]
        )
    return markdown(columns, rows)


def _of_fewest(run: ClusterRun, case: Case) -> list[float]:
    """How many times a round on the fewest workers, in the turns that both took."""
    own = (each for each in case.runs if each.contender == run.contender and each.workers != LOCAL)
    fewest = min(own, key=lambda each: each.workers)
    pairs = zip(summary.per_round(run), summary.per_round(fewest), strict=False)
    return [a / b for a, b in pairs if min(a, b) > 0]  # noise can make one negative


def _models(case: Case) -> str:
    """Whether a contender makes the same model on each number of workers."""
    numbers = list(dict.fromkeys(run.workers for run in case.runs))
    rows = []
    for name in dict.fromkeys(run.contender for run in _measured(case)):
        runs = {run.workers: run for run in _measured(case) if run.contender == name}
        models = [_one_of([t.model for t in runs[n].turns]) if n in runs else "" for n in numbers]
        turns = [turn for run in runs.values() for turn in run.turns]
        same = [len({turn.model for turn in turns}), len({turn.predictions for turn in turns})]
        rows.append(
            [name, *("yes" if count == 1 else "no" for count in same), *map(_shown, models)]
        )
    titles = ["local" if n == LOCAL else _plural(n, "worker") for n in numbers]
    return markdown(["", "same model", "same predictions", *titles], rows)


def _one_of(hashes: Sequence[str]) -> str:
    """The hash of all turns, or that they differ."""
    return hashes[0] if len(set(hashes)) == 1 else f"{len(set(hashes))} in {len(hashes)} turns"


def _shown(model: str) -> str:
    return (model[:12] if len(model) == 64 else model) or NOTHING


def _trips(case: Case) -> str:
    rows = [[str(own.workers), ranged(own.seconds, 1e3)] for own in case.trips]
    return markdown(["workers", "empty message to all and back, ms"], rows)


def _calculation(case: Case, threads: int) -> list[str]:
    """The table of clusters that were not measured, if there is what it needs."""
    found = {run.contender: costs(case, run.contender) for run in _measured(case)}
    known = {name: own for name, own in found.items() if own is not None}
    if not known:
        return []
    latency = next(iter(known.values())).latency
    most = max(run.workers for run in _measured(case) if run.contender in known)
    heading = CALCULATION.format(
        title=_title(case),
        threads=_plural(threads, "thread"),
        fixed=number(latency.fixed * 1e3),
        each=number(latency.each * 1e3),
        workers=_plural(most, "worker"),
    )
    columns = [
        *("", "workers", "compute, ms", "messages, ms"),
        *(f"same table, {gbits} Gbit/s, ms" for gbits in GBITS),
        *(f"rows x workers, {gbits} Gbit/s, ms" for gbits in GBITS),
    ]
    rows = [
        [
            name,
            str(n),
            number(own.compute / n * 1e3),
            number(own.waiting(n) * 1e3),
            *(number(own.same_table(n, gbits) * 1e3) for gbits in GBITS),
            *(number(own.same_share(n, gbits) * 1e3) for gbits in GBITS),
        ]
        for name, own in known.items()
        for n in WORKERS
    ]
    return [f"{heading}\n\n{markdown(columns, rows)}"]


def _not_measured(case: Case) -> list[str]:
    """One sentence on who was not measured where, with the reason; or nothing."""
    listed = "; ".join(
        f"{run.contender}, {_where(run)} ({run.reason[:120]})" for run in case.runs if run.reason
    )
    return [f"Not measured: {listed}."] if listed else []


def _title(case: Case) -> str:
    return f"{case.data}, {case.samples} x {case.features}"


def _where(run: ClusterRun) -> str:
    return "local" if run.workers == LOCAL else str(run.workers)


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _measured(case: Case) -> list[ClusterRun]:
    return [run for run in case.runs if run.reason is None]
