"""Learns pairs of features on top of the main effects of all bags.

The bags share the bins and the choice of the pairs: those whose best cut gains most on what the
average of the main effects leaves, measured exactly for every pair of features that can be cut. (Of
large tables evenly spaced rows are measured; of very many features those with the largest main
effects.) Then each bag boosts these pairs on its own samples, from the scores of its own main
effects. The average of the bags' tables is purified, and what is moved becomes part of the main
effects.

Early stopping must not be told by samples that have chosen the pairs. So each bag first boosts the
pairs that its own samples would choose, which shows how many turns pay, and then makes so many
turns with the pairs of all bags. (Of many samples a few held-out ones hardly change the choice.)
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple
from warnings import warn

import numpy as np

from gpustump import arrays
from gpustump.arrays import Array
from gpustump.arrays.devices import DeviceError, explained_errors
from gpustump.boosting.held_out.scores import scorer
from gpustump.boosting.pairs.axes import Axes, axes_of, bins_of
from gpustump.boosting.pairs.purified import purified
from gpustump.boosting.pairs.turns import PairCandidates, Turns, added_up
from gpustump.boosting.rounds.bags import Share
from gpustump.boosting.rounds.known_scores import beginning_of, exponential_of, in_vote_units
from gpustump.boosting.rounds.smoothing import mixed
from gpustump.boosting.rounds.training import Samples, Settings, Target, Trained
from gpustump.boosting.votes.newton import NewtonVotes
from gpustump.boosting.votes.ratio import RatioScale
from gpustump.data.parameters import Interactions
from gpustump.data.readable import caller_level, counted
from gpustump.engines.announcements import announce
from gpustump.engines.contract import Beginning
from gpustump.engines.integer_weights import IntegerWeights
from gpustump.engines.pair_runs import gain_from_threads, mover_to_runs, pair_run
from gpustump.engines.quadrants import PairRun, Turn
from gpustump.engines.threads import Team, threads_of
from gpustump.learners.category_split import CategorySplit
from gpustump.learners.kinds import AnySplit
from gpustump.learners.pair_table import PairAxis, PairTable
from gpustump.learners.split import Split
from gpustump.learners.target_scale import TargetScale
from gpustump.model.additive import AdditiveModel
from gpustump.model.bags import averaged, share
from gpustump.model.members import RegionMember
from gpustump.model.members import added_up as in_parts

PAIR_RATE = 0.4
"""The learning rate of pairs, if that of the main effects is not smaller."""

SMOOTHING_TURNS = 10
"""With how many smoothing turns a run begins, if its main effects have smoothing rounds."""

MOST_TURNS, TURNS = 300, 20
"""The most turns if held-out samples end a run, and the turns if there are none."""

_SAMPLES_OF_A_PAIR = 100
"""With so many samples for each pair that may be chosen, the choice says nothing of a single
sample; then the pairs of all bags are boosted at once."""

_MOST_ADDITIONS, _LEAST_ROWS = 2**27, 2**12
"""To choose pairs, about so many integers are added up; but at least so many rows are taken."""

_MOST_FEATURES = 512
"""The most features of which all pairs are measured."""


class LearntPairs(NamedTuple):
    """What was learnt of pairs.

    Attributes
    ----------
    tables : tuple of PairTable
        Pure, with values (k, m, n_outputs).
    moved : tuple of RegionMember
        For each member of the model what was moved into its main effects.
    """

    tables: tuple[PairTable, ...]
    moved: tuple[RegionMember, ...]


def learn_pairs(
    X: Array,
    shares: Sequence[Share[Samples]],
    trained: Sequence[Trained],
    n_classes: int,
    settings: Settings,
    wanted: Interactions,
    scale: TargetScale | RatioScale | None = None,
) -> LearntPairs | None:
    """Learn pairs on what the main effects of all bags leave; None if there are none to learn.

    Parameters
    ----------
    X : array (n_samples_given, n_features)
    shares : sequence of Share
        As for `train_bags`, which returned `trained`.
    trained : sequence of Trained
    n_classes : int
        0 for a quantity.
    settings : Settings
    wanted : Interactions
    scale : TargetScale or RatioScale, optional
        That of a quantity, whose pairs are for the targets as they are.

    Warns
    -----
    UserWarning
        If a GPU fails or is too small; then the host learns the pairs.
    """
    if wanted.number == 0:
        return None
    own = _Learning(X, shares, trained, n_classes, settings, wanted, scale)
    if len(own.axes) < 2 or n_classes == 1:
        return None
    if settings.show_progress:
        announce(f"learns {counted(wanted.number, 'pair')} of features on what is left")
    try:
        with explained_errors(trained[0].route.place):
            return _learnt(own)
    except DeviceError as error:
        if own.moved is arrays.to_host:
            raise
        warn(
            f"pairs of features are learnt on the host, since the GPU failed: {error}",
            stacklevel=caller_level(),
        )
    return _learnt(replace(own, on_host=True))


@dataclass(frozen=True)
class _Learning:
    """What `learn_pairs` is asked to do, and what follows from it for all bags."""

    X: Array
    shares: Sequence[Share[Samples]]
    trained: Sequence[Trained]
    n_classes: int
    settings: Settings
    wanted: Interactions
    scale: TargetScale | RatioScale | None = None
    on_host: bool = False

    @functools.cached_property
    def members(self) -> list[Any]:
        """The main effects of each bag, as members of a model."""
        return [bag.members for bag in self.trained]

    @functools.cached_property
    def average(self) -> AdditiveModel:
        """The average of the main effects."""
        return in_parts(averaged(self.members)[0] if len(self.members) > 1 else self.members[0])

    @functools.cached_property
    def targets(self) -> list[Target]:
        """What each run of a bag learns."""
        n_outputs, n_runs = self.settings.n_outputs(self.n_classes), len(self.members[0])
        votes = self.settings.votes.votes(self.shares[0].samples.weights, n_outputs)
        numbers = range(n_runs) if n_runs > 1 else (1,)
        is_quantity = self.n_classes == 0
        return [Target(own, n_outputs, votes, is_quantity=is_quantity) for own in numbers]

    @functools.cached_property
    def samples(self) -> Samples:
        """The samples of all bags, on the host; of the table those that are held out, too."""
        held_out = self.shares[0].held_out
        groups = [own.samples.changed(arrays.to_host) for own in self.shares]
        if held_out is not None and held_out.X is None:
            groups = [groups[0], held_out.samples.changed(arrays.to_host)]  # these are all
        if len(groups) == 1:
            return groups[0]
        parts = ([getattr(own, f.name) for own in groups] for f in fields(Samples))
        joined: list[Any] = [None if own[0] is None else np.concatenate(own) for own in parts]
        _, index = np.unique(joined[0], return_index=True)
        return Samples(*joined).changed(lambda own: own[index])

    @functools.cached_property
    def _axes(self) -> Axes:
        constraints = self.settings.votes.monotone or (0,) * self.X.shape[1]
        free = [j for j, constraint in enumerate(constraints) if not constraint]
        effects = {table.feature: table for table in self.average.tables[1]}
        if self.wanted.chosen is not None:
            asked = {feature for pair in self.wanted.chosen for feature in pair}
            free = [j for j in free if j in asked]
        elif len(free) > _MOST_FEATURES:
            reach = {j: float(np.ptp(own.outcomes, axis=0).sum()) for j, own in effects.items()}
            negative = np.asarray([-reach.get(j, 0.0) for j in free])
            largest = np.argsort(negative, kind="stable")[:_MOST_FEATURES]
            free = sorted(free[place] for place in largest.tolist())
        rows = self.samples.rows
        index = np.arange(self.X.shape[0]) if rows is None else rows
        return axes_of(self.X, index, free, self.settings.categorical, effects)

    @property
    def axes(self) -> list[PairAxis]:
        """The bins of the features that pairs may have."""
        return self._axes.axes

    @functools.cached_property
    def moved(self) -> Callable[[Array], Array]:
        """Moves arrays to where runs are made."""
        if self.on_host or self.settings.resources.max_memory is not None:
            return arrays.to_host
        n_bytes = self.X.shape[0] * (len(self.axes) + 16 * self.average.n_outputs)
        return mover_to_runs(self.X, self.trained[0].route, n_bytes)

    @functools.cached_property
    def bins(self) -> Array:
        """The bins of all rows, (n_axes, n_samples_given) of uint8, where runs are made."""
        return bins_of(self.X, self.axes, self.moved, self.settings.resources.n_jobs)

    @functools.cached_property
    def watched_bins(self) -> Array:
        """The same of the table with the held-out samples of all bags."""
        held_out = self.shares[0].held_out
        if held_out is None or held_out.X is None:
            return self.bins
        return bins_of(held_out.X, self.axes, self.moved, self.settings.resources.n_jobs)

    def taken(self, bins: Array, rows: np.ndarray | None) -> Array:
        """The bins of some rows, or of all."""
        if rows is None:
            return bins
        with arrays.computing_on(bins):
            return arrays.namespace_of(bins).take(bins, self.moved(rows), axis=1)

    @functools.cached_property
    def candidates(self) -> np.ndarray:
        """The places of the pairs to choose from, (n, 2) of int64."""
        chosen, features = self.wanted.chosen, [axis.feature for axis in self.axes]
        every = itertools.combinations(range(len(features)), 2)
        found = [(j, k) for j, k in every if chosen is None or (features[j], features[k]) in chosen]
        return np.asarray(found, dtype=np.int64).reshape(-1, 2)

    @functools.cached_property
    def n_bins(self) -> tuple[int, ...]:
        """How many bins of each feature samples have; that of missing values only if some do.

        A cut beside an empty bin would part nothing, and all pairs of a feature would have it.
        """
        taken = self.taken(self.bins, self.samples.rows)
        lacking = zip(self.axes, taken.max(axis=1).tolist(), strict=True)
        return tuple(axis.n_bins - (last < axis.n_bins - 1) for axis, last in lacking)

    def run(
        self, samples: Samples, scores: np.ndarray, target: Target, n_steps: int
    ) -> tuple[PairRun, NewtonVotes]:
        """A run of about so many steps on some samples, from known scores (n_samples, n_outputs);
        both are in NumPy."""
        labels, weights = target.labels(samples), samples.weights
        how = self.settings.votes
        how = replace(how, l2_regularization=how.l2_of(1))  # regions are smaller than a stump's
        votes = how.votes(weights, target.n_outputs).on(labels, weights)
        assert isinstance(votes, NewtonVotes)
        rule = replace(votes, learning_rate=min(PAIR_RATE, votes.learning_rate), monotone=None)
        beginning = _beginning(labels, scores, rule)
        bins = self.taken(self.bins, samples.rows)
        given = bins, self.n_bins, labels, weights, rule.objective(), beginning, n_steps
        return pair_run(*given), rule

    def candidates_of(self, pairs: np.ndarray, bag: int, target: Target) -> PairCandidates:
        """What the smoothing turns of a run offer; there are none without smoothing rounds."""
        n_turns = 0 if self.settings.smoothing is None else SMOOTHING_TURNS
        key = mixed(mixed(np.uint64(bag)) + np.uint64(target.positive))
        n_places = np.asarray(self.n_bins, dtype=np.int64) - 1
        return PairCandidates(n_turns, np.uint64(key), self._axes.keys[pairs], n_places[pairs])

    def is_choice(self, number: int) -> bool:
        """Whether choosing so many pairs tells them about the samples that are held out."""
        n_candidates = len(self.candidates)
        few = self.samples.weights.shape[0] < _SAMPLES_OF_A_PAIR * n_candidates
        return few and number < n_candidates

    def chosen(self) -> np.ndarray:
        """The places of the pairs that are learnt, (n_pairs, 2) of int64."""
        scores = (_scores(self.average, self.X, self.samples, own) for own in self.targets)
        pairs = zip(self.targets, scores, strict=True)
        runs = [(target, self.samples, in_vote_units(own)) for target, own in pairs]
        return self.best(runs, self.wanted.number)

    def best(self, runs: Sequence[tuple[Target, Samples, np.ndarray]], number: int) -> np.ndarray:
        """The pairs whose best cuts gain most in some runs together, the largest gain first.

        A run has a target, samples, and their scores.
        """
        every = self.candidates
        most = _MOST_ADDITIONS // (max(1, len(every)) * self.average.n_outputs)
        gains, team = np.zeros(len(every)), Team(threads_of(self.settings.resources.n_jobs))
        for target, samples, scores in runs:
            n_samples = len(scores)
            n_taken = min(n_samples, max(_LEAST_ROWS, most))
            index = np.arange(n_taken, dtype=np.int64) * n_samples // n_taken
            run, rule = self.run(samples.taken(index), scores[index], target, len(every))
            gains += run.scores(every, rule.objective().l2, team)
        return every[np.argsort(-gains, kind="stable")[:number]]


def _learnt(learning: _Learning) -> LearntPairs | None:
    """Choose pairs, and learn them in each bag."""
    settings, pairs, found = learning.settings, learning.chosen(), dict[int, list[np.ndarray]]()
    if not len(pairs):
        return None

    def learn(bag: int) -> None:
        found[bag] = _tables_of_bag(learning, pairs, bag)

    # One bag takes less memory than its main effects did.
    one_by_one = settings.resources.max_memory is not None
    loss = settings.objective(learning.n_classes).loss
    one_by_one |= not gain_from_threads(loss, learning.bins)
    numbers = range(len(learning.shares))
    Team(1 if one_by_one else threads_of(settings.resources.n_jobs)).each(learn, numbers)
    return _finished(learning, pairs, [found[bag] for bag in numbers])


def _beginning(labels: np.ndarray, scores: np.ndarray, rule: NewtonVotes) -> Beginning:
    """Where a run starts from scores (n_samples, n_outputs)."""
    loss = rule.objective().loss
    if loss in ("logistic", "softmax"):
        return beginning_of(labels, scores[:, 0] if loss == "logistic" else scores)
    own = scores.reshape(1, -1)
    if loss == "squared_error":
        return Beginning(own, own)
    return Beginning(own, exponential_of(own[0] if loss == "poisson" else -own[0])[np.newaxis])


def _scores(model: AdditiveModel, X: Array, samples: Samples, target: Target) -> np.ndarray:
    """The scores of samples for a run, (n_samples, n_outputs): known ones, and those of a model."""
    with arrays.computing_on(X):
        rows = samples.rows
        if rows is not None:
            rows = arrays.namespace_of(X).asarray(rows, device=arrays.device_of(X))
        own = arrays.picked(X, rows)
        found: np.ndarray = arrays.to_host(model.scores(own))
    if target.n_outputs < found.shape[1]:
        found = found[:, target.positive : target.positive + 1]
    offset = target.offset(samples)
    return found if offset is None else found + offset.reshape(len(found), -1)


def _tables_of_bag(learning: _Learning, pairs: np.ndarray, bag: int) -> list[np.ndarray]:
    """The tables of a bag, (k, m, n_outputs) each, with the outputs of all runs."""
    model, axes = in_parts(learning.members[bag]), learning.axes
    shapes = [(axes[j].n_bins, axes[k].n_bins) for j, k in pairs.tolist()]
    samples = learning.shares[bag].samples.changed(arrays.to_host)
    by_run = []
    for target in learning.targets:
        own = _BagRun(learning, bag, target, samples, _scores(model, learning.X, samples, target))
        held_out = own.held_out(model)
        if held_out is None:
            turns = own.turns(pairs, TURNS)
        elif learning.is_choice(len(pairs)):
            own_pairs = learning.best([(target, samples, own.scores)], len(pairs))
            turns = own.turns(pairs, len(own.turns(own_pairs, MOST_TURNS, held_out)))
        else:
            turns = own.turns(pairs, MOST_TURNS, held_out)
        by_run.append(added_up(turns, shapes, target.n_outputs))
    return [np.concatenate(own, axis=2) for own in zip(*by_run, strict=True)]


class _HeldOut(NamedTuple):
    """The held-out samples of a run.

    Attributes
    ----------
    bins : array (n_axes, n_held_out) of uint8
        Where the run is made.
    scores : ndarray (n_outputs, n_held_out) of float64
        Those of the main effects.
    score : callable
        The score of the model, from scores (n_held_out,) or (n_held_out, n_outputs) beside the
        bins.
    tol : float
        By how much it must rise.
    """

    bins: Array
    scores: np.ndarray
    score: Callable[[Array], float]
    tol: float


@dataclass(frozen=True)
class _BagRun:
    """A run of a bag: its samples, and their scores (n_samples, n_outputs) by the main effects."""

    learning: _Learning
    bag: int
    target: Target
    samples: Samples
    scores: np.ndarray

    def turns(self, pairs: np.ndarray, most: int, held_out: _HeldOut | None = None) -> list[Turn]:
        """The turns of some pairs, as far as held-out samples want them."""
        learning, n_steps = self.learning, len(pairs) * min(most, TURNS)
        run, rule = learning.run(self.samples, self.scores, self.target, n_steps)
        turns = Turns(run, pairs, rule, learning.candidates_of(pairs, self.bag, self.target))
        largest = float(np.abs(self.scores).max())
        if held_out is None:
            return turns.made(most, largest)
        now = learning.moved(held_out.scores.copy())

        def judged(steps: Turn | None) -> float:
            nonlocal now
            with arrays.computing_on(now):
                if steps is not None:
                    now = run.added(now, held_out.bins, pairs, steps)
                columns = [now[output, :] for output in range(now.shape[0])]
                stacked = arrays.namespace_of(now).stack
                return held_out.score(columns[0] if len(columns) == 1 else stacked(columns, axis=1))

        return turns.made(most, largest, judged, held_out.tol)

    def held_out(self, model: AdditiveModel) -> _HeldOut | None:
        """The bag's held-out samples; None without early stopping."""
        learning, own = self.learning, self.learning.shares[self.bag].held_out
        stopping = learning.settings.stopping
        if own is None or stopping is None or stopping.patience is None:
            return None
        X = learning.X if own.X is None else own.X
        samples = own.samples.changed(arrays.to_host)
        scores = _scores(model, X, samples, self.target)
        watched = samples.changed(learning.moved)
        with arrays.computing_on(watched.weights):
            validation = self.target.validation(watched, 1)
            score = scorer(stopping.scoring, validation, self.target.votes.objective("stump").link)
        return _HeldOut(
            learning.taken(learning.watched_bins, samples.rows),
            np.ascontiguousarray(scores.T),
            score,
            stopping.tol,
        )


