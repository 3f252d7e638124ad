"""The arguments of a call, from what a model wrote to what the tool takes.

Three steps. JSON text becomes an object (mended where it has one reading). Text without types (XML-like formats, ReAct)
gets them from the tool's schema. And a value that the schema refuses is repaired if there is one value it can mean:
JSON or a number or a truth value inside a text, or a word that is allowed in other letters. A value that the schema
takes is never touched: `"007"` where text is allowed stays what it is.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from toolplan.diagnostics import Diagnostic, Place, nearest
from toolplan.diagnostics import calls as say_calls
from toolplan.diagnostics import formats as say
from toolplan.parse.json_text import Unacceptable, Unreadable, decode, describe
from toolplan.parse.mend import Damage, mend
from toolplan.tools import ArgumentFault, Tool
from toolplan.values import Json, value_at

__all__ = [
    "ReadValue",
    "Refused",
    "as_arguments",
    "by_position",
    "fitted",
    "has_reference",
    "json_in",
    "json_without",
    "misfit",
    "object_of",
    "read_value",
    "typed",
    "untyped",
]


class Refused(Exception):
    """What was written cannot be (the arguments of) a call.

    `kind`: `cut` (the text ended too early), `broken` (with the problem), `object` (something else was found) or
    `unnamed` (values without names).
    """

    def __init__(self, kind: Literal["cut", "broken", "object", "unnamed"], problem: str = "", help: str | None = None):
        super().__init__(problem)
        self.kind = kind
        self.problem = problem
        self.help = help

    def diagnostic(self, place: Place, name: str | None) -> Diagnostic:
        """Return the message about it, for the call of `name`."""
        if self.kind == "cut":
            return say.cut_off_call(place, name)
        if self.kind == "broken":
            return say.broken_call(place, name, self.problem, self.help)
        if self.kind == "object":
            return say.not_an_object(place, name, self.problem)
        return say.unnamed_arguments(place, name, self.problem)


@dataclass(frozen=True, slots=True)
class ReadValue:
    """A JSON value, where its text ended, and what had to be mended."""

    value: Json
    end: int
    repairs: tuple[str, ...]


def read_value(text: str) -> ReadValue:
    """Return the JSON value at the beginning of `text`, mended if that has one reading. Raises `Refused`."""
    repairs: tuple[str, ...] = ()
    end: int | None = None
    try:
        try:
            decoded = decode(text, 0)
        except Unreadable:
            mended = mend(text, 0) if text[:1] in ("{", "[") else _NO_JSON
            if isinstance(mended, Damage):
                raise _refused(mended) from None
            decoded = decode(mended.text, 0)
            repairs, end = mended.repairs, mended.end
    except Unacceptable as error:
        raise Refused("broken", error.diagnostic.message, error.diagnostic.help) from None
    if decoded.faults:
        raise Refused("broken", decoded.faults[0].message, decoded.faults[0].help)
    return ReadValue(decoded.value, decoded.end if end is None else end, (*repairs, *decoded.repairs))


_NO_JSON = Damage("broken", 0, "it is not JSON")


def _refused(damage: Damage) -> Refused:
    return Refused("cut") if damage.kind == "cut" else Refused("broken", damage.problem, damage.help)


def object_of(given: Json, *, as_text: bool = False) -> tuple[dict[str, Json], tuple[str, ...]]:
    """Return the object of arguments that `given` is or holds as JSON text, and what had to be mended.

    `as_text`: the format writes them as JSON text, so that one level of it is no repair. Empty text stands for no
    arguments. Raises `Refused`.
    """
    repairs: list[str] = []
    value = given
    for level in range(3):
        if not isinstance(value, str):
            break
        if not value.strip():
            value = {}
            break
        text = value.strip()
        read = read_value(text)
        if text[read.end :].strip():
            raise Refused("broken", "there is more behind the end of its arguments")
        if level or not as_text:
            repairs.append("read the arguments out of a JSON text")
        repairs += read.repairs
        value = read.value
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise Refused("object", describe(value))
    return value, tuple(dict.fromkeys(repairs))


# --- types out of the schema -----------------------------------------------------------------------------------------

_JSON_LIKE = re.compile(r'\s*(?:[\[{"]|-?\d|(?:true|false|null|True|False|None)\s*\Z)')
_WORDS: dict[str, Json] = {"True": True, "False": False, "None": None}


def typed(tool: Tool | None, name: str, text: str, marks: Sequence[str] = ()) -> Json:
    """Return the value of an argument that a format writes as bare text.

    The JSON value that the text is, if the tool takes that; else the text as it stands. Where the schema says nothing,
    text that is JSON is JSON. Quoted text keeps its quotes, unless the tool does not take it so, or bare it could not
    have been told from JSON or from one of the format's `marks` (see `untyped`).
    """
    value = json_in(text)
    if tool is None or name not in tool.parameters["properties"]:
        return text if isinstance(value, str) and not _needs_quotes(value, marks) else value
    if isinstance(value, str):
        meanings = [value, text] if _needs_quotes(value, marks) else [text, value]
    else:
        meanings = [value, text]
    return next((meant for meant in meanings if _takes(tool, name, meant)), text)


def untyped(value: Json, marks: Sequence[str] = ()) -> str:
    """Return the bare text for an argument, so that `typed` gives the value back whatever the tool declares.

    `marks` are strings that must not stand in it.
    """
    if isinstance(value, str) and not _needs_quotes(value, marks):
        return value
    return json_without(value, marks)


def json_without(value: Json, marks: Sequence[str]) -> str:
    """Return JSON text for a value in which none of the marks stands: inside text, their first letter is escaped."""
    text = json.dumps(value, ensure_ascii=False)
    for mark in marks:
        if mark in text:
            text = text.replace(mark, f"\\u{ord(mark[0]):04x}{mark[1:]}")
    return text


def _needs_quotes(text: str, marks: Sequence[str]) -> bool:
    return text != text.strip() or bool(_JSON_LIKE.match(text)) or any(mark in text for mark in marks)


def json_in(text: str) -> Json:
    """Return the JSON value that the whole text is, or the text."""
    stripped = text.strip()
    if not _JSON_LIKE.match(stripped):
        return text
    if stripped in _WORDS:
        return _WORDS[stripped]
    try:
        decoded = decode(stripped, 0)
    except (Unreadable, Unacceptable):
        return text
    return text if decoded.faults or decoded.end != len(stripped) else decoded.value


def _takes(tool: Tool, name: str, value: Json) -> bool:
    return not any(fault.path[:1] == (name,) for fault in tool.faults({name: value}) if fault.kind != "missing")


def by_position(tool: Tool | None, values: Sequence[Json], named: Mapping[str, Json]) -> dict[str, Json]:
    """Return the arguments of a call that gives some values without names. Raises `Refused`.

    Values are counted off against the tool's parameters. Without a tool a single value is called `input`, as the
    systems do that write so.
    """
    if not values:
        return dict(named)
    names = list(tool.parameters["properties"]) if tool is not None else ["input"]
    if len(values) > len(names) or any(name in named for name in names[: len(values)]):
        raise Refused("unnamed", "1 value" if len(values) == 1 else f"{len(values)} values")
    return {**dict(zip(names, values, strict=False)), **named}


_HELD = re.compile(r"\$\{?\w|#E\d")


def has_reference(value: Json) -> bool:
    """Whether something in the value may refer to a result, so that its type is not known yet."""
    if isinstance(value, str):
        opened = value.find("{{")
        return (opened >= 0 and value.find("}}", opened + 2) >= 0) or bool(_HELD.search(value))
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(has_reference(item) for item in items)


def as_arguments(tool: Tool, values: Sequence[Json]) -> dict[str, Json] | None:
    """Return the arguments that a call's only value holds by name: an object that its first parameter cannot be."""
    value = values[0] if len(values) == 1 else None
    names = tool.parameters["properties"]
    if not isinstance(value, dict) or not value or not value.keys() <= names.keys():
        return None
    return None if _takes(tool, next(iter(names)), value) else value


