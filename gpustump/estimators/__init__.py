"""scikit-learn's conventions around the model, and nothing else.

adaboost         AdaBoostClassifier: parameters, and what scikit-learn's AdaBoost offers
logitboost       LogitBoostClassifier: parameters
glass_box        GlassBoxClassifier: LogitBoostClassifier with other defaults
boosted          what all boosters share: a fit with its settings, warm starts, rounds
one_stump        DecisionStumpClassifier: the best stump alone
fitted           what all share: tables and labels in, a model's answers out
held_out_split   which samples early stopping holds out
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
