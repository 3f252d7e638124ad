"""LLMCompiler (Kim et al. 2024): a numbered call a line, `$1` for the result of the first, `join()` at the end.

1. search("Ron Barassi's age")
2. math(question="$1 / 2")
Thought: I can answer now.
3. join()<END_OF_PLAN>
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolplan.parse.formats.arguments import Refused, has_reference
from toolplan.parse.formats.cursor import Marks, Reader
from toolplan.parse.formats.format import Format, result_text
from toolplan.parse.formats.keywords import THOUGHT, keyword, line_marks, notes
from toolplan.parse.formats.parts import CallPart
from toolplan.parse.formats.pythonic import NotCalls, read_calls, write_call
from toolplan.parse.formats.scan import FoundValue, Scan
from toolplan.parse.formats.wrappers import pass_after_calls
from toolplan.values import Json

__all__ = ["FORMAT", "read_plan"]

_DIGITS = tuple("0123456789")
_NUMBER, _WORD, _LINE = re.compile(r"\d*"), re.compile(r"[\w.\-]*"), re.compile(r"[^\n]*")
_BLANKS = re.compile(r"[ \t]*")
_STOPS = line_marks(*_DIGITS, *THOUGHT, "<END_OF_PLAN>")
_THOUGHT = Marks(THOUGHT)
_END = Marks(("<END_OF_PLAN>", "<END_OF_RESPONSE>"))
_NONE = Marks(())
_JOIN = frozenset(("join", "finish"))


def _read(scan: Scan, mark: str, start: int) -> Reader[None]:
    """Read on behind the first digit of a line. Where the format is not named, the whole plan decides."""
    trial = scan.try_out()
    scan.format = "llm_compiler"
    scan.cursor.put_back(mark)
    found = (yield from _line(scan, start)) is not None if scan.named else (yield from read_plan(scan))
    if found:
        scan.accept(trial)
    else:
        scan.reject(trial)


def read_plan(scan: Scan) -> Reader[bool]:
    """Pass a plan up to the end of the reply and hand on its calls; whether it is one. The cursor is at its first line.

    It is if nothing follows it, and if it ends with `join()`, or all its tools are known.
    """
    scan.format = "llm_compiler"
    before = scan.calls
    joined = False
    unknown = False
    while True:
        at = scan.cursor.offset
        name = yield from _line(scan, at)
        if name is None:
            break
        joined = joined or name in _JOIN
        unknown = unknown or (name not in _JOIN and scan.tool(name) is None)
        yield from scan.cursor.space()
        if (yield from scan.cursor.mark(_THOUGHT)):
            yield from scan.cursor.while_in(_LINE)
            yield from scan.cursor.space()
        if (yield from scan.cursor.ahead()) not in _DIGITS:
            break
    ended = (yield from scan.cursor.mark(_END)) or not (yield from scan.cursor.ahead())
    return bool(scan.calls > before and ended and (joined or (scan.tools is not None and not unknown)))


def _line(scan: Scan, start: int) -> Reader[str | None]:
    """Pass one numbered call and hand it on; return its name, or None when the line is none."""
    number = yield from scan.cursor.while_in(_NUMBER)
    if (yield from scan.cursor.ahead()) not in (".", ")") or not number:
        return None
    scan.cursor.take(scan.cursor.at + 1)
    yield from scan.cursor.while_in(_BLANKS)
    name = yield from scan.cursor.while_in(_WORD)
    if not name or (yield from scan.cursor.ahead()) != "(":
        return None
    extent = yield from scan.cursor.value(_STOPS, calls=True)
    text = name + extent.text
    try:
        (call,) = read_calls(text)
    except NotCalls as error:
        if not scan.named and (scan.tools is None or scan.tool(name) is None):
            return None
        ended = not extent.whole and not (yield from scan.cursor.ahead())
        refused = Refused("cut") if ended else Refused("broken", error.problem)
        scan.damaged(FoundValue(text, None, refused), start, _NONE, _NONE, name, number)
        return name
    if name in _JOIN and scan.tool(name) is None:
        scan.thinking(f"{number}. {text}")
        return name
    fits = not has_reference([*call.values, *call.arguments.values()])
    scan.call(call.name, call.arguments, start, id=number, values=call.values, fits=fits)
    return name


def _write(calls: Sequence[CallPart]) -> str:
    lines = [f"{number}. {write_call(call)}" for number, call in enumerate(calls, 1)]
    return "\n".join([*lines, f"{len(calls) + 1}. join()<END_OF_PLAN>"])


def _write_results(calls: Sequence[CallPart], results: Sequence[Json]) -> str:
    return "\n".join(f"Observation: {result_text(result)}" for result in results)


FORMAT = Format(
    "llm_compiler",
    "LLMCompiler",
    (
        keyword(_DIGITS, _read, is_call=True),
        keyword(THOUGHT, notes(Marks(("\n",)))),
        keyword(_END.marks, pass_after_calls),
    ),
    _write,
    _write_results,
    also=("llmcompiler",),
)
