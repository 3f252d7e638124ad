"""What a tool is, in a few letters, so that a change is noticed: by who looks at a card, before a run goes on.

Two parts: what it takes, returns and declares, and the code of its function. A change of the first may mean another
order of effects, or another meaning of what is written in a journal; a change of the code alone is for a person to
judge.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Mapping
from weakref import WeakKeyDictionary

from toolplan.plan import Call, Plan, walk
from toolplan.tools.tool import Tool
from toolplan.tools.toolset import ToolSet

__all__ = ["changes_since", "fingerprint_of", "fingerprints_of"]

DECLARED, CODE = "declared", "code"

_LEFT_OUT = ("available", "keywords", "signature", "strict_compatible", "runs_in", "async")

_seen: WeakKeyDictionary[Tool, dict[str, str]] = WeakKeyDictionary()


def fingerprint_of(tool: Tool) -> str:
    """Return the fingerprint of a tool's name, description, schemas and declarations, not of its code."""
    found = _seen.setdefault(tool, {})
    if DECLARED not in found:
        found[DECLARED] = _declared(tool)
    return found[DECLARED]


def fingerprints_of(plan: Plan, tools: ToolSet) -> dict[str, dict[str, str]]:
    """Return what each tool that the plan calls is now, its code included."""
    names = sorted({step.tool for step in walk(plan.steps) if isinstance(step, Call)})
    return {name: _both_of(tools[name]) for name in names}


def changes_since(then: Mapping[str, Mapping[str, str]], tools: ToolSet) -> tuple[list[str], list[str]]:
    """Return what has changed since: what makes it impossible to go on, and what a person may accept."""
    fatal: list[str] = []
    others: list[str] = []
    for name, was in then.items():
        now = _both_of(tools[name]) if name in tools else None
        if now is None:
            fatal.append(f"there is no tool `{name}` any more")
        elif was.get(DECLARED) != now[DECLARED]:
            others.append(f"the schema or the declarations of `{name}` are not what they were")
        elif was.get(CODE) != now[CODE]:
            others.append(f"the code of `{name}` is not what it was")
    return fatal, others


def _both_of(tool: Tool) -> dict[str, str]:
    declared, found = fingerprint_of(tool), _seen[tool]
    if CODE not in found:  # takes longer: the source has to be found
        found[CODE] = _code_of(tool)
    return {DECLARED: declared, CODE: found[CODE]}


def _declared(tool: Tool) -> str:
    said = {key: value for key, value in tool.to_json().items() if key not in _LEFT_OUT}
    return _short(json.dumps(said, sort_keys=True, ensure_ascii=False).encode())


def _code_of(tool: Tool) -> str:
    try:
        source = inspect.getsource(inspect.unwrap(tool.function))
    except (OSError, TypeError):  # no source: made at run time, or not written in Python
        return ""
    return _short(source.encode("utf-8", "replace"))


def _short(said: bytes) -> str:
    return hashlib.sha256(said).hexdigest()[:16]
