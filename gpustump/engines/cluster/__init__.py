"""Rows spread over many places: the same search, whose questions several shards answer together.

A shard holds some rows of a table, codes them, and keeps the weights of its samples. All shards cut
the features into the same bins, so what they answer can be added up, and as everything is an
integer, the sums are those of one table that holds all rows:

    questions     what a shard is asked, and what it answers
    kernel_shard  a shard by the CPU's kernels
    array_shard   a shard on arrays of any library, by the reference's losses
    shards        which of the two a shard is, and how messages reach its methods
    places        many shards as one place, which the CPU engine's search asks
    bins          the bins that all shards share
    table         the table that the rounds see
    state         one run of boosting on it

What carries the messages is not known here: `gpustump.dask` does it between machines, and a list of
shards in one process, `shards.Together`, in tests.
"""
