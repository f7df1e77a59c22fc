"""Which loss the votes of a run minimise; only its own file is imported."""

from __future__ import annotations

import numpy as np

from gpustump.engines.cpu.loss.loss import Loss
from gpustump.engines.objective import Objective


def loss_of(labels: np.ndarray, units: np.ndarray, objective: Objective) -> Loss:
    """The samples of a run; labels are those of `Engine.start`."""
    if objective.loss == "exponential":
        from gpustump.engines.cpu.loss.exponential_loss import ExponentialLoss

        return ExponentialLoss(labels, units, objective.n_outputs)
    if objective.loss == "logistic":
        from gpustump.engines.cpu.loss.logistic_loss import LogisticLoss

        return LogisticLoss(labels, units)
    if objective.loss == "squared_error":
        from gpustump.engines.cpu.loss.squared_loss import SquaredLoss

        return SquaredLoss(labels, units)
    if objective.loss == "quantile":
        from gpustump.engines.cpu.loss.quantile_loss import QuantileLoss

        return QuantileLoss(labels, units, objective.level)
    if objective.loss in ("poisson", "gamma"):
        from gpustump.engines.cpu.loss.ratio_loss import RatioLoss

        return RatioLoss(labels, units, is_poisson=objective.loss == "poisson")
    from gpustump.engines.cpu.loss.softmax_loss import SoftmaxLoss

    return SoftmaxLoss(labels, units, objective.n_outputs)
