"""What a reply of the loop says: words, and calls, native ones or written as text in whatever format.

Where the server has read the model's calls, they are the calls and the text is text. Where it has not, they stand in
the text as the model wrote them, and are read there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TypeAlias

from toolplan.diagnostics import Place
from toolplan.diagnostics.formats import broken_call
from toolplan.models import Message, Reply, ToolCallPart
from toolplan.parse.formats import BrokenCall, CallPart, CallScanner, TextPart
from toolplan.parse.formats.parts import Part, settled
from toolplan.parse.marked import references_in
from toolplan.tools import ToolSet
from toolplan.values import Json

__all__ = ["Ear", "Heard", "hear"]

NAMELESS = "unknown"
"""Stands for the tool of a call whose name could not be read."""


@dataclass(frozen=True, slots=True)
class Heard:
    """The words of a reply, its calls, and the message that stands for it in the conversation."""

    text: str
    calls: tuple[ToolCallPart, ...]
    message: Message


def hear(reply: Reply, tools: ToolSet) -> Heard:
    """Return what the reply says."""
    calls, text = reply.tool_calls, reply.text.strip()
    if not calls:
        parts, labels = _read(reply.text, "auto", tools, reply.finish_reason)
        text = "".join(part.text for part in parts if isinstance(part, TextPart)).strip()
        calls = tuple(_call(part) for part in parts if isinstance(part, CallPart | BrokenCall))
    else:
        labels = _labels(reply, tools)
    calls = _without_references(calls, labels)
    said = tuple(ToolCallPart(call.id, call.name, call.arguments) for call in calls)
    return Heard(text, calls, replace(reply.message, content=text, tool_calls=said))


_Labels: TypeAlias = Sequence[tuple[str, str]]
"""For each call the format that it is written in, and what references in that format call it."""


def _read(text: str, format: str, tools: ToolSet | None, finish: str | None) -> tuple[tuple[Part, ...], _Labels]:
    """Return the parts of a reply and the labels of its calls."""
    scanner = CallScanner(format, tools)
    parts = settled([*scanner.feed(text), *scanner.close(finish)])
    ids = [part.id for part in parts if isinstance(part, CallPart | BrokenCall)]
    return parts, tuple(zip(scanner.formats, ids, strict=True))


def _labels(reply: Reply, tools: ToolSet) -> _Labels:
    """Return the labels of the calls that were read out of the reply's text before; none where calls are native."""
    text = _text_before(reply.kept or {})
    if text:
        for format, known in product(("marked", "auto"), (tools, None)):
            _, labels = _read(text, format, known, reply.finish_reason)
            if len(labels) == len(reply.tool_calls):
                return labels
    return ()


def _text_before(kept: Mapping[str, Json]) -> str:
    """Return the text of a reply with the calls in it, out of what is kept of it; "" where calls are native."""
    if kept.get("kind") == "text":
        return str(kept.get("text") or "")
    listed = kept.get("parts")
    parts = [part for part in listed if isinstance(part, dict)] if isinstance(listed, list) else []
    if any(part.get("part_kind") == "tool-call" for part in parts):
        return ""
    return "".join(str(part.get("content") or "") for part in parts if part.get("part_kind") == "text")


def _call(part: CallPart | BrokenCall) -> ToolCallPart:
    if isinstance(part, CallPart):
        return ToolCallPart(part.id, part.name, part.arguments, part.repairs)
    return ToolCallPart(part.id, part.name or NAMELESS, {}, problem=part.diagnostic)


def _without_references(calls: Sequence[ToolCallPart], labels: _Labels) -> tuple[ToolCallPart, ...]:
    """Return the calls; one that refers to a result is a step of a plan, and its references are no values."""
    checked = list(calls)
    for position, (format, _) in enumerate(labels):
        call = calls[position]
        found = references_in(call.arguments, format, [label for _, label in labels[:position]])
        if found and call.problem is None:
            problem = f"`{found[0]}` refers to a result, and calls made one by one have values only"
            help = "wait for the result, then make the call again with its value"
            checked[position] = replace(call, problem=broken_call(Place(), call.name, problem, help))
    return tuple(checked)


class Ear:
    """Hands on the words of a reply while it arrives, without the calls that may stand between them."""

    def __init__(self, tools: ToolSet, say: Callable[[str], None], void: Callable[[], None]) -> None:
        self._tools = tools
        self._scanner = CallScanner(tools=tools)
        self._say = say
        self._void = void

    def hear(self, piece: str) -> None:
        """Take in a piece of the reply."""
        for part in self._scanner.feed(piece):
            if isinstance(part, TextPart):
                self._say(part.text)

    def start_over(self) -> None:
        """Forget what was heard, for the reply broke off and begins anew."""
        self._scanner = CallScanner(tools=self._tools)
        self._void()

    def close(self, finish_reason: str | None) -> None:
        """Hand on what was held back, for the reply has ended."""
        for part in self._scanner.close(finish_reason):
            if isinstance(part, TextPart):
                self._say(part.text)
