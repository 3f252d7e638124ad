"""Do the tools exist, and do the arguments fit them? Names of arguments, and values that are written in the plan.

A constant is first compared with the static type of its argument, which settles nearly all of them. Only what that
cannot settle is handed to the tool's JSON Schema.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from toolplan.check.constants import NotConstant, constant_of
from toolplan.check.spots import argument_place
from toolplan.diagnostics import Diagnostic, Place, nearest
from toolplan.diagnostics import calls as say
from toolplan.diagnostics import names as say_names
from toolplan.expressions import Reference, Template, Text
from toolplan.expressions.types import surely_fits
from toolplan.plan import Call, Plan, walk
from toolplan.tools import ArgumentFault, Tool, ToolSet
from toolplan.values import Json, value_at

__all__ = ["arguments", "unfit"]

MAX_FINDINGS = 100
"""After so many nobody reads on."""


def arguments(plan: Plan, tools: ToolSet) -> list[Diagnostic]:
    """Return what is wrong with the plan's calls, taken one by one."""
    found: list[Diagnostic] = []
    callables: dict[str, _Callable | None] = {}
    for step in walk(plan.steps):
        if len(found) > MAX_FINDINGS:
            break
        if not isinstance(step, Call):
            continue
        if step.tool not in callables:
            tool = tools.get(step.tool)
            callables[step.tool] = _Callable(tool) if tool else None
            reason = tool.why_unavailable() if tool else None
            if reason:
                found.append(say.unavailable_tool(step.tool_place, step.tool, reason))
        known = callables[step.tool]
        if known is None:
            found.append(say_names.unknown_tool(step.tool_place, step.tool, tools.names))
        else:
            found += known.problems(step, plan)
    return found


class _Callable:
    """A tool with what is asked about it at every call."""

    def __init__(self, tool: Tool) -> None:
        parameters: dict[str, Any] = tool.parameters
        self.tool = tool
        self.types = tool.argument_types
        self.required: frozenset[str] = frozenset(parameters.get("required", ()))
        self.is_open = parameters.get("additionalProperties", True) is not False

    def problems(self, call: Call, plan: Plan) -> list[Diagnostic]:
        """Return what is wrong with this call."""
        types = self.types
        doubtful: dict[str, Json] = {}
        unknown: list[tuple[str, Template]] = []
        missing = len(self.required)
        for name, template in call.arguments.fields:
            target = types.get(name)
            if target is None:
                unknown.append((name, template))
                continue
            is_required = name in self.required
            missing -= is_required
            kind = type(template)
            if kind is Reference or kind is Text:
                continue
            value = constant_of(template)
            if isinstance(value, NotConstant) or (value is None and not is_required) or surely_fits(value, target):
                continue
            doubtful[name] = value
        faults = self.tool.faults_of_given(doubtful) if doubtful else ()
        if not (faults or missing or (unknown and not self.is_open)):
            return []
        return self._described(call, plan, faults, unknown)

    def _described(
        self, call: Call, plan: Plan, faults: Sequence[ArgumentFault], unknown: list[tuple[str, Template]]
    ) -> list[Diagnostic]:
        tool = self.tool
        templates = dict(call.arguments.fields)
        given = templates.keys()
        missing = [name for name in self.types if name in self.required and name not in given]
        found: list[Diagnostic] = []
        if not self.is_open:
            for name, template in unknown:
                place = argument_place(template, name, plan.source)
                free = [each for each in self.types if each not in given]
                meant = nearest(name, missing) or (missing[0] if len(missing) == 1 else None)
                found.append(say.unknown_argument(place, tool.name, name, tool.call_signature, free, meant))
                missing = [each for each in missing if each != meant]  # said already
        for fault in faults:
            template = templates.get(fault.argument) if fault.argument else None
            if template is not None and len(fault.path) > (fault.kind == "missing"):
                found.append(unfit(call, tool, fault, template))
        if missing:
            found.append(say.missing_arguments(call.tool_place, tool.name, missing, tool.call_signature))
        return found


def unfit(call: Call, tool: Tool, fault: ArgumentFault, template: Template) -> Diagnostic:
    """Return the diagnostic for an argument whose value, or a part of it, the tool's schema refuses."""
    argument = _spoken(fault.path)
    if fault.kind == "missing":
        argument = _spoken(fault.path[:-1])
        problem, label = f"needs a field `{fault.path[-1]}`, which is not there", f"no field `{fault.path[-1]}`"
    elif fault.kind == "unknown":
        argument = _spoken(fault.path[:-1])
        problem, label = f"has no field `{fault.path[-1]}`", "unknown field"
    else:
        expected, found = fault.expected, fault.found
        if fault.allowed:
            expected = _alternatives([json.dumps(value, ensure_ascii=False) for value in fault.allowed])
            constant = constant_of(template)
            found = fault.found if isinstance(constant, NotConstant) else _brief(value_at(constant, fault.path[1:]))
        problem, label = f"must be {expected}, but is {found}", f"found {found}"
    place = _inside(template, fault.path[1:], fault.kind)
    return say.unfit_argument(
        place, call.id, tool.name, argument, problem, label, tool.call_signature, fault.suggestion
    )


def _brief(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:59] + "…"


def _alternatives(words: list[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " or " + words[-1]


def _inside(template: Template, path: Sequence[str | int], kind: str) -> Place:
    """Return the place of a part of a constant."""
    if not template.place.path:
        return template.place
    if kind == "missing":
        return Place((*template.place.path, *path[:-1]))
    return Place((*template.place.path, *path), key=kind == "unknown")


def _spoken(path: Sequence[str | int]) -> str:
    first, *others = path
    return str(first) + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in others)
