"""What the target of a fit may be: one of some classes, or a quantity on a scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.data.labels import check_labels, numbers_among
from gpustump.data.targets import check_targets
from gpustump.learners.target_scale import TargetScale, scaled_beside


@dataclass(frozen=True, eq=False)
class TargetDomain:
    """The classes of a fit, or the scale of its quantity.

    Attributes
    ----------
    classes : ndarray (n_classes,)
        Empty for a quantity.
    scale : TargetScale or None
        None for classes.
    """

    classes: np.ndarray
    scale: TargetScale | None = None

    @classmethod
    def of_quantity(cls, scale: TargetScale) -> TargetDomain:
        """For a quantity."""
        return cls(np.empty(0, dtype=np.int64), scale)

    @property
    def n_classes(self) -> int:
        """How many classes there are; 0 for a quantity."""
        return len(self.classes)

    def learnt_values(self, y: Any, X: Array, rows: Array | None) -> Array:
        """The targets of some rows of another table as boosting takes them: see `Samples.classes`.

        Raises
        ------
        ValueError, TypeError
            If y is not as described, or holds another class.
        """
        taken = None if rows is None else arrays.to_host(rows)
        if self.scale is None:
            labels = arrays.to_host(check_labels(y, X))
            return numbers_among(self.classes.tolist(), labels, taken)
        targets = arrays.picked(check_targets(y, X), rows)
        return scaled_beside(targets, self.scale, X)
