"""scikit-learn's conventions around the model, and nothing else.

adaboost         AdaBoostClassifier: parameters, and what scikit-learn's AdaBoost offers
logitboost       LogitBoostClassifier: parameters
glass_box        GlassBoxClassifier: LogitBoostClassifier with other defaults
boosted          what all boosters share: a fit with its settings, warm starts, rounds
one_stump        DecisionStumpClassifier: the best stump alone
fitted           what all share: tables and labels in, a model's answers out
validation_data  what a fit, or a bag, trains on and watches: rows that are drawn or passed
callbacks        scikit-learn's own callbacks are told of a fit's rounds
curves           what is known of each round, as curves by data set and metric
held_out_split   which samples early stopping draws, and whether a warm start may watch them again
"""

from gpustump.estimators.adaboost import AdaBoostClassifier
from gpustump.estimators.glass_box import GlassBoxClassifier
from gpustump.estimators.logitboost import LogitBoostClassifier
from gpustump.estimators.one_stump import DecisionStumpClassifier

__all__ = [
    "AdaBoostClassifier",
    "DecisionStumpClassifier",
    "GlassBoxClassifier",
    "LogitBoostClassifier",
]
