"""The small places in a plan that messages point at."""

from __future__ import annotations

import re

from toolplan.diagnostics import Place, Source
from toolplan.expressions import Template
from toolplan.plan import Call, Let, Step

__all__ = ["argument_place", "call_place", "part_place", "result_place"]


def argument_place(template: Template, name: str, source: Source) -> Place:
    """Return the place of an argument's name: the key in JSON, the word before `=` in a text notation."""
    place = template.place
    if place.path:
        return Place(place.path, key=True)
    if place.start is None:
        return place
    before = re.search(rf"{re.escape(name)}\s*=\s*\Z", source.text[: place.start])
    return Place((), before.start(), before.start() + len(name)) if before else place


def call_place(call: Call) -> Place:
    """Return the place that stands for a whole call: all of it in a text, its tool's name in JSON."""
    return call.tool_place if call.place.path else call.place


def result_place(step: Step) -> Place:
    """Return the place where a step names its result, or the step."""
    return part_place(step, "let" if isinstance(step, Let) else "result_variable")


def part_place(step: Step, *keys: str | int) -> Place:
    """Return the place of what a JSON step has under its keys; in a text notation the step itself."""
    return step.place.child(*keys) if step.place.path else step.place
