"""The members of a model: hypotheses, and what their regions vote for one output or for several.

A `Member` holds discrete votes: every stump votes +vote or -vote, with the stump's own signs, for
one output. A `RegionMember` holds a number for every region and every output of a split, and a
constant; real votes, Newton votes and stumps that all classes share are of this kind. Code for
every kind of model uses only what both have in common.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gpustump.learners.hypothesis import FIRST, MISSING, N_REGIONS, SECOND, signs
from gpustump.learners.kinds import AnySplit, AnyStump, has_one_side
from gpustump.model.additive import AdditiveModel, OutputTerms, is_constant


@dataclass(frozen=True, repr=False)
class Member:
    """One additive score F(x), the sum of vote * h(x) over its stumps, in the order of boosting.

    Attributes
    ----------
    stumps : tuple of Stump, Interval or CategoryStump
    votes : tuple of float
        As many as stumps, all finite.

    Raises
    ------
    ValueError
        If the votes are not as described.

    Examples
    --------
    >>> from gpustump import Member, Stump, StumpEnsemble
    >>> stumps = Stump(0, 0.5, -1, 1, 0.1), Stump(0, 1.5, -1, 1, 0.2)
    >>> member = Member(stumps, (0.5, 0.25))
    >>> member
    Member of 2 stumps
    >>> model = StumpEnsemble((member,), n_features=1)
    >>> model.decision_function([[0], [1], [2]]).tolist()
    [-0.75, 0.25, 0.75]
    """

    stumps: tuple[AnyStump, ...]
    votes: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.stumps) != len(self.votes):
            raise ValueError(
                f"stumps and votes must be equally many; got {len(self.stumps)} and "
                f"{len(self.votes)}."
            )
        object.__setattr__(self, "stumps", tuple(self.stumps))
        object.__setattr__(self, "votes", tuple(map(float, self.votes)))
        if not all(map(math.isfinite, self.votes)):
            wrong = next(vote for vote in self.votes if not math.isfinite(vote))
            raise ValueError(f"votes must be finite; got {wrong!r}.")

    def __repr__(self) -> str:
        return f"Member of {len(self)} stumps"

    def __len__(self) -> int:
        return len(self.stumps)

    @property
    def n_outputs(self) -> int:
        """Discrete votes are for one output."""
        return 1

    @property
    def constant(self) -> np.ndarray:
        """Zero: discrete boosting starts from nothing."""
        return np.zeros(1)

    @property
    def hypotheses(self) -> tuple[AnyStump, ...]:
        """The stumps."""
        return self.stumps

    @property
    def region_votes(self) -> np.ndarray:
        """What regions vote, by the stumps' own signs: (n_stumps, n_regions, 1) of float64."""
        own = np.asarray([signs(stump) for stump in self.stumps], dtype=np.float64)
        votes: np.ndarray = own.reshape(-1, N_REGIONS, 1) * np.reshape(self.votes, (-1, 1, 1))
        return votes

    @property
    def term_importances(self) -> np.ndarray:
        """The absolute vote of each stump, or 0 if the stump is constant: (n_stumps,)."""
        pairs = zip(self.stumps, self.votes, strict=True)
        return np.asarray([0.0 if s.is_constant else abs(vote) for s, vote in pairs])

    @property
    def used_features(self) -> frozenset[int]:
        """The features of the stumps that are not constant."""
        return frozenset(s.feature for s in self.stumps if not s.is_constant)

    def truncated(self, n_rounds: int) -> Member:
        """The member as it was after some rounds."""
        return Member(self.stumps[:n_rounds], self.votes[:n_rounds])

    def picked(self, terms: np.ndarray) -> Member:
        """The member with some of its terms, by their numbers, in that order."""
        numbers = terms.tolist()
        return Member(tuple(self.stumps[k] for k in numbers), tuple(self.votes[k] for k in numbers))


