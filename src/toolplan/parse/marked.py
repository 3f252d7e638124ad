"""A reply in a model's own format of tool calls -> a plan of these calls, in written order.

The calls become steps as if they had been written in the JSON notation, so everything behind reads only one notation.
References to results are those of the format. Systems that plan in text (LLMCompiler, ReWOO, thoughts with steps) have
their own, and nothing else in their texts is one; the others have none, so there the plan language's own holes count.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence

from toolplan.diagnostics import Source
from toolplan.errors import PlanRejected
from toolplan.expressions import ExpressionError, parse_expression
from toolplan.parse.announcing import Matter
from toolplan.parse.called import how_called
from toolplan.parse.extract import JsonPlan, extract
from toolplan.parse.formats.parts import BrokenCall, CallPart, TextPart, settled
from toolplan.parse.formats.scanner import CallScanner, call_marks
from toolplan.parse.formats.unread import find_unread
from toolplan.parse.meant import UNCLEAR
from toolplan.parse.naming import is_name
from toolplan.parse.reading import Prose
from toolplan.tools import ToolSet
from toolplan.values import Json

__all__ = ["find_marked_calls", "references_in"]

_LINES = re.compile(
    r"^[ \t]*(?:\**(?:Action|行动|动作|Tool|✿FUNCTION✿|Final Answer|最终答案)\**\s*[:：]|#E\d+\s*[=:]"
    r"|\d+[.)][ \t]*[\w.\-]+\(|\[\s*[\w.\-]+\()",
    re.MULTILINE,
)
"""Lines that calls without marks of their own may begin with."""
_ANSWERS = re.compile(r"^[ \t]*\**(?:Answer|回答)\**\s*[:：]", re.MULTILINE)
"""Lines that the answer behind a thought may begin with, or any text."""
_MESSAGES = {'"tool_use"': "anthropic", '"functionCall"': "gemini"}
"""Words that a message of an API has, written out as JSON text. OpenAI's looks like a plan anyway."""


def find_marked_calls(
    reply: str,
    tools: ToolSet | Collection[str] | None,
    name: str,
    first_step: int = 1,
    matter: Matter | None = None,
) -> JsonPlan | Prose | None:
    """Return the plan of the calls that stand in `reply` between a format's marks; None when none is meant.

    `Prose` is the final answer of a reply that is written in such a format and makes no call. Raises `PlanRejected`
    when one of the calls cannot be read: a plan runs whole or not at all.
    """
    format = next(
        (format for word, format in _MESSAGES.items() if word in reply and reply.lstrip()[:1] == "{"), "marked"
    )
    has_marks = format != "marked" or call_marks().search(reply, 0) or _LINES.search(reply)
    if not has_marks and not _ANSWERS.search(reply):
        return None
    scanner = CallScanner(format, tools if isinstance(tools, ToolSet) else None)
    parts = settled([*scanner.feed(reply), *scanner.close()])
    calls = [part for part in parts if isinstance(part, CallPart | BrokenCall)]
    if not calls:
        text = "".join(part.text for part in parts if isinstance(part, TextPart)).strip()
        is_answer = scanner.has_answered and text and (has_marks or not _has_plan(text, tools))
        return Prose(text) if is_answer else None
    broken = [part.diagnostic for part in calls if isinstance(part, BrokenCall)]
    if broken:
        if all(diagnostic.code == "TP134" for diagnostic in broken):
            return None  # marks around something else, perhaps a plan
        raise PlanRejected(broken, Source(reply, name))
    meaning = how_called(parts, matter or Matter(tools or ()))
    if meaning == "spoken of":
        return None
    said = "".join(part.text for part in parts if isinstance(part, TextPart))
    if (unread := find_unread(said, tools or ())) is not None:
        raise PlanRejected([unread[1]], Source(reply, name))
    sound = [part for part in calls if isinstance(part, CallPart)]
    steps = _steps(sound, scanner.formats, first_step)
    doubts = (UNCLEAR,) if meaning == "unclear" else ()
    repairs = tuple(dict.fromkeys((*doubts, *(repair for call in sound for repair in call.repairs))))
    text = json.dumps(steps, ensure_ascii=False, indent=1)
    return JsonPlan(steps, Source(text, name, 0, json=True), (), repairs)


