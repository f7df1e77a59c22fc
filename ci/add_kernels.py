"""Add compiled CPU kernels to a wheel, which then serves one system and one version of Python.

    python ci/add_kernels.py WHEEL

They are compiled here, for each level of CPUs: on x86-64 for those with AVX2, and for those with
AVX-512. The new wheel lies beside the given one, which still serves everybody else. Whoever has
another version of Numba than this environment compiles as from the plain wheel.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from gpustump.engines.cpu.runtime import kernel_folder

PACKAGE = Path(kernel_folder.__file__).parents[3]
WHERE = kernel_folder.SHIPPED.relative_to(PACKAGE.parent)

FOLDER = (
    "from gpustump.engines.cpu.runtime.kernel_folder import kernel_folder as find; print(find())"
)


def compiled(level: str) -> Path:
    """The folder with all kernels for a level of CPUs."""
    of_level = dict(zip(kernel_folder.TARGET_SETTINGS, (level, ""), strict=True))
    environment = {**os.environ, **of_level}
    subprocess.run(
        [sys.executable, "-m", "gpustump", "kernels", "--build"],
        env=environment, stdout=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    folder = subprocess.check_output([sys.executable, "-c", FOLDER], env=environment, text=True)
    return Path(folder.strip())


def platform_tag() -> str:
    """The wheel's tag for this system. Kernels need nothing of Linux but what Numba needs, too."""
    tag = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return tag.replace("linux", "manylinux_2_17") if sys.platform == "linux" else tag


def main() -> None:
    """Write the wheel."""
    (plain,) = map(Path, sys.argv[1:])
    levels = [kernel_folder.target()[0]]
    if levels[0] in kernel_folder.LEVELS:  # all but the one without any feature
        levels = [level for level, features in kernel_folder.LEVELS.items() if all(features)]
    tags = {
        "--python-tag": f"cp{sys.version_info.major}{sys.version_info.minor}",
        "--abi-tag": "none",
        "--platform-tag": platform_tag(),
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = [sys.executable, "-m", "wheel"]
        subprocess.run(
            [*wheel, "unpack", plain, "--dest", folder], check=True, stdout=subprocess.DEVNULL
        )
        (unpacked,) = folder.iterdir()
        for level in levels:
            print(f"compiling for {level} ...", flush=True)
            own = compiled(level)
            no_locks = shutil.ignore_patterns("*.lock")
            shutil.copytree(own, unpacked / WHERE / own.name, ignore=no_locks)
        subprocess.run(
            [*wheel, "pack", unpacked, "--dest-dir", folder], check=True, stdout=subprocess.DEVNULL
        )
        asked = [f"{name}={value}" for name, value in tags.items()]
        found = subprocess.check_output([*wheel, "tags", *asked, folder / plain.name], text=True)
        shutil.move(folder / found.split()[-1], plain.parent)


if __name__ == "__main__":
    main()
