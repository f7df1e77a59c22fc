"""`gpustump help TOPIC`: rules that several commands share."""

from __future__ import annotations

import argparse

from gpustump.cli.options import topic


def run(arguments: argparse.Namespace) -> None:
    """Print a topic."""
    print(topic(arguments.topic), end="")
