"""Marks around calls that differ from one model to the next in nothing but how they are spelt.

    <function_call> {"name": "get_weather", "arguments": {...}}                  Granite 20B, and many others
    <TOOLCALL>[{"name": "get_weather", "arguments": {...}}]</TOOLCALL>           Nemotron
    <|tools_prefix|>[{"get_weather": {"city": "Oslo"}}]<|tools_suffix|>          Apertus
    [TOOL_REQUEST]{"name": ..., "arguments": ...}[END_TOOL_REQUEST]              LM Studio
    <function_calls>get_weather(city="Oslo")</function_calls>                    OLMo 3
    <minimax:tool_call><tool_name>get_weather</tool_name><parameters>{...}</parameters></minimax:tool_call>

One table has what stands around, one reader what stands inside: JSON, a name before JSON, a name and JSON in tags, or
Python calls. What closes them is often left out, so another call, the end of a line or of the reply ends one too.

Tags may stand in any text about tools. So what is in one and is no call of a tool stays text; between special tokens,
which no text has, it is a broken call.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from toolplan.diagnostics import formats as say
from toolplan.parse.formats import hermes
from toolplan.parse.formats.arguments import Refused
from toolplan.parse.formats.cursor import Marks, Reader
from toolplan.parse.formats.format import Opener
from toolplan.parse.formats.pythonic import NotCalls, read_calls
from toolplan.parse.formats.scan import FoundValue, Scan, call_in, named_in, says_arguments
from toolplan.parse.formats.wrappers import TOKENS, after_calls
from toolplan.values import Json

__all__ = ["CLOSED_BY", "ENDS", "FUNCTION_CALL", "OPENERS", "SHARED", "TOOL_CALLS", "named_by_tags", "spelt"]

_BARS = ("|", "｜", "||", "｜｜")
_GAPS = ("_", "▁", " ")


def spelt(words: str, *, slash: bool = False) -> tuple[str, ...]:
    """Return a special token in the spellings that occur: its bars, what stands between its words, its letters."""
    names = [name for gap in _GAPS for name in (words.replace(" ", gap), words.replace(" ", gap).upper())]
    forms = ("<{bar}/{name}{bar}>", "</{bar}{name}{bar}>") if slash else ("<{bar}{name}{bar}>",)
    spellings = itertools.product(forms, _BARS, names)
    return tuple(dict.fromkeys(form.format(bar=bar, name=name) for form, bar, name in spellings))


@dataclass(frozen=True)
class _Wrapper:
    """Marks around calls. `is_token`: they are special tokens, which stand in no text by accident."""

    opening: Marks
    closing: Marks
    both: Marks
    is_token: bool = False
    declares: bool = False
    """Whether prompts have the declarations of tools between these marks."""


def _wrapper(opening: Sequence[str], closing: Sequence[str], *, is_token: bool, declares: bool = False) -> _Wrapper:
    return _Wrapper(Marks(opening), Marks(closing), Marks((*opening, *closing)), is_token, declares)


def _tags(name: str, *, declares: bool = False) -> _Wrapper:
    names = [each for each in (name, name.upper()) if each != "tool_call"]
    closing = [f"</{each}>" for each in names]
    return _wrapper([f"<{each}>" for each in names], closing, is_token=False, declares=declares)


def _tokens(opening: Sequence[str], closing: Sequence[str]) -> _Wrapper:
    ends = (*(mark for words in closing for mark in spelt(words)), *spelt(opening[0], slash=True))
    return _wrapper([mark for words in opening for mark in spelt(words)], ends, is_token=True)


def _around(words: str) -> _Wrapper:
    return _tokens((words, f"{words} start", f"{words} begin"), (f"{words} end", f"end {words}"))


_PLAIN = ("function_call", "functioncall", "function_calls", "tool_use", "tool_call", "tool_calls", "toolcall")
_FUNCTION_CALL = _tags("function_call")
_TOOL_CALLS = _around("tool calls")
_WRAPPERS = (
    *(_FUNCTION_CALL if name == "function_call" else _tags(name) for name in _PLAIN),
    *map(_tags, ("toolcalls", "tool_code", "minimax:tool_call")),
    _tags("tools", declares=True),
    _TOOL_CALLS,
    *map(_around, ("tool call", "function call", "function calls")),
    *(_tokens((begin,), (end,)) for begin, end in (("tools prefix", "tools suffix"), ("start action", "end action"))),
    _tokens(("action start",), ("action end",)),
    *(
        _wrapper((f"[{name}]",), (f"[END_{name}]", f"[/{name}]"), is_token=True)
        for name in ("TOOL_REQUEST", "TOOL_CALL", "FUNCTION_CALL")
    ),
)
"""Everything that stands around calls, but for the marks that belong to one format alone."""
_OF = {mark: wrapper for wrapper in _WRAPPERS for mark in wrapper.opening.marks}
CLOSED_BY = {mark: f"</{mark[1:]}" for mark in _OF if mark.startswith("<") and mark[1].isalpha()}
"""What closes each of the tags."""
ENDS = tuple(mark for wrapper in _WRAPPERS for mark in wrapper.closing.marks)
"""All that closes something of these."""

_TOKENS = Marks(TOKENS.marks)
_PLUGIN = Marks(("<|plugin|>", "<|interpreter|>", "<｜plugin｜>"))
_NAME_TAGS = ("tool_name", "name", "function_name", "function")
_BODY_TAGS = ("parameters", "arguments", "input", "args", "params", "tool_input", "tool_args")
_NAME_BEGIN = Marks(f"<{name}>" for name in _NAME_TAGS)
_NAME_END = Marks(f"</{name}>" for name in _NAME_TAGS)
_BODY_BEGIN = Marks(f"<{name}>" for name in _BODY_TAGS)
_BODY_END = Marks(f"</{name}>" for name in _BODY_TAGS)
_NONE = Marks(())
_WORD = re.compile(r"[\w.\-]*")
_LIST = re.compile(r"[\[\s]*")
_BETWEEN = re.compile(r"[\s,;]*")
_IN_TAG = re.compile(r"[^<>\n]*")
_PRINT = "print"


def _read(scan: Scan, mark: str, start: int) -> Reader[None]:
    """Read on behind what begins such calls."""
    wrapper = _OF[mark]
    trial = scan.try_out()
    scan.format = "hermes"
    yield from scan.cursor.space()
    if wrapper.is_token and (yield from scan.cursor.mark(_PLUGIN)):
        yield from scan.cursor.space()
    if (yield from scan.cursor.mark(scan.call_marks, take=False)):  # it stands around calls with marks of their own
        scan.mark_passed()
        scan.accept(trial)
        return
    following = yield from scan.cursor.ahead(3)
    if following[:1] in ("{", "[") or following == "```":
        is_python = following[:1] == "[" and (yield from _is_python(scan))
        read = _python if is_python else _json
        is_call = yield from read(scan, wrapper, start)
    elif following[:1] == "<":
        is_call = yield from named_by_tags(scan, wrapper.both, start)
        is_call = is_call and (yield from _has_ended(scan, wrapper))
    else:
        is_call = yield from _named(scan, wrapper, start)
    if is_call:
        scan.accept(trial)
    else:
        scan.reject(trial, mark)


def _has_ended(scan: Scan, wrapper: _Wrapper) -> Reader[bool]:
    """Pass what closes the calls; whether they end here in any way."""
    gap = yield from scan.cursor.while_in(_BETWEEN)
    if (yield from scan.cursor.mark(wrapper.closing)):
        return True
    ends = not (yield from scan.cursor.ahead()) or bool((yield from scan.cursor.mark(_TOKENS, take=False)))
    ends = ends or bool((yield from scan.cursor.mark(scan.call_marks, take=False)))
    scan.cursor.put_back(gap)
    return ends or "\n" in gap


# ---- JSON


def _json(scan: Scan, wrapper: _Wrapper, start: int) -> Reader[bool]:
    """Pass calls in JSON, one or several or a list, and hand them on; whether they are any."""
    values: list[Json] = []
    repairs: list[str] = []
    while True:
        found = yield from hermes.fenced_value(scan, wrapper.both)
        if found.read is None:
            return (yield from _damaged(scan, found, wrapper, start))
        values += found.read.value if isinstance(found.read.value, list) else [found.read.value]
        repairs += found.read.repairs
        gap = yield from scan.cursor.while_in(_BETWEEN)
        following = yield from scan.cursor.ahead(3)
        if following[:1] not in ("{", "[") and following != "```":
            break
        if (yield from scan.cursor.mark(wrapper.both, take=False)):  # in brackets, as a list is
            break
    scan.cursor.put_back(gap)
    calls = [call for value in values for call in _calls_in(scan, value, wrapper)]
    is_read = bool(values) and len(calls) >= len(values) and not any(call is None for call in calls)
    if not is_read and not wrapper.is_token:
        return False
    if not (yield from _has_ended(scan, wrapper)):
        return False
    for call in calls:
        if call is None:
            scan.broken(say.no_tool_named(scan.place(start), "a value that is no call"), None)
        else:
            scan.call(call[0], call[1], start, id=call[2], repairs=repairs)
    return bool(calls)


_Called = tuple[str, Json, str | None]


def _calls_in(scan: Scan, value: Json, wrapper: _Wrapper) -> list[_Called | None]:
    """Return the calls that a value is: with its name and arguments, or `{NAME: {...}}`; None stands for no call."""
    call = call_in(value)
    if call is not None and wrapper.declares and not _is_no_declaration(scan, value, call[0]):
        call = None
    if call is not None and (
        says_arguments(value) or wrapper.is_token or (scan.tool(call[0]) and not wrapper.declares)
    ):
        return [call]
    if not isinstance(value, dict) or not value or not all(isinstance(item, dict) for item in value.values()):
        return [None]
    if scan.tools is None:
        keyed = wrapper.is_token and len(value) == 1
    else:
        keyed = all(key in scan.tools.names for key in value)
    return [(key, item, None) for key, item in value.items()] if keyed else [None]


def _is_no_declaration(scan: Scan, value: Json, name: str) -> bool:
    is_wrapped = isinstance(value, dict) and "function" in value
    return not is_wrapped and (scan.tools is None or scan.tool(name) is not None)


def _damaged(scan: Scan, found: FoundValue, wrapper: _Wrapper, start: int) -> Reader[bool]:
    """Hand on a damaged call, where it certainly was meant as one of a tool."""
    name = named_in(found.raw) or _tool_in(scan, found.raw)
    if not wrapper.is_token and (name is None or (scan.tools is not None and scan.tool(name) is None)):
        return False
    scan.damaged(found, start, wrapper.opening, _NONE, name)
    gap = yield from scan.closing(wrapper.closing)
    if gap:
        scan.cursor.put_back(gap)
    return True


_NAMES = re.compile(r"[\w.\-]+")
_REACH = 300


def _tool_in(scan: Scan, raw: str) -> str | None:
    """Return the first tool that a damaged call names, wherever."""
    if scan.tools is None:
        return None
    return next((word for word in _NAMES.findall(raw[:_REACH]) if word in scan.tools.names), None)


# ---- a name first


def _named(scan: Scan, wrapper: _Wrapper, start: int) -> Reader[bool]:
    """Pass calls that begin with a name: Python's, or the name before JSON."""
    name = yield from scan.cursor.while_in(_WORD)
    if not name:
        return False
    if (yield from scan.cursor.ahead()) == "(":
        scan.cursor.put_back(name)
        return (yield from _python(scan, wrapper, start))
    yield from scan.cursor.space()
    if (yield from scan.cursor.ahead()) != "{":
        if not wrapper.is_token or scan.tool(name) is None:
            return False
        written, _ = yield from scan.cursor.until(wrapper.both, take=False)
        refused = Refused("broken", "expected a JSON object") if written.strip() else Refused("cut")
        return (yield from _damaged(scan, FoundValue(f"{name} {written}", None, refused), wrapper, start))
    while True:
        found = yield from scan.json_value(wrapper.both)
        if found.read is None:
            return (yield from _damaged(scan, FoundValue(f"{name} {found.raw}", None, found.refused), wrapper, start))
        if not wrapper.is_token and scan.tools is not None and scan.tool(name) is None:
            return False
        scan.call(name, found.read.value, start, repairs=found.read.repairs)
        gap = yield from scan.cursor.while_in(_BETWEEN)
        start = scan.cursor.offset
        name = yield from scan.cursor.while_in(_WORD)
        space = yield from scan.cursor.space()
        if not name or (yield from scan.cursor.ahead()) != "{":
            scan.cursor.put_back(gap + name + space)
            return (yield from _has_ended(scan, wrapper))


