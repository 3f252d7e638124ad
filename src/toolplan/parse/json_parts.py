"""Reading the parts of JSON steps: keys, names, templates, expressions, conditions.

Each reader takes a JSON value with its place and returns its part of the plan, or raises `Problem`, which ends the
step.
"""

from __future__ import annotations

import ast
import re
from keyword import iskeyword

from toolplan.diagnostics import NOWHERE, Diagnostic, Place
from toolplan.diagnostics import reading as say
from toolplan.expressions import (
    Expression,
    ExpressionError,
    Fields,
    Hole,
    Items,
    Literal,
    Reference,
    Template,
    Text,
    parse_expression,
)
from toolplan.expressions.templates import parse_operand, parse_template
from toolplan.parse.conditions import UnreadableCondition, condition_text, plain_braces
from toolplan.parse.json_text import Unreadable, decode, describe
from toolplan.parse.mend import Damage, mend
from toolplan.parse.naming import CONSTANTS, is_name, name_from
from toolplan.parse.references import References
from toolplan.parse.spellings import ANNOTATIONS, LABELS, PLAN, PLAN_ANNOTATIONS, SCHEMA_WORDS, TYPE_WORDS, Kind, fold
from toolplan.plan import Retry
from toolplan.values import Json

__all__ = ["Given", "Parts", "Problem", "decode_text"]

Given = dict[str, tuple[str, Json]]
"""A step's keys: canonical spelling -> the spelling in the plan, and the value. `id` is the label, if there is one."""

MAX_ATTEMPTS = 100
_CONVERSIONS = ("r", "s", "a")
WAIT, LONGEST_WAIT = Retry().wait_seconds, Retry().max_wait_seconds

_DECORATED = re.compile(r"\$\{(\w+)\}|\{(\w+)\}|[$#](\w+)\$?")
_PROSE = re.compile(r"[^\W\d_][\w\s,.!?;:'’“”，。！？、：；-]*")
_SECONDS = re.compile(r"(\d+(?:\.\d+)?)\s*(?:s|sec|secs|second|seconds)?\Z")
_RETRY_KEYS = {
    **dict.fromkeys(("attempts", "maxattempts", "tries", "maxtries"), "attempts"),
    **dict.fromkeys(("retries", "maxretries", "count", "times", "max"), "retries"),
    **dict.fromkeys(("waitseconds", "wait", "delay", "delayseconds", "backoff", "backoffseconds"), "wait"),
    **dict.fromkeys(("maxwaitseconds", "maxwait", "maxdelay", "maxdelayseconds"), "max wait"),
}


COMPARE = "write a comparison, for example `w.temperature < 5`"


