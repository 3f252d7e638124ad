"""One plan of a conformance case: read, checked, run in several ways, and compared with what is expected of it."""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn, Protocol, TypeAlias, cast

from toolplan.check import CheckedPlan, Limits, check
from toolplan.diagnostics import Diagnostic, Severity, Source, render_all
from toolplan.effects import conflict
from toolplan.errors import PlanRejected
from toolplan.known import NOTHING_KNOWN, Known
from toolplan.parse import CannotPlan, Prose, parse
from toolplan.plan import Parallel, Plan, walk
from toolplan.replan import known_after
from toolplan.run import run_plan
from toolplan.show import to_json
from toolplan.testing.expectations import LIMITS, OF_NO_PLAN, SETTINGS, Demand, Wish, read_call, read_texts
from toolplan.testing.fakes import Fakes
from toolplan.testing.interpreter import Reference, run_in_written_order
from toolplan.testing.simulation import Simulation, simulate
from toolplan.tools import ToolSet
from toolplan.values import Json

__all__ = ["Stage", "Trial"]

SEEDS = range(5)
"""Each plan is simulated with this many sets of random durations."""

ABOUT_TEXT = frozenset({"accepted", "same", "canonical", "diagnostic", "mended", "with"})
"""Expectations for which nothing needs to run."""
ENDINGS = ("answer", "succeeds", "fails", "replans", "waits", "cannot")

Span: TypeAlias = "tuple[str, dict[str, Any], float, float]"


class Stage(Protocol):
    """What a trial needs of its case: the tools, fresh for each run, and how to say that something is wrong."""

    @property
    def fakes(self) -> Fakes:
        """The fake tools."""
        ...

    def fresh_tools(self) -> ToolSet:
        """Return all tools; the fakes among them count their calls from the beginning."""
        ...

    def refuse(self, line: int, problem: str) -> NoReturn:
        """Raise `AssertionError` about this line of the page."""
        ...


class Trial:
    """One plan with everything that is expected of it. `run` raises `AssertionError`."""

    def __init__(
        self,
        stage: Stage,
        notation: str,
        text: str,
        line: int,
        demands: Sequence[Demand],
        wishes: Sequence[Wish],
        earlier: str | None = None,
    ) -> None:
        self.stage = stage
        self.notation = notation
        self.text = text
        self.line = line
        self.demands = demands
        self.wishes = wishes
        self.earlier = earlier
        self.settings: dict[str, Any] = {}
        for wish in self.wished("with"):
            self.settings |= wish.settings

    def wished(self, *forms: str) -> list[Wish]:
        """Return the expectations of these forms."""
        return [wish for wish in self.wishes if wish.form in forms]

    def fail(self, problem: str, wish: Wish | None = None) -> NoReturn:
        """Raise `AssertionError` about an expectation, or about the plan."""
        expected = f"expected: {wish.source}\n" if wish is not None else ""
        text = "".join(f"  | {line}\n" for line in self.text.splitlines())
        self.stage.refuse(wish.line if wish else self.line, f"{expected}{problem}\nthe plan:\n{text}")

    def run(self) -> CheckedPlan | None:
        """Return the checked plan once everything is as expected; None when that is that there is none."""
        tools = self.stage.fresh_tools()
        found: tuple[Diagnostic, ...] = ()
        reading: Plan | Prose | CannotPlan | None = None
        checked: CheckedPlan | None = None
        source: Source | None = None
        try:
            known = self._known(tools)
            reading = parse(self.text, cast(Any, self.notation), tools, first_step=known.steps + 1)
            if isinstance(reading, Plan):
                source = reading.source
                checked = check(reading, tools, Limits(**_among(LIMITS, self.settings)), known)
                found = checked.warnings
        except PlanRejected as rejected:
            found, source = rejected.diagnostics, rejected.source or source
        _Findings(self, found, source).compare()
        if checked is None:
            self._no_plan(reading)
            return None
        self._mended(checked.plan.repairs)
        for wish in self.wished("text"):
            self.fail("but it is a plan", wish)
        for wish in self.wished("canonical"):
            form = to_json(checked.plan)
            if form != json.loads(wish.part("json")):
                self.fail(f"but its canonical form is {json.dumps(form, ensure_ascii=False)}", wish)
        if any(wish.form not in ABOUT_TEXT for wish in self.wishes):
            _Runs(self, checked).compare()
        return checked

    def _known(self, tools: ToolSet) -> Known:
        """Return what the plan that was run before has left."""
        if self.earlier is None:
            return NOTHING_KNOWN
        reading = parse(self.earlier, "json", tools)
        assert isinstance(reading, Plan), "the plan before it is none"
        checked = check(reading, tools)
        return known_after(checked, asyncio.run(run_plan(checked, keep_names=True)))

    def _no_plan(self, reading: Plan | Prose | CannotPlan | None) -> None:
        """Compare what is no plan that may run with what is expected of it."""
        for wish in self.wishes:
            match wish.form:
                case "text":
                    good = isinstance(reading, Prose) and reading.text == wish.text
                case "cannot":
                    good = isinstance(reading, CannotPlan) and (reading.reason, list(reading.missing)) == _reasons(wish)
                case form:
                    good = form in OF_NO_PLAN
            if not good:
                what = "rejected" if reading is None or isinstance(reading, Plan) else repr(reading)
                self.fail(f"but it is {what}", wish)
        if isinstance(reading, Prose | CannotPlan) and not self.wished("text", "cannot"):
            self.fail(f"this is no plan: it is {reading!r}")

    def _mended(self, sentences: Sequence[str]) -> None:
        """Compare what was mended with what is expected, one to one."""
        left = list(sentences)
        for wish in self.wished("mended"):
            match = next((sentence for sentence in left if wish.text in sentence), None)
            if match is None:
                self.fail(f"but what was mended is {list(sentences)!r}", wish)
            left.remove(match)
        if left:
            self.fail(f"the text was mended, which nobody expected: {left!r}")


