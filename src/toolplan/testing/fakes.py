"""Tools made from signatures, for tests that need no real ones: what is declared is real, what they do is told.

    get_weather(city: str) -> Weather {city: str, temperature: float}  reads weather
      if city == "Atlantis": fails "no such city: {city}"
      returns {"city": "{city}", "temperature": 3.0}
    get_job(id: str) -> Job {done: bool}  reads jobs
      returns {"done": false} then {"done": true}
    send_email(to: str, subject: str, body: str = "")  writes mailbox:{to}  takes 2
    ask_user   returns "yes"
    ask_model  returns "{data.upper()}"

A line that is not indented begins a tool, with a signature as `Tool.signature` writes it; a type that is only named is
unknown, or the one of that name above. After it come, in any order and on indented lines as well:

    pure | reads NAME | writes NAME     what is declared about its effects; `{argument}` in a name is filled
    requires NAME | ensures NAME        states
    idempotent | untrusted | unavailable
    takes N | timeout N                 seconds, on the clock of a simulation
    retry N | max_concurrency N
    returns TEMPLATE                    what a call returns: JSON, whose texts may hold expressions of the arguments
    fails "TEXT"                        how a call fails
    ... then ...                        what the next call does; the last one is repeated
    if EXPRESSION: returns ...          a line of its own: only for calls whose arguments fit it

Without `returns`, a call returns the plainest value that fits its type. `ask_user` and `ask_model` have no signature;
their arguments are `question`, and `data` and `returns`.
"""

from __future__ import annotations

import functools
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias, cast

from toolplan.errors import ToolFailed, UsageError
from toolplan.expressions import Expression, ExpressionError, Template, fill, parse_expression
from toolplan.expressions.templates import parse_template
from toolplan.tools import Tool, ToolSet
from toolplan.values import Json

__all__ = ["Fakes", "fake_tools"]

Schema: TypeAlias = "dict[str, Any]"

QUESTIONS = ("ask_user", "ask_model")


@dataclass(frozen=True, slots=True)
class _Act:
    """What one call does: return a value, or fail with a text."""

    template: Template
    fails: bool = False


@dataclass(frozen=True, slots=True)
class _Behaviour:
    """What calls do whose arguments fit `test`: the first one `acts[0]`, ..., the last is repeated."""

    test: Expression | None
    acts: tuple[_Act, ...]


@dataclass
class _Fake:
    name: str
    parameters: Schema | None = None
    """None for `ask_user` and `ask_model`."""
    returns: Schema | None = None
    facts: dict[str, Any] = field(default_factory=dict[str, Any])
    behaviours: list[_Behaviour] = field(default_factory=list[_Behaviour])
    takes: float = 1.0