class Problem(Exception):
    """What ends the reading of a step."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


class Parts:
    """The state of reading one plan, and the readers of what steps consist of."""

    def __init__(self) -> None:
        self.problems: list[Diagnostic] = []
        self.repairs: list[str] = []
        self.labels: dict[str, str] = {"now": "now"}
        """What may be referred to so far, as it is written, and the name it has in expressions."""
        self.references: References | None = None

    # --- keys --------------------------------------------------------------------------------------------------------

    def keys(self, kind: Kind, value: dict[str, Json], place: Place) -> Given:
        """Return the keys of a step or plan by their canonical spelling. A key whose value is null is not given."""
        given: Given = {}
        for key, item in value.items():
            canonical = kind.canonical(key)
            if item is None:
                continue
            if canonical is None:
                ignored = PLAN_ANNOTATIONS if kind is PLAN else ANNOTATIONS
                if fold(key) not in ignored and not key.startswith(("_", "$", "/", "#", "@")):
                    self.problems.append(_unknown_key(kind, key, value, place))
            elif canonical == "result_variable" and key != canonical and fold(key) in LABELS:
                given.setdefault("id", (key, item))
            elif canonical in given and given[canonical][1] is not True:
                other, before = given[canonical]
                if before != item and item is not True:
                    places = place.child(key).of_key(), place.child(other).of_key()
                    raise Problem(say.given_twice(places[0], key, other, places[1], canonical))
            else:
                given[canonical] = (key, item)
        return given

    def need(self, given: Given, kind: Kind, key: str, place: Place, shape: str) -> tuple[Json, Place]:
        """Return the value of a key that the step cannot do without, and its place."""
        if key not in given:
            raise Problem(say.missing_key(place, kind.name, key, shape))
        written, value = given[key]
        return value, place.child(written)

    # --- names -------------------------------------------------------------------------------------------------------

    def name(self, value: Json, place: Place, key: str) -> str:
        """Return a name that the plan gives to something. Decorations of other styles (`$w`, `{w}`) are left out."""
        if not isinstance(value, str):
            raise Problem(say.wrong_kind(place, key, "a name", describe(value)))
        if is_name(value):
            return value
        name = _undecorated(value)
        if not is_name(name):
            suggestion = name_from(name)
            raise Problem(say.not_a_name(place, name, suggestion, reserved=iskeyword(name) or name in CONSTANTS))
        return name

    def result(self, given: Given, place: Place) -> str | None:
        """Return the name of a step's value. A label serves when expressions can use it and nothing better is there."""
        if "result_variable" in given:
            key, value = given["result_variable"]
            if isinstance(value, str) and is_name(value):
                return value
            return self.name(value, place.child(key), key)
        label = given["id"][1] if "id" in given else None
        name = _undecorated(label) if isinstance(label, str) else ""
        return name if is_name(name) else None

    def define(self, name: str) -> None:
        """Note that `name` may be referred to from here on."""
        self.labels[name] = name

    def label(self, given: Given, name: str) -> None:
        """Note that the step's label, if it has one, means `name`."""
        if "id" in given and isinstance(value := given["id"][1], str | int):
            self.labels.setdefault(str(value).lstrip("$#"), name)

    def dependencies(self, value: Json, place: Place) -> tuple[str, ...]:
        """Return the names of steps to wait for, given by name, by label or by number."""
        names: list[str] = []
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, bool) or not isinstance(item, str | int):
                raise Problem(say.wrong_kind(place, "depends_on", "a list of names of earlier steps", describe(item)))
            label = str(item).strip().lstrip("$#").strip("{}$")
            names.append(self.labels.get(label) or (f"s{label}" if label.isdecimal() else label))
        return tuple(dict.fromkeys(names))

    # --- values ------------------------------------------------------------------------------------------------------

    def template(self, value: Json, place: Place) -> Template:
        """Return the template that a value is. A structure without any hole is one literal."""
        if _is_constant(value, self.references is not None):
            return Literal(value, place)
        try:
            if self.references is None:
                return parse_template(value, place)
            return self._with_references(value, place, self.references)
        except ExpressionError as error:
            raise Problem(self._unreadable(value, place, error)) from None

    def _with_references(self, value: Json, place: Place, references: References) -> Template:
        if isinstance(value, str):
            return references.template(value, place)
        if isinstance(value, list):
            return Items(tuple([self.template(item, place.child(i)) for i, item in enumerate(value)]), place)
        if isinstance(value, dict):
            if len(value) == 1 and "$text" in value:
                return self._marked_text(value["$text"], place.child("$text"))
            if not _is_marked(value):
                return self.fields(value, place)
        return parse_template(value, place)

    def _marked_text(self, value: Json, place: Place) -> Template:
        """Return text with holes, nothing in which is a reference of another style; as a list, its pieces apart."""
        if not isinstance(value, list):
            return parse_template(value, place)
        parts: list[str | Hole] = []
        for index, piece in enumerate(value):
            if isinstance(piece, str):
                parts.append(piece)
                continue
            at = place.child(index)
            if not isinstance(piece, dict) or not isinstance(text := piece.get("$expr"), str):
                raise Problem(
                    say.wrong_kind(at, "$text", 'text, or pieces of it and {"$expr": "..."}', describe(piece))
                )
            spec, conversion = piece.get("format"), piece.get("conversion")
            expression = parse_expression(text, at.child("$expr"))
            given = (spec if isinstance(spec, str) else None, str(conversion) if conversion in _CONVERSIONS else None)
            parts.append(Hole(expression, f"{{{text}}}", given[0], False, given[1]))
        return Text(tuple(parts), place)

    def fields(self, value: dict[str, Json], place: Place) -> Fields:
        """Return an object of templates, such as the arguments of a call."""
        references = self.references is not None
        found: list[tuple[str, Template]] = []
        for key, item in value.items():
            at = place.child(key)
            if _is_constant(item, references):  # what most arguments are
                found.append((key, Literal(item, at)))
            else:
                found.append((key, self.template(item, at)))
        return Fields(tuple(found), place)

    def operand(self, value: Json, place: Place) -> Template:
        """Return the value of an expression position: text is an expression, everything else a structure.

        `{"$text": "..."}` is text with holes there.
        """
        if not isinstance(value, str):
            return self.template(value, place)
        try:
            text = self._expression_text(value)
            operand = parse_operand(text, place)
            if text != value and isinstance(operand, Expression) and "{" in value and _is_like_prose(operand.tree):
                message = "this may be an expression, or text with holes"
                help = f"write text as `f{value!r}`"
                if not isinstance(operand.tree, ast.Tuple):
                    help += ", an expression without the braces"
                raise ExpressionError(message, place=place, help=help)
        except ExpressionError as error:
            raise Problem(self._unreadable(value, place, error)) from None
        if isinstance(operand, Expression) and isinstance(operand.tree, ast.Constant):
            constant: object = operand.tree.value
            assert constant is None or isinstance(constant, bool | int | float | str)
            return Literal(constant, place)
        return Reference(operand, place) if isinstance(operand, Expression) else operand

    def _expression_text(self, text: str) -> str:
        """Return the text of an expression with what other systems write in it as the language has it."""
        if self.references is not None and ("$" in text or "#E" in text):
            whole = self.references.whole(text)
            text = whole if whole is not None else self.references.in_expression(text)
        return plain_braces(text) if "{" in text else text

    def condition(self, value: Json, place: Place) -> Expression:
        """Return the test of a branch or loop: an expression, true or false, or `{left, op, right}`."""
        if isinstance(value, str):
            try:
                operand = parse_operand(self._expression_text(value), place)
            except ExpressionError as error:
                raise Problem(self._unreadable(value, place, error, is_test=True)) from None
            assert isinstance(operand, Expression)
            return operand
        whole = self.references.whole if self.references is not None else _no_reference
        text = None
        try:
            text = condition_text(value, self.labels, whole)
            return parse_expression(text, place)
        except UnreadableCondition as error:
            at, found = place.child(*error.key), describe(_inside(value, error.key))
            raise Problem(say.wrong_kind(at, str(at.path[-1]), str(error), found, error.help)) from None
        except ExpressionError as error:
            raise Problem(say.unreadable_expression(place, error.message, error.help, text)) from None

    def _unreadable(self, value: Json, place: Place, error: ExpressionError, *, is_test: bool = False) -> Diagnostic:
        """Return the diagnostic for a wrong expression in `value`, at its own place.

        Text as a condition always holds, so there it is never the advice to put it in quotes.
        """
        at = error.place
        if at == NOWHERE:
            at = place.within(error.start, error.end) if isinstance(value, str) else place
        if not isinstance(value, str):
            return say.unreadable_expression(at, error.message, error.help)
        if is_test and (not error.help or error.help.startswith("text needs quotes")):
            return say.unreadable_expression(at, error.message, COMPARE, value)
        help = error.help or (f"text needs quotes of its own here: `{value!r}`" if _PROSE.fullmatch(value) else None)
        return say.unreadable_expression(at, error.message, help, value)

    # --- small things ------------------------------------------------------------------------------------------------

    def retry(self, value: Json, place: Place) -> Retry | None:
        """Return how often to try; a bare number counts the tries after the first."""
        expected = f"a number of further tries, or {{attempts, wait_seconds}} with up to {MAX_ATTEMPTS} attempts"
        if value is False:
            return None
        given: dict[str, Json] = {"retries": value}
        if isinstance(value, dict):
            given = {_RETRY_KEYS.get(fold(key), key): item for key, item in value.items() if item is not None}
        attempts = _whole(given.get("attempts", 1))
        if "retries" in given:
            retries = _whole(given["retries"])
            attempts = retries + 1 if retries is not None else None
        wait, longest = _duration(given.get("wait", WAIT)), _duration(given.get("max wait", LONGEST_WAIT))
        known = given.keys() <= {"attempts", "retries", "wait", "max wait"}
        if not known or wait is None or longest is None or attempts is None or not 1 <= attempts <= MAX_ATTEMPTS:
            raise Problem(say.wrong_kind(place, "retry", expected, describe(value)))
        return Retry(attempts, wait, longest) if attempts > 1 else None

    def seconds(self, value: Json, place: Place, key: str) -> float:
        """Return a duration."""
        if isinstance(value, str) and (match := _SECONDS.match(value.strip())):
            value = float(match[1])
        seconds = _duration(value)
        if not seconds:
            raise Problem(say.wrong_kind(place, key, "a number of seconds above 0", describe(value)))
        return seconds

    def schema(self, value: Json, place: Place) -> dict[str, Json]:
        """Return the JSON Schema that an `ask_model` step must answer with; a bare type name is one."""
        if isinstance(value, str):
            if word := TYPE_WORDS.get(value.strip().lower()):
                return {"type": word}
            try:
                value = decode_text(value)
            except ValueError:
                raise Problem(say.wrong_kind(place, "returns", "a JSON Schema", describe(value))) from None
        if not isinstance(value, dict):
            raise Problem(say.wrong_kind(place, "returns", "a JSON Schema", describe(value)))
        return _spelt_out(value)


