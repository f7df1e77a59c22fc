"""`python -m bench`: run a benchmark into a JSON file, or show the table of one that was run.

Running and showing are apart: every table, here and in the README, is computed from a file that
holds every single timing.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.contenders import gpustump_on_backends, scikit_learn
from bench.data import synthetic
from bench.machine import describe
from bench.tables import table
from bench.timing import Contender, take_turns
from gpustump.files import whole_file


def main() -> None:
    """Run or show one benchmark."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    backends = commands.add_parser("backends", help="one training job on every backend")
    backends.add_argument("--samples", type=int, default=200_000)
    backends.add_argument("--features", type=int, default=30)
    backends.set_defaults(measure=measure_backends)
    growth = commands.add_parser("growth", help="cost of a round over samples and features")
    growth.add_argument("--samples", type=int, nargs="+", default=[25_000, 100_000, 400_000])
    growth.add_argument("--features", type=int, nargs="+", default=[10, 40, 160])
    growth.set_defaults(measure=measure_growth)
    for command in (backends, growth):
        command.add_argument("--turns", type=int, default=5, help="interleaved repetitions")
        command.add_argument("--rounds", type=int, nargs=2, default=[2, 12], help="short, long fit")
        command.add_argument("--json", type=Path, help="write every timing to this file")
    show = commands.add_parser("show", help="the table of a JSON file")
    show.add_argument("file", type=Path)
    options = parser.parse_args()
    if "file" in options:
        print(table(json.loads(options.file.read_text())))
        return
    report = {"machine": describe(), "rounds": options.rounds, **options.measure(options)}
    if options.json:
        with whole_file(options.json) as file:
            file.write((json.dumps(report, indent=1) + "\n").encode())
    print(table(report))


def measure_backends(options: argparse.Namespace) -> dict[str, Any]:
    """Short and long fits on every backend and by scikit-learn, in turns."""
    X, y = synthetic(options.samples, options.features)
    contenders = [*gpustump_on_backends(X, y), scikit_learn(X, y)]
    tick = _ticker(len(contenders) * (options.turns + 1))
    take_turns(contenders, tuple(options.rounds), options.turns, tick)
    runs = [_as_json(contender, X.shape) for contender in contenders]
    return {"benchmark": "backends", "runs": runs}


def measure_growth(options: argparse.Namespace) -> dict[str, Any]:
    """Short and long fits on NumPy over several numbers of samples, then of features."""
    n_features, n_samples = options.features[0], options.samples[len(options.samples) // 2]
    shapes = {
        "samples": [(m, n_features) for m in options.samples],
        "features": [(n_samples, d) for d in options.features],
    }
    tick = _ticker((options.turns + 1) * sum(map(len, shapes.values())))
    axes = {}
    for axis, wanted in shapes.items():
        contenders = [next(gpustump_on_backends(*synthetic(*shape))) for shape in wanted]
        take_turns(contenders, tuple(options.rounds), options.turns, tick)
        axes[axis] = [_as_json(*pair) for pair in zip(contenders, wanted, strict=True)]
    return {"benchmark": "growth", "axes": axes}


def _as_json(contender: Contender, shape: tuple[int, int]) -> dict[str, Any]:
    return {
        "name": contender.name,
        "shape": list(shape),
        "short": contender.short,
        "long": contender.long,
        "digest": contender.digest,
    }


def _ticker(total: int) -> Callable[[], None]:
    """A function that counts steps on stderr, where that is a terminal."""
    done = 0

    def tick() -> None:
        nonlocal done
        done += 1
        if sys.stderr.isatty():
            print(f"\r{done}/{total} " + ("\n" if done == total else ""), end="", file=sys.stderr)

    return tick


if __name__ == "__main__":
    main()
