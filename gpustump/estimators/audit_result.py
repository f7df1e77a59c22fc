"""The outcome of an audit, as a value and in words.

Numbers are written with all their digits: two sides may differ in the last one only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from gpustump.boosting.votes import Vote
from gpustump.data.readable import counted, listed, printable, quoted, shortened
from gpustump.learners.conditions import condition
from gpustump.learners.kinds import AnySplit, AnyStump
from gpustump.model.ensemble import StumpEnsemble

_CLASSES_SHOWN = 3
"""For how many classes the votes of a shared stump are written out."""

_REASONS = {
    "perfect": "the round before made no error",
    "no edge": "no stump is better than chance there",
    "small vote": "the votes round to zero there",
    "large votes": "the votes become too large there",
    "early": "the score of the held-out samples stopped rising",
    "limit": "that is the most rounds that the parameters allow",
    "callback": "a callback ended it",
}

_HEADS = {
    "features": "the number of features",
    "classes": "the classes",
    "names": "the names of the features",
    "categories": "the categories of a column, or their numbers",
    "kind": "the kind of votes",
    "pairs": "the pairs of features",
    "pair": "the table of a pair of features",
    "digest": "the digest, although all rounds are the same",
}

_WHATS = {
    "constant": "the scores from which it starts",
    "stump": "another stump",
    "error": "another error of the same stump",
    "votes": "other votes of the same stump",
}


What = Literal["constant", "stump", "error", "votes", "end"]


@dataclass(frozen=True)
class Side:
    """A round as the model holds it, or as the data give it.

    Attributes
    ----------
    hypothesis : stump or split of any kind
    vote : float, or tuple as `RegionRound.votes`
        As the model holds it: with several bags, divided by their number.
    score : float or None
        What the data's hypothesis is worth under the weights of its round: the edge of a `Round`,
        the score of a `RegionRound`. None for the model's.
    """

    hypothesis: AnyStump | AnySplit
    vote: Vote
    score: float | None


@dataclass(frozen=True)
class RoundDifference:
    """The first round that is not what the data give.

    Attributes
    ----------
    what : str
        "constant": the scores from which the run starts. "stump": the hypothesis, or its signs.
        "error": only the error that is stored with it. "votes": only the votes. "end": the run ends
        at another round; then the side that has no such round is None.
    bag, run : int
        From 0.
    number : int
        The round's number, from 1; 0 for the constant.
    file, data : Side, tuple of float, or None
        The round in the model and the round from the data; constants as tuples of float.
    reason : str
        If the model has more rounds than the data give, why the run ends: a `stop_reason`.
    """

    what: What
    bag: int
    run: int
    number: int
    file: Side | tuple[float, ...] | None
    data: Side | tuple[float, ...] | None
    reason: str = ""


@dataclass(frozen=True)
class HeadDifference:
    """A difference that is not in a round: in what is compared before the rounds, or in the digest.

    Attributes
    ----------
    what : str
        "features": their number. "classes". "names": those of the features. "categories": how
        categories are numbered. "kind": votes with signs or votes of regions, the number of runs
        and of outputs, and the link. "pairs": which features are paired. "pair": the table of
        one pair. "digest".
    file, data : object
        What the model says and what the data, or the parameters, say.
    """

    what: Literal["features", "classes", "names", "categories", "kind", "pairs", "pair", "digest"]
    file: Any
    data: Any


@dataclass(frozen=True, repr=False)
class Audit:
    """The outcome of an audit; printed, it says all of it in words.

    Attributes
    ----------
    model : StumpEnsemble
    estimator : classifier or regressor
        Unfitted, with the parameters that the model was derived with.
    difference : RoundDifference, HeadDifference or None
        The first one; None if there is none.
    end_derived : bool
        Whether the audit derived where the runs end.
    data_differences : tuple of str, or None
        How the data differ from those that the model was trained on, by their fingerprint. None if
        the model holds no fingerprint.
    notes : tuple of str
        What was not derived, and what may explain a difference.

    Examples
    --------
    >>> from gpustump import AdaBoostClassifier, audit
    >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
    >>> model = AdaBoostClassifier(n_estimators=3).fit(X, y).model_
    >>> audit(model, X, y).same
    True
    >>> print(audit(model, X, [0, 0, 1, 1, 1]))
    result         differs: round 1, another stump
    the file says  column 0 <= 2.5 -> 0, else 1, missing 0
                   vote 0.6931471805582987, error 0.2
    the data say   column 0 <= 2.5 -> 0, else 1, missing 1
                   vote 1.0986122886679368, error 0.0, edge 0.5
    data           not compared with those of the fit: the model holds no fingerprint
    derived by     AdaBoostClassifier(n_estimators=3)
    """

    model: StumpEnsemble
    estimator: Any
    difference: RoundDifference | HeadDifference | None
    end_derived: bool = True
    data_differences: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """Whether the model is the one that the data give, as far as it was derived."""
        return self.difference is None

    @property
    def n_rounds(self) -> int:
        """The rounds of all runs and bags."""
        return sum(map(len, self.model.members))

    def __repr__(self) -> str:
        return f"<Audit: {self._result}>"

    def __str__(self) -> str:
        rows = self.rows()
        width = max(len(name) for name, _ in rows)
        return "\n".join(f"{name:{width}}  {printable(value)}".rstrip() for name, value in rows)

    def rows(self) -> list[tuple[str, str]]:
        """Names and values in words; an empty name continues the value above.

        Examples
        --------
        >>> from gpustump import AdaBoostClassifier, audit
        >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
        >>> model = AdaBoostClassifier(n_estimators=3).fit(X, y).model_
        >>> dict(audit(model, X, y).rows())["data"]
        'not compared with those of the fit: the model holds no fingerprint'
        """
        return [
            ("result", self._result),
            *_sides(self.model, self.difference),
            *self._data_rows(),
            ("derived by", " ".join(repr(self.estimator).split())),
            *[("note", note) for note in self.notes],
        ]

    @property
    def _result(self) -> str:
        if self.difference is not None:
            return f"differs: {_place(self.model, self.difference)}"
        rounds = counted(self.n_rounds, "round")
        return f"the same, {rounds}, digest {self.model.digest()}"

    def _data_rows(self) -> Iterator[tuple[str, str]]:
        if self.data_differences is None:
            yield "data", "not compared with those of the fit: the model holds no fingerprint"
        elif not self.data_differences:
            yield "data", "those of the fit, by their fingerprint"
        for number, text in enumerate(self.data_differences or ()):
            yield "" if number else "data", f"not those of the fit: {text}"


class _Words(NamedTuple):
    """What is needed to put the sides of a difference into words.

    Attributes
    ----------
    model : StumpEnsemble
    run : int
    classes : list of int
        The classes, of several that share a stump, whose votes are written out.
    """

    model: StumpEnsemble
    run: int
    classes: list[int]


def _place(model: StumpEnsemble, difference: RoundDifference | HeadDifference) -> str:
    """Where two sides differ, and in what."""
    if isinstance(difference, HeadDifference):
        return _HEADS[difference.what]
    of = _of_run(model, difference)
    if difference.what == "constant":
        return f"{_WHATS['constant']}{of}"
    return f"round {difference.number}{of}, {_what(difference)}"


def _what(difference: RoundDifference) -> str:
    if difference.what != "end":
        return _WHATS[difference.what]
    if difference.file is None:
        return "which the file does not have"
    reason = _REASONS.get(difference.reason)
    return "which the data do not give" + (f": {reason}" if reason else "")


def _of_run(model: StumpEnsemble, difference: RoundDifference) -> str:
    """Of which class and bag, if there are several."""
    parts = []
    if len(model.members) > 1:
        parts.append(f"class {_label(model.classes[difference.run])}")
    if model.n_bags > 1:
        parts.append(f"bag {difference.bag + 1}")
    return f" of {' in '.join(parts)}" if parts else ""


def _sides(
    model: StumpEnsemble, difference: RoundDifference | HeadDifference | None
) -> Iterator[tuple[str, str]]:
    """What the file says and what the data say."""
    if difference is None:
        return
    if isinstance(difference, HeadDifference):
        if difference.what != "categories":
            yield "the file says", _value(difference.file)
            yield "the data say", _value(difference.data)
        return
    words = _Words(model, difference.run, _telling_classes(difference))
    lacking = "no further round"
    for name, side in (("file says", difference.file), ("data say", difference.data)):
        lines = [lacking] if side is None else _lines(words, side)
        yield f"the {name}", lines[0]
        yield from (("", line) for line in lines[1:])


def _value(value: Any) -> str:
    if isinstance(value, tuple):
        return listed(value)
    return str(value)


def _lines(words: _Words, side: Side | tuple[float, ...]) -> list[str]:
    """A side in words: the stump's condition, its votes, its score."""
    if not isinstance(side, Side):
        return [", ".join(map(repr, side))]
    hypothesis, score = side.hypothesis, side.score
    when = _when(words.model, side)
    name = "edge" if isinstance(hypothesis, AnyStump) else "score"
    worth = [] if score is None else [f"{name} {score!r}"]
    if isinstance(hypothesis, AnySplit):
        return [when, *_votes_of_regions(words, side), *worth]
    labels = _labels(words)
    says = f"{when} -> {labels[hypothesis.polarity]}"
    if when != "always":
        says += f", else {labels[-hypothesis.polarity]}, missing {labels[hypothesis.missing]}"
    return [says, ", ".join([f"vote {side.vote!r}", f"error {hypothesis.error!r}", *worth])]


