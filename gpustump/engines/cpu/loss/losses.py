"""Which loss the votes of a run minimise."""

from __future__ import annotations

import numpy as np

from gpustump.engines.contract import Search
from gpustump.engines.cpu.loss.exponential_loss import ExponentialLoss
from gpustump.engines.cpu.loss.logistic_loss import LogisticLoss
from gpustump.engines.cpu.loss.loss import LossByOutput
from gpustump.engines.cpu.loss.softmax_loss import SoftmaxLoss


def loss_of(labels: np.ndarray, units: np.ndarray, search: Search) -> LossByOutput:
    """The samples of a run; parameters as for `LossByOutput`."""
    if search.loss == "exponential":
        return ExponentialLoss(labels, units, search.n_outputs)
    if search.loss == "logistic":
        return LogisticLoss(labels, units)
    return SoftmaxLoss(labels, units, search.n_outputs)
