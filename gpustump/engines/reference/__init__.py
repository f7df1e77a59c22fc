"""The reference engine: the scan in the array API, on arrays of any library.

    table           every feature sorted once
    stump_scan      the best stump of sorted features under integer weights
    interval_scan   the best interval
    state           one run: weights, scores, and the search
    engine          what the route asks: can it train this, and with how much memory

It is slower than the compiled engines, runs everywhere, and is what they are compared with.
"""