class _Findings:
    """The diagnostics of a plan beside those that are demanded, one to one."""

    def __init__(self, trial: Trial, found: Sequence[Diagnostic], source: Source | None) -> None:
        self.trial = trial
        self.found = list(found)
        self.source = source or Source(trial.text)

    def compare(self) -> None:
        left = list(self.found)
        anywhere = [demand for wish in self.trial.wished("diagnostic") for demand in wish.demands]
        for demand in (*self.trial.demands, *anywhere):
            match = next((diagnostic for diagnostic in left if self._meets(diagnostic, demand)), None)
            if match is None:
                self.trial.fail(f"{_shown_demand(demand)} is not there; found\n{self._drawn(self.found) or 'nothing'}")
            left.remove(match)
        if left:
            self.trial.fail(f"nobody expected this:\n{self._drawn(left)}")

    def _drawn(self, diagnostics: list[Diagnostic]) -> str:
        return render_all(diagnostics, self.source) if diagnostics else ""

    def _meets(self, diagnostic: Diagnostic, demand: Demand) -> bool:
        severity = "error" if diagnostic.severity is Severity.ERROR else "warning"
        if (diagnostic.code, severity) != (demand.code, demand.severity) or demand.text not in diagnostic.message:
            return False
        span = self.source.locate(diagnostic.place)
        if span is None:
            return demand.line is None and demand.marked is None
        on_line = demand.line is None or self._line(span[0]) == demand.line
        marked = self.source.text[span[0] : span[1]]
        return on_line and demand.marked in (None, marked, marked[1:-1] if marked[:1] == '"' else marked)

    def _line(self, offset: int) -> int:
        """Return the line in the case's text. A reader may have taken the plan out of what stands around it."""
        line, _ = self.source.line_and_column(offset)
        begins = self.trial.text.find(self.source.text)
        return line + (self.trial.text[:begins].count("\n") if begins > 0 else 0)


