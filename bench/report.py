"""`python -m bench report`: one Markdown page of all the JSON files in a folder."""

from __future__ import annotations

from pathlib import Path

from bench import (
    accuracy_records,
    accuracy_tables,
    cluster_records,
    cluster_tables,
    glassbox_records,
    glassbox_tables,
    quantities,
    records,
    tables,
)
from bench.accuracy_records import Accuracy
from bench.benchmarks import UsageError
from bench.cluster_records import Cluster
from bench.figures import draw
from bench.glassbox_records import Glassbox
from bench.quantities import Quantities
from bench.records import Report
from gpustump.model.whole_file import whole_file

HOW_TO_READ = """\
Contenders took turns on one machine, each in a process of its own. A cell is the median of the
turns, with the least and the greatest in brackets. The cost of a round is the slope between a short
and a long fit; preparation is what that line leaves at zero rounds. Ratios are formed within a
turn; the fastest peer is the one with the least median. Load: importing the libraries in a fresh
process; first fit: what that takes beyond a later one, to compile mostly. Memory: the peak of a
short fit beyond the data and the libraries. Two yardsticks tell what part of the memory's speed is
reached: a byte an element and 16 a sample, moved as fast as a copy reads and writes; and a gather
of 8 bytes an element, in random order."""

TITLES = {  # in this order
    "panel": "Of the fastest peer's time",
    "peers": "Beside other libraries",
    "backends": "One model on every backend",
    "limit": "What part of the machine's limit is reached",
    "growth": "How the cost grows",
    "cluster": "On the workers of a cluster",
    "accuracy": "How good the votes are",
    "glassbox": "Beside other glass boxes",
    "quantities": "Quantities, counts and costs",
}


def page_of(file: Path, *, only_means: bool = False) -> str:
    """A JSON file as Markdown.

    With `only_means` runs of accuracy, glassbox and quantities are cut down to their means, a panel
    to its shares.

    Raises
    ------
    FormatError
        If it is not that of a benchmark.
    """
    found = read(file)
    if isinstance(found, Accuracy):
        return accuracy_tables.page(found, only_means=only_means)
    if isinstance(found, Glassbox):
        return glassbox_tables.page(found, only_means=only_means)
    if isinstance(found, Quantities):
        return quantities.page(found, only_means=only_means)
    if isinstance(found, Cluster):
        return cluster_tables.page(found)
    return tables.page(found, only_means=only_means)


def read(file: Path) -> Report | Accuracy | Cluster | Glassbox | Quantities:
    """What is in a JSON file, of any kind; see `page_of`."""
    found = records.decoded(file, Report | Accuracy | Cluster | Glassbox | Quantities)
    if isinstance(found, Accuracy):
        return accuracy_records.read(file)
    if isinstance(found, Glassbox):
        return glassbox_records.read(file)
    if isinstance(found, Quantities):
        return found
    return cluster_records.read(file) if isinstance(found, Cluster) else records.read(file)


def write_report(folder: Path) -> Path:
    """Draw every figure again and write report.md beside the JSON files.

    Raises
    ------
    UsageError
        If there is no such folder, or no JSON file in it.
    FormatError
        If one is not that of a benchmark.
    """
    if not folder.is_dir():
        raise UsageError(f"there is no folder {folder}")
    reports = {file: read(file) for file in sorted(folder.glob("*.json"))}
    if not reports:
        raise UsageError(f"there is no JSON file of a benchmark in {folder}")
    parts = ["# What gpustump costs", HOW_TO_READ]
    for benchmark, title in TITLES.items():
        for file, report in reports.items():
            if report.benchmark == benchmark:
                parts.append(f"## {title}: {file.stem}")
                if isinstance(report, Report):
                    parts.append(f"![{file.stem}]({draw(file).name})")
                parts.append(page_of(file))
    target = folder / "report.md"
    with whole_file(target) as stream:
        stream.write(("\n\n".join(parts) + "\n").encode())
    return target