# --- toward the schema -----------------------------------------------------------------------------------------------

_INTEGER = re.compile(r"-?(?:0|[1-9]\d*)\Z")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?\Z")
_TRUTH = {"true": True, "false": False}
MAX_REPAIRS = 50
MAX_TRIES = 2 * MAX_REPAIRS


def fitted(tool: Tool, arguments: dict[str, Json]) -> tuple[dict[str, Json], tuple[str, ...], list[ArgumentFault]]:
    """Return the arguments as the tool takes them, what was repaired, and what still does not fit."""
    faults = tool.faults(tool.normalise(arguments))
    if not faults:
        return arguments, (), []
    repairs: list[str] = []
    fixed = copy.deepcopy(arguments)
    tries = iter(range(MAX_TRIES))
    for fault in faults[:MAX_REPAIRS]:
        if fault.kind in ("missing", "unknown"):
            continue
        if (mended := _mended(tool, fixed, fault, tries)) is not None:
            fixed, more = mended
            repairs += more
    return fixed, tuple(repairs), tool.faults(tool.normalise(fixed)) if repairs else faults


def _mended(
    tool: Tool, arguments: dict[str, Json], fault: ArgumentFault, tries: Iterator[int]
) -> tuple[dict[str, Json], list[str]] | None:
    """Return the arguments without this fault, and what was repaired for that; None where a text has no one meaning.

    A text with JSON in it may have more such texts inside. `tries` runs out, for each one looks at all the arguments.
    """
    written = value_at(arguments, fault.path)
    if not fault.path or not isinstance(written, str) or next(tries, None) is None:
        return None
    for value in _meanings(written, fault):
        fixed = _with(arguments, fault.path, value)
        below = [other for other in tool.faults(fixed) if other.path[: len(fault.path)] == fault.path]
        repairs = [f"read the text of `{_spoken(fault.path)}` as {_said(value)}, because the tool takes no such text"]
        for other in below:
            inner = _mended(tool, fixed, other, tries) if len(other.path) > len(fault.path) else None
            if inner is None:
                break
            fixed = inner[0]
            repairs += inner[1]
        else:
            return fixed, repairs
    return None


