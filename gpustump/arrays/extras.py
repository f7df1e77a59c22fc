"""How to install the libraries that are optional: every message about one quotes this place.

The package is on no index. It can be installed again, with an extra, from where it came from: a
checkout, a URL, a repository. Installers note that place beside the package [PEP 610].
"""

from __future__ import annotations

import functools
import importlib.metadata
import json
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname


@functools.cache
def how_to_install(extra: str) -> str:
    """The command that installs what an extra of gpustump brings, as a part of a sentence.

    Examples
    --------
    >>> from gpustump.arrays.extras import how_to_install
    >>> how_to_install("cpu").startswith("pip install ")
    True
    """
    return command(extra, _origin())


def command(extra: str, origin: dict[str, Any]) -> str:
    """`how_to_install` for a package from some place.

    Parameters
    ----------
    extra : str
    origin : dict
        What PEP 610 calls the direct URL's data structure; empty if the place is not known.
    """
    url, kind = origin.get("url", ""), origin.get("vcs_info", {})
    if not url:
        return f"pip install '.[{extra}]' in a checkout of gpustump"
    if origin.get("dir_info", {}).get("editable"):
        return f"pip install -e '{url2pathname(urlsplit(url).path)}[{extra}]'"
    if kind:
        revision = kind.get("requested_revision")
        url = f"{kind['vcs']}+{url}" + (f"@{revision}" if revision else "")
    return f"pip install 'gpustump[{extra}] @ {url}'"


def _origin() -> dict[str, Any]:
    """Where the package that is running was installed from; empty if nobody noted it."""
    try:
        found = importlib.metadata.distribution("gpustump")
    except importlib.metadata.PackageNotFoundError:
        return {}
    noted = json.loads(found.read_text("direct_url.json") or "{}")
    return dict(noted)