class Fakes:
    """Fake tools as they were described."""

    def __init__(self, fakes: Sequence[_Fake]) -> None:
        self._fakes = {fake.name: fake for fake in fakes}
        self._players = {fake.name: _Player(fake) for fake in fakes}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tools."""
        return tuple(name for name in self._fakes if name not in QUESTIONS)

    def joined(self, other: Fakes) -> Fakes:
        """Return these fakes and those of `other`, which replace the ones of the same name."""
        return Fakes([*{**self._fakes, **other._fakes}.values()])

    def tools(self) -> ToolSet:
        """Return the tools, which count their calls from the beginning again."""
        for player in self._players.values():
            player.begin()
        return self._tools

    @functools.cached_property
    def _tools(self) -> ToolSet:
        return ToolSet.of([_tool(self._fakes[name], self._players[name]) for name in self.names])

    def answer(self, word: str) -> Callable[[Mapping[str, Json]], Json] | None:
        """Return what answers `ask_user` or `ask_model`, from the beginning; None when that is not described."""
        player = self._players.get(word)
        if player is not None:
            player.begin()
        return player

    def seconds(self, tool: str) -> float:
        """Return how long a call of the tool takes in a simulation."""
        fake = self._fakes.get(tool)
        return fake.takes if fake is not None else 1.0


def fake_tools(text: str) -> Fakes:
    """Return the fake tools that the lines of `text` describe. Raises `UsageError`, naming the line."""
    lines: list[list[str]] = []
    for line in text.splitlines():
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if line[0].isspace() and lines:
            lines[-1].append(line.strip())
        else:
            lines.append([line.strip()])
    types: dict[str, Schema] = {}
    return Fakes([_read(entry, types) for entry in lines])


# --- a fake at work --------------------------------------------------------------------------------------------------


class _Player:
    """Does what one fake is to do, call by call."""

    def __init__(self, fake: _Fake) -> None:
        self._fake = fake
        self._calls: Counter[int] = Counter()
        """How often each behaviour has been called for."""
        properties: Schema = (fake.parameters or {}).get("properties", {})
        self._missing = {name: cast(Json, schema.get("default")) for name, schema in properties.items()}

    def begin(self) -> None:
        """Forget all calls."""
        self._calls.clear()

    def __call__(self, arguments: Mapping[str, Json]) -> Json:
        scope: dict[str, Json] = {**self._missing, **arguments}
        for number, behaviour in enumerate(self._fake.behaviours):
            if behaviour.test is None or behaviour.test.evaluate(scope):
                act = behaviour.acts[min(self._calls[number], len(behaviour.acts) - 1)]
                self._calls[number] += 1
                value = fill(act.template, scope)
                if act.fails:
                    raise ToolFailed(str(value))
                return value
        return _plainest(self._fake.returns)


def _tool(fake: _Fake, player: _Player) -> Tool:
    def call(**arguments: Json) -> Json:
        return player(arguments)

    return Tool.from_schema(fake.name, "", fake.parameters or {}, call, fake.returns, **fake.facts)


def _plainest(schema: Schema | None) -> Json:
    """Return the plainest value that fits the schema."""
    if not schema:
        return None
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return _plainest(schema["anyOf"][0])
    if schema.get("type") == "object":
        return {name: _plainest(inner) for name, inner in schema.get("properties", {}).items()}
    empty: dict[str, Json] = {"string": "", "integer": 0, "number": 0.0, "boolean": False, "array": []}
    return empty.get(str(schema.get("type")))


# --- reading the lines -----------------------------------------------------------------------------------------------

_CLAUSE = re.compile(
    r"(?P<flag>pure|idempotent|untrusted|unavailable)\b"
    r"|(?P<name>reads|writes|requires|ensures)\s+(?P<names>[^\s,]+(?:,\s*[^\s,]+)*)"
    r"|(?P<number>takes|timeout|retry|max_concurrency)\s+(?P<amount>\d+(?:\.\d+)?)"
    r"|(?P<act>returns|fails)\s+"
)
_TEST = re.compile(r"if (?P<test>.+?):\s*(?=returns\b|fails\b)")
_THEN = re.compile(r"\s*then\s+(?:(?P<act>returns|fails)\s+)?")
_DECODER = json.JSONDecoder()


def _read(entry: Sequence[str], types: dict[str, Schema]) -> _Fake:
    first = entry[0]
    word = re.match(r"[^\s(]+", first)
    assert word is not None
    fake = _Fake(word[0])
    if fake.name in QUESTIONS:
        rest = first[word.end() :]
    else:
        signature = _Signature(first, types)
        fake.name, fake.parameters, fake.returns, end = signature.read()
        rest = first[end:]
    for line in (rest, *entry[1:]):
        _read_clauses(fake, line.strip(), line)
    return fake


def _read_clauses(fake: _Fake, text: str, line: str) -> None:
    test: Expression | None = None
    if condition := _TEST.match(text):
        try:
            test = parse_expression(condition["test"])
        except ExpressionError as error:
            raise UsageError(f"in a fake tool: {error}: {line}") from None
        text = text[condition.end() :]
    while text:
        clause = _CLAUSE.match(text)
        if clause is None:
            raise UsageError(f"in a fake tool: what is `{text[:40]}`? {line}")
        rest = text[clause.end() :]
        if clause["act"]:
            acts, rest = _read_acts(clause["act"], rest, line)
            fake.behaviours.append(_Behaviour(test, acts))
        else:
            _declare(fake, clause)
        text = rest.lstrip(" ,")


def _read_acts(kind: str, text: str, line: str) -> tuple[tuple[_Act, ...], str]:
    acts: list[_Act] = []
    while True:
        try:
            value, end = cast("tuple[Json, int]", _DECODER.raw_decode(text))
        except ValueError:
            raise UsageError(f"in a fake tool: `{kind}` needs a JSON value, found `{text[:40]}`: {line}") from None
        acts.append(_Act(parse_template(value), kind == "fails"))
        text = text[end:]
        more = _THEN.match(text)
        if more is None:
            return tuple(acts), text
        kind = more["act"] or kind
        text = text[more.end() :]


def _declare(fake: _Fake, clause: re.Match[str]) -> None:
    facts = fake.facts
    if clause["flag"] == "unavailable":
        facts["available"] = lambda: "it is not available here"
    elif clause["flag"]:
        facts[clause["flag"]] = True
    elif clause["name"]:
        names = re.split(r",\s*", clause["names"])
        facts[clause["name"]] = [*facts.get(clause["name"], []), *names]
    else:
        amount = float(clause["amount"])
        match clause["number"]:
            case "takes":
                fake.takes = amount
            case "timeout":
                facts["timeout_seconds"] = amount
            case keyword:
                facts[keyword] = int(amount)


_TOKEN = re.compile(
    r"""\s*(?:(?P<name>[^\W\d][\w.]*)|(?P<value>"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?)|(?P<mark>->|\*\*|[(){}\[\],:=|?]))"""
)
_SCALARS: dict[str, Schema] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "None": {"type": "null"},
    "Any": {},
    "Date": {"type": "string", "format": "date"},
    "DateTime": {"type": "string", "format": "date-time"},
}
_CONSTANTS: dict[str, Json] = {"None": None, "True": True, "False": False}


