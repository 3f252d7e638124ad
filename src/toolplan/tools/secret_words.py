"""The words of a plan that go into places which a schema marks as secret, as far as the text tells it.

A walk backwards over names: a template in such a place reaches it, and so does whatever may be assigned to a name that
a reaching template uses, at whatever time. All constants of what reaches it count, for what becomes of them is not
computed here. A call of a tool that the plan cannot mean, or of an argument that its tool does not name, is as likely a
misspelt one, so its words count as well. Results are no words of the plan, but those of a tool that neither reads nor
changes anything are computed from its arguments.

Tests are left out: what is only compared with a secret is no part of it.
"""

from __future__ import annotations

import ast
import dataclasses
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from toolplan.expressions import Expression, Fields, Hole, Items, Literal, Reference, Template, Text, names_of
from toolplan.plan import AskModel, Call, ForEach, Let, OnError, Plan, Step, walk
from toolplan.tools.tool import Tool
from toolplan.tools.toolset import ToolSet
from toolplan.values import Json

__all__ = ["SecretWords", "secret_words"]

_STEPS = (*cast("tuple[type[Any], ...]", Step.__args__), OnError)
_TEMPLATES = (Literal, Reference, Text, Items, Fields)


@dataclass(frozen=True, slots=True)
class SecretWords:
    """What of a plan reaches a secret place: `values` are the constants. Without any it is false."""

    plan: Plan
    values: tuple[Json, ...] = ()
    _reaching: frozenset[int] = frozenset()
    """The ids of the templates of the plan that reach one."""
    _inputs: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.values)

    def cut(self, mark: str) -> Plan:
        """Return the plan with `mark` in place of every template that has such constants."""
        if not self.values:
            return self.plan
        steps = self._cut(self.plan.steps, mark)
        inputs = {name: mark if name in self._inputs else value for name, value in self.plan.inputs.items()}
        return dataclasses.replace(self.plan, steps=steps, inputs=inputs)

    def _cut(self, part: Any, mark: str) -> Any:
        if isinstance(part, tuple):
            parts = cast("tuple[Any, ...]", part)
            changed = tuple(self._cut(inner, mark) for inner in parts)
            return changed if any(new is not old for new, old in zip(changed, parts, strict=True)) else parts
        if isinstance(part, _TEMPLATES):
            if id(part) in self._reaching:
                return _without_constants(part, mark)
            if isinstance(part, Fields) and (fields := self._cut(part.fields, mark)) is not part.fields:
                return dataclasses.replace(part, fields=fields)
            return part
        if isinstance(part, _STEPS):
            inside = [(field.name, getattr(part, field.name)) for field in dataclasses.fields(part)]
            new = {name: cut for name, inner in inside if (cut := self._cut(inner, mark)) is not inner}
            return dataclasses.replace(part, **new) if new else part
        return part


def secret_words(plan: Plan, tools: ToolSet) -> SecretWords:
    """Return what of a plan, checked or not, reaches a secret place of these tools."""
    called = {step.tool for step in walk(plan.steps) if isinstance(step, Call)}
    if all((tool := tools.get(name)) is not None and not tool.has_secrets for name in called):
        return SecretWords(plan)
    assigned = _assigned(plan, tools)
    open_ = list(_sinks(plan, tools))
    reaching: dict[int, Template] = {}
    names: set[str] = set()
    while open_:
        template = open_.pop()
        if id(template) in reaching:
            continue
        reaching[id(template)] = template
        for name in names_of(template) - names:
            names.add(name)
            open_ += assigned.get(name, ())
    inputs = names & plan.inputs.keys()
    values = [value for template in reaching.values() for value in _constants(template)]
    values += [plan.inputs[name] for name in sorted(inputs)]
    return SecretWords(plan, tuple(values), frozenset(reaching), frozenset(inputs))


def _sinks(plan: Plan, tools: ToolSet) -> Iterator[Template]:
    """Yield the templates that stand in secret places."""
    has_secret_arguments = any(tool.secret_arguments for tool in tools)
    for step in walk(plan.steps):
        if not isinstance(step, Call):
            continue
        tool = tools.get(step.tool)
        if tool is None:
            yield from (value for _, value in step.arguments.fields if has_secret_arguments)
            continue
        yield from (value for name, value in step.arguments.fields if name in tool.secret_arguments)
        if tool.secret_result is not None and step.on_error.value is not None:
            yield step.on_error.value


def _assigned(plan: Plan, tools: ToolSet) -> dict[str, list[Template]]:
    """Return the templates that what each name holds may be made of."""
    found: defaultdict[str, list[Template]] = defaultdict(list)
    for step in walk(plan.steps):
        parts: list[Template | None] = []
        match step:
            case Let():
                for name, value in step.values:
                    found[name].append(value)
            case ForEach():
                found[step.name].append(step.items)
                parts = [step.collect]
            case Call():
                tool = tools.get(step.tool)
                given = [value for _, value in step.arguments.fields] if tool is None or _computes(tool) else []
                parts = [*given, step.on_error.value]
            case AskModel():
                parts = [step.question, step.data, step.on_error.value]
            case _:
                pass
        for name in step.defines if isinstance(step, Call | ForEach | AskModel) else ():
            found[name] += [part for part in parts if part is not None]
    return found


def _computes(tool: Tool) -> bool:
    """Return whether a result is made of the arguments, as far as the declarations tell."""
    effects = tool.effects
    return tool.secret_result is None and not (effects.reads or effects.writes)


def _constants(template: Template) -> Iterator[Json]:
    """Yield the constants that a template's value may be made of. Keys, indexes and punctuation are left out."""
    match template:
        case Literal():
            yield from _leaves(template.value)
        case Reference():
            yield from _constants_of(template.expression)
        case Text():
            for part in template.parts:
                if isinstance(part, Hole):
                    yield from _constants_of(part.expression)
                elif any(map(str.isalnum, part)):
                    yield part
        case Items():
            for item in template.items:
                yield from _constants(item)
        case Fields():
            for _, item in template.fields:
                yield from _constants(item)


def _constants_of(expression: Expression) -> Iterator[Json]:
    open_: list[ast.AST] = [expression.tree]
    while open_:
        node = open_.pop()
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str | int | float):
                yield from _leaves(node.value)
            continue
        left_out: list[ast.AST] = []
        if isinstance(node, ast.Subscript) and not any(isinstance(part, ast.Name) for part in ast.walk(node.slice)):
            left_out = [node.slice]
        elif isinstance(node, ast.Dict):
            left_out = [key for key in node.keys if key is not None]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
            left_out = list(node.args[:1])
        open_ += [child for child in ast.iter_child_nodes(node) if all(child is not part for part in left_out)]


def _leaves(value: Json) -> Iterator[Json]:
    if isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif value is not None and not isinstance(value, bool) and value != "":
        yield value


def _without_constants(template: Template, mark: str) -> Template:
    """Return the template with `mark` in place of each part of it that has constants."""
    match template:
        case Items():
            return dataclasses.replace(template, items=tuple(_without_constants(each, mark) for each in template.items))
        case Fields():
            fields = tuple((name, _without_constants(each, mark)) for name, each in template.fields)
            return dataclasses.replace(template, fields=fields)
        case Literal():
            return Literal(_marked(template.value, mark), template.place)
        case _:
            return Literal(mark, template.place) if any(True for _ in _constants(template)) else template


def _marked(value: Json, mark: str) -> Json:
    if isinstance(value, list):
        return [_marked(item, mark) for item in value]
    if isinstance(value, dict):
        return {key: _marked(item, mark) for key, item in value.items()}
    return value if value is None or isinstance(value, bool) or value == "" else mark
