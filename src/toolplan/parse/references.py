"""References written in other systems' styles, in a JSON plan.

| style | whole text | inside longer text |
| --- | --- | --- |
| `${weather.temp}`, `${1.temp}`, `${1}.temp` | always | when the plan writes its values so (see below) |
| `$var1.field$`, `$var1[0].field$` (NESTFUL, ComplexFuncBench) | always | when `var1` names something |
| `$weather.temp` | when `weather` names something | never |
| `$1`, `$1.temp` (LLMCompiler) | when a step has the number 1 as its label | never: it may be a price |
| `#E1`, `#E1.temp` (ReWOO) | always | when there is such a step |

`{expr}` is the language's own style, so in `"Total: ${total}"` the dollar is a dollar sign. `${...}` inside longer text
is a reference only if it begins with a known name, the plan has whole texts (or expressions) that are written so, where
a dollar could mean nothing else, and the text itself has no `{...}` without a dollar. A space (`"${ total}"`) always
makes it a dollar sign and a hole.
(`{{name}}` is read by the templates themselves.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from toolplan.diagnostics import Place
from toolplan.expressions import ExpressionError, Hole, Literal, Reference, Template, Text, parse_expression
from toolplan.expressions.templates import parse_template
from toolplan.parse.spellings import fold
from toolplan.values import Json

__all__ = ["References"]

_PATH = r"(?:\.[^.$\[\]{}\"\n]+|\[\d+\])*"
_BRACES = re.compile(r"\$\{(?!\s)([^{}]*)\}((?:\.\w+|\[\d+\])*)")
_DOLLARS = re.compile(rf"\$([^\W\d]\w*)({_PATH})\$")
_DOLLARS_INSIDE = re.compile(r"\$([^\W\d]\w*)((?:\.\w+|\[\d+\])*)\$")
"""Narrower than a whole text: prose up to the next dollar sign is no field's name."""
_PLAIN = re.compile(r"\$(\w+)((?:\.\w+|\[\d+\])*)")
_EVIDENCE = re.compile(r"#(E\d+)((?:\.\w+|\[\d+\])*)")
_OWN_HOLE = re.compile(r"""(?<![\${])\{(?!\s*["}{\\])|\$\{\s""")
"""A brace in the plan's JSON text that is neither the language's own bracket nor part of JSON inside a text."""
_QUOTED = r"""'(?:[^'\\]++|\\.)*+'|"(?:[^"\\]++|\\.)*+\""""
_IN_EXPRESSION = re.compile(rf"(?P<quoted>{_QUOTED})|{_BRACES.pattern}|{_DOLLARS_INSIDE.pattern}", re.DOTALL)
_FIRST_WORD = re.compile(r"\w+")
_EXPRESSIONS = frozenset(("if", "when", "condition", "test", "while", "foreach", "collect", "collectif", "data", "let"))
"""Keys, folded, under which text is an expression."""
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")


