"""The progress bar: rounds, training error and rate, on a terminal or in a notebook.

tqdm draws it: as text on a terminal; in a notebook as a widget, or as text if there are no widgets.
Output to a file or a pipe has no bar. Without tqdm, training goes on without a bar, and a warning
says so.
"""

from __future__ import annotations

import contextlib
import importlib.util
import warnings
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

from gpustump.arrays.devices import how_to_install
from gpustump.engines.announcements import in_notebook, is_read

if TYPE_CHECKING:
    from gpustump.boosting.votes.votes import AnyRound


class Bar:
    """A bar over the rounds of all runs, as a context manager.

    The bar disappears when training ends, except in notebooks.

    Parameters
    ----------
    total : int
        The largest number of rounds to make.
    shown : bool
        Whether to show the bar, if that is possible.
    note : str, optional
        The text before the bar.
    done : int
        How many of them an earlier process has made.
    """

    def __init__(self, total: int, *, shown: bool, note: str | None = None, done: int = 0) -> None:
        self._bar: Any = None
        if not shown or not is_read():
            return
        try:
            tqdm = _tqdm()
        except ImportError:
            warnings.warn(f"the progress bar needs tqdm; {how_to_install('cli')}", stacklevel=2)
        else:
            self._bar = tqdm(
                total=total, initial=done, desc=note, unit="round", leave=in_notebook(),
                dynamic_ncols=True,
            )  # fmt: skip

    @property
    def is_shown(self) -> bool:
        """Whether a bar is drawn."""
        return self._bar is not None

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()

    def advance(self, record: AnyRound) -> None:
        """One more round is done."""
        if self._bar is not None:
            self._bar.set_postfix(error=f"{record.training_error:.4f}", refresh=False)
            self._bar.update()

    def skip(self, n_rounds: int) -> None:
        """Take off rounds that will not be made, because a run ended before its limit."""
        if self._bar is not None and n_rounds:
            self._bar.total -= n_rounds
            self._bar.refresh()


@contextlib.contextmanager
def counting_bar(total: int, unit: str) -> Iterator[Callable[[], None]]:
    """A bar over things that are done one by one; what it yields is called after each."""
    is_shown = is_read() and importlib.util.find_spec("tqdm") is not None
    bar = _tqdm()(total=total, unit=f" {unit}", leave=False) if is_shown else None
    try:
        yield (lambda: None) if bar is None else bar.update
    finally:
        if bar is not None:
            bar.close()


def _tqdm() -> Any:
    """tqdm's bar: text, or in a notebook a widget where ipywidgets is installed."""
    if not in_notebook():
        from tqdm import tqdm
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it would warn that there are no widgets
            from tqdm.auto import tqdm
    return tqdm
