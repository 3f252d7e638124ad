"""The beginning of a plan, read while the rest of it is still to come.

    pieces of a reply ──> PlanStream ──> complete JSON steps ──> StepReader ──┐
                     └──> complete lines of a program ──> read_program ──────┴──> Step, Step, ...

What only the whole text decides is taken as it usually turns out: the plan has no inputs, a name that comes by itself
is not given to something else later, a dollar sign in a longer text is a dollar sign. So a step that is given back here
may not be the one that `parse` makes of the whole text; whoever acts on it compares the two.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import Literal

from toolplan.diagnostics import Source
from toolplan.errors import PlanRejected
from toolplan.parse.json_notation import StepReader
from toolplan.parse.python_notation import read_program
from toolplan.parse.streaming import PlanStream
from toolplan.parse.thinking_tags import LONGEST, OPENING, end_of_thinking
from toolplan.plan import Parallel, Plan, Step
from toolplan.tools import ToolSet
from toolplan.values import Json

__all__ = ["PlanPrefix"]

MAX_STATEMENTS = 200
"""A program is read again from its beginning with each statement, so only so many of them are."""
MAX_FAILURES = 200
"""The open statement is tried again with each line, so only so many lines are."""
MAX_CHARACTERS = 2_000_000
"""So much is read again in all, whatever the number of lines."""
MAX_MEMBERS = 64
"""Behind so many steps, and of a `parallel` with more members, members are not read before it is complete: all that
stands before a member is read again with it."""

_THINKING = re.compile(OPENING, re.IGNORECASE)
_FENCE = re.compile(r"^```(?:python3?|py|tool_code)[ \t]*\n", re.MULTILINE | re.IGNORECASE)
_BARE = re.compile(r"[^\W\d]\w*(?:\s*:\s*\w+)?\s*=(?!=)|[^\W\d]\w*\(|await\b|#")
_COMPOUND = re.compile(r"(?:for|while|if|with|try|def|async|class|match|import|from)\b|@")


class PlanPrefix:
    """Takes in a reply piece by piece and gives back its complete top-level steps, in written order.

    `notation` is the one that the model was told to use; a reply in the other one gives nothing. `first_step` is the
    number of the first step.
    """

    def __init__(self, tools: ToolSet, notation: Literal["json", "python"] = "json", first_step: int = 1) -> None:
        self._steps = _JsonSteps(tools, first_step) if notation == "json" else _ProgramSteps(tools, first_step)

    def feed(self, text: str) -> Sequence[Step]:
        """Take in the next piece of the reply and return the steps that it completes."""
        return self._steps.feed(text)

    def members(self) -> Parallel | None:
        """Return the `parallel` that is arriving, as far as its members are complete; None if it is not that.

        Only after a piece that completed one of them.
        """
        return self._steps.members()


class _JsonSteps:
    def __init__(self, tools: ToolSet, first_step: int) -> None:
        self._stream = PlanStream()
        self._names, self._first_step = tools.names, first_step
        self._reader = StepReader(tools.names, first_step)
        self._values: list[Json] = []
        self._members = 0

    def feed(self, text: str) -> Sequence[Step]:
        found: list[Step] = []
        for value in self._stream.feed(text):
            step = self._reader.read(value)
            if step is None:
                self._stream.is_done = True
                break
            found.append(step)
            self._values.append(value)
            self._members = 0
        return found

    def members(self) -> Parallel | None:
        if self._stream.is_done or len(self._values) > MAX_MEMBERS:
            return None
        value = self._stream.members()
        members = value.get("parallel") if isinstance(value, dict) else None
        if not isinstance(members, list) or not self._members < len(members) <= MAX_MEMBERS:
            return None
        self._members = len(members)
        reader = StepReader(self._names, self._first_step)  # another one, for the step will be read again as a whole
        for earlier in self._values:
            reader.read(earlier)
        step = reader.read(value)
        return step if isinstance(step, Parallel) else None


class _ProgramSteps:
    """Follows a program line by line, as far as it is a straight line: what it does first, and what may start early."""

    def __init__(self, tools: ToolSet, first_step: int) -> None:
        self._tools = tools
        self._first_step = first_step
        self._parameters = {tool.name: list(tool.parameters["properties"]) for tool in tools}
        self._pieces: list[str] = []  # arrived, without a line end
        self._text = ""  # before them, not taken into the program: the beginning of a line, if it has begun
        self._closing: re.Pattern[str] | None = None  # before it has begun: what ends the thinking that is open
        self._is_first = True  # nothing but white space and thinking was there before
        self._program: list[str] = []
        self._open: list[str] = []  # the lines of the statement that may not be complete
        self._has_begun = self._is_done = False
        self._failures = 0
        self._read_again = 0
        self._count = 0

    def feed(self, text: str) -> Sequence[Step]:
        if self._is_done:
            return ()
        self._pieces.append(text)
        if "\n" not in text:
            return ()
        self._text += "".join(self._pieces)
        self._pieces = []
        if not self._has_begun and not self._begins():
            return ()
        *lines, self._text = self._text.split("\n")
        found: list[Step] = []
        for line in lines:
            found += self._line(line + "\n")
            if self._is_done:
                break
        return found

    def members(self) -> Parallel | None:
        return None  # members of a program are expressions of one statement, which arrives as a whole

    def _begins(self) -> bool:
        """Whether the program begins in the text that is there. What stands before it is never looked at again."""
        if self._is_first and not self._passes_thinking():
            return False
        if self._is_first and _BARE.match(self._text):
            self._has_begun = True
        elif fence := _FENCE.search(self._text):
            self._text = self._text[fence.end() :]
            self._has_begun = True
        else:
            self._text = self._text[self._text.rfind("\n") + 1 :]
        self._is_first = False
        return self._has_begun

    def _passes_thinking(self) -> bool:
        """Leave out white space and thinking; return whether a whole line of something else follows."""
        text = self._text.lstrip()
        while True:
            if self._closing is None:
                opening = _THINKING.match(text)
                if opening is None:
                    break
                self._closing = end_of_thinking(opening[0])
                text = text[opening.end() :]
            end = self._closing.search(text)
            if end is None:
                self._text = text[-LONGEST:]
                return False
            text = text[end.end() :].lstrip()
            self._closing = None
        self._text = text
        return "\n" in text

    def _line(self, line: str) -> Sequence[Step]:
        if not self._open:
            if not line.strip() or line.startswith("#"):
                self._program.append(line)
                return ()
            if line.startswith(("```", " ", "\t")) or _COMPOUND.match(line) or self._count >= MAX_STATEMENTS:
                self._is_done = True
                return ()
        self._open.append(line)
        statement = "".join(self._open)
        self._read_again += len(statement)
        try:
            if self._read_again > MAX_CHARACTERS:
                raise MemoryError
            ast.parse(statement)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self._failures += 1
            self._is_done = self._failures > MAX_FAILURES or self._read_again > MAX_CHARACTERS
            return ()
        self._program += self._open
        self._open = []
        return self._read()

    def _read(self) -> Sequence[Step]:
        """Return the steps that the newest statement adds. An answer at the end keeps the last line what it is."""
        source = Source("".join([*self._program, "answer('')\n"]))
        self._read_again += len(source.text)
        try:
            plan = read_program(source, self._tools.names, self._parameters, first_step=self._first_step)
        except PlanRejected:
            plan = None
        if not isinstance(plan, Plan):
            self._is_done = True
            return ()
        before, self._count = self._count, len(plan.steps) - 1
        return plan.steps[before:-1]
