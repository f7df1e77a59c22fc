"""The loss curve of a stump, under a public name; see `gpustump.theory.loss_curve`."""

from gpustump.theory.loss_curve import Losses, weighted_losses

__all__ = ["Losses", "weighted_losses"]
