"""Boosting: votes, rounds, and runs over several classes. Nothing here knows scikit-learn.

votes         what a round's regions vote, and the records of rounds
held_out      scores of held-out samples, the same on every device
rounds        one run, a round at a time or many; trainings of several classes and bags
checkpoints   the rounds so far in a file, from which a fit goes on
pairs         pairs of features, learnt from what the main effects leave
"""
