"""Calls written as Python: `[get_weather(city="Oslo"), send(to=["a"], urgent=True)]`.

Only what Python and JSON write for values is read: texts, numbers, constants, lists, tuples, dictionaries. Nothing is
executed, compiled or looked up. References to results that other systems write bare (`$1`, `{{flights}}`) come out as
their own text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from toolplan.parse.formats.arguments import json_without
from toolplan.parse.formats.parts import CallPart
from toolplan.parse.json_text import MAX_LEVELS
from toolplan.patterns import late_pattern
from toolplan.values import Json

__all__ = ["NotCalls", "PythonCall", "read_call", "read_calls", "text_of", "write_call"]


class NotCalls(ValueError):
    """The text is not calls with constant arguments. `problem` says what stands there instead."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


@dataclass
class PythonCall:
    """A call as written: values without names come first."""

    name: str
    values: list[Json] = field(default_factory=list["Json"])
    arguments: dict[str, Json] = field(default_factory=dict[str, "Json"])


_TOKEN = late_pattern(
    r"""\s*+(?:
      (?P<string>[rRbBuUfF]{0,2}(?:\"{3}(?:[^"\\]++|\\.|"(?!""))*+\"{3} | '{3}(?:[^'\\]++|\\.|'(?!''))*+'{3}
          | "(?:[^"\\\n]++|\\.|\n)*+" | '(?:[^'\\\n]++|\\.|\n)*+'))
    | (?P<number>-?(?:\d[\d_]*(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])
    | (?P<reference>\$\{?\w+\}?(?:\.\w+|\[\d+\])* | \#E\d+(?:\.\w+|\[\d+\])* | \{\{[^{}"']*\}\})
    | (?P<name>[^\W\d][\w.-]*)
    | (?P<mark>\*\*|[()\[\]{},:=])
    )""",
    re.VERBOSE | re.DOTALL,
)
_CONSTANTS: dict[str, Json] = {
    "True": True,
    "False": False,
    "None": None,
    "true": True,
    "false": False,
    "null": None,
}


class _Reader:
    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at
        self.levels = 0

    def peek(self) -> tuple[str, str]:
        match = _TOKEN.match(self.text, self.at)
        return (match.lastgroup or "", match[match.lastgroup or 0]) if match else ("", "")

    def next(self) -> tuple[str, str]:
        match = _TOKEN.match(self.text, self.at)
        if match is None:
            rest = self.text[self.at :].strip()
            raise NotCalls(f"found `{rest[:20]}`" if rest else "it ends too early")
        self.at = match.end()
        return match.lastgroup or "", match[match.lastgroup or 0]

    def take(self, mark: str) -> bool:
        kind, token = self.peek()
        if kind == "mark" and token == mark:
            self.next()
            return True
        return False

    def need(self, mark: str) -> None:
        if not self.take(mark):
            rest = self.text[self.at :].strip()
            raise NotCalls(f"expected `{mark}`, found `{rest[:20]}`" if rest else "it ends too early")

    def call(self) -> PythonCall:
        kind, name = self.next()
        if kind != "name":
            raise NotCalls(f"expected a tool's name, found `{name[:20]}`")
        self.need("(")
        found = PythonCall(name)
        while not self.take(")"):
            if self.take("**"):
                more = self.value()
                if not isinstance(more, dict):
                    raise NotCalls("`**` needs an object")
                self.add(found, more)
            else:
                start = self.at
                kind, key = self.next()
                if kind == "name" and self.take("="):
                    self.add(found, {key: self.value()})
                else:
                    self.at = start
                    if found.arguments:
                        raise NotCalls("a value without a name stands behind one with a name")
                    found.values.append(self.value())
            if not self.take(","):
                self.need(")")
                break
        return found

    @staticmethod
    def add(found: PythonCall, arguments: dict[str, Json]) -> None:
        for name, value in arguments.items():
            if name in found.arguments:
                raise NotCalls(f"the argument `{name}` is given twice")
            found.arguments[name] = value

    def value(self) -> Json:
        kind, token = self.next()
        if kind == "string":
            text = text_of(token)
            while self.peek()[0] == "string":
                text += text_of(self.next()[1])
            return text
        if kind == "number":
            return _number(token)
        if kind == "reference":
            return token
        if kind == "name" and token in _CONSTANTS:
            return _CONSTANTS[token]
        if kind == "mark" and token in ("[", "(", "{"):
            self.levels += 1
            if self.levels > MAX_LEVELS:
                raise NotCalls("it is nested too deeply")
            value = self.object() if token == "{" else self.items("]" if token == "[" else ")")
            self.levels -= 1
            return value
        if kind == "name" and self.peek() == ("mark", "("):
            raise NotCalls(f"the call of `{token[:40]}` stands inside of another one, which takes values only")
        raise NotCalls(f"`{token[:20]}` is no constant value")

    def items(self, end: str) -> Json:
        items: list[Json] = []
        comma = True
        while not self.take(end):
            items.append(self.value())
            comma = self.take(",")
            if not comma:
                self.need(end)
                break
        return items[0] if end == ")" and len(items) == 1 and not comma else items

    def object(self) -> Json:
        found: dict[str, Json] = {}
        while not self.take("}"):
            key = self.value()
            if not isinstance(key, str) or key in found:
                raise NotCalls("a key of an object is no text, or is there twice")
            self.need(":")
            found[key] = self.value()
            if not self.take(","):
                self.need("}")
                break
        return found


