"""A model as pictures show it: with the table's names and units, and each text column as one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpustump.model.encoding import Encoding
from gpustump.model.ensemble import StumpEnsemble


@dataclass(frozen=True)
class DrawnModel:
    """What `gpustump.plots` needs.

    Attributes
    ----------
    model : StumpEnsemble
        With the features' names as pictures show them.
    """

    model: StumpEnsemble

    @classmethod
    def of(cls, model: StumpEnsemble, encoding: Encoding) -> DrawnModel:
        """A model whose table was encoded like this."""
        named = replace(model, feature_names=encoding.shown_names)
        return cls(named)
