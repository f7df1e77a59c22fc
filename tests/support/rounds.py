"""Engines against the reference, integer by integer, round by round.

Threads, bins, how much is kept, how samples are cut into pieces: none of it may change what an
engine returns. A `Case` says what to boost on and which votes the rounds make. `check_level`
compares prepared tables, and the functions below it draw samples that are hard on searches.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
from hypothesis import strategies as st

from gpustump.boosting.rounds.known_scores import beginning_of, in_vote_units
from gpustump.boosting.votes.settings import Votes, VoteSettings
from gpustump.boosting.votes.splits import together
from gpustump.boosting.votes.votes import sizes_of
from gpustump.data.parameters import RATIO_LOSSES, Learner, QuantityLoss, VoteKind
from gpustump.engines.category_columns import CategoryColumns
from gpustump.engines.category_table import with_sets
from gpustump.engines.contract import (
    Beginning,
    Cut,
    PreparedTable,
    RegionSums,
    State,
    Step,
    Totals,
    Trainer,
    agreement,
    hypothesis_at,
    split_at,
)
from gpustump.engines.cpu.engine import CODED, SORTED, SPARSE
from gpustump.engines.cuda.engine import CudaEngine
from gpustump.engines.gain import score_of
from gpustump.engines.integer_weights import TOP
from gpustump.engines.objective import Objective
from gpustump.engines.quantiles import rank_of
from gpustump.engines.reference import table as reference_table
from gpustump.engines.reference.engine import REFERENCE
from gpustump.learners.category_split import CategorySplit
from gpustump.learners.hypothesis import signs as signs_of
from gpustump.learners.kinds import AnySplit, AnyStump
from gpustump.learners.split import Split
from gpustump.learners.step_table import VOTE_UNIT, VOTES_LIMIT

Way = tuple[str, PreparedTable]
"""A name, and a table prepared in some way."""

KINDS: dict[str, tuple[VoteKind, int]] = {
    "discrete": ("discrete", 1),
    "real": ("real", 1),
    "newton": ("newton", 1),
    "shared discrete": ("discrete", 3),
    "shared real": ("real", 4),
    "shared newton": ("newton", 3),
    "squared": ("newton", 1),
    "quantile": ("newton", 1),
    "poisson": ("newton", 1),
    "gamma": ("newton", 1),
}
"""The kinds of votes, by name: what a region votes, and for how many outputs here."""


_STARTS: dict[str, Any] = {
    "ArrayTable": REFERENCE.start,
    "SortedTable": SORTED.start,
    "CodedTable": CODED.start,
    "SparseSorted": SPARSE.start,
    "SparseOrder": REFERENCE.start,
}


def trainer(table: Any) -> Trainer:
    """The trainer of a prepared table; a trainer is returned as it is."""
    if isinstance(table, Trainer):
        return table
    if hasattr(table, "start"):  # one of the tests' own
        return Trainer(table, type(table).start)
    kind = type(table).__name__
    return Trainer(table, CudaEngine(table.device).start if kind == "CudaTable" else _STARTS[kind])


def start(
    table: Any, labels: Any, sample_weight: Any, objective: Objective, *beginning: Any
) -> Any:
    """Begin a run on a table."""
    return trainer(table).start(labels, sample_weight, objective, *beginning)


def quantity_of(kind: str) -> QuantityLoss | None:
    """The loss of a quantity, for the kinds that have its name."""
    return next((loss for loss in get_args(QuantityLoss) if loss.startswith(kind)), None)


def quantities(numbers: np.ndarray, loss: QuantityLoss) -> np.ndarray:
    """Targets of a loss from numbers between -1 and 1."""
    if loss not in RATIO_LOSSES:
        found: np.ndarray = np.rint(numbers / VOTE_UNIT) * VOTE_UNIT
        return found
    costs: np.ndarray = np.exp(1.5 * numbers)
    return costs if loss == "gamma" else np.floor(costs)


@dataclass(frozen=True, eq=False)
class Case:
    """Samples and how to boost on them, compared by identity, so that `facts_of` can be cached."""

    X: np.ndarray
    y: np.ndarray
    """-1.0 or 1.0, float64; with more outputs than one the number of the class, int64."""
    weights: np.ndarray
    """Positive, float64."""
    rows: np.ndarray | None = None
    """The rows of X that take part; None for all of them."""
    learning_rate: float = 1.0
    n_rounds: int = 8
    votes: VoteKind = "discrete"
    l2: float = 0.0
    """For Newton votes: lambda, in sample weights."""
    n_outputs: int = 1
    categorical: tuple[int, ...] = ()
    monotone: tuple[int, ...] | None = None
    """The features' constraints."""
    quantity: QuantityLoss | None = None
    offset: np.ndarray | None = None
    """Known scores, (n_samples,) or (n_samples, n_outputs), from which the run then starts."""

    @classmethod
    def of(cls, X: np.ndarray, y: Any, weights: Any = None, **how: Any) -> Case:
        """From labels and weights of any type; equal weights by default."""
        y = np.asarray(y, dtype=np.float64)
        weights = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
        return cls(X, y, weights, **how)

    def voting(self, kind: str, l2: float = 0.0, n_outputs: int | None = None) -> Case:
        """The same samples with votes of another kind, one of `KINDS`, for its number of outputs.

        For several classes the samples labelled +1 are shared out by their last feature.
        """
        votes, usual = KINDS[kind]
        n_outputs = n_outputs or usual
        if quantity := quantity_of(kind):  # a rate above 2 would make residuals larger and larger
            how: Any = {"learning_rate": min(1.0, self.learning_rate), "quantity": quantity}
            return replace(self, y=self._quantity(quantity), votes=votes, l2=l2, **how)
        y = self.y if n_outputs == 1 else self._classes(n_outputs)
        return replace(self, y=y, votes=votes, l2=l2, n_outputs=n_outputs)

    def constrained(self, *directions: int) -> Case:
        """The same with constraints, repeated for as many features as there are."""
        n_features = self.X.shape[1]
        return replace(self, monotone=tuple(np.resize(directions, n_features).tolist()))

    def from_known_scores(self) -> Case:
        """The same samples with scores that are known beforehand, some of them large."""
        random = np.random.default_rng(len(self.y))
        shape = (len(self.y), self.n_outputs)[: 1 + (self.n_outputs > 1)]
        offset = random.normal(size=shape) * random.choice([0.3, 2.0, 200.0], size=shape)
        return replace(self, offset=in_vote_units(np.clip(offset, -300.0, 300.0)))

    def beginning(self, asarray: Callable[[np.ndarray], Any] = np.asarray) -> Beginning | None:
        """Where a run starts, in arrays of a library."""
        if self.offset is None:
            return None
        return beginning_of(asarray(self.y), asarray(self.offset))

    def votes_of_run(self) -> Votes:
        """What decides the votes of a run."""
        settings = VoteSettings(
            self.votes, self.learning_rate, self.l2, self.monotone, self.quantity, level=0.3
        )
        return settings.votes(self.weights, self.n_outputs)

    def with_sets(self, table: Any) -> Trainer:
        """The trainer of a prepared table, with the sets of categorical features."""
        if not self.categorical:
            return trainer(table)
        columns = CategoryColumns.of(self.X, self.rows, self.categorical)
        return with_sets(trainer(table), columns)

    def _quantity(self, loss: QuantityLoss) -> np.ndarray:
        """Targets from -1 to 1, counts, or costs: the labels, with noise."""
        noise = np.random.default_rng(len(self.y)).uniform(-0.5, 0.5, size=len(self.y))
        return quantities(self.y / 2 + noise, loss)

    def _classes(self, n_classes: int) -> np.ndarray:
        last = self.X[:, -1] if self.rows is None else self.X[self.rows, -1]
        place = np.argsort(np.argsort(last, kind="stable"))
        spread = 1 + place * (n_classes - 1) // len(place)
        return np.where(self.y > 0, spread, 0).astype(np.int64)