def text_of(token: str) -> str:
    """Return the text that a quoted token of Python or JSON is. Raises `NotCalls`."""
    start = next(index for index, ch in enumerate(token) if ch in "\"'")
    prefix = token[:start].lower()
    if prefix not in ("", "r", "u"):
        raise NotCalls("a text has holes or bytes in it")
    body = token[start:]
    if prefix == "r" or "\\" not in body:
        return body[_width(body) : -_width(body)]
    width = _width(body)
    plain = _ESCAPE.sub(_unescaped, body[width:-width])
    try:
        return plain.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise NotCalls("half of a surrogate pair is not a character") from None


def _width(body: str) -> int:
    return 3 if body[:3] in ('"""', "'''") and len(body) >= 6 else 1


_ESCAPE = late_pattern(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(\r?\n|.))", re.DOTALL)
_PLAIN = dict(zip("ntrbfav\\'\"/", "\n\t\r\b\f\a\v\\'\"/", strict=True)) | {"\n": "", "\r\n": ""}


def _unescaped(match: re.Match[str]) -> str:
    octal, *hexadecimal, other = match.groups()
    if other is not None:
        return _PLAIN.get(other, match[0])
    code = int(octal, 8) if octal else int(next(digits for digits in hexadecimal if digits), 16)
    if code > 0x10FFFF:
        raise NotCalls(f"`{match[0]}` is not a character")
    return chr(code)


def _number(token: str) -> Json:
    plain = token.replace("_", "")
    try:
        value = int(plain) if re.fullmatch(r"-?\d+", plain) else float(plain)
    except ValueError:
        raise NotCalls(f"`{token[:20]}` is no number") from None
    if isinstance(value, float) and value - value != 0:
        raise NotCalls(f"`{token[:20]}` is too large")
    return value


def read_call(text: str, at: int = 0) -> tuple[PythonCall, int]:
    """Return the call that begins at `at`, and where it ends. Raises `NotCalls`."""
    reader = _Reader(text, at)
    return reader.call(), reader.at


def read_calls(text: str) -> list[PythonCall]:
    """Return the calls that the whole text is: a list of them, or one. Raises `NotCalls`."""
    reader = _Reader(text, 0)
    calls: list[PythonCall] = []
    if reader.take("["):
        while not reader.take("]"):
            calls.append(reader.call())
            if not reader.take(","):
                reader.need("]")
                break
    else:
        calls.append(reader.call())
    if text[reader.at :].strip():
        raise NotCalls(f"there is more behind its end: `{text[reader.at :].strip()[:20]}`")
    if not calls:
        raise NotCalls("the list is empty")
    return calls


_PYTHON = {True: "True", False: "False", None: "None"}


def write_call(call: CallPart, marks: Sequence[str] = ()) -> str:
    """Return the call as Python; names that Python does not allow go into `**{...}`."""
    named = {name: value for name, value in call.arguments.items() if re.fullmatch(r"[^\W\d]\w*", name)}
    parts = [f"{name}={written(value, marks)}" for name, value in named.items()]
    rest = {name: value for name, value in call.arguments.items() if name not in named}
    if rest:
        parts.append(f"**{written(rest, marks)}")
    return f"{call.name}({', '.join(parts)})"


def written(value: Json, marks: Sequence[str] = ()) -> str:
    """Return a value as Python writes it, texts in JSON's quotes."""
    if isinstance(value, dict):
        entries = (f"{json_without(key, marks)}: {written(item, marks)}" for key, item in value.items())
        return "{" + ", ".join(entries) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(written(item, marks) for item in value) + "]"
    if value is None or isinstance(value, bool):
        return _PYTHON[value]
    return json_without(value, marks)
