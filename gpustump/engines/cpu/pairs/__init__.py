"""Pairs of features in kernels; importing this compiles none."""

from gpustump.engines.objective import LossName

STAGE_OF: dict[LossName, str] = {
    "logistic": "pairs.odds",
    "softmax": "pairs.probabilities",
    "squared_error": "pairs.residuals",
    "poisson": "pairs.amounts",
    "gamma": "pairs.amounts",
}
"""The file with the kernels of each loss, as `runtime.kernel_folder` names it."""
