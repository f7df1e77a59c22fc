"""The weighted loss of a stump as a function of its threshold; see `gpustump.theory.loss_curve`."""

from gpustump.theory.loss_curve import Losses, weighted_losses

__all__ = ["Losses", "weighted_losses"]
