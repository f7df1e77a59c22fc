"""Tables from the JSON of a run, as Markdown that reads well in a terminal too.

Nothing is measured here. A figure is a median; behind it, in brackets, stand the least and the
greatest of the turns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from bench.records import Report, Run, Section
from bench.summary import (
    AXES,
    bandwidth,
    bandwidth_share,
    by_contender,
    bytes_to_move,
    exponents,
    first_fit_extra,
    gather_rate,
    gather_share,
    per_round,
    predicting,
    preparation,
    ratios,
    size,
    size_label,
    speed_of,
    spread,
    whole_fit,
)

NOTHING = "-"
_WORDS = ("", "exact", "digest")  # columns that hold no figures


def page(report: Report) -> str:
    """All that a report says, as Markdown."""
    makers = {"backends": _backends, "peers": _peers, "growth": _growth, "limit": _limit}
    blocks = [makers[report.benchmark](report, section) for section in report.sections]
    if report.speeds:
        blocks.insert(0, _speeds(report))
    return "\n\n".join([*blocks, _origin(report)])


def number(value: float) -> str:
    """Three significant digits, without an exponent."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    decimals = max(2 - math.floor(math.log10(abs(value))), 0)
    return f"{value:.{min(decimals, 6)}f}"


def ranged(values: Sequence[float], scale: float = 1.0) -> str:
    """A median with the least and the greatest; or that there was only one value."""
    if not values:
        return NOTHING
    found = spread([value * scale for value in values])
    if len(values) == 1:
        return f"{number(found.median)} (once)"
    return f"{number(found.median)} ({number(found.low)}..{number(found.high)})"