def _is_python(scan: Scan) -> Reader[bool]:
    """Whether a Python call or a list of them stands here; nothing is passed."""
    head = yield from scan.cursor.while_in(_LIST)
    name = yield from scan.cursor.while_in(_WORD)
    following = yield from scan.cursor.ahead()
    scan.cursor.put_back(head + name)
    return following == "(" and name[:1].isidentifier()


def _python(scan: Scan, wrapper: _Wrapper, start: int) -> Reader[bool]:
    """Pass Python calls, in a list or one behind the other."""
    scan.format = "llama_pythonic"
    while True:
        name = yield from scan.cursor.while_in(_WORD)
        extent = yield from scan.cursor.value(wrapper.both, calls=True)
        text = extent.text[1:-1] if name == _PRINT and extent.whole else name + extent.text
        try:
            calls = read_calls(text)
        except NotCalls as error:
            refused = Refused("broken", error.problem)
            if not extent.whole and not (yield from scan.cursor.ahead()):
                refused = Refused("cut")
            return (yield from _damaged(scan, FoundValue(text, None, refused), wrapper, start))
        if not wrapper.is_token and scan.tools is not None and any(scan.tool(call.name) is None for call in calls):
            return False
        for call in calls:
            scan.call(call.name, call.arguments, start, values=call.values)
        gap = yield from scan.cursor.while_in(_BETWEEN)
        start = scan.cursor.offset
        if not (yield from _is_python(scan)):
            scan.cursor.put_back(gap)
            return (yield from _has_ended(scan, wrapper))


