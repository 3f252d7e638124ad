"""Literate test cases: a Markdown page states tools, plans and what must come of them, and reads as documentation.

    for case in load_cases("plans.md"):
        run_case(case)                      # raises AssertionError, saying where and what

A page. A heading that begins with the numbers of rules (`## R12 title`, `## R3, R4 title`) begins a case, which goes on
to the next heading of the same or a higher level. Fenced blocks in it:

    tools         signatures and what the fakes do, see `toolplan.testing.fakes`. A block outside of any case is for the
                  rest of the page, one in a case adds to it
    plan json     a plan in the JSON notation; `plan python` in the Python notation
    reply         the text of a model's reply, whatever it is (fences in it need a longer fence around it)
    earlier       a plan in the JSON notation that was run before: the plans up to the next `expect` or `earlier` go on
                  after it, with what it has left
    expect        what must come of each plan since the last `expect` block, one expectation a line; only its settings
                  apply to plans whose lines demand an error

A line of a plan can demand diagnostics: `// error: [TP302] "no argument"` in JSON, `# error: ...` in Python. `warning:`
is the same for warnings; the text is a part of the message and may be left out; `at "recipient"` before it is the very
text that is marked; several are separated by `;`. Every diagnostic must be demanded, there or in the `expect` block.

Expectations about reading and checking:

    text "..."                                 it is no plan, but an answer in prose
    cannot "..." [missing "...", "..."]        it is no plan, but the word that there can be none
    error [TP105] "..." | warning [TP209]      a diagnostic, wherever it is
    mended "..."                               the text was mended; all of it must be named, by a part of its words
    same plan                                  the plans of this block are one and the same
    canonical {...}                            the plan's canonical form, as one JSON value
    accepted                                   the plan may run

and about the run:

    call tool(argument=value, ...) [fails]     a call that is made; all of them in written order. Or: `no call`
    answer "..." | succeeds                    how the run ends: with this answer, or without any
    fails "..." [at s2]                        with a failure, whose message has these words
    cannot "..." [missing ...] | replans "..." | waits
    asks "..." | note "..."                    a question to a person or a model; a note that is shown; all, in order
    step s2 skipped                            how a step ends: succeeded, failed, unknown, skipped, cancelled, not_run
    A before B | A overlaps B                  calls: a tool's name, or `tool(argument=value)`. Every A and every B
    time 2                                     seconds that the run takes
    with now="2026-03-01T09:00:00"             a setting: now, failure, window, max_concurrency, one of `check.Limits`

What runs: the plan is run step by step in written order, as its meaning is defined; then by the scheduler on a virtual
clock, with several sets of random durations, and once with each call taking one second or as many as its fake says. All
of these must end alike and make the same calls with effects, and no two conflicting calls may overlap or change places
(P3), whether a case says so or not. `time`, `overlaps` and `step` are about the last of these runs, `before` about all.

Your own tools: `load_cases(path, tools=TOOLS)` uses them besides the fakes. They are called for real, in every run, so
they must be plain functions, not async ones, that a test may call.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from toolplan.errors import UsageError
from toolplan.show import canonical
from toolplan.testing.expectations import Demand, Wish, read_demands, read_wish
from toolplan.testing.fakes import Fakes, fake_tools
from toolplan.testing.trials import Trial
from toolplan.tools import ToolSet

__all__ = ["Case", "Example", "PlanText", "load_cases", "run_case"]


@dataclass(frozen=True, slots=True)
class PlanText:
    """A plan of a case, without the demands in its lines. `line` is that of its first line in the page."""

    notation: str
    text: str
    line: int
    demands: tuple[Demand, ...] = ()

    @property
    def is_rejected(self) -> bool:
        """Whether its lines demand an error, so that nothing of it may run."""
        return any(demand.severity == "error" for demand in self.demands)


@dataclass(frozen=True, slots=True)
class Example:
    """Plans, and what must come of each of them."""

    plans: tuple[PlanText, ...]
    wishes: tuple[Wish, ...]
    earlier: PlanText | None = None
    """The plan that was run before these."""


@dataclass(frozen=True, slots=True)
class Case:
    """A case of a page: the rules it is about, its tools and its examples."""

    path: Path
    line: int
    rules: tuple[str, ...]
    title: str
    examples: tuple[Example, ...]
    fakes: Fakes
    tools: ToolSet | None = None
    """The user's own tools; a fake of the same name goes before them."""

    def __str__(self) -> str:
        return f"{self.path.stem}:{self.line}"

    def fresh_tools(self) -> ToolSet:
        """Return the tools of one run: the user's, and the fakes, which begin again."""
        fakes = self.fakes.tools()
        if not self.tools:
            return fakes
        return ToolSet.of([*(tool for tool in self.tools if tool.name not in fakes), *fakes])

    def refuse(self, line: int, problem: str) -> NoReturn:
        """Raise `AssertionError` about this line of the page."""
        raise AssertionError(f"{self.path}:{line}: {', '.join(self.rules)} {self.title}\n{problem}")


def load_cases(path: Path | str, *, tools: ToolSet | None = None) -> list[Case]:
    """Return the cases of a Markdown page, in order. Raises `UsageError`, naming the line, for what cannot be read."""
    path = Path(path)
    return _Page(path, tools).read(path.read_text(encoding="utf-8").splitlines())


