"""The losses of the CPU kernels have the reference's numbers, bit for bit, piece by piece."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba")

from rounds import KINDS, quantities, quantity_of

from gpustump.engines.contract import RegionFactors, Step
from gpustump.engines.cpu.loss.losses import loss_of
from gpustump.engines.cpu.loss.margins import CHUNK
from gpustump.engines.cpu.loss.softmax_rows import SoftmaxRowsLoss
from gpustump.engines.cpu.loss.terms import region_sums
from gpustump.engines.integer_weights import in_units
from gpustump.engines.objective import Objective
from gpustump.engines.reference.integers import Integers, hessian_of, picked_numbers
from gpustump.engines.reference.state import loss_of as reference_loss_of
from gpustump.engines.threads import Team
from gpustump.learners.hypothesis import N_REGIONS
from gpustump.learners.split import Split


def rows_of(labels: np.ndarray, units: np.ndarray, objective: Objective) -> SoftmaxRowsLoss:
    return SoftmaxRowsLoss(labels, units, objective.n_outputs)


SEARCHES = {name: Objective.of(*kind, quantity=quantity_of(name)) for name, kind in KINDS.items()}
LOSSES = [pytest.param(objective, loss_of, id=name) for name, objective in SEARCHES.items()] + [
    pytest.param(Objective.of("newton", n_outputs), rows_of, id=f"rows of {n_outputs}")
    for n_outputs in (2, 3, 4, 9)
]
each_loss = pytest.mark.parametrize(("objective", "started"), LOSSES)
each_size = pytest.mark.parametrize("n_samples", [2, 37, 2 * CHUNK + 5])


def drawn_samples(
    random: np.random.Generator, n_samples: int, objective: Objective
) -> tuple[np.ndarray, np.ndarray]:
    """Labels or targets, and weights: equal ones, or over 300 orders of magnitude."""
    n_outputs = objective.n_outputs
    labels = random.integers(0, max(n_outputs, 2), size=n_samples)
    weights = 10.0 ** random.uniform(-150, 150, size=n_samples)
    if random.random() < 0.4:
        weights[:] = 3.0
    if objective.is_of_quantity:
        return quantities(random.uniform(-1.0, 1.0, size=n_samples), objective.loss), weights
    return (2.0 * labels - 1.0 if n_outputs == 1 else labels), weights


class Drawn(Team):
    """A team that takes samples in pieces of any size."""

    def __init__(self, random: np.random.Generator) -> None:
        super().__init__(2)
        self._random = random

    def pieces(self, total: int, least: int) -> tuple[int, int]:
        size = int(self._random.integers(1, total + 1))
        size = max(size, -(-total // 50))
        return -(-total // size), size


def drawn_step(random: np.random.Generator, objective: Objective) -> Step:
    """Votes, and factors of any size that the loss allows."""
    shape = (N_REGIONS, objective.n_outputs)
    exponents = random.normal(size=(*shape, 2)) * random.choice([0.0, 1.0, 300.0])
    if objective.gain != "newton":
        exponents = -np.abs(exponents)  # integers must stay below 2**62
    elif objective.n_outputs > 1:  # of a region's probabilities, one has the largest factor, 1
        exponents[..., 0] -= exponents[..., 0].max(axis=1, keepdims=True)
        exponents[..., 1] = exponents[..., 0]
    factors = np.exp(np.clip(exponents, -690.0, 690.0)).tolist()
    votes = (np.round(random.normal(size=shape) * 4) / 4).tolist()  # many scores are equal
    left, right, missing = (tuple(map(tuple, own)) for own in factors)
    by_region: RegionFactors = (left, right, missing)
    if objective.is_of_quantity:
        votes = (np.asarray(votes) / 16).tolist()
        small = np.exp(random.choice([0.0, 0.5]) * random.normal(size=N_REGIONS)).tolist()
        # Only one amount moves. Sums stay below 2**62.
        of_poisson = objective.loss == "poisson"
        by_region = tuple(((own, 1.0) if of_poisson else (1.0, own),) for own in small)
    if objective.loss == "squared_error":
        by_region = ()
    return Step(Split(0, 0.0), tuple(map(tuple, votes)), by_region)


def is_wrong(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Of equal scores the first class counts."""
    if len(scores) == 1:
        return (scores[0] > 0) != (labels > 0)
    return np.argmax(scores, axis=0) != labels


def checked_terms(terms, integers: Integers) -> None:
    for output, own in enumerate(integers.outputs):
        assert np.array_equal(terms.gradient[output], own.gradient)
        assert len(terms.hessian) == (0 if own.hessian is None else len(terms.gradient))
        if own.hessian is not None:
            assert np.array_equal(terms.hessian[output], own.hessian)


def sums_of(regions: np.ndarray, integers: Integers) -> list[list[list[int]]]:
    inside = [regions == number for number in range(N_REGIONS)]
    return [
        [[int(x[own].sum()) for x in (of.gradient, hessian_of(of))] for of in integers.outputs]
        for own in inside
    ]


@each_loss
@each_size
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_every_number_is_the_references_in_every_round(objective, started, n_samples):
    for seed in range(3):
        random = np.random.default_rng([seed, n_samples])
        labels, weights = drawn_samples(random, n_samples, objective)
        team = Drawn(random)
        units = in_units(weights, objective.n_copies)
        loss = started(labels, units, objective)
        reference = reference_loss_of(labels, units, objective)
        scores = np.zeros((objective.n_outputs, n_samples))
        assert loss.first_weight == units.astype(np.int64).sum()
        sums = loss.begin(team)
        for number in range(5):
            integers = reference.integers()
            checked_terms(loss.terms, integers)
            assert sums.by_output.tolist() == [list(own) for own in integers.totals]
            error = sums.totals(loss.first_weight, n_samples).error
            if objective.is_of_quantity:
                assert error == reference.error(), number
            else:
                wrong = units.astype(np.int64)[is_wrong(scores, labels)]
                assert error == wrong.sum(), number
            assert np.array_equal(loss.weights, reference.weights)
            least = min(int(hessian_of(own).min()) for own in integers.outputs)
            assert loss.smallest_weight() == least
            step = drawn_step(random, objective)
            regions = random.integers(0, N_REGIONS, size=n_samples).astype(np.uint8)
            in_regions = region_sums(loss.terms, regions, 0, n_samples)
            assert in_regions.tolist() == sums_of(regions, integers)
            sums = loss.advance(step, regions, team)
            reference.advance(regions.astype(np.int64), step.votes, step.factors)
            by_output = zip(*step.votes, strict=True)
            scores += [picked_numbers(votes, regions.astype(np.int64)) for votes in by_output]
