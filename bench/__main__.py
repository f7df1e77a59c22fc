"""`python -m bench`: measure, show, report.

    python -m bench backends | peers | panel | growth | limit
                                                          measure, into a JSON file
    python -m bench accuracy                              how good the votes are, into a JSON file
    python -m bench glassbox                              beside EBMs and others, into a JSON file
    python -m bench quantities                            regressors, into a JSON file
    python -m bench cluster                               training on Dask workers, into a JSON file
    python -m bench profile                               the CUDA kernels of a round, one by one
    python -m bench show FILE                             its tables
    python -m bench report FOLDER                         one page of all JSON files in a folder
    python -m bench front                                 the figures of the README

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

from bench import (
    accuracy,
    accuracy_records,
    cluster,
    cluster_records,
    front,
    glassbox,
    profile,
    quantities,
    records,
)
from bench.accuracy_records import Accuracy
from bench.benchmarks import BENCHMARKS, UsageError, add_options, planned
from bench.data import MissingDataError
from bench.figures import draw
from bench.glassbox_records import Glassbox
from bench.machine import describe, source_sha256
from bench.play import play
from bench.records import FormatError
from bench.report import page_of, write_report
from bench.speed import probes
from bench.summary import disagreement
from bench.tables import page


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


def measure(options: argparse.Namespace) -> int:
    """Run one benchmark: its JSON file, written anew after each step, its tables, its figure."""
    plans = planned(options)
    started = datetime.datetime.now(datetime.UTC)
    target = _target(options, started)
    machine = describe()  # before measuring: it holds the hash of the sources
    clock = time.perf_counter()
    memory = []
    if options.benchmark == "limit":
        memory = probes(options.samples, options.threads, options.copy_bytes)

    def write(sections: tuple[records.Section, ...]) -> None:
        found = records.Report(
            benchmark=options.benchmark,
            command=options.command,
            started=f"{started:%Y-%m-%dT%H:%M:%SZ}",
            seconds=time.perf_counter() - clock,
            machine=machine,
            sections=sections,
            speeds=tuple(probe.speed() for probe in memory),
        )
        records.write(found, target)

    sections = play(
        plans, patience=options.patience, limit=options.limit, probes=memory, found=write
    )
    write(sections)
    print(page(records.read(target)))
    print(f"\nwritten: {target}, {draw(target)}", file=sys.stderr)
    problems = [disagreement(sections), *_missed(options.need, sections), _changed(machine)]
    for problem in filter(None, problems):
        print(f"python -m bench: {problem}", file=sys.stderr)
    return int(any(problems))


def measure_accuracy(options: argparse.Namespace) -> None:
    """Run `accuracy`: its JSON file, written anew after each table, and its tables."""
    started = datetime.datetime.now(datetime.UTC)
    target = _target(options, started)
    machine, clock = describe(), time.perf_counter()
    tables: list[accuracy_records.TableResults] = []
    for table in accuracy.measured(options):
        tables.append(table)
        found = Accuracy(
            benchmark="accuracy",
            command=options.command,
            started=f"{started:%Y-%m-%dT%H:%M:%SZ}",
            seconds=time.perf_counter() - clock,
            machine=machine,
            rounds=options.rounds,
            folds=options.folds,
            threads=options.threads,
            tables=tuple(tables),
        )
        records.write(found, target)
    print(page_of(target))
    print(f"\nwritten: {target}", file=sys.stderr)


def measure_glassbox(options: argparse.Namespace) -> int:
    """Run `glassbox`: its JSON file, written anew after each table, and its tables."""
    now = datetime.datetime.now(datetime.UTC)
    target, machine = _target(options, now), describe()
    earlier = glassbox.resumed(options, machine)
    clock, spent = time.perf_counter(), earlier.seconds if earlier else 0.0
    tables = list(earlier.tables) if earlier else []
    for table in glassbox.measured(options, [each.name for each in tables]):
        tables.append(table)
        found = Glassbox(
            benchmark="glassbox",
            command=options.command,
            started=earlier.started if earlier else f"{now:%Y-%m-%dT%H:%M:%SZ}",
            seconds=spent + time.perf_counter() - clock,
            machine=machine,
            folds=options.folds,
            limit=options.limit,
            threads=options.threads,
            tables=tuple(tables),
            shuffles=options.shuffles,
        )
        records.write(found, target)
    print(page_of(target))
    print(f"\nwritten: {target}", file=sys.stderr)
    changed = _changed(machine)
    if changed:
        print(f"python -m bench: {changed}", file=sys.stderr)
    return int(bool(changed))


def measure_quantities(options: argparse.Namespace) -> int:
    """Run `quantities`: its JSON file, written anew after each table, and its tables."""
    started = datetime.datetime.now(datetime.UTC)
    target = _target(options, started)
    machine, clock = describe(), time.perf_counter()
    tables: list[quantities.QuantityResults] = []
    for table in quantities.measured(options):
        tables.append(table)
        found = quantities.Quantities(
            benchmark="quantities",
            command=options.command,
            started=f"{started:%Y-%m-%dT%H:%M:%SZ}",
            seconds=time.perf_counter() - clock,
            machine=machine,
            folds=options.folds,
            tables=tuple(tables),
        )
        records.write(found, target)
    print(page_of(target))
    print(f"\nwritten: {target}", file=sys.stderr)
    changed = _changed(machine)
    if changed:
        print(f"python -m bench: {changed}", file=sys.stderr)
    return int(bool(changed))


def measure_cluster(options: argparse.Namespace) -> int:
    """Run `cluster`: its JSON file, written anew after each step, and its tables."""
    started = datetime.datetime.now(datetime.UTC)
    target = _target(options, started)
    machine, clock = describe(), time.perf_counter()

    def write(cases: tuple[cluster_records.Case, ...]) -> None:
        found = cluster_records.Cluster(
            benchmark="cluster",
            command=options.command,
            started=f"{started:%Y-%m-%dT%H:%M:%SZ}",
            seconds=time.perf_counter() - clock,
            machine=machine,
            threads=options.threads,
            cases=cases,
        )
        records.write(found, target)

    cases = cluster.measure(options, write)
    write(cases)
    print(page_of(target))
    print(f"\nwritten: {target}", file=sys.stderr)
    problems = [cluster.disagreement(cases), _changed(machine)]
    for problem in filter(None, problems):
        print(f"python -m bench: {problem}", file=sys.stderr)
    return int(any(problems))


def print_profile(options: argparse.Namespace) -> None:
    """Run `profile`, and print each part as soon as it is there."""
    for number, part in enumerate(profile.run(options)):
        print(("\n" if number else "") + part, flush=True)


def _changed(machine: records.Machine) -> str | None:
    """A warning if the sources have changed since the measurement began; None if they have not."""
    if source_sha256() == machine.source_sha256:
        return None
    return "the sources were changed while they were measured: do not trust this run"


def _missed(needed: Sequence[str], sections: Sequence[records.Section]) -> list[str]:
    """A message for each contender of `--need` that was not measured."""
    missed = []
    for section in sections:
        reasons = dict.fromkeys(needed, "it did not take part")
        reasons |= {run.contender: run.reason or "" for run in section.runs}
        missed += [
            f"{name} was not measured on {section.name}: {reasons[name]}"
            for name in needed
            if reasons[name]
        ]
    return missed


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench", description="Measure what gpustump costs, and show it."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, about: str, run: Callable[..., int | None]) -> argparse.ArgumentParser:
        summary = about.partition("\n")[0]
        command = commands.add_parser(name, help=summary, description=about, allow_abbrev=False)
        command.set_defaults(run=run, benchmark=name)
        return command

    for name, benchmark in BENCHMARKS.items():
        command = add(name, inspect.getdoc(benchmark) or "", measure)
        add_options(command, name)
        about = "default: bench-results/NAME-TIME.json; the figure goes beside it"
        command.add_argument("-o", "--output", type=Path, metavar="FILE.json", help=about)
    for module, run in (
        (accuracy, measure_accuracy),
        (glassbox, measure_glassbox),
        (quantities, measure_quantities),
        (cluster, measure_cluster),
    ):
        command = add(module.__name__.rpartition(".")[2], _about(module), run)
        module.add_options(command)
        about = "default: bench-results/NAME-TIME.json"
        command.add_argument("-o", "--output", type=Path, metavar="FILE.json", help=about)
    profile.add_options(add("profile", _about(profile), print_profile))
    shown = add(
        "show",
        "the tables of JSON files",
        lambda options: print(
            "\n\n".join(page_of(file, only_means=options.means) for file in options.file)
        ),
    )
    shown.add_argument(
        "--means",
        action="store_true",
        help="print the means only (accuracy, glassbox, quantities), or the shares only (panel)",
    )
    shown.add_argument("file", type=Path, nargs="+")
    reported = add(
        "report",
        "one page, report.md, of all JSON files in a folder, with figures",
        lambda options: print(write_report(options.folder)),
    )
    reported.add_argument("folder", type=Path)
    add("front", _about(front), lambda options: print(front.page()))
    return parser


def _about(module: object) -> str:
    """The help of a sub-command: the docstring of its module, from the first line's colon on."""
    return (inspect.getdoc(module) or "").partition(": ")[2]


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
    """The command for others to run: without the options --output and --resume."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-o", "--output")
    parser.add_argument("--resume", action="store_true")
    _, kept = parser.parse_known_args(given)
    return f"python -m bench {shlex.join(kept)}"


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # ends workers, removes their files
    sys.exit(main())
