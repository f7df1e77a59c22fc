"""The classes of labels that are spread over partitions, and the weights of these classes.

A partition may lack some labels, and its worker knows only its own. So the labels of all partitions
are gathered first, with the number of rows of each. Then the classes and their weights are sent to
all workers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from gpustump.dask.partitions import Summary
from gpustump.dask.shards import ByPart, DaskShards
from gpustump.data.labels import encode, listed
from gpustump.data.parameters import Scoring
from gpustump.data.weights import PRODUCT, ClassWeight, class_factors
from gpustump.estimators.held_out import Earlier, refuse_absent_classes


def labels_of(
    shards: DaskShards, summaries: Mapping[int, Summary], class_weight: ClassWeight
) -> list[np.ndarray]:
    """The distinct labels of each partition's samples, whose weights are multiplied first.

    Parameters
    ----------
    shards : DaskShards
    summaries : mapping from numbers of partitions to Summary
        Those of the partitions to train on.
    class_weight : None, "balanced" or mapping

    Raises
    ------
    ValueError, TypeError
        If class weights do not fit the labels.
    """
    with_rows = {part: own for part, own in summaries.items() if own.n_rows}
    if class_weight is None:
        return [own.labels for own in with_rows.values()]
    labels = union_of([own.counted[0] for own in with_rows.values()])
    counts: Counter[object] = Counter()
    for own in with_rows.values():
        counts.update(dict(zip(*(part.tolist() for part in own.counted), strict=True)))
    factors = class_factors(class_weight, labels, [counts[label] for label in labels.tolist()])
    message = ByPart(dict.fromkeys(with_rows, (labels, factors)))
    found = [own for answer in shards.ask("weigh_labels", message) for own in answer]
    had_weight = any(len(own.labels) for own in with_rows.values())
    if had_weight and not any(map(len, found)):
        raise ValueError(f"{PRODUCT} is zero for every sample; at least one must be positive.")
    return found


def classes_of(labels: Sequence[np.ndarray], earlier: Earlier | None) -> np.ndarray:
    """All classes, whichever partitions they are in.

    Parameters
    ----------
    labels : sequence of ndarray
        The distinct labels of each partition.
    earlier : Earlier or None
        What a warm start goes on from.

    Raises
    ------
    ValueError, TypeError
        If there are others than in the earlier fit.
    """
    if not any(map(len, labels)):
        raise ValueError("sample_weight is zero for every sample; at least one must be positive.")
    union = union_of(labels)
    classes, _ = encode(union, union)
    if earlier is not None and not np.array_equal(classes, earlier.target.classes):
        raise ValueError(
            f"y holds the classes {listed(classes.tolist())}, but with warm_start=True it must "
            f"hold those of the earlier fit, {listed(earlier.target.classes.tolist())}."
        )
    return classes


def check_watched_labels(
    summaries: Mapping[int, Summary], classes: np.ndarray, scoring: Scoring
) -> None:
    """Check that a model of these classes can be scored on the rows to watch.

    Parameters
    ----------
    summaries : mapping from numbers of partitions to Summary
        Those of the partitions to watch.
    classes : ndarray (n_classes,)
    scoring : str

    Raises
    ------
    ValueError
        If a label is no class, or if the score needs a class that has no row.
    """
    found = {label for own in summaries.values() for label in own.labels.tolist()}
    places = {label: number for number, label in enumerate(classes.tolist())}
    unknown = sorted(found - set(places), key=str)
    if unknown:
        raise ValueError(
            f"y_val holds {listed(unknown)}, but the classes of y are {listed(classes.tolist())}."
        )
    numbers = np.asarray([places[label] for label in found])
    refuse_absent_classes(scoring, classes, numbers)


def check_watched_rows(summaries: Mapping[int, Summary]) -> None:
    """Refuse partitions to watch that have no rows of positive weight.

    Raises
    ------
    ValueError
    """
    if not any(own.n_rows for own in summaries.values()):
        raise ValueError("X_val has 0 sample(s) while a minimum of 1 is required.")
    if not any(own.n_samples for own in summaries.values()):
        raise ValueError("sample_weight_val is zero for every sample; one must be positive.")


def union_of(labels: Sequence[np.ndarray]) -> np.ndarray:
    """The distinct labels of all partitions, sorted."""
    kinds = {"text" if own.dtype.kind in "UO" else "numbers" for own in labels if len(own)}
    if len(kinds) > 1:
        raise TypeError(
            "y holds text in some partitions and numbers in others. Make all of one type."
        )
    return np.unique(np.concatenate([own for own in labels if len(own)]))
