"""What pairs of features add to a model: checked, written to a file and back, and compared.

In a file the part "model" holds for each pair the bins of both features and the values of all
cells; the last row and the last column are for missing values. What was moved from the pairs into
the functions of single features is held as rows of splits, like a member. The part "seen", which is
not part of the digest, holds how the weight of the training samples is spread over the cells, and
the tables of each bag, packed. A bag cuts a pair at few places; elsewhere two neighbouring cells
differ as much as the two beside them. So the differences of such differences are packed, of which
a tenth is not 0, unless rounding would change the tables.
"""

from __future__ import annotations

import base64
import itertools
import math
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpustump.learners.category_split import is_set
from gpustump.learners.pair_table import MOST_BINS, PairAxis, PairTable
from gpustump.model.members import Member, Members, RegionMember
from gpustump.model.rows import as_text


def check_pairs(
    pairs: Sequence[PairTable], moved: Sequence[RegionMember], members: Members, n_features: int
) -> None:
    """Check that pairs fit the other parts of a model.

    Raises
    ------
    ValueError
        If they do not.
    """
    if not pairs and not moved:
        return
    outputs = [own.n_outputs for own in members]
    if [own.n_outputs for own in moved] != outputs:
        raise ValueError(
            f"moved must be {len(members)} members with the outputs of the model's; got "
            f"{len(moved)}."
        )
    if any(isinstance(own, Member) for own in members):
        raise ValueError("pairs need members of type RegionMember.")
    for place, pair in enumerate(pairs):
        wanted = (*(axis.n_bins for axis in pair.axes), sum(outputs))
        first, second = pair.features
        if not 0 <= first < second < n_features:
            raise ValueError(
                f"pairs[{place}] must pair two of {n_features} features, the lower one first; got "
                f"{first} and {second}."
            )
        if pair.values.shape != wanted or not np.isfinite(pair.values).all():
            raise ValueError(
                f"pairs[{place}] must have finite values of the shape {wanted}; got the shape "
                f"{pair.values.shape}."
            )
    features = [pair.features for pair in pairs]
    if len(set(features)) < len(features):
        raise ValueError("pairs must be different; two of them have the same features.")


def with_moved(members: Members, moved: Sequence[RegionMember]) -> tuple[RegionMember, ...]:
    """Each member with what was moved into it, as further terms."""
    found = []
    for own, more in zip(members, moved, strict=True):
        assert isinstance(own, RegionMember)
        votes = np.concatenate([own.votes, more.votes])
        found.append(RegionMember(own.splits + more.splits, votes, own.constant + more.constant))
    return tuple(found)


def parts_of(pairs: Sequence[PairTable]) -> list[dict[str, Any]]:
    """The pairs as the file's part "model" holds them."""
    return [
        {
            "features": list(map(int, pair.features)),
            "bins": [_bins(axis) for axis in pair.axes],
            "values": (pair.values + 0.0).tolist(),
        }
        for pair in pairs
    ]


def _bins(axis: PairAxis) -> list[Any]:
    """The thresholds of an axis without the last one, or its groups of categories."""
    if axis.groups:
        return [list(own) for own in axis.groups]
    return [as_text(own) for own in axis.thresholds[:-1].tolist()]


def seen_of(pairs: Sequence[PairTable]) -> list[dict[str, Any]]:
    """What the file holds of each pair beside the model."""
    found = []
    for pair in pairs:
        own = {"weights": _packed(pair.weights)}
        if pair.bags is not None:
            steps = _steps_of(pair.bags)
            is_exact = np.array_equal(_added_up(steps), pair.bags)
            own |= {"steps": _packed(steps)} if is_exact else {"bags": _packed(pair.bags)}
        found.append(own)
    return found


@np.errstate(over="ignore", invalid="ignore")
def _steps_of(bags: np.ndarray) -> np.ndarray:
    """The differences of neighbouring cells, in both directions, of tables (n_bags, k, m, ...)."""
    return np.diff(np.diff(bags, axis=1, prepend=0.0), axis=2, prepend=0.0)


