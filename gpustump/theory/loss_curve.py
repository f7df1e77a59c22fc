"""The weighted loss of one feature's stump as a function of its threshold: what training minimises.

It comes from the same whole numbers as training: weights rounded up to integers, added up in sorted
order. So its least value is the error of the stump that training finds, bit for bit, and a picture
of it shows the choice that was made and not one like it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.data.input_arrays import as_array
from gpustump.data.sample_weights import check_weights
from gpustump.data.signs import check_both_signs, check_signs
from gpustump.data.tables import check_table
from gpustump.engines.contract import sign_of
from gpustump.engines.integer_weights import in_units, signed
from gpustump.learners.thresholds import midpoints


@dataclass(frozen=True)
class Losses:
    """The weighted errors of all stumps on one feature with k distinct values.

    Attributes
    ----------
    values : ndarray (k,) of float64
        The distinct values, increasing: where the loss has its steps.
    thresholds : ndarray (k + 1,) of float64
        The candidates: -inf for a threshold below every value (though one may be -inf itself), the
        midpoints, and +inf. thresholds[i] is in [values[i - 1], values[i]), where the loss is the
        same throughout.
    wrong, opposite_wrong : ndarray (k + 1,) of int64
        The weight, in training's whole numbers, that the stump with that threshold gets wrong: with
        polarity +1, which is +1 where x <= threshold, and with polarity -1.
    total_weight : int
        The weight of all samples.
    heavier : int
        The label of larger total weight, +1 or -1; +1 if both have the same.
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

        Of equally good ones that with the lowest threshold; one of the two extremes only where it
        is strictly better than every threshold between two values, and with the polarity of the
        label that is heavier overall where the present samples are level.
        """
        wrong = np.stack([self.wrong, self.opposite_wrong], axis=1)
        inside, above_all = wrong[1:-1], wrong[-1]  # below all, it is the same twice
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
    F_j(b), the sum of D_i over the i with y_i != sign(b - x_ij) [Shalev-Shwartz and Ben-David 2014,
    Understanding Machine Learning, 10.1.1]; 1 - F_j(b) for the opposite polarity. Sorted by x, it
    changes by y_i * D_i from one sample to the next, so that all of it is one cumulative sum.

    Samples whose value is missing vote for the label that is heavier among them, as in training,
    and so add the lesser of their two weights to every loss.

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
    x = _checked_column(x)
    with arrays.computing_on(x):
        y = check_signs(y, x)
        weights, rows = check_weights(sample_weight, x)
        y = arrays.picked(y, rows)
        check_both_signs(y, "y, where sample_weight is not zero,")
        parts = signed(in_units(weights), y)
        values = arrays.to_host(arrays.picked(arrays.as_working(x), rows))
        return _losses(values, arrays.to_host(parts.values), parts.weight, sign_of(parts.total))


def _losses(x: np.ndarray, signed_weights: np.ndarray, total_weight: int, heavier: int) -> Losses:
    """The losses of values (n_samples,) with integer weights, each with the sign of its label."""
    with np.errstate(all="ignore"):
        keys = arrays.order_keys(x)
    order = np.argsort(keys, kind="stable")
    is_there = keys[order] != arrays.missing_key(arrays.dtype_name(x))
    present, missing = order[is_there], order[~is_there]
    is_last = np.append(keys[present][1:] != keys[present][:-1], True)[: len(present)]
    running = np.cumsum(signed_weights[present])
    sum_left = np.append(np.zeros(1, dtype=np.int64), running[is_last])
    agreement = 2 * sum_left - sum_left[-1]  # of polarity +1, over the present samples
    weight_missing = int(np.abs(signed_weights[missing]).sum())
    wrong_missing = (weight_missing - abs(int(signed_weights[missing].sum()))) // 2
    weight_present = total_weight - weight_missing
    values = x[present][is_last]
    ends = np.concatenate([[-math.inf], midpoints(values), [math.inf]])
    return Losses(
        values.astype(np.float64),
        ends if len(values) else ends[-1:],
        (weight_present - agreement) // 2 + wrong_missing,
        (weight_present + agreement) // 2 + wrong_missing,
        total_weight,
        heavier,
    )


def _shares(weights: np.ndarray, total_weight: int) -> np.ndarray:
    """Each integer weight as a share of the total, rounded once."""
    return np.asarray([weight / total_weight for weight in weights.tolist()])


def _checked_column(x: Any) -> Array:
    """One feature's values; whatever else is wrong with them is said as for a table's."""
    x = as_array(x, "x")
    if x.ndim != 1:
        raise ValueError(
            f"x must have one dimension, (n_samples,), but its shape is {tuple(x.shape)}; pass one "
            "column, X[:, j], at a time."
        )
    return check_table(x[:, None], name="x")[:, 0]
