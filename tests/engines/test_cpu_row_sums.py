"""Sums over bins under a softmax: exact, or estimates that are off by no more than they say.

The integers are compared with NumPy's sums of those that the loss itself reports, which another
test compares with the reference's.
"""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba")

from gpustump.engines.contract import Search, Step
from gpustump.engines.cpu.histogram import row_sums
from gpustump.engines.cpu.histogram.row_sums import HALF_UNITS, RowSums
from gpustump.engines.cpu.loss.softmax_rows import SoftmaxRowsLoss
from gpustump.engines.cpu.table import codes
from gpustump.engines.integer_weights import in_units
from gpustump.engines.threads import Team
from gpustump.learners.split import Split


def mixed(random: np.random.Generator, n_samples: int) -> np.ndarray:
    """Features of many values and of few, flags that share a column, missing values."""
    X = np.column_stack(
        [
            random.normal(size=(n_samples, 3)),
            random.integers(0, 5, size=(n_samples, 2)),
            random.random((n_samples, 12)) < 0.1,
        ]
    ).astype(np.float32)
    X[random.random(X.shape) < 0.05] = np.nan
    return X


class Run:
    """A run's loss and sums, and what NumPy says of them."""

    def __init__(self, seed: int, team_size: int, n_outputs: int, n_samples: int, how: str) -> None:
        self.random = random = np.random.default_rng(seed)
        self.n_outputs, self.n_samples = n_outputs, n_samples
        X = mixed(random, n_samples)
        self.table = codes.prepare(X, None, Team(team_size), max_cuts=300)
        self.labels = random.integers(0, n_outputs, size=n_samples)
        weights = {
            "equal weights": np.ones(n_samples),
            "any weights": 10.0 ** random.uniform(-6, 6, size=n_samples),
            "a heavy sample": np.where(np.arange(n_samples) == n_samples // 2, 1e15, 1.0),
        }[how]
        self.loss = SoftmaxRowsLoss(self.labels, in_units(weights), n_outputs)
        self.sums = RowSums(self.table, self.loss.rows, Search("stump", "newton", n_outputs))
        self.sums.add_up(lambda low, high: (self.loss.begin(low, high), None)[1])

    def step(self) -> None:
        """Move all probabilities."""
        regions = self.random.integers(0, 3, size=self.n_samples).astype(np.uint8)
        factors = np.exp(-self.random.exponential(size=(3, self.n_outputs)))
        by_region = tuple(tuple((own, own) for own in region) for region in factors.tolist())
        votes = ((0.0,) * self.n_outputs,) * 3
        step = Step(Split(0, 0.0), votes, by_region)
        self.sums.add_up(lambda low, high: (self.loss.advance(step, regions, low, high), None)[1])

    def expected(self) -> tuple[np.ndarray, np.ndarray]:
        """The four sums of each output over all slots, (4 * n_outputs, n_slots), and counts."""
        terms, layout = self.loss.terms, self.table.layout
        n_slots = len(layout.offset)
        counts = np.zeros(n_slots, dtype=np.int64)
        found = np.zeros((4 * self.n_outputs, n_slots), dtype=np.int64)
        for feature in range(self.table.n_features):
            slots = self.table.layout.slots(feature)
            values = self.table.values(feature)
            order = np.argsort(values, kind="stable")
            slot = np.full(self.n_samples, slots.stop)
            n_present = self.n_samples - int(np.isnan(values).sum())
            ends = layout.offset[slots.start + 1 : slots.stop]
            slot[order[:n_present]] = slots.start + np.searchsorted(
                ends, np.arange(n_present), side="right"
            )
            np.add.at(counts, slot, 1)
            for k in range(self.n_outputs):
                first, second = terms.first[k], terms.second[k]
                is_own = self.labels == k
                for plane, numbers in enumerate(
                    [
                        np.where(is_own, first, 0),
                        np.where(is_own, 0, -first),
                        np.where(is_own, second, 0),
                        np.where(is_own, 0, second),
                    ]
                ):
                    np.add.at(found[4 * k + plane], slot, numbers)
        return found, counts


def differences(planes: np.ndarray) -> np.ndarray:
    """P - N, and the sum of the second integers, of each output: (n_outputs, 2, n_slots)."""
    by_output = planes.reshape(-1, 4, planes.shape[1])
    return np.stack([by_output[:, 0] - by_output[:, 1], by_output[:, 2] + by_output[:, 3]], axis=1)


HOW = ["equal weights", "any weights", "a heavy sample"]


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(("n_samples", "team_size"), [(700, 1), (5000, 3), (40_000, 2)])
@pytest.mark.parametrize("n_outputs", [2, 3, 10])
def test_sums_of_words_are_off_by_half_a_unit_for_each_sample_at_most(
    n_outputs, n_samples, team_size, how
):
    run = Run(n_outputs, team_size, n_outputs, n_samples, how)
    for number in range(3):
        if number:
            run.step()
        run.sums.look()
        expected, counts = run.expected()
        assert not run.sums.is_exact
        gaps = np.abs(differences(run.sums.sums) - differences(expected))
        for which in range(2):
            assert (gaps[:, which] <= HALF_UNITS[which] * counts).all()
        off = run.sums.off.reshape(n_outputs, 4, -1)
        assert (off == np.multiply.outer([HALF_UNITS[0], 0, HALF_UNITS[1], 0], counts)).all()
        assert (run.sums.sums[::4] >= expected[::4]).all()  # upper bounds
        assert (run.sums.sums[1::4] + off[:, 0] >= expected[1::4]).all()


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize(("n_samples", "team_size"), [(700, 2), (40_000, 2)])
def test_renewed_features_are_exact_until_the_next_round(n_samples, team_size, how, monkeypatch):
    monkeypatch.setattr(row_sums, "_FEW", 1.0)
    run = Run(1, team_size, 4, n_samples, how)
    run.step()
    run.sums.look()
    asked = {1, run.table.n_features - 1}
    renewed = run.sums.renew(np.asarray(sorted(asked)))
    assert asked <= set(renewed.tolist())  # some flags share a column
    expected, _ = run.expected()
    for feature in range(run.table.n_features):
        slots = run.table.layout.slots(feature)
        own = np.arange(slots.start, slots.stop + 1)
        is_exact = feature in renewed
        assert is_exact == (not run.sums.off[:, own].any())
        if is_exact:
            gaps = differences(run.sums.sums[:, own]) - differences(expected[:, own])
            assert not gaps.any()
    run.step()
    run.sums.look()
    _, counts = run.expected()
    assert (run.sums.off[::4] == HALF_UNITS[0] * counts).all()


def test_after_poor_estimates_all_sums_are_exact_once():
    run = Run(2, 2, 3, 40_000, "any weights")
    run.sums.look()
    run.sums.renew(np.arange(run.table.n_features))
    for is_exact in (True, False):
        run.step()
        run.sums.look()
        assert run.sums.is_exact == is_exact
        expected, _ = run.expected()
        assert is_exact == (not run.sums.off.any())
        assert is_exact == (not (differences(run.sums.sums) - differences(expected)).any())


def test_with_too_many_samples_for_words_sums_are_exact(monkeypatch):
    monkeypatch.setattr(row_sums, "_MOST_SAMPLES", 699)
    run = Run(3, 1, 3, 700, "equal weights")
    for _ in range(2):
        run.sums.look()
        assert run.sums.is_exact
        assert not (differences(run.sums.sums) - differences(run.expected()[0])).any()
        run.step()
