"""Literate test cases for plans: a Markdown page states tools, plans and what must come of them, and reads as documentation.

    for case in load_cases(Path("plans.md")):
        run_case(case)                          # raises AssertionError, saying where and what

`load_cases(path, tools=MY_TOOLS)` runs the cases with your own tools instead of fakes. They are called for real, several
times over, so they must be plain functions that may be called in a test.

A page. A heading that begins with the numbers of rules (`## R12 title`, `## R3, R4 title`) begins a case, which goes on
to the next heading of the same or a higher level. Fenced blocks in it, in this order:

    tools            signatures and what the fakes do, see `toolplan.testing.fakes`. A block before the first case is for
                     the whole page, one in a case adds to it
    plan json        a plan in the JSON notation; `plan python` in the Python notation
    reply            the text of a model's reply, whatever it is (fences inside need a longer fence outside)
    expect           what must come of all the plans since the last `expect` block, one expectation a line

A line of a plan can demand diagnostics: `// error: [TP302] "no argument"` in JSON, `# error: ...` in Python. `warning:`
is the same for warnings; the text is a part of the message and may be left out; `at "recipient"` before it is the very
text that is marked; several are separated by `;`. Every diagnostic must be demanded, there or in the `expect` block.

Expectations about the reading and the check:

    text "..." | cannot "..." [missing "...", "..."]      it is no plan, but an answer in prose, a refusal
    error [TP105] "..." | warning [TP209] "..."           a diagnostic, wherever it is
    repair "..."                                          the text was mended; every repair must be named
    same plan                                             all these plans are the same plan
    canonical {...}                                       the plan's canonical form, as one JSON value
    accepted                                              the plan may run

and about the run:

    call tool(argument=value, ...) [fails]     a call that is made; all of them, in written order. `no call`
    answer "..." | succeeds                    how the run ends: with this answer, or without any
    fails "..." [at s2]                        failed with this message, or a part of it
    cannot "..." [missing ...] | replans "..." | waits
    asks "..."                                 a question to a person or a model, in written order
    note "..."                                 a note that is shown
    step s2 skipped                            how a step ended: failed, unknown, skipped, cancelled, not_run, ...
    A overlaps B | A before B                  calls: a tool's name, or `tool(argument=value)`; every A and every B
    time 2                                     seconds that the whole run takes; a fake's call takes 1, unless it `takes` more
    with failure="independent", window=8, max_concurrency=2, now="...", max_calls=5, max_steps=3, max_depth=2, ...

What runs: the plan is run step by step in written order, as its meaning is defined; then by the scheduler on a virtual
clock, several times with random durations. Whether stated or not, all must end alike, make the same calls with effects,
and never let two conflicting calls overlap or change places (P3); a call that the written order does not make must be
free of effects. `time`, `overlaps` and `step` are about one more run, in which each call takes as long as its fake says.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, NoReturn, TypeAlias, cast

from toolplan.check import CheckedPlan, Limits, check
from toolplan.diagnostics import Diagnostic, Severity, Source, render_all
from toolplan.effects import UNDECLARED, conflict
from toolplan.errors import PlanRejected, UsageError
from toolplan.parse import CannotPlan, Prose, parse
from toolplan.plan import Parallel, Plan, walk
from toolplan.show import canonical, to_json
from toolplan.testing.fakes import Fakes, fake_tools
from toolplan.testing.interpreter import Reference, run_in_written_order
from toolplan.testing.simulation import Simulation, simulate
from toolplan.tools import ToolSet
from toolplan.values import Json

__all__ = ["Case", "Example", "Expectation", "PlanText", "load_cases", "run_case"]

SEEDS = range(5)
"""Each plan is simulated with this many sets of random durations."""

Span: TypeAlias = "tuple[str, dict[str, Any], float, float]"


@dataclass(frozen=True, slots=True)
class Demand:
    """A diagnostic that must be reported. `line` counts from 1 in the plan; None for wherever it is."""

    severity: str
    code: str
    text: str = ""
    marked: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class PlanText:
    """A plan as it stands in a case, without the demands in its lines. `line` is that of its first line in the page."""

    notation: str
    text: str
    line: int
    demands: tuple[Demand, ...] = ()


@dataclass(frozen=True, slots=True)
class Expectation:
    """One line of an `expect` block."""

    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Example:
    """Plans, and what must come of each of them."""

    plans: tuple[PlanText, ...]
    expectations: tuple[Expectation, ...]


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
    """The user's own tools, which take the place of the fakes of the same name."""

    def __str__(self) -> str:
        return f"{self.path.stem}:{self.line} {' '.join(self.rules)} {self.title}"


