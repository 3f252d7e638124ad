"""What a terminal shows of a request, or a file that it is piped to: no secrets of the tools."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from toolplan.agent import AgentEvent, PlanAccepted
from toolplan.run import EarlyStarted, NoteShown, StepFinished, StepStarted
from toolplan.tools import ToolSet
from toolplan.tools.secret_words import secret_words
from toolplan.tools.secrets import result_shown
from toolplan.tools.seen_secrets import SeenSecrets

if TYPE_CHECKING:
    from toolplan.values import Json

__all__ = ["Hiding"]


class Hiding:
    """Takes out of events what the tools call secret, and what was seen to be. It knows the tools from the plans."""

    def __init__(self) -> None:
        self._tools = ToolSet()
        self._seen = SeenSecrets()

    def shown(self, event: AgentEvent) -> AgentEvent:
        """Return the event as it may be shown."""
        match event:
            case PlanAccepted(checked=checked):
                self._tools = checked.tools
                self._seen.see_words(secret_words(checked.plan, checked.tools).values)
            case StepFinished(record=record):
                result = record.result
                if (tool := self._tools.get(record.tool)) is not None and tool.has_secrets:
                    self._seen.see(tool, record.arguments or {})
                    self._seen.see_result(tool, result)
                    result = result_shown(result, tool)
                if self._seen or result is not record.result:
                    return replace(event, record=replace(record, result=self._seen.clean_json(result)))
            case StepStarted() | EarlyStarted() if self._seen:
                arguments = self._seen.clean_json(event.arguments)
                return replace(event, arguments=cast("dict[str, Json]", arguments))
            case NoteShown() if self._seen:
                return replace(event, text=self.clean(event.text))
            case _:
                pass
        return event

    def clean(self, text: str) -> str:
        """Return a text without the secrets that were seen so far."""
        return self._seen.clean(text) if self._seen else text
