"""Pairs under Poisson and gamma loss; see `engines.reference.ratio_loss`."""

from __future__ import annotations

import numpy as np

from gpustump.engines.cpu.pairs.turns import LOSS_PASS, turns_by
from gpustump.engines.cpu.rounds.certain_factors import set_factors_of_amounts
from gpustump.engines.cpu.runtime.compiling import inner
from gpustump.engines.integer_weights import FLOOR


@inner(LOSS_PASS)
def _pass(samples, motion, regions, begin, end, gradient, hessian):  # type: ignore[no-untyped-def]
    moving, fixed = samples.numbers[0, begin:end], samples.numbers[1, begin:end]
    sign = samples.sign
    if motion.cut[0] > 0:
        by = motion.factors[:, 0, 0 if sign > 0 else 1].copy()
        for i in range(len(moving)):
            now = moving[i] * by[regions[i]]
            moving[i] = now if now > FLOOR else FLOOR
    for i in range(len(moving)):
        whole, stays = np.int64(np.ceil(moving[i])), np.int64(fixed[i])
        gradient[0, i], hessian[0, i] = sign * (stays - whole), stays + whole


take_turns = turns_by(_pass, set_factors_of_amounts)
