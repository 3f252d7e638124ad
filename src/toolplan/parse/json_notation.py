"""JSON steps -> Plan.

One method a kind of step; `spellings` says which keys it may have, and every value goes through one of a few readers
(`template`, `operand`, `condition`, `block`). A problem ends the step it is in, not the reading, so that all of them are
reported at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from toolplan.diagnostics import Diagnostic, Place, Source
from toolplan.diagnostics import reading as say
from toolplan.diagnostics.source import Path
from toolplan.errors import PlanRejected
from toolplan.expressions import Expression, ExpressionError, Fields, Literal, Reference, Template, parse_expression
from toolplan.expressions.templates import parse_operand, parse_template
from toolplan.parse.conditions import UnreadableCondition, condition_text, plain_braces
from toolplan.parse.extract import JsonPlan
from toolplan.parse.json_text import Unacceptable, Unreadable, decode, describe
from toolplan.parse.mend import Damage, mend
from toolplan.parse.naming import give_names, is_name, name_from
from toolplan.parse.reading import CannotPlan
from toolplan.parse.references import References
from toolplan.parse.spellings import ANNOTATIONS, ANSWER, CALL, CANNOT, NOTE, PLAN, STEPS, Kind, find_kind, fold
from toolplan.plan import (
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
    Retry,
    Step,
    Try,
    While,
)
from toolplan.values import Json

__all__ = ["MAX_STEPS", "read_json_plan"]

MAX_STEPS = 10_000
"""More written-out steps than this are refused."""

_LABELS = frozenset(("id", "stepid", "taskid", "idx", "label"))
"""Spellings of `result_variable` that are a mere label beside another one, or when no expression could use them."""
_HEADER = re.compile(r"\s*(?:for\s+)?([^\W\d]\w*)\s+in\s+(?=\S)")
_DECORATED = re.compile(r"\$\{(.*)\}|\{(.*)\}|[$#](\w+)\$?", re.DOTALL)
_STEP_KEYS = tuple(kind.keys[0].name for kind in STEPS)

Given = dict[str, tuple[str, Json]]
"""A step's keys: canonical spelling -> the spelling in the plan, and the value."""


def read_json_plan(found: JsonPlan, tools: Collection[str] = ()) -> Plan | CannotPlan:
    """Return the plan that a JSON value is, or its word that there can be none.

    Raises `PlanRejected` with every problem of reading, in source order. `tools` are the names of the tools, if known.
    """
    if isinstance(value := _decoded_steps(found), JsonPlan):
        found = value
    return _Reader(found, tools).read()


def _decoded_steps(found: JsonPlan) -> JsonPlan | None:
    """Return the plan anew when its steps are JSON inside a text, as some models send them."""
    value = found.value
    if not isinstance(value, dict):
        return None
    for key, steps in value.items():
        if PLAN.canonical(key) == "steps" and isinstance(steps, str):
            inner = _decode_text(steps)
            if isinstance(inner, dict | list):
                whole = {**value, key: inner}
                source = Source(json.dumps(whole, ensure_ascii=False, indent=1), found.source.name, 0, json=True)
                return JsonPlan(whole, source, found.faults, (*found.repairs, f"read `{key}` out of a JSON text"))
    return None


def _decode_text(text: str) -> Json:
    """Return the JSON value that the whole text is, mended if that has one reading; raise `ValueError` otherwise."""
    text = text.strip()
    try:
        decoded = decode(text)
    except Unreadable:
        mended = mend(text, 0) if text[:1] in ("{", "[") else None
        if mended is None or isinstance(mended, Damage) or text[mended.end :].strip():
            raise ValueError("is not JSON") from None
        decoded = decode(mended.text)
        if decoded.faults:
            raise ValueError("is not JSON") from None
        return decoded.value
    if text[decoded.end :].strip():
        raise ValueError("is not one JSON value")
    if decoded.faults:
        raise ValueError(decoded.faults[0].message)
    return decoded.value