@dataclass(frozen=True, repr=False, eq=False)
class RegionMember:
    """Additive scores F(x): a constant, plus one vote of each split, that of the region of x.

    F_l(x) = constant[l] + sum over the splits of votes[split, region of x, l]

    Real votes and Newton votes are such votes for one output. Stumps that all classes share vote
    for K outputs at once. LogitBoost starts from the class priors, which the constant holds.

    Attributes
    ----------
    splits : tuple of Split or CategorySplit
        In the order of boosting.
    votes : ndarray (n_splits, 3, n_outputs) of float64
        The votes of each split's regions: left, right, missing. Finite; the array is read-only.
    constant : ndarray (n_outputs,) of float64
        Finite; the array is read-only.

    Raises
    ------
    TypeError
        If the splits are others than `Split` and `CategorySplit`.
    ValueError
        If the numbers are not as described.

    Notes
    -----
    Equal members have equal splits and numbers; -0.0 becomes 0.0.

    Examples
    --------
    >>> from gpustump import RegionMember, Split, StumpEnsemble
    >>> votes = [[[-0.5], [1.0], [0.0]]]  # left, right and missing, of one split
    >>> member = RegionMember((Split(0, 2.5),), votes, constant=[0.25])
    >>> member
    RegionMember of 1 splits, n_outputs=1
    >>> model = StumpEnsemble((member,), n_features=1)
    >>> model.decision_function([[1], [4]]).tolist()
    [-0.25, 1.25]
    """

    splits: tuple[AnySplit, ...]
    votes: np.ndarray
    constant: np.ndarray

    def __post_init__(self) -> None:
        object.__setattr__(self, "splits", tuple(self.splits))
        object.__setattr__(self, "constant", _numbers("constant", self.constant))
        object.__setattr__(self, "votes", _numbers("votes", self.votes))
        for split in self.splits:
            if not isinstance(split, AnySplit):
                raise TypeError(f"splits must be of type Split or CategorySplit; got {split!r}.")
        if self.constant.ndim != 1 or not len(self.constant):
            raise ValueError(
                "constant must have a number for each output, and at least one; got the shape "
                f"{self.constant.shape}."
            )
        wanted = (len(self.splits), N_REGIONS, len(self.constant))
        if self.votes.shape != wanted:
            raise ValueError(
                f"votes must have the shape {wanted}, a number for each split, region and output; "
                f"got {self.votes.shape}."
            )

    def __repr__(self) -> str:
        return f"RegionMember of {len(self)} splits, n_outputs={self.n_outputs}"

    def __len__(self) -> int:
        return len(self.splits)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RegionMember):
            return NotImplemented
        return self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __reduce__(self) -> tuple[Any, ...]:
        """Made by the constructor again, since pickle forgets that an array is read-only."""
        return RegionMember, (self.splits, self.votes, self.constant)

    @property
    def _value(self) -> tuple[Any, ...]:
        """What makes two members equal. As there is no -0.0 and no NaN, bytes can be compared."""
        return self.splits, self.votes.tobytes(), self.constant.tobytes()

    @property
    def n_outputs(self) -> int:
        """The number of scores."""
        return len(self.constant)

    @property
    def hypotheses(self) -> tuple[AnySplit, ...]:
        """The splits."""
        return self.splits

    @property
    def region_votes(self) -> np.ndarray:
        """The votes."""
        return self.votes

    @property
    def term_importances(self) -> np.ndarray:
        """Half the largest difference between a split's votes, summed over the outputs: (n_splits,)

        Only regions whose votes were learnt count. Nothing lies right of an infinite threshold, or
        of all categories; and where no training sample lacked a value, missing values vote 0 for
        every output.
        """
        reached = self.votes.copy()
        endless = np.asarray([has_one_side(split) for split in self.splits], dtype=bool)
        reached[endless, SECOND] = reached[endless, FIRST]
        unlearnt = ~endless & ~reached[:, MISSING].any(axis=1)
        reached[unlearnt, MISSING] = reached[unlearnt, FIRST]
        halves: np.ndarray = (reached.max(axis=1) - reached.min(axis=1)).sum(axis=1) / 2
        return halves

    @property
    def used_features(self) -> frozenset[int]:
        """The features of the splits that do not vote the same for every sample."""
        terms = zip(self.splits, self.votes, strict=True)
        return frozenset(split.feature for split, votes in terms if not is_constant(split, votes))

    def truncated(self, n_rounds: int) -> RegionMember:
        """The member as it was after some rounds; it keeps the constant."""
        return RegionMember(self.splits[:n_rounds], self.votes[:n_rounds], self.constant)

    def picked(self, terms: np.ndarray) -> RegionMember:
        """The member with some of its terms, by their numbers, and the constant."""
        splits = tuple(self.splits[k] for k in terms.tolist())
        return RegionMember(splits, self.votes[terms], self.constant)

    def of_output(self, output: int) -> RegionMember:
        """The member with the votes of one output only."""
        own = slice(output, output + 1)
        return RegionMember(self.splits, self.votes[:, :, own], self.constant[own])


AnyMember = Member | RegionMember
"""Both have `hypotheses`, `region_votes`, `constant`, `n_outputs`, and add up in the same way."""

Members = tuple[AnyMember, ...]
"""The members of one model; all are of one type."""


def added_up(members: Sequence[AnyMember]) -> AdditiveModel:
    """The model whose outputs are those of the members, one member after the other."""
    return AdditiveModel(
        tuple(OutputTerms(one.hypotheses, one.region_votes, one.constant) for one in members)
    )


def _numbers(name: str, values: ArrayLike) -> np.ndarray:
    """A read-only copy in float64, without -0.0; refused if a number is not finite."""
    found = np.array(values, dtype=np.float64, order="C") + 0.0
    if not np.isfinite(found).all():
        wrong = found[~np.isfinite(found)][0].item()
        raise ValueError(f"{name} must be finite; got {wrong!r}.")
    found.setflags(write=False)
    return found