@dataclass(frozen=True)
class Facts:
    """What the reference knows at the beginning of a round, and what the round then does.

    `hypothesis` holds the thresholds of the cut. `offered` are other splits with the sums over
    their regions, where hypotheses have no signs. `step` is None where boosting ends; before the
    first round of Newton votes it is the step to the constant from which they start. `quantiles`
    are those of the regions, and of all samples together, under the quantile loss.
    """

    cut: Cut
    totals: Totals
    smallest_weight: int
    weights: np.ndarray
    hypothesis: AnyStump | AnySplit
    region_sums: RegionSums
    candidates: dict[AnySplit, RegionSums]
    step: Step | None
    quantiles: tuple[list[float], ...]


@functools.lru_cache(maxsize=1024)
def facts_of(case: Case, learner: Learner) -> tuple[Facts, ...]:
    """Every round of the reference on NumPy, in blocks of the default size.

    They are kept, as one engine after another is compared with them.
    """
    how = {"rows": case.rows, "categorical": case.categorical}
    ready, votes = case.with_sets(reference_table.prepare(case.X, **how)), case.votes_of_run()
    table = ready.table
    objective = votes.objective(learner)
    state = ready.start(case.y, case.weights, objective, case.beginning())
    found: list[Facts] = []
    step = first_step(case, votes, state)
    while len(found) < case.n_rounds:
        cut, totals = state.best_cut(), state.totals
        hypothesis = hypothesis_of(objective, table, cut, totals)
        in_regions = state.region_sums(hypothesis).tolist()
        _check_score(objective, cut, hypothesis, in_regions)
        assert sum(second for own in in_regions for _, second in own) == totals.weight < TOP
        step = step or _next_step(votes, table, state)
        smallest, weights = state.smallest_weight(), np.array(state.weights)
        assert smallest >= 1
        is_asked = not objective.has_signs and len(found) % 2 == 0  # as it takes time
        candidates = _candidates(case, state, len(found)) if is_asked else {}
        about = (cut, totals, smallest, weights, hypothesis, in_regions, candidates, step)
        quantiles = quantiles_of(state, objective, hypothesis, in_regions)
        found.append(Facts(*about, quantiles))
        if step is None:
            break
        state.advance(step)
        step = None
    return tuple(found)


