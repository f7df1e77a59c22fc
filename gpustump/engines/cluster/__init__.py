"""Rows spread over many places: the same search, whose questions several shards answer together.

A shard holds some rows of a table, codes them, and keeps the weights of its samples. All shards cut
the features into the same bins, so their answers can be added up. All answers are integers, so the
sums are those of one table that holds all rows:

    samples       the rows of a shard: values, classes and weights
    questions     what a shard is asked, and what it answers
    known_bins    the samples of the bins that a shard is asked about
    key_ranges    the sums over their cells
    kernel_shard  a shard that computes with the CPU's kernels
    cuda_shard    a shard that computes with the CUDA kernels
    shards        all shards together: how messages reach them, and where each computes
    sums_source   all shards as one source of sums, which the CPU engine's search asks
    bins          the bins that all shards share
    table         the prepared table, as boosting uses it
    state         one run of boosting on it

How messages travel is not decided here: `gpustump.dask` sends them between machines.
"""
