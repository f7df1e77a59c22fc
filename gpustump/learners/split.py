"""A split: a weak hypothesis without signs. The votes of its regions are kept beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpustump.learners.hypothesis import FIRST, SECOND, set_plain_numbers


@dataclass(frozen=True)
class Split:
    """x[feature] <= threshold on the left, x[feature] > threshold on the right, or NaN.

    A `Stump` says -1 or +1 in each of these three regions. With real votes, Newton votes, or votes
    for several outputs, each region has numbers of its own, which are kept beside the split.

    Attributes
    ----------
    feature : int
        Column of X, from 0.
    threshold : float
        Exact in the dtype of the training data. Infinite if every value is on the left; then the
        split separates the values that are present from the missing ones.

    Raises
    ------
    ValueError
        If the threshold is NaN.

    Examples
    --------
    >>> from gpustump import LogitBoostClassifier
    >>> X = [[1], [2], [3], [4]]
    >>> clf = LogitBoostClassifier(n_estimators=1).fit(X, [0, 0, 1, 1])
    >>> clf.model_.members[0].splits
    (Split(feature=0, threshold=2.5),)
    """

    feature: int
    threshold: float

    def __post_init__(self) -> None:
        if math.isnan(self.threshold):
            raise ValueError("threshold must be a number or infinite; got NaN.")
        if type(self.feature) is not int or type(self.threshold) is not float:
            set_plain_numbers(self)

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The one threshold."""
        return (self.threshold,)

    @property
    def slices(self) -> tuple[int, ...]:
        """The region of each slice: left, right."""
        return FIRST, SECOND