def _finished(
    learning: _Learning, pairs: np.ndarray, of_bags: list[list[np.ndarray]]
) -> LearntPairs | None:
    """The average of the bags' tables, purified."""
    n_bags = len(of_bags)
    samples, scale = learning.samples, learning.scale
    weights = IntegerWeights.of(samples.weights).values.astype(np.float64)
    bins = arrays.to_host(learning.taken(learning.bins, samples.rows))
    tables, moved = list[PairTable](), dict[int, np.ndarray]()
    for (j, k), own in zip(pairs.tolist(), zip(*of_bags, strict=True), strict=True):
        total = np.sum(own, axis=0)
        mean = total if n_bags == 1 else share(total, n_bags)
        if not mean.any():
            continue
        shape = mean.shape[:2]
        cells = bins[j].astype(np.int64) * shape[1] + bins[k]
        on_cells = np.bincount(cells, weights=weights, minlength=shape[0] * shape[1])
        on_cells = on_cells.reshape(shape)
        if learning._axes.keys[j] < learning._axes.keys[k]:
            pure, rows, columns = purified(mean, on_cells)
        else:  # rounding must not depend on which feature comes first
            turned, columns, rows = purified(mean.swapaxes(0, 1), on_cells.T)
            pure = turned.swapaxes(0, 1)
        for place, values in ((j, rows), (k, columns)):
            moved[place] = moved[place] + values if place in moved else values
        bags = np.stack([one - rows[:, np.newaxis] - columns for one in own])
        if scale is not None:
            pure, bags = scale.votes(pure), scale.votes(bags)
        axes = learning.axes[j], learning.axes[k]
        shares = on_cells / on_cells.sum()
        tables.append(PairTable(axes, pure, shares, bags if n_bags > 1 else None))
    if not tables:
        return None
    if scale is not None:
        moved = {j: scale.votes(own) for j, own in moved.items()}
    terms = [one for j, own in sorted(moved.items()) for one in _splits_of(learning.axes[j], own)]
    n_outputs = [own.n_outputs for own in learning.members[0]]
    return LearntPairs(tuple(tables), _as_members(terms, n_outputs))


