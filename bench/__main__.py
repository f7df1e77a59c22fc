"""`python -m bench`: measure, show, report.

    python -m bench backends | peers | panel | growth             how fast, into a JSON file
    python -m bench accuracy [rounds | glassbox | quantiles]      how good, into a JSON file
    python -m bench cluster                                       on Dask workers, into a JSON file
    python -m bench show FILE ...                                 the tables of JSON files
    python -m bench report FOLDER                                 one page of all JSON files in it
    python -m bench front                                         the figures of the README

Measuring and showing are separate: what is printed is computed from the file that was written.
"""

from __future__ import annotations

import argparse
import datetime
import inspect
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench import accuracy, cluster, front, records, timing
from bench.data import MissingDataError
from bench.machine import describe, source_sha256
from bench.records import FormatError, Report, Result
from bench.tables import disagreement, page
from bench.timing import BENCHMARKS, Found, UsageError
from gpustump.model.whole_file import whole_file

TITLES = {  # in this order
    "panel": "Of the fastest peer's time",
    "peers": "Beside other libraries",
    "backends": "One model on every backend",
    "growth": "How the cost grows",
    "cluster": "On the workers of a cluster",
    "accuracy": "How good the models are",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one sub-command; returns the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = _parser().parse_args(given)
    options.command = _command(given)
    try:
        return int(options.run(options) or 0)
    except KeyboardInterrupt:
        print("\ninterrupted", file=sys.stderr)
        return 130
    except (UsageError, FormatError, MissingDataError, OSError, MemoryError) as error:
        print(f"python -m bench: error: {error}", file=sys.stderr)
        return 2


def measured(
    options: argparse.Namespace,
    measure: Callable[[argparse.Namespace, Found], tuple[Result, ...]],
) -> int:
    """Run one benchmark: its JSON file, written anew after each step, and its tables."""
    started = datetime.datetime.now(datetime.UTC)
    target, machine = _target(options, started), describe()
    clock = time.perf_counter()

    def write(results: tuple[Result, ...]) -> None:
        report = Report(
            benchmark=options.benchmark,
            command=options.command,
            started=f"{started:%Y-%m-%dT%H:%M:%SZ}",
            seconds=time.perf_counter() - clock,
            machine=machine,
            results=results,
        )
        records.write(report, target)

    results = measure(options, write)
    write(results)
    print(page(records.read(target)))
    print(f"\nwritten: {target}", file=sys.stderr)
    problems = [disagreement(results), *_missed(getattr(options, "need", ()), results)]
    if source_sha256() != machine.source_sha256:
        problems.append("the sources were changed while they were measured: do not trust this run")
    for problem in filter(None, problems):
        print(f"python -m bench: {problem}", file=sys.stderr)
    return int(any(problems))


def _missed(needed: Sequence[str], results: Sequence[Result]) -> list[str]:
    """A message for each contender of `--need` that was not measured."""
    found = {own.contender: own.reason for own in results}
    reasons = {name: found.get(name, "it did not take part") for name in needed}
    return [f"{name} was not measured: {reason}" for name, reason in reasons.items() if reason]


def write_report(folder: Path) -> Path:
    """Write report.md beside the JSON files of a folder.

    Raises
    ------
    UsageError
        If there is no such folder, or no JSON file in it.
    FormatError
        If one is not that of a benchmark.
    """
    reports = {file: records.read(file) for file in sorted(folder.glob("*.json"))}
    if not reports:
        raise UsageError(f"there is no JSON file of a benchmark in {folder}")
    parts = [Path(__file__).with_name("how_to_read.md").read_text().strip()]
    for benchmark, title in TITLES.items():
        for file, report in reports.items():
            if report.benchmark == benchmark:
                parts += [f"## {title}: {file.stem}", page(report)]
    target = folder / "report.md"
    with whole_file(target) as stream:
        stream.write(("\n\n".join(parts) + "\n").encode())
    return target


def _show(options: argparse.Namespace) -> None:
    pages = (page(records.read(file), only_means=options.means) for file in options.file)
    print("\n\n".join(pages))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Measure what gpustump costs, and show it."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, about: object, run: Callable[..., object]) -> argparse.ArgumentParser:
        words = about if isinstance(about, str) else inspect.getdoc(about) or ""
        command = commands.add_parser(
            name, help=words.partition("\n")[0], description=words, allow_abbrev=False
        )
        command.set_defaults(run=run, benchmark=name)
        return command

    def add_benchmark(
        name: str, about: object, measure: Callable[..., tuple[Result, ...]]
    ) -> argparse.ArgumentParser:
        command = add(name, about, lambda options: measured(options, measure))
        about_output = "default: bench-results/NAME-TIME.json"
        command.add_argument("-o", "--output", type=Path, metavar="FILE.json", help=about_output)
        return command

    for name, benchmark in BENCHMARKS.items():
        timing.add_options(add_benchmark(name, benchmark, timing.measure), name)
    accuracy.add_options(add_benchmark("accuracy", accuracy, accuracy.measure))
    cluster.add_options(add_benchmark("cluster", cluster, cluster.measure))
    shown = add("show", "the tables of JSON files", _show)
    about = "print the means only (accuracy), or the shares only (panel)"
    shown.add_argument("--means", action="store_true", help=about)
    shown.add_argument("file", type=Path, nargs="+")
    reported = add(
        "report",
        "one page, report.md, of all JSON files in a folder",
        lambda options: print(write_report(options.folder)),
    )
    reported.add_argument("folder", type=Path)
    add("front", front, lambda options: print(front.page()))
    return parser


def _target(options: argparse.Namespace, started: datetime.datetime) -> Path:
    """The path of the JSON file; checked before measuring, which takes minutes."""
    default = Path("bench-results") / f"{options.benchmark}-{started:%Y%m%d-%H%M%S}.json"
    target = Path(options.output or default)
    if target.suffix != ".json":
        raise UsageError(f"--output {target}: the name must end in .json")
    if target.is_dir():
        raise UsageError(f"--output {target} is a folder; give the name of a file in it")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=target.parent):
        pass
    return target


def _command(given: Sequence[str]) -> str:
    """The command for others to run: without the option --output."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-o", "--output")
    return f"python -m bench {shlex.join(parser.parse_known_args(given)[1])}"


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends workers, removes their files
    sys.exit(main())
