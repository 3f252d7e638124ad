"""OpenAI's harmony, as gpt-oss models write it when no server reads it: messages on channels.

    <|channel|>analysis<|message|>I have to look it up.<|end|>
    <|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo"}...

`analysis` is thinking, `final` and what goes `to` nobody is text. A server that drops special tokens may leave a header
that begins in its middle: `to=functions.get_weather <|constrain|>json<|message|>{"city": "Oslo"}<|call|>`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolplan.parse.formats.arguments import json_without
from toolplan.parse.formats.cursor import Marks, Reader
from toolplan.parse.formats.format import Format, Opener, result_text
from toolplan.parse.formats.parts import CallPart
from toolplan.parse.formats.scan import Scan
from toolplan.values import Json

__all__ = ["FORMAT"]

_MESSAGE = Marks(("<|message|>",))
_HEADER_END = Marks(("<|message|>", "\n"))
_ENDS = Marks(("<|end|>", "<|call|>", "<|return|>", "<|start|>", "<|channel|>"))
_OPENERS = Marks(("<|channel|>", "<|start|>"))
_CLOSERS = Marks(("<|call|>", "<|end|>"))
_LEFT = "to=functions."
_HEADER = re.compile(r"[^{}\"\\]*")
_TO = re.compile(r"\bto=(?:functions\.)?([\w.\-]+)")


def _read(scan: Scan, mark: str, start: int) -> Reader[None]:
    """Read on behind `<|start|>` or `<|channel|>`: the header, then the message."""
    trial = scan.try_out()
    header, end = yield from scan.cursor.until(_HEADER_END)
    header = (mark if mark == _LEFT else "") + header
    named = _TO.findall(header)
    if end not in _MESSAGE.marks or len(named) > 1 or not _HEADER.fullmatch(header):
        scan.reject(trial, mark)
        return
    scan.format = "harmony"
    scan.accept(trial)
    to = named[0] if named else ""
    if to and to not in ("user", "assistant", "all"):
        yield from scan.cursor.space()
        found = yield from scan.json_body(start, _OPENERS, _CLOSERS, name=to)
        if found is not None:
            scan.call(to, found.value, start, repairs=found.repairs)
        return
    say = scan.thinking if "analysis" in header else scan.text
    while True:
        text, end = scan.cursor.piece(_ENDS, take=False)
        say(text)
        if end or scan.cursor.closed:
            if end and end not in _OPENERS.marks:
                yield from scan.cursor.mark(_ENDS)
            scan.mark_thought()
            return
        yield


_MARKS = (*_ENDS.marks, *_MESSAGE.marks)


def _write(calls: Sequence[CallPart]) -> str:
    return "<|start|>assistant".join(
        f"<|channel|>commentary to=functions.{call.name} <|constrain|>json<|message|>"
        f"{json_without(call.arguments, _MARKS)}<|call|>"
        for call in calls
    )


def _write_results(calls: Sequence[CallPart], results: Sequence[Json]) -> str:
    return "".join(
        f"<|start|>functions.{call.name} to=assistant<|channel|>commentary<|message|>{result_text(result)}<|end|>"
        for call, result in zip(calls, results, strict=False)
    )


FORMAT = Format(
    "harmony",
    "OpenAI gpt-oss",
    (Opener(("<|start|>", "<|channel|>", _LEFT), _read),),
    _write,
    _write_results,
    also=("gpt_oss",),
)
