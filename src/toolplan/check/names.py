"""Does every name mean something on every path that leads to its use?

The walk goes through the steps in written order with the scope: the names that certainly have a value here. Where paths
meet, a name stays in scope if every path that gets there defined it; a path that ends (`answer`, `cannot`, `replan`,
`break`, `continue`) does not get there. The body of a loop has a scope of its own, and so has each side of a branch.

Names come out resolved: doubtful holes are references or text, a bare field of exactly one result has got its result's
name, and `depends_on` lists only values that are there.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar

from toolplan.check.definitions import Definitions
from toolplan.check.spots import part_place, result_place
from toolplan.diagnostics import Diagnostic, Place
from toolplan.diagnostics import names as say
from toolplan.diagnostics.reading import no_condition
from toolplan.expressions import Expression, Fields, Hole, Literal, Reference, Template
from toolplan.expressions.templates import holes, names_of, rename, settle, unread
from toolplan.expressions.types import ObjectType, Type, members
from toolplan.known import NOTHING_KNOWN, Known
from toolplan.plan import (
    Answer,
    AskModel,
    AskUser,
    Block,
    Call,
    Cannot,
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
    walk,
)
from toolplan.tools import ToolSet

__all__ = ["resolve"]

Scope: TypeAlias = "dict[str, Step | None]"
"""The names that have a value, each with the step whose result it is; None for `let` values and loop variables."""

MAX_MISSING = 50
"""After so many unknown names nobody reads on."""

Definer: TypeAlias = Call | AskModel | AskUser | ForEach
T = TypeVar("T")


def resolve(plan: Plan, tools: ToolSet, known: Known = NOTHING_KNOWN) -> tuple[Plan, list[Diagnostic]]:
    """Return the plan with its names resolved, and what is wrong with its names."""
    names = _Names(plan, tools)
    scope: Scope = {"now": None, **dict.fromkeys(known.values), **dict.fromkeys(plan.inputs)}
    steps, end = names.block(plan.steps, scope)
    names.current = None
    answer = plan.answer if plan.answer is None or end is None else names.template(plan.answer, end)
    names.report_unused(steps, answer)
    if steps is not plan.steps or answer is not plan.answer:
        plan = replace(plan, steps=steps, answer=answer)
    return plan, names.findings()


@dataclass(slots=True)
class _Missing:
    """A name without a value: its first use, what could have been used there, and the places of further uses."""

    name: str
    expression: Expression
    place: Place
    scope: Scope
    here: tuple[Step | None, bool]
    is_test: bool = False
    further: list[Place] = field(default_factory=list[Place])


class _Names:
    def __init__(self, plan: Plan, tools: ToolSet) -> None:
        self.plan = plan
        self.tools = tools
        self.used: set[str] = set()
        self.found: list[Diagnostic] = []
        self.missing: dict[str, _Missing] = {}
        self.hidden: set[str] = set()
        self.makers: dict[str, set[str]] = {}
        """The tools whose results declare a field, for the fields that were asked for."""
        self.current: Step | None = None
        self.after_body = False
        self._definitions: Definitions | None = None

    @property
    def definitions(self) -> Definitions:
        """Where names are defined in the whole plan; needed only when something is wrong."""
        if self._definitions is None:
            self._definitions = Definitions.of(self.plan.steps)
        return self._definitions

    # --- steps ---

    def block(self, steps: Block, scope: Scope) -> tuple[Block, Scope | None]:
        """Return the steps resolved and the scope after them, None when no path gets there. Changes `scope`."""
        resolved: list[Step] = []
        changed = False
        after: Scope | None = scope
        for index, step in enumerate(steps):
            if after is None:  # what never runs may name what it likes
                resolved += steps[index:]
                break
            self.current = step
            new, after = self.step(step, after)
            changed = changed or new is not step
            resolved.append(new)
        return (tuple(resolved) if changed else steps), after

    def step(self, step: Step, scope: Scope) -> tuple[Step, Scope | None]:
        match step:
            case Call():
                return self.call(step, scope)
            case Let():
                return self.let(step, scope), scope
            case If():
                return self.branch(step, scope)
            case ForEach():
                return self.for_each(step, scope), scope
            case While():
                test = self.expression(step.test, scope)
                body, _ = self.block(step.body, dict(scope))
                return _changed(step, test=test, body=body), scope
            case Parallel():
                block, after = self.block(step.members, scope)
                return _changed(step, members=block), after
            case Try():
                return self.try_(step, scope)
            case AskModel():
                return self.ask_model(step, scope)
            case AskUser():
                question = self.template(step.question, scope)
                self.define(step, scope)
                return _changed(step, question=question), scope
            case Answer():
                return _changed(step, text=self.template(step.text, scope)), None
            case Cannot():
                missing = self.templates(step.missing, scope)
                return _changed(step, reason=self.template(step.reason, scope), missing=missing), None
            case Replan():
                return _changed(step, reason=self.template(step.reason, scope)), None
            case Note():
                return _changed(step, text=self.template(step.text, scope)), scope
            case _:
                return step, None  # break, continue

    def call(self, step: Call, scope: Scope) -> tuple[Step, Scope | None]:
        arguments = self.arguments(step.arguments, scope)
        depends_on = self.dependencies(step, scope) if step.depends_on else ()
        on_error, otherwise = self.on_error(step.on_error, scope)
        self.define(step, scope)
        after = _met(scope, otherwise) if step.on_error.do else scope
        return _changed(step, arguments=arguments, depends_on=depends_on, on_error=on_error), after

    def ask_model(self, step: AskModel, scope: Scope) -> tuple[Step, Scope | None]:
        question, data = self.template(step.question, scope), self.template(step.data, scope)
        on_error, otherwise = self.on_error(step.on_error, scope)
        self.define(step, scope)
        after = _met(scope, otherwise) if step.on_error.do else scope
        return _changed(step, question=question, data=data, on_error=on_error), after

    def on_error(self, on_error: OnError, scope: Scope) -> tuple[OnError, Scope | None]:
        """Return it resolved, and the scope after its steps."""
        if on_error.value is None and not on_error.do:
            return on_error, scope
        value = self.template(on_error.value, scope) if on_error.value is not None else None
        do, after = self.block(on_error.do, dict(scope))
        return _changed(on_error, value=value, do=do), after

    def branch(self, step: If, scope: Scope) -> tuple[Step, Scope | None]:
        test = self.expression(step.test, scope)
        then, after_then = self.block(step.then, dict(scope))
        otherwise, after_else = self.block(step.otherwise, dict(scope)) if step.otherwise else ((), scope)
        return _changed(step, test=test, then=then, otherwise=otherwise), _met(after_then, after_else)

    def for_each(self, step: ForEach, scope: Scope) -> Step:
        items = self.template(step.items, scope)
        inner = {**scope, step.name: None}
        self.watch(step.name, step)
        body, end = self.block(step.body, inner)
        collect, keep = step.collect, step.keep
        if end is not None:
            self.current, self.after_body = step, True
            collect = self.template(collect, end) if collect is not None else None
            keep = self.expression(keep, end) if keep is not None else None
            self.after_body = False
        self.define(step, scope)
        return _changed(step, items=items, body=body, collect=collect, keep=keep)

    def let(self, step: Let, scope: Scope) -> Step:
        values: list[tuple[str, Template]] = []
        for name, template in step.values:
            values.append((name, self.template(template, scope)))
            self.watch(name, step)
            scope[name] = None
        same = all(new[1] is old[1] for new, old in zip(values, step.values, strict=True))
        return step if same else replace(step, values=tuple(values))

    def try_(self, step: Try, scope: Scope) -> tuple[Step, Scope | None]:
        body, after_body = self.block(step.body, dict(scope))
        inner = {**scope, step.error: None} if step.error else dict(scope)
        handler, after_handler = self.block(step.handler, inner)
        return _changed(step, body=body, handler=handler), _met(after_body, after_handler)

    def define(self, step: Definer, scope: Scope) -> None:
        """Bring the names of a step's value into scope."""
        if step.result is not None:
            self.watch(step.result, step)
        for name in step.defines:
            scope[name] = step

    def watch(self, name: str, step: Step) -> None:
        """Warn when a name that the plan chose is the name of a tool."""
        if name in self.tools and name not in self.hidden and not (isinstance(step, Call) and step.tool == name):
            self.hidden.add(name)
            self.found.append(say.hides_a_tool(result_place(step), name))

    def dependencies(self, step: Call, scope: Scope) -> tuple[str, ...]:
        """Return the names in `depends_on` that have a value here.

        Earlier steps without one (a branch, a step of one that was not taken) have had their turn anyway; later ones
        are the business of `order.py`.
        """
        kept: list[str] = []
        for position, name in enumerate(step.depends_on):
            if name in scope:
                self.used.add(name)
                kept.append(name)
            elif name not in self.definitions.steps:
                place = part_place(step, "depends_on", position)
                self.found.append(say.unknown_dependency(place, name, self.definitions.before(step)))
        return step.depends_on if len(kept) == len(step.depends_on) else tuple(kept)

    # --- templates and expressions ---

    def arguments(self, fields: Fields, scope: Scope) -> Fields:
        """Return a call's arguments with their names resolved; most are plain references and constants."""
        names = scope.keys()
        for _, each in fields.fields:
            kind = type(each)
            if kind is Literal:
                continue
            if kind is Reference and each.expression.names <= names:  # type: ignore[union-attr]
                self.used |= each.expression.names  # type: ignore[union-attr]
                continue
            resolved = self.template(fields, scope)
            assert isinstance(resolved, Fields)
            return resolved
        return fields

    def template(self, template: Template, scope: Scope) -> Template:
        """Return the template with its names resolved."""
        if isinstance(template, Literal):
            return template
        needed: set[str] = set()
        doubtful = False
        for each in holes(template):
            needed |= each.expression.names
            doubtful = doubtful or (isinstance(each, Hole) and each.doubtful)
        if doubtful:
            template = settle(template, lambda hole: hole.expression.names <= scope.keys())
            needed = set(names_of(template))
        for group in unread(template):
            is_meant = not group.names.isdisjoint(scope)
            if is_meant or group.is_call:
                needed |= group.names & scope.keys()
                word = say.foreign_expression if group.is_python and is_meant else say.left_as_text
                self.found.append(word(group.place, group.raw, group.problem, group.help))
        self.used |= needed
        if needed <= scope.keys():
            return template
        paths: dict[str, str] = {}
        for each in holes(template):
            paths |= self.unknown(each.expression, scope, is_test=False)
        return rename(template, paths) if paths else template

    def templates(self, templates: tuple[Template, ...], scope: Scope) -> tuple[Template, ...]:
        """Return all of them with their names resolved."""
        resolved = tuple(self.template(each, scope) for each in templates)
        return templates if all(new is old for new, old in zip(resolved, templates, strict=True)) else resolved

    def expression(self, expression: Expression, scope: Scope) -> Expression:
        """Return a condition with its names resolved."""
        if _is_no_test(expression.tree):
            self.found.append(no_condition(expression.place, expression.text))
        self.used |= expression.names
        if expression.names <= scope.keys():
            return expression
        paths = self.unknown(expression, scope, is_test=True)
        return expression.renamed(paths) if paths else expression

    def unknown(self, expression: Expression, scope: Scope, *, is_test: bool) -> dict[str, str]:
        """Note the names of the expression that have no value here; return what bare fields stand for."""
        paths: dict[str, str] = {}
        if len(self.missing) >= MAX_MISSING:
            return paths
        for name in sorted(expression.names - scope.keys()):
            node = _first_use(expression.tree, name)
            place = expression.place_of(node)
            if meant := self.bare_field(name, scope):
                paths[name] = meant
                self.used.add(meant.partition(".")[0])
                self.found.append(say.bare_field(place, name, meant))
            elif name in self.missing:
                self.missing[name].further.append(place)
            else:
                here = (self.current, self.after_body)
                self.missing[name] = _Missing(name, expression, place, dict(scope), here, is_test)
        return paths

    def bare_field(self, name: str, scope: Scope) -> str | None:
        """Return `result.name` when exactly one result in scope declares the field and nothing else has that name."""
        if name in self.definitions.by_name:
            return None
        owners = self.owners(name, scope)
        return f"{owners[0]}.{name}" if len(owners) == 1 else None

    def owners(self, field: str, scope: Scope) -> list[str]:
        """Return the names of the results in scope that declare `field`, one name for each."""
        makers = self.makers.get(field)
        if makers is None:
            makers = self.makers[field] = {tool.name for tool in self.tools if _declares(tool.result_type, field)}
        readings = self.definitions.readings.get(field) or ()
        if not makers and not readings:
            return []
        found: dict[int, str] = {}
        for name, step in scope.items():
            is_owner = step.tool in makers if isinstance(step, Call) else id(step) in readings
            if is_owner and id(step) not in found:
                found[id(step)] = name
        return list(found.values())

    # --- what is wrong ---

    def findings(self) -> list[Diagnostic]:
        """Return everything that was found; a name that has no value anywhere is one finding."""
        return self.found + [self.word(missing) for missing in self.missing.values()]

    def word(self, missing: _Missing) -> Diagnostic:
        name, scope = missing.name, missing.scope
        earlier, ended, later = self.definitions.look_up(name, *missing.here)
        if earlier:
            definitions = [result_place(step) for step in earlier]
            return say.sometimes_defined(missing.place, name, definitions, missing.further)
        expression = missing.expression
        field = _field_read(expression.tree, name)
        owners = self.owners(field, scope) if field else []
        return say.undefined_name(
            missing.place,
            name,
            _listed(scope),
            missing.further,
            later=later.id if later and not ended else None,
            ended=ended.id if ended else None,
            owner=(owners[0], f"{owners[0]}.{field}") if len(owners) == 1 and field else None,
            in_template=bool(expression.place.path and expression.place.start),
            is_tool=name in self.tools,
            is_alone=isinstance(expression.tree, ast.Name) and bool(expression.place.path),
            is_test=missing.is_test,
            is_loop=self.definitions.is_loop(name, self.plan.source),
            failed=self.definitions.failed(missing.here[0]),
        )

    def report_unused(self, steps: Block, answer: Template | None) -> None:
        """Warn of calls that change nothing and whose results nobody uses.

        Only when all names are known, and only when the plan words its answer itself: otherwise the results are the
        answer. A call in a `try` may be there to see whether it fails.
        """
        every = list(walk(steps))
        kinds = set(map(type, every))
        if self.missing or Replan in kinds or (answer is None and Answer not in kinds):
            return
        tried = {id(step) for each in every if isinstance(each, Try) for step in walk(each.body)}
        for step in every:
            if isinstance(step, AskModel):
                what, place = (
                    "`ask_model`",
                    Place((*step.place.path, "ask_model"), key=True) if step.place.path else step.place,
                )
            elif isinstance(step, Call) and step.on_error.action == "fail" and self.is_free(step):
                what, place = f"`{step.tool}`", step.tool_place
            else:
                continue
            if step.defines and self.used.isdisjoint(step.defines) and id(step) not in tried:
                self.found.append(say.unused_result(place, what, step.defines[0]))

    def is_free(self, step: Call) -> bool:
        tool = self.tools.get(step.tool)
        return tool is not None and not tool.effects.has_effects and not tool.ensures


