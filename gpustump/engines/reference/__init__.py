"""The heart of the package: the scan in the array API, on arrays of any library.

It is written once, in the terms of the book: cumulative sums in sorted order, over all features at
once. All other engines are faster ways to its integers, and are tested against it.

    table           every feature sorted once
    stump_scan      the best stump of sorted features under integer weights
    interval_scan   the best interval
    split_scan      the best split under real or Newton votes, or for several outputs
    integers        what the scans add up, and what a loss must provide
    exponential_loss, logistic_loss, softmax_loss       the losses of classes
    squared_loss, quantile_loss, ratio_loss             those of quantities
    state           one run: a loss, scores, and the search
    engine          what `engines.route` needs to know: what it can train, memory and time
    prediction      the scores of a finished model
    running_scores  scores that grow term by term

It is slower than the compiled engines, but runs everywhere.
"""
