"""Bring the outputs on the pages up to date, or check that they are: the README, and the site's.

    python ci/pages.py [--check]

A text block under `<!-- output of: COMMAND -->` holds what the command prints; so does Markdown
between that and `<!-- end of output -->`. Commands are run in an empty folder, `python -m bench` in
the checkout. The pictures in `docs` are drawn anew. Times differ between runs and machines, so
`--check` ignores numbers of seconds, and the device.
"""

from __future__ import annotations

import difflib
import functools
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "docs" / "start.md"]
OPENING = r"(?P<opening><!-- output of: (?P<command>[^\n]+?) -->\n%s\n)"
TEXT = re.compile(OPENING % "```text" + r"(?P<output>.*?)(?P<closing>```\n)", re.S)
MARKDOWN = re.compile(
    OPENING % "" + r"(?P<output>((?!<!--).)*?)(?P<closing>\n<!-- end of output -->\n)", re.S
)
NOISE = re.compile(r"\d+\.\d+ s\b(?: to fit, on \S+)?")


@functools.cache
def printed(command: str) -> str:
    """What a command prints on stdout; it runs once, so all pages show the same."""
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    with tempfile.TemporaryDirectory() as empty:
        folder = ROOT if command.startswith("python -m bench") else empty
        done = subprocess.run(
            command, shell=True, cwd=folder, env=environment, capture_output=True, text=True
        )
    if done.returncode:
        raise SystemExit(f"{command!r} failed: {done.stderr}")
    return "".join(line.rstrip() + "\n" for line in done.stdout.splitlines())


def refreshed(text: str) -> str:
    """A page with every output as it is now."""
    for block in (TEXT, MARKDOWN):
        text = block.sub(lambda m: m["opening"] + printed(m["command"]) + m["closing"], text)
    return text


def differences(text: str) -> str:
    """What has changed apart from times, as a diff; empty if nothing has."""
    old, new = (NOISE.sub("# s", version).splitlines() for version in (text, refreshed(text)))
    return "\n".join(difflib.unified_diff(old, new, "as it is", "as it should be", lineterm=""))


def main() -> None:
    """Rewrite the pages, or only compare them."""
    checks = "--check" in sys.argv[1:]
    for page in PAGES:
        text = page.read_text()
        if checks and (found := differences(text)):
            raise SystemExit(f"{page.name}:\n{found}\n\nRun: python ci/pages.py")
        if not checks:
            page.write_text(refreshed(text))
    if not checks:
        printed(f"python {ROOT / 'examples' / 'pictures.py'} {ROOT / 'docs'}")


if __name__ == "__main__":
    main()
