"""Does this value fit this argument? One argument of one call, at any depth, with the words for what is wrong."""

from __future__ import annotations

from collections.abc import Mapping

from toolplan.check.constants import NotConstant, constant_of
from toolplan.check.spots import call_place
from toolplan.diagnostics import Diagnostic, Mark, Place, nearest
from toolplan.diagnostics import calls as say
from toolplan.expressions import Fields, Items, Literal, Reference, Template
from toolplan.expressions.infer import infer_template
from toolplan.expressions.narrowing import Env, path_of, root_of
from toolplan.expressions.types import (
    NULL,
    NUMBER,
    TEXT,
    UNKNOWN,
    ListType,
    ObjectType,
    Type,
    Verdict,
    accepts_null,
    is_assignable,
    join_all,
    kind_word,
    may_be_null,
    members,
    type_of,
    without_null,
)
from toolplan.plan import Call
from toolplan.tools import Tool, ToolSet
from toolplan.values import shorten

__all__ = ["Fitting", "origin_of", "spot_of", "words_of"]

NO = Verdict.NO


class Fitting:
    """The arguments of one call beside what its tool wants."""

    def __init__(self, call: Call, tool: Tool, tools: ToolSet, env: Env, results: Mapping[str, Call]) -> None:
        self.call = call
        self.tool = tool
        self.tools = tools
        self.env = env
        self.results = results

    def misfits(self, name: str, template: Template, found: Type, target: Type) -> list[Diagnostic]:
        """Return why the argument `name`, of type `found`, does not fit.

        For an optional argument null means "not given". Constants are left to the tool's schema.
        """
        if isinstance(template, Items | Fields):
            return [] if not isinstance(constant_of(template), NotConstant) else self._part(name, template, target)
        required = name in self.tool.parameters.get("required", ())
        return self._value(name, template, found, target, null_is_given=required)

    def _part(self, name: str, template: Template, target: Type) -> list[Diagnostic]:
        """Return why a value inside an argument does not fit."""
        choices = members(target)
        lists = [each for each in choices if isinstance(each, ListType)]
        objects = [each for each in choices if isinstance(each, ObjectType)]
        if isinstance(template, Items) and lists:
            return self._items(name, template, lists)
        if isinstance(template, Fields) and len(objects) == 1:
            return self._fields(name, template, objects[0])
        found = type_of(template.value) if isinstance(template, Literal) else infer_template(template, self.env)[0]
        return self._value(name, template, found, target, null_is_given=True)

    def _items(self, name: str, template: Items, lists: list[ListType]) -> list[Diagnostic]:
        positions = lists[0].positions if len(lists) == 1 else ()
        element = join_all(each.element for each in lists)
        wanted = [*positions, *([element] * len(template.items))]
        found: list[Diagnostic] = []
        for index, item in enumerate(template.items):
            found += self._part(f"{name}[{index}]", item, wanted[index])
        return found

    def _fields(self, name: str, template: Fields, target: ObjectType) -> list[Diagnostic]:
        found: list[Diagnostic] = []
        given = {field for field, _ in template.fields}
        for field, part in template.fields:
            wanted = target.field(field)
            if wanted is None and target.sealed:
                place = part.place.of_key() if part.place.path else part.place
                near = nearest(field, [each for each in target.names if each not in given])
                found.append(self._unfit(place, name, f"has no field `{field}`", "unknown field", near))
            elif wanted is not None or target.additional is not None:
                found += self._part(f"{name}.{field}", part, wanted or target.additional or UNKNOWN)
        for field in target.names:
            if field in target.required and field not in given:
                problem = f"needs a field `{field}`, which is not there"
                found.append(self._unfit(template.place, name, problem, f"no field `{field}`", None))
        return found

    def _value(
        self, name: str, template: Template, found: Type, target: Type, *, null_is_given: bool
    ) -> list[Diagnostic]:
        """Return why a value of type `found` does not fit; `null_is_given` says that null does not mean "not given"."""
        verdict = is_assignable(found, target)
        null_fits = accepts_null(target) or not null_is_given
        if verdict is NO and (not null_fits or not may_be_null(found)):
            there = without_null(found)
            if found == NULL or is_assignable(there, target) is NO:
                return [self._wrong(name, template, found, target)]
        if may_be_null(found) and not null_fits and found != NULL:
            words = (words_of(template), str(found), origin_of(template, self.results, self.tools), _stand_in(target))
            return [say.nullable_argument(spot_of(template), self.tool.name, name, kind_word(target, named=1), *words)]
        return []

    def _wrong(self, name: str, template: Template, found: Type, target: Type) -> Diagnostic:
        if isinstance(template, Literal):
            value = shorten(template.value)
            problem = f"must be {kind_word(target, named=1)}, but is {value}"
            return self._unfit(template.place, name, problem, f"found {value}", None)
        expected, but = _contrasted(target, found)
        words = words_of(template)
        types = (str(target), str(found))
        origin = origin_of(template, self.results, self.tools)
        help = self._instead(name, template, found, target) if isinstance(template, Reference) else None
        value = f"`{words}`" if isinstance(template, Reference) else words
        return say.wrong_type(spot_of(template), name, expected, value, but, types, origin, help)

    def _unfit(self, place: Place, name: str, problem: str, label: str, near: str | None) -> Diagnostic:
        tool = self.tool
        return say.unfit_argument(place, self.call.id, tool.name, name, problem, label, tool.call_signature, near)

    def _instead(self, name: str, template: Template, found: Type, target: Type) -> str | None:
        """Return how to get from what was found to what is wanted."""
        words = words_of(template)
        for tool in self.tools:
            if _converts(tool, found, target):
                return f"`{tool.name}({words})` returns {tool.result_type}"
        if found is TEXT and is_assignable(NUMBER, target) is not NO:
            return f"write `number({words})`"
        if isinstance(found, ObjectType):
            last = name.rpartition(".")[2]
            fitting = [
                each for each in found.names if is_assignable(found.field(each) or UNKNOWN, target) is Verdict.YES
            ]
            meant = last if last in fitting else nearest(last, fitting) or (fitting[0] if len(fitting) == 1 else None)
            return f"did you mean `{words}.{meant}`?" if meant else None
        lists = [each for each in members(target) if isinstance(each, ListType)]
        if any(is_assignable(found, each.element) is not NO for each in lists):
            return f"write `[{words}]`"
        if isinstance(found, ListType) and is_assignable(found.element, target) is not NO:
            return f"`{words}[0]` is the first element; a loop with `for_each` goes through all of them"
        if is_assignable(TEXT, target) is not NO:
            if isinstance(found, ListType):
                return f"write `', '.join({words})`" if is_assignable(found.element, TEXT) is Verdict.YES else None
            return f"write `str({words})`"
        return None


