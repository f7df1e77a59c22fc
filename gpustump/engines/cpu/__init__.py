"""The CPU engines: the same integers as the reference's, in compiled kernels.

What `route` sees:

    engine        the engines: direct for small tables, binned for medium ones, coded for the others
    host_memory   how much memory they take, and how to manage with less

What a run keeps of its samples, and what a step does to them:

    losses        the loss that a kind of votes lowers
    loss          what the three losses have in common
    exponential_loss, logistic_loss, softmax_loss
    scores        the scores, and how many samples they get wrong
    terms         the integers that a round adds up
    samples       all of that for discrete votes of one output on a coded table

Few samples:

    direct        every feature sorted and scanned whole, without bins
    direct_signs  the best stump or interval of discrete votes
    direct_splits the best split of other votes
    cut_sums      the sums left of each cut of a sorted feature
    offered_sums  sums over the regions of a few given splits

Tables of medium size, for Newton votes, are sorted and coded in small bins:

    binned        the table and its runs
    binned_splits the best split, in one call
    binned_rows   a row's integers for all outputs, added to a bin at once

Many rounds in one call, on small tables, and for Newton votes on medium ones:

    rounds_ahead  the rounds
    certain_votes   votes, or the answer that they are in doubt
    certain_factors   what they multiply weights, odds or probabilities by
    exact_powers    exponentials, and their sums and products, as sums of two floats
    offered_cuts    the best of a few given cuts
    held_out_votes  the sums over held-out samples

A table of many samples is prepared once:

    source_table  the caller's table, and the rows of it that take part
    cuts          where a feature's values are cut into bins
    codes         each value as two bytes, or one: which bin it is in, and where in the bin
    columns       the codes of all features, and room for sums over their bins
    bin_layout    where the bins of each feature are in arrays that hold all features' bins
    bundles       features of few values share a byte
    members       the samples of a feature in the order of their codes
    sorted_bins   the samples of a bin in sorted order; both are found when they are first needed

A round of the coded engine:

    state         a run with discrete votes of one output: these steps put together
    signed_run    its samples, and the sums of their weights over the bins
    signed_search   its search, and what it keeps of the bins from round to round
    split_state   a run with real, Newton or shared votes
    split_search    its search, and what it keeps of the bins
    sweep         discrete votes: the one pass over the samples, and the change in their integers
    bin_sums      other votes: the sums over all bins, exact or estimated
    row_sums      the same for Newton votes of several outputs, whose numbers are in rows
    softmax_rows  the loss of these: all probabilities of a sample side by side
    estimates     sums estimated after a step, and how far they may be off
    changes       what the few samples change, listed and added
    histograms    integers added up for every bin of every column
    search        the best split, by three questions about sums, each about fewer samples
    slices        what the questions and their answers look like
    places        the answers, from codes and samples
    split_scores  what a region adds to a score
    unit_scores   the cuts between units of samples, and bounds for the cuts inside them
    part_bounds     the terms of such a bound
    allowed       which cuts a monotone constraint allows
    allowed_units   units of constrained features: their allowed cuts, and bounds for these
    half_planes     the allowed part of a unit, and the maximum of a convex function there
    bin_profile   what is kept of each bin for discrete votes, to tighten its bound
    drift         what is kept of it for other votes
    intervals     the search for intervals: pairs of cuts
    found_split   a split as kernels find it, and the order of ties
    regions       which region of a cut each sample lies in
    known_regions   the same for a hypothesis from elsewhere

Others:

    category_sums sums over the categories of categorical features
    prediction    the sum of step functions, a tile of rows at a time
    running_scores  scores that grow term by term, for stages and early stopping
    held_out_sums   what early stopping adds up over the held-out samples
    vectors       operations on a few neighbouring numbers at once
    prefetching   memory loaded into the cache ahead of its use
    watching      polling for work for a moment before a thread sleeps
    compiling     how kernels are compiled, and their types declared
    kernel_cache  where compiled kernels are kept
    compile_turns one process compiles, the others wait

A kernel is in the file of its stage. The threads are those of `gpustump.engines.threads`.
Importing this package imports neither Numba nor a kernel; `engine` does that when it saves time.
"""
