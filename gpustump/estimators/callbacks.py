"""scikit-learn's own callbacks, where its version has them (1.9 and later).

`set_callbacks` comes from scikit-learn, and so do callbacks that measure or show a fit, such as
`sklearn.callback.ProgressBar` and `ScoringMonitor`. They see a fit as a tree of tasks: the fit; in
it, with several bags, a task for each; in that, with several runs, a task for each class; and in
that a task for each round. They get the table, the labels and the weights as they were passed to
`fit`, and the classifier as if the fit had stopped there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from gpustump.boosting.rounds.training import Observer, SoFar, Trained

__all__ = ["CallbackSupportMixin", "FitTasks", "with_callbacks"]

try:
    from sklearn.callback import CallbackSupportMixin
    from sklearn.callback import with_callbacks as _managed
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Replaces scikit-learn's class, which has `set_callbacks`."""

    def _managed(method: Any) -> Any:
        return method


_Method = TypeVar("_Method", bound=Callable[..., Any])


def with_callbacks(method: _Method) -> _Method:
    """A `fit` that tells scikit-learn's callbacks when it ends, also by an error."""
    return cast(_Method, _managed(method))


Attributes = Callable[[Sequence[Trained]], dict[str, Any]]
"""A function from the trainings of all bags, or the only one, to the fitted attributes."""


class FitTasks(Observer):
    """Tells scikit-learn's callbacks.

    Parameters
    ----------
    estimator : BoostedClassifier
        With callbacks.
    data : Data
        What `fit` was given, which callbacks may ask for.
    attributes : Attributes
    """

    def __init__(self, estimator: Any, data: Any, attributes: Attributes) -> None:
        self._estimator, self._data, self._attributes = estimator, data, attributes
        self._open: list[Any] = []  # the contexts of tasks that have begun, the outermost first
        self._has_bags = False
        self._bags: list[Trained] = []  # those that are done
        self._n_rounds: Sequence[int] = ()
        self._n_left = 0

    def bags_begin(self, n_bags: int) -> None:
        """Begin the task of the fit, in which each bag has a task."""
        self._has_bags = True
        self._begin(self._estimator._init_callback_context(max_subtasks=n_bags))

    def bags_end(self) -> None:
        """End the task of the fit."""
        self._end()

    def training_begins(self, n_rounds: Sequence[int]) -> None:
        """Begin the task of the fit, or of a bag, unless it began on another device already."""
        if len(self._open) > self._has_bags:
            return
        self._n_rounds = n_rounds
        n_tasks = len(n_rounds) if self._has_runs else n_rounds[0]
        if self._has_bags:
            self._begin(self._open[0].subcontext(task_name="bag", max_subtasks=n_tasks))
        else:
            self._begin(self._estimator._init_callback_context(max_subtasks=n_tasks))

    def run_begins(self, number: int) -> None:
        """Begin the task of a class, if classes have runs of their own."""
        if self._has_runs and len(self._open) == 1 + self._has_bags:
            n_rounds = self._n_rounds[number]
            self._begin(self._open[-1].subcontext(task_name="class", max_subtasks=n_rounds))
        if not self._in_round:
            self._n_left = self._n_rounds[number]

    def round_begins(self, so_far: SoFar) -> None:
        """Begin the task of a round, unless the run has made all its rounds."""
        if self._n_left and not self._in_round:
            self._n_left -= 1
            self._begin(self._open[-1].subcontext(task_name="round"), so_far)

    def round_ends(self, so_far: SoFar) -> bool:
        """End the task of a round, and return whether a callback wants the run to end."""
        return self._end(so_far)

    def run_ends(self, so_far: SoFar) -> None:
        """End the tasks of a run: a round that was not made, and the task of its class.

        What callbacks return here is ignored, as every class needs a run.
        """
        if self._in_round:
            self._end(so_far)
        if self._has_runs:
            self._end(so_far)

    def training_ends(self, so_far: SoFar) -> None:
        """End the task of the fit, or of a bag."""
        self._end(so_far)
        if self._has_bags:
            self._bags.append(so_far())

    @property
    def _has_runs(self) -> bool:
        return len(self._n_rounds) > 1

    @property
    def _in_round(self) -> bool:
        return len(self._open) > 1 + self._has_bags + self._has_runs

    def _begin(self, context: Any, so_far: SoFar | None = None) -> None:
        self._open.append(context)
        known = None if so_far is None else self._known(so_far)
        context.call_on_fit_task_begin(**self._about(known))

    def _end(self, so_far: SoFar | None = None) -> bool:
        context = self._open.pop()
        return bool(context.call_on_fit_task_end(**self._about(self._known(so_far))))

    def _known(self, so_far: SoFar | None) -> Callable[[], dict[str, Any]]:
        """The fitted attributes, computed only for callbacks that ask for them."""
        return lambda: self._attributes([*self._bags, *([] if so_far is None else [so_far()])])

    def _about(self, known: Callable[[], dict[str, Any]] | None) -> dict[str, Any]:
        """The arguments of a callback's hooks."""
        weights = self._data.sample_weight
        return {
            "estimator": self._estimator,
            "X": self._data.X,
            "y": self._data.y,
            "metadata": None if weights is None else {"sample_weight": weights},
            "reconstruction_attributes": known,
        }