# --- reading a page --------------------------------------------------------------------------------------------------

_FENCE = re.compile(r"^(?P<marks>`{3,}|~{3,})\s*(?P<info>.*?)\s*$")
_HEADING = re.compile(r"^(?P<level>#+)\s+(?P<text>.*)$")
_RULES = re.compile(r"(?P<rules>R\d+(?:(?:,\s*|\s+)R\d+)*)[:,]?\s+(?P<title>.+)")
_DEMANDS = re.compile(r"\s*(?://|#)\s*(?=(?:error|warning):\s*\[)(?P<demands>.*)$")
_DEMAND = re.compile(
    r"(?:(?P<severity>error|warning):?\s*)?\[(?P<code>TP\d{3})\](?:\s+at\s+(?P<marked>\"(?:[^\"\\]|\\.)*\"):?)?"
    r"(?:\s+(?P<text>\"(?:[^\"\\]|\\.)*\"))?\s*(?:;\s*|$)"
)
_LANGUAGES = {"plan json": "json", "plan python": "python", "reply": "auto"}


def load_cases(path: Path | str, *, tools: ToolSet | None = None) -> list[Case]:
    """Return the cases of a Markdown page, in order. Raises `UsageError` for a page that states something unreadable.

    `tools` are your own; without a `tools` block a page needs nothing else.
    """
    path = Path(path)
    page = _Page(path, tools)
    page.read(path.read_text(encoding="utf-8").splitlines())
    return page.cases


class _Page:
    def __init__(self, path: Path, tools: ToolSet | None) -> None:
        self.path = path
        self.own = tools
        self.cases: list[Case] = []
        self.shared = Fakes([])
        self.begin()

    def begin(self, level: int = 0, line: int = 0, rules: tuple[str, ...] = (), title: str = "") -> None:
        """Begin a case, or what stands outside of any."""
        self.level, self.line, self.rules, self.title = level, line, rules, title
        self.fakes = self.shared
        self.examples: list[Example] = []
        self.plans: list[PlanText] = []

    def read(self, lines: list[str]) -> None:
        number = 0
        while number < len(lines):
            number += 1
            line = lines[number - 1]
            if fence := _FENCE.match(line):
                start = number
                while number < len(lines) and lines[number].strip() != fence["marks"]:
                    number += 1
                if number == len(lines):
                    self.fail(start, "the block is never closed")
                self.block(fence["info"], lines[start:number], start + 1)
                number += 1
            elif heading := _HEADING.match(line):
                self.heading(len(heading["level"]), heading["text"], number)
        self.end()

    def heading(self, level: int, text: str, line: int) -> None:
        cited = _RULES.match(text)
        if cited:
            self.end()
            self.begin(level, line, tuple(re.findall(r"R\d+", cited["rules"])), cited["title"])
        elif self.rules and level <= self.level:
            self.end()
            self.begin()

    def end(self) -> None:
        """Keep the case that ends here."""
        self.close(())
        if self.rules:
            if not self.examples:
                self.fail(self.line, f"the case {self.title!r} has no plan")
            case = Case(self.path, self.line, self.rules, self.title, tuple(self.examples), self.fakes, self.own)
            self.cases.append(case)

    def close(self, expectations: Sequence[Expectation]) -> None:
        """End an example: the plans so far, and what must come of them."""
        if not self.plans:
            if expectations:
                self.fail(expectations[0].line, "there is no plan that this could be expected of")
            return
        if not expectations and (idle := next((plan for plan in self.plans if not plan.demands), None)):
            self.fail(idle.line, "nothing is expected of this plan")
        self.examples.append(Example(tuple(self.plans), tuple(expectations)))
        self.plans = []

    def block(self, info: str, lines: list[str], first: int) -> None:
        text = "\n".join(lines) + "\n"
        if info == "tools":
            try:
                fakes = fake_tools(text)
            except UsageError as error:
                self.fail(first, str(error))
            self.fakes = self.fakes.joined(fakes)
            if not self.rules:
                self.shared = self.fakes
        elif info in _LANGUAGES:
            if not self.rules:
                self.fail(first, "a plan stands outside of any case: a case has a heading such as `## R12 title`")
            self.plans.append(self.plan(_LANGUAGES[info], lines, first))
        elif info == "expect":
            wanted = [Expectation(line.strip(), first + n) for n, line in enumerate(lines) if line.strip()]
            for expectation in wanted:
                _parsed(expectation, self.path)
            self.close(wanted)

    def plan(self, notation: str, lines: list[str], first: int) -> PlanText:
        demands: list[Demand] = []
        kept: list[str] = []
        for number, line in enumerate(lines, 1):
            found = _DEMANDS.search(line) if notation != "auto" else None
            kept.append(line[: found.start()] if found else line)
            if found:
                demands += [replace(each, line=number) for each in self.demands(found["demands"], first + number - 1)]
        return PlanText(notation, "\n".join(kept) + "\n", first, tuple(demands))

    def demands(self, text: str, line: int) -> list[Demand]:
        found = _demands(text)
        if found is None:
            self.fail(line, f'a demand looks like `error: [TP302] at "marked": "part of the message"`, found {text!r}')
        return found

    def fail(self, line: int, problem: str) -> NoReturn:
        raise UsageError(f"{self.path}:{line}: {problem}")


