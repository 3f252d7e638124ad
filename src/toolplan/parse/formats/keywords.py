"""Lines that begin with a keyword, as ReAct and plans in plain text have them: `Thought:`, `Plan:`, `Action:`, ...

The keywords are words that any text may have. Where the format was not named they count only once something else shows
that the reply is written so; until then a beginning that may be one is held back.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from toolplan.parse.formats.cursor import Marks, Reader
from toolplan.parse.formats.format import Opener, ReadOn
from toolplan.parse.formats.scan import Scan

__all__ = [
    "ACTION",
    "FINAL",
    "INPUT",
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


THOUGHT = _spelt("Thought", "思考")
PLAN = _spelt("Plan", "计划")
ACTION = _spelt("Action", "行动")
INPUT = _spelt("Action Input", "ActionInput", "行动输入")
OBSERVATION = _spelt("Observation", "观察")
FINAL = _spelt("Final Answer", "最终答案")
OUTPUT = _spelt("Output", "输出")
STEP = ("Step ", "**Step ", "步骤")


def line_marks(*marks: str) -> Marks:
    """Return the marks where they begin a line."""
    return Marks(f"\n{mark}" for mark in marks)


STOPS = line_marks(*THOUGHT, *PLAN, *ACTION, *OBSERVATION, *FINAL, *OUTPUT, *STEP, "#E", "<|", "<tool_call>", "```")
"""What ends a thought."""
_SHOWING = line_marks(*ACTION, *FINAL, *STEP, "#E")
"""What shows, behind a thought at the beginning of a reply, that it was one."""
_BLANKS = re.compile(r"[ \t]*")


def certain(scan: Scan) -> bool:
    """Whether a keyword counts as one."""
    return (scan.named or bool(scan.style)) and scan.style != "answered"


def notes(stops: Marks = STOPS) -> ReadOn:
    """Return the reader of a line that the model says to itself, and of the lines that go on with it."""

    def read(scan: Scan, mark: str, start: int) -> Reader[None]:
        if certain(scan):
            yield from scan.cursor.while_in(_BLANKS)
            while True:
                text, stop = scan.cursor.piece(stops, take=False)
                scan.thinking(text)
                if stop or scan.cursor.closed:
                    scan.mark_thought()
                    return
                yield
        if not scan.is_blank:
            scan.text(mark)
            return
        trial = scan.try_out()
        text = ""
        while True:
            more, stop = yield from scan.cursor.until(stops, take=False)
            text += more
            if not stop or stop in _SHOWING.marks:
                break
            text += scan.cursor.take(scan.cursor.at + len(stop))
        if not stop:
            scan.reject(trial, mark)
            return
        scan.thinking(text.strip())
        scan.mark_thought()
        scan.style = "noted"
        scan.accept(trial)

    return read


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
