"""ReAct: what to do as text. One action a reply; more without an observation between them are read too.

    Thought: I have to look it up.
    Action: get_weather
    Action Input: {"city": "Oslo"}

The input is JSON, perhaps in a fence, or plain text: the value of the tool's first argument, unless it names arguments
(see `named_text`). `Action: search[Oslo]`, `Action: search: Oslo` and a JSON object with `action` and `action_input`
are read as well, and so are the numbers of the paper (Yao et al. 2022): `Thought 1:`, `Action 1: Finish[yes]`. An
observation that the model writes itself is invented, and so is everything behind it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolplan.parse.formats.arguments import Refused, has_reference, json_without, typed
from toolplan.parse.formats.cursor import Marks, Reader
from toolplan.parse.formats.format import Format, result_text
from toolplan.parse.formats.keywords import (
    ACTION,
    ANSWER,
    ANSWERING,
    FINAL,
    INPUT,
    OBSERVATION,
    OUTPUT,
    STOPS,
    THOUGHT,
    certain,
    keyword,
    notes,
    only_when,
)
from toolplan.parse.formats.named_text import named_in_text, read_as_named
from toolplan.parse.formats.output import Trial
from toolplan.parse.formats.parts import CallPart
from toolplan.parse.formats.pythonic import NotCalls, read_calls
from toolplan.parse.formats.scan import FoundValue, Scan, call_in
from toolplan.values import Json

__all__ = ["FINAL_ANSWER", "FORMAT", "OBSERVED", "is_open", "read_action", "read_answer"]

_NONE = Marks(())
_INPUT = Marks(INPUT)
_OUTPUT = Marks(OUTPUT)
_KEYWORDS = Marks(mark[1:] for mark in STOPS.marks)
_FENCE = Marks(("```",))
_TICK, _TICKED = Marks(("`",)), Marks(("`{",))
_UNTICKED = "left out the backticks around the input of an action"
_BLANKS = re.compile(r"[ \t]*")
_WORD = re.compile(r"[\w.\-]*")
_LINE = re.compile(r"[^\n]*")
_NO_ACTION = frozenset(("none", "n/a", "null", "nothing", "no action", "no tool", "finish", "无", "没有"))
_REFERENCE = re.compile(r"\{\{\s*([^\W\d]\w*)\s*\}\}|\{?([^\W\d]\w*)\}?")


def read_action(scan: Scan, mark: str, start: int) -> Reader[None]:
    """Read on behind `Action:`."""
    if scan.style == "answered":
        scan.text(mark)
        return
    trial = None if certain(scan) else scan.try_out()
    scan.format = "react"
    yield from scan.cursor.while_in(_BLANKS)
    word = yield from scan.cursor.while_in(_WORD)
    called = word == "call"
    if called:
        yield from scan.cursor.while_in(_BLANKS)
        word = yield from scan.cursor.while_in(_WORD)
    following = yield from scan.cursor.ahead()
    known = called or trial is None or (scan.tools is not None and scan.tool(word) is not None)
    known = known or (_is_answer(scan, word) and scan.is_blank)
    if word and following == "(":
        done = yield from _python(scan, start, word, known)
    elif called:
        done = yield from _unfinished(scan, start, word, "expected `(`")
    elif word and following == "[":
        done = yield from _bracket(scan, start, word, known)
    elif not word and following == "`" and (yield from scan.cursor.ahead(3)) == "```":
        done = yield from _with_input(scan, start, "", trial)
    else:
        rest = yield from scan.cursor.while_in(_LINE)
        name = f"{word}{rest}".strip().strip("`*\"'").strip()
        done = yield from _with_input(scan, start, name, trial)
    if trial is not None:
        if done:
            scan.style = scan.style if scan.style == "answered" else "react"
            scan.accept(trial)
        else:
            scan.reject(trial, mark)
    elif not scan.style or scan.style == "noted":
        scan.style = "react"


def _python(scan: Scan, start: int, name: str, known: bool) -> Reader[bool]:
    """Pass a call with its arguments in parentheses, and the name of its output if that follows."""
    if not known:
        return False
    extent = yield from scan.cursor.value(STOPS, calls=True)
    text = name + extent.text
    scan.format = "steps"
    try:
        (call,) = read_calls(text)
    except NotCalls as error:
        ended = not extent.whole and not (yield from scan.cursor.ahead())
        refused = Refused("cut") if ended else Refused("broken", error.problem)
        scan.damaged(FoundValue(text, None, refused), start, _NONE, _NONE, name)
        return True
    gap = yield from scan.cursor.space()
    label = None
    if (yield from scan.cursor.mark(_OUTPUT)):
        written = (yield from scan.cursor.while_in(_LINE)).strip()
        match = _REFERENCE.fullmatch(written)
        label = match[1] or match[2] if match else None
    else:
        scan.cursor.put_back(gap)
    fits = not has_reference(list(call.values) + list(call.arguments.values()))
    scan.call(call.name, call.arguments, start, id=label, values=call.values, fits=fits)
    return True


def _unfinished(scan: Scan, start: int, name: str, problem: str) -> Reader[bool]:
    """Hand on a call that lacks its arguments."""
    yield from scan.cursor.while_in(_LINE)
    ended = not (yield from scan.cursor.ahead())
    refused = Refused("cut") if ended else Refused("broken", problem)
    scan.damaged(FoundValue("", None, refused), start, _NONE, _NONE, name or None)
    return True


def _bracket(scan: Scan, start: int, name: str, known: bool) -> Reader[bool]:
    """Pass `name[text]`, as in the paper."""
    if not known:
        return False
    line = yield from scan.cursor.while_in(_LINE)
    inside = line.strip()
    if not inside.endswith("]") or (scan.is_cut and is_open(inside) and not (yield from scan.cursor.ahead())):
        scan.damaged(FoundValue(line, None, Refused("cut")), start, _NONE, _NONE, name)
        return True
    if _is_answer(scan, name):
        scan.text(inside[1:-1])
        scan.style = "answered"
        return True
    _plain(scan, start, name, inside[1:-1])
    return True


def is_open(line: str) -> bool:
    """Whether a bracket of the line is not closed: the one at its end may be another one's, and the rest cut off."""
    return line.count("[") > line.count("]")