@dataclass
class References:
    """Reads the references of one plan. `labels` maps what steps are called in it to their names."""

    dollar_holes: bool = False
    labels: dict[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def in_plan(cls, text: str, value: Json) -> References | None:
        """Return a reader for the plan with this text and value, or None when nothing looks like such a reference."""
        if "$" not in text and "#E" not in text:
            return None
        return cls("${" in text and _has_dollar_values(value))

    def whole(self, text: str) -> str | None:
        """Return the expression that the whole text refers to, or None when it is not a reference."""
        text = text.strip()
        if match := _BRACES.fullmatch(text):
            return self._readable(self._root(match[1].strip()) + match[2])
        if match := _DOLLARS.fullmatch(text):
            known = match[1] in self.labels
            return (
                self._readable(self._path(match[1], match[2])) if known or match[2] or match[1][-1].isdigit() else None
            )
        if match := _PLAIN.fullmatch(text):
            return self._readable(self._path(match[1], match[2])) if match[1] in self.labels else None
        if match := _EVIDENCE.fullmatch(text):
            return self._readable(self._evidence(match[1]) + match[2])
        return None

    def in_expression(self, text: str) -> str:
        """Return the text of an expression with the references in it written as plain names.

        Quoted text stays, unless it is one reference and nothing else: `'${weather.sky}' == 'rain'`.
        """

        def plain(match: re.Match[str]) -> str:
            quoted, inside, tail, root, path = match.groups()
            if quoted and (whole := _BRACES.fullmatch(quoted[1:-1])):
                inside, tail = whole.groups()
            if inside is not None:
                return f"({self._root(inside.strip())}{tail})"
            return self._path(root, path) if root in self.labels else match[0]

        return _IN_EXPRESSION.sub(plain, text)

    def template(self, text: str, place: Place) -> Template:
        """Return the template that a text is, references of other styles included."""
        whole = self.whole(text)
        if whole is not None:
            start = text.find(whole)
            at = place.within(start, start + len(whole)) if start >= 0 else place
            return Reference(parse_expression(whole, at), place)
        parts: list[str | Hole] = []
        at = 0
        for start, end, expression in self._inside(text):
            parts += _parts(text[at:start], place.within(at, start))
            parts.append(Hole(parse_expression(expression, place.within(start, end)), text[start:end]))
            at = end
        if not at:
            return parse_template(text, place)
        parts += _parts(text[at:], place.within(at, len(text)))
        return Text(tuple(parts), place)

    def _inside(self, text: str) -> Iterator[tuple[int, int, str]]:
        found: list[tuple[int, int, str]] = []
        if self.dollar_holes and not _OWN_HOLE.search(text):
            for match in _BRACES.finditer(text):
                root = _FIRST_WORD.match(match[1])
                if root and (root[0] in self.labels or root[0].isdecimal()):
                    found.append((match.start(), match.end(), self._root(match[1].strip()) + match[2]))
        for match in _DOLLARS_INSIDE.finditer(text):
            if match[1] in self.labels:
                found.append((match.start(), match.end(), self._path(match[1], match[2])))
        for match in _EVIDENCE.finditer(text):
            if match[1] in self.labels or f"#{match[1]}" in self.labels or match[1][1:] in self.labels:
                found.append((match.start(), match.end(), self._evidence(match[1]) + match[2]))
        end = 0
        for start, stop, expression in sorted(found):
            if start >= end and self._readable(expression) is not None:
                end = stop
                yield start, stop, expression

    def _root(self, written: str) -> str:
        """Return what stands between `${` and `}`, with a step's number or label replaced by its name."""
        match = _FIRST_WORD.match(written)
        if match and (match[0] in self.labels or match[0].isdecimal()):
            return self._name(match[0]) + written[match.end() :]
        return written

    def _name(self, label: str) -> str:
        return self.labels.get(label) or (f"s{label}" if label.isdecimal() else label)

    def _evidence(self, label: str) -> str:
        known = self.labels.get(label) or self.labels.get(f"#{label}")
        return known or self._name(label[1:])

    def _path(self, root: str, path: str) -> str:
        steps = [
            f"[{index}]" if index else f".{name}" if name.isidentifier() else f"[{name.strip()!r}]"
            for name, index in _STEP.findall(path)
        ]
        return self._name(root) + "".join(steps)

    def _readable(self, expression: str) -> str | None:
        try:
            parse_expression(expression)
        except ExpressionError:
            return None
        return expression


def _has_dollar_values(value: Json) -> bool:
    """Whether the plan writes `${...}` where it can only be a reference: as a whole text, or in an expression."""
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if item.startswith("${") and _BRACES.fullmatch(item.strip()):
                return True
        elif isinstance(item, list):
            stack += item
        elif isinstance(item, dict):
            for key, inner in item.items():
                if fold(key) in _EXPRESSIONS and isinstance(inner, str) and "${" in inner:
                    return True
                stack.append(inner)
    return False


def _parts(text: str, place: Place) -> list[str | Hole]:
    """Return the parts of a piece of longer text, read in the language's own style."""
    template = parse_template(text, place)
    if isinstance(template, Text):
        return list(template.parts)
    if isinstance(template, Reference):
        return [Hole(template.expression, text)]
    literal: Json = template.value if isinstance(template, Literal) else text
    return [literal] if isinstance(literal, str) and literal else []