def _has_plan(text: str, tools: ToolSet | Collection[str] | None) -> bool:
    """Return whether something in the text is a JSON plan, or a damaged one."""
    try:
        return isinstance(extract(text, tools.names if isinstance(tools, ToolSet) else tools or ()), JsonPlan)
    except PlanRejected:
        return True


def _steps(calls: Sequence[CallPart], formats: Sequence[str], first_step: int) -> list[Json]:
    known: dict[str, str] = {}
    """What the format calls each earlier result, and its name in expressions."""
    steps: list[Json] = []
    for number, (call, format) in enumerate(zip(calls, formats, strict=True)):
        own = f"s{number + first_step}"
        find = _STYLES.get(format)
        if format == "rewoo" and call.name == "LLM" and call.arguments.keys() == {"input"}:
            steps.append(_asking(str(call.arguments["input"]), known))
        else:
            arguments: Json = call.arguments
            if find is not None:
                arguments = {key: _with_references(item, find, known) for key, item in call.arguments.items()}
            step: dict[str, Json] = {"tool_name": call.name, "arguments": arguments}
            if format == "steps" and is_name(call.id) and call.id not in known and not _GENERATED.fullmatch(call.id):
                step["result_variable"] = call.id
                own = call.id
            steps.append(step)
        known[call.id] = own
    return steps


def references_in(value: Json, format: str, known: Collection[str]) -> list[str]:
    """Return the references to results in a call's argument, as that format writes them; `known` are earlier labels."""
    find = _STYLES.get(format)
    if find is None:
        return []
    if isinstance(value, list | dict):
        items = value.values() if isinstance(value, dict) else value
        return [found for item in items for found in references_in(item, format, known)]
    labels = {label: label if is_name(label) else f"s{label}" for label in known}
    text = value if isinstance(value, str) else ""
    return [match[0] for match in find.finditer(text) if _expression(match, labels) is not None]


_GENERATED = re.compile(r"call_\d+(?:_\d+)?")
_PATH = r"((?:\.\w+|\[\d+\])*)"
_STYLES: dict[str, re.Pattern[str]] = {
    "llm_compiler": re.compile(rf"\$\{{(\d+){_PATH}\}}|\$(\d+){_PATH}"),
    "rewoo": re.compile(rf"#(E\d+){_PATH}"),
    "steps": re.compile(r"\{\{\s*([^\W\d]\w*)((?:\s*\.\s*\w+|\s*\[[^\[\]{}]*\])*)\s*\}\}"),
}
"""How each format refers to a result: its label and a path into it, once or twice."""
_NUMBER_STEP = re.compile(r"\.\s*(\d+)")


def _expression(match: re.Match[str], known: dict[str, str]) -> str | None:
    """Return the expression that a reference means; None when it is none. One to nothing is an unknown name."""
    groups = [group for group in match.groups() if group is not None]
    label, path = groups[0], groups[1] if len(groups) > 1 else ""
    if label not in known and match[0].startswith("$"):  # a price, perhaps
        return None
    text = known.get(label, label) + _NUMBER_STEP.sub(r"[\1]", path)
    try:
        parse_expression(text)
    except ExpressionError:
        return None
    return text


def _with_references(value: Json, find: re.Pattern[str], known: dict[str, str]) -> Json:
    """Return an argument with its references marked as such, and everything else that could be one as a constant."""
    if isinstance(value, list):
        return [_with_references(item, find, known) for item in value]
    if isinstance(value, dict):
        return {key: _with_references(item, find, known) for key, item in value.items()}
    if not isinstance(value, str):
        return value
    pieces: list[Json] = []
    at = 0
    for match in find.finditer(value):
        expression = _expression(match, known)
        if expression is None:
            continue
        if match.start() > at:
            pieces.append(value[at : match.start()])
        pieces.append({"$expr": expression})
        at = match.end()
    if not pieces:
        return {"$literal": value} if any(ch in value for ch in "{}$#") else value
    if at < len(value):
        pieces.append(value[at:])
    return pieces[0] if len(pieces) == 1 else {"$text": pieces}


def _asking(question: str, known: dict[str, str]) -> Json:
    """Return the step for ReWOO's `LLM[...]`: a question to a model about results."""
    data: dict[str, Json] = {}
    for match in _STYLES["rewoo"].finditer(question):
        expression = _expression(match, known)
        if expression is not None:
            data[match[0]] = {"$expr": expression}
    step: dict[str, Json] = {"ask_model": {"$literal": question}}
    return {**step, "data": data} if data else step
