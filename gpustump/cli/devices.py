"""`gpustump devices`: what can be used on this machine, and why the rest cannot."""

from __future__ import annotations

import argparse

from gpustump.arrays.devices import devices
from gpustump.cli import report


def run(arguments: argparse.Namespace) -> None:
    """Print one line a device and library."""
    rows = [("device", "library", "version", "usable", "")]
    for device in devices():
        usable = "yes" if device.usable else "no"
        rows.append((device.name, device.library, device.version or "-", usable, device.detail))
    print("\n".join(report.grid(rows)))
