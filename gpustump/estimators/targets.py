"""What the target of a fit may be: one of some classes, or a quantity on a scale.

There may be an *offset* of each sample: a part of the score that is known beforehand. `predict`
takes it, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.arrays.moving import moved_to_device_of
from gpustump.boosting.rounds.known_scores import LARGEST_OFFSET, exponential_of, in_vote_units
from gpustump.boosting.rounds.training import Samples
from gpustump.boosting.votes.ratio import RatioScale
from gpustump.data.input_arrays import as_array, check_vector, refuse_values
from gpustump.data.labels import (
    MOST_TARGET,
    check_domain,
    check_targets,
    class_numbers,
)
from gpustump.data.parameters import RATIO_LOSSES, QuantityLoss
from gpustump.data.weights import SMALLEST, Weights
from gpustump.learners.target_scale import TargetScale
from gpustump.model.ensemble import StumpEnsemble

Scale = TargetScale | RatioScale


class Offset(NamedTuple):
    """What is known of samples beforehand, as the caller passes it, unchecked.

    Attributes
    ----------
    init_score : array (n_samples,) or None
        What is added to the scores.
    exposure : array (n_samples,) or None
        What predictions of counts are multiplied by.
    suffix : str
        What the arguments' names end with.
    """

    init_score: Any = None
    exposure: Any = None
    suffix: str = ""

    @property
    def given(self) -> dict[str, Any]:
        """The arguments that are not None, by their names."""
        named = {"init_score": self.init_score, "exposure": self.exposure}
        return {name + self.suffix: own for name, own in named.items() if own is not None}

    def of_quantity(self, X: Array, loss: QuantityLoss) -> Array | None:
        """The offset of the rows of X, (n_samples,) of float64; None if there is none.

        For counts and costs predictions are multiplied by it, otherwise it is added to them.

        Raises
        ------
        ValueError, TypeError
            If an argument is not as described, or not for this loss.
        """
        found = None
        if self.exposure is not None:
            name = f"exposure{self.suffix}"
            if loss != "poisson":
                raise ValueError(
                    f"{name} is for counts, loss='poisson'; got it with loss={loss!r}. Take "
                    "init_score for what is known of other targets."
                )
            found = _finite(self.exposure, name, X)
            refuse_values(found <= 0.0, found, f"{name} must be above 0")
        if self.init_score is not None:
            name = f"init_score{self.suffix}"
            scores = _finite(self.init_score, name, X)
            xp = arrays.namespace_of(scores)
            limit = LARGEST_OFFSET if loss in RATIO_LOSSES else MOST_TARGET
            wanted = f"{name} must be from {-limit:g} to {limit:g}"
            refuse_values(xp.abs(scores) > limit, scores, wanted)
            if loss in RATIO_LOSSES:
                scores = exponential_of(scores)
            found = scores if found is None else found * scores
        return found

    def of_classes(self, X: Array, n_classes: int) -> Array | None:
        """The known scores of the rows of X, in whole `VOTE_UNIT`; None if there are none.

        They are half of `init_score`, as scores are half the log-odds: (n_samples,) of float64 for
        two classes, otherwise (n_samples, n_classes).

        Raises
        ------
        ValueError, TypeError
            If `init_score` is not as described.
        """
        if self.exposure is not None:
            raise ValueError("exposure is for counts, and this model predicts classes.")
        if self.init_score is None:
            return None
        name = f"init_score{self.suffix}"
        if n_classes <= 2:
            columns = [_finite(self.init_score, name, X)]
        else:
            given = as_array(self.init_score, name)
            if given.ndim != 2 or given.shape[1] != n_classes:
                raise ValueError(
                    f"{name} must have a column for each of the {n_classes} classes, (n_samples, "
                    f"{n_classes}), but its shape is {tuple(given.shape)}."
                )
            columns = [_finite(given[:, number], name, X) for number in range(n_classes)]
        xp, limit = arrays.namespace_of(columns[0]), LARGEST_OFFSET
        for own in columns:
            refuse_values(xp.abs(own) > limit, own, f"{name} must be from {-limit:g} to {limit:g}")
        halves = [in_vote_units(own * 0.5) for own in columns]
        return halves[0] if n_classes == 2 else xp.stack(halves, axis=1)

    def of_model(self, X: Array, model: StumpEnsemble) -> Array | None:
        """The offset of the rows of X for a model; see `of_quantity` and `of_classes`."""
        if not model.is_regression:
            return self.of_classes(X, len(model.classes))
        return self.of_quantity(X, "poisson" if model.link == "log" else "squared_error")

    def of_scores(self, X: Array, model: StumpEnsemble) -> Array | None:
        """What is added to a model's scores of the rows of X, (n_samples,) or
        (n_samples, n_outputs) of float64; None if that is nothing."""
        found = self.of_model(X, model)
        is_log = found is not None and model.link == "log"
        return arrays.namespace_of(found).log(found) if is_log else found


NO_OFFSET = Offset()


def _finite(given: Any, name: str, X: Array) -> Array:
    """A number for each row of X, float64."""
    found = check_vector(given, name, X)
    xp = arrays.namespace_of(found)
    found = xp.astype(found, xp.float64)
    refuse_values(~xp.isfinite(found), found, f"{name} must be finite")
    return found


@dataclass(frozen=True, eq=False)
class Quantity:
    """The targets of some rows, and their weights, without what is known beforehand.

    Attributes
    ----------
    targets, weights : array (n_samples,) of float64
    """

    targets: Array
    weights: Array

    @classmethod
    def of(
        cls,
        y: Any,
        weights: Weights,
        X: Array,
        loss: QuantityLoss,
        given: Offset,
    ) -> Quantity:
        """The targets y of the rows of X that have a weight; for a loss, and with what is known
        beforehand of all rows.

        Raises
        ------
        ValueError, TypeError
            If y or the offset are not as described.
        """
        with arrays.computing_on(X):
            targets = check_targets(y, X)
            check_domain(targets, loss)
            offset = given.of_quantity(X, loss)
            targets, values = arrays.picked(targets, weights.rows), weights.values
            if offset is None:
                return cls(targets, values)
            offset = arrays.picked(offset, weights.rows)
            if loss not in RATIO_LOSSES:
                return cls(targets - offset, values)
            targets = targets / offset
            # A rate counts as often as its exposure says, so that its loss is that of the count.
            values = values * offset if loss == "poisson" else values
            xp = arrays.namespace_of(targets)
            too_large = ~(targets < MOST_TARGET) | ~xp.isfinite(values)
            wanted = "y over its exposure, and the weights times it, must be below 2**1000"
            refuse_values(too_large, targets, wanted)
            too_small = values < SMALLEST["float64"]
            refuse_values(too_small, values, "weights times exposures must not be nearly 0")
            return cls(targets, values)


@dataclass(frozen=True, eq=False)
class TargetDomain:
    """The classes of a fit, or the scale of its quantity.

    Attributes
    ----------
    classes : ndarray (n_classes,)
        Empty for a quantity.
    loss : str
        That of a quantity.
    scale : TargetScale, RatioScale or None
        None for classes.
    """

    classes: np.ndarray
    loss: QuantityLoss = "squared_error"
    scale: Scale | None = None

    @classmethod
    def of_quantity(cls, quantity: Quantity, loss: QuantityLoss) -> TargetDomain:
        """For a quantity."""
        targets, weights = quantity.targets, quantity.weights
        scale: Scale
        if loss in RATIO_LOSSES:
            scale = RatioScale.of(targets, weights, is_poisson=loss == "poisson")
        else:
            scale = TargetScale.of(targets, power=1 if loss == "quantile" else 2)
        return cls(np.empty(0, dtype=np.int64), loss, scale)

    @property
    def n_classes(self) -> int:
        """How many classes there are; 0 for a quantity."""
        return len(self.classes)

    def samples_of(self, y: Any, weights: Weights, X: Array, offset: Offset) -> Samples:
        """The rows of a table that have a weight, as boosting takes them.

        Raises
        ------
        ValueError, TypeError
            If y or the offset are not as described, or y holds another class.
        """
        rows = weights.rows
        if self.scale is None:
            numbers = class_numbers(self.classes.tolist(), y, X, rows)
            known = self.known(X, offset)
            picked = None if known is None else arrays.picked(known, rows)
            return Samples(rows, numbers, weights.values, picked)
        quantity = Quantity.of(y, weights, X, self.loss, offset)
        return Samples(rows, *self.learnt(quantity, X))

    def known(self, X: Array, offset: Offset) -> Array | None:
        """What an offset says of the rows of X; see `Offset`."""
        if self.scale is None:
            return offset.of_classes(X, self.n_classes)
        return offset.of_quantity(X, self.loss)

    def learnt(self, quantity: Quantity, X: Array) -> tuple[Array, Array]:
        """Targets as boosting takes them, and weights, in the library and on the device of X."""
        assert self.scale is not None
        return moved_to_device_of(self.scale.scaled(quantity.targets), X), quantity.weights
