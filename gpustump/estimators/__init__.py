"""scikit-learn's conventions around the model, and nothing else.

adaboost         AdaBoostClassifier: parameters, attributes, rounds
one_stump        DecisionStumpClassifier: the best stump alone
fitted           what both share: tables and labels in, a model's answers out
held_out_split   which samples early stopping holds out
"""

from gpustump.estimators.adaboost import AdaBoostClassifier
from gpustump.estimators.one_stump import DecisionStumpClassifier

__all__ = ["AdaBoostClassifier", "DecisionStumpClassifier"]
