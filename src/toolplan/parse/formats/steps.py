"""A plan in plain text: thoughts, numbered steps, an action each, and a name for its output.

    Thought: I need flights, then a seat.
    Plan: find flights and book the first one
    Step 1: find flights
    Action: call search_flights(origin="Oslo", destination="Rome")
    Output: {{flights}}
    Step 2: book
    Action: call book(flight={{flights[0].id}}, note="for {{user}}")
    Output: {{booking}}

`{{name}}` is the output of an earlier action, alone as a value or inside a text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from toolplan.parse.formats.cursor import Marks
from toolplan.parse.formats.format import Format, result_text
from toolplan.parse.formats.keywords import ACTION, OUTPUT, PLAN, STEP, THOUGHT, certain, keyword, notes, only_when
from toolplan.parse.formats.parts import CallPart
from toolplan.parse.formats.pythonic import write_call
from toolplan.parse.formats.react import FINAL_ANSWER, read_action
from toolplan.values import Json

__all__ = ["FORMAT"]

_NAME = re.compile(r"[^\W\d]\w*")


def _write(calls: Sequence[CallPart]) -> str:
    lines: list[str] = []
    for number, call in enumerate(calls, 1):
        lines += [f"Step {number}: {call.name}", f"Action: call {write_call(call)}"]
        label = call.id if _NAME.fullmatch(call.id) else f"output_{number}"
        lines.append(f"Output: {{{{{label}}}}}")
    return "\n".join(lines)


def _write_results(calls: Sequence[CallPart], results: Sequence[Json]) -> str:
    return "\n".join(f"Observation: {result_text(result)}" for result in results)


FORMAT = Format(
    "steps",
    "Thought / Plan / Step / Action: call f(...) / Output: {{x}}",
    (
        keyword(THOUGHT, notes()),
        keyword(PLAN, notes()),
        keyword(STEP, notes()),
        keyword(ACTION, read_action, is_call=True),
        keyword(OUTPUT, only_when(certain, notes(Marks(("\n",))))),
        FINAL_ANSWER,
    ),
    _write,
    _write_results,
    also=("thought_plan",),
)
