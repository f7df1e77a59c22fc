"""The samples of a run: losses, scores, the integers of a round, the regions of a step."""

from gpustump.engines.objective import LossName

STAGE_OF: dict[LossName, str] = {
    "exponential": "loss.exponential_loss",
    "logistic": "loss.logistic_loss",
    "softmax": "loss.softmax_loss",
    "squared_error": "loss.squared_loss",
    "quantile": "loss.quantile_loss",
    "poisson": "loss.ratio_loss",
    "gamma": "loss.ratio_loss",
}
"""The file with the kernels of each loss, as `runtime.kernel_folder` names it."""
