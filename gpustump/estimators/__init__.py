"""scikit-learn's conventions around the model, and nothing else.

adaboost         AdaBoostClassifier: parameters, and what scikit-learn's AdaBoost offers
logitboost       LogitBoostClassifier: parameters
boosted          what both share: a fit with its settings, warm starts, rounds
one_stump        DecisionStumpClassifier: the best stump alone
fitted           what all share: tables and labels in, a model's answers out
validation_data  which samples a fit watches: rows that are passed to it, or a drawn share
callbacks        scikit-learn's own callbacks are told of a fit's rounds
curves           what is known of each round, as curves by data set and metric
held_out_split   which samples early stopping draws, and whether a warm start may watch them again
"""

from gpustump.estimators.adaboost import AdaBoostClassifier
from gpustump.estimators.logitboost import LogitBoostClassifier
from gpustump.estimators.one_stump import DecisionStumpClassifier

__all__ = ["AdaBoostClassifier", "DecisionStumpClassifier", "LogitBoostClassifier"]
