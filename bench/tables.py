"""Tables from the JSON of a run, as Markdown that reads well in a terminal, too.

Nothing is measured here. A cell is a median; in brackets behind it are the least and the greatest
of the turns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import tabulate

from bench import summary
from bench.records import Machine, Report, Run, Section
from bench.summary import Quantity, spread

tabulate.MIN_PADDING = 0  # columns no wider than they need

NOTHING = "-"
_WORDS = ("", "exact", "digest", "what", "data", "fastest peer")  # columns that hold no numbers

Column = tuple[str, Callable[[Run], str]]
"""A title, and what a run has below it."""


def page(report: Report, *, only_means: bool = False) -> str:
    """All that a report says, as Markdown; of a panel perhaps the shares only."""
    makers = {
        "backends": _backends,
        "peers": _peers,
        "panel": _panel,
        "growth": _growth,
        "limit": _limit,
    }
    parts = [_speeds(report)] if report.speeds else []
    if report.benchmark == "panel":
        parts += _headlines(report)
    for section in () if only_means else report.sections:
        tables = makers[report.benchmark](report, section)
        parts += [*(tables if summary.measured(section) else tables[:1]), *_not_measured(section)]
    return "\n\n".join([*parts, origin(report.machine, report.started, report.command)])


def number(value: float | None) -> str:
    """Three significant digits, without an exponent."""
    if value is None:
        return NOTHING
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = max(2 - math.floor(math.log10(abs(value))), 0)
    return f"{value:.{min(decimals, 6)}f}"


def ranged(values: Sequence[float], scale: float = 1.0) -> str:
    """A median with the least and the greatest; or that there was only one value."""
    if not values:
        return NOTHING
    median, low, high = (number(value * scale) for value in spread(values))
    return f"{median} (once)" if len(values) == 1 else f"{median} ({low}..{high})"


def middle(values: Sequence[float], scale: float = 1.0) -> str:
    """A median alone."""
    return number(spread(values).median * scale) if values else NOTHING


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A pipe table: words to the left, numbers to the right."""
    sides = ["left" if column in _WORDS else "right" for column in columns]
    return str(
        tabulate.tabulate(rows, columns, tablefmt="pipe", colalign=sides, disable_numparse=True)
    )


def _of_runs(section: Section, columns: Sequence[Column]) -> str:
    """A table with a row for each run that was measured."""
    rows = [
        [run.contender, *(cell(run) for _, cell in columns)] for run in summary.measured(section)
    ]
    return markdown(["", *(title for title, _ in columns)], rows)


def _not_measured(section: Section) -> list[str]:
    """One sentence on the contenders that have no row, or nothing."""
    reasons = {run.contender: run.reason for run in section.runs if run.reason is not None}
    listed = "; ".join(f"{contender} ({reason[:80]})" for contender, reason in reasons.items())
    return [f"Not measured: {listed}."] if listed else []


def _backends(_: Report, section: Section) -> list[str]:
    base = _base(section)
    columns: list[Column] = [
        ("ms per round", lambda run: ranged(summary.per_round(run), 1e3)),
        ("ns per element", _per_element),
        (f"x {base.contender}", lambda run: middle(summary.ratios(summary.per_round, run, base))),
        ("load, s", lambda run: number(run.load)),
        ("first fit, +s", lambda run: number(summary.first_fit_extra(run))),
        ("digest", lambda run: run.digest[:12] if run.digest else NOTHING),
    ]
    return [_title(section), _of_runs(section, columns)]


def _peers(_: Report, section: Section) -> list[str]:
    base = _base(section)
    times = f"x {base.contender}"
    speed: list[Column] = [
        ("exact", lambda run: "yes" if run.exact else "no"),
        ("ms per round", lambda run: ranged(summary.per_round(run), 1e3)),
        (times, lambda run: middle(summary.ratios(summary.per_round, run, base))),
        ("prepare, s", lambda run: ranged(summary.preparation(run))),
        (f"{base.rounds[1]} rounds, s", lambda run: ranged(summary.whole_fit(run))),
        (times, lambda run: middle(summary.ratios(summary.whole_fit, run, base))),
    ]
    worth: list[Column] = [
        ("predict, ms", lambda run: ranged(summary.predicting(run), 1e3)),
        ("load, s", lambda run: number(run.load)),
        ("first fit, +s", lambda run: number(summary.first_fit_extra(run))),
        ("memory, MB", _megabytes),
        *_quality(section),
    ]
    return [_title(section), _of_runs(section, speed), _of_runs(section, worth)]


def _quality(section: Section) -> list[Column]:
    """How good the models are, of classes or of a quantity."""
    if any(run.r2 is not None for run in section.runs):
        return [("R2", lambda run: f"{run.r2:.4f}")]
    return [
        ("accuracy", lambda run: f"{run.accuracy:.4f}"),
        ("AUC", lambda run: f"{run.auc:.4f}"),
    ]


def _headlines(report: Report) -> list[str]:
    """Of the panel: what share of the fastest peer's time gpustump takes, section by section."""
    return [
        "**A round, as a share of the fastest peer's**\n\n"
        + _shares(report, summary.per_round, "its ms", 1e3),
        "**A whole fit, as a share of the fastest peer's**\n\n"
        + _shares(report, summary.whole_fit, "its s", 1.0),
    ]


