"""BFCL single turn: every published call passes the gate, every seeded mistake is refused with its argument named.

The functions become tools through `Tool.from_schema` (their types mapped by `bfcl_schema.py`), each record's calls one
plan, read and checked like a model's reply, as JSON and as a Python program. Every accepted value of every argument is
tried. Then each call is spoilt in one place at a time: an argument of another type, an item of another type, a value
outside its enumeration, a required argument left out, an argument that nobody declares, a name that no function has. A
refusal counts when the message names the argument (or the function) that was spoilt.

A few accepted values contradict the function's own document: text for a list, a spelling that is not in the
enumeration, a date in another form. A throw-away check of the same questions says which; those must be refused.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.bfcl_schema import json_schema
from bench.data import find, lines
from bench.harness import Bench, Goal, Listing, Report, at_least, not_run
from bench.plays import Document, Stage, plan_of
from toolplan import PlanRejected, ToolSet, check, parse
from toolplan.plan import Plan

NAME = "bfcl_single"
Call = tuple[str, dict[str, Any]]
_OTHER_TYPE: dict[str, Any] = {
    "string": 31,
    "integer": "thirty-one",
    "number": "thirty-one",
    "boolean": "perhaps",
    "array": 31,
    "object": 31,
}
"""A value that no reading makes fit."""


@dataclass(frozen=True)
class Mistake:
    """A call that is wrong in one place, and what a refusal must name."""

    kind: str
    call: Call
    named: str


def accepted(answer: Mapping[str, list[Any]], parameters: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Return the calls' arguments that an answer accepts: the first value of each, then each other value in its place.

    `""` among the accepted values means that the argument may be left out; objects and lists hold accepted values
    inside, of which the first is taken.
    """
    properties = parameters["properties"]
    values = {
        name: [_concrete(value, properties.get(name, {})) for value in accepted_values if value != ""]
        for name, accepted_values in answer.items()
    }
    first = {name: options[0] for name, options in values.items() if options}
    yield first
    for name, options in values.items():
        for option in options[1:]:
            yield {**first, name: option}
        if "" in answer[name] and name in first and name not in parameters.get("required", ()):
            yield {other: value for other, value in first.items() if other != name}