class _Runs:
    """The runs of a checked plan: in written order, at random, and in the seconds that the fakes say."""

    def __init__(self, trial: Trial, checked: CheckedPlan) -> None:
        self.trial = trial
        self.checked = checked
        self.effects = {tool.name: tool.effects for tool in checked.tools}
        self.asked: list[str] = []

    def compare(self) -> None:
        reference = self._in_written_order()
        for seed in SEEDS:
            simulation = self._simulated(seed=seed)
            self._same_world(reference, simulation, f"overlapping (seed {seed})")
            self._relations(simulation, "before")
        timed = self._simulated(durations=self._duration)
        self._same_world(reference, timed, "overlapping")
        self._relations(timed, "before", "overlaps")
        self._ending(timed)
        self._calls(reference, timed)
        self._particulars(timed)

    # --- the runs ---

    def _fresh(self) -> tuple[CheckedPlan, dict[str, Any]]:
        """Return the plan with tools that nobody has called yet, and what answers questions."""
        fakes = self.trial.stage.fakes
        person, model = fakes.answer("ask_user"), fakes.answer("ask_model")
        asked: list[str] = []
        self.asked = asked
        settings: dict[str, Any] = {}

        def ask(question: str) -> str:
            assert person is not None
            asked.append(question)
            return str(person({"question": question}))

        def read(question: str, data: Json, returns: dict[str, Json]) -> Json:
            assert model is not None
            asked.append(question)
            return model({"question": question, "data": data, "returns": returns})

        if person is not None:
            settings["ask"] = ask
        if model is not None:
            settings["read"] = read
        return replace(self.checked, tools=self.trial.stage.fresh_tools()), settings

    def _in_written_order(self) -> Reference:
        checked, settings = self._fresh()
        reference = run_in_written_order(checked, **settings, **_among(("now", "failure"), self.trial.settings))
        expected = [wish.text for wish in self.trial.wished("asks")]
        if expected and self.asked != expected:
            self.trial.fail(f"but the questions are {self.asked!r}", self.trial.wished("asks")[0])
        return reference

    def _simulated(self, **how: Any) -> Simulation:
        checked, settings = self._fresh()
        return simulate(checked, **settings, **how, **_among(SETTINGS, self.trial.settings))

    def _duration(self, tool: str, _: random.Random) -> float:
        return self.trial.stage.fakes.seconds(tool)

    @property
    def _follows_written_order(self) -> bool:
        """Whether the plain interpreter, which has no clock and does not wait, can tell how the run must end."""
        return not (self.trial.wished("waits") or self._is_late())

    def _is_late(self) -> bool:
        """Return whether some call may take longer than it is allowed to."""
        limits: list[float | None] = [tool.timeout_seconds for tool in self.checked.tools]
        limits += [getattr(step, "timeout_seconds", None) for step in walk(self.checked.plan.steps)]
        fakes = self.trial.stage.fakes
        return any(limit is not None and fakes.seconds(name) > limit for limit in limits for name in fakes.names)

    # --- what must always be so ---

    def _same_world(self, reference: Reference, simulation: Simulation, how: str) -> None:
        """Compare a run with the written order: the same end, the same effects, conflicting calls in the same order."""
        fail, finish = self.trial.fail, simulation.finish
        if finish is None and not self.trial.wished("waits"):
            fail(f"{how}, the run never ends")
        for one, other in self._conflicting(simulation.spans):
            if one[2] < other[3] and other[2] < one[3]:
                fail(f"{how}, these conflict and run at the same time:\n{_drawn([one, other])}")
        if finish is None or not self._follows_written_order:
            return
        if (finish.outcome, finish.text) != (reference.outcome, reference.text):
            fail(
                f"in written order, the run ends with {reference.outcome}: {reference.text or reference.error!r}\n"
                f"{how}, with {finish.outcome}: {finish.text or finish.error!r}"
            )
        self._same_calls(reference, simulation, how)

    def _same_calls(self, reference: Reference, simulation: Simulation, how: str) -> None:
        fail = self.trial.fail
        expected = [(tool, arguments, 0.0, 0.0) for tool, arguments, _ in reference.calls]
        made = sorted(simulation.spans, key=lambda span: (span[2], span[3]))
        wanted, counted = Counter(map(_shown, expected)), Counter(map(_shown, made))
        if missing := wanted - counted:
            fail(f"{how}, these calls are not made: {', '.join(missing)}")
        more = [_shown(span) for span in made if self.effects[span[0]].has_effects and _shown(span) in counted - wanted]
        if more:
            fail(f"{how}, these calls with effects are made, which written order does not make: {', '.join(more)}")
        for one, other in self._conflicting(expected):
            pair = {_shown(one), _shown(other)}
            before, now = (list(_first(spans, pair, wanted)) for spans in (expected, made))
            if before != now:
                fail(f"{how}, these conflict and change places: {', '.join(now)}")

    def _conflicting(self, spans: Sequence[Span]) -> Iterator[tuple[Span, Span]]:
        """Yield each pair of calls that must keep their order."""
        for index, one in enumerate(spans):
            for other in spans[:index]:
                if self._conflict(one, other):
                    yield other, one

    def _conflict(self, one: Span, other: Span) -> bool:
        effects, others = self.effects[one[0]], self.effects[other[0]]
        tools = self.checked.tools
        if not (effects.declared and others.declared) and self._has_group:
            return False  # `parallel` may have said that these are independent
        return any(conflict(a, b) for a in tools[one[0]].accesses(one[1]) for b in tools[other[0]].accesses(other[1]))

    @property
    def _has_group(self) -> bool:
        return any(isinstance(step, Parallel) for step in walk(self.checked.plan.steps))

    # --- what is expected ---

    def _ending(self, timed: Simulation) -> None:
        finish = timed.finish
        outcome, text, error, step, missing = "waiting", None, "", None, []
        if finish is not None:
            outcome, text, error = finish.outcome, finish.text, finish.error or ""
            step, missing = finish.failed_step, list(finish.missing)
        for wish in self.trial.wished(*ENDINGS):
            match wish.form:
                case "answer":
                    good = (outcome, text) == ("succeeded", wish.text)
                case "succeeds":
                    good = (outcome, text) == ("succeeded", None)
                case "cannot":
                    good = (outcome, (text, missing)) == ("cannot", _reasons(wish))
                case "replans":
                    good = outcome == "replan" and wish.text in (text, error)
                case "waits":
                    good = outcome == "waiting"
                case _:
                    good = outcome == "failed" and wish.text in error and wish.part("step") in ("", step)
            if not good:
                where = f" at {step}" if step else ""
                self.trial.fail(f"but it ends with {outcome}: {text or error!r}{where}", wish)
        if outcome == "failed" and not self.trial.wished("fails"):
            self.trial.fail(f"the run fails at {step}: {error}")

    def _calls(self, reference: Reference, timed: Simulation) -> None:
        wished = self.trial.wished("call", "no call")
        if not wished:
            return
        made = [(tool, arguments, outcome == "failed") for tool, arguments, outcome in reference.calls]
        if not self._follows_written_order:
            records = [record for record in timed.records if record.tool in self.effects and record.attempts]
            made = [(record.tool, record.arguments or {}, record.outcome != "succeeded") for record in records]
        expected = [
            (*read_call(wish.part("call")), bool(wish.part("failing"))) for wish in wished if wish.form == "call"
        ]
        if made != expected:
            lines = [f"call {_shown((t, a, 0, 0))}{' fails' if failed else ''}" for t, a, failed in made]
            self.trial.fail("but these calls are made:\n" + "\n".join(lines or ["no call"]), wished[0])

    def _particulars(self, timed: Simulation) -> None:
        outcomes = {record.id: record.outcome for record in timed.records}
        for wish in self.trial.wished("step"):
            if outcomes.get(wish.part("step")) != wish.part("outcome"):
                self.trial.fail(f"but the steps end so: {outcomes}", wish)
        for wish in self.trial.wished("time"):
            if abs(timed.seconds - float(wish.part("seconds"))) > 1e-9:
                self.trial.fail(f"but it takes {timed.seconds:g} seconds:\n{_drawn(timed.spans)}", wish)
        expected = self.trial.wished("note")
        if expected and timed.notes != [wish.text for wish in expected]:
            self.trial.fail(f"but the notes are {timed.notes!r}", expected[0])

    def _relations(self, simulation: Simulation, *relations: str) -> None:
        for wish in self.trial.wished("order"):
            relation = wish.part("relation")
            if relation not in relations:
                continue
            ones, others = (_matching(simulation.spans, *read_call(wish.part(key))) for key in ("one", "other"))
            holds: Callable[[Span, Span], bool] = _is_before if relation == "before" else _overlaps
            if not ones or not others or not all(holds(a, b) for a in ones for b in others if a is not b):
                self.trial.fail(f"but these calls are made:\n{_drawn(simulation.spans)}", wish)


