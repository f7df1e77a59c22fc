"""Model files as a careful forger would make them: edited, digest and checksum computed anew.

Both are computed from their description in `gpustump/model/model_file.py`, not with its functions.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any


def forged(document: dict[str, Any]) -> str:
    """The text of a document, with a digest and a checksum that fit what it holds."""
    document = {key: value for key, value in document.items() if key != "checksum"}
    if "digest" in document:
        document["digest"] = _sha256(document.get("model"))
    return json.dumps({**document, "checksum": _sha256(document)})


def _sha256(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
