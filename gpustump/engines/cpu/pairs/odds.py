"""Pairs under the logistic loss; see `engines.reference.logistic_loss`."""

from __future__ import annotations

from gpustump.engines.cpu.loss.integers import CEILING, integers_of_odds
from gpustump.engines.cpu.pairs.turns import LOSS_PASS, turns_by
from gpustump.engines.cpu.rounds.certain_factors import set_factors_of_odds
from gpustump.engines.cpu.runtime.compiling import inner
from gpustump.engines.integer_weights import FLOOR


@inner("void(float64[::1], int64[::1], uint8[::1], float64[:, :, ::1])")
def _multiply(odds, labels, regions, factors):  # type: ignore[no-untyped-def]
    a, b, c, d = factors[0, 0, 0], factors[1, 0, 0], factors[2, 0, 0], factors[3, 0, 0]
    e, f, g, h = factors[0, 0, 1], factors[1, 0, 1], factors[2, 0, 1], factors[3, 0, 1]
    for i in range(len(odds)):
        region = regions[i]
        negative = (a if region == 0 else b) if region < 2 else (c if region == 2 else d)
        positive = (e if region == 0 else f) if region < 2 else (g if region == 2 else h)
        own = odds[i] * (positive if labels[i] > 0 else negative)
        own = own if own < CEILING else CEILING
        odds[i] = own if own > FLOOR else FLOOR


@inner(LOSS_PASS)
def _pass(samples, motion, regions, begin, end, gradient, hessian):  # type: ignore[no-untyped-def]
    odds, labels = samples.numbers[0, begin:end], samples.labels[begin:end]
    if motion.cut[0] > 0:
        _multiply(odds, labels, regions, motion.factors)
    for i in range(end - begin):
        gradient[0, i] = labels[i]
    integers_of_odds(odds, samples.units[begin:end], gradient[0], hessian[0])


take_turns = turns_by(_pass, set_factors_of_odds)