def run_case(case: Case) -> None:
    """Run all examples of a case. Raises `AssertionError`, naming the page, the line, and what came out instead."""
    for example in case.examples:
        forms: list[str | None] = []
        for plan in example.plans:
            earlier = example.earlier.text if example.earlier is not None else None
            checked = Trial(case, plan.notation, plan.text, plan.line, plan.demands, example.wishes, earlier).run()
            forms.append(canonical(checked.plan) if checked is not None else None)
        same = next((wish for wish in example.wishes if wish.form == "same"), None)
        if same is not None:
            for plan, form in zip(example.plans, forms, strict=True):
                if form != forms[0]:
                    case.refuse(plan.line, f"expected: {same.source}\nbut this is\n{form}\nand the first\n{forms[0]}")


# --- reading a page --------------------------------------------------------------------------------------------------

_FENCE = re.compile(r"^(?P<marks>`{3,}|~{3,})\s*(?P<info>.*?)\s*$")
_HEADING = re.compile(r"^(?P<level>#+)\s+(?P<text>.*)$")
_RULES = re.compile(r"(?P<rules>R\d+(?:(?:,\s*|\s+)R\d+)*)[:,]?\s+(?P<title>.+)")
_DEMANDS = re.compile(r"\s*(?://|#)\s*(?P<demands>(?:error|warning):\s*\[.*)$")
_NOTATIONS = {"plan json": "json", "plan python": "python", "reply": "auto"}


class _Page:
    def __init__(self, path: Path, tools: ToolSet | None) -> None:
        self.path = path
        self.own = tools
        self.cases: list[Case] = []
        self.shared = Fakes([])
        self._begin()

    def read(self, lines: Sequence[str]) -> list[Case]:
        at = 0
        while at < len(lines):
            number, line = at + 1, lines[at]
            at += 1
            if fence := _FENCE.match(line):
                begin = at
                while at < len(lines) and lines[at].strip() != fence["marks"]:
                    at += 1
                if at == len(lines):
                    self._fail(number, "this block is never closed")
                self._block(fence["info"], lines[begin:at], begin + 1)
                at += 1
            elif heading := _HEADING.match(line):
                self._heading(len(heading["level"]), heading["text"], number)
        self._end()
        return self.cases

    def _begin(self, level: int = 0, line: int = 0, rules: tuple[str, ...] = (), title: str = "") -> None:
        """Begin a case, or what stands outside of any."""
        self.level, self.line, self.rules, self.title = level, line, rules, title
        self.fakes = self.shared
        self.examples: list[Example] = []
        self.plans: list[PlanText] = []
        self.earlier: PlanText | None = None

    def _heading(self, level: int, text: str, line: int) -> None:
        if cited := _RULES.match(text):
            self._end()
            self._begin(level, line, tuple(re.findall(r"R\d+", cited["rules"])), cited["title"])
        elif self.rules and level <= self.level:
            self._end()
            self._begin()

    def _end(self) -> None:
        """Keep the case that ends here."""
        self._close(())
        if self.rules:
            if not self.examples:
                self._fail(self.line, "this case has no plan")
            case = Case(self.path, self.line, self.rules, self.title, tuple(self.examples), self.fakes, self.own)
            self.cases.append(case)

    def _block(self, info: str, lines: Sequence[str], first: int) -> None:
        if info == "tools":
            try:
                self.fakes = self.fakes.joined(fake_tools("\n".join(lines)))
            except UsageError as error:
                self._fail(first, str(error))
            if not self.rules:
                self.shared = self.fakes
        elif info in _NOTATIONS:
            if not self.rules:
                self._fail(first, "this plan stands outside of any case; a case has a heading such as `## R12 title`")
            self.plans.append(self._plan(_NOTATIONS[info], lines, first))
        elif info == "earlier":
            self._close(())
            self.earlier = self._plan("json", lines, first)
        elif info == "expect":
            wishes = [self._wish(line.strip(), first + n) for n, line in enumerate(lines) if line.strip()]
            if not self.plans:
                self._fail(first, "there is no plan of which this could be expected")
            self._close(wishes)

    def _plan(self, notation: str, lines: Sequence[str], first: int) -> PlanText:
        demands: list[Demand] = []
        kept: list[str] = []
        for number, line in enumerate(lines, 1):
            found = _DEMANDS.search(line) if notation != "auto" else None
            kept.append(line[: found.start()] if found else line)
            try:
                demands += [replace(each, line=number) for each in read_demands(found["demands"])] if found else []
            except ValueError as error:
                self._fail(first + number - 1, f"{error}: {line}")
        return PlanText(notation, "\n".join(kept) + "\n", first, tuple(demands))

    def _wish(self, text: str, line: int) -> Wish:
        try:
            return read_wish(text, line)
        except ValueError as error:
            self._fail(line, f"{error}: {text}")

    def _close(self, wishes: Sequence[Wish]) -> None:
        """End an example: the plans so far, and what must come of them."""
        plans, self.plans = self.plans, []
        earlier, self.earlier = self.earlier, None
        settings = tuple(wish for wish in wishes if wish.form == "with")
        self.examples += [Example((plan,), settings, earlier) for plan in plans if plan.is_rejected]
        others = tuple(plan for plan in plans if not plan.is_rejected)
        idle = next((plan for plan in others if not plan.demands and not wishes), None)
        if idle is not None:
            self._fail(idle.line, "nothing is expected of this plan")
        if others:
            self.examples.append(Example(others, tuple(wishes), earlier))
        elif len(settings) < len(wishes):
            self._fail(wishes[0].line, "the plans above demand errors already, so nothing else comes of them")

    def _fail(self, line: int, problem: str) -> NoReturn:
        raise UsageError(f"{self.path}:{line}: {problem}")
