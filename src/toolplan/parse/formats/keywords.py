"""Lines that begin with a keyword, as ReAct and plans in plain text have them: `Thought:`, `Plan:`, `Action:`, ...

The keywords are words that any text may have. Where the format was not named they count only once something else shows
that the reply is written so; until then a beginning that may be one is held back.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from toolplan.parse.formats.arguments import Refused
from toolplan.parse.formats.cursor import Marks, Reader
from toolplan.parse.formats.format import Opener, ReadOn
from toolplan.parse.formats.scan import FoundValue, Scan

__all__ = [
    "ACTION",
    "ANSWER",
    "ANSWERING",
    "FINAL",
    "INLINE_RESULT",
    "INPUT",
    "NUMBERED_ACTION",
    "OBSERVATION",
    "OUTPUT",
    "PLAN",
    "STEP",
    "THOUGHT",
    "certain",
    "line_marks",
    "notes",
]


def _spelt(*words: str) -> tuple[str, ...]:
    return tuple(form for word in words for form in (f"{word}:", f"{word}：", f"**{word}:**", f"**{word}**:"))


def _numbered(*words: str) -> tuple[str, ...]:
    """Return the words with a number behind them, as the paper on ReAct has it: `Thought 1:`, `思考1：`."""
    return _spelt(*(f"{word}{gap}{number}" for word in words for gap in _GAPS for number in range(1, MAX_NUMBER + 1)))


MAX_NUMBER = 20
"""Up to here the lines of a reply may be numbered."""
_GAPS = (" ", "")
NUMBERED_ACTION = _numbered("Action", "行动")
THOUGHT = (*_spelt("Thought", "思考"), *_numbered("Thought", "思考"))
PLAN = _spelt("Plan", "计划")
ACTION = (*_spelt("Action", "行动", "动作", "Tool", "✿FUNCTION✿"), *NUMBERED_ACTION)
"""Qwen-Agent writes `✿FUNCTION✿`, `✿ARGS✿` and so on."""
INPUT = (
    *_spelt(
        "Action Input", "ActionInput", "行动输入", "Action input", "Input", "Tool Input", "输入", "动作输入", "✿ARGS✿"
    ),
    *_numbered("Action Input", "行动输入"),
)
OBSERVATION = (*_spelt("Observation", "观察"), *_numbered("Observation", "观察"), "✿RESULT✿")
FINAL = _spelt("Final Answer", "最终答案", "✿RETURN✿")
ANSWERING = frozenset(("finish", "final answer", "final_answer", "answer", "最终答案", "回答"))
"""Actions whose input is the answer, where no tool has the name."""
ANSWER = _spelt("Answer", "回答")
"""As `FINAL`, but a text that is given to a tool may well have a line that begins so."""
INLINE_RESULT = tuple(f" #E{number}{sign}" for number in range(1, MAX_NUMBER + 1) for sign in (" =", "="))
"""ReWOO's call, in the line of the plan before it."""
OUTPUT = _spelt("Output", "输出")
STEP = ("Step ", "**Step ", "步骤")


def line_marks(*marks: str) -> Marks:
    """Return the marks where they begin a line."""
    return Marks(f"\n{mark}" for mark in marks)


STOPS = line_marks(*THOUGHT, *PLAN, *ACTION, *OBSERVATION, *FINAL, *OUTPUT, *STEP, "#E", "<|", "<tool_call>", "```")
"""What ends the text behind a keyword."""
_NOTE_STOPS = Marks((*STOPS.marks, *line_marks(*ANSWER).marks, *INLINE_RESULT))
"""What ends a thought."""
_SHOWING = line_marks(*ACTION, *FINAL, *ANSWER, *STEP, "#E")
"""What shows, behind a thought at the beginning of a reply, that it was one."""
_BLANKS = re.compile(r"[ \t]*")
_PLAN_LINE = re.compile(r"^[ \t]*+(\d++[.)][ \t]*+[\w.\-]+\()", re.MULTILINE)


def certain(scan: Scan) -> bool:
    """Whether a keyword counts as one."""
    return (scan.named or bool(scan.style)) and scan.style != "answered"


