"""The names that steps are known by, once the whole plan is there.

A step that produces a value is known by its `result` variable, if the plan gave one; a call without one by `TOOL_result`,
and by `TOOL` when the tool is called once in the plan; every such step by its id (`s3`). A name that the plan itself
gives to something always means that: the names that come by themselves give way.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from keyword import iskeyword

from toolplan.plan import AskModel, AskUser, Block, Call, ForEach, Let, Try, walk

__all__ = ["give_names", "is_name", "name_from"]

_NOT_WORD = re.compile(r"\W+")


def is_name(text: str) -> bool:
    """Return whether expressions can use `text` as a name."""
    return text.isidentifier() and not iskeyword(text) and not text.startswith("__")


def name_from(text: str) -> str | None:
    """Return the usable name nearest to `text`, with an underscore for everything that names cannot have, or None."""
    name = _NOT_WORD.sub("_", text).strip("_")
    if not name:
        return None
    if name[0].isdigit():
        name = f"r{name}"
    name = f"{name}_" if iskeyword(name) else name
    return name if is_name(name) else None


def give_names(steps: Block, given: Iterable[str] = ()) -> None:
    """Set `defines` of every step. `given` are names from outside: the plan's inputs.

    The steps are filled in place. They were made a moment ago and nobody else has seen them; making every one of them
    anew, and with it everything around it, would cost more than reading the plan.
    """
    taken = set(given)
    calls: Counter[str] = Counter()
    producing: list[Call | ForEach | AskUser | AskModel] = []
    for step in walk(steps):
        if isinstance(step, Call):
            calls[step.tool] += 1
            producing.append(step)
        elif isinstance(step, ForEach | AskUser | AskModel):
            producing.append(step)
            if isinstance(step, ForEach):
                taken.add(step.name)
        elif isinstance(step, Let):
            taken.update(name for name, _ in step.values)
        elif isinstance(step, Try) and step.error:
            taken.add(step.error)
    taken.update(step.result for step in producing if step.result)
    for step in producing:
        if isinstance(step, ForEach) and step.collect is None:
            continue
        names = [step.result] if step.result else []
        if isinstance(step, Call) and not names:
            tool = name_from(step.tool)
            names += [f"{tool}_result"] if tool else []
            names += [tool] if tool and calls[step.tool] == 1 else []
            names = [name for name in names if name not in taken]
        if step.id not in taken:
            names.append(step.id)
        object.__setattr__(step, "defines", tuple(names))
