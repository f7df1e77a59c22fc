"""`python -m bench backends`, `python -m bench growth`: a table, and every timing as JSON."""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench.contenders import gpustump_on_backends, scikit_learn
from bench.data import synthetic
from bench.machine import describe
from bench.timing import Contender, per_round, ratio, take_turns
from gpustump.files import whole_file


def main() -> None:
    """Run one benchmark and report it."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    backends = commands.add_parser("backends", help="one training job on every backend")
    backends.add_argument("--samples", type=int, default=200_000)
    backends.add_argument("--features", type=int, default=30)
    backends.set_defaults(run=run_backends)
    growth = commands.add_parser("growth", help="cost of a round over samples and features")
    growth.add_argument("--samples", type=int, nargs="+", default=[25_000, 100_000, 400_000])
    growth.add_argument("--features", type=int, nargs="+", default=[10, 40, 160])
    growth.set_defaults(run=run_growth)
    for command in (backends, growth):
        command.add_argument("--turns", type=int, default=3, help="interleaved repetitions")
        command.add_argument("--rounds", type=int, nargs=2, default=[2, 12], help="short, long fit")
        command.add_argument("--json", type=Path, help="write every timing to this file")
    options = parser.parse_args()
    report: dict[str, Any] = {"machine": describe(), "rounds": options.rounds}
    report.update(options.run(options))
    if options.json:
        with whole_file(options.json) as file:
            file.write((json.dumps(report, indent=1) + "\n").encode())
        print(f"\nEvery timing: {options.json}")


def run_backends(options: argparse.Namespace) -> dict[str, Any]:
    """Marginal cost per round on every backend, beside scikit-learn's, and their digests."""
    X, y = synthetic(options.samples, options.features)
    contenders = [*gpustump_on_backends(X, y), scikit_learn(X, y)]
    rounds = tuple(options.rounds)
    take_turns(contenders, rounds, options.turns, _ticker(len(contenders) * (options.turns + 1)))
    theirs = per_round(contenders[-1], rounds)
    print(f"{options.samples} x {options.features} float32, {options.turns} interleaved turns\n")
    print(f"{'':24}{'ms/round':>10}{'ns/element':>12}{'x scikit-learn':>16}  digest")
    for contender in contenders:
        costs = per_round(contender, rounds)
        cost = statistics.median(costs)
        print(
            f"{contender.name:24}{cost * 1e3:>10.1f}{cost * 1e9 / X.size:>12.2f}"
            f"{ratio(costs, theirs):>16.1f}  {(contender.digest or 'other weights')[:16]}"
        )
    return {"benchmark": "backends", "shape": X.shape, "timings": _timings(contenders)}


def run_growth(options: argparse.Namespace) -> dict[str, Any]:
    """Marginal cost per round over the number of samples, then of features, with the exponent."""
    middle = options.samples[len(options.samples) // 2], options.features[0]
    shapes = {
        "samples": [(m, middle[1]) for m in options.samples],
        "features": [(middle[0], d) for d in options.features],
    }
    rounds = tuple(options.rounds)
    tick = _ticker((options.turns + 1) * (len(options.samples) + len(options.features)))
    results = {}
    for axis, wanted in shapes.items():
        contenders = []
        for m, d in wanted:
            contender = next(gpustump_on_backends(*synthetic(m, d)))
            contender.name = f"{m} x {d}"
            contenders.append(contender)
        take_turns(contenders, rounds, options.turns, tick)
        costs = [statistics.median(per_round(c, rounds)) for c in contenders]
        exponent = _slope(getattr(options, axis), costs)
        print(f"over {axis}: cost per round grows with exponent {exponent:.2f}")
        for contender, cost, (m, d) in zip(contenders, costs, wanted, strict=True):
            print(
                f"  {contender.name:16}{cost * 1e3:>10.2f} ms{cost * 1e9 / m / d:>8.2f} ns/element"
            )
        results[axis] = {"exponent": exponent, "timings": _timings(contenders)}
    return {"benchmark": "growth", **results}


def _slope(sizes: Sequence[int], costs: Sequence[float]) -> float:
    """The exponent of a power law through the points, by least squares on logarithms."""
    return float(np.polyfit([math.log(s) for s in sizes], [math.log(c) for c in costs], 1)[0])


def _timings(contenders: Sequence[Contender]) -> dict[str, Any]:
    return {c.name: {"short": c.short, "long": c.long, "digest": c.digest} for c in contenders}


def _ticker(total: int) -> Any:
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
