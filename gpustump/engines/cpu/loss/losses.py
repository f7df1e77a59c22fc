"""Which loss the votes of a run minimise."""

from __future__ import annotations

import numpy as np

from gpustump.engines.contract import Search
from gpustump.engines.cpu.loss.exponential_loss import ExponentialLoss
from gpustump.engines.cpu.loss.logistic_loss import LogisticLoss
from gpustump.engines.cpu.loss.loss import Loss
from gpustump.engines.cpu.loss.ratio_loss import RatioLoss
from gpustump.engines.cpu.loss.softmax_loss import SoftmaxLoss
from gpustump.engines.cpu.loss.squared_loss import SquaredLoss


def loss_of(labels: np.ndarray, units: np.ndarray, search: Search) -> Loss:
    """The samples of a run; labels are those of `Engine.start`."""
    if search.loss == "exponential":
        return ExponentialLoss(labels, units, search.n_outputs)
    if search.loss == "logistic":
        return LogisticLoss(labels, units)
    if search.loss == "squared":
        return SquaredLoss(labels, units)
    if search.loss in ("poisson", "gamma"):
        return RatioLoss(labels, units, is_poisson=search.loss == "poisson")
    return SoftmaxLoss(labels, units, search.n_outputs)