def _votes_of_regions(words: _Words, side: Side) -> Iterator[str]:
    """What each region votes, for one output or for some of several."""
    votes = np.asarray(side.vote)
    for output in words.classes:
        left, right, missing = map(repr, votes[:, output].tolist())
        of = f" for {_label(words.model.classes[output])}" if votes.shape[1] > 1 else ""
        yield f"votes{of} {left}, else {right}, missing {missing}"
    n_more = votes.shape[1] - len(words.classes)
    if n_more:
        yield f"and votes for {counted(n_more, 'more class', 'more classes')}"


def _telling_classes(difference: RoundDifference) -> list[int]:
    """The outputs whose votes are written out: those in which the sides differ have priority."""
    votes = [
        np.asarray(side.vote)
        for side in (difference.file, difference.data)
        if isinstance(side, Side) and isinstance(side.vote, tuple)
    ]
    if not votes:
        return []
    n_outputs = votes[0].shape[1]
    differ = (votes[0] != votes[-1]).any(axis=0)
    order = sorted(range(n_outputs), key=lambda output: not differ[output])
    return sorted(order[:_CLASSES_SHOWN])


def _when(model: StumpEnsemble, side: Side) -> str:
    """The condition of a stump's first region, its thresholds with all digits."""
    hypothesis = side.hypothesis
    if isinstance(hypothesis, AnyStump):
        is_constant = hypothesis.is_constant
    else:
        votes: Sequence[Any] = np.asarray(side.vote).tolist()
        is_constant = hypothesis.thresholds[0] == math.inf and votes[0] == votes[1]
    if is_constant:
        return "always"
    encoding = model.encoding
    names = encoding.categories(hypothesis.feature) or ()

    def category(number: int) -> str:
        return _label(names[number]) if number < len(names) else str(number)

    name = shortened(encoding.shown_names[hypothesis.feature])
    return condition(hypothesis, name, number=repr, category=category)


def _labels(words: _Words) -> dict[int, str]:
    """What the signs of a run stand for."""
    model = words.model
    if model.is_binary:
        return {-1: _label(model.classes[0]), 1: _label(model.classes[1])}
    own = _label(model.classes[words.run])
    return {-1: f"not {own}", 1: own}


def _label(label: Any) -> str:
    return shortened(quoted(label), 24)
