"""A stratified share of some samples, the one that scikit-learn's `train_test_split` draws.

The held-out samples decide a model, so a seed must mean the same samples with every version of
scikit-learn. And several bags draw from the same samples: what does not depend on the seed is
computed once for all of them. (`train_test_split` takes 1 ms for 500 samples, mostly for checks;
this takes 0.1 ms.)

A class with one sample cannot be in both parts. `train_test_split` refuses it; here its sample is
kept, and the share is drawn from the samples of the other classes.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from gpustump.data.readable import counted


class Strata(NamedTuple):
    """Samples by class.

    Attributes
    ----------
    members : list of ndarray of int64
        The samples of each class that has two or more, increasing.
    sizes : ndarray of int64
        How many they are.
    lone : ndarray of int64
        The samples whose class has no other, in the order of the classes.
    """

    members: list[np.ndarray]
    sizes: np.ndarray
    lone: np.ndarray

    @classmethod
    def of(cls, classes: np.ndarray) -> Strata:
        """From the class number of each sample."""
        sizes = np.bincount(classes)
        by_class = np.split(np.argsort(classes, kind="stable"), np.cumsum(sizes)[:-1])
        lone = [own for own in by_class if len(own) == 1]
        return cls(
            [own for own in by_class if len(own) > 1],
            sizes[sizes > 1],
            np.concatenate([np.empty(0, dtype=np.int64), *lone]),
        )

    def drawn(self, share: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """The numbers of the samples to keep and of a share to set aside, both increasing.

        In both parts each class of two samples or more has its share, to less than one sample.

        Parameters
        ----------
        share : float
            Above 0 and below 1.
        seed : int

        Raises
        ------
        ValueError
            If a part would lack one of these classes.
        """
        n_samples, n_classes = int(self.sizes.sum()), len(self.sizes)
        n_apart = math.ceil(share * n_samples)
        n_kept = n_samples - n_apart
        if not n_classes:
            raise ValueError("every class has one sample only.")
        if min(n_apart, n_kept) < n_classes:
            raise ValueError(
                f"of {counted(n_samples, 'sample')} in classes of two or more, {n_apart} would be "
                f"set aside and {n_kept} kept, but each part needs one of all {n_classes} classes."
            )
        generator = np.random.RandomState(seed)
        to_keep = _proportional(self.sizes, n_kept, generator)
        apart = _proportional(self.sizes - to_keep, n_apart, generator)
        drawn = [own[generator.permutation(len(own))] for own in self.members]
        parts = list(zip(drawn, to_keep.tolist(), apart.tolist(), strict=True))
        kept = np.concatenate([self.lone, *(own[:n_own] for own, n_own, _ in parts)])
        rest = np.concatenate([own[n_own : n_own + n_rest] for own, n_own, n_rest in parts])
        return np.sort(kept), np.sort(rest)


def _proportional(sizes: np.ndarray, n_drawn: int, generator: np.random.RandomState) -> np.ndarray:
    """How many samples of each class make `n_drawn` in all, in proportion to the classes' sizes.

    Numbers are rounded down first. The samples that are then lacking come from the classes that
    lost most by that; ties are drawn at random. As in scikit-learn, a draw is made even if all tied
    classes get one, so that the generator goes on from the same state.
    """
    wanted = sizes / sizes.sum() * n_drawn
    found = np.floor(wanted)
    lost = wanted - found
    n_left = int(n_drawn - found.sum())
    for largest in np.unique(lost)[::-1]:
        if n_left <= 0:
            break
        equal = np.flatnonzero(lost == largest)
        lucky = generator.choice(equal, size=min(len(equal), n_left), replace=False)
        found[lucky] += 1
        n_left -= len(lucky)
    numbers: np.ndarray = found.astype(np.int64)
    return numbers
