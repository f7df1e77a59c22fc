"""Do what pages tell a newcomer to do, with the gpustump that is installed, outside of a checkout.

    python ci/newcomer.py FOLDER PAGE ...

Every Python block of a page runs, in order, in one process; so does every line of a bash block.
Lines that install something, or run a script of the checkout, are left out. All run in FOLDER.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

NOT_HERE = ("pip install", "bash ci/")


def blocks(page: Path, language: str) -> list[str]:
    """The code of a page in one language."""
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.S)


def main() -> None:
    """Run all pages; the first failure ends it."""
    folder, *pages = map(Path, sys.argv[1:])
    installed = subprocess.run(
        [sys.executable, "-c", "import gpustump; print(gpustump.__file__)"],
        cwd=folder, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    if Path.cwd() in Path(installed).parents:
        raise SystemExit(f"gpustump comes from the checkout, {installed}, not from a wheel")
    for page in pages:
        code = "\n".join(blocks(page, "python"))
        script = folder / f"{page.stem}.py"
        script.write_text(f"import matplotlib\nmatplotlib.use('agg')\n{code}")
        lines = "".join(blocks(page, "bash")).splitlines()
        commands = [f"{sys.executable} {script}"]
        commands += [line for line in lines if not line.startswith(NOT_HERE)]
        for command in commands:
            print(f"$ {command}", flush=True)
            subprocess.run(command, shell=True, cwd=folder, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