def quantiles_of(
    state: Any, objective: Objective, hypothesis: AnyStump | AnySplit, sums: RegionSums
) -> tuple[list[float], ...]:
    """Those of the regions, and of all samples together; none under other losses."""
    if objective.loss != "quantile":
        return ()
    weights = [own for ((_, own),) in sums]
    ranks = [rank_of(objective.level, own) for own in weights]
    of_all = rank_of(objective.level, sum(weights))
    return state.region_quantiles(hypothesis, ranks), state.region_quantiles(None, [of_all, 0, 0])


def _candidates(case: Case, state: State, number: int) -> dict[AnySplit, RegionSums]:
    """Splits that a round might offer, up to three, and the sums over their regions."""
    found: dict[AnySplit, RegionSums] = {}
    for place in range(min(3, case.X.shape[1])):
        feature = (number + place) % case.X.shape[1]
        values = np.nan_to_num(np.unique(case.X[:, feature].astype(np.float64)), nan=np.inf)
        split: AnySplit = Split(feature, float(values[number % len(values)]))
        if feature in case.categorical:
            split = CategorySplit(feature, (0, 2), (1,))
        found[split] = state.region_sums(split).tolist()
    return found


def hypothesis_of(
    objective: Objective, table: PreparedTable, cut: Cut, totals: Totals
) -> AnyStump | AnySplit:
    """What a cut stands for."""
    return hypothesis_at(table, cut, totals) if objective.has_signs else split_at(table, cut)


def _check_score(
    objective: Objective, cut: Cut, hypothesis: AnyStump | AnySplit, sums: RegionSums
) -> None:
    """The search's score is that of the sums over the regions, to the last bit."""
    if not isinstance(hypothesis, AnySplit):
        assert agreement(sums, signs_of(hypothesis)) == cut.agreement
        return
    weighed = together(sums) if cut.position is None else sums
    if objective.gain == "discrete":  # a whole number, perhaps beyond 2**53
        agreed = [abs(a[0] - b[0]) + abs(c[0]) for a, b, c in zip(*weighed, strict=True)]
        assert sum(agreed) == cut.score
        assert isinstance(cut.score, int)
    assert bits_of(score_of(weighed, objective)) == bits_of(float(cut.score))


