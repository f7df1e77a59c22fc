"""The engine for CUDA devices: the same integers as the reference, at the cost of histograms.

    device          what the engine needs of a device, and how CuPy provides it
    layout          how data lie in the device's memory: groups of codes, records of the kernels
    device_memory   what stays on the device, and what is streamed or sorted again
    source_table    the caller's table, on the device or copied to it some columns at a time
    sorting         a feature sorted, and cut into bins
    codes           each value as a byte: on the device, or streamed to it
    orders          the sorted orders of the features, as many as there is room for
    table           all of these together: a table prepared for the rounds
    steps           what a round decides, in one place on the device
    histograms      what is added up, and the sums over the bins
    category_sums   the sums over categories, gathered and copied to the host
    update_pass     a round's pass over the samples for classic stumps: scores and weights
    losses          the same pass for real, Newton and shared votes
    search          what the searches for the best cut have in common
    stump_search    from histograms to the best classic stump
    interval_search the same for intervals and stumps
    split_search    from histograms to the best split, for other votes
    state           a run: update and search, queued together once a round
    held_out        held-out samples: a round's votes, and what early stopping adds up
    pairs           runs of boosting by pairs of features
    engine          what `engines.route` needs to know of all this
    prediction      the sum of step functions, a thread for each row

A *classic stump* has discrete votes for one output. Kernels are CUDA C++, in files beside the stage
that launches them: `update_pass.cu`, `losses.cu`, `search.cu` for classic stumps, `intervals.cu`,
`splits.cu` for other votes, `cells.cu` for shards of a cluster, `codes.cu`, `categories.cu`,
`held_out.cu`, `pairs.cu`, `prediction.cu`. All include `common.cuh`.
CuPy is not imported before there is an array on a GPU, or a device is asked for.
"""
