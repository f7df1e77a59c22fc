"""Pairs under the softmax loss; see `engines.reference.softmax_loss`."""

from __future__ import annotations

import numpy as np

from gpustump.engines.cpu.loss.integers import integers_of_probabilities
from gpustump.engines.cpu.pairs.turns import LOSS_PASS, turns_by
from gpustump.engines.cpu.rounds.certain_factors import set_factors_of_odds
from gpustump.engines.cpu.runtime.compiling import inner
from gpustump.engines.integer_weights import FLOOR, LEAST_PRODUCT


@inner("void(float64[:, ::1], uint8[::1], float64[:, :, ::1], int64, int64)")
def _multiply(probabilities, regions, factors, begin, end):  # type: ignore[no-untyped-def]
    total = np.zeros(end - begin)  # adding to 0 changes no product
    for output in range(len(probabilities)):
        own, by = probabilities[output, begin:end], factors[:, output, 1].copy()
        for i in range(len(own)):
            grown = own[i] * by[regions[i]]
            grown = grown if grown > LEAST_PRODUCT else LEAST_PRODUCT
            own[i] = grown
            total[i] += grown
    for output in range(len(probabilities)):
        own = probabilities[output, begin:end]
        for i in range(len(own)):
            now = own[i] / total[i]
            own[i] = now if now > FLOOR else FLOOR


@inner(LOSS_PASS)
def _pass(samples, motion, regions, begin, end, gradient, hessian):  # type: ignore[no-untyped-def]
    if motion.cut[0] > 0:
        _multiply(samples.numbers, regions, motion.factors, begin, end)
    for output in range(len(gradient)):
        for i in range(end - begin):
            gradient[output, i] = 1 if samples.labels[begin + i] == output else -1
        own, units = samples.numbers[output, begin:end], samples.units[begin:end]
        integers_of_probabilities(own, units, gradient[output], hessian[output])


take_turns = turns_by(_pass, set_factors_of_odds)
