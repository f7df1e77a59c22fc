"""The tables of losses, against decimal numbers of 50 digits, on every library."""

from __future__ import annotations

import decimal
import itertools
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from backends import Backend

from gpustump.arrays import computing_on
from gpustump.boosting import loss_tables
from gpustump.boosting.loss_tables import ExponentialTable, LogisticTable

RNG = np.random.default_rng(0)

LIMIT = 800 << 36


def exp_of_minus(units: int) -> Decimal:
    with decimal.localcontext(decimal.Context(prec=50)):
        return (-Decimal(units) / 2**36).exp()


def exponentials(units: np.ndarray) -> list[Fraction]:
    """Those of the table, as exact numbers."""
    pairs = zip(*ExponentialTable.beside(units).exponentials(units), strict=True)
    return [Fraction(float(one)) * Fraction(2) ** (800 * int(band)) for one, band in pairs]


def log_of_sum(terms: list[int], bits: int) -> Decimal:
    with decimal.localcontext(decimal.Context(prec=50, Emax=10**9, Emin=-(10**9))):
        return sum(((Decimal(term) / 2**bits).exp() for term in terms), Decimal()).ln()


def test_the_loss_rises_with_the_margin_s_fall_without_exception():
    """Ties aside: a table whose entries were a digit off could turn two rounds around."""
    nodes, drops = loss_tables._loss_table()
    assert (np.diff(nodes) <= 0).all()
    assert (np.diff(drops) <= 2).all()  # convex but for the rounding
    assert nodes[0] == round(Decimal(2).ln() * 2**32)


def test_entries_that_a_c_library_could_round_either_way_are_decimal(monkeypatch):
    """With every entry in doubt, all of them come from decimal arithmetic, and none changes."""
    plain = loss_tables._loss_table()
    monkeypatch.setattr(loss_tables, "_LAST_NODE", 1500)
    monkeypatch.setattr(loss_tables, "_DOUBT", 1.0)
    nodes, _ = loss_tables._loss_table.__wrapped__()
    assert np.array_equal(nodes[:-1], plain[0][:1500])


@pytest.mark.parametrize("bits", [32, 35, 36])
@pytest.mark.parametrize("n_terms", [2, 3, 20])
def test_the_logarithm_of_a_sum_of_exponentials_is_its_definition(bits, n_terms):
    for scale in (0.5, 8.0, 2.0**17):
        size = int(scale * 2**bits)
        terms = RNG.integers(-size, size, size=(n_terms, 100), endpoint=True)
        terms[:, 0] = size  # all equal
        found = LogisticTable.beside(terms).log_of_sum(iter(terms), bits)
        assert (found >= terms.max(axis=0)).all()
        for total, column in zip(found.tolist(), terms.T.tolist(), strict=True):
            error = abs(Decimal(total) / 2**bits - log_of_sum(column, bits))
            assert error <= (n_terms - 1) * (Decimal(2) ** -25 + Decimal(2) ** -31)


def test_exponentials_are_their_definition_to_2_to_the_minus_50():
    units = np.concatenate(
        [RNG.integers(-LIMIT, LIMIT, 2000), [0, 1, -1, LIMIT, -LIMIT], RNG.integers(-99, 99, 50)]
    )
    for one, unit in zip(exponentials(units), units.tolist(), strict=True):
        right = Fraction(exp_of_minus(unit))
        assert abs(one - right) < right * Fraction(2) ** -50
    values, _ = ExponentialTable.beside(units).exponentials(units)
    assert 2.0**-402 < values.min() < values.max() < 2.0**402


def test_exponentials_are_capped_at_800():
    units = np.asarray([LIMIT, LIMIT + 1, 2**53, -LIMIT, -LIMIT - 1, -(2**53)])
    small, large = exponentials(np.asarray([LIMIT, -LIMIT]))
    assert exponentials(units) == [small] * 3 + [large] * 3


def test_exponentials_fall_strictly_from_one_unit_to_the_next():
    borders = [
        place << bits for bits in (0, 12, 24, 36) for place in (-800, -278, -277, -3, 0, 1, 7, 799)
    ]
    for border in [*borders, *RNG.integers(-LIMIT, LIMIT, 100).tolist()]:
        units = np.clip(np.arange(border - 5, border + 6), -LIMIT, LIMIT)
        falls = [one > other for one, other in itertools.pairwise(exponentials(units))]
        assert falls == (np.diff(units) > 0).tolist()


def test_exponentials_are_the_same_in_every_library(backend: Backend):
    units = np.concatenate([RNG.integers(-LIMIT, LIMIT, 20_000), RNG.integers(-(2**40), 2**40, 9)])
    there = backend.asarray(units)
    with computing_on(there):
        found = ExponentialTable.beside(there).exponentials(there)
    for one, other in zip(found, ExponentialTable.beside(units).exponentials(units), strict=True):
        assert np.array_equal(backend.to_numpy(one), other)