def _changed(old: T, **parts: object) -> T:
    """Return `old` with these fields, itself when they are what it has."""
    for name, part in parts.items():
        if getattr(old, name) is not part:
            return replace(old, **parts)  # type: ignore[type-var]
    return old


def _met(a: Scope | None, b: Scope | None) -> Scope | None:
    """Return the scope where two paths meet, None for a path that does not get there. Changes `a`."""
    if a is None or b is None:
        return b if a is None else a
    for name in a.keys() - b.keys():
        del a[name]
    return a


def _is_no_test(tree: ast.expr) -> bool:
    """Whether an expression is text, a list or an object written out: as a condition it says nothing."""
    if isinstance(tree, ast.Constant):
        return isinstance(tree.value, str)
    if isinstance(tree, ast.JoinedStr):
        return any(isinstance(part, ast.Constant) for part in tree.values)
    if isinstance(tree, ast.Dict):
        return None not in tree.keys
    return isinstance(tree, ast.List | ast.Tuple | ast.Set) and not any(isinstance(i, ast.Starred) for i in tree.elts)


def _first_use(tree: ast.expr, name: str) -> ast.AST:
    uses = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == name]
    return min(uses, key=lambda node: (node.lineno, node.col_offset)) if uses else tree


def _field_read(tree: ast.expr, name: str) -> str | None:
    """Return `field` of the first `name.field` in the tree."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name:
            return node.attr
    return None


def _declares(found: Type, field: str) -> bool:
    return any(isinstance(member, ObjectType) and member.field(field) is not None for member in members(found))


def _listed(scope: Scope) -> list[tuple[str, str | None]]:
    """Return the names that could be used, each with the tool it comes from: what the plan calls them, then ids."""
    named: list[tuple[str, str | None]] = []
    ids: list[tuple[str, str | None]] = []
    seen: set[int] = set()
    for name, step in scope.items():
        if step is None:
            if name != "now":
                named.append((name, None))
        elif name == step.id:
            ids.append((name, None))
        elif id(step) not in seen:
            seen.add(id(step))
            named.append((name, step.tool if isinstance(step, Call) else None))
    return named + ids
