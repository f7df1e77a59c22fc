"""The CPU engines: the same integers as the reference's, in compiled kernels.

What `route` sees:

    engine        the two engines: direct for small tables, coded for the others
    host_memory   how much memory they take, and how to make do with less

A table is prepared once:

    source_table  the caller's table, and the rows of it that take part
    cuts          where a feature's values are cut into bins
    codes         each value as a byte, or two: which bin it is in, and where in the bin
    bin_layout    where the bins of all features stand in common arrays
    bundles       features of few values share a byte
    sorted_bins   the samples of a bin in sorted order, found when they are first needed

What a run knows of its samples, and what a step does to them:

    losses        the loss that a kind of votes lowers
    loss          what the three losses have in common:
    exponential_loss, logistic_loss, softmax_loss
    scores        the scores, and how many samples they get wrong
    terms         the integers that a round adds up

Few samples:

    direct        every feature sorted and scanned whole, without bins
    direct_signs  the best stump or interval of discrete votes
    direct_splits the best split of other votes
    cut_sums      the sums left of each cut of a sorted feature

A round of the coded engine:

    samples       what a run knows of each sample, and what a step does to it
    sweep         the one pass over the samples, and the change in every bin's weight
    bin_profile   what is known of every bin
    bin_edges     the agreements at the edges between bins, and bounds for the cuts inside
    bin_parts     a closer look at bins, to tighten their bounds
    search        the best split: the best edge, and a scan of the bins that may hold a better cut
    intervals     the same for pairs of cuts
    state         the run: these steps put together

Others:

    found_split   a split as the kernels find it, and the order of ties
    split_scores  what a region adds to a score
    prediction    the sum of step functions, a tile of rows at a time
    compiling     how kernels are compiled, and their types declared
    kernel_cache  where compiled kernels are kept
    compile_turns one process compiles, the others wait

A kernel stands in the file of its stage. The threads are those of `gpustump.engines.threads`.
Importing this package imports neither Numba nor a kernel; `engine` does that when it pays.
"""
