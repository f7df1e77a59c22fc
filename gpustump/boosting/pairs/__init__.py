"""Pairs of features: what is left when the main effects are learnt, and two features explain."""
