"""Discrete votes of one output: the best cut of a round, and what is kept of the bins.

The sums over all bins are given; a place answers the questions about fewer samples. So the same
search works for a table on one machine and for one whose rows are spread over many.
"""

from __future__ import annotations

import numpy as np

from gpustump.engines.contract import Cut, Search, Step, constant_cut
from gpustump.engines.cpu.loss.samples import Update
from gpustump.engines.cpu.split.bin_profile import Profile, note_units, reach_all
from gpustump.engines.cpu.split.search import BestSplit, Edges, Place, Weigher
from gpustump.engines.cpu.split.slices import Slices
from gpustump.engines.cpu.table.bin_layout import BinLayout
from gpustump.engines.threads import Team


class SignedSearch:
    """The search of one run.

    Parameters
    ----------
    layout : BinLayout
    search : Search
        With signs.
    team : Team

    Attributes
    ----------
    profile : Profile
        What is known of the bins from this round and earlier ones.
    edges : Edges
        The sums over the bins in the last search.
    """

    edges: Edges

    def __init__(self, layout: BinLayout, search: Search, team: Team) -> None:
        self._layout, self._team = layout, team
        self._weigher = Weigher.of(search)  # of stumps; intervals come after them
        self.profile = Profile.empty(len(layout.offset))

    def best(self, place: Place, sums: np.ndarray, signed: int) -> Cut:
        """The largest cut.

        Parameters
        ----------
        place : Place
        sums : ndarray (2, n_slots) of int64
            The sums of the weights of positive and of negative samples in each slot.
        signed : int
            The sum of all signed weights.
        """
        layout = self._layout
        self.edges = edges = Edges.of(sums, layout)
        self.profile = profile = self.profile._replace(positive=sums[0], negative=sums[1])
        up, down = np.empty_like(sums)
        slices = edges.slices._replace(up=up, down=down)

        def ready(low: int, high: int) -> None:
            end = layout.first[high] if high < len(layout.first) else len(layout.offset)
            reach_all(profile, layout.first[low], end, up, down)

        def learn(slots: np.ndarray, units: Slices) -> None:
            note_units(profile, slots, units)

        found = BestSplit(place, self._weigher, constant_cut(signed), self._team)
        _offer_apart(found, edges)
        found.search(edges._replace(slices=slices), ready, learn)
        return found.best.cut

    def follow(self, step: Step) -> None:
        """Prepare for a step, which is about to change the weights."""
        update = Update.of(step)
        if step.halvings < 0 or update.grown < update.kept:
            self.profile.forget()
        elif step.halvings > 0:
            self.profile.halve(step.halvings)


def _offer_apart(found: BestSplit, edges: Edges) -> None:
    """Offer the thresholds above all values, which separate all values from the missing ones."""
    ground, layout = edges.ground, edges.layout
    present, missing = (part[0] - part[1] for part in (ground.present, ground.missing))
    # Unless the labels are opposed, a constant is as good.
    opposed = np.flatnonzero(((present > 0) & (missing < 0)) | ((present < 0) & (missing > 0)))
    if not len(opposed):
        return
    agreement = np.abs(present[opposed]) + np.abs(missing[opposed])
    feature = int(opposed[np.argmax(agreement)])
    position = int(layout.offset[layout.first[feature] + layout.n_bins[feature]]) - 1
    sign = 1 if present[feature] > 0 else -1
    cut = Cut(feature, position, sign, -sign, int(agreement.max()))
    found.offer(cut, lambda: ground.present[:, feature])
