"""When a stump votes one way: its condition in words, with the table's names, values and units."""

from __future__ import annotations

from gpustump.cli.wording import label_text, number_text
from gpustump.data.readable import shortened, temporal_text
from gpustump.learners.hypothesis import Partition
from gpustump.learners.kinds import OfCategories, condition
from gpustump.model.encoding import Encoding, InputColumn


def condition_in_words(partition: Partition, encoding: Encoding) -> str:
    """The condition of a partition's first region, such as "age <= 30" or "colour is not red"."""
    column, value = encoding.origin(partition.feature)
    name = shortened(column.name if encoding.named else f"column {column.name}")
    if isinstance(partition, OfCategories):
        return condition(partition, name, category=lambda number: _category(column, number))
    separates_0_from_1 = len(partition.thresholds) == 1 and 0.0 <= partition.thresholds[0] < 1.0
    if separates_0_from_1 and value is not None:
        return f"{name} is not {label_text(value)}"
    if separates_0_from_1 and column.kind == "boolean":
        return f"{name} is false"
    return condition(partition, name, number=lambda at: _threshold(at, column.kind))


def _category(column: InputColumn, number: int) -> str:
    """The name of a category; its number if it has no name."""
    return label_text(column.values[number]) if number < len(column.values) else str(number)


def _threshold(threshold: float, kind: str) -> str:
    """A threshold as a value of the column's own kind."""
    return temporal_text(threshold, kind) or number_text(threshold)