def _as_members(
    terms: Sequence[tuple[AnySplit, np.ndarray]], n_outputs: Sequence[int]
) -> tuple[RegionMember, ...]:
    """Splits with votes, for members with so many outputs each."""
    splits = tuple(split for split, _ in terms)
    votes = np.stack([own for _, own in terms])
    ends = np.cumsum(n_outputs)
    return tuple(
        RegionMember(splits, votes[:, :, end - own : end], np.zeros(own))
        for own, end in zip(n_outputs, ends.tolist(), strict=True)
    )


def _splits_of(axis: PairAxis, values: np.ndarray) -> list[tuple[AnySplit, np.ndarray]]:
    """A function of a feature's bins, (n_bins, n_outputs), as splits and their votes."""
    found: list[tuple[AnySplit, np.ndarray]] = []
    last, nothing = values[-2], np.zeros_like(values[0])
    everything: AnySplit = Split(axis.feature, np.inf)
    if axis.groups:
        every = tuple(sorted(number for own in axis.groups for number in own))
        everything = CategorySplit(axis.feature, every, ())
        for own, value in zip(axis.groups[:-1], values, strict=False):
            others = tuple(number for number in every if number not in own)
            sides, votes = (own, others), [value - last, nothing, nothing]
            if every[0] not in own:  # the lowest number goes left
                sides, votes = (others, own), [nothing, value - last, nothing]
            found.append((CategorySplit(axis.feature, *sides), np.stack(votes)))
    else:
        for threshold, low, high in zip(axis.thresholds[:-1], values, values[1:], strict=False):
            split = Split(axis.feature, float(threshold))
            found.append((split, np.stack([low - high, nothing, nothing])))
    found.append((everything, np.stack([last, nothing, values[-1]])))
    return found
