"""Boosting: votes, rounds, and runs over several classes.

    votes             the interface of all kinds of votes, and the records of rounds
    discrete_votes    AdaBoost's votes for one output: one number and a sign for each region
    split_votes       votes of splits, whose regions have votes of their own: what all kinds share
    exponential_votes   AdaBoost's real votes, and discrete votes that several outputs share
    newton_votes      LogitBoost's votes
    vote_settings     which of them a run makes
    exact_numbers     logarithms and exponentials of votes
    quick_exponentials   exponentials in whole numbers, if these decide the rounding
    rounds            one run, a round at a time
    batches           rounds as arrays, whose records are made when they are asked for
    looking_ahead     rounds that an engine makes many at a time
    made_rounds       hypotheses, votes and records of such rounds
    smoothing         first rounds that choose among a few cuts at random places
    held_out_samples  labels and weights of held-out samples, of one output or of K
    held_out_scores   scores of held-out samples, the same on every device
    held_out_losses   mean losses among them
    held_out_shares   accuracy, balanced accuracy, area under the ROC curve
    loss_tables       the tables from which losses are computed
    judging           the model after each round, judged by such a score and by the error
    early_stopping    ending a run when such a score no longer rises
    finished          from the rounds of a run to a member of the model
    training          from coded labels to rounds: one run for each class, or one for all
    bags              trainings on shares of one table, side by side or in turn
    one_hypothesis    one stump, split or interval without boosting
    run_logs          the rounds of a run so far, from which it goes on without a search
    checkpoints       when these logs are written to a file
    checkpoint_file   the file: how it is written, read and checked
    termination       ending by SIGTERM only once the file is written
    observing         the interface of observers of runs and rounds
    progress          the progress bar

Nothing here knows scikit-learn.
"""
