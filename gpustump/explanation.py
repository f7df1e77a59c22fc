"""Why a model says what it says: each feature's part in a decision value, and in all of them.

F(x) is a constant and one step function of each feature, added up, so a feature's contribution to
a sample is nothing but its step function's value there. Nothing is estimated or sampled:
contributions are whole multiples of `VOTE_UNIT`, and add up to the decision value exactly, in any
order.

How much a feature matters over a table is a question of how far its contributions lie apart. It is
answered by counting the samples on each step, in integers, and by rational arithmetic from there,
so that it too is the same number on every library and device.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.tables import StepTable
from gpustump.votes import VOTE_UNIT
from gpustump.weights import in_units


def contributions(
    X: Array, intercept: float, tables: Sequence[StepTable], n_features: int
) -> Array:
    """Each feature's part in F(x), and the intercept, (n_samples, n_features + 1) of float64."""
    xp, device = arrays.namespace_of(X), arrays.device_of(X)
    nothing = xp.zeros(X.shape[0], dtype=xp.float64, device=device)
    columns = [nothing] * n_features + [xp.full_like(nothing, intercept)]
    for table in tables:
        columns[table.feature] = table.look_up(X[:, table.feature])
    return xp.stack(columns, axis=1)


def masses(table: StepTable, column: Array, units: Array | None = None) -> list[int]:
    """How many samples are on each step, and how many lack the feature.

    Parameters
    ----------
    table : StepTable
        Of k steps.
    column : array (n_samples,)
        The feature's values.
    units : array (n_samples,) of int64, optional
        What each sample counts; 1 by default.

    Returns
    -------
    list of k + 1 ints
    """
    xp = arrays.namespace_of(column)
    steps = table.steps_of(column)
    order = xp.argsort(steps)
    if units is None:
        units = xp.ones(column.shape[0], dtype=xp.int64, device=arrays.device_of(column))
    running = xp.cumulative_sum(xp.take(units, order, axis=0))
    all_steps = xp.arange(len(table.values) + 1, dtype=steps.dtype, device=arrays.device_of(column))
    ends = xp.searchsorted(xp.take(steps, order, axis=0), all_steps, side="right")
    reached = xp.where(ends > 0, xp.take(running, xp.maximum(ends - 1, ends * 0), axis=0), 0)
    upto = arrays.integers(reached)
    return [upper - lower for lower, upper in zip([0, *upto], upto, strict=False)]


def spread(table: StepTable, on_steps: Sequence[int]) -> Fraction:
    """The mean absolute deviation of a step function from its mean, over samples so distributed."""
    values = [int(value / VOTE_UNIT) for value in (*table.values, table.missing)]
    mass = sum(on_steps)
    moment = sum(m * value for m, value in zip(on_steps, values, strict=True))
    deviation = sum(
        m * abs(value * mass - moment) for m, value in zip(on_steps, values, strict=True)
    )
    return Fraction(deviation, mass * mass)


def importances(
    X: Array,
    rows: Array | None,
    weights: Array | None,
    members: Sequence[Sequence[StepTable]],
    n_features: int,
) -> np.ndarray:
    """Each feature's share of the spread of contributions, (n_features,); see `spread`.

    `rows` are those that count, None for all, and `weights` what they weigh. Of several members,
    their spreads are added up.
    """
    xp = arrays.namespace_of(X)
    units = None if weights is None else xp.astype(in_units(weights), xp.int64)
    found = [Fraction(0)] * n_features
    for tables in members:
        for table in tables:
            on_steps = masses(table, arrays.picked(X[:, table.feature], rows), units)
            found[table.feature] += spread(table, on_steps)
    total = sum(found)
    return np.asarray([float(one / total) if total else 0.0 for one in found])
