"""`python -m bench`: measure, show, report.

    python -m bench backends | peers | growth | limit     measure, into a JSON file
    python -m bench profile                               the CUDA kernels of a round, one by one
    python -m bench show FILE                             its table
    python -m bench report FOLDER                         one page of all JSON files in a folder

Measuring and showing are apart: what is printed is computed from the file that was written.
"""

from __future__ import annotations

import argparse
import datetime
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from bench import backends, growth, limit, peers, profile, records
from bench.data import MissingDataError
from bench.machine import describe, source_sha256
from bench.options import UsageError
from bench.play import play
from bench.records import FormatError
from bench.summary import disagreement
from bench.tables import page

BENCHMARKS: dict[str, ModuleType] = {
    "backends": backends,
    "peers": peers,
    "growth": growth,
    "limit": limit,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one sub-command; returns the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(given)
    try:
        return int(options.run(options, given))
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130
    except (UsageError, FormatError, MissingDataError, OSError, MemoryError) as error:
        print(f"python -m bench: error: {error}", file=sys.stderr)
        return 2


def measure(options: argparse.Namespace, given: Sequence[str]) -> int:
    """Run one benchmark: its JSON file, its table, its figure."""
    benchmark = BENCHMARKS[options.benchmark]
    plans = benchmark.plans(options)
    machine = describe()  # before, since it tells which sources are measured
    started = datetime.datetime.now(datetime.UTC)
    target = _target(options, started)
    clock = time.perf_counter()
    probes = limit.probes(options) if benchmark is limit else []
    sections = play(
        plans, options.turns, patience=options.patience, limit=options.limit, probes=probes
    )
    report = records.Report(
        benchmark=options.benchmark,
        command=_command(given),
        started=f"{started:%Y-%m-%dT%H:%M:%SZ}",
        seconds=time.perf_counter() - clock,
        machine=machine,
        sections=sections,
        speeds=tuple(probe.speed() for probe in probes),
    )
    records.write(report, target)
    print(page(records.read(target)))
    print(f"\nwritten: {', '.join(map(str, [target, *_figures(target)]))}", file=sys.stderr)
    problems = [disagreement(sections), *_missed(options.need, sections)]
    if source_sha256() != machine["source_sha256"]:
        problems.append("the sources were changed while they were measured: do not trust this run")
    for problem in filter(None, problems):
        print(f"python -m bench: {problem}", file=sys.stderr)
    return int(any(problems))


def _missed(needed: Sequence[str], sections: Sequence[records.Section]) -> list[str]:
    """Who had to be measured and was not."""
    missed = []
    for section in sections:
        reasons = {run.contender: run.reason for run in section.runs if run.reason}
        reasons |= dict.fromkeys(
            set(needed) - {run.contender for run in section.runs}, "it did not take part"
        )
        missed += [
            f"{name} was not measured on {section.name}: {reasons[name]}"
            for name in needed
            if name in reasons
        ]
    return missed


def show(options: argparse.Namespace, _: Sequence[str]) -> int:
    """Print the tables of JSON files."""
    print("\n\n".join(page(records.read(file)) for file in options.file))
    return 0


def show_profile(options: argparse.Namespace, _: Sequence[str]) -> int:
    """Time the CUDA kernels, and print it."""
    print(profile.run(options))
    return 0


def report(options: argparse.Namespace, _: Sequence[str]) -> int:
    """Write one page of a folder."""
    from bench.report import write_report

    print(write_report(options.folder))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Measure what gpustump costs, and show it."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, benchmark in BENCHMARKS.items():
        summary = (benchmark.__doc__ or "").split("\n", 1)
        about = summary[0].partition(": ")[2]
        command = commands.add_parser(
            name, help=about, description=about + summary[1], allow_abbrev=False
        )
        benchmark.add_options(command)
        command.add_argument(
            *("-o", "--output"),
            type=Path,
            metavar="FILE.json",
            help="default: bench-results/NAME-TIME.json; figures go beside it",
        )
        command.set_defaults(run=measure, benchmark=name)
    summary = (profile.__doc__ or "").split("\n", 1)
    about = summary[0].partition(": ")[2]
    profiled = commands.add_parser("profile", help=about, description=about + summary[1])
    profile.add_options(profiled)
    profiled.set_defaults(run=show_profile)
    shown = commands.add_parser("show", help="the tables of JSON files")
    shown.add_argument("file", type=Path, nargs="+")
    shown.set_defaults(run=show)
    reported = commands.add_parser(
        "report", help="one page, report.md, of all JSON files in a folder, with figures"
    )
    reported.add_argument("folder", type=Path)
    reported.set_defaults(run=report)
    return parser


def _target(options: argparse.Namespace, started: datetime.datetime) -> Path:
    """Where the JSON goes. Found out before minutes of measuring, not after."""
    target = options.output
    if target is None:
        target = Path("bench-results") / f"{options.benchmark}-{started:%Y%m%d-%H%M%S}.json"
    if target.suffix != ".json":
        raise UsageError(f"--output {target}: the name must end in .json")
    if target.is_dir():
        raise UsageError(f"--output {target} is a folder; give the name of a file in it")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=target.parent):
        pass
    return Path(target)


def _command(given: Sequence[str]) -> str:
    """The command as others may run it: without where its output went."""
    kept = list(given)
    for flag in ("-o", "--output"):
        if flag in kept:
            del kept[kept.index(flag) : kept.index(flag) + 2]
    kept = [word for word in kept if not word.startswith(("-o", "--output="))]
    return f"python -m bench {shlex.join(kept)}"


def _figures(file: Path) -> list[Path]:
    """Draw the figures of a JSON file beside it, if Matplotlib is here."""
    try:
        from bench.figures import draw
    except ImportError:
        print("no figures: they need Matplotlib, pip install matplotlib", file=sys.stderr)
        return []
    return draw(file)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends workers, removes their files
    sys.exit(main())