def _converts(tool: Tool, found: Type, target: Type) -> bool:
    """Return whether a tool turns such a value into what is wanted, and does nothing else."""
    effects = tool.effects
    if not effects.declared or effects.reads or effects.writes:
        return False
    required: list[str] = tool.parameters.get("required", [])
    if len(required) != 1 or is_assignable(found, tool.argument_types[required[0]]) is not Verdict.YES:
        return False
    result = tool.result_type
    return result is not UNKNOWN and is_assignable(result, target) is not NO


def _contrasted(target: Type, found: Type) -> tuple[str, str]:
    """Return the words for what is expected and what was found, such that they differ."""
    expected, but = kind_word(target, named=1), kind_word(found)
    if expected != but:
        return expected, but
    if isinstance(target, ObjectType) and isinstance(found, ObjectType):
        for name in target.names:
            own, wanted = found.field(name), target.field(name) or UNKNOWN
            if own is None and name in target.required:
                return f"an object with a field `{name}`", "an object without one"
            if own is not None and is_assignable(own, wanted) is NO:
                expected, but = _contrasted(wanted, own)
                return f"an object whose `{name}` is {expected}", f"an object whose `{name}` is {but}"
    if isinstance(target, ListType) and isinstance(found, ListType):
        expected, but = _contrasted(target.element, found.element)
        return f"a list whose elements are {expected}", f"a list whose elements are {but}"
    return str(target), str(found)


def _stand_in(target: Type) -> str:
    """Return a value of the wanted type, as an example of a stand-in for null."""
    for member in members(target):
        if isinstance(member, ListType):
            return "[]"
        if isinstance(member, ObjectType):
            return "{}"
    return "'...'" if is_assignable(TEXT, target) is not NO else "0"


# --- words and places of values -------------------------------------------------------------------------------------


def words_of(template: Template) -> str:
    """Return what a message calls a value: its expression, or what kind of thing is written there."""
    if isinstance(template, Reference):
        text = template.expression.text.strip()
        return text if len(text) <= 60 else text[:59] + "…"
    if isinstance(template, Literal):
        return shorten(template.value)
    return "this list" if isinstance(template, Items) else "this object" if isinstance(template, Fields) else "this"


def spot_of(template: Template) -> Place:
    """Return the smallest place that shows a value."""
    if isinstance(template, Reference):
        return template.expression.place_of(template.expression.tree)
    return template.place


def origin_of(template: Template, results: Mapping[str, Call], tools: ToolSet) -> Mark | None:
    """Return a mark at the call that a value comes from, saying what it returns."""
    path = path_of(template.expression.tree) if isinstance(template, Reference) else None
    if path is None:
        return None
    root = root_of(path)
    call = results.get(root)
    tool = tools.get(call.tool) if call else None
    if call is None or tool is None or tool.result_type is UNKNOWN:
        return None
    label = f"returns {tool.result_type}"
    inside = path[len(root) :]
    if inside.startswith("."):
        found, _ = infer_template(template, {root: tool.result_type})
        label += f", whose `{inside[1:]}` is {found}"
    return Mark(call_place(call), label)
