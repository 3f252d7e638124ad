"""Calls without marks: JSON or Python calls, bare or in a code fence; and code fences in general.

What stands in a fence is an example, so no mark counts there. Without marks a call can be told from an example only by
what is around it. Where the format was named, JSON that says a tool and its arguments is a call. Where it was not, it
is one if the reply ends with it, and at most a short lead-in that asks nothing stands before it. Until that is
known the piece is held back; then it is handed on as calls, or as the text that it is.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from toolplan.parse.formats.arguments import Refused, json_without
from toolplan.parse.formats.bare_calls import bare_calls, final_answer
from toolplan.parse.formats.cursor import Marks, Reader
from toolplan.parse.formats.format import Format, Opener, no_results
from toolplan.parse.formats.output import Trial
from toolplan.parse.formats.parts import CallPart
from toolplan.parse.formats.pythonic import NotCalls, PythonCall, read_calls
from toolplan.parse.formats.scan import FoundValue, Scan, named_in
from toolplan.parse.formats.wrappers import TOKENS
from toolplan.parse.json_text import Unacceptable, Unreadable, decode
from toolplan.parse.spellings import CALL
from toolplan.parse.tool_names import meant_tool
from toolplan.values import Json

__all__ = ["BARE", "FENCES", "FORMAT", "UNMARKED", "read_bare", "read_fence"]

MAX_LEAD_IN = 200
"""After longer text, unmarked JSON is an example of what the text explains."""
MAX_FENCE = 100
"""A longer row of these characters is a line, not a fence; looking for another one like it would take long."""
FENCES = ("```", "~~~")
BARE = ("{", "[")

_NONE = Marks(())
_TOKEN_MARKS = Marks(TOKENS.marks)
_END_MARKS = Marks((*TOKENS.marks, "</tool_call>", "</tool_calls>", "</function_call>"))
"""What may stand behind bare calls: the end of a call whose beginning was left out is one more."""
_HEAD = re.compile(r"[\[{\s]*")
_KEY = re.compile(r"[^\"'\n\\]*")
_WORD = re.compile(r"[\w.\-]*")
_BETWEEN = re.compile(r"[\s;,]*")
_TICKS = {"`": re.compile(r"`*"), "~": re.compile(r"~*")}
_LANGUAGES = frozenset(("", "json", "json5", "jsonc", "jsonl", "tool_call", "tool", "xml", "text", "plaintext"))
_PYTHON = frozenset(("python", "python3", "py"))
"""In a fence for one of these, calls are a list and nothing else: other code is a program, or an example."""
_PROGRAMS = frozenset(("tool_code", *_PYTHON))
_KEYS = frozenset(
    ("type", "id", "role", "content", "parts", "function", "tool_calls", "tool_call", "function_call", "calls")
)
FENCED = "read a call that stood in a code fence"
UNMARKED = "read a call that stood there without the marks of a format"
"""The repair of a call that words come before: whether they announce it, `called` tells."""


def read_bare(scan: Scan, mark: str, start: int) -> Reader[None]:
    """Read on behind a bracket: calls, if it begins a line; else JSON in the text, in whose strings no mark counts."""
    scan.cursor.put_back(mark)
    trial = scan.try_out()
    if not scan.is_blank_line:
        head = yield from scan.cursor.while_in(_HEAD)
        if "{" in head and (yield from scan.cursor.ahead()) == '"':
            yield from _as_text(scan, trial)
        else:
            scan.reject(trial)
    elif not (yield from _value(scan, start, "")):
        yield from _as_text(scan, trial)
    elif (yield from _ends_here(scan, start)):
        scan.accept(trial)
    else:
        scan.reject(trial)


def read_fence(scan: Scan, mark: str, start: int) -> Reader[None]:
    """Read on behind a fence that begins a line."""
    was_blank = scan.is_blank
    trial = scan.try_out()
    fence = mark + (yield from scan.cursor.while_in(_TICKS[mark[0]]))
    if len(fence) > MAX_FENCE:
        scan.reject(trial, mark)
        return
    language = (yield from scan.cursor.while_in(_WORD)).lower()
    if language in _LANGUAGES or language in _PROGRAMS:
        yield from scan.cursor.space()
        inside = yield from scan.cursor.mark(scan.inner_marks, take=False)
        found = False
        if language in _PYTHON and inside != "[":
            found = not inside and (yield from _value(scan, start, language))
        elif inside and was_blank and scan.openers[inside].is_call:
            found = yield from _marked(scan)
        elif not inside:
            found = yield from _value(scan, start, language or "json")
        if found and (yield from _closes(scan, fence)):
            if (yield from _ends_here(scan, start)):
                scan.accept(trial)
            else:
                scan.reject(trial, mark)
            return
    scan.reject(trial, mark)
    closing = _mark(fence)
    while True:
        text, end = scan.cursor.piece(closing)
        scan.text(text)
        if end:
            is_closing = scan.is_blank_line
            scan.text(end)
            if is_closing:
                return
        elif scan.cursor.closed:
            return
        else:
            yield


@functools.lru_cache(maxsize=16)
def _mark(fence: str) -> Marks:
    return Marks((fence,))


def _closes(scan: Scan, fence: str) -> Reader[bool]:
    """Pass the end of a fence; whether it is there, or the reply has ended in its place."""
    yield from scan.cursor.space()
    if (yield from scan.cursor.mark(_mark(fence))):
        return True
    return not (yield from scan.cursor.ahead()) and not scan.is_cut


def _as_text(scan: Scan, trial: Trial) -> Reader[None]:
    """Hand on a piece that is no call. A JSON value is passed whole: marks in its strings are text.

    Where it is damaged nobody knows what is inside of a string, so the rest of its line is passed too.
    """
    scan.undo(trial)
    head = yield from scan.cursor.while_in(_HEAD)
    if "{" not in head and (yield from scan.cursor.ahead()) != '"':
        scan.text(head)
        return
    scan.cursor.put_back(head)
    scan.cursor.record()
    yield from scan.cursor.value(scan.line_marks, sink=scan.text)
    written = scan.cursor.recorded()
    try:
        decode(written, 0)
    except (Unreadable, Unacceptable):
        scan.text((yield from scan.cursor.while_in(_LINE)))


_LINE = re.compile(r"[^\n]*")


def _marked(scan: Scan) -> Reader[bool]:
    """Pass marked calls in a fence that is the whole reply."""
    before = scan.calls
    while True:
        yield from scan.cursor.space()
        mark = yield from scan.cursor.mark(scan.inner_marks, take=False)
        if not mark or not scan.openers[mark].is_call:
            return scan.calls > before
        scan.cursor.take(scan.cursor.at + len(mark))
        yield from scan.openers[mark].read(scan, mark, scan.cursor.offset - len(mark))


def _may_be_call(scan: Scan) -> bool:
    return scan.named or (scan.said <= MAX_LEAD_IN and not scan.asks)


def _value(scan: Scan, start: int, fence: str) -> Reader[bool]:
    """Pass one JSON value, or Python calls, and hand on the calls that it is; whether it is any.

    Whatever is passed can still be put back. `fence` is the language of the fence around it, if there is one.
    """
    if not _may_be_call(scan):
        return False
    head = yield from scan.cursor.while_in(_HEAD)
    opening = yield from scan.cursor.ahead()
    if fence in _PYTHON and head.strip() != "[":
        return False
    if fence == "tool_code" or ("python" in scan.loose and head.strip() in ("", "[") and opening.isidentifier()):
        word = yield from scan.cursor.while_in(_WORD)
        if not word or (yield from scan.cursor.ahead()) != "(" or (not head.strip() and fence != "tool_code"):
            return False
        scan.cursor.put_back(head + word)
        return (yield from (_code(scan, start) if fence == "tool_code" else _python(scan, start)))
    if "json" not in scan.loose or not head.strip() or opening not in ('"', "'", "“") or "{" not in head:
        return False
    scan.cursor.take(scan.cursor.at + 1)
    key = yield from scan.cursor.while_in(_KEY)
    if key not in _KEYS and CALL.canonical(key) not in ("tool_name", "arguments"):
        return False
    scan.cursor.put_back(head + opening + key)
    return (yield from _json(scan, start, fence))


def _json(scan: Scan, start: int, fence: str) -> Reader[bool]:
    whole = scan.is_blank
    found = yield from scan.json_value(scan.inner_marks)
    if found.read is None:
        return _broken(scan, found, start, whole)
    answer = final_answer(found.read.value, scan.tools.names if scan.tools is not None else ())
    if answer is not None and not scan.said:
        scan.text(answer)
        scan.style = "answered"
        return True
    named = bare_calls(found.read.value)
    if not named:
        return False
    if not whole and not scan.named and any(_is_unknown(scan, name) for name, _, _ in named):
        return False
    scan.format = "json"
    is_whole = scan.named or not scan.said  # what comes behind, the caller looks at
    repairs = (*found.read.repairs, *((FENCED,) if fence else ()), *(() if is_whole else (UNMARKED,)))
    for name, arguments, id in named:
        scan.call(name, arguments, start, id=id, repairs=repairs)
    return True


def _is_unknown(scan: Scan, name: str) -> bool:
    return scan.tools is not None and meant_tool(name, scan.tools.names) is None


_ARGUMENTS = re.compile(r"""["'](?:arguments|parameters|args|input)["']\s*:""")


def _broken(scan: Scan, found: FoundValue, start: int, whole: bool) -> bool:
    """Hand on a damaged value if it certainly is a call: it begins the reply and says a tool and arguments."""
    if not whole or named_in(found.raw) is None or not _ARGUMENTS.search(found.raw):
        return False
    scan.format = "json"
    scan.damaged(found, start, _NONE, _NONE)
    return True


def _python(scan: Scan, start: int) -> Reader[bool]:
    whole = scan.is_blank
    extent = yield from scan.cursor.value(_TOKEN_MARKS, calls=True)
    try:
        calls = read_calls(extent.text)
    except NotCalls as error:
        name = _first(extent.text)
        known = name is not None and scan.tool(name) is not None
        ended = not extent.whole and not (yield from scan.cursor.ahead())
        if not (known and (extent.whole or ended)) and not (whole and ended):
            return False
        scan.format = "llama_pythonic"
        refused = Refused("cut") if ended else Refused("broken", error.problem)
        scan.damaged(FoundValue(extent.text, None, refused), start, _NONE, _NONE, name)
        return True
    if not scan.named and (any(_is_unknown(scan, call.name) for call in calls) or (scan.tools is None and not whole)):
        return False
    scan.format = "llama_pythonic"
    _hand_on(scan, calls, start)
    return True


def _first(text: str) -> str | None:
    match = re.match(r"\[\s*([\w.]+)\(", text)
    return match[1] if match else None


def _code(scan: Scan, start: int) -> Reader[bool]:
    """Pass the calls in a `tool_code` fence, each on a line of its own, perhaps inside `print(...)`."""
    scan.format = "gemma"
    while True:
        gap = yield from scan.cursor.space()
        word = yield from scan.cursor.while_in(_WORD)
        opening = yield from scan.cursor.ahead()
        if opening == "[" and not word:
            extent = yield from scan.cursor.value(_FENCE_MARKS, calls=True)
        elif not word or opening != "(":
            scan.cursor.put_back(gap + word)
            return True
        else:
            extent = yield from scan.cursor.value(_FENCE_MARKS, calls=True)
        text = word + extent.text
        if word == "print" and extent.whole:
            text = extent.text[1:-1]
        try:
            _hand_on(scan, read_calls(text), start)
        except NotCalls as error:
            refused = Refused("broken", error.problem) if extent.whole else Refused("cut")
            scan.damaged(FoundValue(text, None, refused), start, _NONE, _NONE, word or None)
            if not extent.whole:
                return True


_FENCE_MARKS = Marks(FENCES)


def _hand_on(scan: Scan, calls: Sequence[PythonCall], start: int) -> None:
    for call in calls:
        scan.call(call.name, call.arguments, start, values=call.values)


def _another(scan: Scan) -> Reader[bool]:
    """Pass one more bare call behind another one; whether there is one. What is none stays where it is."""
    trial = scan.try_out()
    yield from scan.cursor.while_in(_BETWEEN)
    while (yield from scan.cursor.mark(_TOKEN_MARKS)):
        yield from scan.cursor.space()
    start = scan.cursor.offset
    if (yield from scan.cursor.ahead()) in BARE and (yield from _value(scan, start, "")):
        scan.accept(trial)
        return True
    scan.undo(trial)
    return False


def _ends_here(scan: Scan, start: int) -> Reader[bool]:
    """Whether the reply allows that what was just passed is calls: behind it are more of them, or nothing."""
    if scan.named:
        while (yield from _another(scan)):
            pass
        return True
    while True:
        passed = yield from scan.cursor.while_in(_BETWEEN)
        while (yield from scan.cursor.mark(_END_MARKS)):
            passed += yield from scan.cursor.space()
        ahead = yield from scan.cursor.ahead()
        if not ahead:
            return True
        start = scan.cursor.offset
        if ahead in BARE:
            if not (yield from _value(scan, start, "")):
                return False
        elif ahead in _TICKS:
            fence = yield from scan.cursor.while_in(_TICKS[ahead])
            language = (yield from scan.cursor.while_in(_WORD)).lower()
            yield from scan.cursor.space()
            if len(fence) < 3 or language not in _LANGUAGES or not (yield from _value(scan, start, language or "json")):
                return False
            if not (yield from _closes(scan, fence)):
                return False
        else:
            return False


def _write(calls: Sequence[CallPart]) -> str:
    listed: list[Json] = [{"name": call.name, "arguments": call.arguments} for call in calls]
    return json_without(listed, FENCES)


FORMAT = Format(
    "json",
    "JSON, bare or in a fence",
    (Opener(BARE, read_bare, "line"),),
    _write,
    no_results,
    also=("json_array",),
    loose=frozenset(("json",)),
)
