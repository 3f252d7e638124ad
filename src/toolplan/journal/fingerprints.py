"""What a tool was when a run began, so that a change is said before the run goes on.

Two parts: what it takes, returns and declares, and the code of its function. A change of the first may mean another
order of effects, or another meaning of what is written; a change of the code alone is for a person to judge.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Mapping
from weakref import WeakKeyDictionary

from toolplan.plan import Call, Plan, walk
from toolplan.tools import Tool, ToolSet
from toolplan.tools.fingerprint import fingerprint_of

__all__ = ["changes", "tools_of"]

DECLARED, CODE = "declared", "code"

_seen: WeakKeyDictionary[Tool, dict[str, str]] = WeakKeyDictionary()


def tools_of(plan: Plan, tools: ToolSet) -> dict[str, dict[str, str]]:
    """Return what each tool that the plan calls is now."""
    names = sorted({step.tool for step in walk(plan.steps) if isinstance(step, Call)})
    return {name: _now(tools[name]) for name in names}


def changes(then: Mapping[str, Mapping[str, str]], tools: ToolSet) -> tuple[list[str], list[str]]:
    """Return what has changed since: what makes it impossible to go on, and what a person may accept."""
    fatal: list[str] = []
    others: list[str] = []
    for name, was in then.items():
        now = _now(tools[name]) if name in tools else None
        if now is None:
            fatal.append(f"there is no tool `{name}` any more")
        elif was.get(DECLARED) != now[DECLARED]:
            others.append(f"the schema or the declarations of `{name}` are not what they were")
        elif was.get(CODE) != now[CODE]:
            others.append(f"the code of `{name}` is not what it was")
    return fatal, others


def _now(tool: Tool) -> dict[str, str]:
    found = _seen.get(tool)
    if found is None:
        found = _seen[tool] = {DECLARED: fingerprint_of(tool), CODE: _code_of(tool)}
    return found


def _code_of(tool: Tool) -> str:
    try:
        source = inspect.getsource(inspect.unwrap(tool.function))
    except (OSError, TypeError):  # no source: made at run time, or not written in Python
        return ""
    return hashlib.sha256(source.encode("utf-8", "replace")).hexdigest()[:16]
