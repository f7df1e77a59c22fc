"""Boosting: votes, rounds, and runs over several classes.

    votes             what a loss decides: a cut's vote, and the change that it makes
    discrete_votes    AdaBoost's votes
    rounds            one run, a round at a time
    early_stopping    ending a run by the error on held-out samples
    training          from coded labels to rounds, one run for each class
    one_hypothesis    one stump or interval without boosting
    progress          the progress bar

Nothing here knows scikit-learn.
"""