def _undecorated(name: str) -> str:
    name = name.strip()
    match = _DECORATED.fullmatch(name)
    return match[1] or match[2] or match[3] if match else name


def _unknown_key(kind: Kind, key: str, value: dict[str, Json], place: Place) -> Diagnostic:
    help = None
    if kind.name == "call" and not any(kind.canonical(other) == "arguments" for other in value):
        help = f'if `{key}` is an argument, write it inside "arguments"'
    return say.unknown_key(place.child(key).of_key(), key, kind.name, kind.names, help)


def _inside(value: Json, path: tuple[str | int, ...]) -> Json:
    for key in path:
        if isinstance(value, dict):
            value = value.get(str(key))
    return value


def _is_like_prose(tree: ast.expr) -> bool:
    """Whether what joins the parts of an expression would be at home in a sentence: `{a} and {b}`, `{a}, {b}`."""
    if isinstance(tree, ast.Compare):
        return isinstance(tree.ops[0], ast.In | ast.NotIn)
    return isinstance(tree, ast.BoolOp | ast.Tuple)


def _no_reference(text: str) -> str | None:
    return None


def _is_marked(value: dict[str, Json]) -> bool:
    return len(value) == 1 and ("$expr" in value or "$literal" in value or "$text" in value)


def _is_constant(value: Json, references: bool) -> bool:
    """Whether nothing in the value can be a hole, or a reference where the plan has such."""
    if isinstance(value, str):
        return "{" not in value and "}" not in value and not (references and ("$" in value or "#E" in value))
    if isinstance(value, dict):
        if _is_marked(value):
            return False
        value = list(value.values())
    if isinstance(value, list):
        for item in value:  # a loop, for a generator costs more than the question
            if not _is_constant(item, references):
                return False
    return True