def notes(stops: Marks = _NOTE_STOPS, plan: Callable[[Scan], Reader[bool]] | None = None) -> ReadOn:
    """Return the reader of a line that the model says to itself, and of the lines that go on with it.

    A call in a format of its own ends it. Where nothing shows that it was a thought, it is text like any other, which
    is read on from such a call, or from a fence. `plan` reads calls in numbered lines, which may follow: whether they
    are any, up to the end of the reply.
    """

    def read(scan: Scan, mark: str, start: int) -> Reader[None]:
        line = _FirstLine()
        ends = _with_calls(stops, scan.call_marks)
        if certain(scan):
            yield from scan.cursor.while_in(_BLANKS)
            while True:
                text, stop = scan.cursor.piece(ends, take=False)
                scan.thinking(text)
                line.add(text)
                if stop in INLINE_RESULT and not line.may_end(scan):
                    scan.thinking(scan.cursor.take(scan.cursor.at + len(stop)))
                    line.add(stop)
                elif stop or scan.cursor.closed:
                    yield from _end(scan, stop, line)
                    return
                else:
                    yield
        if not scan.is_blank:
            scan.text(mark)
            return
        trial = scan.try_out()
        text = yield from scan.cursor.while_in(_BLANKS)
        if (yield from scan.cursor.mark(scan.call_marks, take=False)):
            scan.reject(trial, mark)
            return
        is_fenced = False
        while True:
            more, stop = yield from scan.cursor.until(ends, take=False)
            text += more
            line.add(more)
            if not is_fenced and stop[1:] in scan.call_marks.marks:
                scan.reject(trial, mark)
                return
            is_fenced = is_fenced or stop == _FENCE
            if not stop or (stop in INLINE_RESULT and line.may_end(scan)) or stop in _SHOWING.marks:
                break
            line.add(stop)
            text += scan.cursor.take(scan.cursor.at + len(stop))
        if not stop:
            first = _PLAN_LINE.search(text) if plan is not None else None
            if plan is None or first is None:
                if (other := _with_fence(scan.call_marks).search(text, 0)) is not None:
                    scan.cursor.put_back(text[other.start() :])
                scan.reject(trial, mark)
                return
            scan.cursor.put_back(text[first.start(1) :])
            text = text[: first.start()]
        scan.thinking(text.strip())
        yield from _end(scan, stop, line)
        if not stop and plan is not None and not (yield from plan(scan)):
            scan.reject(trial, mark)
            return
        scan.style = "noted"
        scan.accept(trial)

    return read


_FENCE = "\n```"


@lru_cache(maxsize=64)
def _with_calls(stops: Marks, calls: Marks) -> Marks:
    return Marks((*stops.marks, *line_marks(*calls.marks).marks))


@lru_cache(maxsize=64)
def _with_fence(calls: Marks) -> Marks:
    return Marks((*calls.marks, _FENCE))


class _FirstLine:
    """The line that a keyword begins, as far as it tells whether a call may stand at its end."""

    def __init__(self) -> None:
        self._has_ended = False
        self.is_doubtful = False
        """Whether something in it may be a part of other text than words, in which the call is data."""

    def add(self, text: str) -> None:
        """Note what is passed."""
        if not self._has_ended:
            line, newline, _ = text.partition("\n")
            self.is_doubtful = self.is_doubtful or not _NO_WORDS.isdisjoint(line)
            self._has_ended = bool(newline)

    def may_end(self, scan: Scan) -> bool:
        """Whether a call in this line can end it: the format has such calls, and it is still the first line."""
        return not self._has_ended and _RESULT in scan.openers


_NO_WORDS = frozenset('"“”[]{}=\\')
_RESULT = "#E"


def _end(scan: Scan, stop: str, line: _FirstLine) -> Reader[None]:
    """Note that a thought has ended; a call that stands in its line, behind more than words, may be data of it."""
    scan.mark_thought()
    if stop in INLINE_RESULT and line.is_doubtful:
        start = scan.cursor.offset
        written = yield from scan.cursor.while_in(_LINE)
        problem = f"`{stop.strip(' =')}` has to begin a line where more than words stand before it"
        scan.damaged(FoundValue(written, None, Refused("broken", problem)), start, _NONE, _NONE)


_LINE = re.compile(r"[^\n]*")
_NONE = Marks(())


def keyword(marks: tuple[str, ...], read: ReadOn, *, is_call: bool = False) -> Opener:
    """Return the opener for a keyword at the beginning of a line."""
    return Opener(marks, read, "line", is_call=is_call)


def only_when(test: Callable[[Scan], bool], read: ReadOn) -> ReadOn:
    """Return a reader that takes its mark for text unless the test holds."""

    def guarded(scan: Scan, mark: str, start: int) -> Reader[None]:
        if test(scan):
            yield from read(scan, mark, start)
        else:
            scan.text(mark)

    return guarded
