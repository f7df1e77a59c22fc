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

from gpustump.boosting.rounds.training import Observer, SoFar, TaskName, Trained

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
        self._open: dict[TaskName, Any] = {}  # the contexts of tasks that have begun, in order
        self._bags: list[Trained] = []  # those that are done, of several

    def begin(self, task: TaskName, n_tasks: int = 0, so_far: SoFar | None = None) -> None:
        """Begin a task, unless it began on another device already."""
        if task in self._open:
            return
        if self._open:
            *_, above = self._open.values()
            context = above.subcontext(task_name=task, max_subtasks=n_tasks)
        else:
            context = self._estimator._init_callback_context(max_subtasks=n_tasks)  # the fit
        self._open[task] = context
        known = None if so_far is None else self._known(so_far)
        context.call_on_fit_task_begin(**self._about(known))

    def end(self, task: TaskName, so_far: SoFar | None = None) -> bool:
        """End a task, if it has begun, and return whether a callback wants the run to end.

        That counts after a round; after others it is ignored, as every class needs a run.
        """
        if task not in self._open:
            return False
        context = self._open.pop(task)
        is_wanted = bool(context.call_on_fit_task_end(**self._about(self._known(so_far))))
        if task == "bag" and "bags" in self._open and so_far is not None:
            self._bags.append(so_far())
        return is_wanted

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
