"""Stumps are weak learners of interval functions, and boosting them gives a strong learner.

Four experiments. Each prints a small table and asserts its theorem:

1. Under any probability distribution over the samples, the best stump has an error of at most 1/3.
2. A stump fitted to enough samples from a distribution has an error of at most 1/3 + eps under that
   distribution. The table compares numbers of samples with the number that the theory requires.
3. AdaBoost on these stumps reduces the training error to zero, and it stays below its bound.
4. The best interval is the function itself: one interval is enough where stumps need many rounds.

Run it with `python examples/weak_learnability.py`; `--help` lists the sizes.
[Shalev-Shwartz and Ben-David 2014, Understanding Machine Learning, 10.1]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import gpustump
from gpustump.theory import edge_bounds, weak_learning_samples
from gpustump.theory.weak_learnability import make_intervals, random_distribution

GAMMA = 1 / 12
"""The edge that experiment 2 requires: half of 1/6, the largest one that is always reached."""


@dataclass(frozen=True)
class Row:
    """Experiment 2 at one sample size: errors under the whole distribution."""

    n_samples: int
    n_draws: int
    median: float
    largest: float
    share_learned: float


def learned_stump(X: np.ndarray, y: np.ndarray, weights: np.ndarray) -> gpustump.Stump:
    """The best stump; a constant one if the samples have one label only."""
    present = np.unique(y[weights > 0])
    if len(present) == 1:
        constant = int(present[0])
        return gpustump.Stump(0, math.inf, constant, constant, 0.0)
    return gpustump.fit_stump(X, y, weights)


def error_under(stump: gpustump.Stump, X: np.ndarray, y: np.ndarray, D: np.ndarray) -> float:
    """The stump's weighted error: the share of the weight of misclassified samples."""
    return math.fsum(D[stump.predict(X) != y]) / math.fsum(D)


def largest_error(
    n_draws: int, n_samples: int, n_features: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Experiment 1: mean and largest error of the best stump, over functions and distributions."""
    errors = []
    for _ in range(n_draws):
        X, y, function = make_intervals(n_samples, n_features, random_state=rng)
        D = random_distribution(function, X, random_state=rng)
        errors.append(learned_stump(X, y, D).error)
    # The error is a ratio of integers, rounded once: a third or less stays a third or less.
    assert max(errors) <= 1 / 3
    return math.fsum(errors) / n_draws, max(errors)


def errors_on_new_samples(
    sizes: Sequence[int], n_draws: int, support: int, n_features: int, rng: np.random.Generator
) -> list[Row]:
    """Experiment 2, with the distribution that is hardest for stumps, on many points."""
    X, y, function = make_intervals(support, n_features, random_state=rng)
    D = random_distribution(function, X, kind="thirds", random_state=rng)
    rows = []
    for size in sizes:
        counts = rng.multinomial(size, D / math.fsum(D), size=n_draws)
        errors = np.asarray([error_under(_fitted(X, y, drawn), X, y, D) for drawn in counts])
        learned = float(np.mean(errors <= 0.5 - GAMMA))
        rows.append(Row(size, n_draws, float(np.median(errors)), float(np.max(errors)), learned))
    return rows


def _fitted(X: np.ndarray, y: np.ndarray, counts: np.ndarray) -> gpustump.Stump:
    """The stump fitted to a sample: points drawn several times weigh as much more."""
    drawn = counts > 0
    return learned_stump(X[drawn], y[drawn], counts[drawn].astype(float))


def boosted(
    n_samples: int, n_features: int, rng: np.random.Generator, most_rounds: int = 1000
) -> list[gpustump.Round]:
    """Experiment 3: the rounds until no training sample is misclassified."""
    X, y, function = make_intervals(n_samples, n_features, random_state=rng)
    D = random_distribution(function, X, kind="spread", random_state=rng)
    rounds = list(
        gpustump.boost(X, y, D, n_rounds=most_rounds, callback=lambda r: r.training_error == 0.0)
    )
    for record in rounds:
        assert record.error <= 1 / 3
        assert record.training_error <= record.training_bound * (1 + 2**-50) ** record.number
    assert rounds[-1].training_error == 0.0
    return rounds


def intervals_found(
    n_draws: int, n_samples: int, n_features: int, rng: np.random.Generator
) -> tuple[int, int]:
    """Experiment 4: how often the best interval and the best stump have an error of 0."""
    by_interval = by_stump = 0
    for _ in range(n_draws):
        X, y, function = make_intervals(n_samples, n_features, random_state=rng)
        D = random_distribution(function, X, kind="spread", random_state=rng)
        by_interval += gpustump.fit_interval(X, y, D).error == 0.0
        by_stump += gpustump.fit_stump(X, y, D).error == 0.0
    assert by_interval == n_draws
    return by_interval, by_stump


def report(arguments: argparse.Namespace) -> None:
    """Run the four experiments and print what they found."""
    rng = np.random.default_rng(arguments.seed)
    d, delta = arguments.features, arguments.delta
    mean, largest = largest_error(arguments.draws, 60, d, rng)
    print(f"1. The best stump's error, {arguments.draws} functions and distributions")
    print(f"   mean {mean:.4f}, largest {largest:.6f}, theorem: at most {1 / 3:.6f}\n")

    wanted = weak_learning_samples(GAMMA, n_features=d, delta=delta)
    print(f"2. Fitted to m samples: error at most {0.5 - GAMMA:.4f} (an edge of {GAMMA:.4f})")
    print(f"   theorem: in at least {1 - delta:.0%} of the draws, from m = {wanted} on\n")
    print(f"   {'m':>8} {'draws':>6} {'median':>8} {'largest':>8} {'learned':>8}")
    for row in errors_on_new_samples(
        [*arguments.sizes, wanted], arguments.repeats, arguments.support, d, rng
    ):
        print(
            f"   {row.n_samples:8d} {row.n_draws:6d} {row.median:8.4f} {row.largest:8.4f} "
            f"{row.share_learned:8.1%}"
        )
        assert row.n_samples < wanted or row.share_learned >= 1 - delta

    rounds = boosted(arguments.samples, d, rng)
    bounds = edge_bounds([record.error for record in rounds])
    print(f"\n3. Boosting on {arguments.samples} samples of one function\n")
    print(f"   {'round':>5} {'error':>8} {'edge':>8} {'training':>9} {'bound':>8} {'by edges':>9}")
    for record, bound in zip(rounds, bounds, strict=True):
        print(
            f"   {record.number:5d} {record.error:8.4f} {record.edge:8.4f} "
            f"{record.training_error:9.4f} {record.training_bound:8.4f} {bound:9.4f}"
        )

    by_interval, by_stump = intervals_found(arguments.draws // 10, 60, d, rng)
    print(f"\n4. Errors of 0, of {arguments.draws // 10} functions and distributions")
    print(f"   best interval {by_interval}, best stump {by_stump}")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    found = argparse.ArgumentParser(description="Stumps as weak learners of interval functions.")
    found.add_argument("--seed", type=int, default=0)
    found.add_argument("--features", type=int, default=2)
    found.add_argument("--draws", type=int, default=1000, help="of experiment 1; a tenth in 4")
    found.add_argument("--sizes", type=int, nargs="+", default=[10, 30, 100, 300, 1000, 3000])
    found.add_argument("--repeats", type=int, default=100, help="draws of each size")
    found.add_argument("--support", type=int, default=5000, help="points of the distribution")
    found.add_argument("--samples", type=int, default=1000, help="samples in experiment 3")
    found.add_argument("--delta", type=float, default=0.05)
    return found


if __name__ == "__main__":
    report(parser().parse_args())
