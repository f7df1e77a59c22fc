"""What pairs of features add to a model: checked, written to a file and back, and compared.

A model with pairs has version 5 of the file. Its part "model" holds for each pair the bins of both
features and the values of all cells; the last row and the last column are for missing values. What
was moved from the pairs into the functions of single features is held as rows of splits, like a
member. The part "seen", which is not part of the digest, holds how the weight of the training
samples is spread over the cells, and the tables of each bag, packed.
"""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpustump.data.parameters import MOST_CATEGORIES
from gpustump.data.readable import shown
from gpustump.learners.pair_table import MOST_BINS, PairAxis, PairTable
from gpustump.model.members import Member, Members, RegionMember
from gpustump.model.rows import ValueRule, as_text, is_finite


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
            "features": list(pair.features),
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
        found.append(own if pair.bags is None else own | {"bags": _packed(pair.bags)})
    return found


def _packed(numbers: np.ndarray) -> str:
    """Numbers as text, compressed: neighbouring cells mostly have equal ones."""
    bits = np.ascontiguousarray(numbers, dtype="<f8")
    return base64.b64encode(zlib.compress(bits.tobytes(), 6)).decode("ascii")


def _unpacked(text: Any, shape: tuple[int, ...], name: str) -> np.ndarray:
    """The numbers in a text that `_packed` made."""
    size = 8 * math.prod(shape)
    try:
        reader = zlib.decompressobj()
        data = reader.decompress(base64.b64decode(text, validate=True), size + 1)
        if len(data) != size:
            raise ValueError(f"{len(data)} bytes in place of {size}")
    except (TypeError, ValueError, zlib.error) as error:
        raise ValueError(f"{name} cannot be read: {error}.") from error
    found = np.frombuffer(data, dtype="<f8").reshape(shape).astype(np.float64)
    if not np.isfinite(found).all():
        raise ValueError(f"{name} must hold finite numbers.")
    return found


def checked_pairs(
    given: Any, seen: Any, n_outputs: int, n_bags: int, vote: ValueRule
) -> tuple[PairTable, ...]:
    """The pairs in a document, after checking every value.

    Parameters
    ----------
    given : list
        As `parts_of` makes it.
    seen : list
        As `seen_of` makes it.
    n_outputs : int
        Of the model.
    n_bags : int
        1 if the model is no average.
    vote : ValueRule
        What values must be.

    Raises
    ------
    ValueError
        If something is wrong; the message names it.
    """
    if type(given) is not list or type(seen) is not list or len(given) != len(seen):
        raise ValueError("pairs and seen must be lists of equal length.")
    found = []
    for place, (own, rest) in enumerate(zip(given, seen, strict=True)):
        name = f"pairs[{place}]"
        if type(own) is not dict or set(own) != {"features", "bins", "values"}:
            raise ValueError(f"{name} must be an object of bins, features, values.")
        features, bins = own["features"], own["bins"]
        for part in (features, bins):
            if type(part) is not list or len(part) != 2:
                raise ValueError(f"{name}: features and bins must be lists of two.")
        if not all(type(j) is int for j in features):
            raise ValueError(f"{name}: features must be whole numbers; got {shown(features)}.")
        first, second = (_axis(*both, name) for both in zip(features, bins, strict=True))
        shape = (first.n_bins, second.n_bins, n_outputs)
        values = _values(own["values"], shape, name, vote)
        wanted = {"weights", "bags"} if n_bags > 1 else {"weights"}
        if type(rest) is not dict or set(rest) != wanted:
            raise ValueError(f"seen[{place}] must be an object of {', '.join(sorted(wanted))}.")
        weights = _unpacked(rest["weights"], shape[:2], f"seen[{place}]: weights")
        bags = None
        if n_bags > 1:
            bags = _unpacked(rest["bags"], (n_bags, *shape), f"seen[{place}]: bags")
        found.append(PairTable((first, second), values, weights, bags))
    return tuple(found)


def _axis(feature: int, bins: Any, name: str) -> PairAxis:
    """The bins of a feature, from what a file holds."""
    if type(bins) is not list or len(bins) >= MOST_BINS:
        raise ValueError(f"{name}: bins must be lists of fewer than {MOST_BINS}.")
    if bins and all(type(own) is list for own in bins):
        numbers = [number for own in bins for number in own]
        is_right = all(type(own) is int and 0 <= own < MOST_CATEGORIES for own in numbers)
        if not is_right or len(set(numbers)) < len(numbers) or not all(bins):
            raise ValueError(f"{name}: groups must hold different numbers of categories.")
        return PairAxis(feature, groups=tuple(map(tuple, bins)))
    if not all(own == "-inf" or is_finite(own) for own in bins):
        raise ValueError(f'{name}: thresholds must be finite floats or "-inf".')
    ends = np.asarray([*map(float, bins), np.inf])
    if not (np.diff(ends) > 0).all():
        raise ValueError(f"{name}: thresholds must be increasing.")
    return PairAxis(feature, ends)


def _values(given: Any, shape: tuple[int, ...], name: str, vote: ValueRule) -> np.ndarray:
    """The values of a table, from nested lists."""
    level = [given]
    for length in shape:
        if not all(type(own) is list and len(own) == length for own in level):
            raise ValueError(f"{name}: values must be nested lists of the shape {shape}.")
        level = [inner for own in level for inner in own]
    for value in level:
        if not vote.is_right(value):
            raise ValueError(f"{name}: values must be {vote.wanted}; got {shown(value)}.")
    return np.asarray(level, dtype=np.float64).reshape(shape)


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
