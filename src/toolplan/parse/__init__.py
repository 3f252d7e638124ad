"""Text -> `Plan`, or whatever else the reply turned out to be.

`extract.py` finds the plan in a reply, by what `plan_like.py` says; one file a notation reads it. `spellings.py` is the
table of accepted spellings. `formats/` reads and writes the calls of models that have a format of their own;
`marked.py` makes a plan of such calls.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from typing import Literal

from toolplan.diagnostics import Place, Source
from toolplan.diagnostics import reading as say
from toolplan.errors import PlanRejected
from toolplan.parse.announcing import Matter
from toolplan.parse.bare_arguments import with_fitted_arguments
from toolplan.parse.extract import MAX_CHARACTERS, MAX_DATA_CHARACTERS, Text, extract, whole_plan
from toolplan.parse.formats.bare_calls import final_answer
from toolplan.parse.formats.unread import find_unread
from toolplan.parse.json_notation import read_json_plan
from toolplan.parse.json_text import MAX_LEVELS
from toolplan.parse.marked import find_marked_calls
from toolplan.parse.meant import UNCLEAR, how_meant
from toolplan.parse.python_notation import read_program
from toolplan.parse.python_notation.finding import (
    find_bare_program,
    find_likely_program,
    find_meant_program,
    find_program,
    words_around,
)
from toolplan.parse.reading import CannotPlan, Prose, Reading
from toolplan.plan import Plan
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
    first_step: int = 1,
    request: str = "",
) -> Reading:
    """Return what a model's reply is: a `Plan`, an answer in `Prose`, or `CannotPlan`.

    `reply` is the text of the reply, or the JSON value that a tool call carried. With `notation="auto"` the text alone
    decides how it is read; a certain notation demands a plan in it. `tools` (or their names) help to tell a call from
    other JSON and allow a tool's name to be mended by case or a dotted prefix. `name` is what messages call the text.

    With `"auto"`, calls in the format of any model (see `formats`) become a plan of these calls. A fenced program is a
    plan when at most short texts stand around it, the first of which asks nothing, and it calls a tool; other code in
    prose is an example. `asked_for` is the notation that the model was told to use: where it is not `"json"`, a program
    at the end of a reply may give an answer without a call; for `"python"` any fence for Python counts.
    `first_step` is the number of the first step of a plan that goes on after others.

    A plan that the words around it refuse, quote or ask leave for is prose. Where they leave it open whether it is
    meant, the plan says so in its `repairs`; words that only announce a plan are told by what they speak of: the plan,
    the tools and the user's `request`.

    Raises `PlanRejected` with all problems of reading, in source order, whatever the reply is.
    """
    names = tools.names if isinstance(tools, ToolSet) else tools or ()
    matter = Matter(tools or (), request)
    is_data = not isinstance(reply, str)
    text = _as_text(reply, name) if is_data else reply
    if is_data and len(text) > MAX_DATA_CHARACTERS:
        problem = say.too_large(Place(start=0, end=1), "characters of JSON", MAX_DATA_CHARACTERS, len(text))
        raise PlanRejected([problem], Source(text, name))
    if notation == "python":
        program = find_program(text, names, name) or find_likely_program(text, name)
        if program is None:
            raise PlanRejected([say.no_plan(Place(start=0, end=1), notation)], Source(text, name))
        reading = _judged(text, program, tools, first_step, matter)
        if isinstance(reading, Prose):
            raise PlanRejected([say.no_plan(Place(start=0, end=1), notation)], Source(text, name))
        return reading
    if (whole := whole_plan(text, names, name, MAX_DATA_CHARACTERS if is_data else MAX_CHARACTERS)) is not None:
        if (answer := final_answer(whole.value, names)) is not None:
            return Prose(answer)
        return read_json_plan(with_fitted_arguments(whole, tools), names, first_step)
    if notation == "auto" and (program := find_bare_program(text, names, name)) is not None:
        return _read_program(program, tools, first_step)
    if notation == "auto" and (marked := find_marked_calls(text, tools, name, first_step, matter)) is not None:
        if isinstance(marked, Prose):
            return marked
        reading = read_json_plan(marked, names, first_step)
        return replace(reading, notation="calls") if isinstance(reading, Plan) else reading
    found = extract(text, names, name, matter)
    if not isinstance(found, Text):
        if (answer := final_answer(found.value, names)) is not None:
            return Prose(answer)
        return read_json_plan(with_fitted_arguments(found, tools), names, first_step)
    if notation == "json":
        raise PlanRejected([say.no_plan(Place(start=0, end=1), notation)], Source(text, name))
    if asked_for == "python":
        program = find_program(text, names, name)
    else:
        program = find_meant_program(text, names, name, answers=asked_for is None)
    if program is not None:
        return _judged(text, program, tools, first_step, matter, found.text)
    if (unread := find_unread(found.text, tools or ())) is not None:
        raise PlanRejected([unread[1]], Source(text, name))
    return Prose(found.text.strip())


def _judged(
    reply: str,
    program: Source,
    tools: ToolSet | Collection[str] | None,
    first_step: int,
    matter: Matter,
    prose: str = "",
) -> Reading:
    """Return the reading of a program in a reply after the verdict of the words around it; `prose` is what is left.

    That something cannot be done needs no leave.
    """
    meaning = how_meant(*words_around(reply, program.text), matter.also(program.text))
    try:
        reading = _read_program(program, tools, first_step)
    except PlanRejected:
        if meaning == "spoken of":
            return Prose(prose.strip())
        raise
    if meaning == "meant" or not isinstance(reading, Plan):
        return reading
    return Prose(prose.strip()) if meaning == "spoken of" else replace(reading, repairs=(UNCLEAR, *reading.repairs))


def _read_program(program: Source, tools: ToolSet | Collection[str] | None, first_step: int) -> Reading:
    if not isinstance(tools, ToolSet):
        return read_program(program, tools or None, first_step=first_step)
    parameters = {tool.name: list(tool.parameters["properties"]) for tool in tools}
    return read_program(program, tools.names, parameters, first_step=first_step)


def _as_text(value: Json, name: str) -> str:
    """Return the JSON text of a value, so that messages can point into it."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=1)
    except RecursionError:
        raise PlanRejected([say.too_large(Place(), "levels", MAX_LEVELS)]) from None
    except (TypeError, ValueError) as error:
        problem = say.not_a_value(Place(), type(value).__name__, str(error), "give JSON: objects, lists, text, numbers")
        raise PlanRejected([problem], Source("", name)) from None
