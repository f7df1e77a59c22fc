"""The CPU engines: the same integers as the reference's, in compiled kernels.

    runtime/      how kernels are compiled, kept on disk and loaded; memory, intrinsics
    table/        the table as kernels read it: sorted, or as codes of bins
    loss/         what a run keeps of its samples, and what a step does to them
    histogram/    integers added up for the bins of all features
    split/        the best cut, from sums over bins, over parts of bins, and over samples
    predict/      sums of step functions over rows
    rounds/       many rounds in one call
    pairs/        boosting by pairs of features

Each folder uses those above it. Beside them stand the runs, which put the stages together:
`scanned`, of which `sorted` and `sparse` are kinds, and `coded`; and `engine`, which the route
sees. Importing this package imports neither Numba nor a kernel; `engine` does that when it saves
time.
"""
