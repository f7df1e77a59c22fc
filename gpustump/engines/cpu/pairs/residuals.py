"""Pairs under squared loss; see `engines.reference.squared_loss`."""

from __future__ import annotations

import numpy as np

from gpustump.engines.cpu.pairs.turns import LOSS_PASS, SET_FACTORS, turns_by
from gpustump.engines.cpu.runtime.compiling import inner


@inner(SET_FACTORS)
def _set_no_factors(votes, rule, tables, factors):  # type: ignore[no-untyped-def]
    """No number is multiplied."""


@inner(LOSS_PASS)
def _pass(samples, motion, regions, begin, end, gradient, hessian):  # type: ignore[no-untyped-def]
    residuals, units = samples.numbers[0, begin:end], samples.units[begin:end]
    if motion.cut[0] > 0:
        by = motion.votes[:, 0].copy()
        for i in range(len(residuals)):
            residuals[i] -= by[regions[i]]
    for i in range(len(residuals)):
        gradient[0, i] = np.int64(np.rint(units[i] * residuals[i]))
        hessian[0, i] = np.int64(units[i])


take_turns = turns_by(_pass, _set_no_factors)
