"""The progress bar: rounds, training error and rate, on a terminal or in a notebook.

tqdm draws it: as text on a terminal; in a notebook as a widget, or as text if there are no widgets.
Output to a file or a pipe has no bar. Without tqdm, training goes on without a bar, and a warning
says so.
"""

from __future__ import annotations

import threading
import warnings
from typing import TYPE_CHECKING, Any

from gpustump.arrays.devices import how_to_install
from gpustump.engines.announcements import in_notebook, is_read

if TYPE_CHECKING:
    from gpustump.boosting.votes.votes import AnyRound


class Bar:
    """A bar over things that are done one by one, as a context manager; any thread may advance it.

    The bar disappears at the end, except in notebooks.

    Parameters
    ----------
    total : int
        The largest number of rounds to make, or of other things.
    shown : bool
        Whether to show the bar, if that is possible.
    note : str, optional
        The text before the bar.
    done : int
        How many of them an earlier process has made.
    unit : str
        What they are.
    """

    def __init__(
        self,
        total: int,
        *,
        shown: bool,
        note: str | None = None,
        done: int = 0,
        unit: str = "round",
    ) -> None:
        self._bar: Any = None
        self._lock = threading.Lock()
        if not shown or not is_read():
            return
        try:
            tqdm = _tqdm()
        except ImportError:
            warnings.warn(f"the progress bar needs tqdm; {how_to_install('cli')}", stacklevel=2)
        else:
            self._bar = tqdm(
                total=total, initial=done, desc=note, unit=unit, leave=in_notebook(),
                dynamic_ncols=True,
            )  # fmt: skip

    @property
    def is_shown(self) -> bool:
        """Whether a bar is drawn."""
        return self._bar is not None

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def advance(self, record: AnyRound | None = None) -> None:
        """One more is done; of a round the training error is shown."""
        if self._bar is None:
            return
        with self._lock:
            if record is not None:
                self._bar.set_postfix(error=f"{record.training_error:.4f}", refresh=False)
            self._bar.update()

    def skip(self, n_rounds: int) -> None:
        """Take off rounds that will not be made, because a run ended before its limit."""
        if self._bar is not None and n_rounds:
            with self._lock:
                self._bar.total -= n_rounds
                self._bar.refresh()


def _tqdm() -> Any:
    """tqdm's bar: text, or in a notebook a widget where ipywidgets is installed."""
    if not in_notebook():
        from tqdm import tqdm
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it would warn that there are no widgets
            from tqdm.auto import tqdm
    return tqdm
