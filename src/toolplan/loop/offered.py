"""The tools of an agent as a model gets them for native calls, and back from the names that it writes.

Providers take only short ASCII names. A tool with another name, a Chinese one say, is offered under a name made of what
is left of its own, and its description begins with the real one.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cached_property

from toolplan.models import ToolSpec
from toolplan.models.text_tools import tools_of
from toolplan.parse.tool_calls import ASK_USER, FIND_TOOLS
from toolplan.prompt import LoopWords
from toolplan.prompt.messages import names_within
from toolplan.tools import Tool, ToolSet
from toolplan.values import Json

__all__ = ["Offered"]

_OTHER = re.compile(r"[^a-zA-Z0-9_-]+")
MAX_NAME = 64
WANTED: dict[str, Json] = {
    "type": "object",
    "properties": {"wanted": {"type": "string"}},
    "required": ["wanted"],
    "additionalProperties": False,
}
QUESTION: dict[str, Json] = {
    "type": "object",
    "properties": {"question": {"type": "string"}},
    "required": ["question"],
    "additionalProperties": False,
}


class Offered:
    """`specs` is what the model gets; `real` and `native` translate names.

    `others` are those of the tools that are not shown; with any of them the model gets a tool to find them. They have
    their names all the same, so that a name means one tool in the whole conversation.
    """

    def __init__(self, tools: ToolSet, words: LoopWords, *, can_ask: bool, others: Collection[str] = ()) -> None:
        self._tools = tools
        self._real: dict[str, str] = {}
        self._native: dict[str, str] = {}
        for tool in tools:
            native = tool.name if tool.has_native_name else self._made_up(tool.name, tools)
            self._real[native] = tool.name
            self._native[tool.name] = native
        hidden = frozenset(others)
        specs = [self._spec(tool) for tool in tools if tool.name not in hidden]
        if can_ask and ASK_USER not in tools:
            specs.append(ToolSpec(ASK_USER, words.ask_user, QUESTION))
        self.finder = FIND_TOOLS if others and FIND_TOOLS not in tools else None
        """The name of the tool that shows further tools, if the model has it."""
        if self.finder is not None:
            named = ", ".join(names_within([self.native(name) for name in others]))
            specs.append(ToolSpec(self.finder, words.find_tools.format(names=named), WANTED))
        self.specs = tuple(specs)

    @cached_property
    def readable(self) -> ToolSet:
        """The tools under every name that a model may write for them in text: the one it was given, and their own."""
        others = [spec for spec in self.specs if spec.name not in self._tools]
        return ToolSet.of([*self._tools, *(tool for tool in tools_of(others) if tool.name not in self._tools)])

    def real(self, native: str) -> str:
        """Return the tool's own name; a name that was not offered stays what it is."""
        return self._real.get(native, native)

    def native(self, name: str) -> str:
        """Return the name under which the tool is offered."""
        return self._native.get(name, name)

    def _made_up(self, name: str, tools: ToolSet) -> str:
        base = _OTHER.sub("_", name).strip("_")[: MAX_NAME - 4] or "tool"
        number, made_up = 1, base
        while made_up in self._real or made_up in tools:
            number += 1
            made_up = f"{base}_{number}"
        return made_up

    def _spec(self, tool: Tool) -> ToolSpec:
        native = self._native[tool.name]
        said = [f"`{tool.name}`"] if native != tool.name else []
        said += [text for text in (tool.description.strip(), tool.result_description.strip()) if text]
        return ToolSpec(native, "\n".join(said), tool.parameters, own_name=tool.name if native != tool.name else None)
