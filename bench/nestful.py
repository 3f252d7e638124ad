"""NESTFUL's published plans, checked against its function documents: the faulty ones found, the others clean.

The documents name arguments and result fields; their types are too loose to hold a plan to, so only names count here.
Beside the product stands a throw-away check of the same questions: is the function documented, is each argument, is
each field that a reference names, and does an earlier step define what is referred to? Both must find fault with the
same plans.
"""

from __future__ import annotations

import json
import re
from typing import Any

from bench.data import find, lines
from bench.harness import Bench, Goal, Listing, Report, not_run
from toolplan import PlanRejected, Tool, ToolSet, check, parse
from toolplan.plan import Plan

NAME = "nestful"
_ARGUMENTS = ("query_parameters", "arguments", "parameters", "path_parameters")
_REFERENCE = re.compile(r"\$(\w+)((?:\.\w+|\[\d+\])*)\$")


def _names(document: dict[str, Any], *keys: str) -> list[str]:
    return [name for key in keys for name in (document.get(key) or {})]


def _tools(documents: list[dict[str, Any]]) -> ToolSet:
    def nothing(**arguments: Any) -> None:
        raise AssertionError("nothing here can be called")

    return ToolSet.of(
        Tool.from_schema(
            document["name"],
            document.get("description", ""),
            {
                "type": "object",
                "properties": {name: {} for name in _names(document, *_ARGUMENTS)},
                "additionalProperties": False,
            },
            nothing,
            returns={
                "type": "object",
                "properties": {name: {} for name in _names(document, "output_parameters", "output_parameter")},
            },
            pure=True,
        )
        for document in documents
    )


def _simple(steps: list[dict[str, Any]], documents: dict[str, dict[str, Any]]) -> list[str]:
    """Return what the throw-away check finds."""
    found: list[str] = []
    fields: dict[str, list[str] | None] = {}
    for step in steps:
        for name, path in _REFERENCE.findall(json.dumps(step["arguments"])):
            if name not in fields:
                found.append(f"no earlier step defines {name}")
            known = fields.get(name)
            first = path.lstrip(".").split(".")[0].split("[")[0]
            if first and known is not None and first not in known:
                found.append(f"{name} has no field {first}")
        document = documents.get(step["name"])
        if step["name"] == "var_result":
            continue
        if document is None:
            found.append(f"no function {step['name']}")
        else:
            declared = _names(document, *_ARGUMENTS)
            found += [f"{step['name']} takes no {name}" for name in step["arguments"] if name not in declared]
        if "label" in step:
            outputs = None if document is None else _names(document, "output_parameters", "output_parameter")
            fields[step["label"].strip("$")] = outputs
    return found


def _plan(steps: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the plan with its last step, which only names the parts of the answer, as what it is."""
    calls = [step for step in steps if step["name"] != "var_result"]
    parts = [{"let": {"answer_parts": step["arguments"]}} for step in steps if step["name"] == "var_result"]
    return {"steps": [*calls, *parts]}


async def run(full: bool) -> Report:
    """Check every plan of the sample; the figure is how many are judged as the simple check judges them."""
    folder = find("nestful")
    if folder is None:
        return not_run(NAME, "nestful is not there")
    spec = json.loads((folder / "spec.json").read_text(encoding="utf-8"))
    tools = {part: _tools(documents) for part, documents in spec.items()}
    documents = {part: {document["name"]: document for document in listed} for part, listed in spec.items()}
    rows: list[tuple[str, ...]] = []
    agree = clean = faulty = 0
    plans = lines(folder / "plans.jsonl")
    for line in plans:
        part = line["part"]
        expected = _simple(line["output"], documents[part])
        try:
            plan = parse(json.dumps(_plan(line["output"])), tools=tools[part])
            assert isinstance(plan, Plan)
            check(plan, tools[part])
            found: list[str] = []
        except PlanRejected as rejection:
            found = [f"{d.code} {d.message}" for d in rejection.diagnostics]
        agree += bool(found) == bool(expected)
        clean += not found
        faulty += bool(found)
        if bool(found) != bool(expected):
            rows.append((line["id"], "; ".join(found)[:120] or "clean", "; ".join(expected)[:120] or "clean"))
    table = Listing("judged differently", ("plan", "checker", "simple check"), tuple(rows))
    figure = f"{agree} of {len(plans)} judged alike, {clean} clean, {faulty} reported"
    return Report(NAME, [table], [Goal(figure, -agree, -len(plans), "all judged alike")])


BENCH = Bench(NAME, "published plans against the documents of their functions", run)
