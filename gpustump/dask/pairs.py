"""Pairs of features on a cluster: they are learnt by the process that calls `fit`.

A turn of many pairs would take a message for each of them, so the samples come to where the turns
are made: each value once, beside classes and weights. What is learnt is what one machine learns of
the same rows. (The main effects, which need most of the work, are learnt by the workers.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gpustump.boosting.pairs.learning import LearntPairs, learn_pairs
from gpustump.boosting.rounds.bags import Share
from gpustump.boosting.rounds.training import HeldOutRows, Samples, Settings, Trained
from gpustump.dask.shards import ByPart, DaskShards
from gpustump.data.parameters import Interactions
from gpustump.data.readable import readable_bytes
from gpustump.engines.contract import Resources
from gpustump.engines.cpu.runtime.host_memory import has_room

Part = tuple[np.ndarray, np.ndarray, np.ndarray]
"""A partition's samples: values (n, n_features), classes or targets, and weights."""

_SAMPLE_BYTES, _VALUE_BYTES = 64, 6
"""About how many bytes a sample takes here, and each of its values besides its own bytes."""


def refuse_large(n_samples: int, n_features: int, value_bytes: int) -> None:
    """Refuse samples that do not fit into this process.

    Raises
    ------
    ValueError
    """
    needed = n_samples * (n_features * (value_bytes + _VALUE_BYTES) + _SAMPLE_BYTES)
    if not has_room(needed):
        raise ValueError(
            f"interactions need all rows in the process that calls fit, and its memory has no room "
            f"for {readable_bytes(needed)}. Take interactions=0, or call fit where there is more."
        )


class _Rows(NamedTuple):
    """The samples of all partitions, one after the other.

    Attributes
    ----------
    X : ndarray (n_samples, n_features)
    samples : Samples
    first : dict of int to int
        The first sample of each partition.
    """

    X: np.ndarray
    samples: Samples
    first: dict[int, int]

    @classmethod
    def of(cls, parts: Mapping[int, Part], dtype: str) -> _Rows:
        numbers = sorted(parts)
        values, classes, weights = (
            np.concatenate([parts[number][which] for number in numbers]) for which in range(3)
        )
        sizes = np.cumsum([0, *(len(parts[number][2]) for number in numbers)]).tolist()
        samples = Samples(np.arange(len(weights)), classes, weights)
        return cls(
            values.astype(dtype, copy=False), samples, dict(zip(numbers, sizes, strict=False))
        )

    def numbers_of(self, chosen: ByPart) -> np.ndarray:
        """The numbers of samples that are given by their numbers within their partitions."""
        found = [self.first[part] + own for part, own in chosen.items()]
        return np.sort(np.concatenate([np.zeros(0, dtype=np.int64), *found]))


def learnt_here(
    shards: DaskShards,
    shares: Sequence[Share[ByPart]],
    trained: Sequence[Trained],
    n_classes: int,
    settings: Settings,
    wanted: Interactions,
    dtype: str,
) -> LearntPairs | None:
    """The pairs that `learn_pairs` learns of the rows on all workers.

    Parameters
    ----------
    shards : DaskShards
    shares : sequence of Share
        For each bag what it leaves out.
    trained : sequence of Trained
    n_classes : int
    settings : Settings
    wanted : Interactions
    dtype : str
        In which values are compared.
    """
    if not wanted.number:
        return None
    parts: tuple[dict[int, Part], dict[int, Part]] = {}, {}
    for answer in shards.ask("rows_by_part"):
        for known, more in zip(parts, answer, strict=True):
            known.update(more)
    rows = _Rows.of(parts[0], dtype)
    watched = None
    if parts[1]:
        table = _Rows.of(parts[1], dtype)
        watched = HeldOutRows(replace(table.samples, rows=None), table.X)
    here: list[Share[Samples]] = []
    for share in shares:
        left_out = rows.numbers_of(share.samples)
        is_kept = np.ones(len(rows.X), dtype=bool)
        is_kept[left_out] = False
        held_out = watched
        if held_out is None and settings.stopping is not None and len(left_out):
            held_out = HeldOutRows(rows.samples.taken(left_out))
        here.append(Share(rows.samples.taken(np.flatnonzero(is_kept)), held_out, None))
    unlimited = replace(settings, resources=Resources())  # its limit is the workers'
    return learn_pairs(rows.X, here, trained, n_classes, unlimited, wanted)
