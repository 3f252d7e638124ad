"""What a tool is, in a few letters: another schema or declaration gives another fingerprint."""

from __future__ import annotations

import hashlib
import json

from toolplan.tools.tool import Tool

__all__ = ["fingerprint_of"]

_LEFT_OUT = ("available", "keywords", "signature", "strict_compatible", "runs_in", "async")


def fingerprint_of(tool: Tool) -> str:
    """Return the fingerprint of a tool's name, description, schemas and declarations, not of its code."""
    said = {key: value for key, value in tool.to_json().items() if key not in _LEFT_OUT}
    return hashlib.sha256(json.dumps(said, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:16]
