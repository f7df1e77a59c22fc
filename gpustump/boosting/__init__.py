"""Boosting: votes, rounds, and runs over several classes.

    votes             what every kind of votes decides: what a cut votes, and what that changes
    discrete_votes    AdaBoost's votes of one output: one number and a sign for each region
    split_votes       votes of splits, whose regions have numbers of their own: what all share
    exponential_votes   AdaBoost's real votes, and discrete votes that several outputs share
    newton_votes      LogitBoost's votes
    vote_settings     which of them a run makes
    exact_numbers     logarithms and exponentials of votes
    quick_exponentials   exponentials in whole numbers, where they leave no doubt
    rounds            one run, a round at a time
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
    claims            what a model says of its runs
    auditing          the runs that a model claims, made again and compared
    one_hypothesis    one stump, split or interval without boosting
    run_logs          what a run has made so far, from which it goes on without a search
    checkpoints       when these logs are written to a file
    checkpoint_file   the file, written and read with distrust
    termination       ending by SIGTERM only once the file is written
    observing         who is told of runs and rounds as they begin and end
    progress          the progress bar

Nothing here knows scikit-learn.
"""
