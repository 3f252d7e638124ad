"""Templates in the words of a line of text, for diagrams and summaries."""

from __future__ import annotations

import json

from toolplan.expressions import Fields, Hole, Items, Literal, Reference, Template
from toolplan.values import Json

__all__ = ["operand_text", "template_text"]


def template_text(template: Template, limit: int) -> str:
    """Return a template as a person would write it down: text as it is, references in braces."""
    return _cut(_written(template, quoted=False), limit)


def operand_text(template: Template, limit: int) -> str:
    """Return a template as it stands in an expression: references bare, text in quotes."""
    if isinstance(template, Reference):
        return _cut(template.expression.text.strip(), limit)
    return _cut(_written(template, quoted=True), limit)


def _cut(text: str, limit: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _written(template: Template, *, quoted: bool) -> str:
    match template:
        case Literal():
            value: Json = template.value
            return value if isinstance(value, str) and not quoted else json.dumps(value, ensure_ascii=False)
        case Reference():
            return f"{{{template.expression.text.strip()}}}"
        case Items():
            return "[" + ", ".join(_written(item, quoted=True) for item in template.items) + "]"
        case Fields():
            return "{" + ", ".join(f"{key}: {_written(item, quoted=True)}" for key, item in template.fields) + "}"
        case _:
            text = "".join(part.raw if isinstance(part, Hole) else part for part in template.parts)
            return json.dumps(text, ensure_ascii=False) if quoted else text