def _shares(report: Report, of: Quantity, unit: str, scale: float) -> str:
    names = summary.ours(report)
    rows = []
    for section in report.sections:
        run, peer = section.runs[0], summary.fastest_peer(of, section)
        short, long = run.rounds
        rounds = f"{short} to {long}" if of is summary.per_round else str(long)
        its = [peer.contender, middle(of(peer), scale)] if peer else [NOTHING, NOTHING]
        found = summary.of_fastest_peer(of, section)
        shares = [ranged(found.get(name, [])) for name in names]
        rows.append([run.data, f"{run.samples} x {run.features}", rounds, *its, *shares])
    return markdown(["data", "size", "rounds", "fastest peer", unit, *names], rows)


def _panel(_: Report, section: Section) -> list[str]:
    a_round, fit = (
        summary.of_fastest_peer(of, section) for of in (summary.per_round, summary.whole_fit)
    )
    columns: list[Column] = [
        ("exact", lambda run: "yes" if run.exact else "no"),
        ("ms per round", lambda run: ranged(summary.per_round(run), 1e3)),
        ("x fastest peer", lambda run: middle(a_round.get(run.contender, []))),
        (f"{section.runs[0].rounds[1]} rounds, s", lambda run: ranged(summary.whole_fit(run))),
        ("x fastest peer", lambda run: middle(fit.get(run.contender, []))),
        ("prepare, s", lambda run: middle(summary.preparation(run))),
        *_quality(section),
    ]
    return [_title(section), _of_runs(section, columns)]


def _growth(_: Report, section: Section) -> list[str]:
    columns = ["", section.name, "ms per round", "ns per element", "prepare, ms"]
    quantities = (summary.per_round, summary.preparation)
    rows = []
    for contender, runs in summary.by_contender(section).items():
        sizes, labels = zip(*(summary.size(section.name, run) for run in runs), strict=True)
        for run, label in zip(runs, labels, strict=True):
            a_round, rest = (of(run) for of in quantities)
            cells = (ranged(a_round, 1e3), _per_element(run), middle(rest, 1e3))
            rows.append([contender, label, *cells])
        if len(runs) > 1:
            slopes = (_exponent(summary.exponents(of, sizes, runs)) for of in quantities)
            rows.append([contender, "exponent", next(slopes), "", next(slopes)])
    held = [axis for axis in ("samples", "features", "rounds", "threads") if axis != section.name]
    data = section.runs[0].data
    heading = f"**Over {summary.AXES[section.name]}**: {data}, {_held(section, *held)}"
    return [heading, markdown(columns, rows)]


def _exponent(slopes: Sequence[float]) -> str:
    if not slopes:
        return NOTHING
    median, low, high = spread(slopes)
    return f"{median:z.2f} ({low:z.2f}..{high:z.2f})"


def _limit(report: Report, section: Section) -> list[str]:
    def share(run: Run, which: int) -> str:
        found = summary.yardsticks(report, run)
        of_round = summary.shares(found[which], run) if found else []
        return f"{middle(of_round, 100)}%" if of_round else NOTHING

    columns: list[Column] = [
        ("ms per round", lambda run: ranged(summary.per_round(run), 1e3)),
        ("MB to move", lambda run: number(summary.bytes_to_move(run) / 1e6)),
        ("of the bandwidth", lambda run: share(run, 0)),
        ("of the gather rate", lambda run: share(run, 1)),
    ]
    return [_title(section), _of_runs(section, columns)]


def _speeds(report: Report) -> str:
    columns = ["", "threads", "copied, GB/s", "gathered, million elements/s"]
    rows = [
        [
            speed.device,
            str(speed.threads),
            ranged(summary.bandwidth(speed), 1e-9),
            ranged(summary.gather_rate(speed), 1e-6),
        ]
        for speed in report.speeds
    ]
    return f"**The memory's speed**\n\n{markdown(columns, rows)}"


def _per_element(run: Run) -> str:
    return middle(summary.per_round(run), 1e9 / (run.samples * run.features))


def _megabytes(run: Run) -> str:
    on_gpu = f" + {number(run.device_memory / 1e6)} on the GPU" if run.device_memory else ""
    return (NOTHING if run.host_memory is None else number(run.host_memory / 1e6)) + on_gpu


def _base(section: Section) -> Run:
    """The run that ratios compare with: the first that was measured."""
    return next(iter(summary.measured(section)), section.runs[0])


def _title(section: Section) -> str:
    run = section.runs[0]
    return f"**{run.data}, {run.samples} x {run.features}**, " + _held(section, "rounds", "threads")


def _held(section: Section, *names: str) -> str:
    """The numbers that were the same in all runs, as text."""
    run = section.runs[0]
    parts = {
        "samples": f"{run.samples} samples",
        "features": f"{run.features} features",
        "rounds": f"{run.rounds[0]} and {run.rounds[1]} rounds",
        "threads": _plural(run.threads, "thread"),
    }
    turns = _plural(max(len(run.turns) for run in section.runs), "turn")
    return ", ".join([*(parts[name] for name in names), turns])


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def origin(machine: Machine, started: str, command: str) -> str:
    """Where, when and how a run was measured."""
    versions = ", ".join(f"{name} {version}" for name, version in machine.versions.items())
    memory = f", {machine.memory / 2**30:.0f} GiB" if machine.memory else ""
    commit = f" at {machine.commit}" if machine.commit else ""
    return (
        f"{machine.processor}, {_plural(machine.cores, 'core')}{memory}, "
        f"{'; '.join(machine.gpus) or 'no GPU'}, {machine.system}. "
        f"Python {machine.python}, {versions}. "
        f"gpustump {machine.gpustump}{commit}, {started[:10]}: `{command}`"
    )