def _among(names: Iterable[str], settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: settings[name] for name in names if name in settings}


def _reasons(wish: Wish) -> tuple[str, list[str]]:
    return wish.text, read_texts(wish.part("missing"))


def _is_before(one: Span, other: Span) -> bool:
    return one[3] <= other[2]


def _overlaps(one: Span, other: Span) -> bool:
    return one[2] < other[3] and other[2] < one[3]


def _matching(spans: Iterable[Span], tool: str, arguments: dict[str, Json]) -> list[Span]:
    return [span for span in spans if span[0] == tool and arguments.items() <= span[1].items()]


def _first(spans: Iterable[Span], wanted: set[str], most: Mapping[str, int]) -> Iterator[str]:
    """Yield the calls in `wanted` in order, each as often as `most` says."""
    seen: Counter[str] = Counter()
    for call in map(_shown, spans):
        if call in wanted and seen[call] < most[call]:
            seen[call] += 1
            yield call


def _shown_demand(demand: Demand) -> str:
    marked = f" at {demand.marked!r}" if demand.marked is not None else ""
    where = f" in line {demand.line}" if demand.line else ""
    return f"{demand.severity}[{demand.code}]{marked}{f' {demand.text!r}' if demand.text else ''}{where}"


def _shown(span: Span) -> str:
    return f"{span[0]}({', '.join(f'{name}={value!r}' for name, value in span[1].items())})"


def _drawn(spans: Iterable[Span]) -> str:
    return "".join(f"  {span[2]:g} to {span[3]:g}: {_shown(span)}\n" for span in spans)