def _demands(text: str) -> list[Demand] | None:
    """Return the diagnostics that a text demands, or None when it is not written so."""
    found: list[Demand] = []
    severity = "error"
    at = 0
    while at < len(text):
        match = _DEMAND.match(text, at)
        if match is None:
            return None
        severity = match["severity"] or severity
        said, marked = ((cast(str, json.loads(match[key])) if match[key] else None) for key in ("text", "marked"))
        found.append(Demand(severity, match["code"], said or "", marked))
        at = match.end()
    return found


# --- what an expectation says ----------------------------------------------------------------------------------------

_STRING = r'"(?:[^"\\]|\\.)*"'
_FORMS: dict[str, re.Pattern[str]] = {
    form: re.compile(pattern + r"\Z")
    for form, pattern in {
        "text": rf"text (?P<text>{_STRING})",
        "cannot": rf"cannot (?P<text>{_STRING})(?: missing (?P<missing>{_STRING}(?:, {_STRING})*))?",
        "diagnostic": r"(?P<demands>(?:error|warning) \[.*)",
        "repair": rf"repair (?P<text>{_STRING})",
        "same": r"same plan",
        "canonical": r"canonical (?P<json>\{.*\})",
        "accepted": r"accepted",
        "call": r"call (?P<call>.*?\))(?P<failing> fails)?",
        "no call": r"no call",
        "answer": rf"answer (?P<text>{_STRING})",
        "succeeds": r"succeeds",
        "fails": rf"fails (?P<text>{_STRING})(?: at (?P<step>\S+))?",
        "replans": rf"replans (?P<text>{_STRING})",
        "waits": r"waits",
        "asks": rf"asks (?P<text>{_STRING})",
        "note": rf"note (?P<text>{_STRING})",
        "step": r"step (?P<step>\S+) (?P<outcome>succeeded|failed|unknown|skipped|cancelled|waiting|not_run)",
        "order": r"(?P<one>.+?) (?P<relation>overlaps|before) (?P<other>.+)",
        "time": r"time (?P<seconds>\d+(?:\.\d+)?)",
        "with": r"with (?P<settings>.+)",
    }.items()
}
_SETTINGS = ("failure", "window", "max_concurrency", "now")
_LIMITS = tuple(field.name for field in fields(Limits))
_ENDINGS = ("answer", "succeeds", "fails", "replans", "waits", "cannot")


@dataclass(frozen=True, slots=True)
class _Wish:
    """An expectation, read: its form and the parts of its text."""

    form: str
    parts: Mapping[str, str | None]
    line: int
    source: str

    @property
    def text(self) -> str:
        return _string(self.parts["text"] or '""')


def _parsed(expectation: Expectation, path: Path) -> _Wish:
    for form, pattern in _FORMS.items():
        if match := pattern.match(expectation.text):
            wish = _Wish(form, match.groupdict(), expectation.line, expectation.text)
            problem = _problem_of(wish)
            if problem is None:
                return wish
            raise UsageError(f"{path}:{expectation.line}: {problem}: {expectation.text}")
    raise UsageError(f"{path}:{expectation.line}: this is not an expectation: {expectation.text}")


