"""The weak hypotheses as values: what a stump or an interval predicts.

    hypothesis      what all of them have in common: a partition of one feature into regions
    split           one threshold: left, right, missing; its votes are kept beside it
    stump           a split with a sign for each region
    interval        two thresholds: inside, outside, missing
    category_split  a set of categories on either side
    kinds           all kinds of hypotheses, in two unions, and in words: "1 < x <= 3"
    thresholds      a threshold between two values, and in the dtype of the data
    step_table      a step function of one feature: the sum of many hypotheses' votes
    pair_table      what a pair of features adds: a table over the bins of both
    target_scale    the unit in which quantities are learnt, so that residuals are exact

Nothing here knows how a hypothesis is found, or what it is trained for.
"""
