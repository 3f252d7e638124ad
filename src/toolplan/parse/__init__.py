"""Text -> `Plan`, or whatever else the reply turned out to be.

`extract.py` finds the plan in a reply, one file a notation reads it. `spellings.py` is the table of accepted spellings.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Literal

from toolplan.diagnostics import Place, Source
from toolplan.diagnostics import reading as say
from toolplan.errors import PlanRejected
from toolplan.parse.extract import Text, extract, whole_plan
from toolplan.parse.json_notation import read_json_plan
from toolplan.parse.json_text import MAX_LEVELS
from toolplan.parse.python_notation import read_program
from toolplan.parse.python_notation.finding import (
    find_bare_program,
    find_likely_program,
    find_meant_program,
    find_program,
)
from toolplan.parse.reading import CannotPlan, Prose, Reading
from toolplan.tools import ToolSet
from toolplan.values import Json

__all__ = ["CannotPlan", "Prose", "Reading", "parse"]


def parse(
    reply: str | dict[str, Json] | list[Json],
    notation: Literal["auto", "json", "python"] = "auto",
    tools: ToolSet | Collection[str] | None = None,
    *,
    name: str = "plan",
    asked_for: Literal["json", "python"] | None = None,
) -> Reading:
    """Return what a model's reply is: a `Plan`, an answer in `Prose`, or `CannotPlan`.

    `reply` is the text of the reply, or the JSON value that a tool call carried. With `notation="auto"` the text alone
    decides how it is read; a certain notation demands a plan in it. `tools` (or their names) help to tell a call from
    other JSON and allow a tool's name to be mended by case or a dotted prefix. `name` is what messages call the text.

    With `"auto"`, a fenced program is a plan when nothing follows it, at most a short lead-in that asks nothing comes
    before it, and it calls a tool or answers; other code in prose is an example. `asked_for` is the notation that the
    model was told to use: for `"json"` a program has to be the whole reply, for `"python"` any fence for Python counts.

    Raises `PlanRejected` with all problems of reading, in source order, whatever the reply is.
    """
    names = tools.names if isinstance(tools, ToolSet) else tools or ()
    text = reply if isinstance(reply, str) else _as_text(reply, name)
    if notation == "python":
        program = find_program(text, names, name) or find_likely_program(text, name)
        if program is None:
            raise PlanRejected([say.no_plan(Place(start=0, end=1), notation)], Source(text, name))
        return _read_program(program, tools)
    if (whole := whole_plan(text, names, name)) is not None:
        return read_json_plan(whole, names)
    if notation == "auto" and (program := find_bare_program(text, names, name)) is not None:
        return _read_program(program, tools)
    found = extract(text, names, name)
    if not isinstance(found, Text):
        return read_json_plan(found, names)
    if notation == "json":
        raise PlanRejected([say.no_plan(Place(start=0, end=1), notation)], Source(text, name))
    if asked_for == "python":
        program = find_program(text, names, name)
    else:
        program = find_meant_program(text, names, name, lead_in=asked_for is None)
    if program is not None:
        return _read_program(program, tools)
    return Prose(found.text.strip())


def _read_program(program: Source, tools: ToolSet | Collection[str] | None) -> Reading:
    if not isinstance(tools, ToolSet):
        return read_program(program, tools or None)
    return read_program(program, tools.names, {tool.name: list(tool.parameters["properties"]) for tool in tools})


def _as_text(value: Json, name: str) -> str:
    """Return the JSON text of a value, so that messages can point into it."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=1)
    except RecursionError:
        raise PlanRejected([say.too_large(Place(), "levels", MAX_LEVELS)]) from None
    except (TypeError, ValueError) as error:
        problem = say.not_a_value(Place(), type(value).__name__, str(error), "give JSON: objects, lists, text, numbers")
        raise PlanRejected([problem], Source("", name)) from None