def _is_answer(scan: Scan, name: str) -> bool:
    return name.casefold() in ANSWERING and scan.tool(name) is None


def _answer(scan: Scan, text: str) -> bool:
    scan.text(text)
    scan.style = "answered"
    return True


def _with_input(scan: Scan, start: int, name: str, trial: Trial | None) -> Reader[bool]:
    """Pass the input of an action, wherever it stands; whether there is an action at all."""
    gap = yield from scan.cursor.space()
    if name.startswith("{"):
        scan.cursor.put_back(name + gap)
        name = ""
    has_input = bool((yield from scan.cursor.mark(_INPUT)))
    if not has_input and (named := _named_before(scan, name)) is not None:
        ended = not (yield from scan.cursor.ahead())
        scan.cursor.put_back(gap)
        if ended and "\n" not in gap and scan.is_cut:
            scan.damaged(FoundValue(name, None, Refused("cut")), start, _NONE, _NONE, named[0])
        else:
            _plain(scan, start, *named)
        return True
    if not has_input and name:
        if trial is not None:
            return False
        goes_on = yield from scan.cursor.mark(_KEYWORDS, take=False)
        ended = not (yield from scan.cursor.ahead())
        scan.cursor.put_back(gap)
        if name.casefold() in _NO_ACTION:
            scan.mark_passed()
            scan.is_blank_line = True
            return True
        if goes_on or (ended and not scan.is_cut):
            scan.call(name, {}, start)
            return True
        return (yield from _unfinished(scan, start, name, "expected `Action Input:`"))
    yield from scan.cursor.space()
    fence = yield from scan.cursor.mark(_FENCE)
    if fence:
        yield from scan.cursor.while_in(_WORD)
        yield from scan.cursor.space()
    ticks = yield from scan.cursor.mark(_TICKED)
    if ticks:
        scan.cursor.put_back("{")
    opening = yield from scan.cursor.ahead()
    if not has_input and opening != "{" and not (fence and not name and opening == "["):
        return trial is None
    if opening == "{" or (opening == "[" and fence and not name):
        found = yield from scan.json_value(STOPS)
        if fence and found.read is not None:
            yield from scan.cursor.space()
            yield from scan.cursor.mark(_FENCE)
        elif ticks:
            yield from scan.cursor.mark(_TICK)
        return _json(scan, start, name, found, (_UNTICKED,) if ticks else ())
    text, stop = yield from scan.cursor.until(_FENCE if fence else STOPS, take=bool(fence))
    if _is_answer(scan, name):
        return _answer(scan, text.strip())
    if name.casefold() in _NO_ACTION:
        return True
    if not stop and (scan.is_cut or fence):
        scan.damaged(FoundValue(text, None, Refused("cut")), start, _NONE, _NONE, name)
    else:
        _plain(scan, start, name, text.strip())
    return True