def middle(values: Sequence[float], scale: float = 1.0) -> str:
    """A median alone."""
    return number(spread(values).median * scale) if values else NOTHING


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A pipe table: words to the left, figures to the right.

    A row may be short: its last cell, a remark, runs on over the columns that it has no cells for.
    """
    cells = [list(columns), *[[cell.replace("|", "\\|") for cell in row] for row in rows]]
    whole = [row for row in cells if len(row) == len(columns)]
    widths = [max(map(len, column)) for column in zip(*whole, strict=True)]
    widths[0] = max(len(row[0]) for row in cells)
    lines = ["| " + " | ".join(_padded(row, widths, columns)) + " |" for row in cells]
    rule = "| " + " | ".join(_rule(widths, columns)) + " |"
    return "\n".join([lines[0], rule, *lines[1:]])


def _padded(row: Sequence[str], widths: Sequence[int], columns: Sequence[str]) -> list[str]:
    if len(row) < len(columns):
        return [row[0].ljust(widths[0]), *row[1:]]
    return [
        cell.ljust(width) if column in _WORDS else cell.rjust(width)
        for cell, width, column in zip(row, widths, columns, strict=True)
    ]


def _rule(widths: Sequence[int], columns: Sequence[str]) -> list[str]:
    return [
        "-" * width if column in _WORDS else "-" * (width - 1) + ":"
        for width, column in zip(widths, columns, strict=True)
    ]


def _backends(_: Report, section: Section) -> str:
    base = _base(section)
    columns = ["", "ms per round", "ns per element", f"x {base.contender}"]
    columns += ["load, s", "first fit, +s", "digest"]

    def row(run: Run) -> list[str]:
        return [
            ranged(per_round(run), 1e3),
            middle(per_round(run), 1e9 / (run.samples * run.features)),
            middle(ratios(per_round, run, base)),
            *_starting(run),
            run.digest[:12] if run.digest else NOTHING,
        ]

    return f"{_title(section)}\n\n{_of_runs(columns, section.runs, row)}"


def _peers(_: Report, section: Section) -> str:
    base = _base(section)
    times = f"x {base.contender}"
    fit = f"{section.runs[0].rounds[1]} rounds, s"
    speed = ["", "exact", "ms per round", times, "prepare, s", fit, times]
    worth = ["", "predict, ms", "load, s", "first fit, +s", "memory, MB", "accuracy", "AUC"]

    def how_fast(run: Run) -> list[str]:
        return [
            "yes" if run.exact else "no",
            ranged(per_round(run), 1e3),
            middle(ratios(per_round, run, base)),
            ranged(preparation(run)),
            ranged(whole_fit(run)),
            middle(ratios(whole_fit, run, base)),
        ]

    def how_good(run: Run) -> list[str]:
        return [
            ranged(predicting(run), 1e3),
            *_starting(run),
            _megabytes(run),
            f"{run.accuracy:.4f}",
            f"{run.auc:.4f}",
        ]

    measured = [run for run in section.runs if run.reason is None]
    tables = [_of_runs(speed, section.runs, how_fast), _of_runs(worth, measured, how_good)]
    return "\n\n".join([_title(section), *tables[: 2 if measured else 1]])


def _growth(_: Report, section: Section) -> str:
    columns = ["", section.name, "ms per round", "ns per element", "prepare, ms"]

    def row(run: Run) -> list[str]:
        return [
            size_label(section.name, run),
            ranged(per_round(run), 1e3),
            middle(per_round(run), 1e9 / (run.samples * run.features)),
            middle(preparation(run), 1e3),
        ]

    rows = []
    for contender, runs in by_contender(section).items():
        rows += [_row(run, row) for run in runs]
        measured = [run for run in runs if run.reason is None]
        sizes = [size(section.name, run) for run in measured]
        if len(measured) > 1:
            slopes = [exponents(of, sizes, measured) for of in (per_round, preparation)]
            rows.append([contender, "exponent", _exponent(slopes[0]), "", _exponent(slopes[1])])
    table = markdown(columns, rows)
    return f"**Over {AXES[section.name]}**: {_fixed(section)}\n\n{table}"


def _exponent(slopes: Sequence[float]) -> str:
    if not slopes:
        return NOTHING
    found = spread(slopes)
    return f"{found.median:z.2f} ({found.low:z.2f}..{found.high:z.2f})"


def _limit(report: Report, section: Section) -> str:
    columns = ["", "ms per round", "MB to move", "of the bandwidth", "of the gather rate"]

    def row(run: Run) -> list[str]:
        speed = speed_of(report, run)
        return [
            ranged(per_round(run), 1e3),
            number(bytes_to_move(run) / 1e6),
            _percent(bandwidth_share(run, speed)) if speed else NOTHING,
            _percent(gather_share(run, speed)) if speed else NOTHING,
        ]

    return f"{_title(section)}\n\n{_of_runs(columns, section.runs, row)}"


def _speeds(report: Report) -> str:
    columns = ["", "threads", "copied, GB/s", "gathered, million elements/s"]
    rows = [
        [
            speed.device,
            str(speed.threads),
            ranged(bandwidth(speed), 1e-9),
            ranged(gather_rate(speed), 1e-6),
        ]
        for speed in report.speeds
    ]
    return f"**What the memory gives**\n\n{markdown(columns, rows)}"


def _base(section: Section) -> Run:
    """Whom ratios compare with: the first that was measured, gpustump wherever it was."""
    return next((run for run in section.runs if run.reason is None), section.runs[0])


def _title(section: Section) -> str:
    run = section.runs[0]
    short, long = run.rounds
    return (
        f"**{run.data}, {run.samples} x {run.features}**, {short} and {long} rounds, "
        f"{_plural(run.threads, 'thread')}, {_plural(_most_turns(section), 'turn')}"
    )


def _fixed(section: Section) -> str:
    """What an axis held fixed."""
    run = section.runs[0]
    parts = {
        "samples": f"{run.samples} samples",
        "features": f"{run.features} features",
        "rounds": f"{run.rounds[0]} and {run.rounds[1]} rounds",
        "threads": _plural(run.threads, "thread"),
    }
    held = [text for axis, text in parts.items() if axis != section.name]
    return ", ".join([*held, _plural(_most_turns(section), "turn")])


def _most_turns(section: Section) -> int:
    return max(len(run.turns) for run in section.runs)


def _of_runs(columns: Sequence[str], runs: Sequence[Run], cells: Callable[[Run], list[str]]) -> str:
    """A table with a row for each run."""
    return markdown(columns, [_row(run, cells) for run in runs])


def _row(run: Run, cells: Callable[[Run], list[str]]) -> list[str]:
    """The run's name and figures, or the reason why there are none."""
    if run.reason is None:
        return [run.contender, *cells(run)]
    return [run.contender, run.reason if len(run.reason) <= 80 else f"{run.reason[:77]}..."]


def _starting(run: Run) -> list[str]:
    extra = first_fit_extra(run)
    return [NOTHING if value is None else number(value) for value in (run.load, extra)]


def _megabytes(run: Run) -> str:
    on_gpu = f" + {number(run.device_memory / 1e6)} on the GPU" if run.device_memory else ""
    if run.host_memory is None:
        return NOTHING + on_gpu
    return number(run.host_memory / 1e6) + on_gpu


def _percent(shares: Sequence[float]) -> str:
    return f"{number(spread(shares).median * 100)}%" if shares else NOTHING


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _origin(report: Report) -> str:
    machine = report.machine
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    memory = f", {machine['memory'] / 2**30:.0f} GiB" if machine["memory"] else ""
    commit = f" at {machine['commit']}" if machine["commit"] else ""
    return (
        f"{machine['processor']}, {_plural(machine['cores'], 'core')}{memory}, "
        f"{'; '.join(machine['gpus']) or 'no GPU'}, {machine['system']}. "
        f"Python {machine['python']}, {versions}. "
        f"gpustump {machine['gpustump']}{commit}, {report.started[:10]}: `{report.command}`"
    )
