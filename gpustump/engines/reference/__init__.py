"""The reference engine: the scan in the array API, on arrays of any library.

    table           every feature sorted once
    stump_scan      the best stump of sorted features under integer weights
    interval_scan   the best interval
    split_scan      the best split under real or Newton votes, or for several outputs
    integers        what the scans add up, and what a loss has to offer
    exponential_loss, logistic_loss, softmax_loss    the losses
    state           one run: a loss, scores, and the search
    engine          what the route asks: can it train this, and with how much memory
    prediction      the scores of a finished model
    running_scores  scores that grow term by term

It is slower than the compiled engines, runs everywhere, and is what they are compared with.
"""
