"""The names that steps are known by, once the whole plan is there.

A step that produces a value is known by its `result` variable, if the plan gave one; a call without one by
`TOOL_result`, and by `TOOL` when the tool is called once in the plan; every such step by its id (`s3`). A name that the
plan itself gives to something always means that: the names that come by themselves give way.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from keyword import iskeyword

from toolplan.plan import AskModel, AskUser, Block, Call, ForEach, Let, Step, Try, blocks_of, walk

__all__ = ["give_names", "given_names", "is_name", "name_from"]

CONSTANTS = frozenset(("true", "false", "null"))
"""Words that are constants in expressions, besides Python's own keywords."""
_NOT_WORD = re.compile(r"\W+")


def is_name(text: str) -> bool:
    """Return whether expressions can use `text` as a name."""
    return text.isidentifier() and not iskeyword(text) and text not in CONSTANTS and not text.startswith("__")


def name_from(text: str) -> str | None:
    """Return the usable name nearest to `text`, with an underscore for everything that names cannot have, or None."""
    name = _NOT_WORD.sub("_", text).strip("_")
    if not name:
        return None
    if name[0].isdigit():
        name = f"r{name}"
    name = f"{name}_" if iskeyword(name) or name in CONSTANTS else name
    return name if is_name(name) else None


def give_names(steps: Block, given: Iterable[str] = ()) -> None:
    """Set `defines` of every step. `given` are names from outside: the plan's inputs.

    The steps are filled in place. They were made a moment ago and nobody else has seen them; making every one of them
    anew, and with it everything around it, would cost more than reading the plan.
    """
    taken = set(given)
    calls: Counter[str] = Counter()
    producing: list[Call | ForEach | AskUser | AskModel] = []
    stack = list(steps)
    while stack:
        step = stack.pop()
        if isinstance(step, Call):
            calls[step.tool] += 1
            producing.append(step)
            stack += step.on_error.do
            continue
        if isinstance(step, ForEach | AskUser | AskModel):
            producing.append(step)
        taken.update(_given_by(step))
        for block in blocks_of(step):
            stack += block
    taken.update([step.result for step in producing if step.result])
    for step in producing:
        names = [step.result] if step.result else []
        if isinstance(step, ForEach) and step.collect is None:
            continue
        if isinstance(step, Call) and not names and (tool := name_from(step.tool)):
            own = (f"{tool}_result", tool) if calls[step.tool] == 1 else (f"{tool}_result",)
            names = [name for name in own if name not in taken]
        if step.id not in taken:
            names.append(step.id)
        object.__setattr__(step, "defines", tuple(names))


def given_names(steps: Block) -> set[str]:
    """Return the names that the plan itself gives to something in these steps."""
    found: set[str] = set()
    for step in walk(steps):
        found.update(_given_by(step))
        if isinstance(step, Call | ForEach | AskUser | AskModel) and step.result:
            found.add(step.result)
    return found


def _given_by(step: Step) -> Iterable[str]:
    """Return the names that a step gives to something besides its own value."""
    if isinstance(step, ForEach):
        return (step.name,)
    if isinstance(step, Let):
        return (name for name, _ in step.values)
    return (step.error,) if isinstance(step, Try) and step.error else ()
