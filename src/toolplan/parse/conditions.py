"""Conditions written as JSON: `{left, op, right}`, and `and`, `or`, `not` of them.

They become the text of one expression. A side that refers to something (`"${stock.quantity}"`, `"{stock.quantity}"`, or
a path that begins with a known name) is that expression; any other value is a constant, text included. Of two constants
the left one is read as the name that it must have been meant to be.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping

from toolplan.parse.naming import CONSTANTS
from toolplan.parse.spellings import OPERATORS, fold
from toolplan.values import Json

__all__ = ["UnreadableCondition", "condition_text", "plain_braces"]

_LEFT = ("left", "lhs", "variable", "var", "field", "value1", "operand1", "a")
_OPERATOR = ("op", "operator", "comparison", "comparator")
_RIGHT = ("right", "rhs", "value", "value2", "operand2", "b")
_PATH = re.compile(r"[^\W\d]\w*(?:\.\w+|\[-?\d+\]|\[\"[^\"]*\"\]|\['[^']*'\])*\Z")
_HOLE = re.compile(r"\{([^{}]+)\}\Z")


class UnreadableCondition(ValueError):
    """JSON that is not a condition; the message says what was expected, `key` where."""

    def __init__(self, message: str, *key: str | int, help: str | None = None) -> None:
        super().__init__(message)
        self.key = key
        self.help = help


def condition_text(value: Json, known: Collection[str], whole: Callable[[str], str | None]) -> str:
    """Return the expression that a JSON condition stands for.

    `known` are the names that are defined so far; `whole` reads a text that is one reference of another system's style.
    Raises `UnreadableCondition`.
    """
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, str):
        return value
    if not isinstance(value, Mapping):
        raise UnreadableCondition("a condition: an expression, or {left, op, right}")
    keys = {fold(key): key for key in value}
    for word, also in (("and", "all"), ("or", "any")):
        if len(value) == 1 and (key := keys.get(word) or keys.get(also)):
            parts = value[key]
            if not isinstance(parts, list) or not parts:
                raise UnreadableCondition(f"a list of conditions under `{key}`", key)
            return f" {word} ".join(f"({condition_text(part, known, whole)})" for part in parts)
    if len(value) == 1 and "not" in keys:
        return f"not ({condition_text(value[keys['not']], known, whole)})"
    if len(value) == 1 and "$expr" in value and isinstance(value["$expr"], str):
        return value["$expr"]
    return _comparison(value, keys, known, whole)


def _comparison(
    value: Mapping[str, Json], keys: Mapping[str, str], known: Collection[str], whole: Callable[[str], str | None]
) -> str:
    left, operator, right = (next((keys[k] for k in names if k in keys), None) for names in (_LEFT, _OPERATOR, _RIGHT))
    if left is None or operator is None or (right is None and len(value) > 2):
        raise UnreadableCondition("a condition: an expression, or {left, op, right}")
    written = value[operator]
    meaning = OPERATORS.get(fold(written)) if isinstance(written, str) else None
    if meaning is None:
        raise UnreadableCondition("one of `==`, `!=`, `<`, `<=`, `>`, `>=`, `in`, `contains`", operator)
    a = _side(value[left], left, known, whole)
    constant = value[right] if right is not None else None
    b = _side(constant, right or operator, known, whole)
    if a == repr(value[left]) and b == repr(constant):  # two constants: the left one is a name, or nothing sensible
        text = value[left]
        if not isinstance(text, str) or text in CONSTANTS or not _PATH.match(text.strip()):
            example = '{"left": "w.temperature", "op": "<", "right": 5}'
            raise UnreadableCondition("a value of the plan on one side", left, help=f"for example {example}")
        a = text.strip()
    if meaning in ("contains", "not contains"):
        return f"{b} {'not ' if meaning.startswith('not') else ''}in {a}"
    if meaning in ("startswith", "endswith"):
        return f"{a}.{meaning}({b})"
    if b == "None" and meaning in ("==", "!="):
        meaning = "is" if meaning == "==" else "is not"
    return f"{a} {meaning} {b}"


def _side(value: Json, key: str, known: Collection[str], whole: Callable[[str], str | None]) -> str:
    if isinstance(value, str):
        if (reference := whole(value)) is not None:
            return reference
        text = value.strip()
        if hole := _HOLE.match(text):
            return f"({hole[1]})"
        if _PATH.match(text) and re.split(r"[.\[]", text, maxsplit=1)[0] in known:
            return text
        if "{" in text or "${" in text:
            raise UnreadableCondition("one reference, or a constant", key)
    elif isinstance(value, dict):
        if len(value) == 1 and isinstance(inner := value.get("$expr"), str):
            return f"({inner})"
        raise UnreadableCondition("one reference, or a constant", key)
    return repr(value)


_BRACED = re.compile(
    r"""'(?:[^'\\]++|\\.)*+'|"(?:[^"\\]++|\\.)*+"|\{(?P<path>\s*[^\W\d]\w*(?:\.\w+|\[-?\d+\])*\s*)\}""", re.DOTALL
)


def plain_braces(text: str) -> str:
    """Return the text of an expression with `{w.temp} < 5` read as `(w.temp) < 5`, character for character.

    In an expression the braces would make a set of one element, which nobody writes on purpose. Text in quotes stays.
    """
    whole = _BRACED.fullmatch(text.strip())
    if whole and whole["path"] is not None:  # the notation's own way to write this expression
        return text
    return _BRACED.sub(lambda match: f"({match['path']})" if match["path"] is not None else match[0], text)
