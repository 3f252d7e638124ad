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
from toolplan.plan import Plan, Step
from toolplan.tools import ToolSet

__all__ = ["PlanPrefix"]

MAX_STATEMENTS = 200
"""A program is read again from its beginning with each statement, so only so many of them are."""
MAX_FAILURES = 200
"""The open statement is tried again with each line, so only so many lines are."""

_LEAD_IN = re.compile(r"\A\s*(?:<(think\w*|reasoning)>(?:.*?</\1>|.*\Z)\s*)?", re.DOTALL | re.IGNORECASE)
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


class _JsonSteps:
    def __init__(self, tools: ToolSet, first_step: int) -> None:
        self._stream = PlanStream()
        self._reader = StepReader(tools.names, first_step)

    def feed(self, text: str) -> Sequence[Step]:
        found: list[Step] = []
        for value in self._stream.feed(text):
            step = self._reader.read(value)
            if step is None:
                self._stream.is_done = True
                break
            found.append(step)
        return found


class _ProgramSteps:
    """Follows a program line by line, as far as it is a straight line: what it does first, and what may start early."""

    def __init__(self, tools: ToolSet, first_step: int) -> None:
        self._tools = tools
        self._first_step = first_step
        self._parameters = {tool.name: list(tool.parameters["properties"]) for tool in tools}
        self._text = ""  # arrived, but not taken into the program
        self._program: list[str] = []
        self._open: list[str] = []  # the lines of the statement that may not be complete
        self._has_begun = self._is_done = False
        self._failures = 0
        self._count = 0

    def feed(self, text: str) -> Sequence[Step]:
        self._text += text
        if "\n" not in text or self._is_done:
            return ()
        if not self._has_begun and not self._begins():
            return ()
        *lines, self._text = self._text.split("\n")
        found: list[Step] = []
        for line in lines:
            found += self._line(line + "\n")
            if self._is_done:
                break
        return found

    def _begins(self) -> bool:
        """Whether the program begins in the text that is there; then the text before it is left out."""
        lead_in = _LEAD_IN.match(self._text)
        at = lead_in.end() if lead_in else 0
        if fence := _FENCE.search(self._text, at):
            at = fence.end()
        elif not _BARE.match(self._text, at):
            return False
        self._text = self._text[at:]
        self._has_begun = True
        return True

    def _line(self, line: str) -> Sequence[Step]:
        if not self._open:
            if not line.strip() or line.startswith("#"):
                self._program.append(line)
                return ()
            if line.startswith(("```", " ", "\t")) or _COMPOUND.match(line) or self._count >= MAX_STATEMENTS:
                self._is_done = True
                return ()
        self._open.append(line)
        try:
            ast.parse("".join(self._open))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self._failures += 1
            self._is_done = self._failures > MAX_FAILURES
            return ()
        self._program += self._open
        self._open = []
        return self._read()

    def _read(self) -> Sequence[Step]:
        """Return the steps that the newest statement adds. An answer at the end keeps the last line what it is."""
        source = Source("".join([*self._program, "answer('')\n"]))
        try:
            plan = read_program(source, self._tools.names, self._parameters, first_step=self._first_step)
        except PlanRejected:
            plan = None
        if not isinstance(plan, Plan):
            self._is_done = True
            return ()
        before, self._count = self._count, len(plan.steps) - 1
        return plan.steps[before:-1]
