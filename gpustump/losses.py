"""The training loss as a function of one feature's threshold: public names.

See `gpustump.theory.loss_curve` for stumps, and `gpustump.theory.split_scores` for splits whose
regions have votes of their own.
"""

from gpustump.theory.loss_curve import Losses, weighted_losses
from gpustump.theory.split_scores import SplitScores, split_scores

__all__ = ["Losses", "SplitScores", "split_scores", "weighted_losses"]