class _Signature:
    """Reads one signature; a recursive descent over its tokens."""

    def __init__(self, text: str, types: dict[str, Schema]) -> None:
        self.text = text
        self.types = types
        self.at = 0

    def read(self) -> tuple[str, Schema, Schema | None, int]:
        """Return the tool's name, the schemas of its parameters and its result, and where the signature ends."""
        name = self.need("name")
        self.need("(")
        parameters = {"additionalProperties": False, **self.fields(")")}
        returns: Schema | None = {"type": "null"}
        if self.take("->"):
            returns = self.type() or None
        return name, parameters, returns, self.at

    # tokens

    def peek(self) -> tuple[str, str]:
        token = _TOKEN.match(self.text, self.at)
        if token is None:
            return "", ""
        kind = token.lastgroup or ""
        return kind, token[kind]

    def take(self, wanted: str) -> str | None:
        """Return the next token and pass it when it is `wanted`: a mark, or `name` or `value`."""
        kind, text = self.peek()
        if wanted not in (kind, text):
            return None
        token = _TOKEN.match(self.text, self.at)
        assert token is not None
        self.at = token.end()
        return text

    def need(self, wanted: str) -> str:
        return self.take(wanted) or self.fail(f"expected `{wanted}`")

    def fail(self, problem: str) -> NoReturn:
        raise UsageError(f"in a fake tool: {problem} at `{self.text[self.at :][:30].strip()}`: {self.text}")

    # grammar

    def fields(self, closing: str) -> Schema:
        """Return the schema of an object with the fields up to the closing bracket."""
        properties: dict[str, Schema] = {}
        required: list[str] = []
        others: Schema = {}
        while not self.take(closing):
            if self.take("**"):  # any further ones
                self.need(":")
                others = {"additionalProperties": self.type() or True}
                continue
            name = self.need("name")
            optional = self.take("?") is not None
            schema: Schema = dict(self.type()) if self.take(":") else {}
            if self.take("="):
                schema["default"] = self.constant()
                optional = True
            properties[name] = schema
            if not optional:
                required.append(name)
            if not self.take(",") and self.peek()[1] != closing:
                self.fail(f"expected `,` or `{closing}`")
        return {"type": "object", "properties": properties, "required": required, **others}

    def constant(self) -> Json:
        name = self.take("name")
        if name is not None and name in _CONSTANTS:
            return _CONSTANTS[name]
        return json.loads(self.need("value"))

    def type(self) -> Schema:
        options = [self.one_type()]
        while self.take("|"):
            options.append(self.one_type())
        values = [option["enum"][0] for option in options if list(option) == ["enum"]]
        others = [option for option in options if list(option) != ["enum"]]
        if values:
            others.insert(0, {"enum": values})
        return others[0] if len(others) == 1 else {} if {} in others else {"anyOf": others}

    def one_type(self) -> Schema:
        if (value := self.take("value")) is not None:
            return {"enum": [json.loads(value)]}
        if self.take("{"):
            return self.fields("}")
        name = self.need("name")
        if name in _SCALARS:
            return dict(_SCALARS[name])
        if name == "list":
            return {"type": "array", "items": self.inner()} if self.take("[") else {"type": "array"}
        if name == "dict":
            if not self.take("["):
                return {"type": "object"}
            self.type()
            self.need(",")
            return {"type": "object", "additionalProperties": self.inner()}
        if self.take("{"):
            self.types[name] = {"title": name, **self.fields("}")}
        return dict(self.types.get(name, {}))

    def inner(self) -> Schema:
        """Return the last type of a bracket, and pass the bracket."""
        schema = self.type()
        self.need("]")
        return schema