def _whole(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _duration(value: Json) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if 0 <= value < 10**9 else None


def _spelt_out(schema: dict[str, Json]) -> dict[str, Json]:
    """Return a schema written in one of the shorter ways as JSON Schema.

    `{"iban": "string", "amount": "number"}` is an object with these properties, and `properties` may be a list of
    `{"name", "schema"}`, as providers need it that allow no open objects.
    """
    if schema and not schema.keys() & SCHEMA_WORDS and all(_is_shape(item) for item in schema.values()):
        properties: dict[str, Json] = {key: _shape(item) for key, item in schema.items()}
        return {"type": "object", "properties": properties, "required": list(properties)}
    result = {key: item for key, item in schema.items() if item is not None or key in ("const", "default")}
    nullable = result.pop("nullable", False)
    if nullable is True and isinstance(result.get("type"), str):
        result["type"] = [result["type"], "null"]
    properties_given = result.get("properties")
    if isinstance(properties_given, list):
        named = {
            item["name"]: item.get("schema") for item in properties_given if isinstance(item, dict) and "name" in item
        }
        result["properties"] = {str(name): item or {} for name, item in named.items()}
        result.setdefault("required", [str(name) for name in named])
        properties_given = result["properties"]
    if isinstance(properties_given, dict):
        result["properties"] = {
            key: _spelt_out(item) if isinstance(item, dict) and item.keys() & SCHEMA_WORDS else item
            for key, item in properties_given.items()
        }
    if isinstance(items := result.get("items"), dict) and items.keys() & SCHEMA_WORDS:
        result["items"] = _spelt_out(items)
    return result


def _is_shape(value: Json) -> bool:
    return isinstance(value, dict) or (isinstance(value, str) and value.strip().lower() in TYPE_WORDS)


def _shape(value: Json) -> Json:
    if isinstance(value, str):
        return {"type": TYPE_WORDS[value.strip().lower()]}
    return _spelt_out(value) if isinstance(value, dict) else value


def decode_text(text: str) -> Json:
    """Return the JSON value that the whole text is, mended if that has one reading. Raises `ValueError`."""
    text = text.strip()
    try:
        decoded = decode(text)
    except Unreadable:
        mended = mend(text, 0) if text[:1] in ("{", "[") else None
        if mended is None or isinstance(mended, Damage) or text[mended.end :].strip():
            raise ValueError("is not JSON") from None
        decoded = decode(mended.text)
        text = text[: mended.end]
    else:
        if text[decoded.end :].strip():
            raise ValueError("is more than one JSON value")
    if decoded.faults:
        raise ValueError(f"is not accepted: {decoded.faults[0].message}")
    return decoded.value
