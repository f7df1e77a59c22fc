"""scikit-learn's conventions around the model, and nothing else.

base           what all estimators share: checking tables, fitting, explanations
classifiers    what all classifiers share: labels, probabilities, scores
boosters       what all boosters share: a fit with its settings, warm starts, rounds, curves
adaboost       AdaBoostClassifier: parameters, and what scikit-learn's AdaBoost offers
logitboost     LogitBoostClassifier, and GlassBoxClassifier, the same with other defaults
regressors     StumpBoostingRegressor and GlassBoxRegressor: the same for quantities
stump          DecisionStumpClassifier: the best stump alone
targets        what a target may be: one of some classes, or a quantity; initial scores
categorical    which features are categorical, and how their categories are numbered
held_out       which samples are drawn or passed to be watched, and what a warm start may watch
callbacks      telling scikit-learn's own callbacks of a fit's rounds
checkpointing  a fit with a checkpoint: whether it may go on from the file
recorded       the parameters that decide a model, and what a file says of its fit
audit          deriving a model again from its training data, and comparing the two
"""

from gpustump.estimators.adaboost import AdaBoostClassifier
from gpustump.estimators.logitboost import GlassBoxClassifier, LogitBoostClassifier
from gpustump.estimators.regressors import GlassBoxRegressor, StumpBoostingRegressor
from gpustump.estimators.stump import DecisionStumpClassifier

__all__ = [
    "AdaBoostClassifier",
    "DecisionStumpClassifier",
    "GlassBoxClassifier",
    "GlassBoxRegressor",
    "LogitBoostClassifier",
    "StumpBoostingRegressor",
]