@np.errstate(over="ignore", invalid="ignore")
def _added_up(steps: np.ndarray) -> np.ndarray:
    """The tables with these differences."""
    found: np.ndarray = np.cumsum(np.cumsum(steps, axis=1), axis=2)
    return found


def _packed(numbers: np.ndarray) -> str:
    """Numbers as text, compressed."""
    bits = np.ascontiguousarray(numbers, dtype="<f8")
    return base64.b64encode(zlib.compress(bits.tobytes(), 6)).decode("ascii")


def _unpacked(text: Any, shape: tuple[int, ...]) -> np.ndarray:
    """The numbers in a text that `_packed` made."""
    size = 8 * math.prod(shape)
    try:
        data = zlib.decompressobj().decompress(base64.b64decode(text, validate=True), size + 1)
    except zlib.error as error:
        raise ValueError(f"numbers cannot be read: {error}.") from error
    if len(data) != size:
        raise ValueError(f"numbers take {size} bytes; got another number of them.")
    return np.frombuffer(data, dtype="<f8").reshape(shape).astype(np.float64)


def pairs_of(given: Any, seen: Any, n_bags: int) -> tuple[PairTable, ...]:
    """The pairs in a document, from what `parts_of` and `seen_of` make; 1 bag if there are none.

    Raises
    ------
    ValueError
        If something is wrong that `check_pair` does not check.
    AttributeError, LookupError, OverflowError, TypeError
        If the parts are of other types.
    """
    if len(given) != len(seen):
        raise ValueError(f"seen must tell of {len(given)} pairs; got {len(seen)}.")
    found = []
    for own, rest in zip(given, seen, strict=True):
        first, second = map(_axis, own["features"], own["bins"])
        values = np.asarray(own["values"], dtype=np.float64)
        weights = _unpacked(rest["weights"], values.shape[:2])
        bags = _bags_of(rest, (n_bags, *values.shape)) if n_bags > 1 else None
        found.append(PairTable((first, second), values, weights, bags))
    return tuple(found)


def _bags_of(seen: Any, shape: tuple[int, ...]) -> np.ndarray:
    if "steps" in seen:
        return _added_up(_unpacked(seen["steps"], shape))
    return _unpacked(seen["bags"], shape)


def _axis(feature: Any, bins: Any) -> PairAxis:
    """The bins of a feature, from what a file holds."""
    if bins and all(type(own) is list for own in bins):
        return PairAxis(int(feature), groups=tuple(tuple(map(int, own)) for own in bins))
    return PairAxis(int(feature), np.asarray([*map(float, bins), np.inf]))


def check_pair(pair: PairTable, n_bags: int) -> None:
    """Check the bins and the tables of a pair, as no constructor does.

    Raises
    ------
    ValueError
        If something is wrong; the message names it.
    """
    for axis in pair.axes:
        if axis.n_bins > MOST_BINS:
            raise ValueError(f"a feature must have at most {MOST_BINS} bins; got {axis.n_bins}.")
        if not all(axis.groups) or not is_set(sorted(itertools.chain(*axis.groups))):
            raise ValueError("groups must hold different numbers of categories.")
        if not axis.groups and not (axis.thresholds[1:] > axis.thresholds[:-1]).all():
            raise ValueError("thresholds must be increasing.")
    if (pair.bags is None) != (n_bags == 1):
        raise ValueError("bags must hold a table of each bag, if there are bags.")
    for name, own in (("weights", pair.weights), ("bags", pair.bags)):
        if own is not None and not np.isfinite(own).all():
            raise ValueError(f"{name} must hold finite numbers.")


def strength_of(pair: PairTable) -> float:
    """How much a pair makes the scores of the training samples differ, over all outputs.

    The mean size of what it adds, weighted as the samples of the training; the mean of its values
    is 0.
    """
    sizes = np.abs(pair.values).reshape(*pair.weights.shape, -1).sum(axis=-1)
    return float((sizes * pair.weights).sum())


def shares_of_pairs(pairs: Sequence[PairTable]) -> np.ndarray:
    """The share of each pair in what all pairs add, (n_pairs,): of the sum of `strength_of`."""
    found = np.asarray([strength_of(own) for own in pairs])
    return found / (found.sum() or 1.0)
