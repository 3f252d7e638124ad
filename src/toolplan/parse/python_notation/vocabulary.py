"""What the name in front of a call's brackets means."""

from __future__ import annotations

import ast
import builtins
import enum
from collections.abc import Collection, Mapping, Sequence

from toolplan.expressions.functions import FUNCTIONS

__all__ = ["CHANGING", "TAKING", "Meaning", "Vocabulary", "dotted"]

WORDS = frozenset(
    {"answer", "ask_model", "ask_user", "cannot", "final_answer", "input", "max_iterations", "print", "replan"}
)
"""Names that the notation gives a meaning of their own, each a kind of step."""

TAKING = frozenset({"pop", "setdefault"})
"""Methods whose value a program may use although they change what they are called on."""

CHANGING = TAKING | {
    "add",
    "append",
    "clear",
    "discard",
    "extend",
    "insert",
    "popitem",
    "remove",
    "reverse",
    "sort",
    "update",
}
"""Methods that change what they are called on; as statements they become a `Let` with a new value."""

_PYTHON = frozenset(name for name in dir(builtins) if not name.startswith("_"))
_ELSEWHERE = frozenset(
    {"Number", "String", "datetime", "now", "parseFloat", "parseInt", "timedelta", "to_number", "today"}
)
"""Names that the reader of expressions accepts in a call, or knows how to say in another way."""


class Meaning(enum.Enum):
    """What a called name is."""

    TOOL = enum.auto()
    WORD = enum.auto()
    FUNCTION = enum.auto()
    """A function of the expression language, or one of Python's that it may refuse."""


class Vocabulary:
    """The names a program may call: the tools, the words of the notation, the functions of expressions.

    A tool hides a word or a function of the same name. A name that is nothing else is taken for a tool; the checker
    says whether it exists. `parameters` gives each tool's parameter names in order, as far as they are known.
    """

    def __init__(
        self, tools: Collection[str] | None = None, parameters: Mapping[str, Sequence[str]] | None = None
    ) -> None:
        self.parameters = parameters or {}
        self.tools = frozenset(tools or ()) | frozenset(self.parameters)

    def meaning(self, name: str) -> Meaning:
        """Return what a call of `name` is."""
        if name in self.tools:
            return Meaning.TOOL
        if name in WORDS:
            return Meaning.WORD
        is_function = name in FUNCTIONS or name in _PYTHON or name in _ELSEWHERE
        return Meaning.FUNCTION if is_function else Meaning.TOOL

    def tool(self, node: ast.expr, assigned: Collection[str]) -> str | None:
        """Return the tool that `node`, the function of a call, stands for, or None when it is no tool.

        `functions.get_weather` is the tool `get_weather` where there is one and the program has no value `functions`.
        """
        name = dotted(node)
        if name is None:
            return None
        root, _, rest = name.partition(".")
        if not rest:
            return name if self.meaning(name) is Meaning.TOOL and (name in self.tools or name not in assigned) else None
        last = name.rpartition(".")[2]
        if name in self.tools:
            return name
        return last if last in self.tools and root not in assigned else None


def dotted(node: ast.expr) -> str | None:
    """Return `a.b.c` for an expression that is just that, else None."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])
