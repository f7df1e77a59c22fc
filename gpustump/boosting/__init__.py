"""Boosting: votes, rounds, and runs over several classes.

    votes             what a loss decides: a cut's vote, and the change that it makes
    discrete_votes    AdaBoost's votes
    rounds            one run, a round at a time
    held_out_samples  labels and weights of held-out samples, of one output or of K
    held_out_scores   scores of held-out samples, the same on every device
    held_out_losses   mean losses among them
    held_out_shares   accuracy, balanced accuracy, area under the ROC curve
    loss_tables       the tables from which losses are computed
    early_stopping    ending a run when such a score no longer rises
    training          from coded labels to rounds, one run for each class
    one_hypothesis    one stump or interval without boosting
    progress          the progress bar

Nothing here knows scikit-learn.
"""