def named_by_tags(scan: Scan, ends: Marks, start: int) -> Reader[bool]:
    """Pass calls whose names and arguments stand in tags, and hand them on; whether there is any."""
    scan.format = "hermes"
    before = scan.calls
    while (yield from scan.cursor.mark(_NAME_BEGIN)):
        name = (yield from scan.cursor.while_in(_IN_TAG)).strip()
        if not name or not (yield from scan.cursor.mark(_NAME_END)):
            return False
        gap = yield from scan.cursor.space()
        if not (yield from scan.cursor.mark(_BODY_BEGIN)):
            if (yield from scan.cursor.mark(ends, take=False)) or (
                yield from scan.cursor.mark(_NAME_BEGIN, take=False)
            ):
                if scan.tools is not None and scan.tool(name) is None:
                    return False
                scan.call(name, {}, start)
                continue
            written, _ = yield from scan.cursor.until(ends, take=False)
            refused = Refused("broken", "its arguments are missing") if written.strip() else Refused("cut")
            scan.damaged(FoundValue(written, None, refused), start, _NONE, _NONE, name)
            return True
        yield from scan.cursor.space()
        found = yield from hermes.fenced_value(scan, _with_body_end(ends))
        if found.read is None:
            scan.damaged(found, start, _NONE, _NONE, name)
        else:
            scan.call(name, found.read.value, start, repairs=found.read.repairs)
        yield from scan.cursor.space()
        yield from scan.cursor.mark(_BODY_END)
        gap = yield from scan.cursor.space()
        start = scan.cursor.offset
        if not (yield from scan.cursor.mark(_NAME_BEGIN, take=False)):
            scan.cursor.put_back(gap)
    return scan.calls > before


def _with_body_end(ends: Marks) -> Marks:
    found = _WITH_BODY_END.get(ends.marks)
    if found is None:
        found = _WITH_BODY_END[ends.marks] = Marks((*ends.marks, *_BODY_END.marks))
    return found


_WITH_BODY_END: dict[tuple[str, ...], Marks] = {}

FUNCTION_CALL = Opener(_FUNCTION_CALL.opening.marks, _read), after_calls(*_FUNCTION_CALL.closing.marks)
TOOL_CALLS = Opener(_TOOL_CALLS.opening.marks, _read), after_calls(*_TOOL_CALLS.closing.marks)
"""`<function_call>` and `<|tool_calls|>`, for the formats that have them."""
SHARED = Opener(("<function_calls>", "<minimax:tool_call>"), _read)
"""Marks that belong to a format too, which has calls with marks of their own in them."""
OPENERS = Opener(tuple(_OF), _read), after_calls(*ENDS)
