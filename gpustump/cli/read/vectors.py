"""Vectors beside a table in an archive, read when a command asks for them, and not before."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from gpustump.data.columns import ArrayColumn


class Vectors(Mapping[str, ArrayColumn]):
    """Vectors that a file holds beside its table; each is read when it is first asked for.

    Parameters
    ----------
    lengths : mapping of str to int
        The number of values of each.
    read : callable
        Reads the vector of a name.
    """

    def __init__(self, lengths: Mapping[str, int], read: Callable[[str], ArrayColumn]) -> None:
        self._lengths, self._read = dict(lengths), read
        self._known: dict[str, ArrayColumn] = {}

    def __getitem__(self, name: str) -> ArrayColumn:
        if name not in self._lengths:
            raise KeyError(name)
        if name not in self._known:
            self._known[name] = self._read(name)
        return self._known[name]

    def __contains__(self, name: object) -> bool:
        return name in self._lengths

    def __iter__(self) -> Iterator[str]:
        return iter(self._lengths)

    def __len__(self) -> int:
        return len(self._lengths)

    def with_rows(self, mask: np.ndarray) -> Vectors:
        """Those with a value for each row, in the rows where a mask is true."""
        n_kept = int(np.count_nonzero(mask))
        kept = {name: n_kept for name, length in self._lengths.items() if length == len(mask)}
        return Vectors(kept, lambda name: self[name].with_rows(mask))


def vectors_in_rows(
    vectors: Mapping[str, ArrayColumn], mask: np.ndarray
) -> Mapping[str, ArrayColumn]:
    """The vectors with a value for each row, in the rows where a mask is true."""
    if isinstance(vectors, Vectors):
        return vectors.with_rows(mask)
    return {n: v.with_rows(mask) for n, v in vectors.items() if len(v.values) == len(mask)}