def _concrete(value: Any, schema: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        return {
            name: _concrete(_first(options), properties.get(name, {}))
            for name, options in value.items()
            if _first(options) != ""
        }
    items = schema.get("items", {})
    if isinstance(value, list) and items.get("type") not in (None, "array"):
        return [_concrete(_first(item), items) for item in value]
    return value


def _first(options: Any) -> Any:
    return options[0] if isinstance(options, list) and options else options


def mistakes(call: Call, parameters: Mapping[str, Any]) -> Iterator[Mistake]:
    """Return the call spoilt in each way that its schema knows."""
    name, arguments = call
    properties = parameters["properties"]
    for argument, value in arguments.items():
        schema = properties.get(argument, {})
        if schema.get("type") in _OTHER_TYPE:
            yield Mistake("type", (name, {**arguments, argument: _OTHER_TYPE[schema["type"]]}), argument)
        item_type = schema.get("items", {}).get("type")
        if isinstance(value, list) and value and item_type in _OTHER_TYPE:
            yield Mistake("item type", (name, {**arguments, argument: [*value, _OTHER_TYPE[item_type]]}), argument)
        if "enum" in schema:
            yield Mistake("enumeration", (name, {**arguments, argument: "none of these"}), argument)
    for argument in parameters.get("required", ()):
        if argument in arguments:
            rest = {key: value for key, value in arguments.items() if key != argument}
            yield Mistake("missing", (name, rest), argument)
    yield Mistake("unknown argument", (name, {**arguments, "no_such_argument": 1}), "no_such_argument")
    yield Mistake("unknown name", ("no_such_function_at_all", arguments), "no_such_function_at_all")


def simply_fits(arguments: Mapping[str, Any], parameters: Mapping[str, Any]) -> bool:
    """Return what the throw-away check says to a call. A null for an argument that may be left out means left out."""
    required = parameters.get("required", ())
    given = {name: value for name, value in arguments.items() if value is not None or name in required}
    return _fits(given, parameters)


def _fits(value: Any, schema: Mapping[str, Any]) -> bool:
    """Of the words of JSON Schema this knows those that the documents use."""
    kinds: dict[str, tuple[type, ...]] = {
        "string": (str,),
        "integer": (int,),
        "number": (int, float),
        "boolean": (bool,),
        "array": (list,),
        "object": (dict,),
    }
    kind = schema.get("type")
    if kind is not None and (not isinstance(value, kinds[kind]) or (isinstance(value, bool) and kind != "boolean")):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if isinstance(value, str) and schema.get("format") == "date" and not re.fullmatch(r"\d{4}-\d\d-\d\d", value):
        return False
    if isinstance(value, list):
        return all(_fits(item, schema.get("items", {})) for item in value)
    if isinstance(value, dict) and "properties" in schema:
        properties = schema["properties"]
        known = all(name in properties and _fits(item, properties[name]) for name, item in value.items())
        return known and all(name in value for name in schema.get("required", ()))
    return True


def program_of(calls: Sequence[Call]) -> str:
    """Return the program that makes these calls, as a model writes it."""
    return "\n".join(
        f"{name}({', '.join(f'{key}={arguments[key]!r}' for key in arguments)})" for name, arguments in calls
    )


def refusal(reply: Any, tools: ToolSet) -> list[str]:
    """Return what the gate says against a reply; empty when it is a plan that passes."""
    try:
        plan = parse(reply, tools=tools)
        if not isinstance(plan, Plan):
            return [f"read as {type(plan).__name__}"]
        check(plan, tools)
    except PlanRejected as rejection:
        return [f"{diagnostic.code} {diagnostic.message}" for diagnostic in rejection.diagnostics]
    return []


async def run(full: bool) -> Report:
    """Check every reference call and every mistake; the figures are how many pass and how many are refused."""
    file = find("bfcl", "single_turn.jsonl")
    if file is None:
        return not_run(NAME, "bfcl is not there")
    alike = clean = references = 0
    refused: Counter[str] = Counter()
    seeded: Counter[str] = Counter()
    contradictions: list[tuple[str, ...]] = []
    rows: list[tuple[str, ...]] = []
    for line in lines(file):
        documents = [Document(f["name"], f["description"], json_schema(f["parameters"])) for f in line["functions"]]
        tools = ToolSet.of(Stage(documents, {}).tools)
        parameters = {document.name: document.parameters for document in documents}
        answers = [(name, answer) for answers in line["possible_answers"] for name, answer in answers.items()]
        whole = [(name, next(accepted(answer, parameters[name]))) for name, answer in answers]
        alone = [[(name, arguments)] for name, answer in answers for arguments in accepted(answer, parameters[name])]
        replies = [(calls, plan_of(calls)) for calls in [whole, *alone]] + [(whole, program_of(whole))]
        for calls, reply in replies if answers else []:
            references += 1
            said = refusal(reply, tools)
            fitting = all(simply_fits(arguments, parameters[name]) for name, arguments in calls)
            clean += not said
            alike += fitting is not bool(said)
            if fitting is bool(said):
                rows.append((line["id"], "fits" if fitting else "contradicts", "; ".join(said)[:160] or "passed"))
            elif said and (line["id"], said[0]) not in contradictions:
                contradictions.append((line["id"], said[0]))
        for call in whole:
            if not simply_fits(call[1], parameters[call[0]]):
                continue
            for mistake in mistakes(call, parameters[call[0]]):
                seeded[mistake.kind] += 1
                said = refusal(plan_of([mistake.call]), tools)
                if any(re.search(rf"`{re.escape(mistake.named)}[`.\[]", message) for message in said):
                    refused[mistake.kind] += 1
                else:
                    rows.append((line["id"], f"{mistake.kind} {mistake.named}", "; ".join(said)[:160] or "passed"))
    tables = [
        Listing(
            "seeded mistakes",
            ("mistake", "seeded", "refused by name"),
            tuple((kind, str(count), str(refused[kind])) for kind, count in seeded.items()),
        ),
        Listing("accepted values that contradict their function's document", ("record", "said"), tuple(contradictions)),
    ]
    if rows:
        tables.append(Listing("judged otherwise than expected", ("record", "what", "said"), tuple(rows)))
    figure = f"{alike} of {references} reference plans judged rightly, {clean} clean"
    total = sum(seeded.values())
    return Report(
        NAME,
        tables,
        [
            Goal(figure, -alike, -references, "all"),
            at_least(sum(refused.values()), total, total, what="mistakes refused by name"),
        ],
    )


BENCH = Bench(NAME, "BFCL single turn: published calls pass, seeded mistakes are refused by name", run)
