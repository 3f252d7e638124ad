"""Messages of the APIs as objects: whole ones, and OpenAI's as a stream of deltas.

Calls that the server has read come as objects with JSON text in them; that is read like any other. Calls that the
server's own reading missed stand in the text, or even in the reasoning, as the model wrote them; they are read too, and
said to be a repair. Where the server did read calls, the text is text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from toolplan.parse.formats.deltas import StreamedCalls, UsageReports
from toolplan.parse.formats.native import Native, native_calls
from toolplan.parse.formats.parts import BrokenCall, CallPart, Part, TextPart, ThinkingPart, settled
from toolplan.parse.formats.scan import Scan
from toolplan.parse.formats.scanner import CUT, CallScanner
from toolplan.tools import ToolSet
from toolplan.values import Json

__all__ = ["DeltaScanner", "read_message"]

_IN_TEXT = "read a call out of the message's text, where the server had left it"
_IN_REASONING = "read the reply out of the reasoning, because the message holds nothing else"
_ONE_INDEX = "kept two calls apart that came under one index"
_REASONING = ("reasoning_content", "reasoning", "thinking")


def read_message(
    message: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    tools: ToolSet | None = None,
    *,
    format: str = "auto",
    finish_reason: str | None = None,
) -> tuple[Part, ...]:
    """Return the parts of a message of OpenAI's, Anthropic's or Gemini's API, or of a list of OpenAI's stream chunks.

    A whole response is taken for its first choice or candidate. `format` is how the model writes calls that the server
    does not read; named, they are no repair. `finish_reason` counts where the object does not hold one itself.
    """
    if not isinstance(message, Mapping):
        scanner = DeltaScanner(format, tools)
        parts = [part for chunk in message for part in scanner.feed(chunk)]
        return settled([*parts, *scanner.close(finish_reason)])
    inner, reason = _unwrapped(cast("dict[str, Json]", dict(message)))
    return _read(inner, tools, format, reason or finish_reason)


def _unwrapped(message: dict[str, Json]) -> tuple[dict[str, Json], str | None]:
    """Return the message inside a response, and why it ended."""
    reasons: list[Json] = []
    for list_of, inside in (("choices", "message"), ("candidates", "content")):
        if list_of in message:
            first = _object(next(iter(_objects(message[list_of])), None))
            reasons += [first.get("finish_reason"), first.get("finishReason")]
            message = _object(first.get(inside))
    reasons += [message.get("stop_reason"), message.get("finish_reason")]
    return message, next((reason for reason in reasons if isinstance(reason, str)), None)


def _objects(value: Json) -> Iterable[dict[str, Json]]:
    return (item for item in (value if isinstance(value, list) else ()) if isinstance(item, dict))


def _object(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _read(message: dict[str, Json], tools: ToolSet | None, format: str, reason: str | None) -> tuple[Part, ...]:
    calls = native_calls(message)
    thought, text = _said(message)
    found: list[Part] = [ThinkingPart(thought)]
    if calls:
        scanner = CallScanner("none")
        found += [*scanner.feed(text), *scanner.close()]
        return settled([*found, *_made(calls, tools, reason)])
    spoken = _scanned(text, tools, format, reason, _IN_TEXT)
    if thought and not any(not isinstance(part, TextPart) or part.text.strip() for part in spoken):
        rehearsed = _scanned(thought, tools, format, reason, _IN_REASONING)
        if any(isinstance(part, CallPart | BrokenCall) for part in rehearsed):
            return settled(ThinkingPart(part.text) if isinstance(part, TextPart) else part for part in rehearsed)
    return settled([*found, *spoken])


def _said(message: dict[str, Json]) -> tuple[str, str]:
    """Return what a message thinks and what it says."""
    thoughts = [text for key in _REASONING if (text := _text(message.get(key)))][:1]
    content = message.get("content")
    texts = [_text(content)]
    for block in _objects(content if isinstance(content, list) else message.get("parts")):
        is_thought = block.get("thought") is True or block.get("type") == "thinking"
        (thoughts if is_thought else texts).append(_text(block.get("text")) or _text(block.get("thinking")))
    return "".join(thoughts), "".join(texts)


def _scanned(text: str, tools: ToolSet | None, format: str, reason: str | None, repair: str) -> list[Part]:
    scanner = CallScanner(format, tools)
    parts = settled([*scanner.feed(text), *scanner.close(reason)])
    if format != "auto" and repair is _IN_TEXT:
        return list(parts)
    return [replace(part, repairs=(*part.repairs, repair)) if isinstance(part, CallPart) else part for part in parts]


def _made(
    calls: Iterable[Native], tools: ToolSet | None, reason: str | None, repairs: Mapping[int, str] | None = None
) -> list[Part]:
    """Return the calls that the server has read. In a reply that was cut off nothing of the last one is mended."""
    scan = Scan(tools, named=True)
    listed = list(calls)
    for number, (name, arguments, id) in enumerate(listed):
        scan.is_cut = reason in CUT and number == len(listed) - 1
        more = (repairs or {}).get(number)
        scan.call(name, arguments, 0, id=id, as_text=True, repairs=(more,) if more else ())
    scan.end()
    return scan.taken()


class DeltaScanner:
    """Reads OpenAI's stream of chunks: text and thinking as they arrive, calls at the end.

    `usage` is the last running total that was reported, None when none was; `finish_reason` the last one given. What
    servers get wrong about the pieces of calls is put right by `deltas`.
    """

    def __init__(self, format: str = "auto", tools: ToolSet | None = None) -> None:
        self.finish_reason: str | None = None
        self._tools = tools
        self._format = format
        self._scanner = CallScanner(format, tools)
        self._thoughts: list[str] = []
        self._has_said = False
        self._calls = StreamedCalls()
        self._reports = UsageReports()
        self._in_text: list[Part] = []

    @property
    def usage(self) -> dict[str, Json] | None:
        """What the stream has reported of its cost."""
        return self._reports.total

    def feed(self, chunk: Mapping[str, Any]) -> list[Part]:
        """Read one chunk; return the text and thinking in it that are certain."""
        data = cast("Mapping[str, Json]", chunk)
        self._reports.hear(data.get("usage"))
        choice = next(iter(_objects(data.get("choices"))), None)
        if choice is None:
            return []
        self.finish_reason = _text(choice.get("finish_reason")) or self.finish_reason
        delta = _object(choice.get("delta")) or _object(choice.get("message"))
        thought = next((text for key in _REASONING if (text := _text(delta.get(key)))), "")
        parts: list[Part] = []
        if thought:
            self._thoughts.append(thought)
            parts.append(ThinkingPart(thought))
        if text := _text(delta.get("content")):
            parts += self._sorted(self._scanner.feed(text))
        self._calls.put_right(list(_objects(delta.get("tool_calls"))))
        return parts

    def close(self, finish_reason: str | None = None) -> list[Part]:
        """Return what is left: the rest of the text, and the calls."""
        reason = self.finish_reason or finish_reason
        parts = self._sorted(self._scanner.close(reason))
        if calls := self._calls.whole:
            repairs = dict.fromkeys(self._calls.under_one_index, _ONE_INDEX)
            return [*parts, *_made(calls, self._tools, reason, repairs)]
        if self._in_text:
            return [*parts, *self._in_text]
        if not self._has_said and self._thoughts:
            rehearsed = _scanned("".join(self._thoughts), self._tools, self._format, reason, _IN_REASONING)
            return [*parts, *(part for part in rehearsed if isinstance(part, CallPart | BrokenCall))]
        return parts

    def _sorted(self, parts: Iterable[Part]) -> list[Part]:
        """Return the text in the parts; calls wait until it is certain that the server has read none."""
        now: list[Part] = []
        for part in parts:
            if isinstance(part, CallPart) and self._format == "auto":
                self._in_text.append(replace(part, repairs=(*part.repairs, _IN_TEXT)))
            elif isinstance(part, CallPart | BrokenCall):
                self._in_text.append(part)
            else:
                if isinstance(part, ThinkingPart) and part.all_before:
                    self._in_text.clear()
                self._has_said = self._has_said or (isinstance(part, TextPart) and bool(part.text.strip()))
                now.append(part)
        return now
