"""The loss curve of a stump: its weighted error as a function of the threshold on one feature.

Training minimises this function. It is computed as in training, from weights rounded up to integers
and added up in sorted order. So its minimum is, bit for bit, the error of the stump that training
finds. `split_scores` has the curves of other votes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.data.weights import check_weighted_signs
from gpustump.engines.contract import sign_of
from gpustump.engines.integer_weights import in_units, signed
from gpustump.theory.feature_cuts import Cuts, checked_column


@dataclass(frozen=True)
class Losses:
    """The weighted errors of all stumps on one feature with k distinct values.

    Attributes
    ----------
    values : ndarray (k,) of float64
        The distinct values, increasing. The loss has a step at each.
    thresholds : ndarray (k + 1,) of float64
        The candidates: -inf for a threshold below every value, the midpoints, and +inf. The loss is
        constant on [values[i - 1], values[i]), where thresholds[i] lies. (If a value is -inf, the
        first candidate still stands for a threshold below it.)
    wrong, opposite_wrong : ndarray (k + 1,) of int64
        The integer weight that the stump with this threshold gets wrong: with polarity +1, which
        predicts +1 where x <= threshold, and with polarity -1.
    total_weight : int
        The integer weight of all samples.
    heavier : int
        The label of larger total weight, +1 or -1; +1 if both have the same.

    Examples
    --------
    >>> from gpustump.theory import weighted_losses
    >>> found = weighted_losses([1.0, 2.0, 4.0, 5.0], [1, 1, -1, 1])
    >>> found.values.tolist()
    [1.0, 2.0, 4.0, 5.0]
    >>> found.errors.tolist()
    [0.75, 0.5, 0.25, 0.5, 0.25]
    >>> found.opposite_errors.tolist()
    [0.25, 0.5, 0.75, 0.5, 0.75]
    """

    values: np.ndarray
    thresholds: np.ndarray
    wrong: np.ndarray
    opposite_wrong: np.ndarray
    total_weight: int
    heavier: int

    @property
    def errors(self) -> np.ndarray:
        """The loss with polarity +1, (k + 1,) of float64."""
        return _shares(self.wrong, self.total_weight)

    @property
    def opposite_errors(self) -> np.ndarray:
        """The loss with polarity -1, (k + 1,): 1 - errors, unless values are missing."""
        return _shares(self.opposite_wrong, self.total_weight)

    def least(self) -> tuple[float, int, float]:
        """Threshold, polarity and error of the stump that training chooses.

        Among equally good stumps it is the one with the lowest threshold. A stump with all values
        on one side is chosen only if it is strictly better than every threshold between two values.
        If both of its polarities are equally good, it predicts the label of larger total weight.

        Examples
        --------
        >>> from gpustump.theory import weighted_losses
        >>> weighted_losses([1.0, 2.0, 4.0, 5.0], [1, 1, -1, 1]).least()
        (3.0, 1, 0.25)
        """
        wrong = np.stack([self.wrong, self.opposite_wrong], axis=1)
        inside, above_all = wrong[1:-1], wrong[-1]  # wrong[0] holds the same two numbers
        if inside.size and inside.min() <= above_all.min():
            at, side = divmod(int(np.argmin(inside)), 2)
            threshold, polarity = float(self.thresholds[at + 1]), 1 - 2 * side
            return threshold, polarity, int(inside.min()) / self.total_weight
        polarity = self.heavier
        if above_all[0] != above_all[1]:
            polarity = 1 - 2 * int(np.argmin(above_all))
        return math.inf, polarity, int(above_all.min()) / self.total_weight


def weighted_losses(x: Array, y: Array, sample_weight: Array | None = None) -> Losses:
    """The weighted error of every stump on one feature.

    Parameters
    ----------
    x : array (n_samples,)
        The feature's values: booleans, integers or floats of any array library; NaN means missing.
    y : array (n_samples,)
        Labels -1 and +1, both present.
    sample_weight : array (n_samples,), optional
        As for `fit_stump`.

    Returns
    -------
    Losses
        On the host.

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described; the message names it and what was found.

    Notes
    -----
    With polarity +1 the error is F_j(b), the sum of the weights D_i over the i with
    y_i != sign(b - x_ij) [Shalev-Shwartz and Ben-David 2014, Understanding Machine Learning,
    10.1.1]; with polarity -1 it is 1 - F_j(b). In the order of x, F_j changes by y_i * D_i from one
    sample to the next, so one cumulative sum gives all values.

    Samples without a value are predicted to have the label of larger total weight among them, as in
    training. They add the smaller of their two total weights to every loss.

    Examples
    --------
    >>> found = weighted_losses([1.0, 2.0, 4.0, 5.0], [1, 1, -1, 1])
    >>> found.thresholds.tolist()
    [-inf, 1.5, 3.0, 4.5, inf]
    >>> found.errors.tolist()
    [0.75, 0.5, 0.25, 0.5, 0.25]
    >>> found.least()
    (3.0, 1, 0.25)
    """
    x = checked_column(x)
    with arrays.computing_on(x):
        labels, weights, rows = check_weighted_signs(y, sample_weight, x)
        parts = signed(in_units(weights), labels)
        values = arrays.to_host(arrays.picked(arrays.as_working(x), rows))
        return _losses(values, arrays.to_host(parts.values), parts.weight, sign_of(parts.total))


def _losses(x: np.ndarray, signed_weights: np.ndarray, total_weight: int, heavier: int) -> Losses:
    """The losses of values (n_samples,) with integer weights, each with the sign of its label."""
    cuts = Cuts.of(x)
    sum_left = cuts.sums_left(signed_weights)
    agreement = 2 * sum_left - sum_left[-1]  # of polarity +1, over the present samples
    missing = signed_weights[cuts.missing]
    weight_missing = int(np.abs(missing).sum())
    wrong_missing = (weight_missing - abs(int(missing.sum()))) // 2
    weight_present = total_weight - weight_missing
    return Losses(
        cuts.values.astype(np.float64),
        cuts.thresholds,
        (weight_present - agreement) // 2 + wrong_missing,
        (weight_present + agreement) // 2 + wrong_missing,
        total_weight,
        heavier,
    )


def _shares(weights: np.ndarray, total_weight: int) -> np.ndarray:
    """Each integer weight as a share of the total, rounded once."""
    return np.asarray([weight / total_weight for weight in weights.tolist()])
