"""The page as a file, and as what a notebook shows.

The page needs nothing but itself: it may be mailed, and opened without a network. A content
security policy allows its own script and style only, by their hashes; nothing is loaded, and
nothing can be sent. Names and labels of a model may hold anything: they stand in JSON in which no
sign has a meaning in HTML, and scripts put them in as text.
"""

from __future__ import annotations

import base64
import hashlib
import html
import importlib
import re
from importlib import resources
from os import PathLike
from typing import Any, NamedTuple

from gpustump.data.readable import counted, either, printable, shortened
from gpustump.model.ensemble import StumpEnsemble, model_of
from gpustump.model.whole_file import whole_file
from gpustump.page.payload import as_text, payload

MARK = "<!-- a page of gpustump -->"
"""What every page holds near its beginning."""

SCRIPTS = ("model", "text", "draw", "shapes", "overview", "explore", "whatif", "page")
"""The scripts in the order in which they use each other."""


class Page(NamedTuple):
    """The page of a model; a notebook shows it in an output cell.

    Attributes
    ----------
    html : str
        The whole document.

    Examples
    --------
    >>> from gpustump import AdaBoostClassifier, plots
    >>> X, y = [[1], [2], [3], [4], [5]], [0, 0, 1, 0, 1]
    >>> found = plots.page(AdaBoostClassifier(n_estimators=3).fit(X, y), X, y)
    >>> found
    <Page of a model>
    """

    html: str

    def __repr__(self) -> str:
        return "<Page of a model>"

    def _repr_html_(self) -> str:
        """What notebooks show: the page in a frame of its own, without a part in the notebook."""
        text = html.escape(self.html).replace("\n", "&#10;")  # no line that somebody could indent
        return (
            f'<iframe srcdoc="{text}" sandbox="allow-scripts allow-downloads" '
            'title="The page of a model" width="100%" height="800" style="border:0"></iframe>'
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the page to a file, whole or not at all.

        Raises
        ------
        OSError
            If it cannot be written.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> from gpustump import AdaBoostClassifier, plots
        >>> found = plots.page(AdaBoostClassifier().fit([[1], [2]], [0, 1]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     found.save(pathlib.Path(folder, "model.html"))
        """
        with whole_file(path) as file:
            file.write(self.html.encode())


def page(
    model: Any, X: Any = None, y: Any = None, *, known_scores: Any = None, source: str | None = None
) -> Page:
    """A page on which people explore a model: one file of HTML, without a server or a network.

    Parameters
    ----------
    model : StumpEnsemble or fitted estimator
        Also a model from a file: `StumpEnsemble.load(path)`.
    X : array or frame (n_samples, n_features), optional
        Rows, best such that the model was not trained on. They show where values lie, and are there
        to be chosen and changed. The page holds at most 5000 of them, evenly spaced, and of tables
        with more than 100 columns fewer.
    y : array (n_samples,), optional
        Their labels or targets: with them the page says how good the model is on these rows, and
        what edits do to that.
    known_scores : array (n_samples,) or (n_samples, n_outputs), optional
        What is known of these rows beforehand and added to their scores: of counts the logarithm of
        the exposure, of other quantities the `init_score`, of classes half of it.
    source : str, optional
        What the rows are, such as "rows held out in training".

    Returns
    -------
    Page
        A notebook shows it; `save` writes it to a file, and `html` is its text.

    Raises
    ------
    ValueError, TypeError
        If an argument is not as described.

    Notes
    -----
    The page computes the scores itself. They are those of `StumpEnsemble.decision_function` for the
    same numbers as float64, bit for bit, since votes are whole multiples of a power of two, whose
    sums are exact. (Votes made by hand may be other numbers; then sums are rounded.) Probabilities
    may differ in the last digit, as exponentials do between machines.

    What is edited there can be saved as a file, which `StumpEnsemble.edited` takes.

    Examples
    --------
    >>> from gpustump import AdaBoostClassifier, plots
    >>> X, y = [[1, 9], [2, 5], [3, 8], [4, 6], [5, 7]], [0, 0, 1, 0, 1]
    >>> clf = AdaBoostClassifier(n_estimators=10).fit(X, y)
    >>> plots.page(clf, X, y).html.splitlines()[1]
    '<!-- a page of gpustump -->'
    """
    ensemble = model_of(model)
    for name, given in (("y", y), ("known_scores", known_scores)):
        if X is None and given is not None:
            raise ValueError(f"{name} is given without X; give both, or X alone.")
    if X is not None:
        X = ensemble.checked(X) if model is ensemble else model._table(X)
    data = payload(ensemble, X, y, known_scores, source)
    return Page(document(data, ensemble))


def document(data: dict[str, Any], model: StumpEnsemble) -> str:
    """The text of the page that shows some data of a model."""
    folder = resources.files("gpustump.page")
    texts = {name: folder.joinpath(name).read_text("utf-8") for name in ("page.html", "page.css")}
    scripts = (folder.joinpath(f"{name}.js").read_text("utf-8") for name in SCRIPTS)
    script = '"use strict";\n' + "\n".join(scripts)
    policy = (
        f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(texts['page.css'])}; "
        "base-uri 'none'; form-action 'none'"
    )
    target = model.details.get("target")
    parts = {
        "policy": policy,
        "title": html.escape(_title(model, target if isinstance(target, str) else None)),
        "about": html.escape(_about(model)),
        "version": importlib.import_module("gpustump").__version__,
        "digest": data["digest"],
        "style": texts["page.css"],
        "script": script,
        "data": as_text(data),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], texts["page.html"])


def _hash(text: str) -> str:
    """The source expression of a script or style in a content security policy."""
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
    return f"'sha256-{digest}'"


def _title(model: StumpEnsemble, target: str | None) -> str:
    if target is not None:
        return f"A model of {shortened(target)}"
    if model.is_regression:
        return "A model of a quantity"
    names = [shortened(printable(str(label)), 30) for label in model.classes]
    return f"{either(names)}?" if 1 < len(names) <= 3 else f"One of {len(names)} classes"


def _about(model: StumpEnsemble) -> str:
    names = ", ".join(shortened(printable(str(label)), 24) for label in model.classes[:6])
    more = f" and {len(model.classes) - 6} more" if len(model.classes) > 6 else ""
    what = "Predicts a quantity" if model.is_regression else f"Classes {names}{more}"
    pairs = f" and {counted(len(model.pairs), 'pair')}" if model.pairs else ""
    return f"{what} · a sum of step functions{pairs} of {counted(model.n_features, 'feature')}"
