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
from toolplan.expressions import Fields, Items, Literal, Template
from toolplan.expressions.types import surely_fits
from toolplan.plan import Call, Plan, walk
from toolplan.tools import ArgumentFault, Tool, ToolSet
from toolplan.values import Json

__all__ = ["arguments"]

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
        doubtful: list[tuple[str, Template]] = []
        unknown: list[tuple[str, Template]] = []
        missing = len(self.required)
        for name, template in call.arguments.fields:
            target = types.get(name)
            if target is None:
                unknown.append((name, template))
                continue
            is_required = name in self.required
            missing -= is_required
            if type(template) is Literal:
                value = template.value
                if surely_fits(value, target) or (value is None and not is_required):
                    continue
                doubtful.append((name, template))
            elif type(template) is Items or type(template) is Fields:
                doubtful.append((name, template))
        if not (doubtful or missing or (unknown and not self.is_open)):
            return []
        return self._described(call, plan, doubtful, unknown)

    def _described(
        self, call: Call, plan: Plan, doubtful: Sequence[tuple[str, Template]], unknown: list[tuple[str, Template]]
    ) -> list[Diagnostic]:
        tool = self.tool
        given = {name for name, _ in call.arguments.fields}
        missing = [name for name in self.types if name in self.required and name not in given]
        found: list[Diagnostic] = []
        if not self.is_open:
            for name, template in unknown:
                place = argument_place(template, name, plan.source)
                free = [each for each in self.types if each not in given]
                meant = nearest(name, missing) or (missing[0] if len(missing) == 1 else None)
                found.append(say.unknown_argument(place, tool.name, name, tool.call_signature, free, meant))
                missing = [each for each in missing if each != meant]  # said already
        constants: dict[str, Json] = {}
        for name, template in doubtful:
            value = constant_of(template)
            if not isinstance(value, NotConstant):
                constants[name] = value
        if constants:
            templates = dict(call.arguments.fields)
            for fault in tool.faults(constants):
                if fault.argument in constants and len(fault.path) > (fault.kind == "missing"):
                    found.append(self._unfit(call, fault, templates[fault.argument]))
        if missing:
            found.append(say.missing_arguments(call.tool_place, tool.name, missing, tool.call_signature))
        return found

    def _unfit(self, call: Call, fault: ArgumentFault, template: Template) -> Diagnostic:
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
                found = _brief(_at(template, fault.path[1:]))
            problem, label = f"must be {expected}, but is {found}", f"found {found}"
        place = _inside(template, fault.path[1:], fault.kind)
        tool = self.tool
        return say.unfit_argument(
            place, call.id, tool.name, argument, problem, label, tool.call_signature, fault.suggestion
        )


def _at(template: Template, path: Sequence[str | int]) -> Json:
    value: Any = constant_of(template)
    for step in path:
        value = value[step]
    return value


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