class _Problem(Exception):
    """What ends the reading of a step."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


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
    missing: Json = None
    place: Place = field(default_factory=Place)


class _Reader:
    def __init__(self, found: JsonPlan, tools: Collection[str]) -> None:
        self.value = found.value
        self.source = found.source
        self.tools = tools
        self.problems = list(found.faults)
        self.repairs = list(found.repairs)
        self.labels: dict[str, str] = {"now": "now"}
        """What may be referred to so far, and the name it has in expressions."""
        self.count = 0
        self.loops = 0
        self.references: References | None = None
        self.kinds: dict[str, Callable[[Given, str, Place], Step | None]] = {
            "call": self.call,
            "if": self.branch,
            "for_each": self.for_each,
            "while": self.while_,
            "parallel": self.parallel,
            "let": self.let,
            "try": self.try_,
            "ask_user": self.ask_user,
            "ask_model": self.ask_model,
            "replan": lambda given, id, place: Replan(id, self.text_of("replan", given, place), place),
            "answer": lambda given, id, place: Answer(id, self.text_of("answer", given, place), place),
            "cannot": self.cannot,
            "note": lambda given, id, place: Note(id, self.text_of("note", given, place), place),
            "break": lambda _, id, place: self.in_loop("break", Break(id, place)),
            "continue": lambda _, id, place: self.in_loop("continue", Continue(id, place)),
        }

    # --- the plan ----------------------------------------------------------------------------------------------------

    def read(self) -> Plan | CannotPlan:
        outline = _Outline()
        try:
            self.outline(self.value, Place(), outline)
            answers = (text for text in (outline.answer,) if isinstance(text, str))
            text = self.source.text
            self.references = References.in_plan(text, answers)
            if self.references is not None:
                self.references.labels = self.labels
            steps = self.block("steps", outline.steps, outline.steps_place)
            answer = None
            if outline.answer is not None:
                answer = self.guarded(lambda: self.template(outline.answer, outline.answer_place))
        except _Problem as problem:
            self.problems.append(problem.diagnostic)
            steps, answer = (), None
        if not steps and not self.problems and answer is None:
            if outline.cannot is not None:
                return self.cannot_plan(outline)
            self.problems.append(say.empty_plan(Place()))
        if outline.cannot is not None and not self.problems:
            self.problems.append(say.mixed_step(outline.place.child("cannot").of_key(), ["steps", "cannot"]))
        if self.problems:
            raise PlanRejected(self.in_order(), self.source)
        give_names(steps, outline.inputs)
        return Plan(
            steps, answer, outline.thought, outline.inputs, self.source, "json", tuple(dict.fromkeys(self.repairs))
        )

    def outline(self, value: Json, place: Place, into: _Outline) -> None:
        """Find the steps and what stands around them, through any wrapping."""
        if not isinstance(value, dict):
            into.steps, into.steps_place = value, place
            return
        kinds, sure = find_kind(value)
        steps_key = next((key for key in value if PLAN.canonical(key) == "steps" and value[key] is not None), None)
        if steps_key is not None and sure and any(kind.canonical(steps_key) for kind in kinds):
            steps_key = None
        whole = {ANSWER.name, CANNOT.name, NOTE.name}
        if steps_key is None and kinds and not any(kind.name in whole for kind in kinds):
            into.steps, into.steps_place = [value], place
            into.steps_place = Place((*place.path, _SELF))
            return
        into.place = place
        given = self.keys(PLAN, value, place)
        if "steps" in given:
            key, steps = given["steps"]
            self.outline(steps, place.child(key), into)
        if "answer" in given and into.answer is None:
            key, into.answer = given["answer"]
            into.answer_place = place.child(key)
        if "thought" in given:
            thought = given["thought"][1]
            into.thought = thought if isinstance(thought, str) else json.dumps(thought, ensure_ascii=False)
        if "inputs" in given:
            key, inputs = given["inputs"]
            if not isinstance(inputs, dict):
                raise _Problem(say.wrong_kind(place.child(key), key, "an object of values", describe(inputs)))
            for name in inputs:
                self.define(self.name(name, place.child(key, name).of_key()))
            into.inputs = inputs
        if "cannot" in given:
            into.cannot = given["cannot"][1]
            into.missing = given["missing"][1] if "missing" in given else None
            if into.cannot is True:
                into.cannot = value.get("reason", "")

    def cannot_plan(self, outline: _Outline) -> CannotPlan:
        reason = outline.cannot if isinstance(outline.cannot, str) else json.dumps(outline.cannot, ensure_ascii=False)
        missing = outline.missing if isinstance(outline.missing, list) else [outline.missing] if outline.missing else []
        words = [item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for item in missing]
        return CannotPlan(reason, tuple(words), self.source)

    def in_order(self) -> list[Diagnostic]:
        """Return the problems by where they stand in the text."""
        located = [(self.source.locate(problem.place) or (0, 0), index) for index, problem in enumerate(self.problems)]
        return [self.problems[index] for _, index in sorted(located)]

    # --- steps -------------------------------------------------------------------------------------------------------

    def block(self, key: str, value: Json, place: Place) -> Block:
        """Return the steps of a body; a single step may stand without its brackets."""
        if value is None:
            return ()
        if isinstance(value, dict):
            inner = next((k for k in value if k in ("steps", "do") and not find_kind(value)[0]), None)
            if inner is not None:
                return self.block(key, value[inner], place.child(inner))
            steps = self.step(value, place)
            return () if steps is None else (steps,)
        if not isinstance(value, list):
            raise _Problem(say.wrong_kind(place, key, "a list of steps", describe(value)))
        if len(value) > MAX_STEPS:
            raise _Problem(say.too_large(place, "steps", MAX_STEPS, len(value)))
        path = place.path[:-1] if place.path and place.path[-1] is _SELF else None
        steps: list[Step] = []
        for index, item in enumerate(value):
            step = self.step(item, Place((*place.path, index)) if path is None else Place(path))
            if step is not None:
                steps.append(step)
        return tuple(steps)

    def step(self, value: Json, place: Place) -> Step | None:
        """Return the step, or None after reporting why it is none."""
        self.count += 1
        id = f"s{self.count}"
        try:
            if self.count > MAX_STEPS:
                raise _Problem(say.too_large(place, "steps", MAX_STEPS))
            if not isinstance(value, dict):
                raise _Problem(say.not_a_step(place, describe(value)))
            kinds, _ = find_kind(value)
            if len(kinds) != 1:
                if not kinds:
                    raise _Problem(self.unknown_step(value, place))
                raise _Problem(say.mixed_step(place, [kind.keys[0].name for kind in kinds]))
            kind = kinds[0]
            return self.kinds[kind.name](self.keys(kind, value, place), id, place)
        except _Problem as problem:
            self.problems.append(problem.diagnostic)
            if self.count > MAX_STEPS:
                raise
            return None

    def unknown_step(self, value: Mapping[str, Json], place: Place) -> Diagnostic:
        if not value:
            return say.not_a_step(place, "an empty object", _STEP_KEYS)
        for key in value:
            problem = say.unknown_key(place.child(key).of_key(), key, "step", _STEP_KEYS)
            if problem.help:
                return say.not_a_step(place.child(key).of_key(), describe(dict(value)), _STEP_KEYS)
        return say.not_a_step(place, describe(dict(value)), _STEP_KEYS)


_SELF = "\0self"
