"""Tables from the JSON of a run, as Markdown that reads well in a terminal too.

Nothing is measured here. A figure is a median; behind it, in brackets, stand the least and the
greatest of the turns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from bench.records import Report, Run, Section
from bench.summary import (
    AXES,
    bandwidth,
    bandwidth_share,
    by_contender,
    exponents,
    fewest_bytes,
    first_run,
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
_WORDS = ("", "exact", "digest", "remark")  # columns that hold no figures


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
    """A median with the least and the greatest, if there is more than one value."""
    if not values:
        return NOTHING
    found = spread([value * scale for value in values])
    if len(values) == 1:
        return number(found.median)
    return f"{number(found.median)} ({number(found.low)}..{number(found.high)})"


def middle(values: Sequence[float], scale: float = 1.0) -> str:
    """A median alone."""
    return number(spread(values).median * scale) if values else NOTHING


def markdown(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A pipe table: words to the left, figures to the right."""
    cells = [list(columns), *[[cell.replace("|", "\\|") for cell in row] for row in rows]]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["| " + " | ".join(_padded(row, widths, columns)) + " |" for row in cells]
    rule = "| " + " | ".join(_rule(widths, columns)) + " |"
    return "\n".join([lines[0], rule, *lines[1:]])


def _padded(row: Sequence[str], widths: Sequence[int], columns: Sequence[str]) -> list[str]:
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
    columns = ["", "ms per round", "ns per element", f"x {base.contender}", "first run, s"]
    rows = []
    for run in section.runs:
        costs = per_round(run)
        rows.append(
            [
                run.contender,
                ranged(costs, 1e3),
                middle(costs, 1e9 / (run.samples * run.features)),
                middle(ratios(per_round, run, base)),
                number(first_run(run)) if run.turns else NOTHING,
                _megabytes(run),
                run.digest[:12] if run.digest else NOTHING,
                _remark(run),
            ]
        )
    table = markdown(*_without_empty([*columns, "memory, MB", "digest", "remark"], rows))
    return f"{_title(section)}\n\n{table}"


def _peers(_: Report, section: Section) -> str:
    base = _base(section)
    long = section.runs[0].rounds[1]
    columns = [
        *(
            "",
            "exact",
            "ms per round",
            f"x {base.contender}",
            "preparation, s",
            f"{long} rounds, s",
        ),
        *(f"x {base.contender}", "predict, ms", "first run, s", "memory, MB", "accuracy", "AUC"),
        "remark",
    ]
    rows = [
        [
            run.contender,
            "yes" if run.exact else "no",
            ranged(per_round(run), 1e3),
            middle(ratios(per_round, run, base)),
            middle(preparation(run)),
            ranged(whole_fit(run)),
            middle(ratios(whole_fit, run, base)),
            middle(predicting(run), 1e3),
            number(first_run(run)) if run.turns else NOTHING,
            _megabytes(run),
            f"{run.accuracy:.4f}" if run.accuracy is not None else NOTHING,
            f"{run.auc:.4f}" if run.auc is not None else NOTHING,
            _remark(run),
        ]
        for run in section.runs
    ]
    return f"{_title(section)}\n\n{markdown(*_without_empty(columns, rows))}"


def _growth(_: Report, section: Section) -> str:
    columns = ["", section.name, "ms per round", "ns per element", "preparation, ms", "remark"]
    rows = []
    for contender, runs in by_contender(section).items():
        rows += [
            [
                contender,
                size_label(section.name, run),
                ranged(per_round(run), 1e3),
                middle(per_round(run), 1e9 / (run.samples * run.features)),
                middle(preparation(run), 1e3),
                _remark(run),
            ]
            for run in runs
        ]
        measured = [run for run in runs if run.turns]
        sizes = [size(section.name, run) for run in measured]
        if len(measured) > 1:
            slopes = [exponents(figure, sizes, measured) for figure in (per_round, preparation)]
            rows.append(
                [contender, "exponent", _exponent(slopes[0]), "", _exponent(slopes[1]), ""],
            )
    table = markdown(*_without_empty(columns, rows))
    return f"**Over {AXES[section.name]}**: {_fixed(section)}\n\n{table}"


def _exponent(slopes: Sequence[float]) -> str:
    if not slopes:
        return NOTHING
    found = spread(slopes)
    return f"{found.median:.2f} ({found.low:.2f}..{found.high:.2f})"


def _limit(report: Report, section: Section) -> str:
    columns = ["", "ms per round", "MB to move", "of the bandwidth", "of the gather rate", "remark"]
    rows = []
    for run in section.runs:
        speed = speed_of(report, run)
        rows.append(
            [
                run.contender,
                ranged(per_round(run), 1e3),
                number(fewest_bytes(run) / 1e6),
                _percent(bandwidth_share(run, speed)) if speed else NOTHING,
                _percent(gather_share(run, speed)) if speed else NOTHING,
                _remark(run),
            ]
        )
    return f"{_title(section)}\n\n{markdown(*_without_empty(columns, rows))}"


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
    return next((run for run in section.runs if run.turns), section.runs[0])


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


def _remark(run: Run) -> str:
    if run.reason:
        return run.reason if len(run.reason) <= 60 else run.reason[:57] + "..."
    return ""


def _megabytes(run: Run) -> str:
    if run.host_memory is None:
        return NOTHING
    host = number(run.host_memory / 1e6)
    on_gpu = f" + {number(run.device_memory / 1e6)} on the GPU" if run.device_memory else ""
    return host + on_gpu


def _percent(shares: Sequence[float]) -> str:
    return f"{number(spread(shares).median * 100)}%" if shares else NOTHING


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _without_empty(
    columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[list[str], list[list[str]]]:
    """Leave out the remarks if nobody made one."""
    if any(row[-1] for row in rows):
        return list(columns), [list(row) for row in rows]
    return list(columns[:-1]), [list(row[:-1]) for row in rows]


def _origin(report: Report) -> str:
    machine = report.machine
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    return "\n".join(
        [
            f"{machine['processor']}, {machine['cores']} cores, "
            f"{'; '.join(machine['gpus']) or 'no GPU'}. Python {machine['python']}, {versions}.",
            f"{report.started[:10]}, `{report.command}`",
        ]
    )
