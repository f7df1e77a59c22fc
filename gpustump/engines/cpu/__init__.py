"""The fused scan for CPUs: the same integers as the reference, at the cost of a histogram.

    codes         each value as a byte: bins that are slices of the sorted order
    bundles       features of few values share a byte
    bins          a bin's samples in sorted order, found when they are first needed
    sweep         a round's one pass over the samples, and the change in every bin
    search        the best edge, the bins that may hide a better cut, and the scan of those
    distribution  D_t: weights, votes and histograms, advanced in one pass a round
    direct        few samples: all of them sorted and scanned, without bins
    prediction    the sum of step functions, a tile of rows at a time

Kernels are Numba's and stand in the file of their stage; `jit` compiles them, `team` holds the
threads. Nothing here is imported before `engine` finds that it pays.
"""