def bits_of(score: float) -> tuple[float, str]:
    """What tells two scores apart: integers beyond 2**53, and zeros of either sign."""
    return score, float(score).hex()


def first_step(case: Case, votes: Votes, state: State) -> Step | None:
    """The step to the scores from which boosting starts; None if they are 0, or known."""
    if case.offset is not None:
        return None
    constant = votes.constant(case.y, case.weights)
    if not any(constant):
        return None
    everywhere = (constant, constant, constant)
    return votes.change(votes.known(Split(0, np.inf), everywhere, state)).step


def _next_step(votes: Votes, table: PreparedTable, state: State) -> Step | None:
    """What the round does; None where boosting ends with it, or before it."""
    taken = votes.found(table, state)
    if isinstance(taken, str) or votes.is_perfect(taken):
        return None
    if max(sizes_of(taken.hypothesis, taken.vote)) > VOTES_LIMIT:
        return None
    return votes.change(taken).step


def check_facts(
    facts: Sequence[Facts],
    way: Way,
    run: tuple[Any, Any, Objective] | tuple[Any, Any, Objective, Beginning | None],
    to_numpy: Callable[[Any], np.ndarray] = np.asarray,
) -> None:
    """A run, started with labels, weights, a search and where it begins, must know these facts."""
    name, ready = way[0], trainer(way[1])
    table, state, objective = ready.table, ready.start(*run), run[2]
    for number, fact in enumerate(facts):
        where = f"{name}, round {number}"
        cut = state.best_cut()
        assert cut == fact.cut, where
        assert bits_of(cut.score) == bits_of(fact.cut.score), where
        assert state.totals == fact.totals, where
        assert state.smallest_weight() == fact.smallest_weight, where
        assert np.array_equal(to_numpy(state.weights), fact.weights), where
        asked, sums = list(fact.candidates), list(fact.candidates.values())
        assert state.sums_over_each(asked).tolist() == sums, where
        found = hypothesis_of(objective, table, fact.cut, fact.totals)
        assert found == fact.hypothesis, where
        assert state.region_sums(fact.hypothesis).tolist() == fact.region_sums, where
        given = state, objective, fact.hypothesis, fact.region_sums
        assert quantiles_of(*given) == fact.quantiles, where
        if fact.step is not None:
            state.advance(fact.step)


def check_level(
    X: np.ndarray,
    y: Any,
    weights: Any,
    ways: Iterable[Way],
    *,
    learner: Learner = "stump",
    **how: Any,
) -> None:
    """Boost by the reference; every way must be level with it after every step."""
    case = Case.of(X, y, weights, **how)
    facts = facts_of(case, learner)
    objective = case.votes_of_run().objective(learner)
    for way in ways:
        check_facts(facts, way, (case.y, case.weights, objective))


def signs(score: np.ndarray, random: np.random.Generator, noise: float = 1.0) -> np.ndarray:
    y = np.where(score + random.normal(scale=noise, size=len(score)) > np.median(score), 1.0, -1.0)
    y[:2] = [1.0, -1.0]
    return y


def with_any_weights(
    seed: int, n_samples: int, dtype: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, y and weights over twelve orders of magnitude; some values are missing, some are tied."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_samples, 4)).astype(dtype)
    X[random.random(X.shape) < random.choice([0.0, 0.2])] = np.nan
    X[:, 1] = np.round(X[:, 1] * 2)
    weights = 10.0 ** random.uniform(-6, 6, size=n_samples)
    return X, signs(np.nan_to_num(X[:, 0].astype(float)), random), weights


TABLES = st.integers(1, 4).flatmap(
    lambda d: st.lists(
        st.tuples(
            st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0, np.nan, np.inf]), min_size=d, max_size=d),
            st.sampled_from([-1, 1]),
            st.integers(1, 4),
        ),
        min_size=2,
        max_size=30,
    )
)
"""Tables of few values, with labels and weights: full of ties."""


def tied(samples: list[tuple[list[float], int, int]]) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """One of `TABLES` as X, y and weights, with both labels."""
    X = np.asarray([values for values, _, _ in samples], dtype=np.float32)
    y = np.asarray([label for _, label, _ in samples])
    y[:2] = [1, -1]
    return X, y, [weight for *_, weight in samples]
