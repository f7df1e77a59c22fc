"""Check that the wheel and the source distribution hold every file that they should, and no other.

    python ci/distributions.py WHEEL SDIST

What should be in them is what git tracks: the package in the wheel, everything but the folders that
only CI reads in the source distribution.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ONLY_FOR_CI = (".ci/", ".github/")


def tracked() -> set[str]:
    """The files that git knows."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(listed.stdout.splitlines())


def in_wheel(wheel: Path) -> set[str]:
    """The files of a wheel, without its metadata."""
    names = zipfile.ZipFile(wheel).namelist()
    return {name for name in names if ".dist-info/" not in name}


def in_sdist(sdist: Path) -> set[str]:
    """The files of a source distribution, without its outer folder and the metadata added to it."""
    with tarfile.open(sdist) as archive:
        names = {member.name.partition("/")[2] for member in archive if member.isfile()}
    return names - {"PKG-INFO"}


def compared(title: str, found: set[str], wanted: set[str]) -> list[str]:
    """What is missing from a distribution, and what should not be in it, as lines."""
    lines = [f"{title} lacks {name}" for name in sorted(wanted - found)]
    return lines + [f"{title} should not hold {name}" for name in sorted(found - wanted)]


def main() -> None:
    """Compare both, and end with the differences if there are any."""
    wheel, sdist = map(Path, sys.argv[1:])
    package = {name for name in tracked() if name.startswith("gpustump/")}
    rest = {name for name in tracked() if not name.startswith(ONLY_FOR_CI)}
    wrong = compared("the wheel", in_wheel(wheel), package)
    wrong += compared("the source distribution", in_sdist(sdist), rest)
    if wrong:
        raise SystemExit("\n".join(wrong))
    print(f"no file is missing: {len(package)} in the wheel, {len(rest)} in the other")


if __name__ == "__main__":
    main()