def _problem_of(wish: _Wish) -> str | None:
    """Return what is wrong with the parts of an expectation, found before anything runs."""
    parts = wish.parts
    try:
        for key in ("text", "json"):
            json.loads(parts.get(key) or "null")
        for call in (parts.get("call"), parts.get("one"), parts.get("other")):
            if call is not None:
                _call(call)
        if wish.form == "with":
            _settings(wish)
        if wish.form == "diagnostic" and _demands(parts["demands"] or "") is None:
            return "this names no diagnostic"
    except (ValueError, SyntaxError) as error:
        return str(error)
    return None


def _string(text: str) -> str:
    return cast(str, json.loads(text))


def _call(text: str) -> tuple[str, dict[str, Json]]:
    """Return the tool and the arguments of a call written as `tool(argument=value)`, or of a tool's name."""
    node = ast.parse(text.strip(), mode="eval").body
    if isinstance(node, ast.Name):
        return node.id, {}
    if not isinstance(node, ast.Call) or node.args or any(keyword.arg is None for keyword in node.keywords):
        raise ValueError("a call looks like `tool(argument=value)`")
    arguments = {str(keyword.arg): cast(Json, ast.literal_eval(keyword.value)) for keyword in node.keywords}
    return ast.unparse(node.func), arguments


def _settings(wish: _Wish) -> dict[str, Any]:
    _, settings = _call(f"settings({wish.parts['settings']})")
    for name in settings:
        if name not in _SETTINGS and name not in _LIMITS:
            raise ValueError(f"there is no setting `{name}`; there are {', '.join((*_SETTINGS, *_LIMITS))}")
    return settings


# --- running a case --------------------------------------------------------------------------------------------------


def run_case(case: Case) -> None:
    """Run all examples of a case. Raises `AssertionError`, naming the page, the line, and what came out instead."""
    for example in case.examples:
        forms: list[tuple[PlanText, str]] = []
        wishes = [_parsed(expectation, case.path) for expectation in example.expectations]
        for plan in example.plans:
            trial = _Trial(case, plan, wishes)
            trial.run()
            if trial.checked is not None:
                forms.append((plan, canonical(trial.checked.plan)))
        if any(wish.form == "same" for wish in wishes):
            (first, form), *others = forms
            for other, another in others:
                if form != another:
                    _refuse(
                        case, other.line, f"this is not the plan of line {first.line}, which is\n{form}\nbut\n{another}"
                    )


def _refuse(case: Case, line: int, problem: str) -> NoReturn:
    raise AssertionError(f"{case.path}:{line}: {' '.join(case.rules)} {case.title}\n{problem}")


