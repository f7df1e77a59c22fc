"""From histograms to the edges between bins: their agreements exactly, and bounds for the rest."""

from __future__ import annotations

from gpustump.engines.cpu.bin_profile import reach
from gpustump.engines.cpu.compiling import kernel
from gpustump.engines.cpu.found_split import NOTHING, STUMP, Found, better, sign_for_missing

FEATURES_AT_ONCE = 256
"""The edges of so many features are one piece of work."""


@kernel("void(int64[:, :, ::1], Bundles, BinLayout, Profile, int64, int64)")
def _weigh_bins(histograms, bundles, layout, profile, low, high):  # type: ignore[no-untyped-def]
    """The weights of the bins of features `low` to `high`, from the histograms of their columns.

    `histograms` (2, n_columns, 256) hold the weight at each code, of positive and of negative
    samples.
    """
    for sign in range(2):
        weights = profile.positive if sign == 0 else profile.negative
        total = histograms[sign, 0].sum()  # that of every column
        for j in range(low, high):
            own = histograms[sign, bundles.column[j]]
            at, n_bins, default = layout.first[j], layout.n_bins[j], bundles.default[j]
            if default < 0:
                for b in range(n_bins):
                    weights[at + b] = own[b]
                weights[at + n_bins] = own[bundles.missing_code[j]]
                continue
            for b in range(n_bins + 1):
                weights[at + b] = 0
            rest = total
            for e in range(bundles.entry[j], bundles.entry[j + 1]):
                weight = own[bundles.codes[e]]
                weights[at + bundles.slots[e]] += weight
                rest -= weight
            weights[at + default] += rest


@kernel("Found(BinLayout, Profile, int64, int64)")
def best_edge_of_weighed(layout, profile, low, high):  # type: ignore[no-untyped-def]
    """The best edge of features `low` to `high`; notes bounds for what lies between the edges."""
    best = NOTHING
    positive, negative, bound = profile.positive, profile.negative, profile.bound
    for j in range(low, high):
        at, last = layout.first[j], layout.first[j] + layout.n_bins[j]
        present = 0
        for s in range(at, last):
            present += positive[s] - negative[s]
        missing = positive[last] - negative[last]
        profile.present[j], profile.missing[j] = present, missing
        bound[last] = -1
        extra, vote = abs(missing), sign_for_missing(missing, present)
        left = 0
        for s in range(at, last):
            bound[s] = -1
            if layout.has_inner_split[s]:
                up, down = reach(profile, s)
                bound[s] = max(2 * (left + up) - present, present - 2 * (left - down)) + extra
            left += positive[s] - negative[s]
            score = 2 * left - present
            if s + 1 < last and abs(score) + extra >= best.agreement:
                sign, position = 1 if score >= 0 else -1, layout.offset[s + 1] - 1
                best = better(Found(abs(score) + extra, j, STUMP, position, sign, vote), best)
        # The threshold above all values parts what is present from what is missing.
        if (present > 0 and missing < 0) or (present < 0 and missing > 0):
            sign, position = 1 if present > 0 else -1, layout.offset[last] - 1
            best = better(Found(abs(present) + extra, j, STUMP, position, sign, vote), best)
    return best


@kernel("Found(int64[:, :, ::1], Bundles, BinLayout, Profile, int64, int64)")
def best_edge(histograms, bundles, layout, profile, low, high):  # type: ignore[no-untyped-def]
    """The same, of bins that are weighed first: their weights come from the histograms."""
    _weigh_bins(histograms, bundles, layout, profile, low, high)
    return best_edge_of_weighed(layout, profile, low, high)