def _json(scan: Scan, start: int, name: str, found: FoundValue, mended: Sequence[str] = ()) -> bool:
    if found.read is None:
        scan.damaged(found, start, _NONE, _NONE, name or None)
        return True
    value = found.read.value
    if not name and isinstance(value, list):
        if not value or any(call_in(item) is None for item in value):
            return False
        scan.json_calls(found.read, start)
        return True
    if not name:
        structured = call_in(value)
        if structured is None:
            return False
        name, value, _ = structured
    if _is_answer(scan, name):
        return _answer(scan, result_text(value))
    if name.casefold() not in _NO_ACTION:
        scan.call(name, value, start, repairs=(*mended, *found.read.repairs))
    return True


_BEFORE_INPUT = re.compile(r"([\w.\-]+)[ \t]*[:：][ \t]*(\S.*)", re.DOTALL)


def _named_before(scan: Scan, line: str) -> tuple[str, str] | None:
    """Return the tool and its input that stand in one line with a colon between them, if the tool is known."""
    match = _BEFORE_INPUT.fullmatch(line)
    if match is None or scan.tools is None or scan.tool(match[1]) is None:
        return None
    return match[1], match[2].strip()


def _plain(scan: Scan, start: int, name: str, text: str) -> None:
    """Hand on a call whose input is plain text: arguments by their names, or the value of its first argument."""
    tool = scan.tool(name)
    mended: tuple[str, ...] = ()
    if len(text) > 1 and text[0] == text[-1] == "`" and "`" not in text[1:-1]:
        text, mended = text[1:-1], (_UNTICKED,)
    try:
        named = named_in_text(tool, text)
    except Refused as refused:
        scan.damaged(FoundValue(text, None, refused), start, _NONE, _NONE, name)
        return
    if named is not None:
        scan.call(name, named, start, repairs=(*mended, read_as_named(named)), fits=not has_reference(text))
        return
    names = list(tool.parameters["properties"]) if tool is not None else ["input"]
    if not names and text.casefold() in ("", "{}", '""', "''", "none", "null"):
        scan.call(name, {}, start, repairs=mended)
        return
    if len(text) > 1 and text[0] == text[-1] == '"' and '"' not in text[1:-1]:
        text = text[1:-1]
    value = typed(tool, names[0], text) if names and tool is not None else text
    scan.call(name, {}, start, values=[value], fits=not has_reference(text), repairs=mended)


def _observation(scan: Scan, mark: str, start: int) -> Reader[None]:
    """Pass what the model invents for a result, and everything behind it: it rests on that."""
    scan.thinking(mark)
    while True:
        scan.thinking(scan.cursor.take(len(scan.cursor.text)))
        if scan.cursor.closed:
            return
        yield


def read_answer(scan: Scan, mark: str, start: int) -> Reader[None]:
    """Read on behind `Final Answer:`; the rest is text."""
    yield from scan.cursor.while_in(_BLANKS)
    scan.style = "answered"


FINAL_ANSWER = keyword((*FINAL, *ANSWER), only_when(certain, read_answer))
OBSERVED = keyword(OBSERVATION, only_when(lambda scan: certain(scan) and scan.calls > 0, _observation))


def _write(calls: Sequence[CallPart]) -> str:
    return "\n".join(f"Action: {call.name}\nAction Input: {json_without(call.arguments, ())}" for call in calls)


def _write_results(calls: Sequence[CallPart], results: Sequence[Json]) -> str:
    return "\n".join(f"Observation: {result_text(result)}" for result in results)


FORMAT = Format(
    "react",
    "ReAct",
    (keyword(THOUGHT, notes()), keyword(ACTION, read_action, is_call=True), FINAL_ANSWER, OBSERVED),
    _write,
    _write_results,
)
