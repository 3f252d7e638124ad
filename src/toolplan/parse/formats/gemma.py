"""FunctionGemma and Gemma 4: a call in braces without quotes, texts between marks of their own.

    <start_function_call>call:get_weather{city:<escape>Oslo<escape>,days:3}<end_function_call>
    <|tool_call>call:get_weather{city:<|"|>Oslo<|"|>}<tool_call|>

Gemma 3 writes Python calls in a fence named `tool_code`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolplan.diagnostics import formats as say
from toolplan.parse.formats.arguments import Refused, json_without
from toolplan.parse.formats.cursor import Marks, Reader
from toolplan.parse.formats.format import Format, Opener, result_text
from toolplan.parse.formats.parts import CallPart
from toolplan.parse.formats.scan import FoundValue, Scan
from toolplan.parse.formats.wrappers import after_calls
from toolplan.parse.json_text import MAX_LEVELS, Unacceptable, Unreadable, decode
from toolplan.values import Json

__all__ = ["FORMAT"]

_BEGIN = Marks(("<start_function_call>", "<|tool_call>"))
_END = Marks(("<end_function_call>", "<tool_call|>"))
_QUOTES = ("<escape>", '<|"|>')
_PIECES = Marks((*_QUOTES, '"', *_END.marks, *_BEGIN.marks))
_CLOSING = {quote: Marks((quote,)) for quote in _QUOTES}
_HEAD = re.compile(r"\s*call\s*:\s*([^\s{]+)\s*")


def _read(scan: Scan, mark: str, start: int) -> Reader[None]:
    """Read on behind the mark that begins a call."""
    scan.format = "gemma"
    pieces: list[str] = []
    end = ""
    while True:
        text, end = yield from scan.cursor.until(_PIECES, take=False)
        pieces.append(text)
        if not end or end in _END.marks or end in _BEGIN.marks:
            break
        pieces.append(scan.cursor.take(scan.cursor.at + len(end)))
        if end == '"':
            pieces.append((yield from scan.cursor.string()))
        else:
            inside, closing = yield from scan.cursor.until(_CLOSING[end])
            pieces += [inside, closing]
    raw = "".join(pieces)
    yield from scan.cursor.mark(_END)
    head = _HEAD.match(raw)
    name = head[1] if head else None
    try:
        if head is None:
            raise _NotValue("expected `call:NAME{...}`")
        reader = _Values(raw, head.end())
        arguments = reader.value()
        if raw[reader.at :].strip():
            raise _NotValue("there is more behind its end")
    except _NotValue as error:
        ended = not end and not (yield from scan.cursor.ahead())
        refused = Refused("cut") if ended else Refused("broken", str(error))
        scan.damaged(FoundValue(raw, None, refused), start, _BEGIN, _END, name)
        return
    scan.call(name or "", arguments, start)


def _stray_text(scan: Scan, mark: str, start: int) -> Reader[None]:
    """Pass what follows a mark around a text that stands outside of any call: a call whose beginning is damaged."""
    scan.doubt()
    yield from scan.cursor.until(_END)
    scan.broken(say.broken_call(scan.place(start), None, f"`{mark}` stands outside of any call"), None)


class _NotValue(ValueError):
    pass


_SPACE = re.compile(r"\s*")
_BARE = re.compile(r"[^,{}\[\]:<]*")


class _Values:
    """Reads values that are written without JSON's quotes."""

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at
        self.levels = 0

    def skip(self) -> None:
        match = _SPACE.match(self.text, self.at)
        self.at = match.end() if match else self.at

    def take(self, mark: str) -> bool:
        self.skip()
        if self.text.startswith(mark, self.at):
            self.at += len(mark)
            return True
        return False

    def need(self, mark: str) -> None:
        if not self.take(mark):
            found = self.text[self.at : self.at + 20]
            raise _NotValue(f"expected `{mark}`, found `{found}`" if found else "it ends too early")

    def quoted(self) -> str | None:
        for quote in _QUOTES:
            if self.take(quote):
                end = self.text.find(quote, self.at)
                if end < 0:
                    raise _NotValue("a text has no end")
                text = self.text[self.at : end]
                self.at = end + len(quote)
                return text
        if self.text.startswith('"', self.at):
            try:
                decoded = decode(self.text, self.at)
            except (Unreadable, Unacceptable):
                raise _NotValue("a text has no end") from None
            self.at = decoded.end
            return decoded.value if isinstance(decoded.value, str) else ""
        return None

    def bare(self) -> str:
        match = _BARE.match(self.text, self.at)
        text = match[0] if match else ""
        self.at += len(text)
        return text.strip()

    def value(self) -> Json:
        self.levels += 1
        if self.levels > MAX_LEVELS:
            raise _NotValue("it is nested too deeply")
        found = self.one()
        self.levels -= 1
        return found

    def one(self) -> Json:
        if self.take("{"):
            entries: dict[str, Json] = {}
            while not self.take("}"):
                key = self.quoted()
                key = self.bare() if key is None else key
                if key in entries:
                    raise _NotValue(f"the argument `{key}` is given twice")
                self.need(":")
                entries[key] = self.value()
                if not self.take(","):
                    self.need("}")
                    break
            return entries
        if self.take("["):
            items: list[Json] = []
            while not self.take("]"):
                items.append(self.value())
                if not self.take(","):
                    self.need("]")
                    break
            return items
        text = self.quoted()
        if text is not None:
            return text
        word = self.bare()
        if not word:
            raise _NotValue("a value is missing")
        try:
            decoded = decode(word, 0)
        except (Unreadable, Unacceptable):
            return word
        return decoded.value if decoded.end == len(word) else word


_MARKS = (*_QUOTES, *_BEGIN.marks, *_END.marks)
_KEY = re.compile(r"[^\W\d]\w*")


def _written(value: Json) -> str:
    if isinstance(value, dict):
        entries = (f"{key if _KEY.fullmatch(key) else _text(key)}:{_written(item)}" for key, item in value.items())
        return "{" + ",".join(entries) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_written(item) for item in value) + "]"
    return _text(value) if isinstance(value, str) else json_without(value, ())


def _text(text: str) -> str:
    return json_without(text, _MARKS) if any(mark in text for mark in _MARKS) else f"<escape>{text}<escape>"


def _write(calls: Sequence[CallPart]) -> str:
    return "".join(
        f"<start_function_call>call:{call.name}{_written(call.arguments)}<end_function_call>" for call in calls
    )


def _write_results(calls: Sequence[CallPart], results: Sequence[Json]) -> str:
    return "".join(
        f"<start_function_response>response:{call.name}{{value:<escape>{result_text(result)}<escape>}}"
        "<end_function_response>"
        for call, result in zip(calls, results, strict=False)
    )


FORMAT = Format(
    "gemma",
    "FunctionGemma, Gemma 3 and 4",
    (Opener(_BEGIN.marks, _read), after_calls(*_END.marks), Opener(_QUOTES, _stray_text, is_call=False)),
    _write,
    _write_results,
    also=("functiongemma", "gemma3", "gemma4"),
)