class _Trial:
    """One plan of an example, with everything that is expected of it."""

    def __init__(self, case: Case, plan: PlanText, wishes: Sequence[_Wish]) -> None:
        self.case = case
        self.plan = plan
        self.wishes = wishes
        self.checked: CheckedPlan | None = None
        self.settings: dict[str, Any] = {}
        for wish in wishes:
            if wish.form == "with":
                self.settings |= _settings(wish)

    def fail(self, problem: str, wish: _Wish | None = None) -> NoReturn:
        expected = f"expected: {wish.source}\n" if wish is not None else ""
        text = "".join(f"  | {line}\n" for line in self.plan.text.splitlines())
        _refuse(self.case, wish.line if wish else self.plan.line, f"{expected}{problem}\nthe plan:\n{text}")

    def wished(self, *forms: str) -> list[_Wish]:
        return [wish for wish in self.wishes if wish.form in forms]

    def tools(self) -> ToolSet:
        """Return fresh fakes, and the user's own tools."""
        own = {tool.name: tool for tool in self.case.tools or ()}
        return ToolSet.of({**{tool.name: tool for tool in self.case.fakes.tools()}, **own}.values())

    def run(self) -> None:
        tools = self.tools()
        found: tuple[Diagnostic, ...] = ()
        reading: Plan | Prose | CannotPlan | None = None
        source: Source | None = None
        try:
            reading = parse(self.plan.text, cast(Any, self.plan.notation), tools)
            if isinstance(reading, Plan):
                source = reading.source
                limits = Limits(**{name: value for name, value in self.settings.items() if name in _LIMITS})
                self.checked = check(reading, tools, limits)
                found = self.checked.warnings
        except PlanRejected as rejected:
            found, source = rejected.diagnostics, rejected.source
        self.diagnostics(found, source)
        if not isinstance(reading, Plan):
            self.no_plan(reading)
        self.repairs(reading.repairs if isinstance(reading, Plan) else ())
        if self.checked is None:
            for wish in self.wishes:
                if wish.form not in ("diagnostic", "repair", "with", "text", "cannot"):
                    self.fail("but this is no plan that may run\n" + self.shown(found, source), wish)
            return
        for wish in self.wished("canonical"):
            form = to_json(self.checked.plan)
            if form != json.loads(wish.parts["json"] or ""):
                self.fail(f"but its canonical form is {json.dumps(form, ensure_ascii=False)}", wish)
        if any(
            wish.form not in ("accepted", "same", "canonical", "diagnostic", "repair", "with") for wish in self.wishes
        ):
            _Run(self, self.checked).check()

    # --- reading and checking ---

    def shown(self, found: Iterable[Diagnostic], source: Source | None) -> str:
        return render_all(list(found), source or Source(self.plan.text))

    def diagnostics(self, found: Sequence[Diagnostic], source: Source | None) -> None:
        """Compare the diagnostics with those that are demanded, one to one."""
        left = list(found)
        anywhere = [each for wish in self.wished("diagnostic") for each in _demands(wish.parts["demands"] or "") or ()]
        for demand in (*self.plan.demands, *anywhere):
            match = next((each for each in left if self.meets(each, demand, source)), None)
            if match is None:
                where = f"line {demand.line}" if demand.line else "somewhere"
                marked = f" at {demand.marked!r}" if demand.marked is not None else ""
                said = f" {demand.text!r}" if demand.text else ""
                self.fail(
                    f"expected {demand.severity}[{demand.code}]{marked}{said} in {where} of the plan, found\n"
                    + (self.shown(found, source) if found else "nothing\n")
                )
            left.remove(match)
        if left:
            self.fail("nobody expected this:\n" + self.shown(left, source))

    def meets(self, found: Diagnostic, demand: Demand, source: Source | None) -> bool:
        severity = "error" if found.severity is Severity.ERROR else "warning"
        if (found.code, severity) != (demand.code, demand.severity) or demand.text not in found.message:
            return False
        span = source.locate(found.place) if source else None
        if demand.line is not None and (span is None or source is None or self.line_of(source, span[0]) != demand.line):
            return False
        return demand.marked is None or (
            span is not None and source is not None and source.text[span[0] : span[1]] == demand.marked
        )

    def line_of(self, source: Source, offset: int) -> int:
        """Return the line in the case's text. A reader may have taken the program out of what stands around it."""
        line, _ = source.line_and_column(offset)
        begins = self.plan.text.find(source.text)
        return line + (self.plan.text[:begins].count("\n") if begins > 0 else 0)

    def no_plan(self, reading: Prose | CannotPlan | None) -> None:
        for wish in self.wished("text"):
            if not isinstance(reading, Prose) or reading.text != wish.text:
                self.fail(f"but it is {reading!r}", wish)
        for wish in self.wished("cannot"):
            if not isinstance(reading, CannotPlan) or (reading.reason, list(reading.missing)) != _reasons(wish):
                self.fail(f"but it is {reading!r}", wish)
        if reading is not None and not self.wished("text", "cannot"):
            self.fail(f"this is no plan: it is {reading!r}")

    def repairs(self, made: Sequence[str]) -> None:
        left = list(made)
        for wish in self.wished("repair"):
            match = next((repair for repair in left if wish.text in repair), None)
            if match is None:
                self.fail(f"but the repairs are {list(made)!r}", wish)
            left.remove(match)
        if left:
            self.fail(f"the text was mended, which nobody expected: {left!r}")


def _reasons(wish: _Wish) -> tuple[str, list[str]]:
    return wish.text, [_string(each) for each in re.findall(_STRING, wish.parts["missing"] or "")]


