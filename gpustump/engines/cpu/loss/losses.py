"""Which loss the votes of a run minimise."""

from __future__ import annotations

import numpy as np

from gpustump.engines.cpu.loss.exponential_loss import ExponentialLoss
from gpustump.engines.cpu.loss.logistic_loss import LogisticLoss
from gpustump.engines.cpu.loss.loss import Loss
from gpustump.engines.cpu.loss.ratio_loss import RatioLoss
from gpustump.engines.cpu.loss.softmax_loss import SoftmaxLoss
from gpustump.engines.cpu.loss.squared_loss import SquaredLoss
from gpustump.engines.objective import Objective


def loss_of(labels: np.ndarray, units: np.ndarray, objective: Objective) -> Loss:
    """The samples of a run; labels are those of `Engine.start`."""
    if objective.loss == "exponential":
        return ExponentialLoss(labels, units, objective.n_outputs)
    if objective.loss == "logistic":
        return LogisticLoss(labels, units)
    if objective.loss == "squared_error":
        return SquaredLoss(labels, units)
    if objective.loss in ("poisson", "gamma"):
        return RatioLoss(labels, units, is_poisson=objective.loss == "poisson")
    return SoftmaxLoss(labels, units, objective.n_outputs)
