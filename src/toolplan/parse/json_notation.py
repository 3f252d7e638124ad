"""JSON steps -> Plan.

One method a kind of step. `spellings` says which keys it may have, `json_parts` reads what they hold. A problem ends
the step it is in, not the reading, so that all of them are reported at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from toolplan.diagnostics import Diagnostic, Place, Source
from toolplan.diagnostics import reading as say
from toolplan.errors import PlanRejected
from toolplan.expressions import Expression, Fields, Literal, Reference, Template, parse_expression
from toolplan.parse.extract import JsonPlan
from toolplan.parse.json_parts import Given, Parts, Problem, decode_text
from toolplan.parse.json_text import describe
from toolplan.parse.naming import give_names, given_names, name_from
from toolplan.parse.reading import CannotPlan
from toolplan.parse.references import References
from toolplan.parse.spellings import (
    ASK_MODEL,
    ASK_USER,
    CALL,
    FOR_EACH,
    IF,
    LET,
    ON_ERROR_WORDS,
    PARALLEL,
    PLAN,
    STEPS,
    TRY,
    WHILE,
    find_kind,
    find_meant_kind,
    fold,
)
from toolplan.parse.tool_names import meant_tool
from toolplan.plan import (
    FAIL,
    Answer,
    AskModel,
    AskUser,
    Block,
    Break,
    Call,
    Cannot,
    Continue,
    ForEach,
    If,
    Let,
    Note,
    OnError,
    Parallel,
    Plan,
    Replan,
    Step,
    Try,
    While,
)
from toolplan.values import Json

__all__ = ["MAX_STEPS", "StepReader", "read_json_plan"]

MAX_STEPS = 10_000
"""More written-out steps than this are refused."""
MAX_PROBLEMS = 100
"""More problems than this are not told; nobody reads them."""

_HEADER = re.compile(r"\s*(?:for\s+)?([^\W\d]\w*)\s+in\s+(?=\S)")
_ASSIGNMENT = re.compile(r"\s*([^\W\d]\w*)\s*=(?!=)\s*(?=\S)")
_STEP_KEYS = tuple(kind.keys[0].name for kind in STEPS)
_SHAPES = {
    "call": '{"tool_name": "...", "arguments": {...}}',
    "if": '{"if": "...", "then": [...]}',
    "for_each": '{"for_each": "...", "as": "item", "do": [...]}',
    "while": '{"while": "...", "do": [...], "max_iterations": 10}',
    "parallel": '{"parallel": [...]}',
    "let": '{"let": {"name": "expression"}}',
    "try": '{"try": [...], "except": [...]}',
}
_ENDINGS = frozenset(("answer", "cannot", "note"))
"""Kinds whose own key may stand at the top of a plan too."""


def read_json_plan(found: JsonPlan, tools: Collection[str] = (), first_step: int = 1) -> Plan | CannotPlan:
    """Return the plan that a JSON value is, or its word that there can be none.

    Raises `PlanRejected` with every problem of reading, in source order. `tools` are the names of the tools, if known;
    `first_step` is the number of the first step.
    """
    return _Reader(_with_decoded_steps(found), tools, first_step).read()


class StepReader:
    """Reads the steps of a plan one by one, while the rest of it is still to come."""

    def __init__(self, tools: Collection[str] = (), first_step: int = 1) -> None:
        self._reader = _Reader(JsonPlan(None, Source("", json=True)), tools, first_step)
        self._reader.references = References(labels=self._reader.labels)
        self._given: set[str] = set()
        self._count = 0

    def read(self, value: Json) -> Step | None:
        """Return the next step of the plan, or None when anything is wrong with it or was with one before."""
        step = self._reader.step(value, Place((self._count,)))
        self._count += 1
        if step is None or self._reader.problems:
            return None
        self._given |= given_names((step,))
        give_names((step,), self._given)
        return step


def _with_decoded_steps(found: JsonPlan) -> JsonPlan:
    """Return the plan anew when its steps are JSON inside a text, as some models send them."""
    value = found.value
    for key, steps in value.items() if isinstance(value, dict) else ():
        if PLAN.canonical(key) == "steps" and isinstance(steps, str):
            try:
                whole: Json = {**value, key: decode_text(steps)} if isinstance(value, dict) else None
            except ValueError:
                return found
            source = Source(json.dumps(whole, ensure_ascii=False, indent=1), found.source.name, 0, json=True)
            return JsonPlan(whole, source, found.faults, (*found.repairs, f"read `{key}` out of a JSON text"))
    return found


def _refusal(steps: Block, source: Source) -> CannotPlan | None:
    """Return the word that there can be no plan, when that is the only step and depends on nothing."""
    if len(steps) != 1 or not isinstance(only := steps[0], Cannot):
        return None
    words = [item.value for item in (only.reason, *only.missing) if isinstance(item, Literal)]
    texts = [word for word in words if isinstance(word, str)]
    return CannotPlan(texts[0], tuple(texts[1:]), source) if len(texts) == 1 + len(only.missing) else None


@dataclass
class _Outline:
    """The parts of a plan, before its steps are read."""

    steps: Json = None
    steps_place: Place = field(default_factory=Place)
    answer: Json = None
    answer_place: Place = field(default_factory=Place)
    thought: str | None = None
    inputs: dict[str, Json] = field(default_factory=dict[str, Json])
    cannot: Json = None
    cannot_place: Place = field(default_factory=Place)
    missing: Json = None


class _Reader(Parts):
    def __init__(self, found: JsonPlan, tools: Collection[str], first_step: int) -> None:
        super().__init__()
        self.value = found.value
        self.source = found.source
        self.tools = tools
        self.problems += found.faults
        self.repairs += found.repairs
        self.before = self.count = first_step - 1
        self.loops = 0
        self.kinds: dict[str, Callable[[Given, str, Place], Step]] = {
            "call": self.call,
            "if": self.branch,
            "for_each": self.for_each,
            "while": self.bounded_while,
            "parallel": self.parallel,
            "let": self.let,
            "try": self.attempt,
            "ask_user": self.ask_user,
            "ask_model": self.ask_model,
            "replan": lambda given, id, place: Replan(id, self.words(given, "replan", place), place),
            "answer": lambda given, id, place: Answer(id, self.words(given, "answer", place), place),
            "cannot": self.cannot,
            "note": lambda given, id, place: Note(id, self.words(given, "note", place), place),
            "break": lambda given, id, place: self.in_loop(Break(id, place), "break"),
            "continue": lambda given, id, place: self.in_loop(Continue(id, place), "continue"),
        }

    # --- the plan ----------------------------------------------------------------------------------------------------

    def read(self) -> Plan | CannotPlan:
        outline = _Outline()
        steps: Block = ()
        answer: Template | None = None
        try:
            self.outline(self.value, Place(), outline)
            self.references = References.in_plan(self.source.text, self.value)
            if self.references is not None:
                self.references.labels = self.labels
            steps = self.block("steps", outline.steps, outline.steps_place)
            if outline.answer is not None:
                answer = self.template(outline.answer, outline.answer_place)
        except Problem as problem:
            self.problems.append(problem.diagnostic)
        if outline.cannot is not None and not self.problems:
            if not steps and answer is None:
                return self.cannot_plan(outline)
            self.problems.append(say.mixed_step(outline.cannot_place, ["cannot", "steps" if steps else "answer"]))
        if not steps and answer is None and not self.problems:
            self.problems.append(say.empty_plan(Place()))
        if self.problems:
            raise PlanRejected(self.in_order(), self.source)
        if answer is None and (refusal := _refusal(steps, self.source)):
            return refusal
        give_names(steps, outline.inputs)
        repairs = tuple(dict.fromkeys(self.repairs))
        return Plan(steps, answer, outline.thought, outline.inputs, self.source, "json", repairs)

    def outline(self, value: Json, place: Place, into: _Outline) -> None:
        """Find the steps and what stands around them, through any wrapping."""
        if not isinstance(value, dict) or self.is_one_step(value) or not any(map(PLAN.canonical, value)):
            into.steps, into.steps_place = value, place
            return
        given = self.keys(PLAN, value, place)
        if "steps" in given:
            key, steps = given["steps"]
            self.outline(steps, place.child(key), into)
        if "answer" in given:
            key, into.answer = given["answer"]
            into.answer_place = place.child(key)
        if "thought" in given:
            thought = given["thought"][1]
            into.thought = thought if isinstance(thought, str) else json.dumps(thought, ensure_ascii=False)
        if "inputs" in given:
            key, inputs = given["inputs"]
            if not isinstance(inputs, dict):
                raise Problem(say.wrong_kind(place.child(key), key, "an object of values", describe(inputs)))
            for name in inputs:
                self.define(self.name(name, place.child(key, name).of_key(), key))
            into.inputs = inputs
        if "cannot" in given:
            key, into.cannot = given["cannot"]
            into.cannot_place = place.child(key).of_key()
            into.missing = given["missing"][1] if "missing" in given else None
            if into.cannot is True:
                into.cannot = value.get("reason", "")

    @staticmethod
    def is_one_step(value: dict[str, Json]) -> bool:
        """Whether an object is a step that stands where a plan is expected, and not a plan."""
        kinds, sure = find_kind(value)
        steps = next((key for key in value if PLAN.canonical(key) == "steps" and value[key] is not None), None)
        if steps is not None:
            return sure and any(kind.canonical(steps) for kind in kinds)
        return any(kind.name not in _ENDINGS for kind in kinds)

    def cannot_plan(self, outline: _Outline) -> CannotPlan:
        missing = outline.missing if isinstance(outline.missing, list) else [outline.missing] if outline.missing else []
        reason, *needed = (
            item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
            for item in (outline.cannot, *missing)
        )
        return CannotPlan(reason, tuple(needed), self.source)

    def in_order(self) -> list[Diagnostic]:
        """Return the problems by where they stand in the text."""
        places = [self.source.locate(problem.place) or (0, 0) for problem in self.problems]
        order = sorted(range(len(places)), key=lambda index: places[index])
        return [self.problems[index] for index in order[:MAX_PROBLEMS]]

    # --- steps -------------------------------------------------------------------------------------------------------

    def block(self, key: str, value: Json, place: Place) -> Block:
        """Return the steps of a body. A single step may stand without its brackets, a list inside `{"steps": ...}`."""
        if isinstance(value, dict):
            inner = next((k for k in value if PLAN.canonical(k) == "steps"), None)
            if inner is not None and not self.is_one_step(value):
                return self.block(key, value[inner], place.child(inner))
            step = self.step(value, place)
            return (step,) if step is not None else ()
        if value is None:
            return ()
        if not isinstance(value, list):
            shape = f'write steps: "{key}": [{{"tool_name": "...", "arguments": {{...}}}}]'
            raise Problem(say.wrong_kind(place, key, "a list of steps", describe(value), shape))
        if (total := self.count - self.before + len(value)) > MAX_STEPS:
            raise Problem(say.too_large(place, "steps", MAX_STEPS, total))
        read = [self.step(item, Place((*place.path, index))) for index, item in enumerate(value)]
        return tuple(step for step in read if step is not None)

    def step(self, value: Json, place: Place) -> Step | None:
        """Return the step, or None after noting why it is none."""
        id = self.next_id()
        try:
            if not isinstance(value, dict):
                raise Problem(say.not_a_step(place, describe(value)))
            kinds, _ = find_kind(value)
            if len(kinds) != 1:
                raise Problem(
                    say.mixed_step(place, [kind.keys[0].name for kind in kinds])
                    if kinds
                    else self.no_step(value, place)
                )
            kind = kinds[0]
            return self.kinds[kind.name](self.keys(kind, value, place), id, place)
        except Problem as problem:
            self.problems.append(problem.diagnostic)
            return None

    def no_step(self, value: dict[str, Json], place: Place) -> Diagnostic:
        """Return what is wrong with an object whose keys tell no kind of step."""
        if meant := find_meant_kind(value):
            kind, missing = meant
            return say.missing_key(place, kind.name, missing, _SHAPES.get(kind.name, f'{{"{missing}": "..."}}'))
        tool = next((key for key in value if key in self.tools), None)
        help = f'write {{"tool_name": "{tool}", "arguments": {{...}}}}' if tool else None
        return say.not_a_step(place, describe(value), _STEP_KEYS, help)

    def next_id(self) -> str:
        self.count += 1
        return f"s{self.count}"

    def body(self, given: Given, key: str, place: Place) -> Block:
        """Return the steps under one of the step's keys, or none."""
        if key not in given:
            return ()
        written, value = given[key]
        return self.block(written, value, place.child(written))

    def words(self, given: Given, key: str, place: Place) -> Template:
        """Return the text under one of the step's keys; `true` stands for none."""
        if key not in given:
            raise Problem(say.missing_key(place, key, key, f'{{"{key}": "..."}}'))
        written, value = given[key]
        return self.template("" if value is True and key != "answer" else value, place.child(written))

    def in_loop(self, step: Break | Continue, word: str) -> Step:
        if not self.loops:
            raise Problem(say.outside_loop(step.place.child(word).of_key(), word))
        return step

    def named(self, given: Given, id: str, result: str | None) -> None:
        """Note what the step's value can be called from here on."""
        self.define(id)
        if result:
            self.define(result)
        self.label(given, result or id)

    # --- one method a kind -------------------------------------------------------------------------------------------

    def call(self, given: Given, id: str, place: Place) -> Step:
        test: Expression | None = None
        guard_id = id
        if "if" in given:  # the guard is a branch around the call
            written, value = given["if"]
            test = self.condition(value, place.child(written))
            id = self.next_id()
        value, tool_place = self.need(given, CALL, "tool_name", place, '{"tool_name": "...", "arguments": {...}}')
        inner = place
        if isinstance(value, dict):  # {"function": {"name": ..., "arguments": ...}}
            inner = tool_place
            for key, item in self.keys(CALL, value, inner).items():
                given[key] = item if key == "tool_name" else given.get(key, item)
            value, tool_place = self.need(given, CALL, "tool_name", inner, '{"name": "...", "arguments": {...}}')
        if not isinstance(value, str) or not value.strip():
            raise Problem(say.wrong_kind(tool_place, "tool_name", "a tool's name", describe(value)))
        tool = self.tool_name(value.strip())
        arguments = self.arguments(given, tool, inner)
        if tool == "var_result" and self.references is not None and tool not in self.tools:
            return Answer(id, arguments, place)  # NESTFUL names the parts of the answer so
        result = self.result(given, place)
        depends_on = self.dependencies(*self.at(given, "depends_on", place)) if "depends_on" in given else ()
        on_error = self.on_error(given, place)
        retry = self.retry(*self.at(given, "retry", place)) if "retry" in given else None
        timeout = None
        if "timeout_seconds" in given:
            timeout = self.seconds(*self.at(given, "timeout_seconds", place), given["timeout_seconds"][0])
        again = self.reason(*self.at(given, "again", place)) if "again" in given else None
        self.named(given, id, result)
        if result is None and (known := name_from(tool)):
            self.define(known)
            self.define(f"{known}_result")
        step = Call(id, tool, arguments, result, (), depends_on, on_error, retry, timeout, place, tool_place, again)
        return step if test is None else If(guard_id, test, (step,), (), place)

    @staticmethod
    def reason(value: Json, place: Place) -> str:
        """Return why a call is made again."""
        if not isinstance(value, str) or not value.strip():
            raise Problem(say.wrong_kind(place, "again", "text that says why the call is made again", describe(value)))
        return value.strip()

    @staticmethod
    def at(given: Given, key: str, place: Place) -> tuple[Json, Place]:
        written, value = given[key]
        return value, place.child(written)

    def tool_name(self, written: str) -> str:
        """Return the tool's name, mended where case or a dotted prefix is all that is wrong with it."""
        meant = meant_tool(written, self.tools) if self.tools else written
        if meant is None or meant == written:
            return written
        self.repairs.append(f"read the tool name `{written}` as `{meant}`")
        return meant

    def arguments(self, given: Given, tool: str, place: Place) -> Fields:
        if "arguments" not in given:
            return Fields((), place)
        value, at = self.at(given, "arguments", place)
        text = value
        try:
            for _ in range(2):  # some models encode them twice
                if isinstance(value, str):
                    value = decode_text(value) if value.strip() else {}
        except ValueError as error:
            raise Problem(say.unreadable_arguments(at, self.count, tool, str(text), str(error))) from None
        if not isinstance(value, dict):
            if isinstance(text, str):
                raise Problem(say.unreadable_arguments(at, self.count, tool, text, f"is {describe(value)}"))
            raise Problem(say.wrong_kind(at, "arguments", "an object", describe(value)))
        return self.fields(value, at)

    def on_error(self, given: Given, place: Place) -> OnError:
        if "on_error" not in given:
            return FAIL
        value, at = self.at(given, "on_error", place)
        if isinstance(value, list):
            return OnError("do", None, self.block("on_error", value, at))
        if isinstance(value, str) and (action := ON_ERROR_WORDS.get(fold(value))):
            return FAIL if action == "fail" else OnError(action)
        if isinstance(value, dict):
            for key, item in value.items():
                meaning = ON_ERROR_WORDS.get(fold(key))
                if meaning == "value":
                    return OnError("value", self.template(item, at.child(key)))
                if meaning == "do":
                    return OnError("do", None, self.block(key, item, at.child(key)))
                if meaning == "action" and isinstance(item, str) and len(value) == 1:
                    return self.on_error({"on_error": (key, item)}, at)
                if meaning in ("skip", "replan", "fail") and len(value) == 1:
                    return FAIL if meaning == "fail" else OnError(meaning)
        expected = '`"fail"`, `"skip"`, `"replan"`, `{"value": ...}` or `{"do": [...]}`'
        raise Problem(say.wrong_kind(at, "on_error", expected, describe(value)))

    def branch(self, given: Given, id: str, place: Place) -> Step:
        test = self.condition(*self.need(given, IF, "if", place, '{"if": "...", "then": [...]}'))
        self.need(given, IF, "then", place, '{"if": "...", "then": [...]}')
        then = self.body(given, "then", place)
        if "elif" not in given:
            return If(id, test, then, self.body(given, "else", place), place)
        key, value = given["elif"]
        rest: list[tuple[int | None, Json]] = list(enumerate(value)) if isinstance(value, list) else [(None, value)]
        return If(id, test, then, self.otherwise(rest, place.child(key), given, place), place)

    def otherwise(self, rest: list[tuple[int | None, Json]], at: Place, given: Given, place: Place) -> Block:
        """Return the `else` of a branch that has more tests to try first."""
        if not rest:
            return self.body(given, "else", place)
        (index, value), *later = rest
        here = at if index is None else at.child(index)
        if not isinstance(value, dict):
            raise Problem(say.wrong_kind(here, "elif", '{"if": "...", "then": [...]}', describe(value)))
        id = self.next_id()
        own = self.keys(IF, value, here)
        test = self.condition(*self.need(own, IF, "if", here, '{"if": "...", "then": [...]}'))
        self.need(own, IF, "then", here, '{"if": "...", "then": [...]}')
        then = self.body(own, "then", here)
        return (If(id, test, then, self.otherwise(later, at, given, place), here),)

    def for_each(self, given: Given, id: str, place: Place) -> Step:
        shape = '{"for_each": "...", "as": "item", "do": [...]}'
        value, at = self.need(given, FOR_EACH, "for_each", place, shape)
        name = "item"
        if "as" in given:
            name = self.name(*self.at(given, "as", place), given["as"][0])
        elif isinstance(value, str) and (header := _HEADER.match(value)):
            name = self.name(header[1], at.within(header.start(1), header.end(1)), "for_each")
            at = at.within(header.end(), len(value))
            value = value[header.end() :]
        items = self.operand(value, at)
        self.need(given, FOR_EACH, "do", place, shape)
        self.define(name)
        self.loops += 1
        body = self.body(given, "do", place)
        self.loops -= 1
        result = self.result(given, place) if "result_variable" in given or "collect" in given else None
        collect: Template | None = None
        if "collect" in given:
            written, what = given["collect"]
            at = place.child(written)
            if "result_variable" not in given and isinstance(what, str) and self.is_new_name(what):
                result = what.strip()  # the list's own name: each round's last value goes into it
                collect = self.last_value(body, at)
            else:
                collect = self.operand(True if what is True else what, at)
                if what is True:
                    collect = self.last_value(body, at)
        elif result is not None:
            collect = self.last_value(body, place)
        keep = self.condition(*self.at(given, "collect_if", place)) if "collect_if" in given else None
        if collect is not None:
            self.named(given, id, result)
        return ForEach(id, items, name, body, collect, keep, result, (), place)

    def is_new_name(self, text: str) -> bool:
        text = text.strip()
        return name_from(text) == text and text not in self.labels

    def last_value(self, body: Block, place: Place) -> Template:
        """Return a reference to the value of the last step of a loop's body."""
        last = body[-1] if body else None
        name: str | None = None
        if isinstance(last, Call | ForEach | AskUser | AskModel):
            name = last.result or last.id
        elif isinstance(last, Let):
            name = last.values[-1][0]
        if name is None:
            if not body and self.problems:  # the body's own problem is told already
                return Literal(None, place)
            raise Problem(say.missing_key(place, "for_each", "collect", '"collect": "the value of a round"'))
        return Reference(parse_expression(name, place), place)

    def bounded_while(self, given: Given, id: str, place: Place) -> Step:
        shape = '{"while": "...", "do": [...], "max_iterations": 10}'
        test = self.condition(*self.need(given, WHILE, "while", place, shape))
        self.need(given, WHILE, "do", place, shape)
        if "max_iterations" not in given:
            raise Problem(say.unbounded_loop(place))
        bound, at = self.at(given, "max_iterations", place)
        if isinstance(bound, bool) or not isinstance(bound, int) or bound < 1:
            raise Problem(say.wrong_kind(at, "max_iterations", "a whole number above 0", describe(bound)))
        self.loops += 1
        body = self.body(given, "do", place)
        self.loops -= 1
        return While(id, test, body, bound, place)

    def parallel(self, given: Given, id: str, place: Place) -> Step:
        self.need(given, PARALLEL, "parallel", place, '{"parallel": [...]}')
        return Parallel(id, self.body(given, "parallel", place), place)

    def let(self, given: Given, id: str, place: Place) -> Step:
        values: list[tuple[str, Template]] = []
        for name, value, at in self.assignments(given, place):
            values.append((name, self.operand(value, at)))
            self.define(name)
        return Let(id, tuple(values), place)

    def assignments(self, given: Given, place: Place) -> list[tuple[str, Json, Place]]:
        """Return the names and values of a `let`, in whichever way it is written."""
        what, at = self.at(given, "let", place) if "let" in given else (None, place)
        found: list[tuple[str, Json, Place]] = []
        if isinstance(what, dict):
            found = [(self.name(k, at.child(k).of_key(), "let"), v, at.child(k)) for k, v in what.items()]
        elif isinstance(what, list):
            for index, item in enumerate(what):
                if not isinstance(item, dict) or "name" not in item or "value" not in item:
                    raise Problem(
                        say.wrong_kind(at.child(index), "let", '{"name": "...", "value": ...}', describe(item))
                    )
                here = at.child(index)
                found.append((self.name(item["name"], here.child("name"), "name"), item["value"], here.child("value")))
        elif isinstance(what, str) and "value" in given:
            value, value_at = self.at(given, "value", place)
            found = [(self.name(what, at, "let"), value, value_at)]
        elif "result_variable" in given or "id" in given:
            name = self.result(given, place)
            value, value_at = (what, at) if what is not None else self.need(given, LET, "value", place, "")
            if name is not None:
                found = [(name, value, value_at)]
        elif isinstance(what, str) and (match := _ASSIGNMENT.match(what)):
            found = [(self.name(match[1], at, "let"), what[match.end() :], at.within(match.end(), len(what)))]
        if not found:
            raise Problem(say.wrong_kind(at, "let", "an object {name: expression}", describe(what)))
        return found

    def attempt(self, given: Given, id: str, place: Place) -> Step:
        shape = '{"try": [...], "except": [...]}'
        self.need(given, TRY, "try", place, shape)
        body = self.body(given, "try", place)
        self.need(given, TRY, "except", place, shape)
        error = self.name(*self.at(given, "as", place), given["as"][0]) if "as" in given else None
        if error:
            self.define(error)
        return Try(id, body, self.body(given, "except", place), error, place)

    def ask_user(self, given: Given, id: str, place: Place) -> Step:
        question = self.template(*self.need(given, ASK_USER, "ask_user", place, '{"ask_user": "..."}'))
        result = self.result(given, place)
        self.named(given, id, result)
        return AskUser(id, question, result, (), place)

    def ask_model(self, given: Given, id: str, place: Place) -> Step:
        question = self.template(
            *self.need(given, ASK_MODEL, "ask_model", place, '{"ask_model": "...", "data": "..."}')
        )
        data: Template = Literal(None, place)
        if "data" in given:
            data = self.operand(*self.at(given, "data", place))
        returns: dict[str, Json] = {"type": "string"}
        if "returns" in given:
            returns = self.schema(*self.at(given, "returns", place))
        result = self.result(given, place)
        on_error = self.on_error(given, place)
        self.named(given, id, result)
        return AskModel(id, question, data, returns, result, (), on_error, place)

    def cannot(self, given: Given, id: str, place: Place) -> Step:
        reason = self.words(given, "cannot", place)
        if "missing" not in given:
            return Cannot(id, reason, (), place)
        missing, at = self.at(given, "missing", place)
        if not isinstance(missing, list):
            return Cannot(id, reason, (self.template(missing, at),), place)
        return Cannot(id, reason, tuple(self.template(item, at.child(i)) for i, item in enumerate(missing)), place)
