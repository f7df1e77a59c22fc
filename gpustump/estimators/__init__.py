"""scikit-learn's conventions around the model, and nothing else.

adaboost         AdaBoostClassifier: parameters, and what scikit-learn's AdaBoost offers
logitboost       LogitBoostClassifier: parameters
glass_box        GlassBoxClassifier: LogitBoostClassifier with other defaults
regressors       StumpBoostingRegressor and GlassBoxRegressor: the same for quantities
boosted          what all boosters share: a fit with its settings, warm starts, rounds
one_stump        DecisionStumpClassifier: the best stump alone
classifying      what all classifiers share: labels, probabilities, scores
fitted           what all share: checking tables, fitting, explanations
target_domain    what a target may be: one of some classes, or a quantity
categorical      which features are categorical, and how their categories are numbered
validation_data  which samples a fit, or a bag, trains on and watches: drawn or passed ones
held_out_split   which samples early stopping draws, and whether a warm start may watch them again
stratified       how these samples are drawn
callbacks        telling scikit-learn's own callbacks of a fit's rounds
curves           what is known of each round, as curves by data set and metric
checkpointing    a fit with a checkpoint: whether it may go on from the file
recorded         the parameters that decide a model, and what a file says of its fit
audit            deriving a model again from its training data, and comparing the two
"""

from gpustump.estimators.adaboost import AdaBoostClassifier
from gpustump.estimators.glass_box import GlassBoxClassifier
from gpustump.estimators.logitboost import LogitBoostClassifier
from gpustump.estimators.one_stump import DecisionStumpClassifier
from gpustump.estimators.regressors import GlassBoxRegressor, StumpBoostingRegressor

__all__ = [
    "AdaBoostClassifier",
    "DecisionStumpClassifier",
    "GlassBoxClassifier",
    "GlassBoxRegressor",
    "LogitBoostClassifier",
    "StumpBoostingRegressor",
]