def _meanings(text: str, fault: ArgumentFault) -> list[Json]:
    """Return what else a text may have been meant as: at most one value of each kind."""
    same = [value for value in fault.allowed if isinstance(value, str) and value.casefold() == text.casefold()]
    if same:
        return [same[0]] if len(same) == 1 else []
    plain = text.strip()
    if plain.lower() in _TRUTH:
        return [_TRUTH[plain.lower()]]
    if plain == "null":
        return [None]
    if _INTEGER.match(plain) and len(plain) < 1000:
        return [int(plain)]
    if _NUMBER.match(plain):
        return [float(plain)]
    if plain[:1] in ("[", "{"):
        try:
            read = read_value(plain)
        except Refused:
            return []
        return [] if plain[read.end :].strip() else [read.value]
    return []


def _said(value: Json) -> str:
    if isinstance(value, list | dict):
        return "the JSON in it"
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def _with(arguments: dict[str, Json], path: Sequence[str | int], value: Json) -> dict[str, Json]:
    changed = copy.deepcopy(arguments)
    owner = value_at(changed, path[:-1])
    owner[path[-1]] = value
    return changed


def _spoken(path: Sequence[str | int]) -> str:
    first, *others = path
    return str(first) + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in others)


def misfit(
    tool: Tool, arguments: Mapping[str, Json], faults: Sequence[ArgumentFault], place: Place, id: str
) -> Diagnostic:
    """Return the diagnostic for arguments that do not fit the tool: the first fault, the others as notes."""
    unknown = next((fault for fault in faults if fault.kind == "unknown" and len(fault.path) == 1), None)
    missing = [str(fault.path[0]) for fault in faults if fault.kind == "missing" and len(fault.path) == 1]
    rest: list[ArgumentFault]
    if unknown is not None:
        name = str(unknown.path[0])
        free = [each for each in tool.parameters["properties"] if each not in arguments]
        meant = nearest(name, missing) or (missing[0] if len(missing) == 1 else None)
        found = say_calls.unknown_argument(place, tool.name, name, tool.call_signature, free, meant)
        rest = [fault for fault in faults if fault is not unknown]
    elif missing:
        found = say_calls.missing_arguments(place, tool.name, missing, tool.call_signature)
        rest = [fault for fault in faults if not (fault.kind == "missing" and len(fault.path) == 1)]
    else:
        first = faults[0]
        spoken = _spoken(first.path) if first.path else "arguments"
        if first.kind == "missing":
            problem = f"needs a field `{first.path[-1]}`, which is not there"
            spoken = _spoken(first.path[:-1])
        elif first.kind == "unknown":
            problem, spoken = f"has no field `{first.path[-1]}`", _spoken(first.path[:-1])
        elif first.expected:
            problem = f"must be {first.expected}, but is {first.found}"
        else:
            problem = f"does not fit: {first.message}"
        found = say_calls.unfit_argument(
            place, id, tool.name, spoken, problem, problem, tool.call_signature, first.suggestion
        )
        rest = list(faults[1:])
    notes = tuple(f"also: {fault.message}" for fault in rest[:5])
    return replace(found, notes=(*found.notes, *notes))