class _Run:
    """The runs of one checked plan: in written order, at random, and as the fakes say."""

    def __init__(self, trial: _Trial, checked: CheckedPlan) -> None:
        self.trial = trial
        self.checked = checked
        self.asked: list[str] = []
        self.fail = trial.fail
        self.wished = trial.wished

    def check(self) -> None:
        fakes = self.trial.case.fakes
        reference = self.in_written_order()
        timed = self.simulated(durations=lambda tool, _: 1.0 if tool == "ask" else fakes.seconds(tool))
        for seed in SEEDS:
            simulation = self.simulated(seed=seed)
            self.compare(reference, simulation, seed)
            self.orders(simulation, ("before",))
        self.orders(timed, ("overlaps", "before"))
        self.ending(reference, timed)
        self.calls(reference)
        for wish in self.wished("step"):
            outcomes = {record.id: record.outcome for record in timed.records}
            if outcomes.get(wish.parts["step"] or "") != wish.parts["outcome"]:
                self.fail(f"but the steps ended so: {outcomes}", wish)
        for wish in self.wished("time"):
            if abs(timed.seconds - float(wish.parts["seconds"] or 0)) > 1e-9:
                self.fail(f"but it takes {timed.seconds:g} seconds:\n{_shown_spans(timed.spans)}", wish)

    # --- the runs ---

    def fresh(self) -> tuple[CheckedPlan, dict[str, Any]]:
        """Return the plan with tools that nobody has called yet, and what answers questions."""
        settings = {name: value for name, value in self.trial.settings.items() if name in _SETTINGS}
        person, model = (self.trial.case.fakes.answer(word) for word in ("ask_user", "ask_model"))
        if person is not None:
            settings["ask"] = lambda question: self.noted(question) and str(person({"question": question}))
        if model is not None:
            settings["read"] = lambda question, data, returns: (
                self.noted(question) and model({"question": question, "data": data, "returns": returns})
            )
        return replace(self.checked, tools=self.trial.tools()), settings

    def noted(self, question: str) -> bool:
        self.asked.append(question)
        return True

    def in_written_order(self) -> Reference:
        checked, settings = self.fresh()
        self.asked.clear()
        for name in ("failure", "window", "max_concurrency"):
            settings.pop(name, None)
        reference = run_in_written_order(checked, **settings)
        for wish in self.wished("asks")[:1]:
            expected = [each.text for each in self.wished("asks")]
            if self.asked != expected:
                self.fail(f"but the questions are {self.asked!r}", wish)
        return reference

    def simulated(self, **how: Any) -> Simulation:
        checked, settings = self.fresh()
        return simulate(checked, **settings, **how)

    @property
    def follows_written_order(self) -> bool:
        """Whether the run must end as the plain interpreter's does, which has no clock and nobody to wait for."""
        return self.trial.settings.get("failure") != "independent" and not self.wished("waits") and not self.is_late

    @property
    def is_late(self) -> bool:
        """Whether some call takes longer than it may."""
        fakes = self.trial.case.fakes
        timeouts = [tool.timeout_seconds for tool in self.checked.tools]
        steps = [getattr(step, "timeout_seconds", None) for step in walk(self.checked.plan.steps)]
        return any(limit is not None for limit in (*timeouts, *steps)) and any(
            fakes.seconds(name) > limit for name in fakes.names for limit in (*timeouts, *steps) if limit is not None
        )

    # --- what must always be so ---

    def compare(self, reference: Reference, simulation: Simulation, seed: int) -> None:
        """Compare a run with the written order: the same end, the same effects, conflicting calls in the same order."""
        finish = simulation.finish
        if finish is None and not self.wished("waits"):
            self.fail(f"the run never ends (seed {seed})")
        self.keeps_order(simulation.spans, seed)
        if not self.follows_written_order or finish is None:
            return
        ends = (finish.outcome, finish.text, finish.error is None)
        if ends != (reference.outcome, reference.text, reference.error is None):
            self.fail(
                f"in written order the run ends with {reference.outcome}, {reference.text!r}, {reference.error!r}; "
                f"overlapping (seed {seed}) with {finish.outcome}, {finish.text!r}, {finish.error!r}"
            )
        expected = Counter(_shown_call(tool, arguments) for tool, arguments, _ in reference.calls)
        made = Counter(_shown_call(tool, arguments) for tool, arguments, _, _ in simulation.spans)
        if missing := expected - made:
            self.fail(f"a call was not made when calls overlap (seed {seed}): {', '.join(missing)}")
        effects = {_shown_call(t, a) for t, a, _, _ in simulation.spans if self.checked.tools[t].effects.has_effects}
        if more := [call for call in made - expected if call in effects]:
            self.fail(f"a call with effects that written order does not make (seed {seed}): {', '.join(more)}")

    def keeps_order(self, spans: Sequence[Span], seed: int) -> None:
        """Refuse conflicting calls that overlap."""
        for index, (tool, arguments, begun, ended) in enumerate(spans):
            for other, others, other_begun, other_ended in spans[:index]:
                if begun < other_ended and other_begun < ended and self.conflicts(tool, arguments, other, others):
                    self.fail(
                        f"{_shown_call(other, others)} and {_shown_call(tool, arguments)} conflict, but overlap "
                        f"(seed {seed})"
                    )

    def conflicts(self, tool: str, arguments: dict[str, Json], other: str, others: dict[str, Json]) -> bool:
        effects, against = self.checked.tools[tool].effects, self.checked.tools[other].effects
        if any(isinstance(step, Parallel) for step in walk(self.checked.plan.steps)) and UNDECLARED in (
            effects,
            against,
        ):
            return False  # `parallel` may have said that these are independent
        return any(conflict(a, b) for a in effects.accesses(arguments) for b in against.accesses(others))

    # --- what is expected ---

    def ending(self, reference: Reference, timed: Simulation) -> None:
        finish = timed.finish
        outcome, text, error = "waiting", None, None
        if finish is not None:
            outcome, text, error = finish.outcome, finish.text, finish.error
        ended = f"but it ends with {outcome}: {text if text is not None else error!r}"
        for wish in self.wished(*_ENDINGS):
            match wish.form:
                case "answer":
                    good = (outcome, text) == ("succeeded", wish.text)
                case "succeeds":
                    good = (outcome, text) == ("succeeded", None)
                case "cannot":
                    missing = list(finish.missing) if finish is not None else []
                    good = (outcome, (text, missing)) == ("cannot", _reasons(wish))
                case "replans":
                    good = outcome == "replan" and (text == wish.text or (text is None and wish.text in (error or "")))
                case "waits":
                    good = outcome == "waiting"
                case _:
                    step = wish.parts["step"]
                    good = outcome == "failed" and wish.text in (error or "")
                    good = good and (step is None or (finish is not None and finish.failed_step == step))
                    if finish is not None and finish.failed_step:
                        ended = f"but it ends with {outcome}: {error!r} at {finish.failed_step}"
            if not good:
                self.fail(ended, wish)
        if outcome == "failed" and not self.wished("fails"):
            self.fail(f"the run fails: {error}")

    def calls(self, reference: Reference) -> None:
        wished = self.wished("call", "no call")
        if not wished:
            return
        expected: list[tuple[str, dict[str, Json], str]] = []
        for wish in wished:
            if wish.form == "call":
                tool, arguments = _call(wish.parts["call"] or "")
                expected.append((tool, arguments, "failed" if wish.parts["failing"] else "succeeded"))
        if reference.calls != expected:
            made = [
                f"call {_shown_call(tool, arguments)}{' fails' if outcome == 'failed' else ''}"
                for tool, arguments, outcome in reference.calls
            ]
            self.fail("but these calls are made:\n" + "\n".join(made or ["no call"]), wished[0])

    def orders(self, simulation: Simulation, relations: tuple[str, ...]) -> None:
        for wish in self.wished("order"):
            if wish.parts["relation"] not in relations:
                continue
            one, other = (_matching(simulation.spans, _call(wish.parts[key] or "")) for key in ("one", "other"))
            if not one or not other:
                self.fail("but one of them is never called", wish)
            for a in one:
                for b in other:
                    if a is not b and not _stands(wish.parts["relation"] or "", a, b):
                        self.fail(f"but:\n{_shown_spans(simulation.spans)}", wish)


def _matching(spans: Iterable[Span], call: tuple[str, dict[str, Json]]) -> list[Span]:
    tool, arguments = call
    return [span for span in spans if span[0] == tool and arguments.items() <= span[1].items()]


def _stands(relation: str, a: Span, b: Span) -> bool:
    if relation == "before":
        return a[3] <= b[2]
    return a[2] < b[3] and b[2] < a[3]


def _shown_call(tool: str, arguments: Mapping[str, Json]) -> str:
    return f"{tool}({', '.join(f'{name}={value!r}' for name, value in arguments.items())})"


def _shown_spans(spans: Iterable[Span]) -> str:
    return "".join(f"  {begun:g} to {ended:g}: {_shown_call(t, a)}\n" for t, a, begun, ended in spans)
