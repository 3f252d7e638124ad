"""What a reply of the loop says: words, and calls, native ones or written as text in whatever format.

Where the server has read the model's calls, they are the calls and the text is text. Where it has not, they stand in
the text as the model wrote them, and are read there. A model that plans in text refers in a call to the results of the
ones before it; in a loop it has to see them first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from toolplan.diagnostics import Place
from toolplan.diagnostics.formats import reference_in_loop
from toolplan.loop.offered import Offered
from toolplan.models import Message, Reply, ToolCallPart
from toolplan.models.text_tools import Spoken, as_text_says
from toolplan.parse.marked import references_in
from toolplan.parse.tool_calls import WrittenCall

__all__ = ["Ear", "Heard", "as_offered", "as_written", "hear"]


@dataclass(frozen=True, slots=True)
class Heard:
    """The words of a reply, its calls, and the message that stands for it in the conversation."""

    text: str
    calls: tuple[ToolCallPart, ...]
    message: Message


def hear(reply: Reply, offered: Offered) -> Heard:
    """Return what the reply says. Its calls have the names under which the tools are offered."""
    if not reply.tool_calls:
        reply = as_text_says(reply, offered.readable)
    text = reply.text.strip()
    calls = as_offered(reply.tool_calls, offered)
    # What stands for a call that cannot be read is a text about it, and nothing that the model wrote.
    said = [replace(call, arguments={}) if _is_unreadable(call) else call for call in calls]
    return Heard(text, calls, replace(reply, text=text, tool_calls=tuple(said)).message)


def as_offered(calls: Sequence[ToolCallPart], offered: Offered) -> tuple[ToolCallPart, ...]:
    """Return the calls by the names under which the tools are offered, refused where they are no calls of a loop."""
    return _without_references([replace(call, name=offered.native(call.name)) for call in calls])


def as_written(call: ToolCallPart, offered: Offered) -> WrittenCall:
    """Return a call of an offered tool by the tool's own name."""
    return WrittenCall(offered.real(call.name), call.arguments, call.repairs, call.problem)


def _is_unreadable(call: ToolCallPart) -> bool:
    return call.problem is not None and isinstance(call.arguments, str)


def _without_references(calls: Sequence[ToolCallPart]) -> tuple[ToolCallPart, ...]:
    """Return the calls; one that refers to a result is a step of a plan, and its references are no values."""
    checked: list[ToolCallPart] = []
    before: list[str] = []
    for call in calls:
        found = references_in(call.arguments, call.format, before) if call.format is not None else []
        if found and call.problem is None:
            call = replace(call, problem=reference_in_loop(Place(), call.name, found[0]))
        checked.append(call)
        before.append(call.id)
    return tuple(checked)


class Ear(Spoken):
    """Hands on the words of a reply while it arrives, and apart from them the calls that may stand between them."""

    def __init__(
        self,
        offered: Offered,
        say: Callable[[str], None],
        void: Callable[[], None],
        called: Callable[[ToolCallPart], None] = lambda _: None,
    ) -> None:
        super().__init__(offered.readable, say, called, format="auto")
        self.called = called
        self._void = void

    def start_over(self) -> None:
        """Forget what was heard, for the reply broke off and begins anew."""
        super().start_over()
        self._void()
