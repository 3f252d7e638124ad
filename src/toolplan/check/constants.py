"""The value of a template that is written in full in the plan."""

from __future__ import annotations

from toolplan.expressions import Fields, Items, Literal, Template
from toolplan.values import Json

__all__ = ["NotConstant", "constant_of"]


class NotConstant:
    """What a template with holes has instead of a constant value."""


NOT_CONSTANT = NotConstant()


def constant_of(template: Template) -> Json | NotConstant:
    """Return the value of a template without holes."""
    if isinstance(template, Literal):
        return template.value
    if isinstance(template, Items):
        items: list[Json] = []
        for each in template.items:
            value = constant_of(each)
            if isinstance(value, NotConstant):
                return NOT_CONSTANT
            items.append(value)
        return items
    if isinstance(template, Fields):
        fields: dict[str, Json] = {}
        for name, each in template.fields:
            value = constant_of(each)
            if isinstance(value, NotConstant):
                return NOT_CONSTANT
            fields[name] = value
        return fields
    return NOT_CONSTANT
