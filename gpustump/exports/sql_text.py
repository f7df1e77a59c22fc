"""CASE expressions and sums that stay shallow: SQLite takes expressions of 1000 levels at most."""

from __future__ import annotations

from collections.abc import Callable, Sequence

_WIDTH = 16
"""The most branches in one CASE; more are nested, so that few comparisons are made for a value."""

_TERMS = 32
"""The most terms in one pair of parentheses."""


def stairs(below: Callable[[int], str], results: Sequence[str]) -> str:
    """A CASE for a value on one of several steps.

    Parameters
    ----------
    below : callable
        Makes the condition that the value lies on a step, given by its number, if it lies on none
        before.
    results : sequence of str
        The result of each step; that of the last step is for all other values.
    """
    parts: list[tuple[int, str]] = list(enumerate(results))
    while len(parts) > 1:
        groups = [parts[i : i + _WIDTH] for i in range(0, len(parts), _WIDTH)]
        parts = [(group[-1][0], _one_case(below, group)) for group in groups]
    return parts[0][1]


def _one_case(below: Callable[[int], str], parts: Sequence[tuple[int, str]]) -> str:
    *first, (_, last) = parts
    if not first:
        return last
    branches = "".join(f"\n        WHEN {below(number)} THEN {result}" for number, result in first)
    return f"CASE{branches}\n        ELSE {last} END"


def added(terms: Sequence[str], between: str = "") -> str:
    """A sum of terms, in parentheses within parentheses where there are many."""
    parts = list(terms)
    while len(parts) > _TERMS:
        groups = [parts[i : i + _TERMS] for i in range(0, len(parts), _TERMS)]
        parts = [f"({f' +{between} '.join(group)})" for group in groups]
    return f" +{between} ".join(parts)


def largest(function: str, values: Sequence[str]) -> str:
    """The largest of two values or more; the calls are nested, with `_TERMS` values at most."""
    parts = list(values)
    while len(parts) > 1:
        groups = [parts[i : i + _TERMS] for i in range(0, len(parts), _TERMS)]
        parts = [_call(function, group) for group in groups]
    return parts[0]


def _call(function: str, values: Sequence[str]) -> str:
    return f"{function}({', '.join(values)})" if len(values) > 1 else values[0]
